/* Training runs that others published and nothing was fitted to (data/published): what they took and what they held, by
 * source. Bounds are what the code reaches today, rounded up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

typedef struct source {
    const char *name;
    double mean, worst; /* of the step's time */
    double memory;      /* mean; 0: not published */
} source;

/* torchtitan's context parallelism over four and eight GPUs is what is 30 % slower than forecast; its memory is that
 * of a loss that was not compiled. Megatron-LM in the MegaScale paper ran on a network that its authors then mended.
 */
static const source sources[] = {
    {"Megatron-Bridge", 0.09, 0.18, 0},
    {"torchtitan", 0.13, 0.33, 0.21},
    {"Korthikanti et al. 2022", 0.06, 0.12, 0},
    {"MegaScale paper: Megatron-LM", 0.18, 0.22, 0},
    {"BLOOM", 0.14, 0.14, 0},
};
enum { SOURCES = sizeof sources / sizeof *sources };

typedef struct tally {
    int runs, inside, weighed;
    double time, memory;
} tally;

static int source_of(const json_t *run)
{
    const char *name = json_string_value(json_object_get(run, "source"));
    for (int i = 0; i < SOURCES; i++)
        if (name && !strcmp(name, sources[i].name)) return i;
    fail_msg("no bound for the source %s", name ? name : "(none)");
    return -1;
}

static void take(const json_t *run, tally *t, const source *s)
{
    char *request = json_dumps(json_object_get(run, "request"), 0);
    assert_non_null(request);
    json_t *answer = golden_ask("%s", request);
    double step = json_number_value(json_object_get(run, "step_ms")), got = golden_figure(answer, "step_ms");
    const json_t *held = json_object_get(run, "reserved_gib");
    golden_near(json_string_value(json_object_get(run, "what")), got, step, s->worst);
    t->runs++;
    t->time += fabs(got / step - 1);
    t->inside += golden_figure(answer, "low_ms") <= step && step <= golden_figure(answer, "high_ms");
    if (held) {
        t->weighed++;
        t->memory += fabs(golden_figure(answer, "memory.reserved_bytes") / 1073741824 / json_number_value(held) - 1);
    }
    json_decref(answer);
    free(request);
}

static void published_runs_are_met(void **state)
{
    (void)state;
    tally of[SOURCES] = {0}, all = {0};
    json_t *runs = golden_rows("published/training.jsonl"), *run;
    size_t n;
    json_array_foreach (runs, n, run) {
        int i = source_of(run);
        take(run, &of[i], &sources[i]);
    }
    json_decref(runs);
    for (int i = 0; i < SOURCES; i++) {
        const tally *t = &of[i];
        assert_true(t->runs > 0);
        golden_holds(t->time / t->runs < sources[i].mean, "%s: %.1f %% off on average", sources[i].name,
                     100 * t->time / t->runs);
        if (sources[i].memory > 0)
            golden_holds(t->weighed && t->memory / t->weighed < sources[i].memory, "%s: memory %.1f %% off on average",
                         sources[i].name, 100 * t->memory / t->weighed);
        all.runs += t->runs;
        all.inside += t->inside;
        all.time += t->time;
    }
    golden_holds(all.runs >= 50, "%d runs", all.runs);
    golden_holds(all.time / all.runs < 0.105, "all: %.1f %% off on average", 100 * all.time / all.runs);
    golden_holds(all.inside >= 0.75 * all.runs, "%d of %d inside their intervals", all.inside, all.runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_runs_are_met)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
