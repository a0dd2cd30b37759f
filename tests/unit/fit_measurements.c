/* The readers of measured rows, each form on a few lines of its own kind, and what they say of lines that are wrong. */
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
#include "device/gpu.h"
#include "failing_alloc.h"
#include "fit/fit.h"
#include "fit/measurements.h"
#include "graph/operator.h"
#include "scratch.h"

static ft_rows load(const char *folder, const ft_row_filter *filter)
{
    char path[1024];
    const char *folders[] = {path};
    ft_rows rows;
    ft_error err = {0};
    strcpy(path, scratch_path(folder));
    if (ft__rows_load(folders, 1, filter, &rows, &err) != FT_OK)
        fail_msg("%s:%d: %s", err.where, err.line, err.message);
    return rows;
}

/* The folder is refused with this code, at this line of this file, for this reason. */
static void refused(const char *folder, ft_status code, const char *file, int line, const char *why)
{
    char path[1024];
    const char *folders[] = {path};
    ft_rows rows;
    ft_error err = {0};
    strcpy(path, scratch_path(folder));
    ft_status s = ft__rows_load(folders, 1, NULL, &rows, &err);
    if (s != code) fail_msg("%s: %s, expected %s: %s", folder, ft_status_name(s), ft_status_name(code), err.message);
    assert_int_equal(0, rows.count);
    assert_null(rows.at);
    assert_string_equal(scratch_path(file), err.where);
    assert_int_equal(line, err.line);
    if (!strstr(err.message, why)) fail_msg("expected \"%s\" in \"%s\"", why, err.message);
}

#define GEMM "dtype,layout,m,n,k,ms,ms_min,ms_max\n"

/* -- our own ------------------------------------------------------------------------------------- */

static const ft_row *row_of(const ft_rows *rows, const char *name, double ms)
{
    for (size_t i = 0; i < rows->count; i++)
        if (!strcmp(rows->at[i].op.name, name) && fabs(rows->at[i].ms - ms) < 1e-12) return &rows->at[i];
    fail_msg("no row of %s with %g ms", name, ms);
    return NULL;
}

