/* Boosted trees: they learn what can be learned, weigh what counts, and come out the same every time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "fit/boost.h"
#include "random_op.h"

enum { ROWS = 2000, WIDTH = 4, MOST_TREES = 400 };

/* Rows of four features, uniform over 0 to 1; the second takes twenty values only, as sizes in tables do. */
typedef struct sample {
    float x[ROWS][WIDTH], target[ROWS], weight[ROWS];
    uint32_t key[ROWS][WIDTH];
    size_t count;
} sample;

typedef struct model {
    double base;
    ft_tree trees[MOST_TREES];
    int count;
} model;

static sample s; /* too large for a stack */
static model fitted;

static const ft_boost_options usual = {
    .trees = 200, .depth = 4, .rate = 0.15, .ridge = 3, .rows = 0.7, .features = 0.8, .clip = 10};

static void draw_features(random_source *r, float *x)
{
    for (int f = 0; f < WIDTH; f++) x[f] = (float)random_unit(r);
    x[1] = floorf(20 * x[1]) / 20;
}

static void fill(size_t count, uint64_t seed, double (*law)(const float *x))
{
    random_source r = {seed};
    s.count = count;
    for (size_t i = 0; i < count; i++) {
        draw_features(&r, s.x[i]);
        for (int f = 0; f < WIDTH; f++) s.key[i][f] = ft__feature_key(s.x[i][f]);
        s.target[i] = (float)law(s.x[i]);
        s.weight[i] = 1;
    }
}

static ft_status boost(const ft_boost_options *options, model *out)
{
    ft_boost_data data = {&s.key[0][0], s.count, WIDTH, s.target, s.weight};
    assert_true(options->trees <= MOST_TREES);
    out->count = options->trees;
    return ft__boost(&data, options, &out->base, out->trees, NULL);
}

static void fit(const ft_boost_options *options) { assert_int_equal(FT_OK, boost(options, &fitted)); }

static double predict(const float *x)
{
    uint32_t key[FT_MAX_FEATURES] = {0};
    for (int f = 0; f < WIDTH; f++) key[f] = ft__feature_key(x[f]);
    return fitted.base + ft__trees_sum(fitted.trees, (size_t)fitted.count, key);
}

/* Root mean square error on rows the trees have not seen. */
static double fresh_error(double (*law)(const float *x))
{
    random_source r = {999};
    double sum = 0;
    for (int i = 0; i < 2000; i++) {
        float x[WIDTH];
        draw_features(&r, x);
        double d = predict(x) - law(x);
        sum += d * d;
    }
    return sqrt(sum / 2000);
}

static double step(const float *x) { return x[1] > 0.37f ? 1 : -0.5; }
static double product(const float *x) { return (x[0] > 0.5f) != (x[2] > 0.25f) ? 0.8 : 0; }
static double curve(const float *x) { return sin(6 * (double)x[0]) + (double)(x[3] * x[3]); }
static double mostly_one(const float *x) { return (void)x, 0.9; }
static double constant(const float *x) { return (void)x, 0.7; }

static void a_step_is_learned(void **state)
{
    (void)state;
    fill(ROWS, 1, step);
    fit(&usual);
    assert_true(fresh_error(step) < 0.01);
}

/* Neither feature alone says anything: the first test of a tree gains nothing, the second all. */
static void an_interaction_is_learned(void **state)
{
    (void)state;
    fill(ROWS, 2, product);
    fit(&usual);
    assert_true(fresh_error(product) < 0.1);
    ft_boost_options shallow = usual;
    shallow.depth = 1; /* one test cannot express it */
    fit(&shallow);
    assert_true(fresh_error(product) > 0.3);
    for (int t = 0; t < fitted.count; t++)
        for (int d = 1; d < FT_TREE_DEPTH; d++) assert_int_equal(UINT32_MAX, fitted.trees[t].threshold[d]);
}

static void a_curve_over_more_values_than_bins_is_learned(void **state)
{
    (void)state;
    fill(ROWS, 3, curve);
    fit(&usual);
    assert_true(fresh_error(curve) < 0.05);
}

static void a_constant_is_its_base_and_nothing_else(void **state)
{
    (void)state;
    fill(ROWS, 4, constant);
    fit(&usual);
    assert_true(fabs(fitted.base - 0.7) < 1e-6);
    for (int t = 0; t < fitted.count; t++)
        for (int l = 0; l < FT_TREE_LEAVES; l++) assert_int_equal(0, fitted.trees[t].leaf[l]);
    /* Features that never vary offer no test. */
    fill(ROWS, 4, step);
    for (size_t i = 0; i < s.count; i++)
        for (int f = 0; f < WIDTH; f++) s.key[i][f] = 5;
    fit(&usual);
    float anywhere[WIDTH] = {0};
    double mean = 0;
    for (size_t i = 0; i < s.count; i++) mean += (double)s.target[i] / (double)s.count;
    assert_true(fabs(predict(anywhere) - mean) < 1e-3);
}

static void few_rows_give_their_mean(void **state)
{
    (void)state;
    for (size_t count = 0; count < 8; count++) {
        fill(count, 5, step);
        double mean = 0;
        for (size_t i = 0; i < count; i++) mean += (double)s.target[i] / (double)count;
        fit(&usual);
        float x[WIDTH] = {0.9f, 0.9f, 0.9f, 0.9f};
        assert_true(fabs(predict(x) - mean) < 1e-6);
    }
    fill(8, 5, step); /* eight are enough for a tree, and must not be trusted blindly */
    fit(&usual);
    float x[WIDTH] = {0.5f, 0.9f, 0.5f, 0.5f};
    assert_true(predict(x) > -0.6 && predict(x) < 1.1);
}

