/* Weights stored in fewer bits than they are multiplied in, and mixtures by backend: forecasts of the shipped predictor
 * against what was measured, and in their limits. */
#include "kernel_limits.h"
#include "shipped_predictor.h"

#include "graph/operator.h"
#include "kernel/kernel.h"
#include "kernel/weight_only.h"

static double ms_of(const ft_device *device, const ft_op *op)
{
    ft_forecast f;
    ft_error err;
    if (ft__op_check(op, device, &err) != FT_OK) fail_msg("%s", err.message);
    assert_int_equal(FT_OK, ft__kernel_forecast(predictor, device, op, 0.9, &f, NULL));
    assert_true(f.low_ms <= f.ms && f.ms <= f.high_ms && f.low_ms > 0);
    return f.ms;
}

static ft_op gemm(ft_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    ft_op op;
    ft__op_init("gemm", &op);
    op.dtype = dtype;
    op.u.gemm.m = m;
    op.u.gemm.n = n;
    op.u.gemm.k = k;
    return op;
}

static ft_op moe(int64_t tokens, int64_t hidden, int64_t inter, int64_t topk, int64_t experts)
{
    ft_op op;
    ft__op_init("moe", &op);
    op.u.moe.tokens = tokens;
    op.u.moe.hidden = hidden;
    op.u.moe.inter = inter;
    op.u.moe.topk = topk;
    op.u.moe.experts = experts;
    return op;
}

/* Weights in fewer bits: never above what the same product takes in 16 where the bus holds it, never under its own
 * bytes; where a kernel of its own widens them, a pass more than the dense product. */
static void weights_of_few_bits_stream_faster(void **state)
{
    (void)state;
    static const ft_storage stored[] = {FT_STORED_INT8, FT_STORED_INT4, FT_STORED_NF4, FT_STORED_MXFP4, FT_STORED_FP8};
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        if (device.peak_tflops[FT_FP16] <= 0) continue;
        for (int by = 0; by < FT_WEIGHT_KERNEL_COUNT; by++)
            for (size_t w = 0; w < sizeof stored / sizeof *stored; w++) {
                if (!ft__weight_kernel_runs(&device, (ft_weight_kernel)by)) continue;
                ft_op op = gemm(FT_FP16, 1, 14336, 8192), dense;
                dense = op;
                op.weights = stored[w];
                op.u.gemm.by = by;
                assert_true(ms_of(&device, &op) >= ft__floor_ms(&device, &op));
                if (ft__stored_bytes(&op) < 1) assert_true(ms_of(&device, &op) < ms_of(&device, &dense));
                double before = 0;
                for (int64_t m = 1; m <= 8192; m *= 4) {
                    op.u.gemm.m = m;
                    double ms = ms_of(&device, &op);
                    if (ms < 0.95 * before)
                        fail_msg("%d rows by %d on %s: %g after %g", (int)m, by, device.name, ms, before);
                    before = ms;
                }
                dense.u.gemm.m = 4096;
                dense.dtype = ft__multiplied_in(&device, &op);
                assert_true(before > 0.8 * ms_of(&device, &dense));
            }
    }
    /* TensorRT-LLM's plugin on A100, 10240 x 16384: 63.5 us for one row, 198.7 for 96. */
    ft_device a100 = limit_device("a100_sxm_80gb");
    ft_op op = gemm(FT_BF16, 1, 10240, 16384);
    op.weights = FT_STORED_INT4;
    op.u.gemm.by = FT_WEIGHTS_CUTLASS;
    double one = ms_of(&a100, &op);
    op.u.gemm.m = 96;
    double many = ms_of(&a100, &op);
    assert_true(one > 0.052 && one < 0.08);
    assert_true(many > 0.13 && many < 0.27);
}

/* llama.cpp multiplies integers: on a GeForce, whose sums in fp32 run at half rate, a product of many rows takes little
 * longer than the same in 16 bits, and on no GPU less than its integer units or its lanes allow. */
