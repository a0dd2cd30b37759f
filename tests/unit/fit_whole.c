/* From tables to a predictor and back: the same bytes however often and on however many threads, and forecasts that are
 * near the rows nobody showed it. Rows are made up: launch plus roofline at a share of the peaks, and 3 % of noise. */
#define _DEFAULT_SOURCE /* mkdir */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/text.h"
#include "data_folder.h"
#include "device/gpu.h"
#include "failing_alloc.h"
#include "fit/fit.h"
#include "graph/operator.h"
#include "kernel/kernel.h"
#include "random_op.h"

/* What the operator would take on a GPU of this world. */
static double made_up_ms(const ft_device *device, const ft_op *op, random_source *r)
{
    double compute = ft__op_flops(op) / (0.7e9 * ft__peak_tflops(device, op->dtype));
    double memory = ft__op_bytes(op) / (0.8e6 * device->memory_gbps), body = fmax(compute, memory);
    if (op->kind != FT_OP_GEMM) body = memory;
    double ms = 2.5e-3 + body;
    if (op->timing == FT_TIMING_OP) ms = ft__op_time(ms, 30e-3);
    return ms * (1 + 0.06 * (random_unit(r) - 0.5));
}

static ft_device device_named(const char *name)
{
    ft_device device;
    assert_int_equal(FT_OK, ft__catalogue_find(name, &device, NULL));
    return device;
}

static void write_own(const char *folder, int products, int pointwise, int rows)
{
    random_source r = {31};
    ft_text text = {0};
    ft_device h200 = device_named("h200_sxm");
    char name[256];
    ft_op op;
    ft__text_add(&text, "dtype,layout,m,n,k,ms\n");
    ft__op_init("gemm", &op);
    op.u.gemm.quantized = 1;
    for (int i = 0; i < products; i++) {
        op.u.gemm.m = 8 * random_size(&r, 1, 1024), op.u.gemm.n = 8 * random_size(&r, 8, 1024);
        op.u.gemm.k = 8 * random_size(&r, 8, 1024);
        ft__text_addf(&text, "bf16,nt,%lld,%lld,%lld,%.9f\n", (long long)op.u.gemm.m, (long long)op.u.gemm.n,
                      (long long)op.u.gemm.k, made_up_ms(&h200, &op, &r));
    }
    snprintf(name, sizeof name, "%s/h200/gemm.csv.gz", folder);
    if (products) data_table(name, text.at);
    ft__text_clear(&text);
    ft__text_add(&text, "dtype,op,inputs,numel,ms\n");
    for (int i = 0; i < pointwise; i++) {
        ft__op_init(i % 2 ? "gelu" : "add", &op);
        op.u.elementwise.numel = random_size(&r, 4096, 1e9);
        ft__text_addf(&text, "bf16,%s,%d,%lld,%.9f\n", op.name, op.u.elementwise.inputs,
                      (long long)op.u.elementwise.numel, made_up_ms(&h200, &op, &r));
    }
    snprintf(name, sizeof name, "%s/h200/elementwise.csv.gz", folder);
    if (pointwise) data_table(name, text.at);
    ft__text_clear(&text);
    ft__text_add(&text, "dtype,op,rows,cols,ms\n");
    ft__op_init("softmax", &op);
    for (int i = 0; i < rows; i++) {
        op.u.row.rows = random_size(&r, 64, 65536), op.u.row.cols = 8 * random_size(&r, 8, 1024);
        ft__text_addf(&text, "bf16,softmax,%lld,%lld,%.9f\n", (long long)op.u.row.rows, (long long)op.u.row.cols,
                      made_up_ms(&h200, &op, &r));
    }
    snprintf(name, sizeof name, "%s/h200/rowwise.csv.gz", folder);
    if (rows) data_table(name, text.at);
    ft__text_free(&text);
}

