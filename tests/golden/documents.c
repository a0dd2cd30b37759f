/* Figures that published documents give, each forecast anew. Every test names where its figure stands. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

static const double GIB = 1073741824.0;

/* A model of exactly 10^9 parameters per layer: 16,000 x 31,250, twice. */
#define BILLIONS                                                                                            \
    "{\"foretell_graph\":1,\"inputs\":{\"x\":{\"shape\":[\"batch\",16000]}},\"blocks\":[{\"name\":\"mlp\"," \
    "\"repeat\":%d,\"in\":\"x\",\"out\":\"y\",\"nodes\":["                                                  \
    "{\"op\":\"linear\",\"name\":\"up\",\"in\":\"x\",\"features\":31250,\"out\":\"h\"},"                    \
    "{\"op\":\"linear\",\"name\":\"down\",\"in\":\"h\",\"features\":16000,\"out\":\"y\"}]}]}"

static json_t *billions(int count, const char *more)
{
    return golden_ask("{\"task\":\"memory\",\"model\":" BILLIONS ",\"gpu\":\"h200_sxm\"%s}", count, more);
}

/* Rajbhandari et al., ZeRO (2020), section 3.1: 2 bytes of fp16 weights, 2 of gradients, 12 of Adam (an fp32 copy,
 * momentum, variance): 16 bytes a parameter, 14.9 GiB for 10^9 of them. Autocast comes to the same sum as 4 + 4 + 8.
 * The allocator's segments of 2 MiB are inside the tolerance. */
static void a_billion_parameters_with_adam_take_14_9_gib(void **state)
{
    (void)state;
    json_t *master = billions(1, ",\"dtype\":\"fp16\",\"master_weights\":true");
    json_t *plain = billions(1, ",\"dtype\":\"fp16\"");
    json_t *autocast = billions(1, ",\"dtype\":\"amp_fp16\"");
    assert_true(golden_figure(master, "parameters") == 1e9);
    double zero = golden_figure(master, "memory.weights_bytes") + golden_figure(plain, "memory.gradients_bytes") +
                  golden_figure(master, "memory.optimizer_bytes");
    golden_near("fp16 weights, fp16 gradients, Adam in fp32, GiB", zero / GIB, 14.9, 0.001);
    double amp = golden_figure(autocast, "memory.weights_bytes") + golden_figure(autocast, "memory.gradients_bytes") +
                 golden_figure(autocast, "memory.optimizer_bytes");
    golden_near("autocast, GiB", amp / GIB, 14.9, 0.001);
    /* Megatron's gradients beside masters are fp32: two bytes more. */
    double megatron = golden_figure(master, "memory.gradients_bytes") - golden_figure(plain, "memory.gradients_bytes");
    golden_near("fp32 gradients less fp16 ones", megatron, 2e9, 0.001);
    json_decref(master);
    json_decref(plain);
    json_decref(autocast);
}

/* 175 * 10^9 * 4 / 2^30 = 651.9 GiB; GPT-3's own table has 174.6 * 10^9 weights. */
static void weights_of_175_billion_in_fp32_take_651_9_gib(void **state)
{
    (void)state;
    json_t *round = billions(175, ",\"dtype\":\"fp32\"");
    golden_near("175 * 10^9 weights, GiB", golden_figure(round, "memory.weights_bytes") / GIB, 651.9, 0.001);
    json_decref(round);
    double gpt3 = golden_value("memory.weights_bytes",
                               "{\"task\":\"memory\",\"model\":\"gpt3-175b\",\"gpu\":\"h200_sxm\","
                               "\"dtype\":\"fp32\"}");
    golden_near("GPT-3, GiB", gpt3 / GIB, 651.9 * 174.604259328 / 175, 0.001);
}

/* The performance guide of Hugging Face transformers, "T5-3b": AdamW 8 bytes a parameter, 24 GB for 3 * 10^9; 8-bit
 * AdamW 2, 6 GB; momentum 4. Its Adafactor of 4 bytes counts a first moment, which Adafactor without one has not. */
static void optimizer_states_of_t5_3b(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double gb, share;
    } optimizers[] = {{"adamw", 24, 0.001}, {"adamw_8bit", 6, 0.02}, {"sgd_momentum", 12, 0.001}};
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        json_t *a = golden_ask("{\"task\":\"memory\",\"model\":\"t5-3b\",\"gpu\":\"h200_sxm\",\"seq\":128,\"dtype\":"
                               "\"fp32\",\"optimizer\":\"%s\"}",
                               optimizers[i].name);
        golden_near("t5-3b's parameters", golden_figure(a, "parameters"), 3e9, 0.06);
        double each = golden_figure(a, "memory.optimizer_bytes") / golden_figure(a, "parameters");
        golden_near(optimizers[i].name, each * 3e9 / 1e9, optimizers[i].gb, optimizers[i].share);
        json_decref(a);
    }
    double adafactor = golden_value("memory.optimizer_bytes",
                                    "{\"task\":\"memory\",\"model\":\"t5-3b\",\"gpu\":\"h200_sxm\",\"seq\":128,"
                                    "\"dtype\":\"fp32\",\"optimizer\":\"adafactor\"}");
    golden_holds(adafactor > 0 && adafactor < 0.02e9, "Adafactor's rows and columns take %g bytes", adafactor);
}

