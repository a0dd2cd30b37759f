/* The Gaussian process: finds a smooth function and the features it depends on, ignores the others, speaks of nothing
 * where there is nothing; and what is fitted is what is forecast. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fit/process.h"
#include "fit/rest.h"

enum { POINTS = 160, WIDTH = 6 };

static double uniform(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / 16777216.0;
}

typedef struct sample {
    float x[POINTS * WIDTH];
    double y[POINTS], w[POINTS];
} sample;

static double truth(const float *x) { return 0.2 * sin(1.5 * (double)x[1]) + 0.1 * (double)x[4]; }

static void draw(sample *s, uint32_t seed, double noise)
{
    for (int i = 0; i < POINTS; i++) {
        for (int j = 0; j < WIDTH; j++) s->x[i * WIDTH + j] = j == 3 ? 7 : (float)(4 * uniform(&seed) - 2);
        s->y[i] = truth(s->x + i * WIDTH) + noise * (uniform(&seed) - 0.5);
        s->w[i] = 1;
    }
}

static double error_on(const ft_process *p, const float *values, const sample *s)
{
    double sum = 0;
    for (int i = 0; i < POINTS; i++)
        sum += fabs(ft__process_mean(p, values, s->x + i * WIDTH) - truth(s->x + i * WIDTH));
    return sum / POINTS;
}

static void finds_a_smooth_function(void **state)
{
    (void)state;
    sample *s = malloc(2 * sizeof *s);
    ft_process_shape shape;
    ft_process p;
    float *values;
    assert_non_null(s);
    draw(&s[0], 1, 0.02);
    draw(&s[1], 2, 0);
    ft_process_data d = {s[0].x, s[0].y, s[0].w, POINTS, WIDTH};
    assert_int_equal(FT_OK, ft__process_tune(&d, POINTS, &shape, NULL));
    double scale[WIDTH] = {0};
    for (int j = 0; j < shape.used; j++) scale[shape.feature[j]] = shape.scale[j];
    assert_true(scale[3] <= 0); /* never varied */
    assert_true(scale[1] > 3 * scale[0] && scale[1] > 3 * scale[2] && scale[1] > 3 * scale[5]);
    for (size_t most = 20; most <= POINTS; most += 70) { /* 20 is no multiple of the lanes */
        assert_int_equal(FT_OK, ft__process_fit(&d, &shape, most, &p, &values, NULL));
        assert_true(p.blocks <= (most + FT_PROCESS_LANES - 1) / FT_PROCESS_LANES);
        assert_true(error_on(&p, values, &s[1]) < (most < 50 ? 0.05 : 0.02));
        free(values);
    }
    free(s);
}

static void few_or_equal_cases(void **state)
{
    (void)state;
    sample *s = malloc(sizeof *s);
    ft_process_shape shape;
    ft_process p;
    float *values;
    assert_non_null(s);
    draw(s, 3, 0.1);
    for (size_t n = 0; n < 8; n++) {
        ft_process_data d = {s->x, s->y, s->w, n, WIDTH};
        assert_int_equal(FT_OK, ft__process_tune(&d, 100, &shape, NULL));
        assert_int_equal(FT_OK, ft__process_fit(&d, &shape, 100, &p, &values, NULL));
        assert_true(isfinite(ft__process_mean(&p, values ? values : s->x, s->x)));
        free(values);
    }
    for (int i = 1; i < POINTS; i++) memcpy(s->x + i * WIDTH, s->x, WIDTH * sizeof *s->x); /* one place, many times */
    ft_process_data d = {s->x, s->y, s->w, POINTS, WIDTH};
    assert_int_equal(FT_OK, ft__process_tune(&d, 100, &shape, NULL));
    assert_int_equal(0, shape.used);
    assert_int_equal(FT_OK, ft__process_fit(&d, &shape, 100, &p, &values, NULL));
    assert_int_equal(0, p.blocks);
    assert_null(values);
    free(s);
}

static void scaled_trees_sum_to_a_share(void **state)
{
    (void)state;
    ft_tree tree = {.shift = 3};
    uint32_t key[FT_MAX_FEATURES] = {0};
    for (int l = 0; l < FT_TREE_DEPTH; l++) tree.threshold[l] = UINT32_MAX;
    tree.leaf[0] = 100;
    double whole = ft__trees_sum(&tree, 1, key);
    ft_tree half = tree;
    ft__tree_scale(&half, 0.5);
    assert_true(fabs(ft__trees_sum(&half, 1, key) - 0.5 * whole) < 1e-4 * fabs(whole) + 1e-5);
    ft__tree_scale(&half, 0);
    assert_true(fabs(ft__trees_sum(&half, 1, key)) <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_a_smooth_function), cmocka_unit_test(few_or_equal_cases),
                                       cmocka_unit_test(scaled_trees_sum_to_a_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
