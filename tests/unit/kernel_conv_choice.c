/* Which kernels a library takes for convolutions: as its heuristic answered, where it was asked. */
#include "graph/operator.h"
#include "kernel_limits.h"

#include "kernel/conv_choice.h"
#include "kernel/depthwise.h"

static ft_op conv(int64_t n, int64_t c, int64_t size, int64_t k, int64_t filter)
{
    ft_op op;
    ft__op_init("conv2d", &op);
    op.dtype = FT_BF16;
    op.u.conv.n = n;
    op.u.conv.c = c;
    op.u.conv.h = op.u.conv.w = size;
    op.u.conv.k = k;
    op.u.conv.r = op.u.conv.s = filter;
    op.u.conv.pad = filter / 2;
    op.u.conv.nhwc = true;
    return op;
}

static ft_conv_choice choice(const char *gpu, const ft_op *op, int part)
{
    ft_device device = limit_device(gpu);
    ft_conv_layer layer = ft__conv_layer(op);
    return ft__conv_choice(&device, op, &layer, part);
}

/* Tiles that cuDNN 9.19 answered (python/measure/heuristic.py). */
static void tiles_are_those_that_the_library_answers(void **state)
{
    (void)state;
    static const struct {
        int64_t n, c, size, k, filter;
        int m, width;
    } asked[] = {{1, 128, 28, 128, 3, 64, 64},
                 {64, 64, 56, 64, 3, 256, 64},
                 {32, 128, 28, 128, 3, 128, 128},
                 {20, 256, 14, 256, 3, 64, 128},
                 {32, 256, 14, 256, 3, 128, 128}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        ft_op op = conv(asked[i].n, asked[i].c, asked[i].size, asked[i].k, asked[i].filter);
        ft_conv_choice got = choice("h200_sxm", &op, FT_CONV_RESULT);
        assert_true(got.way > 0);
        if (got.m != asked[i].m || got.n != asked[i].width)
            fail_msg("%zu: %dx%d, the library answers %dx%d", i, got.m, got.n, asked[i].m, asked[i].width);
    }
}

/* How those kernels are run, as cuDNN 9.19 answered: tiles of a cluster, and how often a sum is shared out. */
static void ways_of_running_are_those_that_the_library_answers(void **state)
{
    (void)state;
    ft_op op = conv(32, 128, 28, 128, 3);
    ft_conv_choice result = choice("h200_sxm", &op, FT_CONV_RESULT), filters = choice("h200_sxm", &op, FT_CONV_FILTER);
    assert_int_equal(result.cluster_m, 8);
    assert_int_equal(result.cluster_n, 1);
    assert_int_equal(result.split, 0);
    assert_int_equal(filters.cluster_m, 1);
    assert_int_equal(filters.cluster_n, 3);
    op = conv(32, 32, 56, 32, 3); /* 61 parts, and no clusters on a kernel of the generation before */
    filters = choice("h200_sxm", &op, FT_CONV_FILTER);
    assert_int_equal(filters.split, 32);
    assert_int_equal(filters.cluster_m, 0);
    op.dtype = FT_TF32; /* was not asked how */
    filters = choice("h200_sxm", &op, FT_CONV_FILTER);
    assert_true(filters.way > 0);
    assert_int_equal(filters.split + filters.cluster_m + filters.cluster_n + filters.room + filters.depth, 0);
}

/* Taps far apart are beyond Hopper's kernels: cuDNN 9.19 answers one of the generation before, which has no
 * clusters. */
static void how_far_taps_lie_apart_decides(void **state)
{
    (void)state;
    ft_op op = conv(8, 256, 30, 256, 3);
    op.u.conv.pad = 0, op.u.conv.dilated = 2;
    ft_conv_choice near = choice("h200_sxm", &op, FT_CONV_RESULT);
    op.u.conv.dilated = 12;
    ft_conv_choice far = choice("h200_sxm", &op, FT_CONV_RESULT);
    assert_int_equal(near.cluster_m, 1);
    assert_int_equal(near.cluster_n, 2);
    assert_int_equal(far.cluster_m + far.cluster_n, 0);
    assert_true(far.way > near.way);
}

