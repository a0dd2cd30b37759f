/* Keys that change nothing where they are given are answered with a warning, and no others are.
 *
 * Every key of a whole model's request is given to requests of many kinds, with values that are not its default. Where
 * none of them changes the answer, echoes of the key apart, every one must be warned of; where a value changes it, that
 * value must not. Over 400 lines: a row for every value that is tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/answer.h"
#include "base/json.h"
#include "request/keys.h"

#define LLAMA "\"model\":\"llama-3.2-1b\",\"gpu\":\"h100_sxm\",\"seq\":1024"
#define OLMOE "\"model\":\"olmoe-1b-7b\",\"gpu\":\"h100_sxm\",\"seq\":1024"
#define LARGE "\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"seq\":4096"

#define SERVE                                                                                                    \
    "\"task\":\"serve\",\"model\":\"llama-3.2-1b\",\"gpu\":\"h100_sxm\",\"isl\":64,\"osl\":8,\"concurrency\":1," \
    "\"requests\":4"

static const char *const bases[] = {
    "{" LLAMA "}",
    "{" LLAMA ",\"execution\":\"fused\"}",
    "{" LLAMA ",\"execution\":\"cuda_graph\"}",
    "{" LLAMA ",\"execution\":\"ideal\"}",
    "{" LLAMA ",\"optimizer\":\"none\"}",
    "{\"model\":\"resnet-50\",\"gpu\":\"h100_sxm\",\"batch\":8}",
    "{\"model\":\"mamba2-130m\",\"gpu\":\"h100_sxm\",\"seq\":1024}",
    "{" OLMOE ",\"execution\":\"fused\"}",
    "{" LLAMA ",\"parallel\":{\"dp\":2,\"zero\":1}}",
    "{" LLAMA ",\"global_batch\":8,\"parallel\":{\"dp\":4,\"zero\":3}}",
    "{" LARGE ",\"execution\":\"fused\",\"parallel\":{\"tp\":8,\"sp\":true}}",
    "{" LLAMA ",\"global_batch\":4,\"parallel\":{\"pp\":2}}",
    "{" LLAMA ",\"global_batch\":4,\"parallel\":{\"pp\":2,\"vpp\":2}}",
    "{" LLAMA ",\"batch\":2,\"global_batch\":12,\"parallel\":{\"pp\":3}}",
    "{" LLAMA ",\"parallel\":{\"cp\":2}}",
    "{" OLMOE ",\"execution\":\"fused\",\"global_batch\":4,\"parallel\":{\"dp\":2,\"ep\":2,\"expert_skew\":1.5}}",
    "{" LLAMA ",\"global_batch\":8,\"parallel\":{\"tp\":8,\"dp\":2,\"zero\":1}}",
    "{\"task\":\"forward\"," LLAMA "}",
    "{\"task\":\"prefill\"," LLAMA "}",
    "{\"task\":\"decode\"," LLAMA ",\"execution\":\"cuda_graph\"}",
    "{\"task\":\"decode\"," LLAMA ",\"parallel\":{\"tp\":2}}",
    "{\"task\":\"decode\"," LLAMA ",\"parallel\":{\"dp\":2}}",
    "{\"task\":\"memory\"," LLAMA "}",
    "{" LLAMA ",\"lora_rank\":8}",
    "{\"model\":\"qwen3-vl-2b\",\"gpu\":\"h100_sxm\",\"seq\":1024}",
    "{\"model\":\"qwen3-vl-2b\",\"gpu\":\"h100_sxm\",\"seq\":1024,\"images\":2}",
    "{\"model\":\"sd-1.5-unet\",\"gpu\":\"h100_sxm\"}",
    "{\"model\":\"hubert-base\",\"gpu\":\"h100_sxm\"}",
    "{\"model\":\"switch-base-8\",\"gpu\":\"h100_sxm\",\"seq\":1024,\"execution\":\"fused\"}",
    "{\"task\":\"forward\",\"model\":\"switch-base-8\",\"gpu\":\"h100_sxm\",\"seq\":1024}",
    "{\"model\":{\"model_type\":\"evolla\",\"num_hidden_layers\":4},\"gpu\":\"h100_sxm\",\"source_tokens\":512}",
    "{\"model\":{\"model_type\":\"reformer\"},\"gpu\":\"h100_sxm\"}",
    "{\"model\":\"rwkv-4-169m\",\"gpu\":\"h100_sxm\",\"seq\":1024}",
    "{\"model\":\"deberta-v3-base\",\"gpu\":\"h100_sxm\",\"seq\":256}",
    "{\"model\":\"xlnet-base\",\"gpu\":\"h100_sxm\",\"seq\":256}",
    "{\"model\":\"sam-vit-base\",\"gpu\":\"h100_sxm\"}",
    "{\"model\":\"ltx-video-2b\",\"gpu\":\"h100_sxm\"}", /* whose graph says which attention */
    "{\"model\":\"wan2.1-1.3b\",\"gpu\":\"h100_sxm\"}",
};