static void every_table_of_ours_is_read(void **state)
{
    (void)state;
    data_table("own/h200/gemm.csv.gz",
               GEMM "bf16,tn,256,18944,11008,0.147,0.146,0.148\nfp8,nt,1,2,3,0.004,0.004,0.004\n");
    data_table("own/h200/bmm.csv.gz", "dtype,layout,b,m,n,k,ms\nfp16,nn,12,512,256,64,0.005\n");
    data_table(
        "own/h200/attention.csv.gz",
        "dtype,pass,batch,heads,kv_heads,q_len,kv_len,head_dim,causal,ms\nbf16,fwd_bwd,16,24,8,1024,2048,64,1,0.15\n"
        "bf16,fwd,2,8,8,1,4096,128,0,0.02\n");
    data_table("own/h200/elementwise.csv.gz",
               "dtype,op,inputs,numel,ms\nfp32,gelu,1,1000,0.003\nbf16,nobodys,1,1000,0.003\n");
    data_table("own/h200/rowwise.csv.gz", "dtype,op,rows,cols,ms\nbf16,softmax,17,2810,0.002\nfp32,layernorm_backward,"
                                          "128,64,0.006\nfp32,nobodys,1,1,1\n");
    data_table("own/h200/conv.csv.gz",
               "dtype,layout,pass,n,c,h,w,k,r,s,stride,pad,ms\ntf32,nchw,bwd,8,64,14,28,256,3,1,2,0,0.4\n");
    data_table("own/h200/optimizer.csv",
               "dtype,op,tensors,params,ms\nfp32,adamw_fused,7,7000,0.03\nfp32,nobodys,1,1,1\n");
    data_table("own/h200/quantize.csv.gz",
               "dtype,op,rows,cols,ms\nbf16,row_dynamic,4454,266,0.025\nbf16,nobodys,1,1,1\n");
    data_table("own/h200/moe.csv.gz", "dtype,tokens,topk,experts,hidden,inter,ms\nbf16,64,2,4,2048,1024,0.06\n");
    ft_rows rows = load("own", NULL);
    assert_int_equal(12, rows.count);
    assert_int_equal(1, rows.gpu_count);
    assert_string_equal("h200_sxm", rows.gpus[0].name);
    for (size_t i = 0; i < rows.count; i++) {
        assert_int_equal(FT_ROWS_OWN, rows.at[i].source);
        assert_int_equal(FT_TIMING_DEVICE, rows.at[i].op.timing);
        assert_true(rows.at[i].weight > 0);
    }
    const ft_op *op = &row_of(&rows, "gemm", 0.147)->op;
    assert_int_equal(FT_BF16, op->dtype);
    assert_int_equal(256, op->u.gemm.m);
    assert_int_equal(18944, op->u.gemm.n);
    assert_int_equal(11008, op->u.gemm.k);
    assert_int_equal(1, op->u.gemm.b);
    assert_int_equal(1, op->u.gemm.quantized);
    assert_string_equal("tn", op->u.gemm.layout);
    op = &row_of(&rows, "bmm", 0.005)->op;
    assert_int_equal(12, op->u.gemm.b);
    assert_int_equal(256, op->u.gemm.n);
    op = &row_of(&rows, "attention", 0.15)->op;
    assert_int_equal(FT_PASS_FWD_BWD, op->pass);
    assert_int_equal(8, op->u.attention.kv_heads);
    assert_int_equal(2048, op->u.attention.kv_len);
    assert_true(op->u.attention.causal);
    assert_int_equal(FT_ENGINE_BARE, op->engine);
    assert_false(row_of(&rows, "attention", 0.02)->op.u.attention.causal);
    assert_int_equal(1000, row_of(&rows, "gelu", 0.003)->op.u.elementwise.numel);
    assert_int_equal(FT_PASS_FWD, row_of(&rows, "softmax", 0.002)->op.pass);
    op = &row_of(&rows, "layernorm", 0.006)->op;
    assert_int_equal(FT_PASS_BWD, op->pass);
    assert_int_equal(128, op->u.row.rows);
    op = &row_of(&rows, "conv2d", 0.4)->op;
    assert_false(op->u.conv.nhwc);
    assert_int_equal(FT_PASS_BWD, op->pass);
    assert_int_equal(28, op->u.conv.w);
    assert_int_equal(3, op->u.conv.r);
    assert_int_equal(1, op->u.conv.s);
    assert_int_equal(2, op->u.conv.stride);
    assert_int_equal(7, row_of(&rows, "adamw_fused", 0.03)->op.u.optimizer.tensors);
    assert_int_equal(266, row_of(&rows, "quantize_rows", 0.025)->op.u.quantize.cols);
    op = &row_of(&rows, "moe", 0.06)->op;
    assert_int_equal(2048, op->u.moe.hidden);
    assert_int_equal(1024, op->u.moe.inter);
    ft__rows_free(&rows);
}

static void a_missing_column_is_named(void **state)
{
    (void)state;
    data_table("column/h200/gemm.csv.gz", "dtype,layout,m,n,kk,ms\nbf16,nt,1,2,3,0.1\n");
    refused("column", FT_E_MISSING, "column/h200/gemm.csv.gz", 1, "column \"k\" is missing; the nearest is \"kk\"");
    data_table("time/h200/gemm.csv.gz", "dtype,layout,m,n,k,seconds\nbf16,nt,1,2,3,0.1\n");
    refused("time", FT_E_MISSING, "time/h200/gemm.csv.gz", 1, "column \"ms\" is missing");
    data_table("format/h200/gemm.csv.gz", "layout,m,n,k,ms\nnt,1,2,3,0.1\n");
    refused("format", FT_E_MISSING, "format/h200/gemm.csv.gz", 1, "column \"dtype\" is missing");
}

