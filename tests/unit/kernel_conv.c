/* Convolutions: limits of the physics. */
#include "graph/operator.h"
#include "kernel_limits.h"
#include "shipped_predictor.h"

#include "kernel/families.h"

static ft_op conv(ft_dtype dtype, ft_pass pass, int64_t n, int64_t c, int64_t size, int64_t k, int64_t filter)
{
    ft_op op;
    ft__op_init("conv2d", &op);
    op.dtype = dtype;
    op.pass = pass;
    op.u.conv.n = n;
    op.u.conv.c = c;
    op.u.conv.h = op.u.conv.w = size;
    op.u.conv.k = k;
    op.u.conv.r = op.u.conv.s = filter;
    op.u.conv.pad = filter / 2;
    return op;
}

static const ft_dtype dtypes[] = {FT_BF16, FT_TF32, FT_FP32};

static void no_convolution_beats_the_roofline(void **state)
{
    (void)state;
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        for (int t = 0; t < 3; t++)
            for (int pass = FT_PASS_FWD; pass <= FT_PASS_FWD_BWD; pass++)
                for (int64_t filter = 1; filter <= 7; filter += 2)
                    for (int64_t c = 3; c < 3000; c *= 9)
                        for (int64_t n = 1; n < 300; n *= 16) {
                            ft_op op = conv(dtypes[t], (ft_pass)pass, n, c, 28, 2 * c, filter);
                            assert_above_floor(&device, &op);
                            op.u.conv.nhwc = false;
                            op.u.conv.stride = filter > 1 ? 2 : 1; /* 1x1 skips pixels, the floor counts them */
                            assert_above_floor(&device, &op);
                        }
    }
}

static void twice_the_images_is_never_faster(void **state)
{
    (void)state;
    ft_device device = limit_device("a100_sxm_80gb");
    for (int t = 0; t < 3; t++)
        for (int64_t c = 16; c <= 2048; c *= 2) {
            double before = 0;
            for (int64_t n = 1; n <= 256; n *= 2) {
                ft_op op = conv(dtypes[t], FT_PASS_FWD, n, c, 14, 256, 3);
                double ms = limit_ms(&device, &op);
                if (ms < before * 0.97) fail_msg("%lld images: %g ms, half as many: %g", (long long)n, ms, before);
                before = ms;
            }
        }
}

static void the_backward_pass_costs_more_and_both_cost_most(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    ft_op forward = conv(FT_BF16, FT_PASS_FWD, 32, 256, 28, 256, 3), backward = forward, both = forward;
    backward.pass = FT_PASS_BWD;
    both.pass = FT_PASS_FWD_BWD;
    double f = limit_ms(&device, &forward), b = limit_ms(&device, &backward), fb = limit_ms(&device, &both);
    assert_true(f < b && b < fb && fb < 1.1 * (f + b));
}

static void bandwidth_and_peak_only_help(void **state)
{
    (void)state;
    ft_device device = limit_device("l40s");
    ft_op thin = conv(FT_BF16, FT_PASS_FWD, 64, 16, 112, 16, 1),
          thick = conv(FT_BF16, FT_PASS_FWD, 64, 512, 28, 512, 3);
    assert_falls_with_bandwidth(device, &thin);
    assert_falls_with_bandwidth(device, &thick);
    ft_device faster = device;
    for (int t = 0; t < FT_DTYPE_COUNT; t++) faster.peak_tflops[t] *= 1.3;
    assert_true(limit_ms(&faster, &thick) < limit_ms(&device, &thick));
}

static void nchw_pays_for_transposes_except_with_one_by_one_filters(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    ft_op nhwc = conv(FT_BF16, FT_PASS_FWD, 64, 64, 56, 64, 3), nchw = nhwc;
    nchw.u.conv.nhwc = false;
    assert_true(limit_ms(&device, &nchw) > 1.3 * limit_ms(&device, &nhwc));
    nhwc = conv(FT_BF16, FT_PASS_FWD, 64, 64, 56, 64, 1), nchw = nhwc;
    nchw.u.conv.nhwc = false;
    assert_true(limit_ms(&device, &nchw) < 1.05 * limit_ms(&device, &nhwc));
}

