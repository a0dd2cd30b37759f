/* Which rows teach and which judge: profiled and drawn ones are for fits alone, rows that no fit uses are judged. */
#include "fit/cell.h"
#include "fit/learning_constants.h"
#include "measured_rows.h"

/* The profiler's layers teach fits: nobody is judged by them, and none has the shape of a row that is held out. */
static void profiled_layers_are_for_fits_alone(void **state)
{
    (void)state;
    enum { LAYERS = 300 };
    static char text[60000];
    size_t length = (size_t)snprintf(
        text, sizeof text, "kind,dtype,layout,pass,benchmark,n,c,k,groups,size,filter,stride,pad,dilation,ms\n");
    for (int i = 0; i < LAYERS; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "dense,bf16,nhwc,fwd,0,%d,%d,64,1,28x28,3x3,1,1,1,0.5\n", 1 + i % 4, 16 + i);
    data_table("taught/h200/layers.csv.gz", text);
    data_table("taught/h200/convolution.csv.gz", text);
    ft_row_filter filter = {.to_fit = true};
    ft_rows judged = load("taught", NULL), fitted = load("taught", &filter);
    assert_int_equal(LAYERS, judged.count);
    size_t held = 0, taught = 0;
    for (size_t i = 0; i < judged.count; i++) held += judged.at[i].held_out;
    for (size_t i = 0; i < fitted.count; i++) {
        if (fitted.at[i].source != FT_ROWS_PROFILED) continue;
        assert_false(fitted.at[i].held_out);
        taught++;
    }
    assert_true(held > 0);
    assert_int_equal(LAYERS - held, taught);
    ft__rows_free(&judged);
    ft__rows_free(&fitted);
}

/* Points of a calibration in the columns of a table of products: the same rule. */
static void points_of_a_calibration_are_for_fits_alone(void **state)
{
    (void)state;
    enum { POINTS = 300 };
    static char text[30000];
    size_t length = (size_t)snprintf(text, sizeof text, "dtype,layout,m,n,k,ms\n");
    for (int i = 0; i < POINTS; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "bf16,nt,%d,%d,64,0.5\n", 1 + i % 7, 16 + i);
    data_table("points/h200/calibrated_gemm.csv.gz", text);
    data_table("points/h200/gemm.csv.gz", "dtype,layout,m,n,k,ms\nfp8,nt,256,4096,1024,0.02\n");
    data_table("points/h200/calibrated_bmm.csv.gz", "dtype,layout,b,m,n,k,ms\nbf16,nn,3,64,72,80,0.01\n");
    ft_row_filter filter = {.to_fit = true};
    ft_rows judged = load("points", NULL), fitted = load("points", &filter);
    assert_int_equal(1, judged.count);
    assert_int_equal(FT_ROWS_OWN, judged.at[0].source);
    size_t points = 0;
    for (size_t i = 0; i < fitted.count; i++) {
        points += fitted.at[i].source == FT_ROWS_POINTS;
        if (fitted.at[i].source == FT_ROWS_POINTS) assert_false(fitted.at[i].held_out);
    }
    assert_int_equal(fitted.count - judged.count, points);
    assert_true(points > POINTS * 8 / 10 && points < POINTS);
    ft__rows_free(&judged);
    ft__rows_free(&fitted);
}

/* Filters are for fits alone: an autotuner's accident and a slice thinner than any real one teach nothing, and
 * forecasts are judged by them all the same. */
static void rows_that_no_fit_uses_are_judged(void **state)
{
    (void)state;
    data_table("odd/silicon/moe/h200_sxm.csv.gz",
               "gpu,backend,version,kernel_source,dtype,tokens,hidden_size,inter_size,topk,num_experts,moe_tp,moe_ep,"
               "distribution,latency_ms\n"
               "h200_sxm,trtllm,1,moe_torch_flow_cutlass,bfloat16,64,2048,768,8,128,1,1,balanced,0.2\n"
               "h200_sxm,trtllm,1,moe_torch_flow_cutlass,bfloat16,64,2048,1536,8,128,1,1,balanced,90\n"
               "h200_sxm,trtllm,1,moe_torch_flow_cutlass,bfloat16,64,2048,16,8,128,1,1,balanced,0.1\n");
    ft_row_filter filter = {.to_fit = true};
    ft_rows judged = load("odd", NULL), fitted = load("odd", &filter);
    assert_int_equal(3, judged.count);
    assert_true(!judged.at[0].excluded && judged.at[1].excluded && judged.at[2].excluded);
    assert_int_equal(1, fitted.count);
    assert_true(fitted.at[0].ms == judged.at[0].ms);
    ft__rows_free(&judged);
    ft__rows_free(&fitted);
}

