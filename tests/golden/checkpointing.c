/* What is computed again and what is kept, against four blocks of Llama 3 8B that were measured in three ways
 * (data/measurements/h200/checkpointing.jsonl; the rows without FSDP and compiler). */
#include <string.h>

#include "golden.h"

enum { NONE, SELECTIVE, FULL, WAYS };
static const char *const ways[WAYS] = {"none", "selective", "full"};

typedef struct pair {
    double got, measured;
} pair;

static double figure(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

static int way_of(const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "recompute"));
    for (int i = 0; i < WAYS; i++)
        if (name && !strcmp(name, ways[i])) return i;
    fail_msg("recompute %s", name ? name : "(none)");
    return -1;
}

static void ask(const json_t *row, pair *ms, pair *peak)
{
    json_t *a = golden_ask("{\"task\":\"train\",\"model\":{\"model_type\":\"llama\",\"hidden_size\":4096,"
                           "\"intermediate_size\":14336,\"num_hidden_layers\":%d,\"num_attention_heads\":32,"
                           "\"num_key_value_heads\":8,\"vocab_size\":128256,\"tie_word_embeddings\":false},"
                           "\"gpu\":\"h200_sxm\",\"batch\":%d,\"seq\":%d,\"dtype\":\"bf16\",\"attention\":\"sdpa\","
                           "\"execution\":\"eager\",\"recompute\":\"%s\"}",
                           (int)figure(row, "layers"), (int)figure(row, "batch"), (int)figure(row, "seq"),
                           ways[way_of(row)]);
    *ms = (pair){golden_figure(a, "step_ms"), figure(row, "ms")};
    *peak = (pair){golden_figure(a, "memory.peak_bytes"), figure(row, "peak_bytes")};
    json_decref(a);
}

static void what_is_kept_and_what_runs_again(void **state)
{
    (void)state;
    pair ms[WAYS] = {{0}}, peak[WAYS] = {{0}};
    json_t *rows = golden_rows("measurements/h200/checkpointing.jsonl"), *row;
    size_t n;
    json_array_foreach (rows, n, row)
        if (json_is_false(json_object_get(row, "fsdp")) && json_is_false(json_object_get(row, "compiled")))
            ask(row, &ms[way_of(row)], &peak[way_of(row)]);
    json_decref(rows);
    for (int i = 0; i < WAYS; i++) {
        assert_true(ms[i].measured > 0);
        golden_near(ways[i], ms[i].got, ms[i].measured, 0.05);
        golden_near(ways[i], peak[i].got, peak[i].measured, 0.01);
    }
    for (int i = SELECTIVE; i < WAYS; i++) {
        golden_near("saved", peak[NONE].got - peak[i].got, peak[NONE].measured - peak[i].measured, 0.03);
        golden_near("paid", ms[i].got - ms[NONE].got, ms[i].measured - ms[NONE].measured, 0.2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_kept_and_what_runs_again)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