static void fp32_pays_for_transposes_in_the_other_layout(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    ft_op nchw = conv(FT_FP32, FT_PASS_FWD, 64, 64, 56, 64, 3), nhwc = nchw;
    nchw.u.conv.nhwc = false;
    assert_true(limit_ms(&device, &nhwc) > 1.1 * limit_ms(&device, &nchw));
}

static void large_filters_run_on_kernels_of_the_generation_before(void **state)
{
    (void)state;
    ft_device hopper = limit_device("h200_sxm"), ampere = limit_device("a100_sxm_80gb");
    ft_op five = conv(FT_BF16, FT_PASS_FWD, 64, 256, 112, 256, 5),
          seven = conv(FT_BF16, FT_PASS_FWD, 64, 256, 112, 256, 7);
    double work = 49.0 / 25, h = limit_ms(&hopper, &seven) / limit_ms(&hopper, &five);
    assert_true(h > 1.5 * work && h < 4 * work);
    /* Rounding operands for tf32 is a pass that only those kernels need: there are none of them on Ampere. */
    five = conv(FT_TF32, FT_PASS_FWD, 64, 256, 112, 16, 7);
    ft_op image = five;
    image.u.conv.c = 512;
    assert_true(limit_ms(&ampere, &image) > 1.5 * limit_ms(&ampere, &five));
}

static void holes_of_the_heuristic_are_slow_and_hopper_only(void **state)
{
    (void)state;
    ft_device hopper = limit_device("h200_sxm"), ampere = limit_device("a100_sxm_80gb");
    ft_op in = conv(FT_BF16, FT_PASS_FWD, 16, 128, 56, 1024, 7), out = conv(FT_BF16, FT_PASS_FWD, 32, 256, 56, 1024, 7);
    assert_true(limit_ms(&hopper, &in) > 2 * limit_ms(&hopper, &out)); /* 19.0 and 5.2 ms, at a quarter of the work */
    assert_true(limit_ms(&ampere, &in) < limit_ms(&ampere, &out));
    in = conv(FT_BF16, FT_PASS_BWD, 32, 512, 14, 1024, 7), out = conv(FT_BF16, FT_PASS_BWD, 64, 512, 14, 1024, 7);
    assert_true(limit_ms(&hopper, &in) > 2 * limit_ms(&hopper, &out));
}

static void pixels_between_strides_are_not_read(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    ft_op dense = conv(FT_BF16, FT_PASS_FWD, 64, 512, 56, 64, 1), strided = dense;
    strided.u.conv.stride = 2;
    assert_true(limit_ms(&device, &strided) < 0.6 * limit_ms(&device, &dense));
}

/* Rows of data/measurements/h200/convolution.csv.gz: fp16 in NCHW goes to cuDNN, bf16 to PyTorch's own kernels, three
 * times as long. */