/* Narayanan et al. 2021, equation 3: F = 96 B s l h^2 (1 + s/6h + V/16lh), layers recomputed, products alone, scores
 * whole, the head once forward and twice backward. */
static void flops_of_an_iteration(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double layers, hidden, vocab;
    } models[] = {{"gpt2", 12, 768, 50257},
                  {"gpt3-1.3b", 24, 2048, 50257},
                  {"gpt3-6.7b", 32, 4096, 50257},
                  {"gpt3-175b", 96, 12288, 50257},
                  {"megatron-1t", 128, 25600, 51200}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int seq = 512; seq <= 2048; seq *= 4) {
            double b = 4, s = seq, l = models[i].layers, h = models[i].hidden, v = models[i].vocab;
            double expected = 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
            double got =
                golden_value("classes.contraction.flops",
                             "{\"task\":\"train\",\"model\":\"%s\",\"gpu\":\"a100_sxm_80gb\",\"batch\":4,\"seq\":"
                             "%d,\"dtype\":\"fp16\",\"attention\":\"eager\",\"recompute\":\"full\"}",
                             models[i].model, seq);
            golden_near(models[i].model, got, expected, 0.01);
        }
}

/* -- Ivanov et al. ----------------------------------------------------------------------------- */

enum { CONTRACTION, NORMALISATION, ELEMENTWISE, CLASSES };

/* Their operators: a scaled softmax is scaling, softmax and dropout in one; bias gradients are reductions. */
static int class_of(const char *name, const char *op)
{
    if (!strncmp(name, "scaled softmax", 14)) return NORMALISATION;
    if (!strcmp(op, "layernorm") || !strcmp(op, "sum_cols")) return NORMALISATION;
    return !strcmp(op, "linear") || !strcmp(op, "bmm") ? CONTRACTION : ELEMENTWISE;
}

/* Ivanov et al., "Data Movement Is All You Need" (MLSys 2021), table 1: an encoder layer of BERT-large, forward and
 * backward, batch 8 of 512 tokens, fp16, PyTorch on a V100: FLOPs 99.80, 0.17, 0.03 %, time 61.0, 25.5, 13.5 %. They
 * count one operation for an element dropped; our count has the random numbers in it. */
static void shares_of_berts_classes(void **state)
{
    (void)state;
    static const double flops[CLASSES] = {99.80, 0.17, 0.03}, time[CLASSES] = {61.0, 25.5, 13.5};
    static const char *const names[CLASSES] = {"contraction", "normalisation", "elementwise"};
    double random = golden_value("flops", "{\"task\":\"kernel\",\"op\":\"elementwise\",\"name\":\"dropout\",\"numel\":"
                                          "1000000,\"dtype\":\"fp16\",\"gpu\":\"v100_sxm_16gb\"}") /
                    1e6;
    char *layer = golden_file("bert_layer.ft.json");
    json_t *a =
        golden_ask("{\"task\":\"train\",\"model\":%s,\"gpu\":\"v100_sxm_16gb\",\"batch\":8,\"seq\":512,\"dtype\":"
                   "\"fp16\",\"optimizer\":\"none\",\"detail\":\"kernels\"}",
                   layer);
    free(layer);
    double work[CLASSES] = {0}, ms[CLASSES] = {0};
    size_t i;
    json_t *kernel;
    json_array_foreach (json_object_get(a, "kernels"), i, kernel) {
        const char *op = json_string_value(json_object_get(kernel, "op"));
        if (strcmp(json_string_value(json_object_get(kernel, "block")), "layer") != 0) continue;
        int class = class_of(json_string_value(json_object_get(kernel, "name")), op);
        double each = golden_figure(kernel, "flops") * golden_figure(kernel, "count");
        work[class] += strcmp(op, "dropout") != 0 ? each : each / random;
        ms[class] += golden_figure(kernel, "total_ms");
    }
    json_decref(a);
    for (int c = 0; c < CLASSES; c++) {
        double of_work = 100 * work[c] / (work[0] + work[1] + work[2]), of_time = 100 * ms[c] / (ms[0] + ms[1] + ms[2]);
        golden_holds(fabs(of_work - flops[c]) <= 0.1, "%s: %.2f %% of FLOPs, the paper has %.2f", names[c], of_work,
                     flops[c]);
        golden_holds(fabs(of_time - time[c]) <= 8, "%s: %.1f %% of time, the paper has %.1f", names[c], of_time,
                     time[c]);
    }
}

