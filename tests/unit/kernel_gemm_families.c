/* Matrix products: what their families see and answer. */
#include "gemm_shapes.h"

/* -- the families -------------------------------------------------------------------------------- */

static const ft_dtype dtypes[] = {FT_BF16, FT_FP16, FT_TF32, FT_FP32, FT_FP64, FT_FP8, FT_INT8, FT_FP4};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static void no_product_beats_the_roofline(void **state)
{
    (void)state;
    random_source r = {2};
    ft_device stranger = limit_stranger();
    for (int d = 0; d <= LIMIT_DEVICES; d++) {
        ft_device device = d < LIMIT_DEVICES ? limit_device(limit_devices[d]) : stranger;
        for (int i = 0; i < 300; i++) {
            ft_op op = random_op(&r, i % 3 ? RANDOM_GEMM : RANDOM_BMM, &device);
            assert_above_floor(&device, &op);
        }
    }
}

/* A larger product may get a tile or a split of K that the smaller one was denied (split-K starts at K = 256, batched
 * products on some GPUs have one tile only), so the model is not strictly monotone: of 57,000 doublings drawn like
 * these, 11 came out more than 3 % cheaper, the worst by 13.5 %. More than one in a thousand, or more than 15 %, is a
 * fault. Half-precision rows of odd length are left out: what libraries do with them is habit, and twice as many of
 * them can be ten times as fast (gemm_unaligned.c; narrow_rows_follow_the_habits_of_the_library). */
static void twice_a_size_is_not_cheaper(void **state)
{
    (void)state;
    random_source r = {3};
    int cases = 0, cheaper = 0;
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        for (int i = 0; i < 300; i++) {
            ft_op op = random_op(&r, i % 3 ? RANDOM_GEMM : RANDOM_BMM, &device), twice;
            const char *what;
            int each[3];
            for (int size = 0; random_doubled(&op, size, &twice, &what); size++) {
                if (ft__gemm_op_alignment(&op, each) != ft__gemm_op_alignment(&twice, each)) continue;
                bool half = op.dtype == FT_BF16 || op.dtype == FT_FP16;
                if (half && ft__gemm_op_alignment(&op, each) < 16) continue;
                double before = limit_ms(&device, &op), after = limit_ms(&device, &twice);
                cases++;
                cheaper += after < 0.97 * before;
                if (after < 0.85 * before)
                    fail_msg("%s %s %lldx%lldx%lldx%lld on %s: %g ms, with twice the %s %g", ft_dtype_name(op.dtype),
                             op.u.gemm.layout, (long long)op.u.gemm.b, (long long)op.u.gemm.m, (long long)op.u.gemm.n,
                             (long long)op.u.gemm.k, device.name, before, what, after);
            }
        }
    }
    assert_true(cases > 4000);
    if (cheaper * 1000 > cases) fail_msg("%d of %d doubled products are cheaper", cheaper, cases);
}

static void more_bandwidth_and_more_peak_help(void **state)
{
    (void)state;
    random_source r = {4};
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        for (int i = 0; i < 200; i++) {
            ft_op op = random_op(&r, i % 3 ? RANDOM_GEMM : RANDOM_BMM, &device);
            assert_falls_with_bandwidth(device, &op);
            ft_device faster = device;
            for (int t = 0; t < FT_DTYPE_COUNT; t++) faster.peak_tflops[t] *= 1.25;
            faster.tdp_w *= 1.25;
            assert_not_slower("a quarter more peak", limit_ms(&device, &op), limit_ms(&faster, &op));
        }
    }
}

static void a_small_product_over_a_huge_k_is_split(void **state)
{
    (void)state;
    ft_device a100 = limit_device("a100_pcie_40gb");
    ft_op thin = gemm(FT_BF16, 128, 128, 65536), square = gemm(FT_BF16, 8192, 8192, 8192);
    ft_op batched = gemm(FT_BF16, 128, 128, 65536);
    batched.u.gemm.b = 2;
    assert_true(physics_of(&a100, &thin).split_k > 1);
    assert_int_equal(1, physics_of(&a100, &square).split_k);
    assert_int_equal(1, physics_of(&a100, &batched).split_k);
    thin.dtype = FT_FP32;
    assert_true(physics_of(&a100, &thin).split_k > 1);
}

