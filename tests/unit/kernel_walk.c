/* Walks: kernels that are as long as their waits, held to measured batch norms. */
#include "kernel_limits.h"

#include "graph/across.h"
#include "graph/batchnorm.h"
#include "graph/resize.h"
#include "graph/sample.h"
#include "kernel/walk.h"

static void walks_take_rounds_of_blocks(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    assert_true(ft__walk_ms(&device, FT_WALK_NONE, 5, 5) == 0 && ft__walk_ms(&device, FT_WALK_POOL, 0, 5) == 0);
    for (int walk = FT_WALK_NONE + 1; walk < FT_WALK_COUNT; walk++) {
        ft_walk w = (ft_walk)walk;
        double few = ft__walk_ms(&device, w, 9, 1), many = ft__walk_ms(&device, w, 9, 1e6);
        assert_true(few > 0 && many > 100 * few);
        assert_true(ft__walk_ms(&device, w, 9, 2) == few); /* both find room at once */
        for (double trips = 1; trips < 1e5; trips *= 2)
            assert_true(ft__walk_ms(&device, w, 2 * trips, 500) >= ft__walk_ms(&device, w, trips, 500));
    }
}

/* A channel that a block cannot keep is walked over twice; a smaller shared memory keeps less. */
static void long_channels_are_read_again(void **state)
{
    (void)state;
    ft_device large = limit_device("h200_sxm"), small = limit_device("v100_sxm_32gb");
    double kept = ft__walk_ms(&large, FT_WALK_BOTH_HALF, 128, 512),
           not = ft__walk_ms(&large, FT_WALK_BOTH_HALF, 192, 512);
    assert_true(not > 2.5 * kept);
    double here = ft__walk_ms(&small, FT_WALK_BOTH_HALF, 100, 4e6) * small.sms;
    double there = ft__walk_ms(&large, FT_WALK_BOTH_HALF, 100, 4e6) * large.sms;
    assert_true(here > 2 * there);
}

