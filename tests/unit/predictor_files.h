/* Small predictor files for tests. */
#ifndef FT_TEST_PREDICTOR_FILES_H
#define FT_TEST_PREDICTOR_FILES_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/gpu.h"
#include "failing_alloc.h"
#include "graph/operator.h"
#include "kernel/embedded_predictor.h"
#include "kernel/families.h"
#include "kernel/kernel.h"
#include "random_op.h"
#include "scratch.h"

static ft_expert expert(const ft_family *family, const char *variant, const char *gpu, const char *generation,
                        uint32_t rows)
{
    ft_expert e;
    memset(&e, 0, sizeof e);
    strcpy(e.family, family->name);
    strcpy(e.variant, variant);
    strcpy(e.gpu, gpu);
    strcpy(e.generation, generation);
    e.rows = rows;
    e.sigma_base = -3;
    for (int k = 0; k < FT_KIN_LEVELS; k++) {
        e.weight[k] = 1;
        e.mape[k] = 0.05f;
        for (int q = 0; q < FT_QUANTILES; q++) e.spread_low[k][q] = e.spread_high[k][q] = 0.5f + 0.25f * (float)q;
    }
    for (int i = 0; i < family->parameter_count; i++) e.theta[i] = family->parameters[i].start;
    return e;
}

static ft_tree tree(random_source *r)
{
    ft_tree t;
    memset(&t, 0, sizeof t);
    int used = random_below(r, FT_TREE_DEPTH + 1);
    for (int d = 0; d < FT_TREE_DEPTH; d++) {
        t.feature[d] = d < used ? (uint8_t)random_below(r, FT_MAX_FEATURES) : 0;
        t.threshold[d] = d < used ? ft__feature_key((float)(20 * random_unit(r) - 10)) : UINT32_MAX;
    }
    for (int l = 0; l < FT_TREE_LEAVES; l++) t.leaf[l] = (int8_t)(random_below(r, 256) - 128);
    t.shift = (uint8_t)random_below(r, FT_LEAF_SHIFT_MAX + 1);
    return t;
}

/* A small file: two experts, three trees. Aligned as a mapping would be. */
typedef struct small_file {
    ft_expert experts[2];
    ft_tree trees[3];
    unsigned char *bytes;
    size_t length;
} small_file;

static const char meta[] = "{\"made_by\":\"a test\"}";

static void write_small(small_file *f)
{
    assert_int_equal(FT_OK,
                     ft__predictor_write(f->experts, 2, f->trees, 3, meta, (void **)&f->bytes, &f->length, NULL));
}

static small_file small(void)
{
    small_file f = {.bytes = NULL};
    random_source r = {11};
    f.experts[0] = expert(&ft__gemm_tensor_family, "half", "h200_sxm", "hopper", 1000);
    f.experts[0].tree_count = 2;
    f.experts[0].sigma_count = 1;
    f.experts[0].sigma_first = 2;
    f.experts[1] = expert(&ft__gemm_tensor_family, "half", "*", "", 2000);
    for (int t = 0; t < 3; t++) f.trees[t] = tree(&r);
    write_small(&f);
    return f;
}
#endif
