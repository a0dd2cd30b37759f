/* ZeRO-3 by DeepSpeed on A100s: Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters
 * Using Megatron-LM", table 2, without model parallelism: GPT of 174.6 and 529.6 billion parameters, one micro-batch a
 * step. Their TFLOP/s count the recomputed forward pass: 96 B s l h^2 (1 + s/6h + V/16lh) for a step. Nothing here is
 * fitted to the rows; the requests say what the software did. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "golden.h"

typedef struct row {
    const char *name;
    int layers, hidden, heads, gpus, micro;
    double tflops;
} row;

static const row rows[] = {
    {"174.6 B on 384", 96, 12288, 96, 384, 4, 144},    {"174.6 B on 768", 96, 12288, 96, 768, 2, 88},
    {"174.6 B on 1536", 96, 12288, 96, 1536, 1, 44},   {"529.6 B on 640", 105, 20480, 128, 640, 4, 138},
    {"529.6 B on 1120", 105, 20480, 128, 1120, 2, 98}, {"529.6 B on 2240", 105, 20480, 128, 2240, 1, 48},
};
static const char then[] = "megatron_2021";
enum { ROWS = sizeof rows / sizeof *rows, SEQ = 2048, VOCAB = 51200 };

static double value(const char *key, const row *r, const char *stack, const char *more)
{
    return golden_value(
        key,
        "{\"task\":\"train\",\"model\":{\"model_type\":\"gpt2\",\"n_embd\":%d,\"n_inner\":%d,\"n_layer\":%d,\"n_head\":"
        "%d,\"n_positions\":%d,\"vocab_size\":%d},\"gpu\":\"a100_sxm_80gb\",\"batch\":%d,\"seq\":%d,\"dtype\":\"fp16\","
        "\"master_weights\":true,\"attention\":\"eager\",\"stack\":\"%s\",\"optimizer\":\"adamw\","
        "\"recompute\":\"full\",\"parallel\":{\"dp\":%d,\"zero\":3%s},"
        "\"cluster\":{\"gpus_per_node\":8,\"interconnect\":\"8x200 Gbps HDR InfiniBand/node "
        "(Selene)\"}}",
        r->hidden, 4 * r->hidden, r->layers, r->heads, SEQ, VOCAB, r->micro, SEQ, stack, r->gpus, more);
}

static double step_ms(const row *r, const char *stack, const char *more) { return value("step_ms", r, stack, more); }

static double measured_ms(const row *r)
{
    double h = r->hidden, l = r->layers, batch = (double)r->gpus * r->micro;
    double flops = 96.0 * batch * SEQ * l * h * h * (1 + SEQ / (6 * h) + VOCAB / (16 * l * h));
    return flops / r->gpus / (r->tflops * 1e12) * 1e3;
}

static void each_row_of_table_2_within_25_percent(void **state)
{
    (void)state;
    double sum = 0;
    for (int i = 0; i < ROWS; i++) {
        double got = step_ms(&rows[i], then, ""), real = measured_ms(&rows[i]);
        golden_near(rows[i].name, got, real, 0.25);
        sum += fabs(got / real - 1);
    }
    golden_holds(sum / ROWS < 0.10, "the six rows are %.1f %% off on average", 100 * sum / ROWS);
}

/* The paper's point: with ZeRO-3 twice the GPUs for the same batch are hardly faster from some number on. */
static void more_gpus_stop_helping(void **state)
{
    (void)state;
    double some = step_ms(&rows[1], then, ""), twice = step_ms(&rows[2], then, "");
    golden_holds(twice > 0.9 * some, "%.0f ms on 768, %.0f on 1536", some, twice);
    some = step_ms(&rows[1], then, ",\"gather\":\"layer\"");
    twice = step_ms(&rows[2], then, ",\"gather\":\"layer\"");
    golden_holds(twice < 0.6 * some, "by the layer %.0f ms on 768, %.0f on 1536", some, twice);
}

/* What the software of the time did is its stack's default alone, and can be asked for by name. */
static void the_default_goes_by_the_software(void **state)
{
    (void)state;
    const row *r = &rows[0];
    double old = step_ms(r, then, ""), now = step_ms(r, "megatron_recipe", "");
    golden_near("by name", step_ms(r, then, ",\"gather\":\"parameter\""), old, 1e-9);
    golden_near("now", now, step_ms(r, "megatron_recipe", ",\"gather\":\"layer\""), 1e-9);
    golden_holds(step_ms(r, "megatron_recipe", ",\"gather\":\"parameter\"") > 1.2 * now, "now, by the tensor");
}

/* They ran in 80 GB: tensors are gathered and reduced one by one, where two layers of 5 billion parameters and their
 * gradients would be 38 GiB. */
