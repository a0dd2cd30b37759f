/* Traces replayed at another pace and host, GPUs by their names, real recordings, wild clocks, allocations that fail.
 */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include <stdlib.h>

#include "kernel/host.h"
#include "trace_made.h"

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
        {"NVIDIA H200 NVL", 132, 139.8, "h200_nvl"},
        {"NVIDIA H100 80GB HBM3", 132, 79.1, "h100_sxm"},
        {"NVIDIA H100 NVL", 132, 93.1, "h100_nvl"},
        {"NVIDIA GeForce RTX 4070 Ti", 60, 11.7, "rtx_4070_ti"},
        {"NVIDIA A10G", 80, 22.2, "a10g"},
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
    const double module_us = ft__host_find("h200_vm")->python.module_us;
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
        NEAR(s.elsewhere[0].host_ms, alone[0] + 100 * module_us * 1e-3, 0.03);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay),        cmocka_unit_test(test_gpu_names),
        cmocka_unit_test(test_recorded),      cmocka_unit_test(test_recorded_verdicts),
        cmocka_unit_test(test_pace),          cmocka_unit_test(test_wild_clocks),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, open_predictor, clean);
}
