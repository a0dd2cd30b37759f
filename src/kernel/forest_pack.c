/* Thresholds of trees as numbers of cuts in tables, on the way into a predictor file.
 *
 * Trees whose tests one forecast compares with the same ranks share a table: those of an expert, and of experts that
 * share trees. */
#include <stdlib.h>
#include <string.h>

#include "kernel/forest.h"

typedef struct cut {
    uint8_t feature;
    uint32_t threshold;
} cut;

static int by_feature_then_threshold(const void *a, const void *b)
{
    const cut *x = a, *y = b;
    if (x->feature != y->feature) return x->feature - y->feature;
    return (x->threshold > y->threshold) - (x->threshold < y->threshold);
}

/* Tests of features that there are not have no cut: reading refuses them. */
static bool has_cut(const ft_tree *t, int d)
{
    return t->threshold[d] != UINT32_MAX && t->feature[d] < FT_MAX_FEATURES;
}

/* One table for these trees, its cuts behind those of the others. `cuts` has room for all. */
static ft_status add_table(const ft_tree *trees, size_t count, cut *cuts, ft_packed *out, ft_error *err)
{
    size_t found = 0, distinct = 0;
    ft_cut_table *table = &out->tables[out->table_count];
    if (out->table_count > UINT16_MAX)
        return ft__fail(err, FT_E_RANGE, "more than %d experts with trees in one predictor", UINT16_MAX + 1);
    memset(table, 0, sizeof *table);
    table->first = (uint32_t)out->cut_count;
    for (size_t i = 0; i < count; i++)
        for (int d = 0; d < FT_TREE_DEPTH; d++)
            if (has_cut(&trees[i], d)) cuts[found++] = (cut){trees[i].feature[d], trees[i].threshold[d]};
    qsort(cuts, found, sizeof *cuts, by_feature_then_threshold);
    for (size_t i = 0; i < found; i++) {
        if (i && !by_feature_then_threshold(&cuts[i], &cuts[i - 1])) continue;
        if (table->count[cuts[i].feature]++ == FT_MAX_CUTS)
            return ft__fail(err, FT_E_RANGE, "more than %d thresholds of one feature in the trees of an expert",
                            FT_MAX_CUTS);
        out->cuts[out->cut_count + distinct++] = cuts[i].threshold;
    }
    out->cut_count += distinct;
    out->table_count++;
    return FT_OK;
}

static uint8_t number_of(const ft_packed *p, const ft_cut_table *table, uint8_t feature, uint32_t threshold)
{
    const uint32_t *at = p->cuts + table->first;
    for (int i = 0; i < feature; i++) at += table->count[i];
    int low = 0, high = table->count[feature];
    while (low < high) {
        int middle = (low + high) / 2;
        if (at[middle] < threshold)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint8_t)low;
}

static ft_tests packed_tests(const ft_packed *p, const ft_tree *t)
{
    ft_tests out = {.shift = t->shift, .table = (uint16_t)(p->table_count - 1)};
    memcpy(out.feature, t->feature, sizeof out.feature);
    for (int d = 0; d < FT_TREE_DEPTH; d++)
        out.cut[d] = has_cut(t, d) ? number_of(p, &p->tables[out.table], t->feature[d], t->threshold[d]) : FT_CUT_NEVER;
    return out;
}

/* Trees i and i + 1 share a table where held[i] is above 0 once summed up. */
static void hold_together(const ft_tree_span *spans, size_t span_count, size_t count, int32_t *held)
{
    memset(held, 0, (count + 1) * sizeof *held);
    for (size_t i = 0; i < span_count; i++) {
        size_t first = spans[i].first, end = spans[i].end < count ? spans[i].end : count;
        if (first + 1 >= end) continue;
        held[first]++;
        held[end - 1]--;
    }
    for (size_t i = 1; i < count; i++) held[i] += held[i - 1];
}

void ft__packed_free(ft_packed *packed)
{
    free(packed->tests);
    free(packed->tables);
    free(packed->cuts);
    memset(packed, 0, sizeof *packed);
}

ft_status ft__forest_pack(const ft_tree *trees, size_t count, const ft_tree_span *spans, size_t span_count,
                          ft_packed *out, ft_error *err)
{
    int32_t *held = malloc((count + 1) * sizeof *held);
    cut *cuts = malloc((count * FT_TREE_DEPTH + 1) * sizeof *cuts);
    *out = (ft_packed){.tests = malloc((count + 1) * sizeof *out->tests),
                       .tables = malloc((count + 1) * sizeof *out->tables),
                       .cuts = malloc((count * FT_TREE_DEPTH + 1) * sizeof *out->cuts)};
    ft_status s = held && cuts && out->tests && out->tables && out->cuts
                      ? FT_OK
                      : ft__fail(err, FT_E_MEMORY, "out of memory packing %zu trees", count);
    if (s == FT_OK) hold_together(spans, span_count, count, held);
    for (size_t first = 0, end; s == FT_OK && first < count; first = end) {
        for (end = first + 1; end < count && held[end - 1] > 0;) end++;
        s = add_table(trees + first, end - first, cuts, out, err);
        for (size_t i = first; s == FT_OK && i < end; i++) out->tests[i] = packed_tests(out, &trees[i]);
    }
    free(held);
    free(cuts);
    if (s != FT_OK) ft__packed_free(out);
    return s;
}