/* Several values of a key stand one after the other. */
static const struct {
    ft_key_id key;
    const char *value;
} trials[] = {
    {FT_KEY_ID_QUANTILE, "0.8"},
    {FT_KEY_ID_TRAIN_TOKENS, "1e9"},
    {FT_KEY_ID_GPUS, "8"},
    {FT_KEY_ID_GPUS, "24"},
    {FT_KEY_ID_GLOBAL_BATCH, "16"},
    {FT_KEY_ID_SEQ, "512"},
    {FT_KEY_ID_MODEL_DTYPE, "\"fp32\""},
    {FT_KEY_ID_WEIGHTS_DTYPE, "\"fp32\""},
    {FT_KEY_ID_WEIGHTS_DTYPE, "\"int4\""},
    {FT_KEY_ID_WEIGHTS_BY, "\"awq\""},
    {FT_KEY_ID_GPU_LAYERS, "8"},
    {FT_KEY_ID_CPU_EXPERTS, "8"},
    {FT_KEY_ID_HOST_MEMORY, "100"},
    {FT_KEY_ID_MODEL_KV_DTYPE, "\"fp8\""},
    {FT_KEY_ID_CACHE, "\"dynamic\""},
    {FT_KEY_ID_ATTENTION, "\"eager\""},
    {FT_KEY_ID_ATTENTION, "\"xformers\""},
    {FT_KEY_ID_EXECUTION, "\"compile\""},
    {FT_KEY_ID_EXECUTION, "\"fused\""},
    {FT_KEY_ID_EXECUTION, "\"torchscript\""},
    {FT_KEY_ID_PYTORCH, "\"1.11\""},
    {FT_KEY_ID_PYTORCH, "\"2.0\""},
    {FT_KEY_ID_PYTORCH, "\"2.4\""},
    {FT_KEY_ID_STACK, "\"deepspeed\""},
    {FT_KEY_ID_STACK, "\"megatron\""},
    {FT_KEY_ID_STACK, "\"fsdp2\""},
    {FT_KEY_ID_COMPILE_SCOPE, "\"layers\""},
    {FT_KEY_ID_FUSIONS, "\"plain\""},
    {FT_KEY_ID_OPTIMIZER, "\"sgd\""},
    {FT_KEY_ID_OPTIMIZER, "\"muon\""},
    {FT_KEY_ID_MASTER_WEIGHTS, "true"},
    {FT_KEY_ID_RECOMPUTE, "\"full\""},
    {FT_KEY_ID_RECOMPUTE_MODULES, "[\"core_attn\"]"},
    {FT_KEY_ID_LORA_RANK, "8"},
    {FT_KEY_ID_CLIP_GRAD, "true"},
    {FT_KEY_ID_LOSS, "\"narrow\""},
    {FT_KEY_ID_LOSS, "\"fused_linear\""},
    {FT_KEY_ID_LOSS_POSITIONS, "20"},
    {FT_KEY_ID_PACKING, "128"},
    {FT_KEY_ID_SAMPLE_LENGTHS, "[[9, 0.5], [30, 0.5]]"},
    {FT_KEY_ID_BATCHING, "\"bucket\""},
    {FT_KEY_ID_LONGER, "\"drop\""},
    {FT_KEY_ID_PAD_MULTIPLE, "8"},
    {FT_KEY_ID_POWER_CAP, "300"},
    {FT_KEY_ID_EMA, "true"},
    {FT_KEY_ID_MOMENTS, "\"fp8\""},
    {FT_KEY_ID_IN_BACKWARD, "true"},
    {FT_KEY_ID_EXPANDABLE, "true"},
    {FT_KEY_ID_RECOMPUTE_LAYERS, "4"},
    {FT_KEY_ID_GRAPHED, "[\"attn\"]"},
    {FT_KEY_ID_REMAT, "[\"save_qkv_proj\"]"},
    {FT_KEY_ID_OFFLOAD, "[\"activations\"]"},
    {FT_KEY_ID_OFFLOAD, "[\"optimizer\"]"},
    {FT_KEY_ID_OFFLOAD_LAYERS, "3"},
    {FT_KEY_ID_HOST_GBPS, "20"},
    {FT_KEY_ID_NVME_GBPS, "2"},
    {FT_KEY_ID_TRAINER, "\"dpo\""},
    {FT_KEY_ID_REFERENCE, "true"},
    {FT_KEY_ID_ROLLOUT, "128"},
    {FT_KEY_ID_ROLLOUT_LONGEST, "700"},
    {FT_KEY_ID_ROLLOUT_SAMPLES, "4"},
    {FT_KEY_ID_ROLLOUT_SEQUENCES, "2"},
    {FT_KEY_ID_ROLLOUT_MEMORY, "0.02"},
    {FT_KEY_ID_ROLLOUT_ENGINE, "\"inline\""},
    {FT_KEY_ID_ROLLOUT_GRAPHS, "false"},
    {FT_KEY_ID_ROLLOUT_TP, "2"},
    {FT_KEY_ID_ROLLOUT_GPUS, "2"},
    {FT_KEY_ID_ROLLOUT_ASYNC, "true"},
    {FT_KEY_ID_ROLLOUT_AGE, "3"},
    {FT_KEY_ID_ROLLOUT_UPDATES, "2"},
    {FT_KEY_ID_ROLLOUT_PACK, "2048"},
    {FT_KEY_ID_ROLLOUT_PACK_LOGPROBS, "4096"},
    {FT_KEY_ID_ROLLOUT_OFFLOAD, "[\"optimizer\"]"},
    {FT_KEY_ID_ROLLOUT_REFIT, "\"buckets\""},
    {FT_KEY_ID_OLD_LOGPROBS, "false"},
    {FT_KEY_ID_HOST_US, "20"},
    {FT_KEY_ID_IMAGE_LAYOUT, "\"nchw\""},
    {FT_KEY_ID_IMAGES, "1"},
    {FT_KEY_ID_IMAGE_SIZE, "\"512x768\""},
    {FT_KEY_ID_FRAMES, "33"},
    {FT_KEY_ID_SOURCE, "300"},
    {FT_KEY_ID_MTP, "1"},
    {FT_KEY_ID_READ_AS, "\"llama\""},
    {FT_KEY_ID_DETAIL, "\"layers\""},
    {FT_KEY_ID_TECHNIQUES, "true"},
    {FT_KEY_ID_COURSE, "true"},
    {FT_KEY_ID_PICTURES, "[\"memory\"]"},
    {FT_KEY_ID_PICTURES, "[\"timeline\"]"},
    {FT_KEY_ID_PICTURES, "[\"pipeline\"]"},
    {FT_KEY_ID_ADVICE, "true"},
    {FT_KEY_ID_TP, "2"},
    {FT_KEY_ID_PP, "2"},
    {FT_KEY_ID_VPP, "2"},
    {FT_KEY_ID_DP, "2"},
    {FT_KEY_ID_CP, "2"},
    {FT_KEY_ID_EP, "2"},
    {FT_KEY_ID_ETP, "1"},
    {FT_KEY_ID_ZERO, "1"},
    {FT_KEY_ID_ZERO, "3"},
    {FT_KEY_ID_SP, "true"},
    {FT_KEY_ID_SCHEDULE, "\"gpipe\""},
    {FT_KEY_ID_SCHEDULE, "\"zero_bubble\""},
    {FT_KEY_ID_OVERLAP, "false"},
    {FT_KEY_ID_TP_OVERLAP, "true"},
    {FT_KEY_ID_DEAL, "\"rest\""},
    {FT_KEY_ID_CP_KIND, "\"ulysses\""},
    {FT_KEY_ID_ULYSSES, "true"},
    {FT_KEY_ID_GATHER, "\"parameter\""},
    {FT_KEY_ID_SHARD, "2"},
    {FT_KEY_ID_SHARD, "1"},
    {FT_KEY_ID_RESHARD, "false"},
    {FT_KEY_ID_GATHER_OVERLAP, "true"},
    {FT_KEY_ID_OVERLAP_P2P, "false"},
    {FT_KEY_ID_EXPERT_DISPATCH, "\"once\""},
    {FT_KEY_ID_EXPERT_SKEW, "1.25"},
    {FT_KEY_ID_EXPERT_CAPACITY, "1.2"},
    {FT_KEY_ID_BUCKET, "100"},
    {FT_KEY_ID_REDUCE_DTYPE, "\"fp32\""},
    {FT_KEY_ID_REDUCE_DTYPE, "\"fp8\""},
    {FT_KEY_ID_GATHER_DTYPE, "\"fp8\""},
    {FT_KEY_ID_NODES, "4"},
    {FT_KEY_ID_GPUS_PER_NODE, "4"},
    {FT_KEY_ID_INTERCONNECT, "\"ib_hdr200\""},
    {FT_KEY_ID_TOPOLOGY, "\"fat_tree\""},
    {FT_KEY_ID_OVERSUBSCRIPTION, "2"},
    {FT_KEY_ID_LEAF_NODES, "1"},
    {FT_KEY_ID_NCCL, "\"2.20\""},
    {FT_KEY_ID_DISK_RATE, "0.001"},
    {FT_KEY_ID_DISK_GBPS, "0.001"},
    {FT_KEY_ID_SAMPLE_BYTES, "1e9"},
    {FT_KEY_ID_WORKERS, "4"},
    {FT_KEY_ID_WORKER_MS, "1e4"},
    {FT_KEY_ID_PINNED, "true"},
    {FT_KEY_ID_ADAPTER_TARGETS, "[\"q_proj\"]"},
    {FT_KEY_ID_ADAPTER_TARGETS, "[\"c_fc\"]"},
    {FT_KEY_ID_ADAPTER_DTYPE, "\"fp32\""},
    {FT_KEY_ID_ADAPTER_DTYPE, "\"bf16\""},
    {FT_KEY_ID_ADAPTER_DROPOUT, "0.1"},
    {FT_KEY_ID_ADAPTER_EMBEDDINGS, "true"},
    {FT_KEY_ID_ADAPTER_DORA, "true"},
    {FT_KEY_ID_EXPERT_OVERLAP, "true"},
};
enum { TRIALS = sizeof trials / sizeof *trials, BASES = sizeof bases / sizeof *bases };

