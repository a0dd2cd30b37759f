/* Measurements as rows: other people's tables. */
#include "measured_rows.h"

/* -- other people's ------------------------------------------------------------------------------ */

#define NEUSIGHT "gpu,vendor,split,op,b,m,n_out,k_red,latency_ms,pass\n"

static void neusight_rows_are_eager_calls_with_their_authors_split(void **state)
{
    (void)state;
    data_table("eager/neusight/linear.csv.gz", NEUSIGHT "Tesla_T4,nvidia,train,linear,1,58,141,13,0.05,fw\n"
                                                        "Tesla_T4,nvidia,test,linear,1,59,141,13,0.06,fw\n"
                                                        "Tesla_T4,nvidia,train,linear,1,58,141,13,0.07,bw\n"
                                                        "Some_GPU,nobody,train,linear,1,58,141,13,0.08,fw\n");
    data_table("eager/neusight/elementwise.csv.gz", "gpu,split,op,b,h,n_inputs,latency_ms,pass\nTesla_T4,train,add,127,"
                                                    "168,2,0.02,fw\nTesla_T4,train,nobodys,1,1,1,1,fw\n");
    data_table("eager/neusight/softmax.csv.gz", "gpu,split,b,h,latency_ms\nTesla_T4,train,127,168,0.03\n");
    data_table("eager/neusight/conv.csv.gz",
               "gpu,split,b,c_in,c_out,ksize,in_size,stride,pad,latency_ms\nTesla_T4,train,38,893,326,3,5,1,1,0.9\n");
    ft_rows rows = load("eager", NULL);
    assert_int_equal(5, rows.count);
    for (size_t i = 0; i < rows.count; i++) {
        assert_int_equal(FT_ROWS_EAGER, rows.at[i].source);
        assert_int_equal(FT_TIMING_OP, rows.at[i].op.timing);
        assert_int_equal(FT_FP32, rows.at[i].op.dtype);
        assert_string_equal("t4", rows.gpus[rows.at[i].gpu].name);
    }
    assert_false(row_of(&rows, "linear", 0.05)->held_out);
    assert_true(row_of(&rows, "linear", 0.06)->held_out);
    assert_int_equal(127 * 168, row_of(&rows, "add", 0.02)->op.u.elementwise.numel);
    assert_int_equal(2, row_of(&rows, "add", 0.02)->op.u.elementwise.inputs);
    assert_int_equal(127, row_of(&rows, "softmax", 0.03)->op.u.row.rows);
    assert_true(row_of(&rows, "softmax", 0.03)->older); /* PyTorch has had other kernels since */
    assert_false(row_of(&rows, "add", 0.02)->older);
    assert_int_equal(893, row_of(&rows, "conv2d", 0.9)->op.u.conv.c);
    assert_false(row_of(&rows, "conv2d", 0.9)->op.u.conv.nhwc);
    ft__rows_free(&rows);

    /* A GPU without a train split lends about half of its test rows. */
    static char text[100000];
    size_t length = (size_t)snprintf(text, sizeof text, NEUSIGHT);
    for (int i = 0; i < 600; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s,x,test,linear,1,64,%d,%d,0.05,fw\n",
                                   i % 2 ? "NVIDIA_L4" : "Tesla_T4", 8 + i / 2, 32);
    snprintf(text + length, sizeof text - length, "NVIDIA_L4,x,train,linear,1,64,8,32,0.05,fw\n");
    data_table("half/neusight/linear.csv.gz", text);
    rows = load("half", NULL);
    int l4 = 0, t4 = 0;
    for (size_t i = 0; i < rows.count; i++)
        *(strcmp(rows.gpus[rows.at[i].gpu].name, "l4") ? &t4 : &l4) += !rows.at[i].held_out;
    assert_int_equal(1, l4);
    assert_true(t4 > 100 && t4 < 200);
    ft__rows_free(&rows);

    data_table("huge/neusight/elementwise.csv.gz",
               "gpu,split,op,b,h,n_inputs,latency_ms,pass\nTesla_T4,train,add,1099511627776,1099511627776,2,0.02,fw\n");
    refused("huge", FT_E_RANGE, "huge/neusight/elementwise.csv.gz", 2,
            "\"numel\" must be a whole number from 1 to 2^40");
}

