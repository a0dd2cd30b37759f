/* Convolutions for which cuDNN has no good kernel, against rows of data/measurements/h200/operators_third.jsonl. */
#include "graph/operator.h"
#include "kernel_limits.h"

#include "kernel/families.h"
#include "kernel/grouped.h"

static ft_op line(int64_t n, int64_t length, int64_t groups, int64_t width, int64_t taps, int part)
{
    ft_op op;
    ft__op_init("conv2d", &op);
    op.dtype = FT_BF16;
    op.u.conv.n = n;
    op.u.conv.c = op.u.conv.k = groups * width;
    op.u.conv.groups = groups;
    op.u.conv.h = 1;
    op.u.conv.w = length + taps; /* as padded */
    op.u.conv.r = 1;
    op.u.conv.s = taps;
    op.u.conv.pad = 0;
    op.u.conv.space = 1;
    op.u.conv.parts = part;
    return op;
}

/* Positions of wav2vec 2.0 and its kin: 64 taps and more have no kernel for groups, each of which waits for itself, so
 * that two sequences take as long as eight; groups of 48 channels fall to vector units. */
static void long_filters_run_group_by_group(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    const struct {
        int64_t n, length, groups, width, taps;
        int part;
        double us;
    } rows[] = {
        {8, 249, 16, 48, 128, FT_CONV_RESULT, 31958}, {2, 499, 16, 48, 128, FT_CONV_RESULT, 31849},
        {8, 249, 16, 64, 128, FT_CONV_RESULT, 2139},  {8, 249, 16, 32, 128, FT_CONV_RESULT, 1125},
        {8, 249, 16, 80, 128, FT_CONV_RESULT, 53689}, {8, 249, 4, 48, 128, FT_CONV_RESULT, 7938},
        {8, 249, 16, 48, 64, FT_CONV_RESULT, 1152},   {8, 249, 16, 24, 128, FT_CONV_RESULT, 1137},
        {8, 249, 16, 48, 128, FT_CONV_INPUT, 3931},   {8, 249, 16, 64, 128, FT_CONV_INPUT, 4012},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ft_op op = line(rows[i].n, rows[i].length, rows[i].groups, rows[i].width, rows[i].taps, rows[i].part);
        double us = 1e3 * ft__grouped_kernels_ms(&device, &op);
        if (fabs(us / rows[i].us - 1) > 0.15) fail_msg("row %zu: %g us, measured %g", i, us, rows[i].us);
    }
    /* Shorter ones and narrow groups have one. */
    ft_op shorter = line(8, 249, 16, 48, 31, FT_CONV_RESULT), narrow = line(8, 249, 16, 16, 128, FT_CONV_RESULT);
    assert_true(ft__grouped_kernels_ms(&device, &shorter) == 0 && ft__grouped_kernels_ms(&device, &narrow) == 0);
    /* The filters' gradient sums over pixels: one kernel. */
    ft_op filters = line(8, 249, 16, 48, 128, FT_CONV_FILTER);
    assert_true(ft__grouped_kernels_ms(&device, &filters) == 0);
}

static ft_op point(int64_t n, int64_t side, int64_t groups, int64_t width, int parts)
{
    ft_op op;
    ft__op_init("conv2d", &op);
    op.dtype = FT_BF16;
    op.u.conv.n = n;
    op.u.conv.h = op.u.conv.w = side;
    op.u.conv.c = op.u.conv.k = groups * width;
    op.u.conv.groups = groups;
    op.u.conv.r = op.u.conv.s = op.u.conv.stride = 1;
    op.u.conv.pad = 0;
    op.u.conv.nhwc = true;
    op.u.conv.parts = parts;
    return op;
}

/* Filters of one pixel in groups, as EfficientViT's attention has them: group by group going back, and forward from 16
 * channels on. Measured on an H200; whether sums over pixels are cut is not known, hence a factor of two. */
static void filters_of_one_pixel_run_group_by_group(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    const struct {
        int64_t n, side, groups, width;
        int parts;
        double us;
    } rows[] = {
        {128, 14, 24, 16, FT_CONV_RESULT, 161},
        {128, 7, 48, 16, FT_CONV_RESULT, 174},
        {64, 28, 24, 32, FT_CONV_RESULT, 603},
        {128, 14, 24, 16, FT_CONV_INPUT | FT_CONV_FILTER, 2782},
        {128, 7, 48, 16, FT_CONV_INPUT | FT_CONV_FILTER, 1022},
        {64, 28, 8, 16, FT_CONV_INPUT | FT_CONV_FILTER, 344},
        {16, 7, 24, 8, FT_CONV_INPUT | FT_CONV_FILTER, 327},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ft_op op = point(rows[i].n, rows[i].side, rows[i].groups, rows[i].width, rows[i].parts);
        double us = 1e3 * ft__grouped_kernels_ms(&device, &op);
        if (us > 2 * rows[i].us || us < rows[i].us / 2) fail_msg("row %zu: %g us, measured %g", i, us, rows[i].us);
    }
    /* Narrow groups forward, and wide ones of many pixels, have a kernel. */
    ft_op narrow = point(128, 14, 24, 8, FT_CONV_RESULT), wide = point(128, 14, 8, 64, FT_CONV_RESULT);
    assert_true(ft__grouped_kernels_ms(&device, &narrow) == 0 && ft__grouped_kernels_ms(&device, &wide) == 0);
}

static ft_op whole(int64_t n, int64_t c, int64_t k, int64_t side)
{
    ft_op op;
    ft__op_init("conv2d", &op);
    op.dtype = FT_BF16;
    op.u.conv.n = n;
    op.u.conv.c = c;
    op.u.conv.k = k;
    op.u.conv.h = op.u.conv.w = op.u.conv.r = op.u.conv.s = side;
    op.u.conv.pad = 0;
    op.u.conv.parts = FT_CONV_RESULT;
    return op;
}

/* VGG's first linear layer as timm keeps it. Which sums a tile adds up decides, not how many results there are. */
static void filters_as_large_as_their_picture(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm"), older = limit_device("a100_sxm_80gb");
    const struct {
        int64_t n, c, k;
        double us;
    } rows[] = {{64, 512, 4096, 3498}, {32, 256, 1024, 1523}, {64, 2048, 512, 13905}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ft_op op = whole(rows[i].n, rows[i].c, rows[i].k, 7);
        double us = 1e3 * limit_ms(&device, &op);
        if (fabs(us / rows[i].us - 1) > 0.2) fail_msg("row %zu: %g us, measured %g", i, us, rows[i].us);
        assert_true(limit_ms(&older, &op) < 0.5 * limit_ms(&device, &op)); /* its library has kernels for them */
    }
    ft_op few = whole(8, 512, 4096, 7), many = whole(128, 512, 4096, 7), small = whole(64, 1024, 1024, 4);
    assert_true(limit_ms(&device, &few) < 1 && limit_ms(&device, &many) < 1 && limit_ms(&device, &small) < 0.3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_filters_run_group_by_group),
        cmocka_unit_test(filters_of_one_pixel_run_group_by_group),
        cmocka_unit_test(filters_as_large_as_their_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