static void a_wrong_cell_is_named_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        ft_status code;
        const char *why;
    } cases[] = {
        {"bf16,nt,12x,2,3,0.1,,\n", FT_E_SYNTAX, "12x"},
        {"bf16,nt,1.5,2,3,0.1,,\n", FT_E_SYNTAX, "1.5"},
        {"bf16,nt,,2,3,0.1,,\n", FT_E_SYNTAX, "\"m\""},
        {"bf16,nt,1,2,3,fast,,\n", FT_E_SYNTAX, "fast"},
        {"bf16,nt,1,2,3,nan,,\n", FT_E_SYNTAX, "nan"},
        {"bf16,nt,1,2,3,0,,\n", FT_E_RANGE, "a time of 0 ms"},
        {"bf16,nt,1,2,3,-0.5,,\n", FT_E_RANGE, "a time of -0.5 ms"},
        {"bf17,nt,1,2,3,0.1,,\n", FT_E_NAME, "unknown dtype \"bf17\""},
        {"bf16,nt,0,2,3,0.1,,\n", FT_E_RANGE, "\"m\" must be a whole number from 1 to 2^40, got 0"},
        {"bf16,nt,1,-2,3,0.1,,\n", FT_E_RANGE, "column \"n\" must hold a whole number from 0 to 2^40, got -2"},
        {"bf16,nt,1,2,4611686018427387904,0.1,,\n", FT_E_RANGE, "column \"k\" must hold a whole number"},
        {"bf16,nt,1000000000,1000000000,3,0.1,,\n", FT_E_RANGE, "more than 1e15"},
        {"bf16,xy,1,2,3,0.1,,\n", FT_E_NAME, "\"layout\" must be nn, nt, tn or tt"},
        {"fp4,nt,1,2,3,0.1,,\n", FT_E_UNSUPPORTED, "h200_sxm has no fp4"},
        {"bf16,nt,1,2,3\n", FT_E_SYNTAX, "5 cells where the header has 8"},
        {"bf16,nt,\"1,2,3,0.1,,\n", FT_E_SYNTAX, "never closed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, GEMM "bf16,nt,64,64,64,0.1,,\n%s", cases[i].row);
        data_table("cell/h200/gemm.csv.gz", text);
        refused("cell", cases[i].code, "cell/h200/gemm.csv.gz", 3, cases[i].why);
    }
}

static void a_truncated_table_is_refused(void **state)
{
    (void)state;
    char text[8000] = GEMM, whole[8000];
    for (int i = 0; i < 200; i++)
        snprintf(text + strlen(text), 64, "bf16,nt,%d,%d,64,0.%d,,\n", i + 1, 7 * i + 1, i + 1);
    data_table("cut/h200/gemm.csv.gz", text);
    FILE *file = fopen(scratch_path("cut/h200/gemm.csv.gz"), "rb");
    assert_non_null(file);
    size_t length = fread(whole, 1, sizeof whole, file);
    fclose(file);
    assert_true(length > 200);
    ft_rows rows = load("cut", NULL);
    assert_int_equal(200, rows.count);
    ft__rows_free(&rows);
    scratch_file("cut/h200/gemm.csv.gz", whole, length / 2);
    refused("cut", FT_E_FORMAT, "cut/h200/gemm.csv.gz", 0, "is a truncated gzip file");
    whole[length / 2] ^= 0x40;
    scratch_file("cut/h200/gemm.csv.gz", whole, length);
    char path[1024];
    const char *folders[] = {path};
    strcpy(path, scratch_path("cut"));
    assert_int_not_equal(FT_OK, ft__rows_load(folders, 1, NULL, &rows, NULL));
    scratch_file("cut/h200/gemm.csv.gz", "", 0);
    refused("cut", FT_E_FORMAT, "cut/h200/gemm.csv.gz", 0, "is empty");
}

/* -- filters, repeats, what is held out ---------------------------------------------------------- */

static bool only_large(void *context, const ft_op *op)
{
    ++*(int *)context;
    return op->kind == FT_OP_GEMM && op->u.gemm.m >= 100;
}

static void filters_keep_what_they_are_asked_to(void **state)
{
    (void)state;
    data_table("filter/h200/gemm.csv.gz",
               GEMM "bf16,nt,64,64,64,0.1,,\nbf16,nt,128,64,64,0.2,,\nbf16,nt,256,64,64,0.3,,\n");
    data_table("filter/silicon/gemm/all.csv.gz",
               "gpu,backend,version,kernel_source,dtype,m,n,k,latency_ms\n"
               "h100_sxm,trtllm,1,x,bfloat16,64,64,64,0.4\nl40s,trtllm,1,x,bfloat16,64,64,64,0.5\n");
    ft_rows rows = load("filter", NULL);
    assert_int_equal(5, rows.count);
    assert_int_equal(3, rows.gpu_count);
    ft__rows_free(&rows);

    static const char *const two[] = {"h200_sxm", "l40s"};
    rows = load("filter", &(ft_row_filter){.exclude_gpus = two, .exclude_count = 2});
    assert_int_equal(1, rows.count);
    assert_string_equal("h100_sxm", rows.gpus[rows.at[0].gpu].name);
    ft__rows_free(&rows);
    rows = load("filter", &(ft_row_filter){.only_gpus = two, .only_count = 2});
    assert_int_equal(4, rows.count);
    ft__rows_free(&rows);
    rows = load("filter", &(ft_row_filter){.only_gpus = two, .only_count = 2, .exclude_gpus = two, .exclude_count = 1});
    assert_int_equal(1, rows.count);
    assert_string_equal("l40s", rows.gpus[rows.at[0].gpu].name);
    ft__rows_free(&rows);
    int asked = 0;
    rows = load("filter", &(ft_row_filter){.wanted = only_large, .wanted_context = &asked});
    assert_int_equal(2, rows.count);
    assert_int_equal(5, asked);
    assert_int_equal(1, rows.gpu_count); /* a GPU of which no row was taken does not appear */
    ft__rows_free(&rows);

    char path[1024];
    const char *folders[] = {path};
    ft_error err = {0};
    static const char *const all[] = {"h200_sxm", "l40s", "h100_sxm"};
    strcpy(path, scratch_path("filter"));
    assert_int_equal(FT_E_FILE,
                     ft__rows_load(folders, 1, &(ft_row_filter){.exclude_gpus = all, .exclude_count = 3}, &rows, &err));
    assert_non_null(strstr(err.message, "no measurements here"));
    strcpy(path, scratch_path("nowhere"));
    assert_int_equal(FT_E_FILE, ft__rows_load(folders, 1, NULL, &rows, &err));
    assert_string_equal(path, err.where);
}

