/* What holds for every model and every workload: requests by the hundred, the same ones in every run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t random_state = 20260401;

static uint64_t next(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int below(int n) { return (int)(next() % (uint64_t)n); }
static bool coin(void) { return next() & 1; }

#define PICK(list) (list)[below((int)(sizeof(list) / sizeof *(list)))]

/* -- requests ---------------------------------------------------------------------------------- */

typedef struct drawn {
    char model[512];   /* JSON of the config */
    char options[256]; /* what the properties leave alone */
    bool generates;
    int batch, seq;
    const char *gpu, *dtype;
} drawn;

static void draw_text_model(drawn *d)
{
    static const char *const gated[] = {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "olmo2", "phi3"};
    static const char *const plain[] = {"gpt2", "gpt_neox", "opt", "bloom", "bert", "falcon"};
    int head = 32 << below(3), groups = 1 << below(3), kv = 1 + below(4), heads = kv * groups, layers = 1 + below(12);
    int hidden = head * heads, vocab = coin() ? 32000 : 50257;
    d->generates = true;
    if (coin()) {
        const char *type = PICK(gated);
        snprintf(d->model, sizeof d->model,
                 "{\"model_type\":\"%s\",\"hidden_size\":%d,\"num_attention_heads\":%d,\"num_key_value_heads\":%d,"
                 "\"head_dim\":%d,\"num_hidden_layers\":%d,\"intermediate_size\":%d,\"vocab_size\":%d,"
                 "\"max_position_embeddings\":8192,\"pad_token_id\":null}",
                 type, hidden, heads, !strcmp(type, "phi3") ? heads : kv, head, layers, 64 * (1 + below(128)), vocab);
        return;
    }
    const char *type = PICK(plain);
    if (!strcmp(type, "gpt2"))
        snprintf(
            d->model, sizeof d->model,
            "{\"model_type\":\"gpt2\",\"n_embd\":%d,\"n_head\":%d,\"n_layer\":%d,\"vocab_size\":%d,\"n_positions\":"
            "8192}",
            hidden, heads, layers, vocab);
    else
        snprintf(d->model, sizeof d->model,
                 "{\"model_type\":\"%s\",\"hidden_size\":%d,\"num_attention_heads\":%d,\"num_hidden_layers\":%d,"
                 "\"n_head\":%d,\"n_layer\":%d,\"vocab_size\":%d,\"max_position_embeddings\":8192%s}",
                 type, hidden, heads, layers, heads, layers, vocab,
                 !strcmp(type, "opt")      ? ",\"ffn_dim\":2048,\"word_embed_proj_dim\":null"
                 : !strcmp(type, "falcon") ? ",\"multi_query\":true"
                 : !strcmp(type, "bloom")  ? ""
                                           : ",\"intermediate_size\":3072");
    if (!strcmp(type, "opt")) /* its projection follows the hidden size */
        snprintf(d->model, sizeof d->model,
                 "{\"model_type\":\"opt\",\"hidden_size\":%d,\"word_embed_proj_dim\":%d,\"num_attention_heads\":%d,"
                 "\"num_hidden_layers\":%d,\"ffn_dim\":%d,\"vocab_size\":%d,\"max_position_embeddings\":8192}",
                 hidden, hidden, heads, layers, 4 * hidden, vocab);
    d->generates = strcmp(type, "bert") != 0;
}

