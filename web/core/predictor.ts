// predictor.ts: the predictor's file laid out so that gzip sees what repeats, and back again.
//
// Of its ten megabytes nine are trees of 96 bytes: eight that say which features are asked, twenty-four of thresholds,
// sixty-four of leaves. Features repeat from tree to tree, thresholds inside one, leaves hardly at all: each kind stands
// beside its own, and leaves are coded one by one. Nearly half of them no case can reach (one that passes the higher of
// two thresholds of a feature has passed the lower), so they are zero and are not sent. 3.9 MB where the file as it is
// packs to 4.7. The figures of the layout come from the file's own header (src/kernel/predictor.c has it); a file of
// another form is passed through whole.

const HEADER = 64;
const TESTS = 6;
const FEATURES = 8; // bytes of a tree's record that say what it asks
const THRESHOLDS = 4 * TESTS; // and with what it compares
const LEAVES = 1 << TESTS;
const TREE = FEATURES + THRESHOLDS + LEAVES;
const NEVER = 0xffffffff; // the threshold of a test that is not there
const MAGIC = 'FORETELL';

interface Layout {
    trees: number; // where they begin
    count: number;
    end: number;
}

function layout(file: Uint8Array): Layout | undefined {
    if (file.length < HEADER) return undefined;
    const view = new DataView(file.buffer, file.byteOffset, HEADER);
    for (let i = 0; i < MAGIC.length; i++) if (file[i] !== MAGIC.charCodeAt(i)) return undefined;
    const trees = HEADER + view.getUint32(32, true) * view.getUint32(36, true);
    const count = view.getUint32(40, true);
    if (view.getUint32(44, true) !== TREE) return undefined;
    return { trees, count, end: trees + count * TREE };
}

// Leaves where a test has passed, one bit each, in two words: the first test is the highest bit of a leaf's number.
const passed = Array.from({ length: TESTS }, (_, test) =>
    [0, LEAVES / 2].map((from) => {
        let word = 0;
        for (let i = 0; i < LEAVES / 2; i++) if (((from + i) >> (TESTS - 1 - test)) & 1) word |= 1 << i;
        return word;
    }),
);

/** One tree's tests, and which of its leaves no case reaches. */
class Tests {
    readonly feature = new Uint8Array(TESTS);
    readonly threshold = new Uint32Array(TESTS);
    private readonly words = [0, 0];

    find(): void {
        this.words[0] = this.words[1] = 0;
        for (let a = 0; a < TESTS; a++)
            for (let b = 0; b < TESTS; b++) {
                const never = a === b && this.threshold[a] === NEVER;
                const implies = a !== b && this.feature[a] === this.feature[b] && this.threshold[a]! >= this.threshold[b]!;
                if (!never && !implies) continue;
                for (let w = 0; w < 2; w++) this.words[w]! |= passed[a]![w]! & (never ? ~0 : ~passed[b]![w]!);
            }
    }

    reaches(leaf: number): boolean {
        return ((this.words[leaf >> 5]! >> (leaf & 31)) & 1) === 0;
    }
}

/** What repeats (all but the leaves), and the leaves that are reached. */
export function split(file: Uint8Array): { repeating: Uint8Array; noisy: Uint8Array } {
    const at = layout(file);
    if (!at || at.end > file.length) return { repeating: file, noisy: new Uint8Array(0) };
    const view = new DataView(file.buffer, file.byteOffset);
    const tests = new Tests();
    const leaves = new Uint8Array(at.count * LEAVES);
    const repeating = new Uint8Array(file.length - leaves.length);
    const thresholds = at.trees + at.count * FEATURES;
    let sent = 0;
    repeating.set(file.subarray(0, at.trees), 0);
    repeating.set(file.subarray(at.end), thresholds + at.count * THRESHOLDS);
    for (let i = 0; i < at.count; i++) {
        const tree = at.trees + i * TREE;
        for (let f = 0; f < FEATURES; f++) repeating[at.trees + f * at.count + i] = file[tree + f]!;
        repeating.set(file.subarray(tree + FEATURES, tree + FEATURES + THRESHOLDS), thresholds + i * THRESHOLDS);
        for (let t = 0; t < TESTS; t++) {
            tests.feature[t] = file[tree + t]!;
            tests.threshold[t] = view.getUint32(tree + FEATURES + 4 * t, true);
        }
        tests.find();
        for (let leaf = 0; leaf < LEAVES; leaf++) {
            const value = file[tree + FEATURES + THRESHOLDS + leaf]!;
            if (tests.reaches(leaf)) leaves[sent++] = value;
            else if (value !== 0) throw new Error(`leaf ${leaf} of tree ${i} has a value, and no case reaches it`);
        }
    }
    return { repeating, noisy: leaves.subarray(0, sent) };
}

/** The file again, from both parts one behind the other. `room` gives the bytes that it is written to, and is told how many. */
export function join(packed: Uint8Array, room: (bytes: number) => Uint8Array): void {
    const at = layout(packed);
    if (!at || at.trees + at.count * (FEATURES + THRESHOLDS) > packed.length) {
        room(packed.length).set(packed);
        return;
    }
    const view = new DataView(packed.buffer, packed.byteOffset);
    const tests = new Tests();
    const thresholds = at.trees + at.count * FEATURES;
    const behind = thresholds + at.count * THRESHOLDS;
    const read = (i: number): void => {
        for (let t = 0; t < TESTS; t++) {
            tests.feature[t] = packed[at.trees + t * at.count + i]!;
            tests.threshold[t] = view.getUint32(thresholds + i * THRESHOLDS + 4 * t, true);
        }
        tests.find();
    };
    const reached = new Uint8Array(at.count * LEAVES);
    let sent = 0;
    for (let i = 0; i < at.count; i++) {
        read(i);
        for (let leaf = 0; leaf < LEAVES; leaf++) if (tests.reaches(leaf)) sent += reached[i * LEAVES + leaf] = 1;
    }
    const rest = Math.max(0, packed.length - behind - sent); // what stood behind the trees
    const to = room(at.end + rest);
    to.set(packed.subarray(0, at.trees), 0);
    to.set(packed.subarray(behind, behind + rest), at.end);
    for (let i = 0, from = behind + rest; i < at.count; i++) {
        const tree = at.trees + i * TREE;
        for (let f = 0; f < FEATURES; f++) to[tree + f] = packed[at.trees + f * at.count + i]!;
        to.set(packed.subarray(thresholds + i * THRESHOLDS, thresholds + (i + 1) * THRESHOLDS), tree + FEATURES);
        for (let leaf = 0; leaf < LEAVES; leaf++)
            to[tree + FEATURES + THRESHOLDS + leaf] = reached[i * LEAVES + leaf] ? (packed[from++] ?? 0) : 0;
    }
}
