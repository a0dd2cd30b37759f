// library.ts: one instance of the library (web/wasm/reactor.c): requests in, answers out, no browser needed.
import { join } from './predictor';
import { Wasi } from './wasi';

const PAGE = 65536; // of a WebAssembly memory

interface Exports {
    memory: WebAssembly.Memory;
    _initialize(): void;
    alloc(size: number): number;
    free(at: number): void;
    open(predictor: number, length: number, quantile: number): number;
    answer(request: number, length: number): number;
    answer_length(): number;
    renew(): number;
    error(): number;
    version(): number;
}

export class Library {
    private readonly encoder = new TextEncoder();
    private readonly decoder = new TextDecoder();
    private room = 0; // for requests, kept between them
    private at = 0;

    private constructor(private readonly c: Exports, private readonly wasi: Wasi) {}

    /** `packed` is what predictor.bin.gz unpacks to (predictor.ts). */
    static async open(module: WebAssembly.Module, packed: Uint8Array): Promise<Library> {
        const wasi = new Wasi();
        const instance = await WebAssembly.instantiate(module, wasi.imports(module));
        const c = instance.exports as unknown as Exports;
        wasi.attach(c.memory);
        c._initialize();
        const library = new Library(c, wasi);
        let at = 0;
        let length = 0;
        join(packed, (bytes) => {
            at = c.alloc(bytes);
            if (!at) throw new Error('the browser has no memory left for the predictor');
            length = bytes;
            return new Uint8Array(c.memory.buffer, at, bytes);
        });
        if (c.open(at, length, 0) !== 0) throw new Error(library.text(c.error()));
        return library;
    }

    /** One like that whose memory this is, as it was between two answers; of files it has none. */
    static async like(module: WebAssembly.Module, memory: ArrayBuffer): Promise<Library> {
        const wasi = new Wasi();
        const instance = await WebAssembly.instantiate(module, wasi.imports(module));
        const c = instance.exports as unknown as Exports;
        wasi.attach(c.memory);
        const more = memory.byteLength - c.memory.buffer.byteLength;
        if (more > 0) c.memory.grow(more / PAGE);
        new Uint8Array(c.memory.buffer).set(new Uint8Array(memory));
        return new Library(c, wasi);
    }

    /** All that it knows, for like(). */
    memory(): ArrayBuffer {
        return this.c.memory.buffer.slice(0) as ArrayBuffer;
    }

    private text(at: number): string {
        const memory = new Uint8Array(this.c.memory.buffer);
        return this.decoder.decode(memory.subarray(at, memory.indexOf(0, at)));
    }

    get version(): string {
        return this.text(this.c.version());
    }

    /** What the library holds, which grows and never shrinks. */
    get bytes(): number {
        return this.c.memory.buffer.byteLength;
    }

    /** One request object in, one answer object out; what is wrong with a request is an answer, too. */
    answer(request: string): string {
        const most = 3 * request.length;
        if (most > this.room) {
            this.c.free(this.at);
            this.room = Math.max(most, 1 << 16);
            this.at = this.c.alloc(this.room);
            if (!this.at) {
                this.room = 0;
                throw new Error('the browser has no memory left for this request');
            }
        }
        const { written } = this.encoder.encodeInto(request, new Uint8Array(this.c.memory.buffer, this.at, this.room));
        const answer = this.c.answer(this.at, written);
        if (!answer) throw new Error('the browser has no memory left for this answer');
        return this.decoder.decode(new Uint8Array(this.c.memory.buffer, answer, this.c.answer_length()));
    }

    /** A file that requests can name: "model": "/config.json". Gzip is unpacked before it comes here. */
    put(path: string, bytes: Uint8Array): void {
        this.wasi.files.set(path.startsWith('/') ? path : '/' + path, bytes);
        this.renew();
    }

    remove(path: string): void {
        this.wasi.files.delete(path.startsWith('/') ? path : '/' + path);
        this.renew();
    }

    /** A session keeps models by the path they came from. */
    private renew(): void {
        if (this.c.renew() !== 0) throw new Error(this.text(this.c.error()));
    }
}
