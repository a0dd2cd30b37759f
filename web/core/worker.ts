// worker.ts: one instance of the library, off the page's thread. Requests are answered in the order they come; a trap
// (a fault of ours, or no memory left) is reported, and the page starts another worker in place of this one.
import { Library } from './library';
import type { FromWorker, ToWorker } from './messages';

interface Scope {
    postMessage(message: FromWorker, transfer?: Transferable[]): void;
    onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
}
const scope = self as unknown as Scope;
let library: Library | undefined;
const early: Extract<ToWorker, { kind: 'put' }>[] = []; // files that came while it was opened

function why(fault: unknown): string {
    return fault instanceof Error ? fault.message : String(fault);
}

function put(to: Library, file: Extract<ToWorker, { kind: 'put' }>): void {
    if (file.bytes) to.put(file.path, file.bytes);
    else to.remove(file.path);
}

async function open(message: Extract<ToWorker, { kind: 'open' }>): Promise<void> {
    try {
        library = await Library.open(message.module, message.packed);
        for (const [path, bytes] of message.files) library.put(path, bytes);
        for (const file of early.splice(0)) put(library, file);
        scope.postMessage({ kind: 'ready', version: library.version });
    } catch (fault) {
        scope.postMessage({ kind: 'failed', job: null, message: why(fault) });
    }
}

scope.onmessage = ({ data }) => {
    if (data.kind === 'open') {
        void open(data);
    } else if (data.kind === 'put') {
        if (library) put(library, data);
        else early.push(data);
    } else if (data.kind === 'copy') {
        const memory = library!.memory();
        scope.postMessage({ kind: 'copy', memory }, [memory]);
    } else {
        try {
            const begun = performance.now();
            const answers = data.requests.map((request) => library!.answer(request));
            const ms = performance.now() - begun;
            scope.postMessage({ kind: 'answers', job: data.job, answers, bytes: library!.bytes, ms });
        } catch (fault) {
            scope.postMessage({ kind: 'failed', job: data.job, message: why(fault) });
        }
    }
};
