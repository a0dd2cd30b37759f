// engine.ts: the library as a page sees it: ask, and the answer comes, from workers that never hold the page up.
//
// One worker serves a page at rest; more start when more is asked than one has answered, one per core at most. A page
// whose slider moves asks on a channel: of the requests of one channel only the last is worth an answer, so an older one
// that waits is dropped, and one that runs long already (a plan may take seconds) is stopped with its worker. A worker
// that failed, or that grew beyond what a phone has, is replaced; the files that a user dropped follow.
import { load, unpacked, type OnProgress } from './load';
import type { FromWorker, ToWorker } from './messages';
import { Near } from './near';

export type { OnProgress, Progress } from './load';

/** A newer request of the same channel took this one's place, or its signal was aborted. */
export class Superseded extends Error {
    override name = 'Superseded';
    constructor() {
        super('a newer request took the place of this one');
    }
}

export interface AskOptions {
    /** Of the requests of one channel only the last is answered; the others end with Superseded. */
    channel?: string;
    signal?: AbortSignal;
    /** Of a slider that moves: its like may be answered by now() from then on. */
    movement?: boolean;
}

export interface OpenOptions {
    /** At most so many workers; left out: one per core, eight at most. */
    workers?: number;
    /** Keep the files for the next visit; left out: yes. */
    keep?: boolean;
}

interface Job {
    id: number;
    requests: string[];
    channel: string | undefined;
    movement: boolean;
    done(answers: string[]): void;
    fail(fault: Error): void;
}

interface Hand {
    worker: Worker;
    ready: boolean;
    job: Job | undefined;
    since: number; // when its job began
}

const PATIENCE_MS = 100; // a superseded job that has run so long is stopped; below, it ends sooner than a worker starts
const MOST_BYTES = 768 * 2 ** 20; // of one worker, beyond which it starts afresh
const CHUNK = 16; // requests of a batch that go to a worker at a time

function asText(request: object | string): string {
    return typeof request === 'string' ? request : JSON.stringify(request);
}

/** For the next visit, with or without a network (service.ts); pages that are not served securely go without. */
function keep(base: URL): void {
    globalThis.navigator?.serviceWorker?.register(new URL('service.js', base)).catch(() => {});
}

export class Engine {
    private readonly hands: Hand[] = [];
    private readonly queue: Job[] = [];
    private readonly files = new Map<string, Uint8Array>();
    private readonly near: Near;
    private readonly most: number;
    private next = 1;
    private failures = 0; // workers in a row that could not open
    private closed = false;
    private opened!: { done(version: string): void; fail(fault: Error): void };
    /** Of the library, once it is open. */
    version = '';

    private constructor(private readonly base: URL, private readonly module: WebAssembly.Module,
                        private readonly packed: Uint8Array, options: OpenOptions) {
        const cores = globalThis.navigator?.hardwareConcurrency ?? 2;
        this.most = Math.max(1, options.workers ?? Math.min(cores, 8));
        this.near = new Near(module, MOST_BYTES);
    }

    /** Fetches foretell.wasm, predictor.bin.gz and worker.js from `base` and starts a worker. */
    static async open(base: URL, onProgress: OnProgress = () => {}, options: OpenOptions = {}): Promise<Engine> {
        const abort = new AbortController();
        try {
            const { module, packed } = await load(base, onProgress, abort.signal);
            const engine = new Engine(base, module, packed, options);
            await new Promise<void>((done, fail) => {
                engine.opened = {
                    done: (version) => {
                        engine.version = version;
                        done();
                    },
                    fail,
                };
                engine.start();
            });
            onProgress({ stage: 'ready', loaded: 1, total: 1 });
            if (options.keep !== false) keep(base);
            return engine;
        } finally {
            abort.abort(); // what is still on its way when something failed
        }
    }

    /** One request, one answer, as `foretell batch` has them. What is wrong with a request is an answer, too. */
    answer(request: object | string, options: AskOptions = {}): Promise<string> {
        return this.ask([asText(request)], options).then((answers) => answers[0]!);
    }

    /** A few that are needed together, one after the other by one worker: what they share is still at hand there. */
    answers(requests: readonly string[], options: AskOptions = {}): Promise<string[]> {
        return requests.length ? this.ask([...requests], options) : Promise.resolve([]);
    }

    /** A movement's, at once, on the thread that asks (near.ts); null: it may take long, and answers() is to be asked. */
    now(requests: readonly string[]): string[] | null {
        return this.closed ? null : this.near.answers(requests);
    }

    /** Many requests on all workers; answers come in the order of the requests, as soon as they are there. */
    async *batch(lines: Iterable<object | string>, options: AskOptions = {}): AsyncGenerator<string> {
        const ahead: Promise<string[]>[] = [];
        const source = lines[Symbol.iterator]();
        let begun = false;
        const take = (): boolean => {
            const chunk: string[] = [];
            while (chunk.length < CHUNK) {
                const one = source.next();
                if (one.done) break;
                chunk.push(asText(one.value));
            }
            if (!chunk.length) return false;
            const answers = this.ask(chunk, options, !begun);
            begun = true;
            answers.catch(() => {}); // reported where it is awaited
            ahead.push(answers);
            return true;
        };
        while (ahead.length < 2 * this.most && take()) continue;
        for (let first = ahead.shift(); first; first = ahead.shift()) {
            yield* await first;
            take();
        }
    }