/* Softmax as NeuSight timed it, on two siblings and on two GPUs that stand alone. */
static void write_eager(const char *folder, int rows_each)
{
    static const struct {
        const char *theirs, *ours;
    } gpus[] = {{"NVIDIA_A100-PCIE-40GB", "a100_pcie_40gb"},
                {"NVIDIA_A100-SXM4-40GB", "a100_sxm_40gb"},
                {"Tesla_T4", "t4"},
                {"Tesla_V100-PCIE-32GB", "v100_pcie_32gb"}};
    random_source r = {32};
    ft_text text = {0};
    ft_op op;
    char name[256];
    ft__op_init("softmax", &op);
    op.dtype = op.kv_dtype = FT_FP32;
    op.timing = FT_TIMING_OP;
    ft__text_add(&text, "gpu,split,b,h,latency_ms\n");
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        ft_device device = device_named(gpus[g].ours);
        for (int i = 0; i < rows_each; i++) {
            op.u.row.rows = random_size(&r, 64, 65536), op.u.row.cols = random_size(&r, 64, 8192);
            ft__text_addf(&text, "%s,%s,%lld,%lld,%.9f\n", gpus[g].theirs, i % 5 ? "train" : "test",
                          (long long)op.u.row.rows, (long long)op.u.row.cols, made_up_ms(&device, &op, &r));
        }
    }
    snprintf(name, sizeof name, "%s/neusight/softmax.csv.gz", folder);
    data_table(name, text.at);
    ft__text_free(&text);
}

typedef struct result {
    void *file;
    size_t length;
    ft_accuracy_table accuracy;
    char folder[1024];
    const char *data[1];
    ft_fit_options options;
} result;

static void asks_for(result *out, const char *folder, int threads)
{
    memset(out, 0, sizeof *out);
    snprintf(out->folder, sizeof out->folder, "%s", scratch_path(folder));
    out->data[0] = out->folder;
    out->options = (ft_fit_options){.data = out->data, .data_count = 1, .threads = threads};
}

static void fit(result *out)
{
    ft_error err = {0};
    if (ft__fit(&out->options, &out->file, &out->length, &out->accuracy, &err) != FT_OK) fail_msg("%s", err.message);
}

static void free_result(result *r)
{
    free(r->file);
    ft__accuracy_free(&r->accuracy);
}

static void assert_same_file(const result *a, const result *b)
{
    assert_int_equal(a->length, b->length);
    assert_memory_equal(a->file, b->file, a->length);
    assert_int_equal(a->accuracy.count, b->accuracy.count);
    assert_memory_equal(a->accuracy.lines, b->accuracy.lines, a->accuracy.count * sizeof *a->accuracy.lines);
}

static void the_same_rows_give_the_same_bytes(void **state)
{
    (void)state;
    result one, two, again;
    write_own("small", 250, 150, 80);
    write_eager("small", 40);
    asks_for(&one, "small", 1);
    asks_for(&two, "small", 2);
    asks_for(&again, "small", 2);
    one.options.cross_validate = two.options.cross_validate = again.options.cross_validate = true;
    fit(&one);
    fit(&two);
    fit(&again);
    assert_same_file(&one, &two);
    assert_same_file(&two, &again);
    free_result(&one);
    free_result(&two);
    free_result(&again);
}

static const ft_accuracy *line_of(const ft_accuracy_table *t, const char *family, const char *gpu, const char *kind)
{
    for (size_t i = 0; i < t->count; i++)
        if (!strcmp(t->lines[i].family, family) && !strcmp(t->lines[i].gpu, gpu) && !strcmp(t->lines[i].kind, kind))
            return &t->lines[i];
    return NULL;
}

static void a_fit_learns_and_says_how_well(void **state)
{
    (void)state;
    result r;
    ft_predictor p;
    asks_for(&r, "small", 2);
    r.options.cross_validate = true;
    fit(&r);
    assert_int_equal(FT_OK, ft__predictor_read(r.file, r.length, "fitted", &p, NULL));
    static const char *const families[] = {"gemm_tensor", "elementwise", "row"};
    for (int i = 0; i < 3; i++) {
        const ft_accuracy *line = line_of(&r.accuracy, families[i], "h200_sxm", "known");
        assert_non_null(line);
        /* The noise alone is 1.5 %; the rest is what the models must learn of a world that is not theirs. */
        if (!(line->mean < 0.2 && line->median <= line->p90 && line->median < 0.12))
            fail_msg("%s: mean error %g, median %g", families[i], line->mean, line->median);
        assert_true(line->inside > 0.75 && line->inside <= 1);
        assert_true(line->rows > 60);
    }
    /* Left out one by one: two siblings, and every generation. */
    assert_non_null(line_of(&r.accuracy, "row", "a100_pcie_40gb", "sibling"));
    assert_non_null(line_of(&r.accuracy, "row", "a100_sxm_40gb", "sibling"));
    assert_null(line_of(&r.accuracy, "row", "t4", "sibling"));
    assert_non_null(line_of(&r.accuracy, "row", "t4", "unseen"));
    assert_non_null(line_of(&r.accuracy, "row", "v100_pcie_32gb", "unseen"));
    int own = 0, world = 0, linear = 0;
    for (size_t i = 0; i < p.expert_count; i++) {
        const ft_expert *e = &p.experts[i];
        linear += e->family[0] == '~';
        if (e->family[0] == '~') continue;
        own += !strcmp(e->gpu, "h200_sxm");
        world += !strcmp(e->gpu, "*");
        bool eager = !strcmp(e->gpu, "t4") || !strcmp(e->gpu, "v100_pcie_32gb") || !strncmp(e->gpu, "a100", 4);
        assert_int_equal(eager, (e->flags & FT_EXPERT_EAGER) != 0);
        if (!strcmp(e->family, "gemm_tensor") && e->gpu[0] != '*') assert_true(e->flags & FT_EXPERT_BARE_OPERANDS);
    }
    assert_true(own >= 3 && world >= 3);
    assert_int_equal(p.expert_count, 2 * (size_t)linear);
    json_error_t where;
    json_t *meta = json_loadb(p.meta, p.meta_length, 0, &where);
    assert_non_null(meta);
    assert_int_equal(r.accuracy.count, json_array_size(json_object_get(meta, "errors")));
    json_decref(meta);
    free_result(&r);
}