/* Drawn products that the profiler timed: the same rule, and each counts a share of a row of our tables. */
static void drawn_products_teach_by_a_share(void **state)
{
    (void)state;
    enum { DRAWN = 300 };
    static char text[30000];
    size_t length = (size_t)snprintf(text, sizeof text, "dtype,layout,m,n,k,ms\n");
    for (int i = 0; i < DRAWN; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "fp32,nt,%d,%d,64,0.5\n", 1 + i % 7, 16 + i);
    data_table("drawn/h200/profiled_gemm.csv.gz", text);
    data_table("drawn/h200/gemm.csv.gz", "dtype,layout,m,n,k,ms\nfp32,nt,256,4096,1024,0.02\n");
    ft_row_filter filter = {.to_fit = true};
    ft_rows judged = load("drawn", NULL), fitted = load("drawn", &filter);
    assert_int_equal(1, judged.count);
    assert_true(fitted.count > DRAWN * 8 / 10 && fitted.count < DRAWN);
    uint32_t index[DRAWN + 1];
    ft_cell_gpu gpu = {.index = index, .count = fitted.count};
    int variant;
    ft_cell cell = {.family = ft__family_of(&fitted.at[0].op, &variant), .gpus = &gpu, .gpu_count = 1};
    for (uint32_t i = 0; i < fitted.count; i++) index[i] = i;
    assert_int_equal(FT_OK, ft__cell_weigh(&cell, &fitted, NULL));
    assert_int_equal(1, gpu.tables);
    assert_int_equal(fitted.count, gpu.forest);
    for (size_t i = 0; i < fitted.count; i++) {
        const ft_row *row = &fitted.at[index[i]];
        assert_int_equal(i ? FT_ROWS_DRAWN : FT_ROWS_OWN, row->source);
        assert_false(row->held_out);
        assert_float_equal(i ? FT_K_LEARNING_DRAWN_WEIGHT : 1, (double)row->weight, 1e-6);
    }
    ft__rows_free(&judged);
    ft__rows_free(&fitted);
}

/* Profiled layers count together at most so many times the rows of a table, where it has enough of its own. */
static void profiled_layers_count_so_much(void **state)
{
    (void)state;
    enum { MOST = 4000, TIMES = 3 };
    const struct ft__k_learning_profiled_most *most = &ft__k_learning_profiled_most;
    static ft_row at[MOST * (1 + TIMES * 5)];
    static uint32_t index[sizeof at / sizeof *at];
    const int own[] = {(int)most->from - 1, (int)most->from};
    for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
        size_t times = TIMES * (size_t)most->times, count = (size_t)own[k] * (1 + times);
        assert_true(count <= sizeof at / sizeof *at);
        for (size_t i = 0; i < count; i++) {
            at[i] = (ft_row){.weight = 1, .source = i < (size_t)own[k] ? FT_ROWS_OWN : FT_ROWS_PROFILED};
            index[i] = (uint32_t)i;
        }
        ft_rows rows = {.at = at, .count = count};
        ft_cell_gpu gpu = {.index = index, .count = count};
        ft_cell cell = {.gpus = &gpu, .gpu_count = 1};
        assert_int_equal(FT_OK, ft__cell_weigh(&cell, &rows, NULL));
        assert_float_equal(1, (double)at[0].weight, 0);
        assert_float_equal(k ? 1.0 / TIMES : 1, (double)at[count - 1].weight, 1e-6);
    }
}

/* Experts without a gate: their rows once more for requests that do not say so, for fits alone. */
static void layers_without_a_gate_are_read_for_both_requests(void **state)
{
    (void)state;
    data_table("gates/silicon/moe/h200_sxm.csv.gz",
               "gpu,backend,version,kernel_source,dtype,tokens,hidden_size,inter_size,topk,num_experts,moe_tp,moe_ep,"
               "distribution,latency_ms\n"
               "h200_sxm,trtllm,1,moe_torch_flow_nongated,bfloat16,64,2688,1856,6,128,1,1,balanced,0.3\n"
               "h200_sxm,trtllm,1,moe_torch_flow_cutlass,bfloat16,64,2048,768,8,128,1,1,balanced,0.2\n");
    ft_row_filter filter = {.to_fit = true};
    ft_rows judged = load("gates", NULL), fitted = load("gates", &filter);
    assert_int_equal(2, judged.count);
    assert_true(judged.at[0].op.u.moe.ungated);
    assert_false(judged.at[1].op.u.moe.ungated);
    assert_int_equal(3, fitted.count);
    assert_int_equal(FT_ROWS_UNSAID, fitted.at[1].source);
    assert_false(fitted.at[1].op.u.moe.ungated);
    ft__rows_free(&judged);
    ft__rows_free(&fitted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiled_layers_are_for_fits_alone),
        cmocka_unit_test(points_of_a_calibration_are_for_fits_alone),
        cmocka_unit_test(rows_that_no_fit_uses_are_judged),
        cmocka_unit_test(drawn_products_teach_by_a_share),
        cmocka_unit_test(profiled_layers_count_so_much),
        cmocka_unit_test(layers_without_a_gate_are_read_for_both_requests),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
