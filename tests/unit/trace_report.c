/* What traces show: steps, gaps, exchanges, odd clocks and ids, replays; and real traces of an H200. */
#define _POSIX_C_SOURCE 200809L /* strdup */

#include "trace_made.h"

/* -- steps and gaps ---------------------------------------------------------------------------- */

/* The host is ahead: kernels follow each other, and the second step begins where the first ends. */
static void test_steps(void **state)
{
    (void)state;
    ft_trace_report s;
    begin("NVIDIA H200");
    event("user_annotation", "ProfilerStep#3", 1, 0, 400, "");
    event("user_annotation", "ProfilerStep#4", 1, 400, 3700, "");
    for (int i = 0; i < 8; i++) op_with_kernel("aten::mm", MM, 10 + 100 * i, "nvjet_sm90", 7, 100 + 500 * i, 498);
    seen(&s, NULL, NULL);
    assert_int_equal(s.record.step_count, 2);
    assert_string_equal(s.device.name, "h200_sxm");
    assert_true(s.kernels && s.busy.kernels == 4);
    NEAR(s.busy.step_ms, 2.05, 0.03);
    NEAR(s.busy.busy_ms, 4 * 0.498, 0.01);
    assert_true(s.busy.cause_ms[FT_GAP_BETWEEN] > 0 && s.busy.cause_ms[FT_GAP_LOADER] == 0);
    assert_true(s.busy.share[FT_BOUND_COMPUTE] > 0.9 && s.busy.bound == FT_BOUND_COMPUTE);
    ft__trace_report_free(&s);
}

static void test_loader_and_waits(void **state)
{
    (void)state;
    ft_trace_report s;
    begin("NVIDIA H200");
    event("user_annotation", "ProfilerStep#1", 1, 0, 20000, "");
    event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 5, 9000, "");
    op_with_kernel("aten::mm", MM, 9100, "nvjet_sm90", 7, 9120, 1000);
    event("cpu_op", "aten::item", 1, 9200, 1000, "\"External id\":901");
    event("cuda_runtime", "cudaStreamSynchronize", 1, 9210, 950, "\"correlation\":902");
    op_with_kernel("aten::mm", MM, 15000, "nvjet_sm90", 7, 15020, 4900);
    seen(&s, NULL, NULL);
    assert_true(s.busy.gap_count >= 2);
    assert_int_equal(s.busy.gaps[0].cause, FT_GAP_LOADER);
    assert_non_null(strstr(s.busy.gaps[0].host, "DataLoader"));
    NEAR(s.busy.gaps[0].ms, 9.12, 0.01);
    assert_int_equal(s.busy.gaps[1].cause, FT_GAP_SYNC);
    assert_int_equal(s.busy.sync_count, 1);
    assert_string_equal(s.busy.syncs[0].op, "aten::item");
    assert_int_equal(s.busy.bound, FT_BOUND_OVERHEAD);
    ft__trace_report_free(&s);
}