static void none_that_ran_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        double chance = value("memory.chance_fits", &rows[i], then, "");
        golden_holds(chance > 0.05, "%s: chance %.3f", rows[i].name, chance);
    }
    double one = value("memory.communication_bytes", &rows[3], then, ""),
           layers = value("memory.communication_bytes", &rows[3], then, ",\"gather\":\"layer\"");
    golden_holds(one < 0.4 * layers, "%.1f GB by the tensor, %.1f by the layer", one * 1e-9, layers * 1e-9);
}

/* The first advice is the software of today. */
static void advice_says_so(void **state)
{
    (void)state;
    json_t *answer = golden_ask(
        "{\"task\":\"train\",\"model\":\"gpt3-6.7b\",\"gpu\":\"a100_sxm_80gb\",\"batch\":4,\"seq\":2048,\"dtype\":"
        "\"fp16\",\"stack\":\"megatron_2021\",\"recompute\":\"full\",\"parallel\":{\"dp\":256,\"zero\":3},\"advice\":"
        "true}");
    const json_t *first = json_array_get(json_object_get(answer, "advice"), 0);
    const json_t *patch = json_object_get(json_object_get(first, "request"), "parallel");
    const char *gather = json_string_value(json_object_get(patch, "gather"));
    bool by_layer = gather && !strcmp(gather, "layer");
    double saves = json_number_value(json_object_get(first, "saves_ms"));
    bool half = saves > 0.3 * golden_figure(answer, "step_ms");
    json_decref(answer);
    golden_holds(by_layer && half, "the first advice saves %g ms", saves);
}

/* RoBERTa of 10 billion parameters from Hugging Face, 8 x 512 tokens on every V100, eight to a node of 100 Gb/s: issue
 * 1069 of DeepSpeed, May 2021. It does not say how many layers; 50 of 4096 are the example's. No figure was chosen by
 * these rows. */
static void roberta_on_v100s_within_20_percent(void **state)
{
    (void)state;
    static const struct {
        int gpus;
        double samples_per_s;
    } measured[] = {{16, 11.6}, {32, 23}, {64, 41}, {128, 77}};
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        int gpus = measured[i].gpus;
        double ms = golden_value(
            "step_ms",
            "{\"task\":\"train\",\"model\":{\"model_type\":\"roberta\",\"hidden_size\":4096,\"intermediate_size\":"
            "16384,"
            "\"num_hidden_layers\":50,\"num_attention_heads\":32,\"vocab_size\":50265,\"max_position_embeddings\":514,"
            "\"architectures\":[\"RobertaForMaskedLM\"]},\"gpu\":\"v100_sxm_32gb\",\"batch\":8,\"seq\":512,\"dtype\":"
            "\"fp16\",\"master_weights\":true,\"attention\":\"eager\",\"execution\":\"eager\",\"optimizer\":\"adamw\","
            "\"recompute\":\"full\",\"parallel\":{\"dp\":%d,\"zero\":3,\"gather\":\"parameter\"},"
            "\"cluster\":{\"gpus_per_node\":8,\"interconnect\":\"100 Gbps EFA/node\"}}",
            gpus);
        char name[32];
        snprintf(name, sizeof name, "on %d GPUs", gpus);
        golden_near(name, 8.0 * gpus / (ms * 1e-3), measured[i].samples_per_s, 0.20);
    }
}

static double exchanged_ms(const char *weights)
{
    return golden_value(
        "comm_ms",
        "{\"task\":\"train\",\"model\":\"llama-2-7b\",\"gpu\":\"a100_sxm_80gb\",\"batch\":1,\"seq\":2048,"
        "\"global_batch\":8,\"recompute\":\"full\",\"execution\":\"eager\",\"lora_rank\":8,"
        "\"parallel\":{\"dp\":8,\"zero\":3}%s}",
        weights);
}

/* FSDP-QLoRA gathers packed weights and every rank unpacks them: a quarter of the bytes, but for embedding, head and
 * adapters. */
static void packed_weights_travel_packed(void **state)
{
    (void)state;
    double plain = exchanged_ms(""), packed = exchanged_ms(",\"weights_dtype\":\"int4\"");
    golden_holds(packed < 0.45 * plain && packed > 0.2 * plain, "%.1f of %.1f ms", packed, plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_table_2_within_25_percent),
        cmocka_unit_test(more_gpus_stop_helping),
        cmocka_unit_test(none_that_ran_is_refused),
        cmocka_unit_test(the_default_goes_by_the_software),
        cmocka_unit_test(advice_says_so),
        cmocka_unit_test(roberta_on_v100s_within_20_percent),
        cmocka_unit_test(packed_weights_travel_packed),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
