/* Matrix products: the tile that a library picks, and the pieces of its model. */
#include "gemm_shapes.h"

/* -- the search --------------------------------------------------------------------------------- */

static const ft_gemm_tile only_256x128[] = {{256, 128}};

/* An A100's SMs, one tile, nothing that blurs the stairs. */
static ft_gemm_search a100_search(double m, double n, double k)
{
    return (ft_gemm_search){.batch = 1,
                            .m = m,
                            .n = n,
                            .k = k,
                            .sms = 108,
                            .tiles = only_256x128,
                            .tile_count = 1,
                            .flop_per_ms_sm = 312e9 / 108,
                            .feed_bytes_per_ms_sm = 1e9,
                            .element_bytes = 2,
                            .k_step = 32,
                            .lone = 1,
                            .quantisation = 1,
                            .max_split = 1};
}

static ft_gemm_pick pick(const ft_gemm_search *s)
{
    ft_gemm_pick out;
    memset(&out, 0, sizeof out);
    ft__gemm_pick(s, true, &out);
    return out;
}

/* NVIDIA's own figure of wave quantisation: 108 tiles are one wave of an A100, 109 are two. */
static void time_is_flat_inside_a_wave_and_doubles_after_it(void **state)
{
    (void)state;
    ft_gemm_search s = a100_search(256, 128, 4096);
    double first = pick(&s).ms;
    for (int waves = 1; waves <= 4; waves++) {
        for (int tiles = 108 * (waves - 1) + 1; tiles <= 108 * waves; tiles++) {
            s.m = 256.0 * tiles;
            ft_gemm_pick p = pick(&s);
            assert_true(fabs(p.ms - waves * first) < 1e-12);
            assert_true(fabs(p.tiles - tiles) < 1e-12 && fabs(p.waves - tiles / 108.0) < 1e-12);
        }
        s.m = 256.0 * 108 * waves + 1; /* one row more than fits */
        assert_true(fabs(pick(&s).ms - (waves + 1) * first) < 1e-12);
    }
}

static void a_wave_takes_what_its_arithmetic_or_its_operands_take(void **state)
{
    (void)state;
    ft_gemm_search s = a100_search(256, 128, 4096);
    double arithmetic = 2.0 * 256 * 128 * 4096 / s.flop_per_ms_sm;
    assert_true(fabs(pick(&s).ms - arithmetic) < 1e-12);
    s.k = 4097; /* K is walked in steps */
    assert_true(fabs(pick(&s).ms - arithmetic * (4096 + 32) / 4096) < 1e-12);
    s.k = 4096;
    s.prologue_k = 1024;
    assert_true(fabs(pick(&s).ms - arithmetic * 1.25) < 1e-12);
    s.prologue_k = 0;
    s.feed_bytes_per_ms_sm = 1e7;
    assert_true(fabs(pick(&s).ms - (256 + 128) * 2 * 4096 / 1e7) < 1e-12);
    s.wave_ms = 0.5;
    assert_true(fabs(pick(&s).ms - (256 + 128) * 2 * 4096 / 1e7 - 0.5) < 1e-12);
}

static void of_two_tiles_the_faster_one_is_taken(void **state)
{
    (void)state;
    static const ft_gemm_tile two[] = {{256, 128}, {64, 64}};
    ft_gemm_search s = a100_search(256, 128, 4096); /* one large tile on one SM, or eight small ones on eight */
    s.tiles = two;
    s.tile_count = 2;
    ft_gemm_pick p = pick(&s);
    assert_int_equal(1, p.tile);
    assert_true(fabs((double)p.log_ratio[0] - 8) < 1e-6 && fabs((double)p.log_ratio[1] - 1) < 1e-6);
    s.allowed = 1u << 0;
    assert_int_equal(0, pick(&s).tile);
    /* A library that only has habits lands between the best and its favourite. */
    s.allowed = 0;
    s.favourites = 1u << 0;
    s.habit = 0.25;
    assert_true(fabs(pick(&s).ms - (0.75 * p.ms + 0.25 * 8 * p.ms)) < 1e-12);
}

