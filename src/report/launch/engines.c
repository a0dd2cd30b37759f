/* engines.c: a plan for serving as the engines' own command lines.
 *
 * vLLM: `vllm serve` (docs.vllm.ai, CLI reference and engine arguments of 0.11). SGLang: `python -m
 * sglang.launch_server` and `sglang_router.launch_router` (docs.sglang.ai, server arguments of 0.5.23, whose own parser
 * reads them in release-check; before it --attn-dp-size was --dp-size with --enable-dp-attention). TensorRT-LLM:
 * `trtllm-serve` (nvidia.github.io/TensorRT-LLM, 1.0). Replicas are as many equal commands behind a router, each on
 * GPUs of its own; engines that only prefill or decode say so. */
#include "report/launch/engines.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/software.h"
#include "import/config/config.h"
#include "request/keys.h"

static const char *text_of(const ft_fleet *f, const char *key)
{
    return json_string_value(json_object_get(f->asked->base, key));
}

static void whole(ft_text *out, const char *flag, int64_t value) { ft__text_addf(out, " %s %" PRId64, flag, value); }

static int64_t asked_whole(const ft_fleet *f, const char *key, int64_t own)
{
    const json_t *said = json_object_get(f->asked->base, key);
    return own > 0 ? own : ft__json_whole_of(said);
}

/* What an engine loads: a name of the catalogue by its checkpoint on the hub. Other spellings of a name stand for
 * several checkpoints, and a hub's id and a path for themselves. */
static const char *checkpoint(const char *name)
{
    const ft_model_entry *entry = ft__model_find(name);
    return entry && entry->hub && !strcmp(entry->name, name) ? entry->hub : name;
}

static bool no_checkpoint(const char *name)
{
    return !strchr(name, '/') && ft__model_find(name) && checkpoint(name) == name;
}

/* Quoted for a shell. */
static void model(ft_text *out, const ft_fleet *f)
{
    ft__text_add(out, " '");
    for (const char *at = checkpoint(f->model); *at; at++)
        if (*at == '\'')
            ft__text_add(out, "'\\''");
        else
            ft__text_addf(out, "%c", *at);
    ft__text_add(out, "'");
}

static bool narrow(const ft_fleet *f)
{
    const char *dtype = text_of(f, "dtype");
    return dtype && !strcmp(dtype, "fp8");
}

static bool narrow_cache(const ft_fleet *f)
{
    const char *dtype = text_of(f, "kv_dtype");
    return dtype && !strcmp(dtype, "fp8");
}

/* 16 bits of the other kind than the checkpoint's. */
static bool half(const ft_fleet *f)
{
    const char *dtype = text_of(f, "dtype");
    return dtype && !strcmp(dtype, "fp16");
}

static const json_t *said(const ft_fleet *f, ft_key_id key) { return ft__key_get(f->asked->base, key); }

static const char *drafter(const ft_fleet *f)
{
    const char *name = ft__engine_drafter(said(f, FT_KEY_ID_DRAFT));
    return name ? checkpoint(name) : NULL;
}

static int64_t draft_tokens(const ft_fleet *f)
{
    const json_t *tokens = said(f, FT_KEY_ID_DRAFT_TOKENS);
    return tokens ? ft__json_whole_of(tokens) : (int64_t)ft__keys[FT_KEY_ID_DRAFT_TOKENS].standard;
}

static void share(ft_text *out, const ft_fleet *f, const char *flag)
{
    double value = json_number_value(said(f, FT_KEY_ID_GPU_MEMORY_UTILIZATION));
    if (value > 0) ft__text_addf(out, " %s %.3g", flag, value);
}

static void adapters(ft_text *out, const ft_fleet *f, const char *most)
{
    const json_t *rank = said(f, FT_KEY_ID_SERVED_RANK);
    const int64_t count = ft__json_whole_of(said(f, FT_KEY_ID_ADAPTERS));
    if (count < 1) return;
    ft__text_add(out, " --enable-lora");
    whole(out, most, count);
    whole(out, "--max-lora-rank", rank ? ft__json_whole_of(rank) : (int64_t)ft__keys[FT_KEY_ID_SERVED_RANK].standard);
}

typedef enum side { BOTH, PREFILLS, DECODES } side;

/* -- vLLM -------------------------------------------------------------------------------------- */

