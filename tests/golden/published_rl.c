/* Published steps of reinforcement learning and of preferences (data/published/rl.jsonl), as they ran as far as that is
 * known ("also"). Bounds are what the code reaches today, rounded up; docs/accuracy/reinforcement.md says what is known
 * of the large ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

typedef struct bound {
    const char *source;
    double mean, worst; /* of the step */
    int rows;
} bound;

/* DeepSpeed-Chat's table does not say its batches; Miles' rollouts are partial ones; steps off policy were forecast
 * blind at first. */
static const bound bounds[] = {
    {"NeMo RL 0.3, parts", 0.09, 0.22, 6},
    {"NeMo RL 0.4", 0.16, 0.34, 5},
    {"NeMo RL 0.5", 0.13, 0.22, 10},
    {"NeMo RL 0.6", 0.13, 0.21, 9},
    {"NeMo RL, one step off", 0.16, 0.38, 21},
    {"NeMo RL 0.6, later", 0.31, 0.32, 2},
    {"verl 0.3 logs (MI300X)", 0.3, 0.31, 2},
    {"ROCm blogs, verl 0.3", 0.35, 0.43, 4},
    {"verl docs", 0.3, 0.3, 1},
    {"Miles (MI300X)", 0.6, 0.6, 1},
    {"DeepSpeed-Chat, log", 0.1, 0.1, 1},
    {"DeepSpeed-Chat, table", 0.63, 0.73, 9},
    {"alignment-handbook, DPO", 0.1, 0.1, 1},
};
enum { SOURCES = sizeof bounds / sizeof *bounds };

static int source_of(const json_t *run)
{
    for (int i = 0; i < SOURCES; i++)
        if (strcmp(json_string_value(json_object_get(run, "source")), bounds[i].source) == 0) return i;
    fail_msg("no bound for the source of %s", json_string_value(json_object_get(run, "what")));
    return -1;
}

static json_t *answer_of(json_t *run)
{
    json_t *request = json_object_get(run, "request"), *also = json_object_get(run, "also");
    if (also) assert_int_equal(json_object_update(request, also), 0);
    char *text = json_dumps(request, 0);
    assert_non_null(text);
    json_t *answer = golden_ask("%s", text);
    free(text);
    return answer;
}

/* What is generated, without new weights where the publisher tells them apart; 0: not published. */
static double generation_off(const json_t *run, const json_t *answer)
{
    const json_t *parts = json_object_get(run, "parts_ms"), *told = json_object_get(parts, "generation");
    if (!told) return 0;
    const double apart = json_object_get(parts, "refit") ? golden_figure(answer, "refit_ms") : 0;
    return (golden_figure(answer, "rollout_ms") - apart) / json_number_value(told) - 1;
}

static void published_steps_are_met(void **state)
{
    (void)state;
    double sum[SOURCES] = {0}, generated = 0;
    int rows[SOURCES] = {0}, parts = 0, inside = 0;
    json_t *runs = golden_rows("published/rl.jsonl"), *run;
    size_t n;
    json_array_foreach (runs, n, run) {
        const int i = source_of(run);
        json_t *answer = answer_of(run);
        const double step = json_number_value(json_object_get(run, "step_ms")), got = golden_figure(answer, "step_ms");
        golden_near(json_string_value(json_object_get(run, "what")), got, step, bounds[i].worst);
        sum[i] += fabs(got / step - 1);
        rows[i]++;
        inside += golden_figure(answer, "low_ms") <= step && step <= golden_figure(answer, "high_ms");
        const double off = generation_off(run, answer);
        parts += off != 0;
        generated += fabs(off);
        json_decref(answer);
    }
    json_decref(runs);
    for (int i = 0; i < SOURCES; i++) {
        golden_holds(rows[i] == bounds[i].rows, "%s: %d rows", bounds[i].source, rows[i]);
        golden_holds(sum[i] / rows[i] < bounds[i].mean, "%s: %.1f %% off on average", bounds[i].source,
                     100 * sum[i] / rows[i]);
    }
    golden_holds(inside >= 57, "%d inside their intervals", inside);
    golden_holds(parts == 11 && generated / parts < 0.2, "%d generations, %.1f %% off on average", parts,
                 100 * generated / parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_steps_are_met)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
