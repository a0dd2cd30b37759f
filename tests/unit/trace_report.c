/* What traces show: steps, gaps, exchanges, odd clocks and ids, replays; and real traces of an H200. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "failing_alloc.h"
#include "kernel/predictor.h"
#include "trace/report.h"

static ft_predictor *predictor;

static int open_predictor(void **state)
{
    (void)state;
    return ft__predictor_open(NULL, &predictor, NULL) == FT_OK ? 0 : -1;
}

static int close_predictor(void **state)
{
    (void)state;
    ft__predictor_close(predictor);
    return 0;
}

/* -- writing traces ---------------------------------------------------------------------------- */

static ft_text text;
static int next_id;

static void begin(const char *gpu)
{
    ft__text_clear(&text);
    next_id = 1;
    ft__text_addf(&text,
                  "{\"deviceProperties\":[{\"id\":0,\"name\":\"%s\",\"numSms\":132,\"totalGlobalMem\":150109880320}],"
                  "\"traceEvents\":[{}",
                  gpu);
}

static void event(const char *cat, const char *name, int tid, double ts, double dur, const char *args)
{
    ft__text_addf(
        &text,
        ",{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{%s}}",
        cat, name, tid, ts, dur, args);
}

#define MM                                                                                   \
    "\"Input Dims\":[[2048,2048],[2048,2048]],\"Input type\":[\"float\",\"float\"],\"Input " \
    "Strides\":[[2048,1],[2048,1]]"

/* An operator of 30 us at `host`, its launch, and a kernel from `start`; times in us. */
static void op_with_kernel(const char *op, const char *inputs, double host, const char *kernel, int stream,
                           double start, double length)
{
    char args[400];
    int id = next_id++;
    snprintf(args, sizeof args, "\"External id\":%d%s%s", id, *inputs ? "," : "", inputs);
    event("cpu_op", op, 1, host, 30, args);
    snprintf(args, sizeof args, "\"External id\":%d,\"correlation\":%d", id, id);
    event("cuda_runtime", "cudaLaunchKernel", 1, host + 10, 5, args);
    snprintf(args, sizeof args, "\"External id\":%d,\"correlation\":%d,\"stream\":%d,\"device\":0", id, id, stream);
    event("kernel", kernel, stream, start, length, args);
}

static ft_status look(ft_trace_report *s, const char *on, const char *gpu, ft_error *err)
{
    ft_slices *from;
    ft_text whole = {0};
    ft__text_add(&whole, text.at);
    ft__text_add(&whole, "]}");
    ft_status status = ft__slices_of(whole.at, whole.length, &from, err);
    if (status == FT_OK) {
        status = ft__trace_report_of(from, predictor, on, gpu ? &gpu : NULL, gpu != NULL, 0.9, NULL, s, err);
        ft__slices_close(from);
    } else {
        memset(s, 0, sizeof *s);
    }
    ft__text_free(&whole);
    return status;
}

static void seen(ft_trace_report *s, const char *on, const char *gpu)
{
    ft_error err = {0};
    if (look(s, on, gpu, &err) != FT_OK) fail_msg("%s", err.message);
}

static void near(double a, double b, double share, int line)
{
    if (!(fabs(a - b) <= share * fabs(b))) fail_msg("line %d: %g instead of %g", line, a, b);
}
#define NEAR(a, b, share) near(a, b, share, __LINE__)

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
    assert_true(warned(&s, "several operators have"));
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

/* -- replays ----------------------------------------------------------------------------------- */

static double on_host(const ft_trace_report *s, double factor, double host)
{
    ft_replayed out;
    double *scale = malloc((s->groups.count + 1) * sizeof *scale);
    for (size_t i = 0; i < s->groups.count; i++) scale[i] = factor;
    assert_int_equal(ft__replay(&s->record, scale, host, 0, &out, NULL), FT_OK);
    free(scale);
    return out.step_ms;
}

static double replayed(const ft_trace_report *s, double factor) { return on_host(s, factor, 1); }