static drawn draw(void)
{
    static const char *const gpus[] = {"h100_sxm", "h200_sxm", "a100_sxm_80gb", "v100_sxm_32gb", "l40s",
                                       "t4",       "mi300x",   "rtx_4090",      "p100_pcie"};
    static const char *const named[] = {"t5-small",      "whisper-tiny", "vit-b-16",         "resnet-50",
                                        "convnext-tiny", "mixtral-8x7b", "deepseek-v2-lite", "gpt-oss-20b",
                                        "dit-b-2",       "mamba2-130m",  "clip-vit-l-14"};
    drawn d = {.gpu = PICK(gpus)};
    static const char *const all[] = {"fp16", "fp32", "amp_fp16"}, *const newer[] = {"bf16", "fp16", "amp_bf16",
                                                                                     "fp32"};
    bool old = !strcmp(d.gpu, "v100_sxm_32gb") || !strcmp(d.gpu, "t4") || !strcmp(d.gpu, "p100_pcie");
    d.dtype = old ? PICK(all) : PICK(newer);
    if (below(4) == 0) {
        snprintf(d.model, sizeof d.model, "\"%s\"", PICK(named));
        d.seq = 32 << below(2); /* whisper's and clip's tables of positions are short */
    } else {
        draw_text_model(&d);
    }
    d.batch = 1 << below(5);
    if (!d.seq) d.seq = 32 << below(6);
    static const char *const attentions[] = {"flash", "eager", "sdpa"};
    static const char *const optimizers[] = {"adamw", "adamw_foreach", "sgd", "adamw_8bit", "adafactor", "none"};
    /* One after the other: compilers differ in the order in which they evaluate arguments. */
    const char *attention = PICK(attentions), *optimizer = PICK(optimizers);
    bool clip = coin(), master = below(4) == 0;
    snprintf(d.options, sizeof d.options,
             "\"attention\":\"%s\",\"optimizer\":\"%s\",\"clip_grad\":%s,\"master_weights\":%s", attention, optimizer,
             clip ? "true" : "false", master ? "true" : "false");
    return d;
}

/* A request for what was drawn, with other keys in front. */
static json_t *ask(const drawn *d, const char *task, int batch, int seq, const char *more)
{
    return golden_ask("{\"task\":\"%s\",\"model\":%s,\"gpu\":\"%s\",\"dtype\":\"%s\",\"batch\":%d,\"seq\":%d,%s%s}",
                      task, d->model, d->gpu, d->dtype, batch, seq, d->options, more);
}

/* -- what holds -------------------------------------------------------------------------------- */

static void sound(const char *key, const json_t *value, const drawn *d)
{
    size_t i;
    const char *name;
    json_t *member;
    if (json_is_number(value)) {
        double x = json_number_value(value);
        golden_holds(isfinite(x) && x >= 0, "%s is %g for %s", key, x, d->model);
    }
    json_array_foreach (value, i, member) sound(key, member, d);
    json_object_foreach ((json_t *)(uintptr_t)value, name, member) sound(name, member, d);
}

/* No figure is negative or not a number; kernels and phases add up to the busy time, and with waiting and gaps to the
 * step; the peak holds the weights. */
static void every_answer_is_sound(void **state)
{
    (void)state;
    static const char *const tasks[] = {"train", "forward", "prefill", "decode"};
    static const char *const ways[] = {"eager", "fused", "compile", "cuda_graph", "ideal"};
    for (int i = 0; i < 400; i++) {
        drawn d = draw();
        char more[96];
        snprintf(more, sizeof more, ",\"execution\":\"%s\",\"detail\":\"kernels\"", PICK(ways));
        json_t *a = ask(&d, tasks[d.generates ? below(4) : below(2)], d.batch, d.seq, more), *kernel;
        sound("", a, &d);
        double step = golden_figure(a, "step_ms"), busy = golden_figure(a, "busy_ms"), least = 0;
        golden_holds(golden_figure(a, "low_ms") <= step && step <= golden_figure(a, "high_ms"), "interval of %s",
                     d.model);
        golden_holds(step >= busy * 0.999, "%s takes %g ms and is busy %g", d.model, step, busy);
        size_t k;
        json_array_foreach (json_object_get(a, "kernels"), k, kernel) {
            double low = golden_figure(kernel, "low_ms"), ms = golden_figure(kernel, "ms");
            golden_holds(low <= ms * 1.0001 && ms <= golden_figure(kernel, "high_ms") * 1.0001, "%s: %g in an interval",
                         json_string_value(json_object_get(kernel, "name")), ms);
            least += golden_figure(kernel, "total_ms");
        }
        golden_near("kernels add up to the busy time", least, busy, 1e-3);
        double phases = golden_figure(a, "forward_ms") + golden_figure(a, "backward_ms") +
                        golden_figure(a, "recompute_ms") + golden_figure(a, "optimizer_ms");
        double rest = golden_figure(a, "idle_ms") + golden_figure(a, "between_ms") +
                      golden_figure(a, "comm_exposed_ms") + golden_figure(a, "bubble_ms");
        golden_near("phases add up to the busy time", phases, busy, 1e-4);
        golden_near("phases, waiting and gaps add up to the step", phases + rest, step, 1e-4);
        double peak = golden_figure(a, "memory.peak_bytes");
        golden_holds(peak >= golden_figure(a, "memory.weights_bytes") &&
                         golden_figure(a, "memory.reserved_bytes") >= peak,
                     "%s: peak %g", d.model, peak);
        json_decref(a);
    }
}

