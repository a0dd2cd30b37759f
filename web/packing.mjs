// packing.mjs: the predictor as it goes over the wire, for build.mjs and for tests.
import { constants, crc32, deflateRawSync } from 'node:zlib';

/** All files of the page together, gzipped: what a first visit fetches. */
export const most = 5e6;

// One gzip file (RFC 1952) of two runs of deflate: the second is coded without looking for repeats, which leaves of trees
// hardly have: the search costs 6 % there (core/predictor.ts says what stands where). The first run ends in a full flush,
// on a whole byte and without being the last, so that the second follows as if one hand had written both.
export function packed({ repeating, noisy }) {
    // Shorter blocks suit the first run, which is of many kinds, and longer ones the second.
    const first = deflateRawSync(repeating, { level: 9, memLevel: 6, finishFlush: constants.Z_FULL_FLUSH });
    const second = deflateRawSync(noisy, { level: 9, memLevel: 9, strategy: constants.Z_HUFFMAN_ONLY });
    const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
    const trailer = Buffer.alloc(8);
    trailer.writeUInt32LE(crc32(noisy, crc32(repeating)), 0);
    trailer.writeUInt32LE(repeating.length + noisy.length, 4);
    return Buffer.concat([header, first, second, trailer]);
}