/* One dimension of 1,000 pixels, and a clip of 8 images, as those that stand for them (graph/convolution.c). */
static void other_dimensions_were_asked_too(void **state)
{
    (void)state;
    ft_op row = conv(16, 256, 1002, 256, 3), clip = conv(16, 384, 30, 128, 3);
    row.u.conv.h = row.u.conv.r = row.u.conv.space = 1, row.u.conv.pad = 0, row.u.conv.nhwc = false;
    clip.u.conv.pad = 0, clip.u.conv.space = clip.u.conv.depth = 3;
    ft_conv_choice of_row = choice("h200_sxm", &row, FT_CONV_RESULT),
                   of_clip = choice("h200_sxm", &clip, FT_CONV_RESULT);
    assert_int_equal(of_row.m, 128);
    assert_int_equal(of_row.cluster_n, 2);
    assert_int_equal(of_clip.m, 64);
    assert_int_equal(of_clip.n, 128);
    assert_int_equal(of_clip.cluster_m, 7);
}

static void products_are_asked_apart(void **state)
{
    (void)state;
    ft_op op = conv(8, 512, 28, 64, 3);
    ft_conv_choice data = choice("h200_sxm", &op, FT_CONV_INPUT), filters = choice("h200_sxm", &op, FT_CONV_FILTER);
    assert_true(data.way > 0 && filters.way > 0);
    assert_true(data.m != filters.m || data.n != filters.n || data.way != filters.way);
}

static void nothing_is_known_of_others(void **state)
{
    (void)state;
    ft_op plain = conv(32, 128, 28, 128, 3), op = plain;
    assert_true(choice("h200_sxm", &plain, FT_CONV_RESULT).way > 0);
    assert_int_equal(choice("a100_sxm_80gb", &plain, FT_CONV_RESULT).way, 0);
    assert_int_equal(choice("b200_sxm", &plain, FT_CONV_RESULT).way, 0);
    op.dtype = FT_FP64;
    assert_int_equal(choice("h200_sxm", &op, FT_CONV_RESULT).way, 0);
    op.dtype = FT_TF32, op.u.conv.groups = 4;
    assert_int_equal(choice("h200_sxm", &op, FT_CONV_RESULT).way, 0);
    op = plain, op.u.conv.groups = 128; /* PyTorch's own kernels */
    assert_int_equal(choice("h200_sxm", &op, FT_CONV_RESULT).way, 0);
    op = plain, op.u.conv.dilated = 2, op.dtype = FT_FP32;
    assert_int_equal(choice("h200_sxm", &op, FT_CONV_RESULT).way, 0);
    op = plain, op.u.conv.dilated = 2, op.u.conv.groups = 4;
    assert_int_equal(choice("h200_sxm", &op, FT_CONV_RESULT).way, 0);
    op = conv(32, 128, 28, 128, 1); /* a product, which another library takes */
    assert_int_equal(choice("h200_sxm", &op, FT_CONV_RESULT).way, 0);
    op.dtype = FT_TF32;
    assert_int_equal(choice("h200_sxm", &op, FT_CONV_RESULT).way, 0);
    op.u.conv.stride = 2;
    assert_true(choice("h200_sxm", &op, FT_CONV_RESULT).way > 0);
    op = plain, op.u.conv.space = 3, op.dtype = FT_FP32;
    assert_int_equal(choice("h200_sxm", &op, FT_CONV_RESULT).way, 0);
}

/* Wider formats and groups have trees of their own; products in fp32 are convolutions to the library. */
static void formats_and_groups_are_known(void **state)
{
    (void)state;
    static const int parts[] = {FT_CONV_RESULT, FT_CONV_INPUT, FT_CONV_FILTER};
    ft_op half = conv(32, 128, 28, 128, 3), tf32 = half, fp32 = half, groups = half,
          product = conv(32, 128, 28, 128, 1);
    tf32.dtype = FT_TF32, fp32.dtype = product.dtype = FT_FP32, groups.u.conv.groups = 4;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        assert_true(choice("h200_sxm", &half, parts[i]).way > 0);
        assert_true(choice("h200_sxm", &tf32, parts[i]).way > 0);
        assert_true(choice("h200_sxm", &fp32, parts[i]).way > 0);
        assert_true(choice("h200_sxm", &groups, parts[i]).way > 0);
        assert_true(choice("h200_sxm", &product, parts[i]).way > 0);
    }
}

/* PyTorch's own depthwise kernels pass over taps beside the image: of 31x31 over 12x12 a third count. */
static void taps_beside_the_picture_are_passed_over(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    ft_op large = conv(256, 576, 12, 576, 31), small = conv(256, 576, 12, 576, 11);
    large.u.conv.nhwc = small.u.conv.nhwc = false;
    large.u.conv.groups = small.u.conv.groups = 576;
    double most = ft__depthwise(&device, &large).compute_ms, some = ft__depthwise(&device, &small).compute_ms;
    assert_true(most > some);
    assert_true(most < 4 * some);
    large.u.conv.nhwc = small.u.conv.nhwc = true; /* cuDNN's do not */
    assert_true(ft__depthwise(&device, &large).compute_ms > 7 * ft__depthwise(&device, &small).compute_ms);
}

