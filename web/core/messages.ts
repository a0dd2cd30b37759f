// messages.ts: what page and workers say to each other.

export type ToWorker =
    | { kind: 'open'; module: WebAssembly.Module; packed: Uint8Array; files: [string, Uint8Array][] }
    | { kind: 'answer'; job: number; requests: string[] }
    | { kind: 'copy' } // of its memory
    | { kind: 'put'; path: string; bytes: Uint8Array | null }; // null: remove

export type FromWorker =
    | { kind: 'ready'; version: string }
    | { kind: 'answers'; job: number; answers: string[]; bytes: number; ms: number }
    | { kind: 'copy'; memory: ArrayBuffer }
    | { kind: 'failed'; job: number | null; message: string }; // null: it could not open
