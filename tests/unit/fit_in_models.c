/* Operators inside whole models: what the reader makes of a line, and trees that answer to device time alone. */
#define _DEFAULT_SOURCE /* mkdir */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data_folder.h"
#include "fit/in_model.h"
#include "fit/measurements.h"
#include "graph/operator.h"
#include "kernel/families.h"
#include "scratch.h"

#define OPS "gpu,model,mode,seq,batch,options,Name,input_shapes,input_contiguous,output_shape,fw_ms,bw_ms,FwOps\n"
#define V100 "Tesla_V100-PCIE-32GB,"

static ft_rows load(const char *folder, bool to_fit)
{
    char path[1024];
    const char *folders[] = {path};
    ft_rows rows;
    ft_error err = {0};
    strcpy(path, scratch_path(folder));
    if (ft__rows_load(folders, 1, &(ft_row_filter){.to_fit = to_fit}, &rows, &err) != FT_OK)
        fail_msg("%s:%d: %s", err.where, err.line, err.message);
    return rows;
}

static void a_linear_and_its_gradients(void **state)
{
    (void)state;
    data_table("lin/neusight/labels_ops.csv.gz", OPS V100
               "opt,train,8,8,,fc1,\"[[64, 2048]]\",[True],\"(64, 8192)\",1.01,2.01,"
               "\"[['Linear', (64, 2048, 8192)]]\"\n" V100
               "gpt,inf,8,8,,addmm_1,\"[[5], [64, 7], [7, 5]]\",[True],\"(64, 5)\",0.81,0.0,"
               "\"[['Linear', (64, 7, 5)]]\"\n" V100
               "gpt,inf,8,8,,lm_head,\"[[64, 7]]\",[True],\"(64, 9)\",0.59,0.0,\"[['Linear', (64, 7, 9)]]\"\n");
    ft_rows rows = load("lin", false);
    assert_int_equal(5, rows.count);
    assert_true(rows.at[4].excluded); /* 0.59 ms is too short for a product to be fitted */
    ft__rows_free(&rows);
    rows = load("lin", true);
    assert_int_equal(4, rows.count);
    const ft_row *r = rows.at;
    assert_true(fabs(r[0].ms - 1) < 1e-9 && fabs(r[1].ms - 1) < 1e-9 && fabs(r[2].ms - 1) < 1e-9);
    assert_string_equal("nt", r[0].op.u.gemm.layout);
    assert_true(r[0].op.u.gemm.m == 64 && r[0].op.u.gemm.n == 8192 && r[0].op.u.gemm.k == 2048 && r[0].op.u.gemm.bias);
    assert_string_equal("nn", r[1].op.u.gemm.layout);
    assert_true(r[1].op.u.gemm.m == 64 && r[1].op.u.gemm.n == 2048 && r[1].op.u.gemm.k == 8192);
    assert_string_equal("tn", r[2].op.u.gemm.layout);
    assert_true(r[2].op.u.gemm.m == 8192 && r[2].op.u.gemm.n == 2048 && r[2].op.u.gemm.k == 64);
    assert_string_equal("nn", r[3].op.u.gemm.layout); /* GPT-2 stores [in, out] */
    for (size_t i = 0; i < rows.count; i++)
        assert_true(r[i].op.timing == FT_TIMING_DEVICE && r[i].source == FT_ROWS_MODEL && !r[i].held_out);
    ft__rows_free(&rows);
}

