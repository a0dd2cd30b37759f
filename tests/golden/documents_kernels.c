/* Figures of kernels that published documents give, each forecast anew. Every test names where its figure stands. */
#include <math.h>
#include <string.h>

#include "golden.h"

/* -- vocabulary, fusion, overhead -------------------------------------------------------------- */

/* nanoGPT's vocabulary padded from 50257 to 50304; measured on an H200 (PyTorch 2.11, bf16, batch 32 of 1024): 161.8 ms
 * become 110.7. */
static void padding_a_vocabulary_pays(void **state)
{
    (void)state;
    double ms[2];
    for (int i = 0; i < 2; i++)
        ms[i] = golden_value("step_ms",
                             "{\"task\":\"train\",\"model\":{\"model_type\":\"gpt2\",\"vocab_size\":%d},\"gpu\":"
                             "\"h200_sxm\",\"batch\":32,\"seq\":1024,\"attention\":\"sdpa\"}",
                             i ? 50304 : 50257);
    golden_near("gpt2, 50257", ms[0], 161.8, 0.1);
    golden_near("gpt2, 50304", ms[1], 110.7, 0.1);
    golden_near("what padding saves, ms", ms[0] - ms[1], 161.8 - 110.7, 0.25);
}

static json_t *cosines(int count, const char *gpu, const char *execution)
{
    return golden_ask(
        "{\"task\":\"forward\",\"model\":{\"foretell_graph\":1,\"inputs\":{\"x\":{\"shape\":[\"batch\","
        "268435456]}},\"blocks\":[{\"name\":\"cos\",\"out\":\"y\",\"nodes\":[{\"op\":\"cos\",\"in\":\"x\","
        "\"out\":\"y\"}%s]}]},\"gpu\":\"%s\",\"dtype\":\"fp32\",\"execution\":\"%s\",\"detail\":\"kernels\"}",
        count > 1 ? ",{\"op\":\"cos\",\"in\":\"y\",\"out\":\"y\"}" : "", gpu, execution);
}

static double passes(const json_t *answer)
{
    double bytes = 0;
    size_t i;
    json_t *kernel;
    json_array_foreach (json_object_get(answer, "kernels"), i, kernel)
        bytes += golden_figure(kernel, "bytes") * golden_figure(kernel, "count");
    return bytes / (4.0 * 268435456);
}

/* He, "Making Deep Learning Go Brrrr From First Principles" (2022): x.cos().cos() moves its data four times as two
 * kernels and twice as one, and then costs what x.cos() costs. Where the bus is slow beside the arithmetic that is so;
 * on an H200 (4.8 TB/s) the second cosine is measured to cost 7 % of the first (0.521 and 0.556 ms, PyTorch 2.11). */
static void two_cosines_cost_what_one_costs(void **state)
{
    (void)state;
    static const char *const slow[] = {"l40s", "rtx_4090"};
    for (size_t i = 0; i < 2; i++) {
        json_t *apart = cosines(2, slow[i], "eager"), *one = cosines(1, slow[i], "compile"),
               *both = cosines(2, slow[i], "compile");
        golden_near("passes of two kernels", passes(apart), 4, 1e-3);
        golden_near("passes of one", passes(one), 2, 1e-3);
        golden_near("passes of both, fused", passes(both), 2, 1e-3);
        assert_true(golden_figure(both, "launches") == 1);
        golden_near(slow[i], golden_figure(both, "busy_ms"), golden_figure(one, "busy_ms"), 0.03);
        golden_holds(golden_figure(both, "busy_ms") < 0.55 * golden_figure(apart, "busy_ms"), "%s: fused %g, apart %g",
                     slow[i], golden_figure(both, "busy_ms"), golden_figure(apart, "busy_ms"));
        json_decref(apart);
        json_decref(one);
        json_decref(both);
    }
    json_t *apart = cosines(2, "h200_sxm", "eager"), *one = cosines(1, "h200_sxm", "compile");
    golden_near("cos, compiled, on an H200", golden_figure(one, "busy_ms"), 0.521, 0.15);
    golden_near("cos, cos, eager, on an H200", golden_figure(apart, "busy_ms"), 1.0205, 0.05);
    json_decref(apart);
    json_decref(one);
}

/* The same: an A100 loads 400 * 10^9 fp32 numbers while it does 20 * 10^12 operations, and a unary operator is bound by
 * memory up to about a hundred operations an element: a multiplication and an addition count two there. */