/* As a spec sheet would have it: arithmetic at the peak; every byte once at the full bandwidth, but for what the cache
 * can have kept of the kernel before and can keep for the one after. */
static void nothing_is_faster_than_its_roofline(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++) {
        drawn d = draw();
        json_t *a = ask(&d, coin() ? "train" : "forward", d.batch, d.seq, ",\"detail\":\"kernels\""), *kernel;
        ft_device device;
        ft_dtype dtype = FT_FP32;
        assert_int_equal(FT_OK, ft_device_find(golden_ft, d.gpu, &device, NULL));
        assert_true(ft_dtype_parse(strncmp(d.dtype, "amp_", 4) != 0 ? d.dtype : d.dtype + 4, &dtype));
        double peak = device.peak_tflops[dtype], busy = golden_figure(a, "busy_ms"), moved = 0;
        golden_holds(golden_figure(a, "hfu") <= 1.0, "%s on %s: HFU %g", d.model, d.gpu, golden_figure(a, "hfu"));
        golden_holds(golden_figure(a, "mfu") <= golden_figure(a, "hfu") * 1.0001, "%s: MFU above HFU", d.model);
        double least = peak > 0 ? golden_figure(a, "executed_flops") / peak * 1e-9 : 0;
        golden_holds(busy >= least, "%s on %s: busy %g ms, arithmetic alone %g", d.model, d.gpu, busy, least);
        size_t k;
        json_array_foreach (json_object_get(a, "kernels"), k, kernel) {
            double beyond = golden_figure(kernel, "bytes") - 2 * device.l2_mib * 1048576;
            if (beyond > 0) moved += golden_figure(kernel, "count") * beyond / (device.memory_gbps * 1e6);
        }
        golden_holds(busy >= moved, "%s on %s: busy %g ms, memory alone %g", d.model, d.gpu, busy, moved);
        json_decref(a);
    }
}

/* Another batch is other kernels: a library may pick a better one for the larger shape. Measured, that happens, but
 * seldom, and for small products. */
static void more_batch_takes_no_less(void **state)
{
    (void)state;
    static const char *const tasks[] = {"train", "forward", "prefill", "decode"};
    int faster = 0;
    for (int i = 0; i < 200; i++) {
        drawn d = draw();
        const char *task = tasks[d.generates ? below(4) : below(2)];
        json_t *one = ask(&d, task, d.batch, d.seq, ""), *two = ask(&d, task, 2 * d.batch, d.seq, "");
        double growth = golden_figure(two, "busy_ms") / golden_figure(one, "busy_ms");
        golden_holds(growth > 0.5, "%s, %s on %s, batch %d, seq %d: twice the batch takes %g of the time", d.model,
                     task, d.gpu, d.batch, d.seq, growth);
        if (growth < 0.97) faster++;
        golden_holds(golden_figure(two, "memory.peak_bytes") >= 0.999 * golden_figure(one, "memory.peak_bytes"),
                     "%s, %s on %s, batch %d, seq %d: peak %g, twice the batch %g", d.model, task, d.gpu, d.batch,
                     d.seq, golden_figure(one, "memory.peak_bytes"), golden_figure(two, "memory.peak_bytes"));
        json_decref(one);
        json_decref(two);
    }
    golden_holds(faster <= 4, "%d of 200 models are faster with twice the batch", faster);
}

