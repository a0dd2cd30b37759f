/* Mixtures of experts: limits of the physics and what measurements showed. */
#include "kernel_limits.h"

#include <math.h>

#include "graph/operator.h"
#include "kernel/families.h"
#include "kernel/moe_backend.h"

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

static const ft_dtype dtypes[] = {FT_BF16, FT_FP8, FT_FP4};

static void no_mixture_beats_the_roofline(void **state)
{
    (void)state;
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        for (int t = 0; t < 3; t++)
            for (int64_t tokens = 1; tokens < 100000; tokens *= 6)
                for (int64_t experts = 8; experts <= 512; experts *= 8) {
                    ft_op op = moe(tokens, 4096, 1536, 2, experts);
                    op.dtype = dtypes[t];
                    assert_above_floor(&device, &op);
                    op.u.moe.skew = 1.2;
                    assert_above_floor(&device, &op);
                    op.engine = FT_ENGINE_BARE;
                    assert_above_floor(&device, &op);
                }
    }
}

static void more_tokens_and_wider_experts_are_never_faster(void **state)
{
    (void)state;
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        for (double skew = 0; skew < 1.5; skew += 1.2) {
            double tokens_before = 0, inter_before = 0;
            for (int64_t n = 1; n <= 65536; n *= 2) {
                ft_op many = moe(n, 4096, 1536, 8, 128), wide = moe(256, 4096, 128 * n, 8, 128);
                many.u.moe.skew = wide.u.moe.skew = skew;
                double ms = limit_ms(&device, &many);
                if (ms < 0.97 * tokens_before)
                    fail_msg("%lld tokens on %s: %g ms after %g", (long long)n, device.name, ms, tokens_before);
                tokens_before = ms;
                if (n > 256) continue;
                ms = limit_ms(&device, &wide);
                if (ms < 0.97 * inter_before) fail_msg("inter %lld on %s", (long long)(128 * n), device.name);
                inter_before = ms;
            }
        }
    }
}

/* H200, TensorRT-LLM, bf16, hidden 2048, inter 768, 8 of 128: 42 us for one token (8 experts' weights), 301 for 16
 * tokens (every expert's), 313 for 128. */
static void few_tokens_pay_for_the_experts_they_wake(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    double ms[3];
    const int64_t tokens[3] = {1, 16, 128};
    for (int i = 0; i < 3; i++) {
        ft_op op = moe(tokens[i], 2048, 768, 8, 128);
        ms[i] = limit_ms(&device, &op);
    }
    assert_true(ms[0] < 0.06 && ms[0] > 0.025);
    assert_true(ms[1] > 0.22 && ms[1] < 0.38);
    assert_true(ms[2] < 1.25 * ms[1]);
}

static void skew_wakes_fewer_experts_and_overloads_one(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    ft_op even = moe(16, 2048, 768, 8, 128), skewed = even;
    skewed.u.moe.skew = 1.2;
    assert_true(limit_ms(&device, &skewed) < 0.9 * limit_ms(&device, &even)); /* measured: 157 against 301 us */
}

static void bandwidth_and_peak_only_help(void **state)
{
    (void)state;
    ft_device device = limit_device("l40s");
    for (int64_t tokens = 1; tokens < 40000; tokens *= 8) {
        ft_op op = moe(tokens, 4096, 14336, 2, 8);
        assert_falls_with_bandwidth(device, &op);
        ft_device faster = device;
        for (int t = 0; t < FT_DTYPE_COUNT; t++) faster.peak_tflops[t] *= 1.2;
        assert_not_slower("a fifth more peak", limit_ms(&device, &op), limit_ms(&faster, &op));
    }
}

static void a_bare_pair_of_products_is_the_shorter_one(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    ft_op layer = moe(8192, 4096, 1536, 8, 128), bare = layer;
    bare.engine = FT_ENGINE_BARE;
    assert_true(limit_ms(&device, &bare) < limit_ms(&device, &layer));
}

/* Whose kernels, in which format: every backend on every device that it runs on. */
static void every_backend_and_format_is_sane(void **state)
{
    (void)state;
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        for (int b = FT_MOE_CUTLASS; b < FT_MOE_BACKEND_COUNT; b++)
            for (int w = 0; w < FT_STORAGE_COUNT; w++)
                for (int e = FT_ENGINE_TRTLLM; e < FT_ENGINE_COUNT; e++) {
                    if (!ft__moe_backend_runs(&device, (ft_moe_backend)b)) continue;
                    double before = 0;
                    for (int64_t tokens = 1; tokens <= 4096; tokens *= 8) {
                        ft_op op = moe(tokens, 4096, 1536, 8, 128);
                        op.engine = (ft_engine)e;
                        op.weights = (ft_storage)w;
                        op.u.moe.backend = b;
                        assert_above_floor(&device, &op);
                        double ms = limit_ms(&device, &op);
                        if (ms < 0.9 * before)
                            fail_msg("%d %d %d on %s: %g after %g", b, w, e, device.name, ms, before);
                        before = ms;
                    }
                }
    }
}

