/* nccl-tests tables of several nodes that others published (data/published/collectives.jsonl): mean error by
 * collective, of the clusters whose tables were fitted and of those that were held out. Bounds are what the code
 * reaches today, rounded up. Errors are of logarithms: twice and half as long count alike. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

typedef struct group {
    const char *op;
    bool held_out;
    double mean, bias; /* exp(mean |log|) - 1, and |exp(mean log) - 1| */
} group;

/* Gathers and scatters that were held out are those of B200 alone, one of whose two clusters takes twice as long as the
 * other in the middle sizes. */
static const group groups[] = {
    {"all_reduce", false, 0.15, 0.08}, {"all_gather", false, 0.11, 0.05}, {"all_to_all", false, 0.12, 0.08},
    {"all_reduce", true, 0.20, 0.08},  {"all_gather", true, 0.32, 0.24},  {"reduce_scatter", true, 0.52, 0.35},
    {"all_to_all", true, 0.21, 0.17},  {"send_recv", true, 0.23, 0.14},
};
enum { GROUPS = sizeof groups / sizeof *groups };

typedef struct tally {
    int sizes, inside;
    double off, bias;
} tally;

static int group_of(const json_t *table)
{
    const char *op = json_string_value(json_object_get(table, "op"));
    bool held_out = json_is_true(json_object_get(table, "held_out"));
    for (int i = 0; i < GROUPS; i++)
        if (op && !strcmp(op, groups[i].op) && held_out == groups[i].held_out) return i;
    fail_msg("no bound for %s", op ? op : "(none)");
    return -1;
}

static void take(const json_t *table, tally *t)
{
    static const char *const said[] = {"op", "gpu", "ranks", "cluster"};
    json_t *request = json_object(), *size;
    size_t n;
    json_object_set_new(request, "task", json_string("collective"));
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        json_object_set(request, said[i], json_object_get(table, said[i]));
    json_array_foreach (json_object_get(table, "sizes"), n, size) {
        double us = json_number_value(json_array_get(size, 1));
        json_object_set(request, "bytes", json_array_get(size, 0));
        char *text = json_dumps(request, 0);
        assert_non_null(text);
        json_t *answer = golden_ask("%s", text);
        double error = log(golden_figure(answer, "ms") * 1e3 / us);
        golden_holds(fabs(error) < log(7), "%s: %g us published", text, us);
        t->sizes++;
        t->off += fabs(error);
        t->bias += error;
        t->inside += golden_figure(answer, "low_ms") * 1e3 <= us && us <= golden_figure(answer, "high_ms") * 1e3;
        json_decref(answer);
        free(text);
    }
    json_decref(request);
}

static void published_exchanges_are_met(void **state)
{
    (void)state;
    tally of[GROUPS] = {0}, all = {0};
    json_t *tables = golden_rows("published/collectives.jsonl"), *table;
    size_t n;
    json_array_foreach (tables, n, table) take(table, &of[group_of(table)]);
    json_decref(tables);
    for (int i = 0; i < GROUPS; i++) {
        const tally *t = &of[i];
        assert_true(t->sizes > 0);
        double off = expm1(t->off / t->sizes), bias = expm1(t->bias / t->sizes);
        const char *kept = groups[i].held_out ? "held out" : "fitted";
        golden_holds(off < groups[i].mean, "%s, %s: %.1f %% off on average", groups[i].op, kept, 100 * off);
        golden_holds(fabs(bias) < groups[i].bias, "%s, %s: %+.1f %% in the mean", groups[i].op, kept, 100 * bias);
        all.sizes += t->sizes;
        all.inside += t->inside;
    }
    golden_holds(all.sizes >= 600, "%d sizes", all.sizes);
    golden_holds(all.inside >= 0.88 * all.sizes, "%d of %d inside their intervals", all.inside, all.sizes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_exchanges_are_met)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
