/* Operators of transformers' modules (5.22.2), counted on a CPU under a dispatch mode: what runs on a GPU, views left
 * out. One sequence, bf16, no cache where nothing else is said. Beside them what the host waits for in a step of
 * generation. */
#include <stdio.h>

#include "golden.h"

#define ENCODED "\"hidden_size\":768,\"intermediate_size\":3072,\"num_attention_heads\":12"
#define DECODED "\"hidden_size\":1024,\"intermediate_size\":2816,\"num_attention_heads\":16,\"num_key_value_heads\":8"
#define OLD "\"n_embd\":1024,\"n_head\":16,\"rotary_dim\":32,\"vocab_size\":50400"
#define NARROW                                                                                           \
    "\"hidden_size\":256,\"intermediate_size\":512,\"num_attention_heads\":4,\"num_key_value_heads\":2," \
    "\"num_hidden_layers\":6,\"vocab_size\":1000,\"sliding_window\":64"
#define PLACES                                                                                 \
    "\"relative_attention\":true,\"pos_att_type\":[\"p2c\",\"c2p\"],\"position_buckets\":256," \
    "\"share_att_key\":true,\"norm_rel_ebd\":\"layer_norm\",\"position_biased_input\":false"

static void launches_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *task, *model;
        double operators;
    } cases[] = {
        {"forward", "\"llama\",\"num_hidden_layers\":6,\"vocab_size\":32000," DECODED, 258},
        {"forward", "\"olmo3\",\"num_hidden_layers\":5,\"vocab_size\":32000," DECODED, 324},
        {"forward", "\"cohere2\",\"num_hidden_layers\":5,\"vocab_size\":32000," DECODED, 219},
        {"forward", "\"gptj\",\"n_layer\":6," OLD, 293},
        {"forward", "\"codegen\",\"n_layer\":7," OLD, 331},
        {"forward", "\"deberta-v2\",\"num_hidden_layers\":5,\"vocab_size\":128100," PLACES "," ENCODED, 247},
        {"forward", "\"gemma3_text\",\"head_dim\":64," NARROW, 580},
        {"prefill", "\"gemma3_text\",\"head_dim\":64," NARROW, 576},
        {"decode", "\"gemma3_text\",\"head_dim\":64," NARROW, 576},
        {"decode", "\"mistral\"," NARROW, 304},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double launches =
            golden_value("launches",
                         "{\"task\":\"%s\",\"model\":{\"model_type\":%s},\"gpu\":\"h200_sxm\",\"batch\":1,"
                         "\"seq\":128,\"dtype\":\"bf16\",\"attention\":\"sdpa\",\"execution\":\"eager\"%s}",
                         cases[i].task, cases[i].model, cases[i].task[0] == 'f' ? "" : ",\"cache\":\"dynamic\"");
        golden_near(cases[i].model, launches, cases[i].operators, 0.02);
    }
}

/* A layer whose window is full keeps its shape: cuDNN has planned it (data/measurements/h200/window_decode.jsonl). */
static void full_windows_are_planned(void **state)
{
    (void)state;
    const char *request = "{\"task\":\"decode\",\"model\":{\"model_type\":\"mistral\",\"sliding_window\":%s,"
                          "\"num_hidden_layers\":12,\"vocab_size\":32000," DECODED "},\"gpu\":\"h200_sxm\",\"batch\":1,"
                          "\"seq\":1024,\"attention\":\"sdpa\",\"execution\":\"eager\",\"cache\":\"dynamic\"}";
    char asked[512];
    snprintf(asked, sizeof asked, request, "512");
    double full = golden_value("step_ms", "%s", asked);
    snprintf(asked, sizeof asked, request, "null");
    double grown = golden_value("step_ms", "%s", asked);
    golden_holds(grown > full + 40, "%.1f ms with a cache that grows, %.1f with a full one", grown, full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(launches_are_counted),
                                       cmocka_unit_test(full_windows_are_planned)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
