/* Forests as a predictor file keeps them: what every tree asks, its leaves, and the cuts that all trees of an expert
 * share.
 *
 * Fits cut a feature at few places, so that a tree names a cut by its number in a table of its expert's and a forecast
 * looks for its place among the cuts once for all trees: a test then compares two bytes. Tests and leaves stand apart,
 * as a forecast reads all of the ones and one cache line of the others, and as packers find more in like bytes. */
#ifndef FT_KERNEL_FOREST_H
#define FT_KERNEL_FOREST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kernel/family.h"

enum { FT_TREE_DEPTH = 6, FT_TREE_LEAVES = 64 };

/* A tree of its own, as fits grow them and calibrations keep them. It is oblivious: the same test at every node of a
 * level, so that a leaf is six comparisons away. Tests compare keys (ft__feature_key), unsigned whole numbers in the
 * order of the floats, which costs half of comparing floats. The first test is the highest bit of the leaf's number;
 * unused tests have threshold UINT32_MAX and never pass. */
typedef struct ft_tree {
    uint8_t feature[FT_TREE_DEPTH];
    uint8_t shift, pad; /* a leaf counts leaf * 2^shift units; shift is at most FT_LEAF_SHIFT_MAX */
    uint32_t threshold[FT_TREE_DEPTH];
    int8_t leaf[FT_TREE_LEAVES];
} ft_tree;
#define FT_LEAF_UNIT 1e-5
enum { FT_LEAF_SHIFT_MAX = 12 };

static inline int32_t ft__leaf_value(const ft_tree *tree, unsigned leaf)
{
    return tree->leaf[leaf] * (int32_t)(1u << tree->shift);
}

/* The same tests with numbers of cuts for thresholds; those that never pass have FT_CUT_NEVER. */
typedef struct ft_tests {
    uint8_t feature[FT_TREE_DEPTH], cut[FT_TREE_DEPTH];
    uint8_t shift, pad;
    uint16_t table; /* whose cuts: the same in all trees of an expert */
} ft_tests;
typedef struct ft_leaves {
    int8_t at[FT_TREE_LEAVES];
} ft_leaves;
/* The cuts of one expert, ascending in every feature and feature after feature. */
typedef struct ft_cut_table {
    uint32_t first;
    uint8_t count[FT_MAX_FEATURES];
} ft_cut_table;
enum { FT_CUT_NEVER = 255, FT_MAX_CUTS = 254 };

typedef struct ft_forests {
    const ft_leaves *leaves;
    const ft_tests *tests;
    const ft_cut_table *tables;
    const uint32_t *cuts;
    size_t count; /* trees: as many leaves as tests */
    size_t table_count, cut_count;
} ft_forests;

uint32_t ft__feature_key(float value);
/* Sum of the trees' leaves for one vector of keys. */
double ft__trees_sum(const ft_tree *trees, size_t count, const uint32_t *key);
/* Of every feature, how many of its cuts the key lies above, in the table of tree `first`. */
void ft__forest_ranks(const ft_forests *f, size_t first, const uint32_t *key, uint8_t rank[FT_MAX_FEATURES]);
/* Sum of the leaves of `count` trees from `first` on, all of one table. */
double ft__forest_sum(const ft_forests *f, size_t first, size_t count, const uint8_t *rank);
/* One tree with its thresholds. */
void ft__forest_tree(const ft_forests *f, size_t at, ft_tree *out);

/* Tables and tests of `count` trees; `span` has what no table may part, from a tree to behind another. malloc'd. */
typedef struct ft_tree_span {
    size_t first, end;
} ft_tree_span;
typedef struct ft_packed {
    ft_tests *tests;
    ft_cut_table *tables;
    uint32_t *cuts;
    size_t table_count, cut_count;
} ft_packed;
ft_status ft__forest_pack(const ft_tree *trees, size_t count, const ft_tree_span *spans, size_t span_count,
                          ft_packed *out, ft_error *err);
void ft__packed_free(ft_packed *packed);
#endif