/* Fusion saves traffic and launches. What it may cost: copies that pad products, sums over rows that are a kernel of
 * their own; and with sdpa, which is traced, a mask that it was spared and products in place of one kernel. */
static void compiling_makes_no_step_slower(void **state)
{
    (void)state;
    int slower = 0, count = 0;
    for (int i = 0; i < 220; i++) {
        drawn d = draw();
        const char *task = coin() ? "train" : "forward";
        if (strstr(d.options, "sdpa")) continue;
        json_t *eager = ask(&d, task, d.batch, d.seq, ",\"execution\":\"eager\""),
               *compiled = ask(&d, task, d.batch, d.seq, ",\"execution\":\"compile\"");
        double growth = golden_figure(compiled, "busy_ms") / golden_figure(eager, "busy_ms");
        golden_holds(growth <= 1.15, "%s, %s %s on %s, batch %d, seq %d, %s: compiled takes %g of eager's time",
                     d.model, d.dtype, task, d.gpu, d.batch, d.seq, d.options, growth);
        count++;
        if (growth > 1.02) slower++;
        json_decref(eager);
        json_decref(compiled);
    }
    golden_holds(count > 100 && slower <= 4, "%d of %d models are slower compiled", slower, count);
}

static void recomputing_takes_no_more_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        drawn d = draw();
        json_t *none = ask(&d, "train", d.batch, d.seq, ""),
               *full = ask(&d, "train", d.batch, d.seq, ",\"recompute\":\"full\"");
        golden_holds(golden_figure(full, "memory.peak_bytes") <= 1.001 * golden_figure(none, "memory.peak_bytes"),
                     "%s, %s, batch %d, seq %d, %s: full %g, none %g", d.model, d.dtype, d.batch, d.seq, d.options,
                     golden_figure(full, "memory.peak_bytes"), golden_figure(none, "memory.peak_bytes"));
        golden_holds(golden_figure(full, "busy_ms") >= 0.999 * golden_figure(none, "busy_ms"), "%s: time %g, %g",
                     d.model, golden_figure(full, "busy_ms"), golden_figure(none, "busy_ms"));
        json_decref(none);
        json_decref(full);
    }
}

/* The same request gives the same bytes: alone, after others, and through a context of its own. */
static void the_same_request_gives_the_same_bytes(void **state)
{
    (void)state;
    ft_context *other = NULL;
    assert_int_equal(FT_OK, ft_open(&other, NULL, NULL));
    for (int i = 0; i < 60; i++) {
        drawn d = draw();
        char request[1200];
        snprintf(
            request, sizeof request,
            "{\"task\":\"train\",\"model\":%s,\"gpu\":\"%s\",\"dtype\":\"%s\",\"batch\":%d,\"seq\":%d,%s,\"detail\":"
            "\"kernels\"}",
            d.model, d.gpu, d.dtype, d.batch, d.seq, d.options);
        char *one = ft_answer(golden_ft, request), *two = ft_answer(golden_ft, request),
             *three = ft_answer(other, request);
        assert_non_null(one);
        assert_string_equal(one, two);
        assert_string_equal(one, three);
        free(one);
        free(two);
        free(three);
    }
    ft_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_is_sound),
        cmocka_unit_test(nothing_is_faster_than_its_roofline),
        cmocka_unit_test(more_batch_takes_no_less),
        cmocka_unit_test(compiling_makes_no_step_slower),
        cmocka_unit_test(recomputing_takes_no_more_memory),
        cmocka_unit_test(the_same_request_gives_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