static void a_row_in_two_folders_counts_once(void **state)
{
    (void)state;
    data_table("one/h200/gemm.csv.gz",
               GEMM "bf16,nt,64,64,64,0.1,,\nbf16,nt,128,64,64,0.2,,\nfp16,nt,64,64,64,0.1,,\n");
    data_table("two/h200/gemm.csv.gz",
               GEMM "bf16,nt,128,64,64,0.2,,\nbf16,nt,64,64,64,0.11,,\nbf16,nt,64,64,64,0.1,,\n");
    char one[1024], two[1024];
    strcpy(one, scratch_path("one"));
    strcpy(two, scratch_path("two"));
    const char *folders[] = {one, two, one};
    ft_rows rows;
    assert_int_equal(FT_OK, ft__rows_load(folders, 3, NULL, &rows, NULL));
    assert_int_equal(4, rows.count); /* another time, another format: another measurement */
    assert_true(fabs(rows.at[0].ms - 0.1) < 1e-12 && fabs(rows.at[3].ms - 0.11) < 1e-12);
    ft__rows_free(&rows);
}

/* By a hash of the shape: one group in ten, whole groups, the same ones always. */
static void one_group_in_ten_is_held_out(void **state)
{
    (void)state;
    enum { GROUPS = 400 };
    static char text[200000];
    size_t length = 0;
    length += (size_t)snprintf(text, sizeof text, GEMM);
    for (int g = 0; g < GROUPS; g++)
        for (int m = 1; m <= 3; m++)
            length += (size_t)snprintf(text + length, sizeof text - length, "bf16,nt,%d,%d,%d,0.%d,,\n", 64 * m, 8 + g,
                                       16 * (1 + g % 7), g + 1);
    data_table("held/h200/gemm.csv.gz", text);
    ft_rows rows = load("held", NULL), again = load("held", NULL);
    assert_int_equal(3 * GROUPS, rows.count);
    int held = 0;
    for (size_t i = 0; i < rows.count; i++) {
        const ft_row *first = &rows.at[i - i % 3];
        assert_int_equal(first->group, rows.at[i].group); /* (n, k) is the group, whatever m */
        assert_int_equal(first->held_out, rows.at[i].held_out);
        assert_int_equal(rows.at[i].held_out, again.at[i].held_out);
        held += rows.at[i].held_out;
    }
    assert_true(held > 3 * GROUPS / 20 && held < 3 * GROUPS / 5);
    ft__rows_free(&rows);
    ft__rows_free(&again);
}

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
        cmocka_unit_test(every_table_of_ours_is_read),
        cmocka_unit_test(a_missing_column_is_named),
        cmocka_unit_test(a_wrong_cell_is_named_with_its_line),
        cmocka_unit_test(a_truncated_table_is_refused),
        cmocka_unit_test(filters_keep_what_they_are_asked_to),
        cmocka_unit_test(a_row_in_two_folders_counts_once),
        cmocka_unit_test(one_group_in_ten_is_held_out),
        cmocka_unit_test(neusight_rows_are_eager_calls_with_their_authors_split),
        cmocka_unit_test(tables_of_engines_are_read),
        cmocka_unit_test(rows_left_out_of_fits_are_judged),
        cmocka_unit_test(names_of_other_tables_are_gpus_of_the_catalogue),
        cmocka_unit_test(groups_spread),
        cmocka_unit_test(running_out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