static void tables_of_engines_are_read(void **state)
{
    (void)state;
    data_table("engine/silicon/gemm/x.csv.gz",
               "gpu,backend,version,kernel_source,dtype,m,n,k,latency_ms\n"
               "h100_sxm,trtllm,1,x,bfloat16,64,128,256,0.4\nh100_sxm,trtllm,1,x,fp8,64,128,256,0.3\n"
               "h100_sxm,vllm,1,x,bfloat16,64,128,256,0.41\nh100_sxm,trtllm,1,x,int3,1,1,1,0.1\n"
               "a100_sxm,sglang,1,x,bfloat16,64,128,256,0.5\n");
    data_table("engine/silicon/moe/x.csv.gz",
               "gpu,backend,version,kernel_source,dtype,tokens,hidden_size,inter_size,topk,num_experts,moe_tp,moe_ep,"
               "distribution,"
               "latency_ms\nh100_sxm,trtllm,1,x,bfloat16,64,2048,1024,8,64,4,1,power_law_1.2,0.11\n"
               "h100_sxm,trtllm,1,x,bfloat16,64,2048,1024,8,64,1,8,balanced,0.12\n"
               "h100_sxm,trtllm,1,x,bfloat16,64,2048,1024,8,64,1,8,power_law_1.2,0.13\n"
               "h100_sxm,vllm,1,vllm_marlin_x,int4_wo,64,2048,1024,8,64,1,1,balanced,0.14\n"
               "h100_sxm,trtllm,1,x_nongated,fp8_block,64,2048,1024,8,64,1,1,balanced,0.15\n");
    data_table("engine/silicon/mla_generation/x.csv.gz",
               "gpu,backend,version,kernel_source,dtype,kv_dtype,num_heads,batch,isl,tp_size,step,latency_ms\n"
               "b200_sxm,trtllm,1,x,bfloat16,fp8,128,4,1,1,1023,0.02\n");
    ft_rows rows = load("engine", NULL);
    assert_int_equal(8, rows.count); /* a skewed draw over ranks is nobody's */
    const ft_row *row = row_of(&rows, "gemm", 0.4);
    assert_int_equal(FT_ROWS_ENGINE, row->source);
    assert_int_equal(FT_TIMING_DEVICE, row->op.timing);
    assert_int_equal(0, row->op.u.gemm.quantized);
    assert_false(row->held_out);
    assert_int_equal(FT_FP8, row_of(&rows, "gemm", 0.3)->op.dtype);
    assert_string_equal("a100_sxm_80gb", rows.gpus[row_of(&rows, "gemm", 0.5)->gpu].name);
    row = row_of(&rows, "moe", 0.11);
    assert_int_equal(256, row->op.u.moe.inter); /* tensor parallelism has cut it in four */
    assert_true(fabs(row->op.u.moe.skew - 1.2) < 1e-12);
    row = row_of(&rows, "moe", 0.12);
    assert_int_equal(8, row->op.u.moe.ep);
    assert_int_equal(FT_MOE_CUTLASS, row->op.u.moe.backend);
    row = row_of(&rows, "moe", 0.14);
    assert_int_equal(FT_BF16, row->op.dtype);
    assert_int_equal(FT_STORED_INT4, row->op.weights);
    assert_int_equal(FT_MOE_MARLIN, row->op.u.moe.backend);
    assert_int_equal(FT_ENGINE_VLLM, row->op.engine);
    row = row_of(&rows, "moe", 0.15);
    assert_int_equal(FT_FP8, row->op.dtype);
    assert_int_equal(FT_STORED_FP8_BLOCK, row->op.weights);
    assert_true(row->op.u.moe.ungated);
    row = row_of(&rows, "mla", 0.02);
    assert_int_equal(1, row->op.u.mla.q_len);
    assert_int_equal(1024, row->op.u.mla.kv_len);
    assert_int_equal(FT_FP8, row->op.kv_dtype);
    ft__rows_free(&rows);

    data_table(
        "stranger/silicon/gemm/x.csv.gz",
        "gpu,backend,version,kernel_source,dtype,m,n,k,latency_ms\nh100_sxn,trtllm,1,x,bfloat16,64,128,256,0.4\n");
    refused("stranger", FT_E_NAME, "stranger/silicon/gemm/x.csv.gz", 2, "h100_sxm");
}