/* The request itself; objects whose keys are tried; what needs a file or a simulator, or is refused wherever it would
 * do nothing. */
static bool not_tried(ft_key_id key)
{
    static const ft_key_id some[] = {
        FT_KEY_ID_ID,      FT_KEY_ID_TASK,   FT_KEY_ID_GPU,          FT_KEY_ID_MODEL,        FT_KEY_ID_PARALLEL,
        FT_KEY_ID_CLUSTER, FT_KEY_ID_LOADER, FT_KEY_ID_MICRO_BATCH,  FT_KEY_ID_HOST,         FT_KEY_ID_TIERS,
        FT_KEY_ID_NETWORK, FT_KEY_ID_LORA,   FT_KEY_ID_ADAPTER_RANK, FT_KEY_ID_ADAPTER_ALPHA};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (some[i] == key) return true;
    return false;
}

static json_t *asked(const ft_context *ft, ft_scratch *scratch, const json_t *request)
{
    char *text = json_dumps(request, JSON_COMPACT);
    ft_text out = {0};
    ft__answer(ft, scratch, text, strlen(text), 0, &out);
    json_t *answer = json_loads(out.at, 0, NULL);
    assert_non_null(answer);
    ft__text_free(&out);
    free(text);
    return answer;
}

static bool warned(const json_t *answer, const char *key)
{
    char start[64];
    size_t i;
    json_t *line;
    snprintf(start, sizeof start, "\"%s\" has no effect", key);
    json_array_foreach (json_object_get(answer, "warnings"), i, line)
        if (!strncmp(json_string_value(line), start, strlen(start))) return true;
    return false;
}