static void copies_before_a_product_are_taken_off(void **state)
{
    (void)state;
    data_table("bmm/neusight/labels_ops.csv.gz",
               OPS V100 "gpt,inf,8,8,,matmul,\"[[1, 2, 64, 8], [1, 2, 8, 64]]\",\"[False, False]\",\"(1, 2, 64, 64)\","
                        "2.01,0.0,\"[['BMM', (2, 64, 8, 64)]]\"\n" V100
                        "gpt,inf,8,8,,contiguous,\"[[1, 64, 2, 8]]\",[False],\"(1, 64, 2, 8)\",0.21,0.0,[]\n" V100
                        "opt,inf,8,8,,matmul,\"[[1, 2, 64, 8], [1, 2, 8, 64]]\",\"[False, False]\",\"(1, 2, 64, 64)\","
                        "2.01,0.0,\"[['BMM', (2, 64, 8, 64)]]\"\n" V100
                        "opt,inf,8,8,,bmm,\"[[2, 64, 8], [2, 8, 64]]\",\"[True, False]\",\"(2, 64, 64)\",3.01,0.0,"
                        "\"[['BMM', (2, 64, 8, 64)]]\"\n");
    ft_rows rows = load("bmm", true);
    assert_int_equal(3, rows.count); /* opt's copy was not seen: its matmul says nothing */
    assert_string_equal("copy", rows.at[0].op.name);
    assert_true(rows.at[0].op.u.elementwise.numel == 1024 && rows.at[0].op.u.elementwise.pattern == FT_PATTERN_STRIDED);
    assert_true(fabs(rows.at[1].ms - 1.4) < 1e-9); /* two copies, one of them transposing */
    assert_string_equal("nn", rows.at[1].op.u.gemm.layout);
    assert_true(fabs(rows.at[2].ms - 3) < 1e-9);
    assert_string_equal("nt", rows.at[2].op.u.gemm.layout);
    ft__rows_free(&rows);
}

static void pointwise_operands_are_told_apart(void **state)
{
    (void)state;
    data_table("vec/neusight/labels_ops.csv.gz",
               OPS V100 "m,inf,8,8,,add_7,\"[[4, 16, 512, 512], [4, 1, 1, 512]]\",\"[True, True]\","
                        "\"(4, 16, 512, 512)\",0.31,0.0,\"[['VECadd', (32768, 512)]]\"\n" V100
                        "m,inf,8,8,,add_8,\"[[64, 512], [64, 512]]\",\"[True, True]\",\"(64, 512)\",0.21,0.0,"
                        "\"[['VECadd', (64, 512)]]\"\n" V100
                        "m,inf,8,8,,truediv,\"[[64, 512], [1]]\",\"[True, True]\",\"(64, 512)\",0.21,0.0,"
                        "\"[['VECdiv', (64, 512)]]\"\n" V100
                        "m,train,8,8,,softmax,\"[[64, 512]]\",[True],\"(64, 512)\",0.21,0.41,"
                        "\"[['VECsoftmax', (64, 512)]]\"\n");
    ft_rows rows = load("vec", true);
    assert_int_equal(4, rows.count); /* a scalar in a tensor is neither of the known patterns */
    assert_true(rows.at[0].op.u.elementwise.pattern == FT_PATTERN_SPREAD);
    assert_true(fabs(rows.at[0].op.u.elementwise.bytes - 4 * (2 * 16777216.0 + 2048)) < 1);
    assert_true(rows.at[1].op.u.elementwise.pattern == FT_PATTERN_CONTIGUOUS &&
                rows.at[1].op.u.elementwise.inputs == 2);
    assert_true(rows.at[2].op.pass == FT_PASS_FWD && fabs(rows.at[2].ms - 0.2) < 1e-9);
    assert_true(rows.at[3].op.pass == FT_PASS_BWD && fabs(rows.at[3].ms - 0.4) < 1e-9);
    ft__rows_free(&rows);
}