/* The model as transformers runs it, with GELU and a mask: what the screen of `train` shows. */
static void shares_of_bert_large(void **state)
{
    (void)state;
    json_t *a = golden_ask(
        "{\"task\":\"train\",\"model\":\"bert-large\",\"gpu\":\"v100_sxm_16gb\",\"batch\":8,\"seq\":512,"
        "\"dtype\":\"fp16\",\"attention\":\"eager\",\"optimizer\":\"none\"}");
    double ms = golden_figure(a, "busy_ms"), products = golden_figure(a, "classes.contraction.flops");
    double all = products + golden_figure(a, "classes.normalisation.flops") +
                 golden_figure(a, "classes.elementwise.flops");
    golden_holds(products / all > 0.994, "products are %.2f %% of FLOPs", 100 * products / all);
    double share = 100 * golden_figure(a, "classes.contraction.ms") / ms;
    golden_holds(fabs(share - 61.0) <= 8, "products are %.1f %% of the time, the paper has 61.0", share);
    json_decref(a);
}

/* He, ibid.: a model of small kernels waits for Python; twice the batch then costs next to nothing. Recorded as a CUDA
 * graph it waits no more. */
static void decoding_one_sequence_waits_for_the_host(void **state)
{
    (void)state;
    static const char *const models[] = {"gpt2", "llama-3-8b", "qwen3-0.6b"};
    for (size_t i = 0; i < 3; i++) {
        json_t *one = golden_ask("{\"task\":\"decode\",\"model\":\"%s\",\"gpu\":\"h100_sxm\",\"seq\":512}", models[i]);
        json_t *two = golden_ask("{\"task\":\"decode\",\"model\":\"%s\",\"gpu\":\"h100_sxm\",\"seq\":512,\"batch\":2}",
                                 models[i]);
        json_t *recorded = golden_ask("{\"task\":\"decode\",\"model\":\"%s\",\"gpu\":\"h100_sxm\",\"seq\":512,"
                                      "\"execution\":\"cuda_graph\"}",
                                      models[i]);
        assert_string_equal("overhead", json_string_value(json_object_get(json_object_get(one, "regime"), "bound")));
        golden_near(models[i], golden_figure(two, "step_ms"), golden_figure(one, "step_ms"), 0.1);
        golden_holds(golden_figure(one, "idle_ms") > 0.5 * golden_figure(one, "step_ms"), "%s idles %g of %g ms",
                     models[i], golden_figure(one, "idle_ms"), golden_figure(one, "step_ms"));
        golden_holds(golden_figure(recorded, "step_ms") < 0.5 * golden_figure(one, "step_ms"), "%s recorded: %g ms",
                     models[i], golden_figure(recorded, "step_ms"));
        json_decref(one);
        json_decref(two);
        json_decref(recorded);
    }
}

/* torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, tables 1 and 3: Llama 3.1 8B under FSDP without a compiler,
 * selective activation checkpointing (its policy per operator), 2 sequences of 8192 tokens per GPU, H100 of 96 GB and
 * 2.4 TB/s at 500 W: 5762 tokens/s per GPU and 82.4 GiB reserved on 8 GPUs, 5605 and 67.0 on 128. Its compiled rows
 * leave the loss uncompiled, which a request cannot say. */
static void llama_under_fsdp_and_selective_checkpoints(void **state)
{
    (void)state;
    static const struct {
        int gpus;
        double tokens_per_s, reserved_gib;
    } rows[] = {{8, 5762, 82.4}, {128, 5605, 67.0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *a = golden_ask(
            "{\"task\":\"train\",\"model\":\"llama-3.1-8b\",\"gpu\":{\"base\":\"h100_sxm\",\"name\":\"h100_96gb\","
            "\"memory_gib\":96,\"memory_gbps\":2400,\"tdp_w\":500},\"batch\":2,\"seq\":8192,\"recompute\":"
            "\"selective\","
            "\"master_weights\":true,\"parallel\":{\"dp\":%d,\"zero\":3},"
            "\"cluster\":{\"gpus_per_node\":8,\"interconnect\":\"400 Gb/s RDMA per GPU\"}}",
            rows[i].gpus);
        golden_near("tokens/s per GPU", golden_figure(a, "tokens_per_s_per_gpu"), rows[i].tokens_per_s, 0.1);
        golden_near("GiB reserved", golden_figure(a, "memory.reserved_bytes") / GIB, rows[i].reserved_gib, 0.06);
        json_decref(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_billion_parameters_with_adam_take_14_9_gib),
        cmocka_unit_test(weights_of_175_billion_in_fp32_take_651_9_gib),
        cmocka_unit_test(optimizer_states_of_t5_3b),
        cmocka_unit_test(flops_of_an_iteration),
        cmocka_unit_test(shares_of_berts_classes),
        cmocka_unit_test(shares_of_bert_large),
        cmocka_unit_test(decoding_one_sequence_waits_for_the_host),
        cmocka_unit_test(llama_under_fsdp_and_selective_checkpoints),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