static void k_is_split_where_tiles_are_few_and_never_where_they_are_not(void **state)
{
    (void)state;
    ft_gemm_search s = a100_search(256, 128, 65536);
    double whole = pick(&s).ms;
    s.max_split = 16;
    s.split_ms = 2e-3;
    ft_gemm_pick p = pick(&s);
    assert_int_equal(16, p.split);
    assert_true(fabs(p.ms - (whole / 16 + 2e-3)) < 1e-9);
    assert_true(fabs(p.tiles - 16) < 1e-12);
    s.split_ms = 2 * whole; /* joining the parts costs more than it saves */
    assert_int_equal(1, pick(&s).split);
    s.split_ms = 2e-3;
    s.k = 200; /* too short to be worth it */
    assert_int_equal(1, pick(&s).split);
    s.k = 65536;
    s.m = 256 * 432; /* the GPU is full */
    assert_int_equal(1, pick(&s).split);
    s.m = 256;
    s.k = 200;
    s.min_split = 2; /* a library that splits whether it pays or not, */
    s.least_k = 64;
    s.split_ms = 2 * whole;
    p = pick(&s);
    assert_int_equal(2, p.split);
    assert_true(p.ms > s.split_ms);
    s.least_k = 0; /* a piece never being shorter than it may */
    s.min_split = 0;
    assert_int_equal(1, pick(&s).split);
}

/* -- small pieces -------------------------------------------------------------------------------- */

