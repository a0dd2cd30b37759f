// predictor.ts: the predictor's file laid out so that gzip sees what repeats, and back again.
//
// Of its ten megabytes eight are trees: sixty-four bytes of leaves each, and sixteen that say what it asks, by feature and number
// of a cut. Tests repeat from tree to tree, byte by byte of a record; the high bytes of cuts do; leaves hardly at all: each
// kind stands beside its own, and leaves are coded one by one. Nearly half of them no case can reach (one that passes the higher of
// two cuts of a feature has passed the lower), so they are zero and are not sent. 3.6 MB where the file as it is
// packs to 4.4. The figures of the layout come from the file's own header (src/kernel/predictor_file.h has it); a file of
// another form is passed through whole.

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
}

function layout(file: Uint8Array): Layout | undefined {
    if (file.length < HEADER) return undefined;
    const view = new DataView(file.buffer, file.byteOffset, HEADER);
    for (let i = 0; i < MAGIC.length; i++) if (file[i] !== MAGIC.charCodeAt(i)) return undefined;
    const word = (at: number): number => view.getUint32(at, true);
    if (word(8) !== VERSION || word(44) !== LEAVES + TESTS) return undefined;
    const count = word(40);
    const tests = HEADER + count * LEAVES;
    return { count, tests, behind: tests + count * TESTS, cuts: word(32) * word(36) + word(56) * TABLE, cutCount: word(60) };
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

/** Which leaves of a tree no case reaches. */
class Reach {
    private readonly words = [0, 0];

    constructor(private readonly tests: Uint8Array) {}

    of(tree: number): void {
        const at = tree * TESTS;
        this.words[0] = this.words[1] = 0;
        for (let a = 0; a < DEPTH; a++)
            for (let b = 0; b < DEPTH; b++) {
                const never = a === b && this.tests[at + DEPTH + a] === NEVER;
                const implies =
                    a !== b && this.tests[at + a] === this.tests[at + b] && this.tests[at + DEPTH + a]! >= this.tests[at + DEPTH + b]!;
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
    if (!at || at.behind + at.cuts + at.cutCount * CUT > file.length) return { repeating: file, noisy: new Uint8Array(0) };
    const leaves = new Uint8Array(at.count * LEAVES);
    const repeating = new Uint8Array(file.length - leaves.length);
    const reach = new Reach(file.subarray(at.tests, at.behind));
    const behind = repeating.subarray(HEADER + at.count * TESTS);
    let sent = 0;
    repeating.set(file.subarray(0, HEADER));
    turn(file.subarray(at.tests, at.behind), repeating.subarray(HEADER), at.count, TESTS);
    behind.set(file.subarray(at.behind));
    turn(file.subarray(at.behind + at.cuts), behind.subarray(at.cuts), at.cutCount, CUT);
    for (let i = 0; i < at.count; i++) {
        reach.of(i);
        for (let leaf = 0; leaf < LEAVES; leaf++) {
            const value = file[HEADER + i * LEAVES + leaf]!;
            if (reach.reaches(leaf)) leaves[sent++] = value;
            else if (value !== 0) throw new Error(`leaf ${leaf} of tree ${i} has a value, and no case reaches it`);
        }
    }
    return { repeating, noisy: leaves.subarray(0, sent) };
}

/** The file again, from both parts one behind the other. `room` gives the bytes that it is written to, and is told how many. */
export function join(packed: Uint8Array, room: (bytes: number) => Uint8Array): void {
    const at = layout(packed);
    const behind = at ? HEADER + at.count * TESTS : 0;
    if (!at || behind + at.cuts + at.cutCount * CUT > packed.length) {
        room(packed.length).set(packed);
        return;
    }
    const tests = new Uint8Array(at.count * TESTS);
    const reach = new Reach(tests);
    const reached = new Uint8Array(at.count * LEAVES);
    let sent = 0;
    turnBack(packed.subarray(HEADER, behind), tests, at.count, TESTS);
    for (let i = 0; i < at.count; i++) {
        reach.of(i);
        for (let leaf = 0; leaf < LEAVES; leaf++) if (reach.reaches(leaf)) sent += reached[i * LEAVES + leaf] = 1;
    }
    const rest = Math.max(at.cuts + at.cutCount * CUT, packed.length - behind - sent); // what stood behind the trees
    const to = room(at.behind + rest);
    to.set(packed.subarray(0, HEADER));
    to.set(tests, at.tests);
    to.set(packed.subarray(behind, behind + rest), at.behind);
    turnBack(packed.subarray(behind + at.cuts, behind + rest), to.subarray(at.behind + at.cuts), at.cutCount, CUT);
    for (let i = 0, from = behind + rest; i < reached.length; i++) to[HEADER + i] = reached[i] ? (packed[from++] ?? 0) : 0;
}