static void test_replay(void **state)
{
    (void)state;
    ft_trace_report s;
    /* the GPU sets the pace: twice as long kernels make a step of twice the length */
    begin("NVIDIA H200");
    for (int n = 0; n < 3; n++) {
        event("user_annotation", "ProfilerStep#1", 1, 1000 * n, 1000, "");
        for (int i = 0; i < 10; i++)
            op_with_kernel("aten::mm", MM, 1000 * n + 10 + 40 * i, "nvjet_sm90", 7, 5000.0 * n + 500 * i + 50, 500);
    }
    seen(&s, NULL, NULL);
    NEAR(replayed(&s, 1), s.busy.step_ms, 0.001);
    NEAR(replayed(&s, 2), 2 * s.busy.step_ms, 0.02);
    NEAR(replayed(&s, 0.5), 0.5 * s.busy.step_ms, 0.05);
    NEAR(on_host(&s, 1, 1.4), s.busy.step_ms, 0.02); /* a slower host hides behind it */
    ft__trace_report_free(&s);
    /* the host does: shorter kernels change nothing, ten times longer ones do */
    begin("NVIDIA H200");
    for (int n = 0; n < 3; n++) {
        event("user_annotation", "ProfilerStep#1", 1, 2000 * n, 2000, "");
        for (int i = 0; i < 10; i++)
            op_with_kernel("aten::mm", MM, 2000 * n + 200 * i, "nvjet_sm90", 7, 2000 * n + 200 * i + 20, 50);
    }
    seen(&s, NULL, NULL);
    NEAR(replayed(&s, 1), 2, 0.05);
    NEAR(replayed(&s, 0.1), 2, 0.05);
    NEAR(replayed(&s, 10), 5, 0.05);
    NEAR(on_host(&s, 1, 1.5), 3, 0.05);
    NEAR(on_host(&s, 1, 0.5), 1, 0.1);
    ft__trace_report_free(&s);
}

/* -- GPUs -------------------------------------------------------------------------------------- */

static void test_gpu_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int sms;
        double gib;
        const char *found;
    } cases[] = {
        {"NVIDIA H200", 132, 139.8, "h200_sxm"},
        {"NVIDIA H100 80GB HBM3", 132, 79.1, "h100_sxm"},
        {"NVIDIA H100 PCIe", 114, 79.1, "h100_pcie"},
        {"NVIDIA A100-SXM4-40GB", 108, 39.4, "a100_sxm_40gb"},
        {"NVIDIA A100-SXM4-80GB", 108, 79.2, "a100_sxm_80gb"},
        {"NVIDIA A100-PCIE-40GB", 108, 39.4, "a100_pcie_40gb"},
        {"NVIDIA A100 80GB PCIe", 108, 79.2, "a100_pcie_80gb"},
        {"Tesla V100-SXM2-16GB", 80, 15.8, "v100_sxm_16gb"},
        {"Tesla T4", 40, 14.6, "t4"},
        {"NVIDIA L40S", 142, 44.5, "l40s"},
        {"AMD Instinct MI300X", 304, 192, "mi300x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_record r = {.gpu_sms = cases[i].sms, .gpu_memory_bytes = cases[i].gib * 1073741824};
        ft_device d;
        char note[200];
        snprintf(r.gpu_name, sizeof r.gpu_name, "%s", cases[i].name);
        if (!ft__find_recorded(&r, &d, note) || strcmp(d.name, cases[i].found) != 0)
            fail_msg("%s: expected %s, got %s %s", cases[i].name, cases[i].found, d.name, note);
    }
    ft_record r = {.gpu_name = "Voodoo 3"};
    ft_device d;
    char note[200];
    assert_false(ft__find_recorded(&r, &d, note));
    assert_non_null(strstr(note, "Voodoo 3"));
}

/* -- real traces ------------------------------------------------------------------------------- */

static void recorded(const char *name, ft_trace_report *s, const char *gpu)
{
    char path[600];
    ft_slices *from;
    ft_error err = {0};
    snprintf(path, sizeof path, "%s/tests/data/traces/%s.json.gz", getenv("FORETELL_SOURCE_ROOT"), name);
    if (ft__slices_open(path, &from, &err) != FT_OK ||
        ft__trace_report_of(from, predictor, NULL, gpu ? &gpu : NULL, gpu != NULL, 0.9, NULL, s, &err) != FT_OK)
        fail_msg("%s: %s", path, err.message);
    ft__slices_close(from);
}

/* Steps of an H200 that the GPU sets the pace of, from the shapes alone. The reach is 4 % in the mean of many;
 * without the profiler the first took 3 % less, and the compiled one ran at a lower clock in the recording than
 * before and after it. */