static void integers_are_multiplied_and_scaled(void **state)
{
    (void)state;
    ft_device card = limit_device("rtx_3090");
    ft_op op = gemm(FT_FP16, 2048, 14336, 4096), dense = op;
    op.weights = FT_STORED_Q4_K_M;
    op.u.gemm.by = FT_WEIGHTS_GGUF;
    assert_int_equal(FT_INT8, ft__multiplied_in(&card, &op));
    assert_int_equal(FT_FP16, ft__multiplied_in(&card, &dense));
    assert_true(ms_of(&card, &op) < 1.4 * ms_of(&card, &dense)); /* twice as long by the units of 16 bits */
    assert_true(ft__roofline_ms(&card, &op) < 0.5 * ft__roofline_ms(&card, &dense));
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        if (device.peak_tflops[FT_FP16] <= 0) continue;
        assert_true(ms_of(&device, &op) >= ft__floor_ms(&device, &op));
        ft_device wider = device;
        wider.issue_lanes_per_sm *= 2;
        assert_true(ms_of(&wider, &op) <= ms_of(&device, &op));
    }
}

/* B200, nvfp4, hidden 7168, 256 of 2048 per rank, 8 of 256 experts, 64 tokens: 95 us by TensorRT-LLM's precompiled
 * kernels, 303 by CUTLASS. A100, Mixtral, 16 tokens: 511 us by Marlin in int4, 2398 by Triton in bf16. */
static void backends_differ_as_measured(void **state)
{
    (void)state;
    ft_device b200 = limit_device("b200_sxm"), a100 = limit_device("a100_sxm_80gb");
    ft_op op = moe(64, 7168, 256, 8, 256);
    op.dtype = FT_FP4;
    op.engine = FT_ENGINE_TRTLLM;
    double gen = ms_of(&b200, &op);
    op.u.moe.backend = FT_MOE_CUTLASS;
    double cutlass = ms_of(&b200, &op);
    assert_true(gen > 0.08 && gen < 0.13);
    assert_true(cutlass > 0.24 && cutlass < 0.37);
    op = moe(16, 4096, 14336, 2, 8);
    op.weights = FT_STORED_INT4;
    double four = ms_of(&a100, &op);
    op.weights = FT_STORED_AS_COMPUTED;
    op.engine = FT_ENGINE_SGLANG;
    double sixteen = ms_of(&a100, &op);
    assert_true(four > 0.42 && four < 0.62);
    assert_true(sixteen > 1.5 && sixteen < 3);
}

static void refused(const ft_device *device, const ft_op *op, const char *where, const char *part)
{
    ft_error err = {0};
    assert_true(ft__op_check(op, device, &err) != FT_OK);
    assert_string_equal(where, err.where);
    if (!strstr(err.message, part)) fail_msg("%s", err.message);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    ft_device b200 = limit_device("b200_sxm"), amd = limit_device("mi210"), h100 = limit_device("h100_sxm");
    ft_op op = gemm(FT_FP4, 64, 4096, 4096), experts = moe(64, 4096, 1536, 8, 128);
    op.weights = FT_STORED_INT8;
    refused(&b200, &op, "weights_dtype", "fewer");
    op = gemm(FT_BF16, 64, 4096, 4096);
    op.weights = FT_STORED_INT4;
    op.u.gemm.by = FT_WEIGHTS_MARLIN;
    refused(&amd, &op, "weight_kernel", "marlin");
    experts.u.moe.ep = 3;
    refused(&h100, &experts, "ep", "evenly");
    experts.u.moe.ep = 4;
    experts.u.moe.backend = FT_MOE_TRTLLM_GEN;
    refused(&h100, &experts, "moe_backend", "h100_sxm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_few_bits_stream_faster),
        cmocka_unit_test(integers_are_multiplied_and_scaled),
        cmocka_unit_test(backends_differ_as_measured),
        cmocka_unit_test(contradictions_are_refused),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
