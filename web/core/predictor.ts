// predictor.ts: the predictor's file laid out so that gzip sees what repeats, and back again.
//
// Of its ten megabytes nine are trees of 96 bytes: eight that say which features are asked, twenty-four of thresholds,
// sixty-four of leaves. Features repeat from tree to tree, thresholds inside one, leaves hardly at all. Each kind beside
// its own, with leaves coded one by one, packs to 4.1 MB where the file as it is packs to 4.7. The figures of the layout
// come from the file's own header (src/kernel/predictor.c has it); a file of another form is passed through whole.

const HEADER = 64;
const FEATURES = 8; // bytes of a tree's record that say what it asks
const THRESHOLDS = 24; // and with what it compares
const MAGIC = 'FORETELL';

interface Layout {
    trees: number; // where they begin
    count: number;
    bytes: number; // of one
    end: number;
}

function layout(file: Uint8Array): Layout | undefined {
    if (file.length < HEADER) return undefined;
    const view = new DataView(file.buffer, file.byteOffset, HEADER);
    for (let i = 0; i < MAGIC.length; i++) if (file[i] !== MAGIC.charCodeAt(i)) return undefined;
    const trees = HEADER + view.getUint32(32, true) * view.getUint32(36, true);
    const count = view.getUint32(40, true);
    const bytes = view.getUint32(44, true);
    const end = trees + count * bytes;
    if (bytes < FEATURES + THRESHOLDS || end > file.length) return undefined;
    return { trees, count, bytes, end };
}

/** What repeats (all but the leaves), and the leaves. Together they are as long as the file. */
export function split(file: Uint8Array): { repeating: Uint8Array; noisy: Uint8Array } {
    const at = layout(file);
    if (!at) return { repeating: file, noisy: new Uint8Array(0) };
    const leaves = at.bytes - FEATURES - THRESHOLDS;
    const noisy = new Uint8Array(at.count * leaves);
    const repeating = new Uint8Array(file.length - noisy.length);
    repeating.set(file.subarray(0, at.trees), 0);
    const behind = at.trees + file.length - at.end;
    repeating.set(file.subarray(at.end), at.trees);
    const thresholds = behind + at.count * FEATURES;
    for (let i = 0; i < at.count; i++) {
        const tree = at.trees + i * at.bytes;
        for (let f = 0; f < FEATURES; f++) repeating[behind + f * at.count + i] = file[tree + f]!;
        repeating.set(file.subarray(tree + FEATURES, tree + FEATURES + THRESHOLDS), thresholds + i * THRESHOLDS);
        noisy.set(file.subarray(tree + FEATURES + THRESHOLDS, tree + at.bytes), i * leaves);
    }
    return { repeating, noisy };
}

/** The file again, from both parts one behind the other, written to `to`, which is as long. */
export function join(packed: Uint8Array, to: Uint8Array): void {
    const at = layout(packed);
    if (!at) {
        to.set(packed);
        return;
    }
    const leaves = at.bytes - FEATURES - THRESHOLDS;
    const rest = packed.length - at.count * at.bytes - at.trees; // what stood behind the trees
    const features = at.trees + rest;
    const thresholds = features + at.count * FEATURES;
    const noisy = thresholds + at.count * THRESHOLDS;
    to.set(packed.subarray(0, at.trees), 0);
    to.set(packed.subarray(at.trees, features), at.end);
    for (let i = 0; i < at.count; i++) {
        const tree = at.trees + i * at.bytes;
        for (let f = 0; f < FEATURES; f++) to[tree + f] = packed[features + f * at.count + i]!;
        to.set(packed.subarray(thresholds + i * THRESHOLDS, thresholds + (i + 1) * THRESHOLDS), tree + FEATURES);
        to.set(packed.subarray(noisy + i * leaves, noisy + (i + 1) * leaves), tree + FEATURES + THRESHOLDS);
    }
}
