/* A calibration from points that a made-up GPU would give: it learns what differs, leaves other GPUs alone, moves what
 * unmeasured variants share, measures the eager gap once, and its intervals hold. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/gpu.h"
#include "fit/calibrate.h"
#include "graph/operator.h"
#include "kernel/calibration.h"
#include "kernel/kernel.h"

static ft_predictor *base;

static int open_base(void **state)
{
    (void)state;
    return ft__predictor_open(NULL, &base, NULL) == FT_OK ? 0 : -1;
}

static int close_base(void **state)
{
    (void)state;
    ft__predictor_close(base);
    return 0;
}

static double uniform(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / 16777216.0;
}

static int64_t size(uint32_t *state, double low, double high)
{
    return 8 * (int64_t)exp(log(low / 8) + log(high / low) * uniform(state));
}

static void random_op(uint32_t *state, const char *name, ft_dtype dtype, ft_op *op)
{
    ft__op_init(name, op);
    op->dtype = op->kv_dtype = dtype;
    if (op->kind == FT_OP_GEMM) {
        op->u.gemm.m = size(state, 64, 8192), op->u.gemm.n = size(state, 256, 16384);
        op->u.gemm.k = size(state, 256, 8192);
        op->u.gemm.quantized = 1;
    } else if (op->kind == FT_OP_ELEMENTWISE) {
        op->u.elementwise.numel = size(state, 1024, 1e8);
    } else {
        op->u.row.rows = size(state, 64, 65536), op->u.row.cols = size(state, 256, 16384);
    }
}

static void add(ft_rows *rows, const ft_op *op, double ms, bool held_out)
{
    ft_row *more = realloc(rows->at, (rows->count + 1) * sizeof *more);
    assert_non_null(more);
    rows->at = more;
    rows->at[rows->count] = (ft_row){.op = *op, .ms = ms, .weight = 1, .held_out = held_out};
    rows->at[rows->count].group = (uint32_t)rows->count * 2654435761u;
    rows->count++;
}

/* What this GPU "takes": the forecast, longer by a third and by a wave in the size, and scattered by 1 %. */
static double strange(const ft_op *op, const ft_device *device, uint32_t *state)
{
    ft_forecast f;
    assert_int_equal(FT_OK, ft__kernel_forecast(base, device, op, 0.9, &f, NULL));
    double wave = op->kind == FT_OP_GEMM ? 0.15 * sin(log2((double)op->u.gemm.n)) : 0;
    return f.ms * exp(0.3 + wave + 0.02 * (uniform(state) - 0.5));
}

static void points(ft_rows *rows, const char *gpu, size_t count)
{
    uint32_t state = 5;
    memset(rows, 0, sizeof *rows);
    assert_int_equal(FT_OK, ft__catalogue_find(gpu, &rows->gpus[0], NULL));
    rows->gpu_count = 1;
    for (size_t i = 0; i < count; i++) {
        ft_op op;
        random_op(&state, i % 4 == 3 ? "silu" : "gemm", FT_BF16, &op);
        add(rows, &op, strange(&op, &rows->gpus[0], &state), i % 6 == 5);
    }
}

static const ft_calibration_line *line(const ft_calibration_table *t, const char *family, const char *variant)
{
    for (size_t i = 0; i < t->count; i++)
        if (!strcmp(t->lines[i].family, family) && !strcmp(t->lines[i].variant, variant)) return &t->lines[i];
    return NULL;
}

/* GPUs that the predictor knows, has a sibling of, or has never met. */
static void learns_what_differs(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h200_sxm", "h800", "mi250x"};
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        ft_rows rows;
        ft_calibration_table t;
        ft_calibration c;
        void *file;
        size_t length;
        points(&rows, gpus[i], 180);
        ft_calibrate_options o = {.base = base, .rows = &rows, .minutes = 1, .threads = 1};
        assert_int_equal(FT_OK, ft__calibrate(&o, &file, &length, &t, NULL));
        const ft_calibration_line *half = line(&t, "gemm_tensor", "half"), *whole = line(&t, "gemm_tensor", "");
        assert_non_null(half);
        assert_non_null(whole);
        assert_true(half->before > 0.15 && half->after < 0.07 && half->after < 0.4 * half->before);
        assert_true(half->inside > 0.7 && half->tried < 0.08);
        assert_int_equal(half->held_out, whole->held_out);
        assert_true(line(&t, "elementwise", "pointwise")->after < 0.05);
        assert_int_equal(FT_OK, ft__calibration_read(file, length, "test", &c, NULL));
        ft_predictor with = *base;
        with.calibration = &c;
        ft_op op;
        uint32_t seed = 99;
        random_op(&seed, "gemm", FT_BF16, &op);
        ft_device other;
        ft_forecast a, b;
        assert_int_equal(FT_OK, ft__catalogue_find("a100_sxm_80gb", &other, NULL));
        assert_int_equal(FT_OK, ft__kernel_forecast(base, &other, &op, 0.9, &a, NULL));
        assert_int_equal(FT_OK, ft__kernel_forecast(&with, &other, &op, 0.9, &b, NULL));
        assert_memory_equal(&a, &b, sizeof a);
        assert_int_equal(FT_OK, ft__kernel_forecast(&with, &rows.gpus[0], &op, 0.9, &b, NULL));
        assert_int_equal(FT_SOURCE_CALIBRATED, b.source);
        assert_true(b.low_ms <= b.ms && b.ms <= b.high_ms);
        free(file);
        ft__calibration_table_free(&t);
        ft__rows_free(&rows);
    }
}