/* An exchange of 300 us, 100 of them beside a kernel. */
static void test_exchanges(void **state)
{
    (void)state;
    ft_trace_report s;
    begin("NVIDIA H200");
    event("user_annotation", "ProfilerStep#1", 1, 0, 1000, "");
    op_with_kernel("aten::mm", MM, 10, "nvjet_sm90", 7, 40, 460);
    op_with_kernel("nccl:all_reduce", "", 60,
                   "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20, 400, 300);
    seen(&s, NULL, "h100_sxm");
    NEAR(s.busy.exchange_ms, 0.3, 1e-6);
    NEAR(s.busy.exposed_ms, 0.2, 1e-6);
    NEAR(s.busy.share[FT_BOUND_COMMUNICATION], 0.2, 0.01);
    assert_true(s.busy.streams == 2);
    assert_true(s.elsewhere_count == 2 &&
                s.elsewhere[1].guessed > 0.3); /* how long an exchange takes there is a guess */
    ft__trace_report_free(&s);
}

/* -- what is odd ------------------------------------------------------------------------------- */

static bool warned(const ft_trace_report *s, const char *words)
{
    return s->warnings.length && strstr(s->warnings.at, words) != NULL;
}

static void test_odd_clocks(void **state)
{
    (void)state;
    ft_trace_report s;
    begin("NVIDIA H200");
    event("user_annotation", "ProfilerStep#1", 1, 0, 5000, "");
    for (int i = 0; i < 10; i++)
        op_with_kernel("aten::mm", MM, 1000 + 50 * i, "nvjet_sm90", 7, 100 * i, 90); /* before their launch */
    op_with_kernel("aten::mm", MM, 2000, "nvjet_sm90", 7, 2010, -50);
    event("kernel", "gemm", 7, 4e15, 1e13, "\"stream\":7");
    event("cpu_op", "aten::mm", 1, -5, 1e300, "");
    seen(&s, NULL, "a100_sxm_80gb");
    assert_true(warned(&s, "begin before they were launched") && warned(&s, "runs backwards or jumps"));
    assert_true(isfinite(s.busy.step_ms) && s.busy.step_ms > 0 && s.busy.busy_ms <= s.busy.step_ms * 1.0001);
    assert_true(isfinite(s.elsewhere[1].step_ms) && s.elsewhere[1].step_ms > 0);
    ft__trace_report_free(&s);
}

/* Two operators with one id: the launch tells which of them it was. */
static void test_duplicate_ids(void **state)
{
    (void)state;
    ft_trace_report s;
    begin("NVIDIA H200");
    event("user_annotation", "ProfilerStep#1", 1, 0, 1000, "");
    op_with_kernel("aten::mm", MM, 10, "nvjet_sm90", 7, 100, 100);
    next_id = 1;
    op_with_kernel("aten::relu", "\"Input Dims\":[[4096]],\"Input type\":[\"float\"]", 300, "relu_kernel", 7, 330, 10);
    seen(&s, NULL, NULL);
    assert_true(warned(&s, "several operators share"));
    assert_int_equal(s.groups.count, 2);
    for (size_t i = 0; i < s.groups.count; i++) assert_true(s.groups.at[i].calls == 1);
    ft__trace_report_free(&s);
}

static void test_without(void **state)
{
    (void)state;
    ft_trace_report s;
    ft_error err = {0};
    /* no kernels: a forecast from operators, where a GPU is given */
    begin("");
    event("cpu_op", "aten::linear", 1, 0, 50,
          "\"Input Dims\":[[4096,1024],[4096,1024],[4096]],\"Input "
          "type\":[\"c10::BFloat16\",\"c10::BFloat16\",\"c10::BFloat16\"]");
    event("cpu_op", "aten::addmm", 1, 5, 20,
          "\"Input Dims\":[[4096],[4096,1024],[1024,4096],[],[]],\"Input "
          "type\":[\"c10::BFloat16\",\"c10::BFloat16\",\"c10::BFloat16\"]");
    event("cpu_op", "aten::view", 1, 60, 1, "\"Input Dims\":[[4096,4096]],\"Input type\":[\"c10::BFloat16\"]");
    assert_int_equal(look(&s, NULL, NULL, &err), FT_E_MISSING);
    assert_non_null(strstr(err.message, "--gpu"));
    ft__trace_report_free(&s);
    seen(&s, NULL, "h100_sxm");
    assert_true(!s.kernels && warned(&s, "no kernels") && s.groups.count == 1 && s.elsewhere_count == 1);
    assert_true(s.elsewhere[0].busy_ms > 0.04 && s.elsewhere[0].busy_ms < 0.15); /* the one product, once */
    ft__trace_report_free(&s);
    /* autocast calls the product again in another format, behind casts: those count, not the call around them */
    begin("");
    event("cpu_op", "aten::mm", 1, 0, 50,
          "\"Input Dims\":[[4096,4096],[4096,4096]],\"Input type\":[\"float\",\"float\"]");
    event("cpu_op", "aten::_to_copy", 1, 1, 5,
          "\"Input Dims\":[[4096,4096],[]],\"Input type\":[\"float\",\"Scalar\"],\"Concrete Inputs\":[\"\",\"15\"]");
    event("cpu_op", "aten::mm", 1, 10, 20,
          "\"Input Dims\":[[4096,4096],[4096,4096]],\"Input type\":[\"c10::BFloat16\",\"c10::BFloat16\"]");
    seen(&s, NULL, "h100_sxm");
    assert_int_equal(s.groups.count, 2);
    assert_true(s.elsewhere[0].busy_ms > 0.2 && s.elsewhere[0].busy_ms < 0.6); /* in fp32 it would be 2.5 ms */
    ft__trace_report_free(&s);
    /* no ProfilerStep; a GPU that the catalogue lacks */
    begin("Imaginary X9");
    op_with_kernel("aten::mm", MM, 10, "nvjet_sm90", 7, 100, 100);
    seen(&s, NULL, NULL);
    assert_true(!s.device_known && s.record.whole && warned(&s, "no ProfilerStep") && warned(&s, "--on"));
    ft__trace_report_free(&s);
    assert_int_equal(look(&s, NULL, "h100_sxm", &err), FT_E_MISSING);
    ft__trace_report_free(&s);
    seen(&s, "h100_sxm", "a100_sxm_80gb");
    assert_true(s.device_known && s.elsewhere_count == 2);
    ft__trace_report_free(&s);
    assert_int_equal(look(&s, "x", NULL, &err), FT_E_NAME);
    ft__trace_report_free(&s);
    /* nothing at all */
    begin("NVIDIA H200");
    assert_int_equal(look(&s, NULL, NULL, &err), FT_E_MISSING);
    ft__trace_report_free(&s);
    /* kernels without any operator */
    begin("NVIDIA H200");
    event("kernel", "my_kernel", 7, 0, 100, "\"stream\":7");
    event("kernel", "ampere_sgemm_128x64_tn", 7, 150, 100, "\"stream\":7");
    seen(&s, NULL, "a100_sxm_80gb");
    NEAR(s.busy.step_ms, 0.25, 1e-6);
    assert_true(s.elsewhere[1].guessed == 1 && s.elsewhere[1].step_ms > 0.25);
    ft__trace_report_free(&s);
}

static void test_many_threads(void **state)
{
    (void)state;
    ft_trace_report s;
    begin("NVIDIA H200");
    for (int i = 0; i < 100000; i++)
        ft__text_addf(&text,
                      ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"o%d\",\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":5}",
                      i % 1000, i, i);
    op_with_kernel("aten::mm", MM, 10, "nvjet_sm90", 7, 100, 100);
    seen(&s, NULL, NULL);
    assert_int_equal(s.record.op_count, 100001);
    ft__trace_report_free(&s);
    /* one in another, a hundred thousand deep, and as many calls beside them */
    begin("NVIDIA H200");
    for (int i = 0; i < 100000; i++)
        ft__text_addf(&text,
                      ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"o\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d}", i,
                      200000 - 2 * i);
    for (int i = 0; i < 20000; i++)
        ft__text_addf(&text,
                      ",{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"c\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1}",
                      300000 + i);
    op_with_kernel("aten::mm", MM, 400000, "nvjet_sm90", 7, 400100, 100);
    seen(&s, NULL, NULL);
    ft__trace_report_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),        cmocka_unit_test(test_loader_and_waits), cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_odd_clocks),   cmocka_unit_test(test_duplicate_ids),    cmocka_unit_test(test_without),
        cmocka_unit_test(test_many_threads),
    };
    return cmocka_run_group_tests(tests, open_predictor, clean);
}
