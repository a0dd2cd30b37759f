/* Sums over trees, and where a case stands among the cuts that they share. */
#include "kernel/forest.h"

#include <string.h>

#include "base/untraced.h"

uint32_t ft__feature_key(float value)
{
    uint32_t bits;
    value += 0.0f; /* -0 and 0 are one value */
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

FT_UNTRACED double ft__trees_sum(const ft_tree *trees, size_t count, const uint32_t *key)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const ft_tree *t = &trees[i];
        unsigned at = t->threshold[0] < key[t->feature[0]];
        at = 2 * at + (t->threshold[1] < key[t->feature[1]]);
        at = 2 * at + (t->threshold[2] < key[t->feature[2]]);
        at = 2 * at + (t->threshold[3] < key[t->feature[3]]);
        at = 2 * at + (t->threshold[4] < key[t->feature[4]]);
        at = 2 * at + (t->threshold[5] < key[t->feature[5]]);
        sum += ft__leaf_value(t, at);
    }
    return (double)sum * FT_LEAF_UNIT;
}

/* The block first, by the last of every eight, then inside of it: no step waits for the one before, and no branch
 * hangs on the key. The last block begins eight before the end, so that all are whole. */
static uint8_t rank_of(const uint32_t *cuts, size_t count, uint32_t key)
{
    enum { BLOCK = 8 };
    size_t first = 0, below = 0;
    if (count < BLOCK) {
        for (size_t i = 0; i < count; i++) below += cuts[i] < key;
        return (uint8_t)below;
    }
    for (size_t i = BLOCK - 1; i < count; i += BLOCK) first += cuts[i] < key;
    first = BLOCK * first < count - BLOCK ? BLOCK * first : count - BLOCK;
    for (size_t i = 0; i < BLOCK; i++) below += cuts[first + i] < key;
    return (uint8_t)(first + below);
}

FT_UNTRACED void ft__forest_ranks(const ft_forests *f, size_t first, const uint32_t *key, uint8_t rank[FT_MAX_FEATURES])
{
    const ft_cut_table *table = &f->tables[f->tests[first].table];
    const uint32_t *cuts = f->cuts + table->first;
    for (int i = 0; i < FT_MAX_FEATURES; i++) {
        rank[i] = rank_of(cuts, table->count[i], key[i]);
        cuts += table->count[i];
    }
}

/* Whether a test passes, as the sign of a difference: no flag to wait for, two thirds of the time of comparing. */
static inline unsigned passes(const ft_tests *t, int d, const uint8_t *rank)
{
    return (unsigned)(t->cut[d] - rank[t->feature[d]]) >> 31;
}

FT_UNTRACED double ft__forest_sum(const ft_forests *f, size_t first, size_t count, const uint8_t *rank)
{
    _Static_assert(sizeof(unsigned) == 4, "the sign is bit 31");
    int64_t sum = 0;
    const ft_tests *tests = f->tests + first;
    const ft_leaves *leaves = f->leaves + first;
    for (size_t i = 0; i < count; i++) {
        const ft_tests *t = &tests[i];
        unsigned at = passes(t, 0, rank) << 5 | passes(t, 1, rank) << 4 | passes(t, 2, rank) << 3 |
                      passes(t, 3, rank) << 2 | passes(t, 4, rank) << 1 | passes(t, 5, rank);
        sum += leaves[i].at[at] * (int32_t)(1u << t->shift);
    }
    return (double)sum * FT_LEAF_UNIT;
}

void ft__forest_tree(const ft_forests *f, size_t at, ft_tree *out)
{
    const ft_tests *t = &f->tests[at];
    const ft_cut_table *table = &f->tables[t->table];
    memset(out, 0, sizeof *out);
    out->shift = t->shift;
    memcpy(out->feature, t->feature, sizeof out->feature);
    memcpy(out->leaf, f->leaves[at].at, sizeof out->leaf);
    for (int d = 0; d < FT_TREE_DEPTH; d++) {
        size_t cut = (size_t)table->first + t->cut[d];
        for (int i = 0; i < t->feature[d]; i++) cut += table->count[i];
        out->threshold[d] = t->cut[d] == FT_CUT_NEVER ? UINT32_MAX : f->cuts[cut];
    }
}
