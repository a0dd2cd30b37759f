// source.ts: who answers: the machine that serves the page (`foretell web`), or the library in this browser.
//
// `foretell web` says in index.html that it is there (cli/web_files.c); other file servers do not, and nothing is asked
// of them. It answers on all its cores and reads files that it was given a folder of. Files that a user drops stay here:
// requests that name one are answered in the browser, and so is all that follows once the server is gone.
//
// A question about one step is answered in less time than a browser needs to send it: milliseconds of a frame that a slider
// waits for. So the library is loaded behind the page once that stands, and such questions are its from then on, where the
// server says that it has the same predictor and no calibration: the answers are the same to the byte.
import { Engine, type OnProgress } from './engine';

export interface Source {
    /** For people: who answers. */
    readonly where: string;
    /** Whether requests may name files of the machine that answers. */
    readonly files: boolean;
    answer(request: string): Promise<string>;
    /** In the order of the requests. */
    answers(requests: readonly string[], movement?: boolean): Promise<string[]>;
    /** A movement's, at once; null: it takes longer, and is to be asked for. */
    now(requests: readonly string[]): string[] | null;
    put(path: string, bytes: Uint8Array): Promise<void>;
}

class Browser implements Source {
    readonly where = 'in this browser: nothing that is typed leaves it';
    readonly files = false;
    constructor(private readonly engine: Engine) {}
    answer(request: string): Promise<string> {
        return this.engine.answer(request);
    }
    answers(requests: readonly string[], movement = false): Promise<string[]> {
        return this.engine.answers(requests, { movement });
    }
    now(requests: readonly string[]): string[] | null {
        return this.engine.now(requests);
    }
    put(path: string, bytes: Uint8Array): Promise<void> {
        return this.engine.put(path, bytes);
    }
}

interface About {
    version: string;
    files: boolean;
    shipped: boolean; // its predictor is the one that comes with the page, and nothing is calibrated
    threads: number;
}

const SETTLED_MS = 500; // after which the page stands and the library may be loaded
/** Tasks of one step; others may take seconds and all cores. */
const small = new Set(['train', 'forward', 'prefill', 'decode', 'memory', 'kernel', 'collective', 'draw']);
const isSmall = (request: string): boolean =>
    [...request.matchAll(/"task":"(\w+)"/g)].every(([, task]) => small.has(task!));
/** What may name a file of the server. */
const isPath = (request: string): boolean => /\/|\.(json|onnx|gz|pt2)"/.test(request);

class Server implements Source {
    readonly files: boolean;
    private gone = false;
    private engine: Promise<Engine> | null = null;
    private near: Engine | null = null; // once it is loaded, and answers as the server does
    private readonly kept: string[] = []; // paths of files that were dropped

    constructor(private readonly base: URL, private readonly about: About) {
        this.files = about.files;
        if (about.shipped) setTimeout(() => void this.approach(), SETTLED_MS);
    }

    get where(): string {
        const { version, threads } = this.about;
        const too = this.near ? '; single steps in this browser' : '';
        return `by foretell ${version} on ${this.base.host}, ${threads} ${threads === 1 ? 'core' : 'cores'}${too}`;
    }

    private async approach(): Promise<void> {
        const engine = await this.here().catch(() => null);
        if (engine?.version === this.about.version) this.near = engine;
    }

    private here(): Promise<Engine> {
        return (this.engine ??= Engine.open(this.base, () => {}, { keep: false })); // the server has the page
    }

    /** As lines of a batch: there a request that is wrong has an answer, not a status that browsers complain about. */
    private async asked(requests: readonly string[]): Promise<string[] | null> {
        const headers = { 'Content-Type': 'application/x-ndjson' };
        const body = requests.map((request) => `${request}\n`).join('');
        try {
            const answer = await fetch(new URL('api/batch', this.base), { method: 'POST', headers, body });
            const lines = (await answer.text()).trimEnd().split('\n');
            if (answer.ok && lines.length === requests.length) return lines;
        } catch {
            // stopped, or out of reach
        }
        this.gone = true;
        return null;
    }

    /** Whether the library in the browser answers it as the server would, and sooner. */
    private nearby(request: string): boolean {
        return isSmall(request) && !(this.files && isPath(request));
    }

    async answer(request: string): Promise<string> {
        if (this.near && this.nearby(request)) return this.near.answer(request);
        const ours = this.gone || this.kept.some((path) => request.includes(JSON.stringify(path)));
        const lines = ours ? null : await this.asked([request]);
        return lines?.[0] ?? (await this.here()).answer(request);
    }

    async answers(requests: readonly string[], movement = false): Promise<string[]> {
        if (this.near && requests.every((request) => this.nearby(request)))
            return this.near.answers(requests, { movement });
        const lines = this.gone || !requests.length ? null : await this.asked(requests);
        if (lines) return lines;
        const found: string[] = [];
        for (const request of requests) found.push(await this.answer(request));
        return found;
    }

    now(requests: readonly string[]): string[] | null {
        return requests.every((request) => this.nearby(request)) ? (this.near?.now(requests) ?? null) : null;
    }

    async put(path: string, bytes: Uint8Array): Promise<void> {
        await (await this.here()).put(path, bytes);
        this.kept.push(path);
    }
}

/** The server where there is one and it lets us ask; the library in the browser otherwise. */
export async function open(base: URL, onProgress: OnProgress): Promise<Source> {
    if (document.querySelector('meta[name="served-by"]')?.getAttribute('content') === 'foretell') {
        try {
            const answer = await fetch(new URL('api/about', base));
            if (answer.ok) return new Server(base, (await answer.json()) as About);
        } catch {
            // it was there when the page was kept for a visit without a network
        }
    }
    return new Browser(await Engine.open(base, onProgress));
}