/* bf16 alone is measured, on a GPU nobody knows: tf32 keeps its source and moves with the launch and the bandwidth. */
static void others_inherit(void **state)
{
    (void)state;
    ft_rows rows;
    ft_calibration_table t;
    ft_calibration c;
    void *file;
    size_t length;
    points(&rows, "mi250x", 60);
    ft_op call;
    ft__op_init("silu", &call);
    call.dtype = FT_BF16;
    call.timing = FT_TIMING_OP;
    call.u.elementwise.numel = 1024;
    add(&rows, &call, 0.0123, false);
    ft_calibrate_options o = {.base = base, .rows = &rows, .threads = 1};
    assert_int_equal(FT_OK, ft__calibrate(&o, &file, &length, &t, NULL));
    assert_int_equal(FT_OK, ft__calibration_read(file, length, "test", &c, NULL));
    ft_predictor with = *base;
    with.calibration = &c;
    ft_forecast f, g;
    assert_int_equal(FT_OK, ft__kernel_forecast(&with, &rows.gpus[0], &call, 0.9, &f, NULL));
    assert_true(fabs(f.ms / 0.0123 - 1) < 0.1);
    ft_op softmax;
    uint32_t seed = 3;
    random_op(&seed, "softmax", FT_BF16, &softmax);
    softmax.u.row.rows = 1, softmax.u.row.cols = 64;
    softmax.timing = FT_TIMING_OP; /* never measured here; its host is */
    assert_int_equal(FT_OK, ft__kernel_forecast(base, &rows.gpus[0], &softmax, 0.9, &g, NULL));
    assert_int_equal(FT_OK, ft__kernel_forecast(&with, &rows.gpus[0], &softmax, 0.9, &f, NULL));
    assert_true(f.ms < 0.9 * g.ms);
    assert_int_not_equal(FT_SOURCE_CALIBRATED, f.source);
    free(file);
    ft__calibration_table_free(&t);
    ft__rows_free(&rows);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    ft_rows rows;
    ft_calibration_table t;
    void *file[2];
    size_t length[2];
    points(&rows, "l4", 40);
    for (int i = 0; i < 2; i++) {
        ft_calibrate_options o = {.base = base, .rows = &rows, .threads = 1 + 2 * i};
        assert_int_equal(FT_OK, ft__calibrate(&o, &file[i], &length[i], &t, NULL));
        ft__calibration_table_free(&t);
    }
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(file[0], file[1], length[0]);
    free(file[0]);
    free(file[1]);
    ft__rows_free(&rows);
}

/* Four points of one shape, points that are all alike, points that are absurd: an answer, never a crash. */
static void few_or_odd_points(void **state)
{
    (void)state;
    static const double ms[] = {1e-6, 1, 1e7};
    for (size_t k = 0; k < sizeof ms / sizeof *ms; k++)
        for (size_t n = 1; n <= 9; n += 4) {
            ft_rows rows = {.gpu_count = 1};
            ft_calibration_table t;
            ft_error err;
            void *file;
            size_t length;
            assert_int_equal(FT_OK, ft__catalogue_find("h100_sxm", &rows.gpus[0], NULL));
            ft_op op;
            ft__op_init("gemm", &op);
            op.u.gemm.m = op.u.gemm.n = op.u.gemm.k = 1024;
            op.u.gemm.quantized = 1;
            for (size_t i = 0; i < n; i++) add(&rows, &op, ms[k], false);
            for (size_t i = 0; i < n; i++) rows.at[i].group = 7;
            ft_calibrate_options o = {.base = base, .rows = &rows, .threads = 1};
            ft_status s = ft__calibrate(&o, &file, &length, &t, &err);
            assert_int_equal(n < 4 ? FT_E_RANGE : FT_OK, s);
            if (s == FT_OK) {
                ft_calibration c;
                ft_forecast f;
                assert_int_equal(FT_OK, ft__calibration_read(file, length, "test", &c, NULL));
                ft_predictor with = *base;
                with.calibration = &c;
                assert_int_equal(FT_OK, ft__kernel_forecast(&with, &rows.gpus[0], &op, 0.9, &f, NULL));
                assert_true(isfinite(f.ms) && f.ms > 0 && f.low_ms <= f.ms && f.ms <= f.high_ms);
                ft__calibration_table_free(&t);
            }
            free(file);
            ft__rows_free(&rows);
        }
}

/* Every truncation and many flipped bytes of a file are refused. */
static void damaged_files_are_refused(void **state)
{
    (void)state;
    ft_rows rows;
    ft_calibration_table t;
    ft_calibration c;
    void *file;
    size_t length;
    points(&rows, "l40s", 40);
    ft_calibrate_options o = {.base = base, .rows = &rows, .threads = 1};
    assert_int_equal(FT_OK, ft__calibrate(&o, &file, &length, &t, NULL));
    unsigned char *bytes = file;
    for (size_t cut = 0; cut < length; cut += 1 + length / 211)
        assert_int_equal(FT_E_FORMAT, ft__calibration_read(file, cut, "test", &c, NULL));
    for (size_t at = 0; at < length; at += 1 + length / 211) {
        if (at >= 32 && at < 40) continue; /* which predictor it was made on: checked where the two meet */
        bytes[at] ^= 0x40;
        assert_int_equal(FT_E_FORMAT, ft__calibration_read(file, length, "test", &c, NULL));
        bytes[at] ^= 0x40;
    }
    assert_int_equal(FT_OK, ft__calibration_read(file, length, "test", &c, NULL));
    free(file);
    ft__calibration_table_free(&t);
    ft__rows_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns_what_differs),       cmocka_unit_test(others_inherit),
        cmocka_unit_test(threads_change_nothing),    cmocka_unit_test(few_or_odd_points),
        cmocka_unit_test(damaged_files_are_refused),
    };
    return cmocka_run_group_tests(tests, open_base, close_base);
}