static void vllm(ft_text *out, const ft_fleet *f, const ft_way *w, const ft_engine_layout *l, side s)
{
    ft__text_add(out, "vllm serve");
    model(out, f);
    whole(out, "--tensor-parallel-size", l->tp);
    if (l->pp > 1) whole(out, "--pipeline-parallel-size", l->pp);
    if (l->dp > 1) whole(out, "--data-parallel-size", l->dp);
    if (l->ep > 1) ft__text_add(out, " --enable-expert-parallel");
    int64_t seqs = asked_whole(f, "max_num_seqs", w->max_seqs),
            budget = asked_whole(f, "max_num_batched_tokens", w->budget);
    if (seqs) whole(out, "--max-num-seqs", seqs);
    if (budget) whole(out, "--max-num-batched-tokens", budget);
    if (json_is_false(said(f, FT_KEY_ID_CHUNKED_PREFILL))) ft__text_add(out, " --no-enable-chunked-prefill");
    share(out, f, "--gpu-memory-utilization");
    adapters(out, f, "--max-loras");
    if (json_string_value(said(f, FT_KEY_ID_SCHEDULING)) && !strcmp(text_of(f, "scheduling"), "priority"))
        ft__text_add(out, " --scheduling-policy priority");
    if (half(f)) ft__text_add(out, " --dtype float16");
    if (narrow(f)) ft__text_add(out, " --quantization fp8");
    if (narrow_cache(f)) ft__text_add(out, " --kv-cache-dtype fp8");
    if (w->drafts > 0)
        ft__text_addf(out, " --speculative-config '{\"method\": \"mtp\", \"num_speculative_tokens\": %g}'", w->drafts);
    if (drafter(f))
        ft__text_addf(out,
                      " --speculative-config '{\"method\": \"draft_model\", \"model\": \"%s\", "
                      "\"num_speculative_tokens\": %" PRId64 "}'",
                      drafter(f), draft_tokens(f));
    if (s != BOTH)
        ft__text_addf(out, " --kv-transfer-config '{\"kv_connector\": \"NixlConnector\", \"kv_role\": \"%s\"}'",
                      s == PREFILLS ? "kv_producer" : "kv_consumer");
    ft__text_add(out, "\n");
}

/* -- SGLang ------------------------------------------------------------------------------------ */

/* Its tp counts all ranks of an engine; attention runs data-parallel over dp of them. */
static void sglang(ft_text *out, const ft_fleet *f, const ft_way *w, const ft_engine_layout *l, side s)
{
    ft__text_add(out, "python -m sglang.launch_server --model-path");
    model(out, f);
    whole(out, "--tp-size", l->tp * l->dp);
    if (l->pp > 1) whole(out, "--pp-size", l->pp);
    if (l->dp > 1) whole(out, "--attn-dp-size", l->dp);
    if (l->ep > 1) whole(out, "--ep-size", l->ep);
    int64_t seqs = asked_whole(f, "max_num_seqs", w->max_seqs),
            budget = asked_whole(f, "max_num_batched_tokens", w->budget);
    if (seqs) whole(out, "--max-running-requests", seqs);
    if (json_is_false(said(f, FT_KEY_ID_CHUNKED_PREFILL)))
        whole(out, "--chunked-prefill-size", -1);
    else if (budget)
        whole(out, "--chunked-prefill-size", budget);
    share(out, f, "--mem-fraction-static");
    adapters(out, f, "--max-loras-per-batch");
    if (half(f)) ft__text_add(out, " --dtype float16");
    if (narrow(f)) ft__text_add(out, " --quantization fp8");
    if (narrow_cache(f)) ft__text_add(out, " --kv-cache-dtype fp8_e4m3");
    if (w->drafts > 0)
        ft__text_addf(out,
                      " --speculative-algorithm EAGLE --speculative-num-steps %g --speculative-eagle-topk 1 "
                      "--speculative-num-draft-tokens %g",
                      w->drafts, w->drafts + 1);
    if (drafter(f))
        ft__text_addf(out,
                      " --speculative-algorithm STANDALONE --speculative-draft-model-path %s --speculative-num-steps "
                      "%" PRId64 " --speculative-eagle-topk 1 --speculative-num-draft-tokens %" PRId64,
                      drafter(f), draft_tokens(f), draft_tokens(f) + 1);
    if (s != BOTH) ft__text_addf(out, " --disaggregation-mode %s", s == PREFILLS ? "prefill" : "decode");
    ft__text_add(out, "\n");
}

/* -- TensorRT-LLM ------------------------------------------------------------------------------ */

/* Tokens of an iteration that it must be started with: prompts are not cut unless it is told to cut them, and one that
 * is longer than max_num_tokens, 8192 by itself, is refused (llmapi/llm.py, _check_arguments). 0: its own will do. */
static int64_t trtllm_tokens(const ft_fleet *f, const ft_way *w, bool cut)
{
    enum { OWN = 8192, UNIT = 64 };
    const int64_t budget = asked_whole(f, "max_num_batched_tokens", w->budget);
    const json_t *range = ft__key_get(f->asked->base, FT_KEY_ID_LENGTH_RANGE);
    double prompt = json_number_value(ft__key_get(f->asked->base, FT_KEY_ID_SERVE_ISL));
    if (json_array_size(range) == 2) prompt *= json_number_value(json_array_get(range, 1));
    if (cut || prompt <= (double)(budget ? budget : OWN)) return budget;
    return UNIT * (int64_t)ceil(prompt / UNIT);
}