static void test_recorded(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double error;
    } cases[] = {{"small_gpt2_train", 0.05},
                 {"small_vit_infer", 0.04},
                 {"small_gpt2_fp32", 0.07},
                 {"small_llama_compile", 0.12}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_trace_report s;
        recorded(cases[i].name, &s, NULL);
        assert_int_equal(s.record.step_count, 2);
        assert_true(s.elsewhere_count == 1 && s.elsewhere[0].here && s.elsewhere[0].guessed < 0.01);
        double error = s.elsewhere[0].step_ms / s.busy.step_ms - 1;
        if (!(fabs(error) < cases[i].error)) fail_msg("%s: %+.1f %%", cases[i].name, 100 * error);
        assert_true(s.elsewhere[0].low_ms <= s.busy.step_ms && s.busy.step_ms <= s.elsewhere[0].high_ms);
        ft__trace_report_free(&s);
    }
}

static void test_recorded_verdicts(void **state)
{
    (void)state;
    ft_trace_report s;
    recorded("small_gpt2_fp32", &s, NULL); /* TF32 off: products run without tensor cores, and why is said */
    assert_true(s.tensor_ms < 0.05 * s.product_ms && s.product_ms > 20);
    bool said = false;
    for (size_t i = 0; i < s.groups.count; i++)
        said |= s.against[i].why && strstr(s.against[i].why, "TF32") &&
                s.against[i].could_ms < 0.45 * s.against[i].ms && s.against[i].ms > 3;
    assert_true(said);
    ft__trace_report_free(&s);
    recorded("small_gpt2_train", &s, NULL); /* 50257 columns */
    assert_true(s.tensor_ms > 0.95 * s.product_ms && s.unaligned_ms > 10);
    assert_string_equal(s.busy.syncs[0].op, "aten::item");
    ft__trace_report_free(&s);
    recorded("small_llama_decode", &s, "a100_sxm_80gb"); /* the host sets the pace, here and there */
    assert_true(s.busy.bound == FT_BOUND_OVERHEAD && s.busy.idle_ms > 0.6 * s.busy.step_ms);
    assert_true(s.bare_ms > 0.6 * s.busy.step_ms && s.bare_ms < 0.9 * s.busy.step_ms);
    NEAR(s.elsewhere[1].step_ms, s.busy.step_ms, 0.1);
    assert_true(s.elsewhere[1].low_ms < 0.8 * s.elsewhere[1].step_ms); /* the host there is another one */
    assert_true(s.elsewhere[1].high_ms > 1.3 * s.elsewhere[1].step_ms);
    assert_true(s.elsewhere[0].high_ms < 1.2 * s.elsewhere[0].step_ms); /* here it is the one that was recorded */
    assert_true(s.elsewhere[1].busy_ms > 1.5 * s.busy.busy_ms);
    ft__trace_report_free(&s);
    recorded("small_gpt2_train", &s, "t4"); /* bf16 runs as another format there, many times as long */
    assert_true(s.elsewhere[1].instead && s.elsewhere[1].step_ms > 5 * s.busy.step_ms);
    ft__trace_report_free(&s);
}

/* -- memory ------------------------------------------------------------------------------------ */

static ft_status attempt(void *context)
{
    ft_trace_report s;
    ft_slices *from;
    const char *gpu = "a100_sxm_80gb";
    ft_status status = ft__slices_of(context, strlen(context), &from, NULL);
    if (status != FT_OK) return status;
    status = ft__trace_report_of(from, predictor, "h200_sxm", &gpu, 1, 0.9, NULL, &s, NULL);
    ft__trace_report_free(&s);
    ft__slices_close(from);
    return status;
}

#define SMALL "\"Input Dims\":[[64],[64]],\"Input type\":[\"float\",\"float\"]"

