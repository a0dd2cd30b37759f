/* The local scale of errors, from which intervals are made: each row's by trees that did not see its error. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "fit/matrix.h"
#include "random_op.h"

enum { ROWS = 600, WIDTH = 6, FOLDS = 5 };

typedef struct bench {
    ft_matrix m;
    double residual[ROWS], scale[ROWS];
    uint8_t fold[ROWS];
} bench;

/* Features at random, and errors that are `wide` times as large where the first of them is high. */
static void fill(bench *b, double wide)
{
    random_source r = {7};
    assert_int_equal(FT_OK, ft__matrix_new(ROWS, WIDTH, &b->m, NULL));
    for (size_t i = 0; i < ROWS; i++) {
        double first = random_unit(&r), error = 0.02 + 0.2 * random_unit(&r) * random_unit(&r);
        b->m.key[i * WIDTH] = ft__feature_key((float)first);
        for (size_t f = 1; f < WIDTH; f++) b->m.key[i * WIDTH + f] = ft__feature_key((float)random_unit(&r));
        b->residual[i] = error * (first > 0.5 ? wide : 1) * (random_unit(&r) < 0.5 ? -1 : 1);
        b->m.weight[i] = 1;
        b->fold[i] = (uint8_t)(i % FOLDS);
    }
}

static ft_status scales(bench *b, ft_expert *e)
{
    ft_tree *trees = NULL;
    ft_status s = ft__sigma_fit(&b->m, b->residual, b->fold, FOLDS, e, &trees, b->scale, NULL);
    free(trees);
    return s;
}

/* How a row's scale goes with its own error, both as logarithms. */
static double correlation(const bench *b)
{
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < ROWS; i++) {
        double p = log(fabs(b->residual[i])), q = log(b->scale[i]);
        x += p, y += q, xx += p * p, yy += q * q, xy += p * q;
    }
    return (ROWS * xy - x * y) / sqrt((ROWS * xx - x * x) * (ROWS * yy - y * y));
}

static void errors_of_no_cause_are_not_foreseen(void **state)
{
    (void)state;
    bench b;
    ft_expert e = {0};
    fill(&b, 1);
    assert_int_equal(FT_OK, scales(&b, &e));
    assert_true(e.sigma_count > 0); /* there are trees, and they learned something of chance */
    if (!(correlation(&b) < 0.05)) fail_msg("a row's scale goes with its own error: %g", correlation(&b));
    ft__matrix_free(&b.m);
}

static void errors_that_have_a_cause_are(void **state)
{
    (void)state;
    bench b;
    ft_expert e = {0};
    double low = 0, high = 0;
    fill(&b, 8);
    assert_int_equal(FT_OK, scales(&b, &e));
    for (size_t i = 0; i < ROWS; i++)
        *(b.m.key[i * WIDTH] > ft__feature_key(0.5f) ? &high : &low) += log(b.scale[i]) / (ROWS / 2);
    assert_true(high - low > log(4));
    ft__matrix_free(&b.m);
}

static bench lean;

static ft_status once(void *context)
{
    ft_expert e = {0};
    return scales(context, &e);
}

static void running_out_of_memory_is_said(void **state)
{
    (void)state;
    fill(&lean, 1);
    assert_true(failing_alloc_sweep(once, &lean) >= 4);
    ft__matrix_free(&lean.m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_no_cause_are_not_foreseen),
        cmocka_unit_test(errors_that_have_a_cause_are),
        cmocka_unit_test(running_out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