/* Warnings, and what repeats the request. */
static void strip(json_t *answer)
{
    json_object_del(answer, "warnings");
    json_object_del(answer, "parallel");
    json_object_del(answer, "cluster");
    json_object_del(answer, "stack");
}

static json_t *with(const json_t *base, ft_key_id key, const char *value)
{
    const char *section = ft__section_name(ft__keys[key].section);
    json_t *request = json_deep_copy(base), *home = request;
    if (*section) {
        if (!json_object_get(request, section)) json_object_set_new(request, section, json_object());
        home = json_object_get(request, section);
    }
    json_object_set_new(home, ft__keys[key].key, json_loads(value, JSON_DECODE_ANY, NULL));
    return request;
}

static bool has(const json_t *base, ft_key_id key)
{
    const char *section = ft__section_name(ft__keys[key].section);
    const json_t *home = *section ? json_object_get(base, section) : base;
    return home && json_object_get(home, ft__keys[key].key);
}

static int try_key(const ft_context *ft, ft_scratch *scratch, const char *text, const json_t *base, const json_t *plain,
                   int first)
{
    int faults = 0, silent = 0, changed = 0, end = first;
    const char *key = ft__keys[trials[first].key].key;
    for (; end < TRIALS && trials[end].key == trials[first].key; end++) {
        json_t *request = with(base, trials[end].key, trials[end].value), *answer = asked(ft, scratch, request);
        bool answered = json_is_true(json_object_get(answer, "ok")), says = answered && warned(answer, key);
        strip(answer);
        bool same = json_equal(answer, plain);
        if (answered && !same && says) {
            print_error("%s with \"%s\": %s is warned of and changes the answer\n", text, key, trials[end].value);
            faults++;
        }
        changed += answered && !same;
        silent += answered && same && !says;
        json_decref(answer);
        json_decref(request);
    }
    if (!changed && silent) {
        print_error("%s: \"%s\" changes nothing, and nothing is said\n", text, key);
        faults++;
    }
    return faults;
}