static void waves_leave_their_mark_on_the_whole_model(void **state)
{
    (void)state;
    /* 1 to 3 waves of 256x128 tiles on 108 SMs, K long enough to hide the rest. Behind a full wave the search evades to
     * smaller tiles, so the stairs have landings between them; but full waves cost 1 : 2 : 3, the step behind each is
     * seen, and before it time hardly moves. */
    ft_device a100 = limit_device("a100_sxm_80gb");
    double at[325] = {0};
    for (int tiles = 1; tiles <= 324; tiles++) {
        ft_op op = gemm(FT_BF16, 256 * tiles, 128, 16384);
        at[tiles] = physics_of(&a100, &op).compute_ms;
        if (at[tiles] < 0.999 * at[tiles - 1])
            fail_msg("%d tiles: %g ms, one less: %g", tiles, at[tiles], at[tiles - 1]);
    }
    for (int waves = 1; waves <= 3; waves++) {
        assert_true(at[108 * waves] < 1.05 * at[108 * waves - 20]);
        assert_true(fabs(at[108 * waves] / (waves * at[108]) - 1) < 0.05);
    }
    assert_true(at[109] > 1.12 * at[108]);
    assert_true(at[217] > 1.08 * at[216]);
}

static void unaligned_rows_are_slow_and_said_so(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_op even = gemm(FT_BF16, 32768, 50304, 768), odd = gemm(FT_BF16, 32768, 50257, 768);
    assert_true(limit_ms(&h200, &odd) > 2 * limit_ms(&h200, &even));
    assert_null(physics_of(&h200, &even).note);
    assert_non_null(strstr(physics_of(&h200, &odd).note, "aligned"));
    even.dtype = odd.dtype = FT_FP32; /* vector units load element by element */
    assert_true(limit_ms(&h200, &odd) < 1.1 * limit_ms(&h200, &even));
}

/* Rows of 4 and 8 bytes take the same kernels, those of 2 slower ones; what is published about A100 and B200 holds. */
static void narrower_rows_are_slower_on_every_gpu(void **state)
{
    (void)state;
    static const char *const gpus[] = {"a100_sxm_80gb", "l40s", "h200_sxm", "b200_sxm", "t4"};
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        ft_device device = limit_device(gpus[g]);
        for (int64_t n = 128; n <= 16384; n *= 2) {
            ft_op op = gemm(FT_FP16, 2048, n - 8, 2048);
            double whole = limit_ms(&device, &op);
            op.u.gemm.n = n - 4;
            double eight = limit_ms(&device, &op);
            op.u.gemm.n = n - 2;
            double four = limit_ms(&device, &op);
            op.u.gemm.n = n - 1;
            double two = limit_ms(&device, &op);
            assert_true(fabs(eight / four - 1) < 0.01);
            if (!(whole < 1.1 * four && four < two))
                fail_msg("%s, n %lld: %g, %g, %g ms for rows of 16, 4, 2 bytes", gpus[g], (long long)n, whole, four,
                         two);
        }
    }
    ft_device a100 = limit_device("a100_sxm_80gb"), b200 = limit_device("b200_sxm");
    ft_op even = gemm(FT_BF16, 2048, 2048, 2048), odd = gemm(FT_BF16, 2048, 2047, 2048);
    memcpy(even.u.gemm.layout, "nn", 3);
    memcpy(odd.u.gemm.layout, "nn", 3);
    double ratio = limit_ms(&a100, &odd) / limit_ms(&a100, &even);
    assert_true(ratio > 1.9 && ratio < 3.2);
    ft_op published = gemm(FT_BF16, 1157, 1157, 4096);
    memcpy(published.u.gemm.layout, "nn", 3);
    double ms = limit_ms(&b200, &published);
    assert_true(ms > 0.07 && ms < 0.13);
    /* It is the copies that hold it up: a matrix unit of twice the rate gains nothing. */
    ft_device faster = b200;
    for (int t = 0; t < FT_DTYPE_COUNT; t++) faster.peak_tflops[t] *= 2;
    assert_true(fabs(limit_ms(&faster, &published) / ms - 1) < 0.02);
}

/* What our H200 took, in us, where the library does not take what would be fastest: K walked alone, K split in vain,
 * few rows on the vector units. Constants as they start, from no measured row: within a third. */
