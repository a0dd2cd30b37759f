/* Forests as files keep them: the sums of the trees that went in, and nothing impossible is read. */
#include <stdlib.h>

#include "fit/tidy.h"
#include "kernel/predictor_check.h"
#include "predictor_files.h"

enum { TREES = 40 }; /* fewer thresholds of a feature than a table has room for */

static ft_forests forests_of(const ft_tree *trees, const ft_packed *p)
{
    static ft_leaves leaves[TREES];
    for (int t = 0; t < TREES; t++) memcpy(leaves[t].at, trees[t].leaf, sizeof leaves[t].at);
    return (ft_forests){leaves, p->tests, p->tables, p->cuts, TREES, p->table_count, p->cut_count};
}

/* Now and then exactly a threshold: equal does not pass. */
static void draw_keys(random_source *r, const ft_tree *trees, uint32_t key[FT_MAX_FEATURES])
{
    for (int k = 0; k < FT_MAX_FEATURES; k++)
        key[k] = random_below(r, 3) ? ft__feature_key((float)(24 * random_unit(r) - 12))
                                    : trees[random_below(r, TREES)].threshold[random_below(r, FT_TREE_DEPTH)];
}

static double packed_sum(const ft_forests *f, size_t first, size_t count, const uint32_t *key)
{
    uint8_t rank[FT_MAX_FEATURES];
    ft__forest_ranks(f, first, key, rank);
    return ft__forest_sum(f, first, count, rank);
}

/* Odd ones ask three features alone, which then have dozens of cuts. */
static void draw_trees(random_source *r, ft_tree *trees)
{
    for (int t = 0; t < TREES; t++) {
        trees[t] = tree(r);
        for (int d = 0; d < FT_TREE_DEPTH && t % 2; d++) trees[t].feature[d] %= 3;
    }
}

static void packed_trees_add_up_as_they_did(void **state)
{
    (void)state;
    static ft_tree trees[TREES];
    random_source r = {17};
    draw_trees(&r, trees);
    /* Two forests, one of them of two spans that overlap, then trees of nobody's. */
    const ft_tree_span spans[] = {{0, 20}, {22, 30}, {25, 35}, {7, 7}, {90, 95}};
    ft_packed p;
    assert_int_equal(FT_OK, ft__forest_pack(trees, TREES, spans, sizeof spans / sizeof *spans, &p, NULL));
    ft_forests f = forests_of(trees, &p);
    assert_int_equal(2 + 2 + 5, f.table_count);
    assert_true(f.tables[0].count[0] > 8 && f.tables[0].count[0] % 8 && f.tables[0].count[FT_MAX_FEATURES - 1] < 8);
    for (size_t t = 0; t < f.table_count; t++) assert_true(ft__cut_table_sound(&f, t));
    for (size_t t = 0; t < TREES; t++) {
        ft_tree again;
        assert_true(ft__tests_sound(&f, t));
        ft__forest_tree(&f, t, &again);
        assert_memory_equal(&trees[t], &again, sizeof again);
    }
    for (int i = 0; i < 2000; i++) {
        uint32_t key[FT_MAX_FEATURES];
        draw_keys(&r, trees, key);
        assert_true(packed_sum(&f, 0, 20, key) == ft__trees_sum(trees, 20, key));
        assert_true(packed_sum(&f, 22, 13, key) == ft__trees_sum(trees + 22, 13, key));
        assert_true(packed_sum(&f, 39, 1, key) == ft__trees_sum(trees + 39, 1, key));
    }
    ft__packed_free(&p);
}

static void tidied_trees_add_up_as_they_did(void **state)
{
    (void)state;
    static ft_tree trees[TREES], tidy[TREES];
    random_source r = {18};
    draw_trees(&r, trees);
    memcpy(tidy, trees, sizeof tidy);
    ft__trees_tidy(tidy, TREES);
    for (int i = 0; i < 2000; i++) {
        uint32_t key[FT_MAX_FEATURES];
        draw_keys(&r, trees, key);
        assert_true(ft__trees_sum(tidy, TREES, key) == ft__trees_sum(trees, TREES, key));
    }
    for (int t = 0; t < TREES; t++) {
        if (t) assert_true(memcmp(tidy[t - 1].feature, tidy[t].feature, FT_TREE_DEPTH) <= 0);
        for (int d = 1; d < FT_TREE_DEPTH; d++) {
            bool idle = tidy[t].threshold[d] == UINT32_MAX;
            if (idle) assert_true(tidy[t].threshold[d - 1] == UINT32_MAX);
            if (!idle && tidy[t].threshold[d - 1] != UINT32_MAX)
                assert_true(tidy[t].feature[d - 1] <= tidy[t].feature[d]);
        }
    }
    memcpy(trees, tidy, sizeof tidy);
    ft__trees_tidy(tidy, TREES);
    assert_memory_equal(trees, tidy, sizeof tidy); /* what is tidy stays */
    ft__trees_tidy(NULL, 0);
}

