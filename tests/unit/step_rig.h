/* A step that is set up for tests. */
#ifndef TESTS_STEP_RIG_H
#define TESTS_STEP_RIG_H
#include "every_field.h"
#include "kernel_limits.h"
#include "random_op.h"
#include "shipped_predictor.h"

#include "timeline/memo.h"
#include "timeline/stream.h"

static inline ft_op product(int64_t m, int64_t n, int64_t k)
{
    ft_op op;
    ft__op_init("linear", &op);
    op.dtype = FT_BF16;
    op.u.gemm.m = m;
    op.u.gemm.n = n;
    op.u.gemm.k = k;
    op.u.gemm.quantized = 1;
    return op;
}

static inline void close_to(double got, double expected, double within)
{
    if (!(fabs(got - expected) <= within * fabs(expected))) fail_msg("got %.9g, expected %.9g", got, expected);
}

#endif