static void what_changes_nothing_is_said(void **state)
{
    (void)state;
    ft_context *ft;
    ft_error err = {0};
    ft_scratch *scratch = calloc(1, sizeof *scratch);
    int faults = 0;
    assert_non_null(scratch);
    if (ft_open(&ft, NULL, &err) != FT_OK) fail_msg("%s", err.message);
    for (int b = 0; b < BASES; b++) {
        json_t *base = json_loads(bases[b], 0, NULL), *plain = asked(ft, scratch, base);
        if (!json_is_true(json_object_get(plain, "ok"))) fail_msg("%s is not answered", bases[b]);
        if (json_object_get(plain, "warnings")) fail_msg("%s is warned of", bases[b]);
        strip(plain);
        for (int t = 0; t < TRIALS; t++) {
            bool again = t > 0 && trials[t - 1].key == trials[t].key;
            bool slow = (trials[t].key == FT_KEY_ID_ADVICE || trials[t].key == FT_KEY_ID_TECHNIQUES) && b % 11;
            if (!again && !slow && !has(base, trials[t].key)) faults += try_key(ft, scratch, bases[b], base, plain, t);
        }
        json_decref(plain);
        json_decref(base);
    }
    ft__scratch_free(scratch);
    free(scratch);
    ft_close(ft);
    assert_int_equal(faults, 0);
}

static void every_key_is_tried(void **state)
{
    (void)state;
    for (int k = 0; k < FT_KEY_COUNT; k++) {
        ft_section section = ft__keys[k].section;
        bool found = not_tried((ft_key_id)k) || (section > FT_SECTION_LORA) || section == FT_SECTION_OPERATOR;
        for (int t = 0; t < TRIALS && !found; t++) found = (int)trials[t].key == k;
        if (!found) fail_msg("\"%s\" is not tried", ft__keys[k].key);
    }
}

static void expect(const ft_context *ft, ft_scratch *scratch, const char *text, const char *warning)
{
    json_t *request = json_loads(text, 0, NULL), *answer = asked(ft, scratch, request);
    const char *said = json_string_value(json_array_get(json_object_get(answer, "warnings"), 0));
    if (!warning != !said || (said && strcmp(said, warning) != 0))
        fail_msg("%s: \"%s\", not \"%s\"", text, said ? said : "", warning ? warning : "");
    json_decref(answer);
    json_decref(request);
}