static void narrow_rows_follow_the_habits_of_the_library(void **state)
{
    (void)state;
    static const struct {
        const char *layout;
        int64_t m, n, k;
        double us;
    } cases[] = {
        {"tn", 11, 19, 8252, 146.7},  {"tn", 13, 14, 2930, 53.5},
        {"tn", 11, 30, 11633, 9.4}, /* long enough to split */
        {"tn", 16, 22, 1840, 34.8}, /* rows of 4 bytes too */
        {"nn", 19, 127, 23, 4.7},     {"tn", 33, 10, 10, 4.6},
        {"nn", 8797, 13, 24, 3.8}, /* enough tiles: not split */
        {"nt", 2, 50257, 768, 36.6},  {"nt", 4, 50257, 2560, 176.4},
        {"nt", 11, 21, 3834, 18.2},   {"nt", 12, 23, 8, 2.1},
        {"nn", 2, 50257, 1600, 69.7}, {"nn", 11, 7417, 4762, 98.8},
        {"nn", 13, 21, 333, 5.5},     {"nt", 2048, 50257, 768, 1686.7},
    };
    ft_device h200 = limit_device("h200_sxm");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_op op = gemm(FT_BF16, cases[i].m, cases[i].n, cases[i].k);
        memcpy(op.u.gemm.layout, cases[i].layout, 3);
        double us = 1e3 * limit_ms(&h200, &op);
        if (us < 0.67 * cases[i].us || us > 1.5 * cases[i].us)
            fail_msg("%s %lldx%lldx%lld: %g us, measured %g", cases[i].layout, (long long)cases[i].m,
                     (long long)cases[i].n, (long long)cases[i].k, us, cases[i].us);
    }
    /* A slower memory holds few rows too, whatever the vector units could do. */
    ft_device slow = h200;
    slow.memory_gbps /= 20;
    ft_op rows = gemm(FT_BF16, 2, 50257, 768);
    assert_true(limit_ms(&slow, &rows) > 50257.0 * 768 * 2 / (slow.memory_gbps * 1e6));
}

/* The matrix units of a GPU whose peak is quoted below its boost clock reach more than the quoted share of it. */
static void matrix_units_run_at_the_boost_clock(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm"), quoted = h200, a100 = limit_device("a100_sxm_80gb");
    assert_true(fabs(ft__matrix_boost(&h200) - 1980.0 / 1830) < 1e-9 && fabs(ft__matrix_boost(&a100) - 1) < 1e-9);
    quoted.matrix_mhz = 0;
    assert_true(fabs(ft__matrix_boost(&quoted) - 1) < 1e-9);
    quoted.matrix_mhz = quoted.boost_mhz;
    ft_op op = gemm(FT_BF16, 2048, 2048, 2048);
    assert_true(physics_of(&quoted, &op).compute_ms > 1.03 * physics_of(&h200, &op).compute_ms);
}

/* Units held below their own rate come closer to what they are allowed, and never beyond it; a slower cap is never
 * faster. Integers have no cap on a GeForce. */
static void capped_units_are_better_used(void **state)
{
    (void)state;
    ft_device card = limit_device("rtx_3090"), whole = limit_device("rtx_a6000"), slower = card;
    assert_true(fabs(ft__matrix_cap(&card, FT_BF16) - 0.5) < 0.01 && fabs(ft__matrix_cap(&card, FT_TF32) - 0.5) < 0.01);
    assert_true(ft__matrix_cap(&card, FT_INT8) > 0.99 && ft__matrix_cap(&whole, FT_BF16) > 0.99);
    assert_true(fabs(ft__matrix_boost(&card) - 1900.0 / 1695) < 1e-9);
    ft_op op = gemm(FT_BF16, 8192, 8192, 8192);
    double flops = 2.0 * 8192 * 8192 * 8192 * 1e-9,
           least = flops / (card.peak_tflops[FT_BF16] * ft__matrix_boost(&card));
    double capped = physics_of(&card, &op).compute_ms;
    assert_true(capped > least / 0.97 && capped < least / 0.92);
    assert_true(physics_of(&whole, &op).compute_ms > flops / (0.88 * whole.peak_tflops[FT_BF16]));
    slower.matrix_fma_per_clk_sm /= 2;
    for (int d = 0; d < FT_DTYPE_COUNT; d++) slower.peak_tflops[d] /= 2;
    assert_true(fabs(ft__matrix_cap(&slower, FT_BF16) - 0.25) < 0.01 &&
                physics_of(&slower, &op).compute_ms > 1.9 * capped);
    for (double cap = 1; cap > 0.1; cap -= 0.1)
        assert_true(ft__capped_efficiency(0.7, cap - 0.05) >= ft__capped_efficiency(0.7, cap));
    assert_true(ft__capped_efficiency(0.7, 1) == 0.7 && ft__capped_efficiency(0.7, 0.01) < 1);
}

