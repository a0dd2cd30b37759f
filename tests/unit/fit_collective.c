/* Reading nccl-tests and engines' all-reduces. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data_folder.h"
#include "fit/measurements.h"

static const char nccl[] = "gpu,backend,version,kernel_source,op_name,dtype,num_gpus,message_elems,latency_ms\n"
                           "h100_sxm,nccl,2.27.3,NCCL,alltoall,half,8,4096,0.0075\n"
                           "h100_sxm,nccl,2.27.3,NCCL,alltoall,int8,8,8192,0.0076\n"
                           "h100_sxm,nccl,2.29.2,NCCL,alltoall,half,8,4096,0.0150\n"
                           "a100_sxm,nccl,2.27.3,NCCL,all_reduce,half,2,512,0.0100\n"
                           "l40s,nccl,2.27.3,NCCL,all_gather,half,4,512,0.0090\n"
                           "l40s,nccl,2.27.3,NCCL,all_gather,half,4,512,0\n"
                           "h100_sxm,nccl,2.23,NCCL,alltoall,half,8,4096,0.0150\n"
                           "h100_sxm,nccl,2.27.3,NCCL,all_reduce,half,8,4096,0.0160\n"
                           "h100_sxm,nccl,2.27.3,NCCL,all_reduce,int8,8,8192,0.0200\n"
                           "h100_sxm,nccl,2.27.3,NCCL,gossip,half,8,4096,0.0075\n";

static ft_status load(const char *folder, ft_rows *rows, ft_error *err)
{
    const char *path = scratch_path(folder);
    return ft__rows_load(&path, 1, NULL, rows, err);
}

static void rows_become_operators(void **state)
{
    (void)state;
    ft_rows rows;
    data_table("a/silicon/nccl.csv.gz", nccl);
    assert_int_equal(FT_OK, load("a", &rows, NULL));
    assert_int_equal(8, rows.count);
    const ft_op *op = &rows.at[0].op;
    assert_int_equal(FT_OP_COLLECTIVE, op->kind);
    assert_int_equal(FT_COLLECTIVE_ALL_TO_ALL, op->u.collective.op);
    assert_float_equal(8192, op->u.collective.bytes, 0);
    assert_float_equal(450, op->u.collective.link_gbps, 0);
    assert_true(op->u.collective.switched && op->u.collective.reduces && !op->u.collective.pcie);
    assert_string_equal("a100_sxm_80gb", rows.gpus[rows.at[3].gpu].name);
    assert_false(rows.at[3].op.u.collective.reduces);
    assert_true(rows.at[4].op.u.collective.pcie);
    assert_int_equal(227, op->u.collective.nccl);
    assert_int_equal(223, rows.at[5].op.u.collective.nccl);
    assert_int_equal(FT_BF16, rows.at[6].op.dtype);
    assert_int_equal(FT_INT8, rows.at[7].op.dtype);
    ft__rows_free(&rows);
}

/* Two of three say 7.5 us: the third counts little. */
static void a_row_far_from_its_repeats_counts_little(void **state)
{
    (void)state;
    ft_rows rows;
    data_table("b/silicon/nccl.csv.gz", nccl);
    assert_int_equal(FT_OK, load("b", &rows, NULL));
    assert_true(rows.at[0].weight > 0.8f && rows.at[1].weight > 0.8f);
    assert_true(rows.at[2].weight > 0 && rows.at[2].weight < 0.05f);
    assert_float_equal(1, rows.at[3].weight, 1e-6);
    /* Another old version, other numbers to add: other requests. */
    for (int i = 5; i < 8; i++) assert_float_equal(1, rows.at[i].weight, 1e-6);
    ft__rows_free(&rows);
}

static void eager_rows_of_engines_are_left_out(void **state)
{
    (void)state;
    ft_rows rows;
    data_table("c/silicon/custom_allreduce.csv.gz",
               "gpu,backend,version,kernel_source,dtype,num_gpus,message_elems,impl,graph_backend,latency_ms\n"
               "h100_sxm,sglang,0.5,SGLang_CustomAllReduce_eager,bfloat16,2,128,,e,0.04\n"
               "h100_sxm,sglang,0.5,SGLang_CustomAllReduce_graph,bfloat16,2,128,,g,0.005\n"
               "h100_sxm,vllm,0.9,vLLM_custom_graph,bfloat16,2,128,,g,0.005\n"
               "h100_sxm,trtllm,1.0,TRTLLM,bfloat16,2,128,,,0.005\n");
    assert_int_equal(FT_OK, load("c", &rows, NULL));
    assert_int_equal(3, rows.count);
    assert_int_equal(FT_ENGINE_SGLANG, rows.at[0].op.engine);
    assert_int_equal(FT_ENGINE_VLLM, rows.at[1].op.engine);
    assert_int_equal(FT_ENGINE_TRTLLM, rows.at[2].op.engine);
    ft__rows_free(&rows);
}

static void a_bad_table_is_refused_with_its_line(void **state)
{
    (void)state;
    ft_rows rows;
    ft_error err;
    data_table("d/silicon/nccl.csv.gz", "gpu,op_name,dtype,num_gpus,message_elems,latency_ms\n"
                                        "h100_sxm,all_reduce,half,2,512,0.006\n"
                                        "h100_sxm,all_reduce,half,two,512,0.006\n");
    assert_int_not_equal(FT_OK, load("d", &rows, &err));
    assert_int_equal(3, err.line);
    data_table("e/silicon/nccl.csv.gz", "gpu,op_name,dtype,num_gpus,latency_ms\nh100_sxm,all_reduce,half,2,0.006\n");
    assert_int_equal(FT_E_MISSING, load("e", &rows, &err));
    assert_non_null(strstr(err.message, "message_elems"));
    data_table("f/silicon/nccl.csv.gz", "gpu,op_name,dtype,num_gpus,message_elems,latency_ms\n"
                                        "h1000,all_reduce,half,2,512,0.006\n");
    assert_int_equal(FT_E_NAME, load("f", &rows, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_operators),
        cmocka_unit_test(a_row_far_from_its_repeats_counts_little),
        cmocka_unit_test(eager_rows_of_engines_are_left_out),
        cmocka_unit_test(a_bad_table_is_refused_with_its_line),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
