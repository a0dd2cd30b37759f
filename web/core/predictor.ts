// predictor.ts: the predictor's file laid out so that gzip sees what repeats, and back again.
//
// Of its ten megabytes eight are trees: sixty-four bytes of leaves each, and sixteen that say what it asks, by feature and number
// of a cut. Tests repeat from tree to tree, byte by byte of a record; the high bytes of cuts do; leaves hardly at all: each
// kind stands beside its own, and leaves are coded one by one. Nearly half of them no case can reach (one that passes the higher of
// two cuts of a feature has passed the lower), so they are zero and are not sent. A third of the others are zero, too: a bit
// each says which, since no code of gzip's is shorter than one; the rest follow, those of trees with few leaves first, whose
// values are alike. 3.6 MB where the file as it is packs to 4.4. The figures of the layout come from the file's own header
// (src/kernel/predictor_file.h has it); a file of another form is passed through whole.

const HEADER = 64;
const VERSION = 2;
const DEPTH = 6;
const LEAVES = 1 << DEPTH;
const TESTS = 16; // bytes of a tree's tests: features, numbers of cuts, and what else is said of the tree
const TABLE = 52; // bytes of a table of cuts
const CUT = 4;
const NEVER = 255; // the cut of a test that is not there
const MAGIC = 'FORETELL';

interface Layout {
    count: number; // of trees
    tests: number; // where they begin in the file, behind the leaves
    behind: number; // what stands behind trees
    cuts: number; // where they begin in there
    cutCount: number;
    rest: number; // bytes behind trees
}

function layout(file: Uint8Array): Layout | undefined {
    if (file.length < HEADER) return undefined;
    const view = new DataView(file.buffer, file.byteOffset, HEADER);
    for (let i = 0; i < MAGIC.length; i++) if (file[i] !== MAGIC.charCodeAt(i)) return undefined;
    const word = (at: number): number => view.getUint32(at, true);
    if (word(8) !== VERSION || word(44) !== LEAVES + TESTS) return undefined;
    const count = word(40);
    const tests = HEADER + count * LEAVES;
    const behind = tests + count * TESTS;
    const cuts = word(32) * word(36) + word(56) * TABLE;
    const cutCount = word(60);
    const rest = Number(view.getBigUint64(24, true)) - behind;
    return rest < cuts + cutCount * CUT ? undefined : { count, tests, behind, cuts, cutCount, rest };
}

/** Records of `size` bytes as columns: all first bytes, all second ones, and so on. */
function turn(from: Uint8Array, to: Uint8Array, count: number, size: number): void {
    for (let i = 0; i < count; i++) for (let b = 0; b < size; b++) to[b * count + i] = from[i * size + b]!;
}

function turnBack(from: Uint8Array, to: Uint8Array, count: number, size: number): void {
    for (let i = 0; i < count; i++) for (let b = 0; b < size; b++) to[i * size + b] = from[b * count + i] ?? 0;
}

// Leaves where a test has passed, one bit each, in two words: the first test is the highest bit of a leaf's number.
const passed = Array.from({ length: DEPTH }, (_, test) =>
    [0, LEAVES / 2].map((from) => {
        let word = 0;
        for (let i = 0; i < LEAVES / 2; i++) if (((from + i) >> (DEPTH - 1 - test)) & 1) word |= 1 << i;
        return word;
    }),
);

/** Leaves of all trees, and which of them a case can reach. */
class Reach {
    readonly leaf: Uint8Array; // 1: reached
    readonly sent: number; // reached leaves of all trees
    private readonly order: Uint32Array; // of trees: those with few reached leaves first

    constructor(tests: Uint8Array, count: number) {
        this.leaf = new Uint8Array(count * LEAVES);
        this.order = new Uint32Array(count);
        const reached = new Uint8Array(count);
        const next = new Uint32Array(LEAVES + 2); // where the next tree with so many stands
        for (let tree = 0; tree < count; tree++) next[(reached[tree] = this.mark(tests, tree)) + 1]!++;
        for (let i = 1; i < next.length; i++) next[i]! += next[i - 1]!;
        for (let tree = 0; tree < count; tree++) this.order[next[reached[tree]!]!++] = tree;
        this.sent = reached.reduce((sum, of) => sum + of, 0);
    }

