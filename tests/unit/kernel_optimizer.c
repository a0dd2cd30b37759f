/* Optimizer steps: limits of the physics. */
#include "kernel_limits.h"

#include "kernel/families.h"

static ft_op step(const char *name, ft_dtype dtype, int64_t params, int64_t tensors)
{
    ft_op op;
    ft__op_init("optimizer", &op);
    op.name = name;
    op.dtype = dtype;
    op.u.optimizer.params = params;
    op.u.optimizer.tensors = tensors;
    return op;
}

static const char *const names[] = {
    "adamw",     "adamw_fused", "adamw_foreach", "adamw_8bit",         "adafactor",      "sgd",        "sgd_momentum",
    "sgd_fused", "muon",        "lamb",          "sgd_momentum_fused", "clip_grad_norm", "adamw_loop", "bert_adam"};
enum { NAMES = sizeof names / sizeof *names };

static void no_step_beats_the_roofline(void **state)
{
    (void)state;
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        for (int i = 0; i < NAMES; i++)
            for (int64_t params = 1; params < INT64_C(1) << 36; params *= 37) {
                ft_op op = step(names[i], FT_FP32, params, 1 + params % 300);
                assert_above_floor(&device, &op);
            }
    }
}

static void more_parameters_or_more_tensors_take_longer(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    for (int i = 0; i < NAMES; i++) {
        double before = 0;
        for (int64_t params = 1 << 20; params <= 1 << 30; params *= 2) {
            ft_op op = step(names[i], FT_BF16, params, 16), split = step(names[i], FT_BF16, params, 4096);
            double ms = limit_ms(&device, &op);
            assert_true(ms >= before);
            /* Muon multiplies matrices: many small ones cost less than few large ones. */
            if (strcmp(names[i], "muon") && params >= 1 << 28) assert_true(limit_ms(&device, &split) >= 0.99 * ms);
            before = ms;
        }
    }
}

static void a_small_step_costs_a_chunk_not_its_bytes(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_op op = step("adamw_fused", FT_FP32, 1 << 20, 1); /* measured 28 us; its bytes would take 6 */
    double ms = limit_ms(&h200, &op);
    assert_true(ms > 0.010 && ms < 0.045);
}

static void foreach_moves_every_state_many_times(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_op fused = step("adamw_fused", FT_FP32, 1 << 28, 16), foreach = step("adamw_foreach", FT_FP32, 1 << 28, 16);
    double ratio = limit_ms(&h200, &foreach) / limit_ms(&h200, &fused);
    assert_true(ratio > 2.5 && ratio < 5); /* measured 3.1 */
}

/* A loop moves as much however many tensors it has, and has a kernel of its own for each of them. */
static void a_loop_pays_for_every_tensor(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_op few = step("adamw_loop", FT_FP32, 1 << 28, 16), many = step("adamw_loop", FT_FP32, 1 << 28, 1024);
    ft_op fused = step("adamw_fused", FT_FP32, 1 << 28, 16), bert = step("bert_adam", FT_FP32, 1 << 28, 16);
    double ratio = limit_ms(&h200, &few) / limit_ms(&h200, &fused);
    assert_true(ratio > 2 && ratio < 4); /* 20 passes over seven */
    assert_true(limit_ms(&h200, &bert) > 1.3 * limit_ms(&h200, &few));
    assert_true(limit_ms(&h200, &many) > limit_ms(&h200, &few) + 2);
}

static void odd_sizes_lose_the_vectorised_path(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_op even = step("sgd_fused", FT_BF16, 100000000, 1), odd = step("sgd_fused", FT_BF16, 100000001, 1);
    assert_true(limit_ms(&h200, &odd) > 1.2 * limit_ms(&h200, &even));
}

static void bandwidth_only_helps(void **state)
{
    (void)state;
    ft_device device = limit_device("a100_sxm_80gb");
    for (int i = 0; i < NAMES; i++) {
        ft_op op = step(names[i], FT_FP32, 300000000, 200);
        assert_falls_with_bandwidth(device, &op);
    }
}

static void a_device_nobody_measured_gets_a_sane_answer(void **state)
{
    (void)state;
    ft_device stranger = limit_stranger();
    for (int i = 0; i < NAMES; i++) {
        ft_op op = step(names[i], FT_FP32, 1000000, 1000000); /* a tensor per element */
        double ms = limit_ms(&stranger, &op);
        assert_true(ms > ft__floor_ms(&stranger, &op) && ms < 1e6);
    }
}

static void tables_are_sound(void **state)
{
    (void)state;
    assert_sound_tables(&ft__optimizer_family);
    for (int v = 0; v < ft__optimizer_family.variant_count; v++) {
        int steps = 0;
        for (int next = v; next >= 0; next = ft__optimizer_family.variant_fallback(next)) assert_true(steps++ < 11);
        assert_non_null(ft__optimizer_family.variant_name(v));
    }
    /* The lines of the data file stand in the order of the variants. */
    static const char *const kin[][2] = {
        {"adamw_foreach", "adamw_fused"}, {"sgd_fused", "sgd_foreach"}, {"sgd_momentum_fused", "sgd_momentum_foreach"},
        {"adamw_8bit", "adamw_fused"},    {"lamb", "adamw_foreach"},    {"muon", "sgd_momentum_foreach"}};
    for (size_t i = 0; i < sizeof kin / sizeof *kin; i++) {
        ft_op op = step(kin[i][0], FT_FP32, 1000, 1);
        int next = ft__optimizer_family.variant_fallback(ft__optimizer_family.variant_of(&op));
        assert_string_equal(kin[i][1], ft__optimizer_family.variant_name(next));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_step_beats_the_roofline),
        cmocka_unit_test(more_parameters_or_more_tensors_take_longer),
        cmocka_unit_test(a_small_step_costs_a_chunk_not_its_bytes),
        cmocka_unit_test(foreach_moves_every_state_many_times),
        cmocka_unit_test(a_loop_pays_for_every_tensor),
        cmocka_unit_test(odd_sizes_lose_the_vectorised_path),
        cmocka_unit_test(bandwidth_only_helps),
        cmocka_unit_test(a_device_nobody_measured_gets_a_sane_answer),
        cmocka_unit_test(tables_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