/* wgmma transposes 16-bit operands only: tf32 with A across K is left to mma.sync, on Hopper and nowhere else. */
static void hopper_reads_tf32_along_k_alone(void **state)
{
    (void)state;
    static const struct {
        const char *gpu;
        ft_dtype dtype;
        double least, most;
    } cases[] = {{"h200_sxm", FT_TF32, 1.4, 1.8},
                 {"h200_sxm", FT_BF16, 1, 1.15},
                 {"a100_sxm_80gb", FT_TF32, 1, 1.15},
                 {"b200_sxm", FT_TF32, 1, 1.15}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_device device = limit_device(cases[i].gpu);
        ft_op along = gemm(cases[i].dtype, 4096, 4096, 4096), across = along;
        memcpy(across.u.gemm.layout, "tn", 3);
        double ratio = physics_of(&device, &across).compute_ms / physics_of(&device, &along).compute_ms;
        if (!(ratio > cases[i].least && ratio < cases[i].most))
            fail_msg("%s %s: %g", cases[i].gpu, ft_dtype_name(cases[i].dtype), ratio);
    }
}

/* Warp groups come in steps of 8 columns: a product that leaves the second wave of large tiles almost empty finds a
 * tile with which it does not, on Hopper and Blackwell. */
static void warp_groups_evade_an_almost_empty_wave(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    h200.tdp_w = 5000; /* tiles alone: power would hold both */
    ft_device classical = h200;
    classical.matrix_issue = FT_ISSUE_MMA;
    ft_op op = gemm(FT_BF16, 128 * 17, 128 * 17, 8192); /* 153 tiles of 128x256 on 132 SMs */
    ft_physics groups = physics_of(&h200, &op), tiles = physics_of(&classical, &op);
    assert_true(groups.compute_ms < 0.9 * tiles.compute_ms);
    for (int64_t m = 64; m <= 8192; m += 320)
        for (int64_t n = 64; n <= 8192; n += 704) {
            op = gemm(FT_BF16, m, n, 4096);
            assert_true(physics_of(&h200, &op).compute_ms > 2.0 * (double)(m * n) * 4096 / 989.4e9);
        }
}

static void quantising_on_the_fly_costs(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    for (int64_t m = 1; m <= 65536; m *= 4) {
        ft_op bare = gemm(FT_FP8, m, 4096, 4096), dynamic = bare;
        dynamic.u.gemm.quantized = 0;
        assert_true(limit_ms(&h200, &dynamic) > limit_ms(&h200, &bare) + 1e-3);
        bare.dtype = dynamic.dtype = FT_BF16; /* nothing to quantise */
        assert_true(fabs(limit_ms(&h200, &dynamic) - limit_ms(&h200, &bare)) < 1e-12);
    }
}

static void tables_are_sound(void **state)
{
    (void)state;
    assert_sound_tables(&ft__gemm_tensor_family);
    assert_sound_tables(&ft__gemm_vector_family);
    for (int t = 0; t < DTYPES; t++)
        for (int b = 1; b <= 2; b++) {
            int variant;
            ft_op op = gemm(dtypes[t], 64, 64, 64);
            op.u.gemm.b = b;
            const ft_family *family = ft__family_of(&op, &variant);
            assert_non_null(family);
            bool vector = dtypes[t] == FT_FP32 || dtypes[t] == FT_FP64;
            assert_ptr_equal(vector ? &ft__gemm_vector_family : &ft__gemm_tensor_family, family);
            int steps = 0;
            for (int v = variant; v >= 0; v = family->variant_fallback(v)) assert_true(steps++ < family->variant_count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_product_beats_the_roofline),
        cmocka_unit_test(twice_a_size_is_not_cheaper),
        cmocka_unit_test(more_bandwidth_and_more_peak_help),
        cmocka_unit_test(a_small_product_over_a_huge_k_is_split),
        cmocka_unit_test(waves_leave_their_mark_on_the_whole_model),
        cmocka_unit_test(unaligned_rows_are_slow_and_said_so),
        cmocka_unit_test(narrower_rows_are_slower_on_every_gpu),
        cmocka_unit_test(narrow_rows_follow_the_habits_of_the_library),
        cmocka_unit_test(matrix_units_run_at_the_boost_clock),
        cmocka_unit_test(capped_units_are_better_used),
        cmocka_unit_test(hopper_reads_tf32_along_k_alone),
        cmocka_unit_test(warp_groups_evade_an_almost_empty_wave),
        cmocka_unit_test(quantising_on_the_fly_costs),
        cmocka_unit_test(tables_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