    private mark(tests: Uint8Array, tree: number): number {
        const at = tree * TESTS;
        const without = [0, 0];
        for (let a = 0; a < DEPTH; a++)
            for (let b = 0; b < DEPTH; b++) {
                const never = a === b && tests[at + DEPTH + a] === NEVER;
                const implies = a !== b && tests[at + a] === tests[at + b] && tests[at + DEPTH + a]! >= tests[at + DEPTH + b]!;
                if (!never && !implies) continue;
                for (let w = 0; w < 2; w++) without[w]! |= passed[a]![w]! & (never ? ~0 : ~passed[b]![w]!);
            }
        let sum = 0;
        for (let i = 0; i < LEAVES; i++) sum += this.leaf[tree * LEAVES + i] = ((without[i >> 5]! >> (i & 31)) & 1) ^ 1;
        return sum;
    }

    /** Every reached leaf in the order in which they are sent. */
    each(visit: (leaf: number, nth: number) => void): void {
        let nth = 0;
        for (const tree of this.order)
            for (let leaf = tree * LEAVES; leaf < (tree + 1) * LEAVES; leaf++) if (this.leaf[leaf]) visit(leaf, nth++);
    }
}

/** What repeats (all but the leaves), and the leaves that are reached: a bit of each that is not zero, and those. */
export function split(file: Uint8Array): { repeating: Uint8Array; noisy: Uint8Array } {
    const at = layout(file);
    if (!at) return { repeating: file, noisy: new Uint8Array(0) };
    if (at.behind + at.rest !== file.length) throw new Error(`${file.length} bytes, and its header says ${at.behind + at.rest}`);
    const repeating = new Uint8Array(file.length - at.count * LEAVES);
    const behind = repeating.subarray(HEADER + at.count * TESTS);
    repeating.set(file.subarray(0, HEADER));
    turn(file.subarray(at.tests, at.behind), repeating.subarray(HEADER), at.count, TESTS);
    behind.set(file.subarray(at.behind));
    turn(file.subarray(at.behind + at.cuts), behind.subarray(at.cuts), at.cutCount, CUT);

    const leaves = file.subarray(HEADER, at.tests);
    const reach = new Reach(file.subarray(at.tests, at.behind), at.count);
    for (let i = 0; i < leaves.length; i++)
        if (leaves[i] && !reach.leaf[i])
            throw new Error(`leaf ${i % LEAVES} of tree ${Math.floor(i / LEAVES)} has a value, and no case reaches it`);
    const noisy = new Uint8Array(Math.ceil(reach.sent / 8) + reach.sent);
    let to = Math.ceil(reach.sent / 8);
    reach.each((leaf, nth) => {
        if (leaves[leaf] === 0) return;
        noisy[nth >> 3]! |= 1 << (nth & 7);
        noisy[to++] = leaves[leaf]!;
    });
    return { repeating, noisy: noisy.subarray(0, to) };
}

/** The file again, from both parts one behind the other. `room` gives the bytes that it is written to, and is told how many. */
export function join(packed: Uint8Array, room: (bytes: number) => Uint8Array): void {
    const at = layout(packed);
    const behind = at ? HEADER + at.count * TESTS : 0;
    if (!at || behind + at.rest > packed.length) {
        room(packed.length).set(packed);
        return;
    }
    const tests = new Uint8Array(at.count * TESTS);
    turnBack(packed.subarray(HEADER, behind), tests, at.count, TESTS);
    const to = room(at.behind + at.rest);
    to.set(packed.subarray(0, HEADER));
    to.set(tests, at.tests);
    to.set(packed.subarray(behind, behind + at.rest), at.behind);
    turnBack(packed.subarray(behind + at.cuts, behind + at.rest), to.subarray(at.behind + at.cuts), at.cutCount, CUT);

    const reach = new Reach(tests, at.count);
    const bits = behind + at.rest;
    let from = bits + Math.ceil(reach.sent / 8);
    to.fill(0, HEADER, at.tests);
    reach.each((leaf, nth) => {
        if ((packed[bits + (nth >> 3)]! >> (nth & 7)) & 1) to[HEADER + leaf] = packed[from++] ?? 0;
    });
}
