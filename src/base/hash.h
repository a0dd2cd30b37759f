/* Sums for tables of what was asked before: not for anything that somebody might attack. */
#ifndef FT_BASE_HASH_H
#define FT_BASE_HASH_H
#include <stdint.h>
#include <string.h>

/* Two rounds of multiply and fold: cheap, and every bit of a word reaches every bit of the sum. */
static inline uint64_t ft__mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 32;
    h *= UINT64_C(0xD6E8FEB86659FD93);
    return h ^ (h >> 32);
}

static inline uint64_t ft__mix_double(uint64_t h, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return ft__mix(h, bits);
}

/* Up to the NUL or `room` bytes: what an array holds behind its text does not count. */
static inline uint64_t ft__mix_text(uint64_t h, const char *text, size_t room)
{
    uint64_t word = 0;
    int n = 0;
    for (size_t i = 0; i < room && text[i]; i++) {
        word = word << 8 | (unsigned char)text[i];
        if (++n == 8) {
            h = ft__mix(h, word);
            word = 0;
            n = 0;
        }
    }
    return ft__mix(h, word << 4 | (uint64_t)n);
}
#endif