/* Rows of data/measurements/h200/norm_formats.csv.gz: walks alone, without launch and memory, near the whole. */
static void measured_batch_norms(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    const struct {
        double images, channels, side;
        bool last, half, gradient;
        double us;
    } rows[] = {
        {64, 1024, 28, false, true, false, 83.0},  {32, 640, 56, false, true, false, 264.8},
        {64, 128, 112, false, true, false, 619.4}, {16, 512, 128, false, true, true, 525.8},
        {32, 512, 32, false, true, true, 43.0},    {128, 512, 56, true, true, false, 385.4},
        {128, 1280, 32, true, true, true, 486.9},  {2, 1280, 56, false, true, false, 20.9},
        {8, 2048, 56, false, true, true, 122.3},   {32, 1280, 56, true, true, true, 389.6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ft_pictures x = {rows[i].images, rows[i].channels, rows[i].side * rows[i].side, rows[i].last};
        ft_walking w = rows[i].gradient ? ft__batchnorm_gradient(&x, rows[i].half, true)
                                        : ft__batchnorm_both(&x, rows[i].half);
        double us = 1e3 * ft__walk_ms(&device, w.walk, w.trips, w.blocks);
        if (!(us > 0.75 * rows[i].us && us < 1.25 * rows[i].us))
            fail_msg("row %zu: %g us, measured %g", i, us, rows[i].us);
    }
}

/* PyTorch's own kernels, channels last (bf16 rows of the same file): few channels are few blocks, which do not fill the
 * GPU, so that half as much in one direction takes as long. */
static void measured_batch_norms_by_tiles(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    const struct {
        double images, channels, side;
        bool gradient;
        double us;
    } rows[] = {
        {128, 32, 56, true, 104.8},   {16, 32, 224, true, 198.2},  {128, 64, 128, true, 577.4},
        {16, 128, 128, true, 130.3},  {128, 32, 64, false, 182.9}, {32, 32, 224, false, 548.9},
        {64, 64, 224, false, 1154.2}, {32, 64, 224, false, 583.7}, {16, 128, 224, false, 504.2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ft_pictures x = {rows[i].images, rows[i].channels, rows[i].side * rows[i].side, true};
        ft_walking w = rows[i].gradient ? ft__batchnorm_gradient(&x, true, false) : ft__batchnorm_moments(&x);
        double us = 1e3 * ft__walk_ms(&device, w.walk, w.trips, w.blocks);
        ft_walking then = ft__batchnorm_result(&x, true);
        if (!rows[i].gradient) us += 1e3 * ft__walk_ms(&device, then.walk, then.trips, then.blocks);
        if (!(us > 0.75 * rows[i].us && us < 1.25 * rows[i].us))
            fail_msg("row %zu: %g us, measured %g", i, us, rows[i].us);
    }
    ft_pictures narrow = {128, 16, 64 * 64, true}, wide = {128, 32, 64 * 64, true}, odd = {128, 40, 64 * 64, true};
    ft_walking a = ft__batchnorm_moments(&narrow), b = ft__batchnorm_moments(&wide), c = ft__batchnorm_moments(&odd);
    assert_true(a.blocks == 128 && b.blocks == 128 && b.trips == 2 * a.trips); /* 16 channels: rows of 16 threads */
    assert_true(c.blocks == 256 && c.trips == b.trips); /* eight channels more take a second tile of 32 */
}

/* Kernels of data/measurements/h200/operators.jsonl, operators_second.jsonl and operators_third.jsonl: a group norm's
 * sums over more than the cache holds, running sums along an outer axis, elements added by atomics, operands in unlike
 * orders, windows put together, sums of biases, norms of columns. */
static void measured_walks_of_operators(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    const struct {
        ft_walk walk;
        double trips, blocks, us;
    } rows[] = {
        {FT_WALK_GROUP_MOMENTS, 4096, 64, 1676.3},
        {FT_WALK_GROUP_MOMENTS, 16000, 8, 6301.5},
        {FT_WALK_GROUP_MOMENTS, 49, 2048, 99.9},
        {FT_WALK_GROUP_MOMENTS, 31.25, 4096, 131.8},
        {FT_WALK_GROUP_MOMENTS, 2000, 32, 819.9},
        {FT_WALK_SCAN, 1024, 64, 400.7},
        {FT_WALK_SCAN, 4096, 8, 1511},
        {FT_WALK_SCAN, 2048, 8, 740.6},
        {FT_WALK_SCAN, 256, 192, 127.9},
        {FT_WALK_ATOMIC, 1, 32768, 85.1},
        {FT_WALK_ATOMIC, 1, 32768, 83},
        {FT_WALK_ACROSS, 1, 65536, 222.3},
        {FT_WALK_ACROSS, 1, 18816, 59.5},
        {FT_WALK_ACROSS, 1, 4096, 14.8},
        {FT_WALK_FOLD, 4, 18816, 443.6}, /* operators_third.jsonl from here on */
        {FT_WALK_FOLD, 9, 18816, 748.2},
        {FT_WALK_FOLD, 9, 3136, 132.6},
        {FT_WALK_FOLD, 4, 12544, 291},
        {FT_WALK_FOLD, 1, 25088, 313.1},
        {FT_WALK_OVERLAP, 1, 6144, 31.7},
        {FT_WALK_OVERLAP, 1, 24576, 134.9},
        {FT_WALK_COUNT_UP, 1, 24576, 119},
        {FT_WALK_ADD_BY_INDEX, 1, 46080, 210.6},
        {FT_WALK_BIAS_LSTM, 65536, 1, 560.4},
        {FT_WALK_BIAS_LSTM, 12544, 1, 108.5},
        {FT_WALK_BIAS_GRU, 16384, 1, 356.3},
        {FT_WALK_BIAS_GRU, 8192, 1, 196.3},
        {FT_WALK_BIAS_PLAIN, 16384, 1, 59.1},
        {FT_WALK_WEIGHT_NORM, 576, 8, 193.9},
        {FT_WALK_WEIGHT_NORM, 1024, 8, 439.7},
        {FT_WALK_WEIGHT_NORM_BACKWARD, 1024, 8, 800.7},
        {FT_WALK_CHANNELS, 32, 62.5, 14.5},
        {FT_WALK_CHANNELS, 19, 48, 6.2},
        {FT_WALK_CHANNELS, 512, 32, 290},
        {FT_WALK_TOGETHER, 111.1, 16, 63.8}, /* small.jsonl.gz: 16 x 2,048 x 23; 8 x 2,048 x 44 of 32 bits */
        {FT_WALK_TOGETHER, 173, 8, 112.9},
        {FT_WALK_MEET, 512, 736, 620.4}, /* index_put.jsonl from here on */
        {FT_WALK_MEET, 2048, 23, 2046.5},
        {FT_WALK_MEET, 4096, 92, 4234.3},
        {FT_WALK_MEET, 256, 5760, 709.6},
        {FT_WALK_MEET_WIDE, 512, 1440, 524.8},
        {FT_WALK_MEET_WIDE, 4096, 92, 2955.4},
        {FT_WALK_MEET_NARROW, 256, 1024, 123.5},
        {FT_WALK_MEET_NARROW, 256, 1024, 103.9},
        {FT_WALK_MEET_SINGLE, 32768, 2, 2948.9},
        {FT_WALK_MEET_SINGLE, 64, 4096, 50.5},
        {FT_WALK_APART, 200.9, 96, 27.8},
        {FT_WALK_APART, 153.1, 512, 69.4},
        {FT_WALK_APART, 62.5, 8, 8.9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double us = 1e3 * ft__walk_ms(&device, rows[i].walk, rows[i].trips, rows[i].blocks);
        if (!(us > 0.75 * rows[i].us && us < 1.25 * rows[i].us))
            fail_msg("row %zu: %g us, measured %g", i, us, rows[i].us);
    }
    /* What the kernel before left in the cache is at hand sooner. */
    double held = ft__walk_ms(&device, FT_WALK_GROUP_MOMENTS, 2048, 16),
           fetched = ft__walk_ms(&device, FT_WALK_GROUP_MOMENTS, 2048, 64);
    assert_true(fetched > 1.3 * held);
}

/* Of up to 64 places beside a long axis a block's threads share the axis, and a warp's ask for sectors of their own:
 * more of them, longer trips. A short axis, or many places, has a thread for each place. */
static void axes_that_threads_share(void **state)
{
    (void)state;
    ft_walking half = ft__softmax_across(16, 2048, 23, 2), narrow = ft__softmax_across(16, 2048, 4, 2);
    assert_true(half.walk == FT_WALK_TOGETHER && half.blocks == 16 && fabs(half.trips - 111.1) < 0.1);
    assert_true(narrow.walk == FT_WALK_TOGETHER && narrow.trips < half.trips / 8); /* 256 threads along it */
    assert_true(ft__softmax_across(16, 63, 23, 2).walk == FT_WALK_CHANNELS);
    assert_true(ft__softmax_across(16, 2048, 65, 2).walk == FT_WALK_CHANNELS);
    assert_true(ft__softmax_across(16, 2048, 1, 2).walk == FT_WALK_NONE);
}

/* PyTorch asks cuDNN for fp32, and for fp16 with fp32 weights: never for bf16. */
static void who_computes(void **state)
{
    (void)state;
    assert_true(ft__batchnorm_by_library(FT_FP32, 4) && ft__batchnorm_by_library(FT_FP16, 4));
    assert_false(ft__batchnorm_by_library(FT_FP16, 2) || ft__batchnorm_by_library(FT_BF16, 4));
}

/* Rows of data/measurements/h200/operators.jsonl: a thread of an NCHW interpolation goes through all channels, so that
 * small images of many take longest; going back, the more results share a pixel the longer each waits. Then of
 * pictures.jsonl: cubic ones channels last, of the size that it has, with antialias, from a single pixel. */
static void measured_interpolations(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    const struct {
        ft_resizing by;
        double pictures, from, to; /* sides */
        bool last;
        double us, back_us, within;
        bool smooth;
        double channels, bytes;
    } rows[] = {
        {FT_RESIZE_LINEAR, 64 * 256, 28, 56, false, 5970.4, 1284.9, 0.2, false, 256, 2},
        {FT_RESIZE_LINEAR, 64 * 64, 56, 112, false, 1582.9, 1140.9, 0.2, false, 64, 2},
        {FT_RESIZE_LINEAR, 8 * 21, 64, 512, false, 138.0, 7943.8, 0.2, false, 21, 2},
        {FT_RESIZE_LINEAR, 64 * 256, 28, 56, true, 476.3, 621.8, 0.2, false, 256, 2},
        {FT_RESIZE_NEAREST, 64 * 256, 28, 56, false, 138.2, 90.3, 0.2, false, 256, 2},
        {FT_RESIZE_NEAREST, 64 * 256, 28, 56, true, 324.3, 172.8, 0.2, false, 256, 2},
        {FT_RESIZE_AVERAGE, 64 * 256, 56, 28, false, 149.9, 917.2, 0.2, false, 256, 2},
        {FT_RESIZE_AVERAGE, 64 * 256, 56, 28, true, 304.0, 932.5, 0.2, false, 256, 2},
        {FT_RESIZE_CUBIC, 8 * 256, 32, 64, true, 11033.2, 49839.8, 0.35, false, 256, 2},
        {FT_RESIZE_CUBIC, 1152, 27, 32, true, 9498.1, 19281.8, 0.35, false, 1152, 2},
        {FT_RESIZE_CUBIC, 8 * 64, 128, 64, true, 5037.4, 4436.2, 0.35, false, 64, 2},
        {FT_RESIZE_CUBIC, 8 * 256, 32, 64, false, 1074.4, 4252.7, 0.35, false, 256, 4},
        {FT_RESIZE_CUBIC, 1024, 37, 37, true, 1894.8, 182.6, 0.35, false, 1024, 2},
        {FT_RESIZE_CUBIC, 768, 24, 24, false, 119.8, 120.3, 0.35, false, 768, 2},
        {FT_RESIZE_CUBIC, 8 * 64, 128, 64, false, 125.0, 739.1, 0.35, true, 64, 2},
        {FT_RESIZE_LINEAR, 4 * 150, 128, 512, false, 2601.0, 150462.1, 0.35, true, 150, 2},
        {FT_RESIZE_LINEAR, 768, 37, 16, false, 17.1, 55.5, 0.35, true, 768, 2},
        {FT_RESIZE_LINEAR, 8 * 256, 1, 65, false, 303.0, 37143.5, 0.4, false, 256, 2},
        {FT_RESIZE_LINEAR, 8 * 512, 6, 60, false, 1123.4, 4496.9, 0.4, false, 512, 2},
        {FT_RESIZE_LINEAR, 4 * 150, 128, 512, false, 582.1, 2227.8, 0.4, false, 150, 4},
        {FT_RESIZE_ADAPTIVE, 64 * 512, 14, 7, false, 99.1, 111.1, 0.35, false, 512, 2},
        {FT_RESIZE_ADAPTIVE, 8 * 2048, 60, 6, true, 643.5, 156.9, 0.35, false, 2048, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double in = rows[i].pictures * rows[i].from * rows[i].from, out = rows[i].pictures * rows[i].to * rows[i].to;
        ft_resize how = {.by = rows[i].by,
                         .axes = 2,
                         .pictures = rows[i].pictures,
                         .pixels = rows[i].to * rows[i].to,
                         .window = 4,
                         .last = rows[i].last,
                         .from = rows[i].from * rows[i].from,
                         .channels = rows[i].channels,
                         .bytes = rows[i].bytes,
                         .width = rows[i].to,
                         .same = rows[i].from == rows[i].to,
                         .smooth = rows[i].smooth};
        ft_resized made = {ft__resize_walk(&how), ft__resize_window(&how), in, out, rows[i].bytes, false};
        ft_walking w = made.forward, back = ft__resize_gradient(&made);
        double us = 1e3 * ft__walk_ms(&device, w.walk, w.trips, w.blocks),
               back_us = 1e3 * ft__walk_ms(&device, back.walk, back.trips, back.blocks);
        if (!(us > (1 - rows[i].within) * rows[i].us && us < (1 + rows[i].within) * rows[i].us))
            fail_msg("row %zu: %g us, measured %g", i, us, rows[i].us);
        if (!(back_us > (1 - rows[i].within) * rows[i].back_us && back_us < (1 + rows[i].within) * rows[i].back_us))
            fail_msg("row %zu going back: %g us, measured %g", i, back_us, rows[i].back_us);
    }
    ft_resize copied = {.by = FT_RESIZE_LINEAR, .axes = 2, .pictures = 64, .pixels = 64, .from = 64, .same = true};
    assert_int_equal(FT_WALK_NONE, ft__resize_walk(&copied).walk);
    assert_int_equal(FT_RESIZE_CUBIC, ft__resizing_find("cubic"));
    assert_int_equal(-1, ft__resizing_find("lanczos"));
}

/* Rows of data/measurements/h200/samples.jsonl: a thread goes through all channels of its place, so that few places of
 * many channels take as long as sixteen times as many. */
static void measured_samples(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    const struct {
        ft_sample how;
        double us, back_us;
    } rows[] = {
        {{FT_RESIZE_LINEAR, 2, 256, 1536, false, false, false}, 309.7, 1051.1},
        {{FT_RESIZE_LINEAR, 2, 4096, 1536, false, false, false}, 335.9, 1296.0},
        {{FT_RESIZE_CUBIC, 2, 1024, 1536, false, false, false}, 3269.7, 15150.5},
        {{FT_RESIZE_CUBIC, 2, 1024, 1536, false, false, true}, 6234.0, 27329.4},
        {{FT_RESIZE_LINEAR, 2, 1024, 1536, true, false, false}, 809.0, 1619.0},
        {{FT_RESIZE_LINEAR, 2, 8 * 512 * 512, 16, false, false, false}, 129.0, 1309.4},
        {{FT_RESIZE_CUBIC, 2, 8 * 512 * 512, 16, false, false, false}, 709.6, 5729.0},
        {{FT_RESIZE_NEAREST, 2, 2 * 256 * 256, 64, false, false, false}, 42.2, 80.2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ft_walking w = ft__sample_walk(&rows[i].how);
        ft_node forward = {.walk = w.walk, .trips = (float)w.trips, .blocks = (float)w.blocks};
        forward.op.u.elementwise.ops_per_element = rows[i].how.by == FT_RESIZE_NEAREST ? 1 : 4;
        ft_walking back = ft__sample_gradient(&forward, true, rows[i].how.low);
        double us = 1e3 * ft__walk_ms(&device, w.walk, w.trips, w.blocks),
               back_us = 1e3 * ft__walk_ms(&device, back.walk, back.trips, back.blocks);
        if (!(us > 0.7 * rows[i].us && us < 1.3 * rows[i].us))
            fail_msg("row %zu: %g us, measured %g", i, us, rows[i].us);
        if (!(back_us > 0.7 * rows[i].back_us && back_us < 1.3 * rows[i].back_us))
            fail_msg("row %zu going back: %g us, measured %g", i, back_us, rows[i].back_us);
        assert_int_equal(w.walk, ft__sample_gradient(&forward, false, false).walk); /* places alone: no atomics */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_take_rounds_of_blocks),
        cmocka_unit_test(long_channels_are_read_again),
        cmocka_unit_test(measured_batch_norms),
        cmocka_unit_test(measured_batch_norms_by_tiles),
        cmocka_unit_test(measured_walks_of_operators),
        cmocka_unit_test(measured_interpolations),
        cmocka_unit_test(measured_samples),
        cmocka_unit_test(axes_that_threads_share),
        cmocka_unit_test(who_computes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