/* As many as a byte can name, and one more. */
static void a_feature_has_a_limited_number_of_cuts(void **state)
{
    (void)state;
    enum { MANY = FT_MAX_CUTS / FT_TREE_DEPTH + 1 };
    static ft_tree trees[MANY];
    const ft_tree_span all = {0, MANY};
    for (int i = 0; i < MANY * FT_TREE_DEPTH; i++)
        trees[i / FT_TREE_DEPTH].threshold[i % FT_TREE_DEPTH] = i < FT_MAX_CUTS ? (uint32_t)i : UINT32_MAX;
    ft_packed p;
    ft_error err = {0};
    assert_int_equal(FT_OK, ft__forest_pack(trees, MANY, &all, 1, &p, &err));
    assert_int_equal(FT_MAX_CUTS, p.tables[0].count[0]);
    ft__packed_free(&p);
    trees[MANY - 1].threshold[FT_TREE_DEPTH - 1] = FT_MAX_CUTS;
    assert_int_equal(FT_E_RANGE, ft__forest_pack(trees, MANY, &all, 1, &p, &err));
    assert_non_null(strstr(err.message, "254 thresholds"));
}

static void refused_after(void (*spoil)(ft_tests *, ft_cut_table *, uint32_t *), const char *why)
{
    small_file f = small();
    ft_predictor p;
    ft_error err = {0};
    assert_int_equal(FT_OK, ft__predictor_read(f.bytes, f.length, "test.ftp", &p, &err));
    spoil((ft_tests *)(uintptr_t)p.trees.tests, (ft_cut_table *)(uintptr_t)p.trees.tables,
          (uint32_t *)(uintptr_t)p.trees.cuts);
    uint64_t sum = ft__records_checksum(f.bytes + 64, f.length - 64);
    memcpy(f.bytes + 16, &sum, sizeof sum);
    assert_int_equal(FT_E_FORMAT, ft__predictor_read(f.bytes, f.length, "test.ftp", &p, &err));
    if (!strstr(err.message, why)) fail_msg("expected \"%s\" in \"%s\"", why, err.message);
    free(f.bytes);
}

static void cuts_behind_the_last(ft_tests *t, ft_cut_table *table, uint32_t *cuts)
{
    (void)t, (void)cuts, table->first = 1u << 30;
}
static void cuts_too_many(ft_tests *t, ft_cut_table *table, uint32_t *cuts)
{
    (void)t, (void)cuts, table->count[47] = 255;
}
static void cuts_that_fall(ft_tests *t, ft_cut_table *table, uint32_t *cuts)
{
    (void)t;
    memset(table->count, 0, sizeof table->count);
    table->count[0] = 2;
    cuts[0] = 5, cuts[1] = 5;
}
static void a_table_that_is_not_there(ft_tests *t, ft_cut_table *table, uint32_t *cuts)
{
    (void)table, (void)cuts, t[1].table = 1;
}
static void a_cut_that_is_not_there(ft_tests *t, ft_cut_table *table, uint32_t *cuts)
{
    (void)cuts;
    t[2].cut[3] = table->count[t[2].feature[3]];
}
static void a_pad_that_says_something(ft_tests *t, ft_cut_table *table, uint32_t *cuts)
{
    (void)table, (void)cuts, t[2].pad = 1;
}

static void impossible_forests_are_refused(void **state)
{
    (void)state;
    refused_after(cuts_behind_the_last, "table 0 of cuts is impossible");
    refused_after(cuts_too_many, "table 0 of cuts is impossible");
    refused_after(cuts_that_fall, "table 0 of cuts is impossible");
    refused_after(a_table_that_is_not_there, "tree 1 is impossible");
    refused_after(a_cut_that_is_not_there, "tree 2 is impossible");
    refused_after(a_pad_that_says_something, "tree 2 is impossible");
}

/* Ranks are found once for correction and scale: their trees share a table. */
static void trees_of_an_expert_share_a_table(void **state)
{
    (void)state;
    static ft_tests tests[3];
    ft_forests f = {.tests = tests, .count = 3};
    ft_expert e = {.tree_count = 2, .sigma_first = 2, .sigma_count = 1};
    assert_true(ft__forest_of_one_table(&f, &e));
    tests[2].table = 1;
    assert_false(ft__forest_of_one_table(&f, &e));
    e.sigma_count = 0;
    assert_true(ft__forest_of_one_table(&f, &e));
    tests[1].table = 2;
    assert_false(ft__forest_of_one_table(&f, &e));
    e.tree_count = 0;
    assert_true(ft__forest_of_one_table(&f, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_trees_add_up_as_they_did),        cmocka_unit_test(tidied_trees_add_up_as_they_did),
        cmocka_unit_test(a_feature_has_a_limited_number_of_cuts), cmocka_unit_test(impossible_forests_are_refused),
        cmocka_unit_test(trees_of_an_expert_share_a_table),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
