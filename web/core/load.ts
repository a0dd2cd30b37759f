// load.ts: fetching the library and the predictor, and saying how far it is.

/** Bytes as they come over the wire, both files together. `total` is 0 where the server does not say. */
export interface Progress {
    stage: 'loading' | 'starting' | 'ready';
    loaded: number;
    total: number;
}
export type OnProgress = (progress: Progress) => void;

/** Counts what passes. */
function counting(body: ReadableStream<Uint8Array>, more: (bytes: number) => void): ReadableStream<Uint8Array> {
    return body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, to) {
            more(chunk.length);
            to.enqueue(chunk);
        },
    }));
}

async function get(url: URL, signal: AbortSignal): Promise<Response> {
    let answer: Response;
    try {
        answer = await fetch(url, { signal });
    } catch (fault) {
        throw new Error(`${url.pathname} cannot be fetched: ${fault instanceof Error ? fault.message : fault}`);
    }
    if (!answer.ok || !answer.body) throw new Error(`${url.pathname} cannot be fetched: status ${answer.status}`);
    return answer;
}

// Some file servers give .gz files a Content-Encoding, and the browser has unpacked them by the time we see them.
export async function unpacked(body: ReadableStream<Uint8Array>): Promise<Uint8Array> {
    const [head, rest] = body.tee();
    const reader = head.getReader();
    const { value } = await reader.read();
    void reader.cancel();
    const gzip = value !== undefined && value.length > 1 && value[0] === 0x1f && value[1] === 0x8b;
    const unzip = new DecompressionStream('gzip') as unknown as TransformStream<Uint8Array, Uint8Array>;
    const plain = gzip ? rest.pipeThrough(unzip) : rest;
    return new Uint8Array(await new Response(plain as unknown as BodyInit).arrayBuffer());
}

/** The module, compiled, and the predictor as predictor.ts packs it. */
export async function load(base: URL, onProgress: OnProgress, signal: AbortSignal):
    Promise<{ module: WebAssembly.Module; packed: Uint8Array }> {
    let loaded = 0;
    let total = 0;
    const more = (bytes: number): void => {
        loaded += bytes;
        onProgress({ stage: 'loading', loaded, total: Math.max(total, loaded) });
    };
    const [wasm, predictor] = await Promise.all([
        get(new URL('foretell.wasm', base), signal),
        get(new URL('predictor.bin.gz', base), signal),
    ]);
    for (const answer of [wasm, predictor]) total += Number(answer.headers.get('content-length') ?? 0);
    // Compiled from its bytes: streaming wants a MIME type that plain file servers do not all have.
    const bytes = new Response(counting(wasm.body!, more) as unknown as BodyInit).arrayBuffer();
    const module = bytes.then((all) => WebAssembly.compile(all));
    const packed = unpacked(counting(predictor.body!, more));
    const both = { module: await module, packed: await packed };
    onProgress({ stage: 'starting', loaded, total: loaded });
    return both;
}