static void models_stretch_their_products_or_are_left_out(void **state)
{
    (void)state;
    const char *labels = "gpu,model,mode,seq,batch,options,opsum_fw_over_fw,opsum_bw_over_bw\n" V100
                         "slow,inf,8,8,,0.9,\n" V100 "cold,inf,8,8,,1.2,\n" V100 "wrong,inf,8,8,,0.4,\n" V100
                         "small,train,8,8,,1.3,1.1\n";
    data_table("sum/neusight/labels.csv", labels);
    data_table("sum/neusight/labels_ops.csv.gz", OPS V100
               "slow,inf,8,8,,fc1,\"[[64, 7]]\",[True],\"(64, 9)\",0.91,0.0,\"[['Linear', (64, 7, 9)]]\"\n" V100
               "slow,inf,8,8,,ln,\"[[64, 7]]\",[True],\"(64, 7)\",0.91,0.0,\"[['VECln', (64, 7)]]\"\n" V100
               "cold,inf,8,8,,fc1,\"[[64, 7]]\",[True],\"(64, 9)\",0.91,0.0,\"[['Linear', (64, 7, 9)]]\"\n" V100
               "wrong,inf,8,8,,fc1,\"[[64, 7]]\",[True],\"(64, 9)\",0.91,0.0,\"[['Linear', (64, 7, 9)]]\"\n" V100
               "small,train,8,8,,fc1,\"[[64, 7]]\",[True],\"(64, 9)\",0.91,1.81,\"[['Linear', (64, 7, 9)]]\"\n");
    ft_rows rows = load("sum", false);
    assert_int_equal(7, rows.count);
    assert_true(rows.at[2].excluded && fabs(rows.at[2].ms - 0.9) < 1e-9); /* cold: judged, not fitted */
    ft__rows_free(&rows);
    rows = load("sum", true);
    assert_int_equal(6, rows.count);
    assert_true(fabs(rows.at[0].ms - 1) < 1e-9);
    for (int i = 1; i < 6; i++) assert_true(fabs(rows.at[i].ms - 0.9) < 1e-9);
    assert_string_equal("nn", rows.at[4].op.u.gemm.layout); /* of the small model all three */
    assert_string_equal("tn", rows.at[5].op.u.gemm.layout);
    ft__rows_free(&rows);
}

/* Ten rows of models that take e^0.2 of what the tables' trees expect: their trees say so, and nothing to a call. */
static void trees_of_models_answer_to_device_time_alone(void **state)
{
    (void)state;
    enum { N = 12 };
    ft_cell cell = {.family = &ft__elementwise_family};
    ft_tree trees[FT_MODEL_TREES];
    ft_cell_gpu g = {.trees = trees};
    ft_matrix m;
    ft_error err = {0};
    uint8_t fold[N];
    double residual[N];
    int feature = ft__in_model_feature(cell.family);
    assert_true(feature >= 0 && feature < cell.family->feature_count);
    assert_int_equal(FT_OK, ft__matrix_new(N, cell.family->feature_count, &m, &err));
    for (size_t i = 0; i < N; i++) {
        for (int f = 0; f < m.width; f++) m.key[i * (size_t)m.width + (size_t)f] = ft__feature_key((float)i);
        m.key[i * (size_t)m.width + (size_t)feature] = ft__feature_key(1);
        m.target[i] = 0.2f;
        m.weight[i] = 10;
        fold[i] = (uint8_t)(i % 4);
    }
    assert_int_equal(FT_OK, ft__in_model(&cell, &g, &m, 0, 0, fold, 4, residual, &err));
    assert_int_equal(FT_MODEL_TREES, g.expert.tree_count);
    for (size_t i = 0; i < N; i++) {
        uint32_t *key = m.key + i * (size_t)m.width;
        assert_true(fabs(residual[i]) < 0.01);
        assert_true(fabs(ft__trees_sum(trees, FT_MODEL_TREES, key) - 0.2) < 0.01);
        key[feature] = ft__feature_key(0);
        assert_true(fabs(ft__trees_sum(trees, FT_MODEL_TREES, key)) < 1e-12);
    }
    ft__matrix_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_and_its_gradients),
        cmocka_unit_test(copies_before_a_product_are_taken_off),
        cmocka_unit_test(pointwise_operands_are_told_apart),
        cmocka_unit_test(models_stretch_their_products_or_are_left_out),
        cmocka_unit_test(trees_of_models_answer_to_device_time_alone),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
