/* From tables to a predictor and back: the same bytes however often and on however many threads, and forecasts that are
 * near the rows nobody showed it. Rows are made up: launch plus roofline at a share of the peaks, and 3 % of noise. */
#define _DEFAULT_SOURCE /* mkdir */
#include <jansson.h>

#include "fit_tables.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_rows_give_the_same_bytes),
        cmocka_unit_test(a_fit_learns_and_says_how_well),
        cmocka_unit_test(validation_looks_at_every_row),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