static void engines_pick_by_gpu_and_format(void **state)
{
    (void)state;
    ft_device hopper = limit_device("h200_sxm"), blackwell = limit_device("b200_sxm");
    ft_op op = moe(64, 7168, 2048, 8, 256);
    op.engine = FT_ENGINE_VLLM;
    assert_int_equal(FT_MOE_TRITON, ft__moe_backend(&hopper, &op));
    assert_int_equal(FT_MOE_TRTLLM_GEN, ft__moe_backend(&blackwell, &op));
    op.dtype = FT_FP8;
    op.weights = FT_STORED_FP8_BLOCK;
    assert_int_equal(FT_MOE_TRITON, ft__moe_backend(&hopper, &op));
    op.u.moe.ep = 8; /* where experts are dealt over ranks vLLM takes FlashInfer's */
    assert_int_equal(FT_MOE_CUTLASS, ft__moe_backend(&hopper, &op));
    op.u.moe.backend = FT_MOE_DEEPGEMM;
    assert_int_equal(FT_MOE_DEEPGEMM, ft__moe_backend(&hopper, &op));
    op = moe(64, 7168, 2048, 8, 256);
    op.weights = FT_STORED_INT4;
    assert_int_equal(FT_MOE_MARLIN, ft__moe_backend(&hopper, &op));
}

/* Tokens that pick at random wake E(1 - (1 - k/E)^T) experts; a rank of eight has an eighth of the work. */
static void random_tokens_wake_fewer_and_ranks_share(void **state)
{
    (void)state;
    ft_device device = limit_device("h100_sxm");
    ft_op even = moe(4, 4096, 14336, 2, 8), drawn = even, shared = moe(64, 7168, 2048, 8, 256), alone = shared;
    drawn.u.moe.drawn = true;
    assert_true(fabs(ft__experts_awake(&drawn) - 8 * (1 - pow(0.75, 4))) < 1e-9);
    double share = limit_ms(&device, &drawn) / limit_ms(&device, &even);
    assert_true(share > 0.6 && share < 0.85);
    shared.u.moe.ep = 8;
    assert_true(ft__op_flops(&shared) * 8 == ft__op_flops(&alone));
    double part = limit_ms(&device, &shared) / limit_ms(&device, &alone);
    assert_true(part > 0.1 && part < 0.25);
    shared.u.moe.ungated = true;
    assert_true(limit_ms(&device, &shared) < limit_ms(&device, &alone));
}

static void a_device_nobody_measured_gets_a_sane_answer(void **state)
{
    (void)state;
    ft_device stranger = limit_stranger();
    ft_op op = moe(100, 1024, 2048, 2, 4);
    double ms = limit_ms(&stranger, &op);
    assert_true(ms > ft__floor_ms(&stranger, &op) && ms < 1e4);
}

static void tables_are_sound(void **state)
{
    (void)state;
    assert_sound_tables(&ft__moe_family);
    for (int v = 0; v < ft__moe_family.variant_count; v++) {
        int steps = 0;
        for (int next = v; next >= 0; next = ft__moe_family.variant_fallback(next)) assert_true(steps++ < 9);
        assert_non_null(ft__moe_family.variant_name(v));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_mixture_beats_the_roofline),
        cmocka_unit_test(more_tokens_and_wider_experts_are_never_faster),
        cmocka_unit_test(few_tokens_pay_for_the_experts_they_wake),
        cmocka_unit_test(skew_wakes_fewer_experts_and_overloads_one),
        cmocka_unit_test(bandwidth_and_peak_only_help),
        cmocka_unit_test(a_bare_pair_of_products_is_the_shorter_one),
        cmocka_unit_test(every_backend_and_format_is_sane),
        cmocka_unit_test(engines_pick_by_gpu_and_format),
        cmocka_unit_test(random_tokens_wake_fewer_and_ranks_share),
        cmocka_unit_test(a_device_nobody_measured_gets_a_sane_answer),
        cmocka_unit_test(tables_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