static void depthwise_as_measured(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    const struct {
        ft_dtype dtype;
        bool nhwc;
        int64_t n, c, size, filter;
        double us;
    } rows[] = {
        {FT_FP16, false, 256, 240, 28, 3, 156.2}, {FT_BF16, false, 256, 144, 56, 3, 1077.2},
        {FT_FP16, true, 256, 144, 56, 3, 171.6},  {FT_BF16, true, 256, 192, 28, 7, 323.6},
        {FT_FP32, false, 32, 672, 14, 5, 70.2},   {FT_FP32, true, 64, 192, 28, 7, 193.9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ft_op op = conv(rows[i].dtype, FT_PASS_FWD, rows[i].n, rows[i].c, rows[i].size, rows[i].c, rows[i].filter);
        op.u.conv.groups = rows[i].c;
        op.u.conv.nhwc = rows[i].nhwc;
        double us = 1e3 * limit_ms(&device, &op);
        if (fabs(us / rows[i].us - 1) > 0.25) fail_msg("row %zu: %g us, measured %g", i, us, rows[i].us);
    }
}

/* Layers of a FastViT and a GhostNetV2 under the profiler, batch 128 in bf16, channels last: no specialised kernel of
 * cuDNN's takes filters of unequal sides, of one pixel going back, or several per channel. */
static void depthwise_without_a_kernel_of_its_own(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    const struct {
        int64_t c, k, size, tall, wide, stride;
        int part;
        double us;
    } rows[] = {
        {48, 96, 64, 7, 7, 2, FT_CONV_RESULT, 4603},  {48, 96, 64, 3, 3, 2, FT_CONV_RESULT, 1223},
        {96, 192, 32, 7, 7, 2, FT_CONV_RESULT, 1934}, {192, 384, 16, 3, 3, 2, FT_CONV_RESULT, 738},
        {72, 72, 28, 5, 1, 1, FT_CONV_RESULT, 197},   {72, 72, 28, 1, 5, 1, FT_CONV_RESULT, 190},
        {72, 72, 28, 5, 1, 1, FT_CONV_INPUT, 104},    {672, 672, 7, 1, 5, 1, FT_CONV_INPUT, 36},
        {672, 672, 7, 5, 1, 1, FT_CONV_FILTER, 119},  {48, 48, 128, 1, 1, 2, FT_CONV_FILTER, 3698},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool forward = rows[i].part == FT_CONV_RESULT;
        ft_op op = conv(FT_BF16, forward ? FT_PASS_FWD : FT_PASS_BWD, 128, rows[i].c, rows[i].size, rows[i].k,
                        rows[i].tall);
        op.u.conv.groups = rows[i].c;
        op.u.conv.nhwc = true;
        op.u.conv.s = rows[i].wide;
        op.u.conv.stride = rows[i].stride;
        if (rows[i].wide != rows[i].tall) { /* an image just large enough, as unequal padding is kept */
            op.u.conv.pad = 0;
            op.u.conv.h = rows[i].size + rows[i].tall - 1;
            op.u.conv.w = rows[i].size + rows[i].wide - 1;
        }
        op.u.conv.parts = rows[i].part;
        double us = 1e3 * limit_ms(&device, &op);
        if (fabs(log(us / rows[i].us)) > 0.4) fail_msg("row %zu: %g us, measured %g", i, us, rows[i].us);
    }
}

/* Rows of the same file: a result of a narrow group costs the same whatever its width, unless that does not divide
 * 32. */
static void narrow_groups_as_measured(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    double us[2][4];
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < 4; i++) {
            int64_t widths[] = {8, 16, 24, 32};
            ft_op op = conv(FT_BF16, FT_PASS_FWD, 64, 768, 28, 768, 3);
            op.u.conv.groups = 768 / widths[i];
            op.u.conv.nhwc = last;
            us[last][i] = 1e3 * limit_ms(&device, &op);
        }
    assert_true(fabs(us[1][0] / us[1][3] - 1) < 0.2 && fabs(us[1][1] / us[1][3] - 1) < 0.2);
    assert_true(us[1][2] > 3 * us[1][3] && us[0][3] > 1.3 * us[1][3]);
    /* 64 images of 1024 channels, 14x14, groups of 32 in NHWC: 90 to 107 multiply-adds per ps */
    ft_op op = conv(FT_BF16, FT_PASS_FWD, 64, 1024, 14, 1024, 3);
    op.u.conv.groups = 32;
    double rate = 64.0 * 14 * 14 * 1024 * 32 * 9 / (1e9 * limit_ms(&device, &op));
    if (!(rate > 60 && rate < 110)) fail_msg("%g multiply-adds per ps", rate);
}

/* Rows of data/measurements/h200/workspaces.jsonl.gz: groups of 112 channels are padded to 128, which takes cuDNN
 * longer than the product where channels lie last; and the products of a convolution each by itself. */
static void wide_groups_are_padded(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    ft_op op = conv(FT_BF16, FT_PASS_FWD, 64, 224, 56, 224, 3);
    op.u.conv.groups = 2;
    op.u.conv.nhwc = true;
    double us = 1e3 * limit_ms(&device, &op);
    if (fabs(us / 983.6 - 1) > 0.2) fail_msg("%g us, measured 983.6", us);
    op.u.conv.groups = 1;
    const int parts[] = {FT_CONV_RESULT, FT_CONV_INPUT, FT_CONV_FILTER};
    double sum = 0, each[3];
    for (int i = 0; i < 3; i++) {
        op.u.conv.parts = parts[i];
        sum += each[i] = limit_ms(&device, &op);
    }
    op.u.conv.parts = 0;
    op.pass = FT_PASS_BWD;
    double both = limit_ms(&device, &op);
    assert_true(each[1] < 0.7 * both && each[2] < 0.7 * both && fabs((each[1] + each[2]) / both - 1) < 0.25);
    assert_true(sum > both && ft__op_flops(&op) == 2 * (64.0 * 56 * 56 * 224 * 224 * 9 * 2));
}