/* Operators alone: the host of an eager step issues them, and with small ones it sets the pace. */
static void test_pace(void **state)
{
    (void)state;
    ft_trace_report s;
    double alone[2];
    for (int backward = 0; backward < 2; backward++) { /* gradients are recorded in the one, called in the other */
        begin("");
        for (int i = 0; i < 100; i++) event("cpu_op", "aten::add", backward && i >= 50 ? 2 : 1, 10 * i, 5, SMALL);
        for (int i = 0; i < 20; i++) event("cpu_op", "aten::view", 1, 2000 + 10 * i, 5, SMALL);
        seen(&s, NULL, "h200_sxm");
        const ft_elsewhere *e = &s.elsewhere[0];
        assert_true(e->busy_ms > 0.1 && e->busy_ms < 0.5 && e->host_ms > 5 * e->busy_ms);
        assert_true(e->step_ms >= e->host_ms && e->step_ms < 1.2 * e->host_ms);
        assert_true(e->low_ms < e->step_ms && e->step_ms < e->high_ms && e->idle_ms > 0.7 * e->step_ms);
        alone[backward] = e->host_ms;
        ft__trace_report_free(&s);
    }
    assert_true(alone[1] > 1.05 * alone[0]);
    /* modules that the recording names; two steps are twice one; large products hide the host */
    for (int steps = 1; steps <= 2; steps++) {
        begin("");
        for (int n = 0; n < steps; n++) {
            event("user_annotation", "ProfilerStep#1", 1, 3000 * n, 2999, "");
            for (int i = 0; i < 100; i++) {
                event("python_function", "nn.Module: Linear", 1, 3000 * n + 10 * i, 1, "");
                event("cpu_op", "aten::add", 1, 3000 * n + 10 * i + 2, 5, SMALL);
            }
        }
        seen(&s, NULL, "h200_sxm");
        NEAR(s.elsewhere[0].host_ms, alone[0] + 100 * 0.005, 0.03);
        ft__trace_report_free(&s);
    }
    begin("");
    for (int i = 0; i < 20; i++)
        event("cpu_op", "aten::mm", 1, 10 * i, 5,
              "\"Input Dims\":[[8192,8192],[8192,8192]],\"Input type\":[\"float\",\"float\"]");
    seen(&s, NULL, "h200_sxm");
    NEAR(s.elsewhere[0].step_ms, s.elsewhere[0].busy_ms, 0.02);
    ft__trace_report_free(&s);
}

/* Kernels hours away from their launch, times beyond any clock, kernels that say nothing of themselves. */
static void test_wild_clocks(void **state)
{
    (void)state;
    ft_trace_report s;
    ft_error err = {0};
    begin("NVIDIA H200");
    event("user_annotation", "ProfilerStep#1", 1, 9e12, 1000, "");
    op_with_kernel("aten::mm", MM, 9e12 + 10, "nvjet_sm90", 7, 9e12 + 100, 100);
    op_with_kernel("aten::mm", MM, 9e12 + 50, "nvjet_sm90", 7, 1000, 100);
    op_with_kernel("aten::mm", MM, 9e12 + 90, "nvjet_sm90", 7, 9.9e12, 100);
    ft__text_add(&text, ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1e300,\"dur\":1}"
                        ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1,\"dur\":99999999999999999999}");
    seen(&s, NULL, NULL);
    assert_int_equal(s.record.negative, 4);
    assert_true(s.record.work_count == 1 && s.busy.step_ms < 1.5);
    ft__trace_report_free(&s);
    begin("NVIDIA H200"); /* no ids at all: by time */
    event("user_annotation", "ProfilerStep#1", 1, 0, 1000, "");
    event("cuda_runtime", "cudaLaunchKernel", 1, 10, 5, "");
    event("kernel", "nvjet_sm90", 7, 100, 100, "");
    seen(&s, NULL, NULL);
    assert_true(s.kernels);
    NEAR(s.busy.busy_ms, 0.1, 0.01);
    ft__trace_report_free(&s);
    begin("NVIDIA H200"); /* neither kernels nor shapes */
    event("cpu_op", "aten::mm", 1, 0, 50, "");
    assert_int_equal(look(&s, NULL, "h100_sxm", &err), FT_E_MISSING);
    assert_non_null(strstr(err.message, "record_shapes"));
    ft__trace_report_free(&s);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    begin("NVIDIA H200");
    event("user_annotation", "ProfilerStep#1", 1, 0, 1000, "");
    op_with_kernel("aten::mm", MM, 10, "nvjet_sm90", 7, 100, 100);
    op_with_kernel("nccl", "", 60, "ncclDevKernel", 20, 400, 300);
    ft__text_add(&text, "]}");
    char *copy = strdup(text.at);
    assert_true(failing_alloc_sweep(attempt, copy) > 10);
    free(copy);
    begin("NVIDIA H200"); /* operators alone */
    event("cpu_op", "aten::mm", 1, 0, 50, MM);
    ft__text_add(&text, "]}");
    copy = strdup(text.at);
    assert_true(failing_alloc_sweep(attempt, copy) > 10);
    free(copy);
}

static int clean(void **state)
{
    ft__text_free(&text);
    return close_predictor(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_loader_and_waits),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_odd_clocks),
        cmocka_unit_test(test_duplicate_ids),
        cmocka_unit_test(test_without),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_gpu_names),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_recorded_verdicts),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_wild_clocks),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, open_predictor, clean);
}