static void trtllm(ft_text *out, const ft_fleet *f, const ft_way *w, const ft_engine_layout *l, side s)
{
    const bool cut = json_is_true(ft__key_get(f->asked->base, FT_KEY_ID_CHUNKED_PREFILL));
    ft__text_add(out, "trtllm-serve serve");
    model(out, f);
    ft__text_add(out, " --backend pytorch");
    whole(out, "--tp_size", l->tp * l->dp);
    if (l->pp > 1) whole(out, "--pp_size", l->pp);
    if (l->ep > 1) whole(out, "--ep_size", l->ep);
    const int64_t seqs = asked_whole(f, "max_num_seqs", w->max_seqs), tokens = trtllm_tokens(f, w, cut);
    if (seqs) whole(out, "--max_batch_size", seqs);
    if (tokens) whole(out, "--max_num_tokens", tokens);
    if (cut) ft__text_add(out, " --enable_chunked_prefill");
    share(out, f, "--kv_cache_free_gpu_memory_fraction");
    bool options = l->dp > 1 || narrow_cache(f) || w->drafts > 0 || s != BOTH;
    if (options) ft__text_add(out, " --extra_llm_api_options options.yaml");
    ft__text_add(out, "\n");
    if (options) ft__text_add(out, "# options.yaml:\n");
    if (l->dp > 1) ft__text_add(out, "#   enable_attention_dp: true\n");
    if (narrow_cache(f)) ft__text_add(out, "#   kv_cache_config:\n#     dtype: fp8\n");
    if (w->drafts > 0)
        ft__text_addf(out, "#   speculative_config:\n#     decoding_type: MTP\n#     num_nextn_predict_layers: %g\n",
                      w->drafts);
    /* Engines that prefill cannot prepare an iteration beside the one before (its examples/disaggregated). */
    if (s == PREFILLS) ft__text_add(out, "#   disable_overlap_scheduler: true\n");
    if (s != BOTH) ft__text_add(out, "#   cache_transceiver_config:\n#     backend: UCX\n");
}

/* -- the whole --------------------------------------------------------------------------------- */

typedef void (*writer)(ft_text *out, const ft_fleet *f, const ft_way *w, const ft_engine_layout *l, side s);
static const struct {
    const char *name;
    writer write;
} writers[] = {{"vllm", vllm}, {"sglang", sglang}, {"trtllm", trtllm}};
enum { WRITERS = sizeof writers / sizeof *writers };

static void several(ft_text *out, int64_t number, const char *what, const char *name)
{
    if (number > 1) ft__text_addf(out, "# %" PRId64 " of these%s, each on GPUs of its own:\n", number, what);
    if (number == 1 && *what) ft__text_addf(out, "# one of these%s:\n", what);
    (void)name;
}

bool ft__engine_launch(ft_text *out, const char *name, const ft_fleet *f, const ft_way *w)
{
    writer write = NULL;
    for (size_t i = 0; i < WRITERS; i++)
        if (!strcmp(writers[i].name, name)) write = writers[i].write;
    if (!write) return false;
    ft_text lacks = {0};
    ft__engine_unsaid(&lacks, name, f);
    if (lacks.length) ft__text_addf(out, "# %s has no flag for: %s\n", name, lacks.at);
    ft__text_drop(&lacks, out);
    if (no_checkpoint(f->model))
        ft__text_addf(out, "# in place of '%s': the checkpoint's id on the hub, or its folder\n", f->model);
    if (w->prefill.tp) {
        several(out, w->prefill_workers, ", which prefill", name);
        write(out, f, w, &w->prefill, PREFILLS);
        several(out, w->replicas, ", which decode", name);
        write(out, f, w, &w->layout, DECODES);
    } else {
        several(out, w->replicas, "", name);
        write(out, f, w, &w->layout, BOTH);
    }
    return true;
}

ft_status ft__engine_launch_check(const ft_plan_request *r, ft_error *err)
{
    ft_engine engine = ft__serving_started_as(ft__key_get(r->base, FT_KEY_ID_SERVING_ENGINE));
    for (size_t i = 0; i < r->emit_count; i++) {
        const char *names[WRITERS];
        bool known = false;
        for (size_t k = 0; k < WRITERS; k++) {
            names[k] = writers[k].name;
            known = known || !strcmp(names[k], r->emit[i]);
        }
        const char *near = ft__nearest_software(r->emit[i], names, WRITERS);
        if (!known)
            return ft__fail_at(err, FT_E_NAME, "emit", 0, 0,
                               "cannot emit \"%.40s\" for serving; there are vllm, sglang and trtllm%s%s%s", r->emit[i],
                               near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        if (engine != FT_ENGINE_ANY && strcmp(r->emit[i], ft__engine_words[engine]) != 0)
            return ft__fail_at(err, FT_E_RANGE, "emit", 0, 0, "\"%s\" starts no plan of \"%s\": \"engine\" says whose",
                               r->emit[i], ft__engine_words[engine]);
    }
    return FT_OK;
}