typedef struct seen {
    size_t rows;
    double error;
} seen;

static void see(void *context, const char *family, const char *variant, const ft_device *device, const ft_op *op,
                double measured_ms, const ft_forecast *forecast)
{
    seen *s = context;
    assert_non_null(family);
    assert_non_null(variant);
    assert_true(device->name[0] && op->name[0]);
    s->rows++;
    s->error += fabs(forecast->ms / measured_ms - 1);
}

static void validation_looks_at_every_row(void **state)
{
    (void)state;
    result r;
    ft_predictor p;
    ft_error err = {0};
    asks_for(&r, "small", 2);
    fit(&r);
    assert_int_equal(FT_OK, ft__predictor_read(r.file, r.length, "fitted", &p, NULL));
    seen all = {0}, held = {0};
    ft_accuracy_table one, two;
    ft_validate_options options = {.data = r.folder, .quantile = 0.9, .threads = 1, .each = see, .each_context = &all};
    assert_int_equal(FT_OK, ft__validate(&p, &options, &one, &err));
    options.threads = 2;
    options.each = NULL;
    assert_int_equal(FT_OK, ft__validate(&p, &options, &two, &err));
    assert_int_equal(one.count, two.count);
    assert_memory_equal(one.lines, two.lines, one.count * sizeof *one.lines);
    assert_int_equal(250 + 150 + 80 + 4 * 40, all.rows);
    size_t rows = 0;
    double error = 0;
    for (size_t i = 0; i < one.count; i++) {
        rows += one.lines[i].rows;
        error += one.lines[i].mean * (double)one.lines[i].rows;
        assert_string_equal("all", one.lines[i].kind);
    }
    assert_int_equal(all.rows, rows);
    assert_true(fabs(error - all.error) < 1e-6);
    assert_true(all.error / (double)all.rows < 0.1);
    ft__accuracy_free(&one);
    ft__accuracy_free(&two);

    static const char *const only[] = {"t4"}, *const family[] = {"row"};
    options = (ft_validate_options){.data = r.folder,
                                    .gpus = only,
                                    .gpu_count = 1,
                                    .families = family,
                                    .family_count = 1,
                                    .held_out_only = true,
                                    .quantile = 0.9,
                                    .threads = 2,
                                    .each = see,
                                    .each_context = &held};
    assert_int_equal(FT_OK, ft__validate(&p, &options, &one, &err));
    assert_int_equal(1, one.count);
    assert_int_equal(8, held.rows); /* one in five is of the test split */
    assert_string_equal("t4", one.lines[0].gpu);
    ft__accuracy_free(&one);
    options.data = scratch_path("nowhere");
    assert_int_equal(FT_E_FILE, ft__validate(&p, &options, &one, &err));
    free_result(&r);
}

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
        cmocka_unit_test(the_same_rows_give_the_same_bytes),
        cmocka_unit_test(a_fit_learns_and_says_how_well),
        cmocka_unit_test(validation_looks_at_every_row),
        cmocka_unit_test(options_are_honoured),
        cmocka_unit_test(a_single_row_is_enough),
        cmocka_unit_test(running_out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
