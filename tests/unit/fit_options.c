/* A fit's options, its least input, and allocations that fail. */
#define _DEFAULT_SOURCE /* mkdir */

#include "fit_tables.h"

static void progress_runs_from_nothing_to_all(void *context, const char *stage, double done)
{
    double *last = context;
    assert_non_null(stage);
    assert_true(done >= 0 && done <= 1 && done >= *last - 0.2); /* threads may overtake each other */
    *last = fmax(*last, done);
}

static void options_are_honoured(void **state)
{
    (void)state;
    result r;
    ft_predictor p;
    ft_error err = {0};
    double last = 0;
    static const char *const row[] = {"row"}, *const wrong[] = {"rwo"}, *const h200[] = {"h200_sxm"};
    write_own("small", 250, 150, 80);
    write_eager("small", 40);
    asks_for(&r, "small", 1);
    r.options.families = row;
    r.options.family_count = 1;
    r.options.exclude_gpus = h200;
    r.options.exclude_count = 1;
    r.options.progress = progress_runs_from_nothing_to_all;
    r.options.progress_context = &last;
    fit(&r);
    assert_true(fabs(last - 1) < 1e-12);
    assert_int_equal(FT_OK, ft__predictor_read(r.file, r.length, "fitted", &p, NULL));
    assert_true(p.expert_count > 0);
    for (size_t i = 0; i < p.expert_count; i++) {
        assert_non_null(strstr(p.experts[i].family, "row"));
        assert_string_not_equal("h200_sxm", p.experts[i].gpu);
    }
    char meta[4096];
    snprintf(meta, sizeof meta, "%.*s", (int)p.meta_length, p.meta);
    assert_non_null(strstr(meta, "\"excluded_gpus\":[\"h200_sxm\"]"));
    free_result(&r);

    asks_for(&r, "small", 1);
    r.options.families = wrong;
    r.options.family_count = 1;
    assert_int_equal(FT_E_NAME, ft__fit(&r.options, &r.file, &r.length, &r.accuracy, &err));
    assert_string_equal("unknown family \"rwo\"; did you mean \"row\"?", err.message);
    static const char *const variant[] = {"moe/tritn_half"};
    r.options.families = variant;
    assert_int_equal(FT_E_NAME, ft__fit(&r.options, &r.file, &r.length, &r.accuracy, &err));
    assert_string_equal("unknown variant \"tritn_half\"; did you mean \"triton_half\"?", err.message);
    asks_for(&r, "nowhere", 1);
    assert_int_equal(FT_E_FILE, ft__fit(&r.options, &r.file, &r.length, &r.accuracy, &err));
    assert_int_equal(0, r.accuracy.count);
}

/* One row of each: nothing can be learned, everything must still come out finite. */
static void a_single_row_is_enough(void **state)
{
    (void)state;
    result r;
    ft_predictor p;
    ft_forecast f;
    ft_op op;
    data_table("single/h200/gemm.csv.gz", "dtype,layout,m,n,k,ms\nbf16,nt,4096,4096,4096,0.19\n");
    ft_device h200 = device_named("h200_sxm"), l40s = device_named("l40s");
    asks_for(&r, "single", 1);
    r.options.cross_validate = true;
    fit(&r);
    assert_int_equal(FT_OK, ft__predictor_read(r.file, r.length, "fitted", &p, NULL));
    ft__op_init("gemm", &op);
    op.u.gemm.m = op.u.gemm.n = op.u.gemm.k = 4096;
    assert_int_equal(FT_OK, ft__kernel_forecast(&p, &h200, &op, 0.9, &f, NULL));
    assert_true(f.ms > 0.15 && f.ms < 0.25 && f.low_ms <= f.ms && f.ms <= f.high_ms && isfinite(f.high_ms));
    assert_int_equal(FT_OK, ft__kernel_forecast(&p, &l40s, &op, 0.9, &f, NULL));
    assert_true(isfinite(f.high_ms) && f.high_ms > 1.2 * f.ms && f.low_ms > 0);
    free_result(&r);
}

static ft_status fit_once(void *context)
{
    result *r = context;
    ft_status s = ft__fit(&r->options, &r->file, &r->length, &r->accuracy, NULL);
    if (s == FT_OK) free_result(r);
    return s;
}

typedef struct check {
    ft_predictor p;
    const char *folder;
} check;

static ft_status validate_once(void *context)
{
    check *c = context;
    ft_accuracy_table table;
    ft_validate_options options = {.data = c->folder, .quantile = 0.9, .threads = 1};
    ft_status s = ft__validate(&c->p, &options, &table, NULL);
    if (s == FT_OK) ft__accuracy_free(&table);
    return s;
}

static void running_out_of_memory_is_said(void **state)
{
    (void)state;
    result r;
    check c;
    write_own("tiny", 0, 4, 0);
    write_eager("tiny", 2);
    asks_for(&r, "tiny", 1);
    r.options.cross_validate = true;
    assert_true(failing_alloc_sweep(fit_once, &r) > 50);
    fit(&r);
    c.folder = r.folder;
    assert_int_equal(FT_OK, ft__predictor_read(r.file, r.length, "fitted", &c.p, NULL));
    assert_true(failing_alloc_sweep(validate_once, &c) > 5);
    free_result(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_honoured),
        cmocka_unit_test(a_single_row_is_enough),
        cmocka_unit_test(running_out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
