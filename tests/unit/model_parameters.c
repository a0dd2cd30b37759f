/* Parameters: every model of the catalogue has as many as its source publishes, to the digit given, and exactly as many
 * as the library that defines it allocates (`counted` in data/models: transformers on its meta device, or the shape's
 * own sum where the library cannot be asked). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "import/config/config.h"
#include "model/workload.h"

static double parameters_of(const char *name, int64_t mtp, ft_arena *arena)
{
    ft_arch arch;
    ft_error err = {0};
    ft_graph *graph = NULL;
    ft_workload work = {.task = FT_FORWARD_PASS,
                        .dtype = FT_BF16,
                        .kv_dtype = FT_BF16,
                        .batch = 1,
                        .seq = 64,
                        .mtp = mtp,
                        .attention = FT_SDPA,
                        .execution = FT_RUN_EAGER,
                        .optimizer = FT_NO_OPTIMIZER,
                        .accumulate = 1};
    ft_status opened = ft__model_open(name, NULL, &arch, &err);
    if (opened == FT_OK && arch.fixed_seq > 0) work.seq = arch.fixed_seq; /* a graph of the catalogue with one length */
    if (opened != FT_OK || ft__model_graph(&arch, &work, arena, &graph, &err) != FT_OK) {
        print_message("%s: %s\n", name, err.message);
        return -1;
    }
    double parameters = graph->parameters;
    ft__arch_release(&arch);
    ft__arena_reset(arena);
    return parameters;
}

static double counted(const ft_model_entry *e)
{
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    char path[1024];
    json_t *json;
    double exact = 0;
    assert_non_null(root);
    snprintf(path, sizeof path, "%s/data/models/%s.json", root, e->name);
    assert_int_equal(FT_OK, ft__json_load(path, &json, NULL));
    assert_int_equal(FT_OK, ft__json_number(json, "counted", FT_REQUIRED, 1, 1e15, &exact, path, NULL));
    json_decref(json);
    return exact;
}

static void every_model_has_the_parameters_that_it_is_known_for(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    int wrong = 0;
    (void)state;
    assert_non_null(arena);
    for (size_t i = 0; i < ft__model_count(); i++) {
        const ft_model_entry *e = ft__model_at(i);
        double got = parameters_of(e->name, 0, arena), exact = counted(e), unit = e->published_digits;
        bool agrees = e->published == 0 || llround(got / unit) == llround(e->published / unit);
        if (got == exact && agrees) continue;
        wrong++;
        print_message("%s (%s): %.0f parameters, the library has %.0f, published %.0f to %.0f\n", e->name,
                      e->model_type, got, exact, e->published, unit);
    }
    ft__arena_free(arena);
    assert_int_equal(0, wrong);
}

/* tests/data/published_totals.csv: model, published total, its last digit, modules that predict further tokens and are
 * counted in it, source. */
static void todays_models_have_the_totals_that_are_published(void **state)
{
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    char path[1024], line[512];
    int rows = 0, wrong = 0, exact = 0;
    (void)state;
    assert_non_null(root);
    snprintf(path, sizeof path, "%s/tests/data/published_totals.csv", root);
    FILE *file = fopen(path, "r");
    ft_arena *arena = ft__arena_new(0);
    assert_non_null(file);
    assert_non_null(arena);
    assert_non_null(fgets(line, sizeof line, file)); /* the head */
    while (fgets(line, sizeof line, file)) {
        char *name = strtok(line, ","), *published = strtok(NULL, ","), *digits = strtok(NULL, ",");
        char *mtp = strtok(NULL, ",");
        assert_non_null(mtp);
        double got = parameters_of(name, atoll(mtp), arena), total = atof(published), unit = atof(digits);
        bool near = fabs(got / total - 1) <= 0.005 || (unit > 1 && llround(got / unit) == llround(total / unit));
        rows++;
        exact += got == total;
        if (near) continue;
        wrong++;
        print_message("%s: %.0f parameters, published are %.0f to %.0f\n", name, got, total, unit);
    }
    fclose(file);
    ft__arena_free(arena);
    assert_int_equal(0, wrong);
    assert_true(rows >= 84);
    assert_true(exact >= 20); /* counts of checkpoints, not rounded ones */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_has_the_parameters_that_it_is_known_for),
        cmocka_unit_test(todays_models_have_the_totals_that_are_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