static void a_unary_operator_is_bound_by_memory(void **state)
{
    (void)state;
    ft_device a100;
    assert_int_equal(FT_OK, ft_device_find(golden_ft, "a100_sxm_40gb", &a100, NULL));
    golden_near("numbers loaded per second", a100.memory_gbps * 1e9 / 4, 400e9, 0.05);
    golden_near("operations per second",
                a100.vector_tflops[FT_FP32] > 0 ? a100.vector_tflops[FT_FP32] * 1e12 : a100.peak_tflops[FT_FP32] * 1e12,
                20e12, 0.05);
    static const struct {
        double operations;
        const char *bound;
    } curve[] = {{1, "memory"}, {16, "memory"}, {32, "memory"}, {128, "compute"}, {256, "compute"}};
    double last = 0;
    for (size_t i = 0; i < sizeof curve / sizeof *curve; i++) {
        json_t *a = golden_ask("{\"task\":\"kernel\",\"op\":\"elementwise\",\"numel\":268435456,\"inputs\":1,\"dtype\":"
                               "\"fp32\",\"gpu\":\"a100_sxm_40gb\",\"ops_per_element\":%g}",
                               curve[i].operations);
        golden_holds(!strcmp(curve[i].bound, json_string_value(json_object_get(a, "bound"))), "%g operations: %s",
                     curve[i].operations, json_string_value(json_object_get(a, "bound")));
        golden_holds(golden_figure(a, "achieved_tflops") > last, "%g operations do %g TFLOP/s, fewer did %g",
                     curve[i].operations, golden_figure(a, "achieved_tflops"), last);
        last = golden_figure(a, "achieved_tflops");
        json_decref(a);
    }
}

/* NVIDIA, "GPU Performance Background": an addition of two fp16 tensors does 1/6 operation a byte, a product of 1024^3
 * does 341. */
static void intensities(void **state)
{
    (void)state;
    golden_near("add",
                golden_value("intensity", "{\"task\":\"kernel\",\"op\":\"elementwise\",\"name\":\"add\",\"inputs\":2,"
                                          "\"numel\":1048576,\"dtype\":\"fp16\",\"gpu\":\"a100_sxm_80gb\"}"),
                1.0 / 6, 1e-3);
    golden_near("1024^3",
                golden_value("intensity", "{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":1024,\"n\":1024,\"k\":1024,"
                                          "\"dtype\":\"fp16\",\"gpu\":\"a100_sxm_80gb\"}"),
                341, 0.002);
}

/* Singh et al., "Democratizing AI: Open-source Scalable LLM Training on GPU-based Supercomputers" (SC 2024): square
 * bf16 products reach 280 of 312 TFLOP/s on an A100 and 813 of 989 on an H100. */
static void advertised_against_sustained(void **state)
{
    (void)state;
    static const struct {
        const char *gpu;
        double advertised, reached;
    } gpus[] = {{"a100_sxm_40gb", 312, 280}, {"h100_sxm", 989, 813}};
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        ft_device device;
        double best = 0;
        assert_int_equal(FT_OK, ft_device_find(golden_ft, gpus[i].gpu, &device, NULL));
        golden_near(gpus[i].gpu, device.peak_tflops[FT_BF16], gpus[i].advertised, 0.005);
        for (int n = 2048; n <= 32768; n *= 2) {
            double rate = golden_value(
                "achieved_tflops", "{\"task\":\"kernel\",\"op\":\"gemm\",\"m\":%d,\"n\":%d,\"k\":%d,\"gpu\":\"%s\"}", n,
                n, n, gpus[i].gpu);
            best = fmax(best, rate);
        }
        golden_near(gpus[i].gpu, best, gpus[i].reached, 0.1);
    }
}

/* Measured on an H200 (PyTorch 2.11, transformers 5, bf16, scaled_dot_product_attention): operator by operator, and
 * through torch.compile; decoding with a growing cache, and with a static one recorded as a CUDA graph. */
static void compiled_against_eager(void **state)
{
    (void)state;
    static const struct {
        const char *model, *task;
        int batch, seq;
        double eager, faster; /* ms */
        const char *eager_keys, *faster_keys;
    } pairs[] = {
        {"gpt2", "train", 32, 1024, 161.8, 86.2, "", ",\"execution\":\"compile\""},
        {"gpt2", "forward", 16, 1024, 26.4, 10.65, "", ",\"execution\":\"compile\""},
        {"llama-3.2-1b", "train", 8, 2048, 318.6, 274.0, "", ",\"execution\":\"compile\""},
        {"llama-3.2-1b", "prefill", 8, 2048, 82.9, 73.7, ",\"cache\":\"dynamic\"",
         ",\"cache\":\"dynamic\",\"execution\":\"compile\""},
        {"llama-3.2-1b", "decode", 1, 1024, 76.8, 2.56, ",\"cache\":\"dynamic\"",
         ",\"cache\":\"static\",\"execution\":\"cuda_graph\""},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        double ms[2];
        for (int k = 0; k < 2; k++)
            ms[k] = golden_value("step_ms",
                                 "{\"task\":\"%s\",\"model\":\"%s\",\"gpu\":\"h200_sxm\",\"batch\":%d,\"seq\":%d,"
                                 "\"attention\":\"sdpa\"%s}",
                                 pairs[i].task, pairs[i].model, pairs[i].batch, pairs[i].seq,
                                 k ? pairs[i].faster_keys : pairs[i].eager_keys);
        golden_near(pairs[i].model, ms[0], pairs[i].eager, 0.2);
        golden_near(pairs[i].model, ms[1], pairs[i].faster, 0.2);
        golden_near("what it gains", ms[0] / ms[1], pairs[i].eager / pairs[i].faster, 0.2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padding_a_vocabulary_pays),
        cmocka_unit_test(compiled_against_eager),
        cmocka_unit_test(two_cosines_cost_what_one_costs),
        cmocka_unit_test(a_unary_operator_is_bound_by_memory),
        cmocka_unit_test(intensities),
        cmocka_unit_test(advertised_against_sustained),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
