/* The order of a forest's trees and of a tree's tests is free: leaves are whole numbers, whose sum asks for no order,
 * and tests that change places take their leaves along. So tests that never pass come first, which leaves the used
 * leaves side by side, then by feature and threshold; and trees that ask alike stand together. Predictors pack in a
 * tenth less room for it. */
#include "fit/tidy.h"

#include <stdlib.h>
#include <string.h>

static bool stands_before(const ft_tree *t, int a, int b)
{
    bool idle_a = t->threshold[a] == UINT32_MAX, idle_b = t->threshold[b] == UINT32_MAX;
    if (idle_a != idle_b) return idle_a;
    if (t->feature[a] != t->feature[b]) return t->feature[a] < t->feature[b];
    return t->threshold[a] < t->threshold[b];
}

/* order[d]: which test of the tree comes d-th. */
static void order_tests(const ft_tree *t, int order[FT_TREE_DEPTH])
{
    for (int d = 0; d < FT_TREE_DEPTH; d++) {
        int at = d;
        for (; at > 0 && stands_before(t, d, order[at - 1]); at--) order[at] = order[at - 1];
        order[at] = d;
    }
}

static void tidy_tree(ft_tree *t)
{
    int order[FT_TREE_DEPTH];
    const ft_tree old = *t;
    order_tests(t, order);
    for (int d = 0; d < FT_TREE_DEPTH; d++) {
        t->feature[d] = old.feature[order[d]];
        t->threshold[d] = old.threshold[order[d]];
    }
    for (unsigned leaf = 0; leaf < FT_TREE_LEAVES; leaf++) {
        unsigned from = 0;
        for (int d = 0; d < FT_TREE_DEPTH; d++)
            if (leaf >> (FT_TREE_DEPTH - 1 - d) & 1) from |= 1u << (FT_TREE_DEPTH - 1 - order[d]);
        t->leaf[leaf] = old.leaf[from];
    }
}

static int by_tests(const void *a, const void *b)
{
    const ft_tree *x = a, *y = b;
    int sign = memcmp(x->feature, y->feature, sizeof x->feature);
    for (int d = 0; d < FT_TREE_DEPTH && !sign; d++)
        sign = (x->threshold[d] > y->threshold[d]) - (x->threshold[d] < y->threshold[d]);
    if (!sign) sign = x->shift - y->shift;
    return sign ? sign : memcmp(x->leaf, y->leaf, sizeof x->leaf);
}

void ft__trees_tidy(ft_tree *trees, size_t count)
{
    for (size_t i = 0; i < count; i++) tidy_tree(&trees[i]);
    if (count) qsort(trees, count, sizeof *trees, by_tests);
}