static void alignment_is_that_of_the_row_in_bytes(void **state)
{
    (void)state;
    static const struct {
        int64_t elements;
        double bytes;
        int alignment;
    } cases[] = {{50257, 2, 2}, {50304, 2, 16}, {50258, 2, 4}, {50260, 2, 8}, {1, 2, 2},   {8, 2, 16},   {4, 2, 8},
                 {1, 4, 4},     {2, 4, 8},      {4, 4, 16},    {1, 8, 8},     {16, 1, 16}, {8, 1, 8},    {17, 1, 1},
                 {32, 0.5, 16}, {16, 0.5, 8},   {2, 0.5, 1},   {1, 0.5, 1},   {4, 0.5, 2}, {768, 2, 16}, {1, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int got = ft__gemm_alignment(cases[i].elements, cases[i].bytes);
        if (got != cases[i].alignment)
            fail_msg("%lld elements of %g bytes: %d, expected %d", (long long)cases[i].elements, cases[i].bytes, got,
                     cases[i].alignment);
    }
}

/* Rows of A are k long, or m long when it is stored transposed; of B n or k; of C always n, in bf16 at least. */
static void layouts_decide_whose_length_counts(void **state)
{
    (void)state;
    static const struct {
        const char *layout;
        int64_t m, n, k;
        int each[3];
    } cases[] = {
        {"nn", 1, 8, 8, {16, 16, 16}},
        {"nt", 1, 8, 8, {16, 16, 16}},
        {"tn", 3, 8, 8, {2, 16, 16}},
        {"tt", 3, 8, 8, {2, 16, 16}},
        {"nn", 8, 3, 8, {16, 2, 2}},
        {"nt", 8, 3, 8, {16, 16, 2}},
        /* one row or column is a vector, whichever way it is said to lie */
        {"tn", 1, 8, 8, {16, 16, 16}},
        {"tn", 1, 8, 3, {2, 16, 16}},
        {"nn", 8, 1, 8, {16, 16, 16}},
        {"nt", 3, 1, 8, {16, 16, 2}},
        {"nn", 8, 8, 2, {4, 16, 16}},
        {"nt", 8, 8, 2, {4, 4, 16}},
        {"tn", 8, 8, 2, {16, 16, 16}},
        {"tt", 4, 8, 2, {8, 4, 16}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_op op = gemm(FT_BF16, cases[i].m, cases[i].n, cases[i].k);
        int each[3], least = 16;
        memcpy(op.u.gemm.layout, cases[i].layout, 3);
        int got = ft__gemm_op_alignment(&op, each);
        for (int j = 0; j < 3; j++) {
            assert_int_equal(cases[i].each[j], each[j]);
            if (each[j] < least) least = each[j];
        }
        assert_int_equal(least, got);
    }
    ft_op fp8 = gemm(FT_FP8, 16, 8, 16); /* fp8 writes bf16 */
    int each[3];
    ft__gemm_op_alignment(&fp8, each);
    assert_int_equal(16, each[2]);
}

/* On AMD's units one row in 8 bits is what two are, a tile; in 16 bits it is a vector, that streams faster. */
static void one_row_in_eight_bits_is_a_tile_on_amd(void **state)
{
    (void)state;
    static const struct {
        const char *gpu;
        ft_dtype dtype;
        bool tile;
    } cases[] = {
        {"mi300x", FT_FP8, true}, {"mi355x", FT_FP8, true}, {"mi300x", FT_BF16, false}, {"h100_sxm", FT_FP8, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_device device = limit_device(cases[i].gpu);
        ft_op one = gemm(cases[i].dtype, 1, 1280, 8192), two = gemm(cases[i].dtype, 2, 1280, 8192);
        double share = physics_of(&device, &one).body_ms / physics_of(&device, &two).body_ms;
        assert_true(cases[i].tile == (share > 0.9) && share < 1.01);
    }
}

static void the_smooth_maximum_is_a_maximum_and_grows(void **state)
{
    (void)state;
    for (double a = 0; a <= 4; a += 0.125)
        for (double b = 0; b <= 4; b += 0.125)
            for (double c = 0; c <= 0.5; c += 0.125) { /* beyond 0.5 it no longer grows in the larger argument */
                double s = ft__smooth_max(a, b, c), high = a > b ? a : b;
                assert_true(s >= high && s <= high * (1 + c) + 1e-12);
                assert_true(fabs(s - ft__smooth_max(b, a, c)) < 1e-15);
                assert_true(ft__smooth_max(a + 0.01, b, c) >= s);
                assert_true(ft__smooth_max(2 * a, 2 * b, c) <= 2 * s + 1e-12);
                if (c <= 0) assert_true(fabs(s - high) < 1e-15);
            }
    for (double a = 0.05; a <= 1; a += 0.05) {
        double norm = cbrt(1 + a * a * a);
        assert_true(fabs(ft__smooth_max(1, a, 0.26) / norm - 1) < 0.015);
    }
}

static void reloads_add_to_the_compulsory_bytes(void **state)
{
    (void)state;
    random_source r = {1};
    for (int i = 0; i < 3000; i++) {
        ft_device device = limit_device(limit_devices[random_below(&r, LIMIT_DEVICES)]);
        ft_op op = random_op(&r, random_bool(&r) ? RANDOM_GEMM : RANDOM_BMM, &device);
        op.u.gemm.quantized = 1;
        double resident, bytes = ft__gemm_bytes(&device, &op, 1, &resident);
        assert_true(isfinite(bytes) && bytes >= ft__op_bytes(&op) * (1 - 1e-12));
        assert_true(resident >= 0 && resident <= 1);
        double all = ft__gemm_memory_ms(&device, bytes, resident, 0.9, 0.5, 0.01, 1e-3);
        double cold = ft__gemm_memory_ms(&device, bytes, 0, 0.9, 0.5, 0.01, 1e-3);
        assert_true(cold >= bytes / (0.9 * device.memory_gbps * 1e6));
        assert_true(all > 0 && isfinite(all));
        /* More of it in the cache is never slower, where the cache is the faster one. */
        if (0.01 * device.peak_tflops[FT_FP16] * 1e9 > device.memory_gbps * 1e6) assert_true(all <= cold * (1 + 1e-12));
    }
    ft_device a100 = limit_device("a100_pcie_40gb");
    double resident;
    ft_op small = gemm(FT_BF16, 512, 512, 512), large = gemm(FT_BF16, 16384, 16384, 16384);
    assert_true(fabs(ft__gemm_bytes(&a100, &small, 1, &resident) / ft__op_bytes(&small) - 1) < 1e-12);
    assert_true(resident > 0.99); /* it still lies in L2 from the time before */
    assert_true(ft__gemm_bytes(&a100, &large, 1, &resident) > 1.5 * ft__op_bytes(&large));
    assert_true(resident < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_is_flat_inside_a_wave_and_doubles_after_it),
        cmocka_unit_test(a_wave_takes_what_its_arithmetic_or_its_operands_take),
        cmocka_unit_test(of_two_tiles_the_faster_one_is_taken),
        cmocka_unit_test(k_is_split_where_tiles_are_few_and_never_where_they_are_not),
        cmocka_unit_test(alignment_is_that_of_the_row_in_bytes),
        cmocka_unit_test(layouts_decide_whose_length_counts),
        cmocka_unit_test(one_row_in_eight_bits_is_a_tile_on_amd),
        cmocka_unit_test(the_smooth_maximum_is_a_maximum_and_grows),
        cmocka_unit_test(reloads_add_to_the_compulsory_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
