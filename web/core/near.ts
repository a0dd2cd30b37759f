// near.ts: the library on the page's own thread, for a slider that moves.
//
// A step is forecast and drawn in two milliseconds. The way to a worker and back costs another frame: browsers tell a page of
// a pointer's movement right before they draw a frame, and an answer that comes from elsewhere misses that one. So a movement
// whose like was answered within QUICK_MS just before is answered here, at once; all else, the first movement of a drag among
// it, is a worker's, which says how long it took. One that takes longer than expected is the last that is answered here.
//
// The library is not opened a second time, which takes a tenth of a second: it is a copy of a worker's memory.
import { Library } from './library';

const QUICK_MS = 6; // of 16 that a frame has; drawing takes the others
const AGAIN_MS = 1000; // after which a copy that did not come is asked for again: its worker was stopped

export class Near {
    private library: Library | undefined;
    private asked = -Infinity; // when, for a copy
    private quick = false; // the last movement was

    constructor(
        private readonly module: WebAssembly.Module,
        private readonly mostBytes: number,
    ) {}

    /** A movement took so long; true where a copy of that worker's memory is wanted. */
    learn(ms: number): boolean {
        this.quick = ms < QUICK_MS;
        if (!this.quick || this.library || performance.now() - this.asked < AGAIN_MS) return false;
        this.asked = performance.now();
        return true;
    }

    /** `files`: as they are now; those that come meanwhile follow by put(). */
    async take(memory: ArrayBuffer, files: ReadonlyMap<string, Uint8Array>): Promise<void> {
        const library = await Library.like(this.module, memory).catch(() => undefined);
        for (const [path, bytes] of files) library?.put(path, bytes);
        this.library = library;
    }

    put(path: string, bytes: Uint8Array | null): void {
        if (bytes) this.library?.put(path, bytes);
        else this.library?.remove(path);
    }

    /** Null: a worker shall answer. */
    answers(requests: readonly string[]): string[] | null {
        const { library } = this;
        if (!this.quick || !library) return null;
        const begun = performance.now();
        try {
            const found = requests.map((request) => library.answer(request));
            this.quick = performance.now() - begun < 2 * QUICK_MS; // others may have had the processor meanwhile
            if (library.bytes > this.mostBytes) this.forget();
            return found;
        } catch {
            this.forget(); // a worker says what is wrong, and is replaced where it must be
            return null;
        }
    }

    forget(): void {
        this.library = undefined;
        this.quick = false;
    }
}