/* Images of 14x14 in NCHW begin at odd addresses: beyond an A100 the product takes them so, elsewhere they are turned
 * where that is quicker. */
static void unaligned_images_are_turned_or_suffered(void **state)
{
    (void)state;
    ft_device turns = limit_device("rtx_3090"), suffers = limit_device("h200_sxm");
    ft_op odd = conv(FT_FP16, FT_PASS_FWD, 128, 1024, 14, 256, 1),
          even = conv(FT_FP16, FT_PASS_FWD, 128, 1024, 16, 256, 1);
    odd.u.conv.nhwc = even.u.conv.nhwc = false;
    double turned = limit_ms(&turns, &odd) / limit_ms(&turns, &even),
           suffered = limit_ms(&suffers, &odd) / limit_ms(&suffers, &even);
    if (!(turned < 1.5 && suffered > 1.2 * turned)) fail_msg("turned %g, suffered %g", turned, suffered);
}

/* A stem's three channels are padded to eight on matrix units up to an A100's, and its taps packed. */
static void a_stem_is_packed(void **state)
{
    (void)state;
    ft_device device = limit_device("a100_sxm_80gb");
    ft_op stem = conv(FT_FP16, FT_PASS_FWD, 256, 3, 224, 64, 7), eight = conv(FT_FP16, FT_PASS_FWD, 256, 8, 224, 64, 7);
    stem.u.conv.stride = eight.u.conv.stride = 2;
    assert_true(limit_ms(&device, &stem) < 1.5 * limit_ms(&device, &eight));
}

/* Shared memory feeds 64 lanes of an SM as well as 128: of the peak, a V100's fp32 gradients reach more. */
static void fewer_lanes_are_better_fed(void **state)
{
    (void)state;
    ft_device few = limit_device("v100_sxm_32gb"), many = limit_device("h200_sxm");
    ft_op op = conv(FT_FP32, FT_PASS_BWD, 128, 256, 28, 512, 1);
    op.u.conv.nhwc = false;
    double peak_few = (double)few.sms * few.lanes_per_sm * few.boost_mhz,
           peak_many = (double)many.sms * many.lanes_per_sm * many.boost_mhz;
    assert_true(limit_ms(&few, &op) * peak_few < 0.75 * limit_ms(&many, &op) * peak_many);
}

static double shipped_ms(const ft_device *device, ft_op op)
{
    ft_forecast out;
    ft_error err = {0};
    op.u.conv.nhwc = false;
    assert_int_equal(ft__kernel_forecast(predictor, device, &op, 0.9, &out, &err), FT_OK);
    return out.ms;
}

/* An H200's library sums the gradients of 1x1 filters in fp32 at a fifth of its peak. A V100, whose forward kernels
 * were measured and whose gradients were not, has its own forward constants; formats that only the H200 has do not. */
static void gradients_are_lent_the_forward_constants_of_their_gpu(void **state)
{
    (void)state;
    ft_device v100 = limit_device("v100_sxm_16gb"), h200 = limit_device("h200_sxm");
    int backward = -1, half = -1;
    ft_op op = conv(FT_FP32, FT_PASS_BWD, 128, 256, 56, 64, 1), of_half = conv(FT_FP16, FT_PASS_BWD, 8, 64, 56, 64, 1);
    const ft_family *family = ft__family_of(&op, &backward);
    ft__family_of(&of_half, &half);
    assert_non_null(ft__predictor_lent(predictor, family, backward, &v100));
    assert_null(ft__predictor_lent(predictor, family, half, &v100));
    ft_op forward = op;
    forward.pass = FT_PASS_FWD;
    double here = shipped_ms(&v100, op) / shipped_ms(&v100, forward),
           there = shipped_ms(&h200, op) / shipped_ms(&h200, forward);
    assert_true(here > 1.5 && here < 3.5 && there > 4);
}

/* An image's gradient without a stride is a convolution with turned filters, and goes by the same algorithm: filters
 * of 3x3 through Winograd's transform, faster than the peak allows their multiplications. With a stride it does not. */