/* Gradients of large filters, channels last in 32 bits, as an H200's profiler has them: cuDNN takes them tap by tap; in
 * tf32 large pictures go by matrix units. */
static void large_depthwise_filters_as_measured(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    const struct {
        ft_dtype dtype;
        int64_t c, size, filter;
        double us;
    } rows[] = {
        {FT_FP32, 192, 56, 7, 8749.6}, {FT_FP32, 384, 28, 7, 3645},   {FT_FP32, 768, 14, 7, 1446.6},
        {FT_FP32, 1536, 7, 7, 530.2},  {FT_TF32, 192, 56, 7, 4536.8}, {FT_TF32, 384, 28, 7, 3652.9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ft_op op = conv(32, rows[i].c, rows[i].size, rows[i].c, rows[i].filter);
        op.dtype = rows[i].dtype;
        op.pass = FT_PASS_BWD;
        op.u.conv.groups = rows[i].c;
        op.u.conv.nhwc = true;
        op.u.conv.parts = FT_CONV_FILTER;
        double us = 1e3 * ft__depthwise(&device, &op).ms;
        if (fabs(us / rows[i].us - 1) > 0.25) fail_msg("row %zu: %g us, measured %g", i, us, rows[i].us);
    }
}

/* What a multiply-add costs besides is arithmetic of places: half the fp32 lanes of an SM that issues as much beside
 * them take as long, half of what it issues twice. */
static void depthwise_filters_are_as_fast_as_their_sm_issues(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    ft_op op = conv(64, 96, 56, 96, 3);
    op.u.conv.groups = 96;
    for (int last = 0; last < 2; last++) {
        op.u.conv.nhwc = last;
        double ms = ft__depthwise(&device, &op).compute_ms;
        device.lanes_per_sm /= 2;
        assert_float_equal(ms, ft__depthwise(&device, &op).compute_ms, 1e-12);
        device.lanes_per_sm *= 2;
        device.issue_lanes_per_sm /= 2;
        assert_float_equal(2 * ms, ft__depthwise(&device, &op).compute_ms, 1e-12);
        device.issue_lanes_per_sm *= 2;
    }
}

/* MIOpen fills tiles up: 480 channels of 28x28 and 5x5 filters on an MI350X, 64 of 56x56 and 3x3, an MI308X, which is
 * an MI300X with 80 of its CUs (rocm-libraries, pull request 5645). */
static void a_depthwise_result_costs_the_same_on_amd(void **state)
{
    (void)state;
    ft_device small = limit_device("mi300x"), device = limit_device("mi350x");
    ft_op wide = conv(128, 480, 28, 480, 5), narrow = conv(1024, 64, 56, 64, 3);
    wide.u.conv.groups = 480, narrow.u.conv.groups = 64;
    wide.u.conv.parts = narrow.u.conv.parts = FT_CONV_RESULT;
    small.sms = 80;
    assert_float_equal(ft__depthwise(&device, &wide).ms, 2.78, 0.1 * 2.78);
    assert_float_equal(ft__depthwise(&device, &narrow).ms, 11.86, 0.1 * 11.86);
    assert_float_equal(ft__depthwise(&small, &wide).ms, 15.25, 0.1 * 15.25);
    assert_float_equal(ft__depthwise(&small, &narrow).ms, 65.0, 0.1 * 65.0);
    ft_op taller = wide;
    taller.u.conv.r = taller.u.conv.s = 7, taller.u.conv.pad = 3;
    assert_float_equal(ft__depthwise(&device, &taller).ms, ft__depthwise(&device, &wide).ms, 1e-9);
    taller.u.conv.parts = FT_CONV_INPUT;
    assert_true(ft__depthwise(&device, &taller).ms > 2 * ft__depthwise(&device, &wide).ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_those_that_the_library_answers),
        cmocka_unit_test(ways_of_running_are_those_that_the_library_answers),
        cmocka_unit_test(how_far_taps_lie_apart_decides),
        cmocka_unit_test(other_dimensions_were_asked_too),
        cmocka_unit_test(products_are_asked_apart),
        cmocka_unit_test(nothing_is_known_of_others),
        cmocka_unit_test(depthwise_filters_are_as_fast_as_their_sm_issues),
        cmocka_unit_test(large_depthwise_filters_as_measured),
        cmocka_unit_test(formats_and_groups_are_known),
        cmocka_unit_test(taps_beside_the_picture_are_passed_over),
        cmocka_unit_test(a_depthwise_result_costs_the_same_on_amd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