/* Values of keys that act with another value; defaults said aloud. */
static void reasons_are_given(void **state)
{
    (void)state;
    ft_context *ft;
    ft_error err = {0};
    ft_scratch *scratch = calloc(1, sizeof *scratch);
    assert_non_null(scratch);
    if (ft_open(&ft, NULL, &err) != FT_OK) fail_msg("%s", err.message);
    expect(ft, scratch, "{" LLAMA ",\"parallel\":{\"sp\":true}}", "\"sp\" has no effect: \"tp\" is 1");
    expect(ft, scratch, "{" LLAMA ",\"parallel\":{\"sp\":false,\"zero\":0,\"tp\":1}}", NULL);
    expect(ft, scratch, "{" LLAMA ",\"execution\":\"fused\",\"recompute\":\"selective\"}",
           "\"recompute\" has no effect: fused flash attention keeps no scores to drop");
    expect(ft, scratch, "{" LLAMA ",\"execution\":\"fused\",\"recompute\":\"full\",\"recompute_modules\":[\"mlp\"]}",
           "\"recompute_modules\" has no effect: \"recompute\" is not \"selective\"");
    expect(ft, scratch, "{" LLAMA ",\"execution\":\"fused\",\"recompute\":\"full\",\"cuda_graph_modules\":[\"mlp\"]}",
           "\"cuda_graph_modules\" has no effect: recomputed layers are not captured one by one");
    expect(ft, scratch, "{" LLAMA ",\"execution\":\"fused\",\"cuda_graph_modules\":[\"moe_router\"]}",
           "\"cuda_graph_modules\" has no effect: the model has none of these modules");
    expect(ft, scratch, "{" LLAMA ",\"execution\":\"fused\",\"pytorch\":\"1.13\"}",
           "\"pytorch\" has no effect: hand-fused layers have kernels of their own");
    expect(ft, scratch, "{" LLAMA ",\"pytorch\":\"2.6\"}",
           "\"pytorch\" has no effect: nothing in this step differs in that version");
    expect(ft, scratch, "{" LLAMA ",\"pytorch\":\"2.0\",\"expandable_segments\":true}",
           "\"expandable_segments\" has no effect: that version of PyTorch has no such segments");
    expect(ft, scratch, "{\"task\":\"decode\"," LLAMA ",\"cache\":\"static\"}",
           "\"cache\" has no effect: eager kernels read it as they read a paged one");
    expect(ft, scratch, "{" LLAMA ",\"parallel\":{\"expert_skew\":2}}",
           "\"expert_skew\" has no effect: the model has no experts");
    expect(ft, scratch, "{" LLAMA ",\"parallel\":{\"dp\":2,\"expert_overlap\":true}}",
           "\"expert_overlap\" has no effect: the model has no experts");
    expect(ft, scratch, "{" OLMOE ",\"execution\":\"fused\",\"parallel\":{\"dp\":2,\"expert_overlap\":true}}",
           "\"expert_overlap\" has no effect: \"ep\" is 1");
    expect(ft, scratch, "{\"model\":\"sdxl-unet\",\"gpu\":\"h100_sxm\",\"recompute\":\"full\"}", NULL);
    expect(ft, scratch, "{" LLAMA ",\"cluster\":{\"interconnect\":\"ib_ndr400\"}}",
           "\"interconnect\" has no effect: one GPU");
    expect(ft, scratch, "{" LLAMA ",\"cluster\":{\"oversubscription\":1}}", NULL);
    expect(ft, scratch, "{" LLAMA ",\"parallel\":{\"dp\":16},\"cluster\":{\"oversubscription\":8}}",
           "\"oversubscription\" has no effect: so few nodes use no oversubscribed switch");
    expect(ft, scratch,
           "{" LLAMA ",\"parallel\":{\"dp\":64},\"cluster\":{\"topology\":\"fat_tree\",\"oversubscription\":8}}", NULL);
    expect(ft, scratch, "{" LLAMA ",\"parallel\":{\"tp\":8,\"dp\":2},\"cluster\":{\"nodes\":2}}", NULL);
    expect(ft, scratch, "{\"task\":\"memory\"," LLAMA ",\"host\":\"h200_vm\"}",
           "\"host\" has no effect: \"memory\" has no times");
    expect(ft, scratch, "{" SERVE ",\"cluster\":{\"gpus_per_node\":1}}", "\"gpus_per_node\" has no effect: one GPU");
    expect(ft, scratch, "{" SERVE ",\"parallel\":{\"tp\":2},\"cluster\":{\"gpus_per_node\":1}}", NULL);
    expect(ft, scratch, "{" SERVE ",\"parallel\":{\"tp\":2},\"cluster\":{\"interconnect\":\"ib_ndr400\"}}",
           "\"interconnect\" has no effect: all ranks are in one node");
    ft__scratch_free(scratch);
    free(scratch);
    ft_close(ft);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_nothing_is_said),
        cmocka_unit_test(every_key_is_tried),
        cmocka_unit_test(reasons_are_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