static void a_lent_gradient_of_a_picture_goes_as_the_result(void **state)
{
    (void)state;
    ft_device v100 = limit_device("v100_sxm_16gb");
    ft_op small = conv(FT_FP32, FT_PASS_BWD, 128, 256, 14, 256, 3), strided = small;
    small.u.conv.parts = strided.u.conv.parts = FT_CONV_INPUT;
    small.u.conv.pad = strided.u.conv.pad = 1;
    strided.u.conv.stride = 2;
    double flops = 2.0 * 128 * 14 * 14 * 256 * 256 * 9, peak = v100.peak_tflops[FT_FP32] * 1e9;
    assert_true(flops / shipped_ms(&v100, small) > 1.05 * peak);
    assert_true(flops / 4 / shipped_ms(&v100, strided) < 0.95 * peak);
}

static void a_device_nobody_measured_gets_a_sane_answer(void **state)
{
    (void)state;
    ft_device stranger = limit_stranger();
    ft_op op = conv(FT_FP32, FT_PASS_FWD_BWD, 8, 64, 56, 64, 3);
    op.u.conv.nhwc = false;
    op.timing = FT_TIMING_OP;
    double ms = limit_ms(&stranger, &op);
    assert_true(ms > ft__floor_ms(&stranger, &op) && ms < 1e5);
}

/* The power of two in the channels of a group, read and written; behind them what the library answers, but for
 * depthwise filters. */
static void trees_see_what_divides_the_channels(void **state)
{
    (void)state;
    static const struct {
        int64_t c, k, groups;
        float even_c, even_k;
    } rows[] = {{96, 80, 1, 32, 16}, {1536, 3, 1, 256, 1}, {96, 192, 4, 8, 16}, {96, 96, 96, 1, 1}};
    ft_device h200 = limit_device("h200_sxm");
    int last = ft__conv_family.feature_count - 1;
    double theta[FT_MAX_THETA] = {0};
    for (int j = 0; j < ft__conv_family.parameter_count; j++) theta[j] = ft__conv_family.parameters[j].start;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ft_op op = conv(FT_BF16, FT_PASS_FWD, 8, rows[i].c, 28, rows[i].k, 3);
        ft_physics ph;
        op.u.conv.groups = rows[i].groups;
        ft__conv_family.physics(&h200, &op, theta, true, &ph);
        assert_true(ph.feature[last - 3] == rows[i].even_c && ph.feature[last - 2] == rows[i].even_k);
        assert_true((ph.feature[last - 1] > 0) == (rows[i].groups < rows[i].c) && !(ph.feature[last] > 0));
    }
}

static void tables_are_sound(void **state)
{
    (void)state;
    assert_sound_tables(&ft__conv_family);
    for (int v = 0; v < ft__conv_family.variant_count; v++) {
        int steps = 0;
        for (int next = v; next >= 0; next = ft__conv_family.variant_fallback(next)) assert_true(steps++ < 9);
        assert_non_null(ft__conv_family.variant_name(v));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_convolution_beats_the_roofline),
        cmocka_unit_test(twice_the_images_is_never_faster),
        cmocka_unit_test(the_backward_pass_costs_more_and_both_cost_most),
        cmocka_unit_test(bandwidth_and_peak_only_help),
        cmocka_unit_test(nchw_pays_for_transposes_except_with_one_by_one_filters),
        cmocka_unit_test(fp32_pays_for_transposes_in_the_other_layout),
        cmocka_unit_test(large_filters_run_on_kernels_of_the_generation_before),
        cmocka_unit_test(holes_of_the_heuristic_are_slow_and_hopper_only),
        cmocka_unit_test(pixels_between_strides_are_not_read),
        cmocka_unit_test(depthwise_as_measured),
        cmocka_unit_test(depthwise_without_a_kernel_of_its_own),
        cmocka_unit_test(narrow_groups_as_measured),
        cmocka_unit_test(wide_groups_are_padded),
        cmocka_unit_test(unaligned_images_are_turned_or_suffered),
        cmocka_unit_test(a_stem_is_packed),
        cmocka_unit_test(fewer_lanes_are_better_fed),
        cmocka_unit_test(gradients_are_lent_the_forward_constants_of_their_gpu),
        cmocka_unit_test(a_lent_gradient_of_a_picture_goes_as_the_result),
        cmocka_unit_test(a_device_nobody_measured_gets_a_sane_answer),
        cmocka_unit_test(trees_see_what_divides_the_channels),
        cmocka_unit_test(tables_are_sound),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
