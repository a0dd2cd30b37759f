// wasi.ts: what the library asks of a system, answered from memory.
//
// The library computes; of WASI (preview 1) it needs files that a user dropped on the page, and little else: it reads no
// environment and no random numbers, asks the clock how long a search took and how old prices are, and prints nothing. Files live in a map by path; there is one folder, '/',
// open from the start. What is not here answers ENOSYS, which the library reports as a file that cannot be read.

const OK = 0;
const REALTIME = 0; // of the clocks
const BADF = 8;
const INVAL = 28;
const NOENT = 44;
const NOSYS = 52;
const ROFS = 69;
const ROOT = 3; // 0, 1 and 2 are the standard streams
const DIRECTORY = 3;
const REGULAR = 4;

interface Open {
    bytes: Uint8Array | undefined; // undefined: the folder
    at: number;
}

export class Exit extends Error {
    constructor(readonly status: number) {
        super(`the library ended with status ${status}`);
    }
}

export class Wasi {
    readonly files = new Map<string, Uint8Array>();
    private readonly open = new Map<number, Open>([[ROOT, { bytes: undefined, at: 0 }]]);
    private memory: WebAssembly.Memory | undefined;

    attach(memory: WebAssembly.Memory): void {
        this.memory = memory;
    }

    private get view(): DataView {
        return new DataView(this.memory!.buffer);
    }

    private bytes(at: number, length: number): Uint8Array {
        return new Uint8Array(this.memory!.buffer, at, length);
    }

    private text(at: number, length: number): string {
        return new TextDecoder().decode(this.bytes(at, length));
    }

    /** Runs of buffers: {address, length} pairs. */
    private *buffers(list: number, count: number): Generator<[number, number]> {
        for (let i = 0; i < count; i++)
            yield [this.view.getUint32(list + 8 * i, true), this.view.getUint32(list + 8 * i + 4, true)];
    }

    private stat(to: number, bytes: Uint8Array | undefined): number {
        this.bytes(to, 64).fill(0);
        this.view.setUint8(to + 16, bytes ? REGULAR : DIRECTORY);
        this.view.setBigUint64(to + 24, 1n, true);
        this.view.setBigUint64(to + 32, BigInt(bytes?.length ?? 0), true);
        return OK;
    }

    private named(path: number, length: number): string {
        return '/' + this.text(path, length).split('/').filter((part) => part !== '' && part !== '.').join('/');
    }

    private isFolder(path: string): boolean {
        if (path === '/') return true;
        for (const name of this.files.keys()) if (name.startsWith(path + '/')) return true;
        return false;
    }

    private readonly calls: Record<string, (...args: never[]) => number> = {
        fd_prestat_get: (fd: number, to: number) => {
            if (fd !== ROOT) return BADF;
            this.view.setUint32(to, 0, true);
            this.view.setUint32(to + 4, 1, true);
            return OK;
        },
        fd_prestat_dir_name: (fd: number, to: number, length: number) => {
            if (fd !== ROOT || length < 1) return BADF;
            this.bytes(to, 1)[0] = '/'.charCodeAt(0);
            return OK;
        },
        fd_fdstat_get: (fd: number, to: number) => {
            const file = this.open.get(fd);
            if (!file) return BADF;
            this.bytes(to, 24).fill(0);
            this.view.setUint8(to, file.bytes ? REGULAR : DIRECTORY);
            this.view.setBigUint64(to + 8, 0xffffffffffffffffn, true);
            this.view.setBigUint64(to + 16, 0xffffffffffffffffn, true);
            return OK;
        },
        fd_fdstat_set_flags: () => OK,
        fd_filestat_get: (fd: number, to: number) => {
            const file = this.open.get(fd);
            return file ? this.stat(to, file.bytes) : BADF;
        },
        path_filestat_get: (_fd: number, _flags: number, path: number, length: number, to: number) => {
            const name = this.named(path, length);
            const bytes = this.files.get(name);
            if (!bytes && !this.isFolder(name)) return NOENT;
            return this.stat(to, bytes);
        },
        path_open: (_fd: number, _look: number, path: number, length: number, flags: number, _rights: bigint,
                    _inherit: bigint, _fdflags: number, to: number) => {
            if (flags & 1) return ROFS; // create
            const name = this.named(path, length);
            const bytes = this.files.get(name);
            if (!bytes && !this.isFolder(name)) return NOENT;
            let fd = ROOT + 1;
            while (this.open.has(fd)) fd++;
            this.open.set(fd, { bytes, at: 0 });
            this.view.setUint32(to, fd, true);
            return OK;
        },
        fd_read: (fd: number, list: number, count: number, to: number) => {
            const file = this.open.get(fd);
            if (!file?.bytes) return BADF;
            let read = 0;
            for (const [at, length] of this.buffers(list, count)) {
                const part = file.bytes.subarray(file.at, file.at + length);
                this.bytes(at, length).set(part);
                file.at += part.length;
                read += part.length;
            }
            this.view.setUint32(to, read, true);
            return OK;
        },
        fd_pread: (fd: number, list: number, count: number, offset: bigint, to: number) => {
            const file = this.open.get(fd);
            if (!file?.bytes) return BADF;
            let from = Number(offset);
            let read = 0;
            for (const [at, length] of this.buffers(list, count)) {
                const part = file.bytes.subarray(from, from + length);
                this.bytes(at, length).set(part);
                from += part.length;
                read += part.length;
            }
            this.view.setUint32(to, read, true);
            return OK;
        },
        fd_seek: (fd: number, offset: bigint, whence: number, to: number) => {
            const file = this.open.get(fd);
            if (!file?.bytes) return BADF;
            const from = whence === 0 ? 0 : whence === 1 ? file.at : file.bytes.length;
            const at = from + Number(offset);
            if (at < 0) return INVAL;
            file.at = at;
            this.view.setBigUint64(to, BigInt(at), true);
            return OK;
        },
        fd_close: (fd: number) => (fd !== ROOT && this.open.delete(fd) ? OK : BADF),
        fd_write: (_fd: number, list: number, count: number, to: number) => {
            let written = 0;
            for (const [, length] of this.buffers(list, count)) written += length;
            this.view.setUint32(to, written, true);
            return OK;
        },
        clock_time_get: (clock: number, _precision: bigint, to: number) => {
            const ms = clock === REALTIME ? Date.now() : performance.now();
            this.view.setBigUint64(to, BigInt(Math.round(ms * 1e3)) * 1000n, true);
            return OK;
        },
        proc_exit: (status: number): never => {
            throw new Exit(status);
        },
    };

    /** The imports that a module asks for; calls that this system does not have say so. */
    imports(module: WebAssembly.Module): WebAssembly.Imports {
        const given: Record<string, (...args: never[]) => number> = {};
        for (const wanted of WebAssembly.Module.imports(module))
            if (wanted.kind === 'function') given[wanted.name] = this.calls[wanted.name] ?? (() => NOSYS);
        return { wasi_snapshot_preview1: given };
    }
}
