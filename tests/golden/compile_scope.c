/* What torch.compile is given, against four blocks of Llama 3 8B that were measured in either way
 * (data/measurements/h200/compile_scope.jsonl; the rows in bf16 with PyTorch's own choice of attention). */
#include <string.h>

#include "golden.h"

typedef struct pair {
    double got, measured;
} pair;

static double figure(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }
static const char *word(const json_t *row, const char *key) { return json_string_value(json_object_get(row, key)); }

/* Of 8 x 2048 tokens or 2 x 8192: `seq` says which. */
static void ask(int seq, const char *scope, pair *ms, pair *peak)
{
    bool eager = !strcmp(scope, "eager");
    json_t *rows = golden_rows("measurements/h200/compile_scope.jsonl"), *row, *found = NULL;
    size_t n;
    json_array_foreach (rows, n, row)
        if (!strcmp(word(row, "scope"), scope) && (int)figure(row, "seq") == seq &&
            json_is_false(json_object_get(row, "fp8")) && !strcmp(word(row, "attention"), "sdpa"))
            found = row;
    assert_non_null(found);
    json_t *a = golden_ask("{\"task\":\"train\",\"model\":{\"model_type\":\"llama\",\"hidden_size\":4096,"
                           "\"intermediate_size\":14336,\"num_hidden_layers\":4,\"num_attention_heads\":32,"
                           "\"num_key_value_heads\":8,\"vocab_size\":128256,\"tie_word_embeddings\":false},"
                           "\"gpu\":\"h200_sxm\",\"batch\":%d,\"seq\":%d,\"dtype\":\"bf16\",\"attention\":\"sdpa\","
                           "\"execution\":\"%s\",\"compile_scope\":\"%s\"}",
                           (int)figure(found, "batch"), seq, eager ? "eager" : "compile", eager ? "auto" : scope);
    *ms = (pair){golden_figure(a, "step_ms"), figure(found, "ms")};
    *peak = (pair){golden_figure(a, "memory.peak_bytes"), figure(found, "peak_bytes")};
    json_decref(a);
    json_decref(rows);
}

static void layers_by_themselves(void **state)
{
    (void)state;
    static const int lengths[] = {8192, 2048};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        pair eager, by_layers, held, held_by_layers;
        ask(lengths[i], "eager", &eager, &held);
        ask(lengths[i], "layers", &by_layers, &held_by_layers);
        golden_near("eager", eager.got, eager.measured, 0.1);
        golden_near("by layers", by_layers.got, by_layers.measured, 0.1);
        golden_near("saved", eager.got - by_layers.got, eager.measured - by_layers.measured, 0.3);
        golden_near("eager peak", held.got, held.measured, 0.005);
        golden_near("peak by layers", held_by_layers.got, held_by_layers.measured, 0.005);
    }
}

/* A whole traced model passes a mask to sdpa: slower than its layers by themselves, and slower than eager here. */
static void a_model_passes_its_mask(void **state)
{
    (void)state;
    pair eager, by_layers, whole, ignored;
    ask(8192, "eager", &eager, &ignored);
    ask(8192, "layers", &by_layers, &ignored);
    ask(8192, "model", &whole, &ignored);
    golden_near("whole", whole.got, whole.measured, 0.1);
    assert_true(whole.measured > eager.measured && whole.got > eager.got);
    golden_near("the mask's price", whole.got - by_layers.got, whole.measured - by_layers.measured, 0.3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_by_themselves),
                                       cmocka_unit_test(a_model_passes_its_mask)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
