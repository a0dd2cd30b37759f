/* Measurements as rows: our own files, filters, repeats, what is held out. */
#include "measured_rows.h"

/* -- our own ------------------------------------------------------------------------------------- */

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
    data_table("own/h200/convolution.csv.gz",
               "kind,dtype,layout,pass,benchmark,n,c,k,groups,size,filter,stride,pad,dilation,ms\n"
               "one,bf16,nchw,fwd,0,8,128,256,1,16000,3,1,4,4,0.31\n"
               "three,bf16,nhwc,bwd,0,2,32,64,1,8x28x28,3x3x3,1x2x2,1,1,0.32\n"
               "transposed,bf16,nhwc,input,0,4,64,32,1,16x16,4x4,2,1,1,0.33\n"
               "dense,bf16,nhwc,fwd,1,4,64,32,1,16x16,3x3,1,1,1,0.34\n"
               "depthwise,fp32,nhwc,fwd,0,4,64,64,64,16x16,3x3,1,1,1,0.35\n");
    data_table("own/h200/optimizer.csv",
               "dtype,op,tensors,params,ms\nfp32,adamw_fused,7,7000,0.03\nfp32,nobodys,1,1,1\n");
    data_table("own/h200/quantize.csv.gz",
               "dtype,op,rows,cols,ms\nbf16,row_dynamic,4454,266,0.025\nbf16,nobodys,1,1,1\n");
    data_table("own/h200/moe.csv.gz", "dtype,tokens,topk,experts,hidden,inter,ms\nbf16,64,2,4,2048,1024,0.06\n");
    data_table("own/h200/attention_short.csv.gz",
               "dtype,pass,batch,heads,kv_heads,q_len,kv_len,head_dim,causal,mask,backend,ms\n"
               "bf16,fwd,64,3,3,49,49,32,0,none,picked,0.051\nbf16,fwd,64,3,3,49,49,32,0,keys,picked,0.052\n"
               "bf16,fwd,64,3,3,49,49,32,0,none,flash,0.053\n");
    ft_rows rows = load("own", NULL);
    assert_int_equal(16, rows.count);
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
    assert_int_equal(49, row_of(&rows, "attention", 0.051)->op.u.attention.kv_len);
    assert_int_equal(1000, row_of(&rows, "gelu", 0.003)->op.u.elementwise.numel);
    assert_int_equal(FT_PASS_FWD, row_of(&rows, "softmax", 0.002)->op.pass);
    assert_false(row_of(&rows, "softmax", 0.002)->older);
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
    /* What stands for others: a row of pixels, a clip's depth among channels and images, the way back. Benchmark mode
     * and fp32 filters of one channel are nobody's. */
    op = &row_of(&rows, "conv2d", 0.31)->op;
    assert_true(op->u.conv.dilated == 4 && op->u.conv.space == 1 && op->u.conv.h == 1 && op->u.conv.s == 3);
    assert_int_equal(16002, op->u.conv.w);
    op = &row_of(&rows, "conv2d", 0.32)->op;
    assert_true(op->u.conv.space == 3 && op->u.conv.depth == 3 && op->pass == FT_PASS_BWD && op->u.conv.parts == 0);
    assert_int_equal(2 * 8, op->u.conv.n);
    assert_int_equal(3 * 32, op->u.conv.c);
    assert_int_equal(2, op->u.conv.stride);
    op = &row_of(&rows, "conv2d", 0.33)->op;
    assert_int_equal(FT_CONV_RESULT, op->u.conv.parts);
    assert_true(op->u.conv.c == 32 && op->u.conv.k == 64 && op->pass == FT_PASS_BWD);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_of_ours_is_read),         cmocka_unit_test(a_missing_column_is_named),
        cmocka_unit_test(a_wrong_cell_is_named_with_its_line), cmocka_unit_test(a_truncated_table_is_refused),
        cmocka_unit_test(filters_keep_what_they_are_asked_to), cmocka_unit_test(a_row_in_two_folders_counts_once),
        cmocka_unit_test(one_group_in_ten_is_held_out),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