static void weights_count(void **state)
{
    (void)state;
    /* At every place nine tenths of the weight say 1 and the rest 0. */
    fill(ROWS, 6, constant);
    for (size_t i = 0; i < s.count; i++) {
        s.target[i] = i % 2 ? 1 : 0;
        s.weight[i] = i % 2 ? 9 : 1;
    }
    fit(&usual);
    assert_true(fresh_error(mostly_one) < 0.1);
    /* What weighs nothing teaches nothing. */
    fill(ROWS, 6, step);
    for (size_t i = 1; i < s.count; i += 2) {
        s.target[i] = 50;
        s.weight[i] = 0;
    }
    fit(&usual);
    assert_true(fresh_error(step) < 0.02);
}

/* One tree, one test, full rate: a leaf of weight w goes w / (w + ridge) of the way. */
static void the_ridge_holds_small_leaves_back(void **state)
{
    (void)state;
    ft_boost_options one = {.trees = 1, .depth = 1, .rate = 1, .rows = 1, .features = 1, .clip = 10};
    fill(100, 7, constant);
    for (size_t i = 0; i < 100; i++) {
        for (int f = 0; f < WIDTH; f++) s.key[i][f] = ft__feature_key((float)(i % 2));
        s.target[i] = i % 2 ? 1 : -1;
    }
    float high[WIDTH] = {1, 1, 1, 1}, low[WIDTH] = {0};
    for (one.ridge = 0; one.ridge <= 100; one.ridge += 25) {
        fit(&one);
        assert_true(fabs(predict(high) - 50 / (50 + one.ridge)) < 0.006 /* leaves of about 1 come in steps of 0.01 */);
        assert_true(fabs(predict(low) + 50 / (50 + one.ridge)) < 0.006 /* leaves of about 1 come in steps of 0.01 */);
        int said = 0;
        for (int l = 0; l < FT_TREE_LEAVES; l++) said += fitted.trees[0].leaf[l] != 0;
        assert_int_equal(2, said); /* a leaf without rows says nothing, without a ridge too */
    }
}

static void accidents_do_not_pull(void **state)
{
    (void)state;
    fill(ROWS, 8, step);
    for (size_t i = 0; i < s.count; i += 50) s.target[i] += 30; /* one row in fifty is far off */
    ft_boost_options robust = usual;
    robust.trees = MOST_TREES;
    robust.clip = 0.3;
    fit(&robust);
    double with_clip = fresh_error(step);
    fit(&usual);
    assert_true(with_clip < 0.15);
    assert_true(with_clip < 0.3 * fresh_error(step));
}

static void the_same_rows_give_the_same_trees(void **state)
{
    (void)state;
    static model again;
    fill(ROWS, 9, curve);
    memset(&fitted, 0xaa, sizeof fitted); /* what was there before does not shine through */
    memset(&again, 0x55, sizeof again);
    fit(&usual);
    assert_int_equal(FT_OK, boost(&usual, &again));
    assert_memory_equal(&fitted.base, &again.base, sizeof fitted.base);
    assert_memory_equal(fitted.trees, again.trees, (size_t)usual.trees * sizeof *again.trees);
    for (int t = 0; t < usual.trees; t++)
        for (int d = 0; d < FT_TREE_DEPTH; d++) assert_true(fitted.trees[t].feature[d] < WIDTH);
}

/* Forty trees that gain less than `enough` are the last; those not grown are empty and can be cut off. */
static void boosting_stops_when_trees_stop_paying(void **state)
{
    (void)state;
    ft_boost_options patient = usual, hasty = usual;
    hasty.enough = 0.5;
    fill(ROWS, 11, curve);
    fit(&patient);
    double error = fresh_error(curve);
    assert_int_equal(patient.trees, ft__boost_used(fitted.trees, patient.trees));
    fit(&hasty);
    uint32_t used = ft__boost_used(fitted.trees, hasty.trees);
    assert_true(used >= 40 && used < (uint32_t)hasty.trees && used % 40 == 0);
    for (int t = (int)used; t < hasty.trees; t++)
        for (int d = 0; d < FT_TREE_DEPTH; d++) assert_int_equal(UINT32_MAX, fitted.trees[t].threshold[d]);
    double with_all = fresh_error(curve);
    fitted.count = (int)used;
    assert_true(fabs(fresh_error(curve) - with_all) < 1e-12);
    assert_true(with_all < 0.1 && with_all > error);
    assert_int_equal(0, ft__boost_used(fitted.trees, 0));
}

static ft_status fit_once(void *options) { return boost(options, &fitted); }

static void running_out_of_memory_is_said(void **state)
{
    (void)state;
    static ft_boost_options few;
    few = usual;
    few.trees = 3;
    fill(200, 10, step);
    assert_true(failing_alloc_sweep(fit_once, &few) >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_learned),
        cmocka_unit_test(an_interaction_is_learned),
        cmocka_unit_test(a_curve_over_more_values_than_bins_is_learned),
        cmocka_unit_test(a_constant_is_its_base_and_nothing_else),
        cmocka_unit_test(few_rows_give_their_mean),
        cmocka_unit_test(weights_count),
        cmocka_unit_test(the_ridge_holds_small_leaves_back),
        cmocka_unit_test(accidents_do_not_pull),
        cmocka_unit_test(the_same_rows_give_the_same_trees),
        cmocka_unit_test(boosting_stops_when_trees_stop_paying),
        cmocka_unit_test(running_out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