/* A rule leaves a row out of fits; validation reads it and judges by it. What is of another operator nobody reads. */
static void rows_left_out_of_fits_are_judged(void **state)
{
    (void)state;
    data_table("rules/silicon/moe/x.csv.gz",
               "gpu,backend,version,kernel_source,dtype,tokens,hidden_size,inter_size,topk,num_experts,moe_tp,moe_ep,"
               "distribution,latency_ms\n"
               "h100_sxm,trtllm,1,x,bfloat16,64,2048,1024,8,64,1,1,balanced,0.2\n"
               "h100_sxm,trtllm,1,x,bfloat16,64,2048,1024,8,64,1,1,balanced,9\n"
               "b200_sxm,trtllm,1,x_min_latency,nvfp4,64,2048,1024,8,64,1,1,balanced,0.21\n"
               "h100_sxm,trtllm,1,x,bfloat16,64,2048,1024,8,64,16,1,balanced,0.1\n"
               "h100_sxm,vllm,1,x,bfloat16,64,2048,1024,8,64,1,1,balanced,0.22\n"
               "a100_sxm,vllm,1,x,bfloat16,64,2048,1024,8,64,1,1,balanced,0.3\n");
    data_table("rules/neusight/linear.csv.gz", NEUSIGHT "Tesla_P4,nvidia,train,linear,1,58,141,13,0.05,fw\n"
                                                        "Tesla_T4,nvidia,train,linear,1,58,141,13,0.06,fw\n");
    ft_rows all = load("rules", NULL), fitted = load("rules", &(ft_row_filter){.to_fit = true});
    assert_int_equal(8, all.count);
    assert_int_equal(5, fitted.count);
    static const double out[] = {9, 0.1}; /* an accident, too thin a slice */
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) assert_true(row_of(&all, "moe", out[i])->excluded);
    assert_true(row_of(&all, "linear", 0.05)->excluded);
    static const double in[] = {0.2, 0.21, 0.22, 0.3};
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) assert_false(row_of(&all, "moe", in[i])->excluded);
    for (size_t i = 0; i < fitted.count; i++) assert_false(fitted.at[i].excluded);
    ft__rows_free(&all);
    ft__rows_free(&fitted);

    /* A train split that no fit uses is none: about half of the test rows are fitted instead. */
    static char text[100000];
    size_t length = (size_t)snprintf(text, sizeof text, NEUSIGHT);
    for (int i = 0; i < 300; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "Tesla_P4,x,%s,linear,1,64,%d,32,0.05,fw\n",
                                   i % 2 ? "train" : "test", 8 + i);
    data_table("p4/neusight/linear.csv.gz", text);
    all = load("p4", NULL), fitted = load("p4", &(ft_row_filter){.to_fit = true});
    assert_int_equal(300, all.count);
    assert_int_equal(150, fitted.count);
    int held = 0;
    for (size_t i = 0; i < all.count; i++) held += all.at[i].held_out;
    assert_true(held > 50 && held < 100);
    for (size_t i = 0; i < fitted.count; i++) held -= fitted.at[i].held_out;
    assert_int_equal(0, held);
    ft__rows_free(&all);
    ft__rows_free(&fitted);
}

static void groups_spread(void **state)
{
    (void)state;
    assert_int_equal(ft__group3(1, 2, 3), ft__group3(1, 2, 3));
    assert_int_not_equal(ft__group3(1, 2, 3), ft__group3(3, 2, 1));
    int count[4] = {0};
    for (int i = 0; i < 4000; i++) count[ft__group3(i, 64, 0) >> 8 & 3]++;
    for (int i = 0; i < 4; i++) assert_true(count[i] > 800 && count[i] < 1200);
}

static ft_status load_once(void *folder)
{
    const char *folders[] = {folder, folder};
    ft_rows rows;
    ft_status s = ft__rows_load(folders, 2, NULL, &rows, NULL);
    if (s == FT_OK) ft__rows_free(&rows);
    return s;
}

static void running_out_of_memory_is_said(void **state)
{
    (void)state;
    static char path[1024];
    data_table("memory/h200/gemm.csv.gz", GEMM "bf16,nt,64,64,64,0.1,,\n");
    data_table("memory/neusight/softmax.csv.gz", "gpu,split,b,h,latency_ms\nTesla_T4,train,127,168,0.03\n");
    data_table(
        "memory/silicon/gemm/x.csv.gz",
        "gpu,backend,version,kernel_source,dtype,m,n,k,latency_ms\nh100_sxm,trtllm,1,x,bfloat16,64,128,256,0.4\n");
    strcpy(path, scratch_path("memory"));
    assert_true(failing_alloc_sweep(load_once, path) > 20);
}

static void names_of_other_tables_are_gpus_of_the_catalogue(void **state)
{
    (void)state;
    static const char *const called[][2] = {{"neusight", "Tesla_T4"},
                                            {"neusight", "AMD_Instinct_MI250"},
                                            {"silicon", "a100_sxm"},
                                            {"silicon", "rtx_pro_6000_server"}};
    ft_device device;
    const char *gpu = NULL;
    for (size_t i = 0; i < sizeof called / sizeof *called; i++)
        assert_int_equal(FT_OK, ft__catalogue_find(ft__their_gpu(called[i][0], called[i][1]), &device, NULL));
    assert_null(ft__their_gpu("neusight", "a100_sxm"));
    assert_null(ft__their_gpu("silicon", "h100_sxm"));
    assert_string_equal("h200", ft__own_folder(0, &gpu));
    assert_string_equal(ft__measured_gpu(), gpu);
    assert_int_equal(FT_OK, ft__catalogue_find(gpu, &device, NULL));
    assert_null(ft__own_folder(99, &gpu));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neusight_rows_are_eager_calls_with_their_authors_split),
        cmocka_unit_test(tables_of_engines_are_read),
        cmocka_unit_test(rows_left_out_of_fits_are_judged),
        cmocka_unit_test(names_of_other_tables_are_gpus_of_the_catalogue),
        cmocka_unit_test(groups_spread),
        cmocka_unit_test(running_out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
