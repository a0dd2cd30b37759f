/* Matrix products that several tests ask for. */
#ifndef TESTS_GEMM_SHAPES_H
#define TESTS_GEMM_SHAPES_H
#include "kernel_limits.h"
#include "random_op.h"

#include "kernel/families.h"
#include "kernel/gemm_tiles.h"

static inline ft_op gemm(ft_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    ft_op op;
    ft__op_init("gemm", &op);
    op.dtype = dtype;
    op.u.gemm.m = m;
    op.u.gemm.n = n;
    op.u.gemm.k = k;
    op.u.gemm.quantized = 1;
    return op;
}

static inline ft_physics physics_of(const ft_device *device, const ft_op *op)
{
    int variant;
    const ft_family *family = ft__family_of(op, &variant);
    double theta[FT_MAX_THETA] = {0};
    ft_physics ph;
    for (int i = 0; i < family->parameter_count; i++) theta[i] = family->parameters[i].start;
    family->physics(device, op, theta, true, &ph);
    return ph;
}
#endif