    /** A file that requests can name by its path, "/config.json"; gzip is unpacked on the way. */
    async put(path: string, bytes: Uint8Array): Promise<void> {
        let plain = bytes;
        if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
            plain = await unpacked(new Response(bytes as unknown as BodyInit).body!);
        }
        this.files.set(path, plain);
        for (const hand of this.hands) this.say(hand, { kind: 'put', path, bytes: plain });
        this.near.put(path, plain);
    }

    remove(path: string): void {
        this.files.delete(path);
        for (const hand of this.hands) this.say(hand, { kind: 'put', path, bytes: null });
        this.near.put(path, null);
    }

    close(): void {
        this.closed = true;
        this.near.forget();
        const fault = new Error('the engine was closed');
        for (const job of this.queue.splice(0)) job.fail(fault);
        for (const hand of [...this.hands]) {
            hand.job?.fail(fault);
            this.end(hand);
        }
    }

    /** `first`: of its channel; what a batch asks behind that does not drop what it asked before. */
    private ask(requests: string[], options: AskOptions, first = true): Promise<string[]> {
        if (this.closed) return Promise.reject(new Error('the engine was closed'));
        if (options.signal?.aborted) return Promise.reject(new Superseded());
        if (first && options.channel !== undefined) this.drop((job) => job.channel === options.channel);
        return new Promise((done, fail) => {
            const { channel, movement = false } = options;
            const job: Job = { id: this.next++, requests, channel, movement, done, fail };
            options.signal?.addEventListener('abort', () => this.drop((one) => one === job), { once: true });
            this.queue.push(job);
            this.work();
        });
    }

    /** Requests that nobody waits for any more. */
    private drop(which: (job: Job) => boolean): void {
        for (let i = this.queue.length - 1; i >= 0; i--)
            if (which(this.queue[i]!)) this.queue.splice(i, 1)[0]!.fail(new Superseded());
        for (const hand of [...this.hands]) {
            if (!hand.job || !which(hand.job)) continue;
            hand.job.fail(new Superseded());
            if (performance.now() - hand.since > PATIENCE_MS) {
                this.end(hand);
            } else {
                const stale = hand.job;
                setTimeout(() => { // it may be a long one that has just begun
                    if (hand.job !== stale || this.closed) return;
                    this.end(hand);
                    this.work();
                }, PATIENCE_MS);
            }
        }
        this.work();
    }

    private work(): void {
        if (this.closed) return;
        for (const hand of this.hands) {
            if (!hand.ready || hand.job) continue;
            const job = this.queue.shift();
            if (!job) break;
            hand.job = job;
            hand.since = performance.now();
            this.say(hand, { kind: 'answer', job: job.id, requests: job.requests });
        }
        // One at rest at least, and one more for what waits as long as there are cores.
        const starting = this.hands.filter((hand) => !hand.ready).length;
        if (!this.hands.length || (this.queue.length > starting && this.hands.length < this.most)) this.start();
    }

    private say(hand: Hand, message: ToWorker): void {
        hand.worker.postMessage(message);
    }

    private start(): void {
        const worker = new Worker(new URL('worker.js', this.base), { type: 'module', name: 'foretell' });
        const hand: Hand = { worker, ready: false, job: undefined, since: 0 };
        this.hands.push(hand);
        worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.hear(hand, data);
        worker.onerror = (event) => {
            event.preventDefault();
            this.hear(hand, { kind: 'failed', job: null, message: event.message || 'worker.js cannot be loaded' });
        };
        this.say(hand, { kind: 'open', module: this.module, packed: this.packed, files: [...this.files] });
    }

    private end(hand: Hand): void {
        hand.worker.terminate();
        hand.job = undefined;
        const at = this.hands.indexOf(hand);
        if (at >= 0) this.hands.splice(at, 1);
    }

    private hear(hand: Hand, message: FromWorker): void {
        const job = hand.job;
        if (message.kind === 'ready') {
            hand.ready = true;
            this.failures = 0;
            this.opened.done(message.version);
        } else if (message.kind === 'copy') {
            if (!this.closed) void this.near.take(message.memory, this.files);
        } else if (message.kind === 'answers') {
            hand.job = undefined;
            if (job?.movement && this.near.learn(message.ms)) this.say(hand, { kind: 'copy' });
            if (message.bytes > MOST_BYTES) this.end(hand);
            job?.done(message.answers);
        } else {
            const fault = new Error(message.message);
            job?.fail(fault);
            this.end(hand);
            if (message.job === null && ++this.failures > 2) { // no use in trying for ever
                this.opened.fail(fault);
                for (const one of this.queue.splice(0)) one.fail(fault);
                return;
            }
        }
        this.work();
    }
}
