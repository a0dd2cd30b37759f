/* settle.c: from what a request says to a model on an engine and a load for it. */
#include "serving/settle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "request/keys.h"
#include "serving/cache_room.h"
#include "serving/checkpoint.h"
#include "serving/heads.h"
#include "serving/step_constants.h"

/* -- the model --------------------------------------------------------------------------------- */

/* A format that the GPU does not compute in is one of weights: the model is read in 16 bits, and weights stay narrow.
 * */
static ft_status read_format(const ft_serve_request *r, const ft_device *device, ft_dtype *asked, ft_error *err)
{
    const char *name = json_string_value(ft__key_get(r->base, FT_KEY_ID_MODEL_DTYPE));
    *asked = FT_BF16;
    if (!name || !ft_dtype_parse(name, asked) || device->peak_tflops[*asked] > 0 || ft_dtype_bytes(*asked) >= 2)
        return FT_OK;
    const char *wide = device->peak_tflops[FT_BF16] > 0 ? "bf16" : "fp16";
    return ft__key_set(r->base, FT_KEY_ID_MODEL_DTYPE, json_string(wide)) ? FT_OK : ft__no_memory(err);
}

/* "weights_dtype" where it is narrower than what is computed in. */
static ft_storage stored_weights(const json_t *base, ft_dtype asked)
{
    static const struct {
        const char *name;
        ft_storage storage;
    } formats[] = {{"fp8", FT_STORED_FP8},   {"int8", FT_STORED_INT8}, {"fp4", FT_STORED_NVFP4},
                   {"int4", FT_STORED_INT4}, {"nf4", FT_STORED_NF4},   {"mxfp4", FT_STORED_MXFP4}};
    const char *said = json_string_value(ft__key_get(base, FT_KEY_ID_WEIGHTS_DTYPE));
    for (size_t i = 0; said && ft_dtype_bytes(asked) >= 2 && i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, said)) return formats[i].storage;
    return said && ft_dtype_bytes(asked) >= 2 ? ft__gguf_named(said) : FT_STORED_AS_COMPUTED;
}

/* Checkpoints that quantise their experts alone say nothing of the cache: it is narrow only where the newest kernels
 * read it so. */
static ft_dtype cache_format(const ft_serving_engine *e, const ft_model_request *read, ft_dtype asked)
{
    const ft_device *d = read->device;
    bool narrow = ft_dtype_bytes(asked) <= 1, has = d->peak_tflops[FT_FP8] > 0;
    bool newest = e->fp8_cache && d->matrix_issue == FT_ISSUE_TCGEN05;
    bool everywhere = e->fp8_cache_everywhere && !(ft_dtype_bytes(asked) < 1 && ft__experts_alone(read->arch));
    if (read->kv_given) return read->work.kv_dtype;
    return narrow && has && (newest || everywhere) ? FT_FP8 : read->work.kv_dtype;
}

static ft_status check_layout(const ft_served *m, const char *where, ft_error *err)
{
    const ft_arch *a = m->arch;
    char key[64];
    if (m->ep > 1 && (a->experts == 0 || a->experts % m->ep)) {
        snprintf(key, sizeof key, "%s.ep", where);
        return ft__fail_at(err, FT_E_RANGE, key, 0, 0, "\"ep\" %lld does not divide the model's %lld experts",
                           (long long)m->ep, (long long)a->experts);
    }
    if (m->tp > a->heads) {
        snprintf(key, sizeof key, "%s.tp", where);
        return ft__fail_at(err, FT_E_RANGE, key, 0, 0, "\"tp\" %lld is more than the model's %lld heads",
                           (long long)m->tp, (long long)a->heads);
    }
    snprintf(key, sizeof key, "%s.tp", where);
    FT_TRY(ft__served_heads(m, key, err));
    if (m->cp > 1 && m->dp > 1) {
        snprintf(key, sizeof key, "%s.cp", where);
        return ft__fail_at(err, FT_E_UNSUPPORTED, key, 0, 0,
                           "\"cp\" %lld beside \"dp\" %lld is not forecast: ranks share sequences or have their own",
                           (long long)m->cp, (long long)m->dp);
    }
    if (m->pp > a->layers) {
        snprintf(key, sizeof key, "%s.pp", where);
        return ft__fail_at(err, FT_E_RANGE, key, 0, 0, "\"pp\" %lld is more than the model's %lld layers",
                           (long long)m->pp, (long long)a->layers);
    }
    return FT_OK;
}

static ft_status lay_out(const ft_model_request *read, const ft_serve_request *r, const ft_engine_layout *l,
                         ft_dtype asked, ft_storage stored, const char *where, const ft_serving_engine *e,
                         ft_served *out, ft_error *err)
{
    *out = (ft_served){.arch = read->arch,
                       .device = read->device,
                       .engine = e,
                       .tp = l->tp,
                       .dp = l->dp,
                       .ep = l->ep,
                       .pp = l->pp,
                       .cp = l->cp,
                       .adapters = (double)ft__whole_of(&r->said, FT_KEY_ID_ADAPTERS),
                       .adapter_rank = (double)ft__whole_of(&r->said, FT_KEY_ID_SERVED_RANK),
                       .dtype = asked,
                       .stored = stored};
    out->kv_dtype = cache_format(e, read, asked);
    out->by_module = read->work.by_module && !ft__key_get(r->base, FT_KEY_ID_MODEL_DTYPE);
    out->formats = read->work.formats;
    if (!ft__given(&r->said, FT_KEY_ID_REQUEST_LOG) && !ft__given(&r->said, FT_KEY_ID_LENGTHS))
        out->length = ft__real_of(&r->said, FT_KEY_ID_SERVE_ISL) + ft__real_of(&r->said, FT_KEY_ID_SERVE_OSL);
    FT_TRY(check_layout(out, where, err));
    FT_TRY(ft__cluster_read(read->cluster, read->device, ft__served_gpus(out), &out->cluster, err));
    ft__served_settle(out);
    return FT_OK;
}

static ft_status check_model(const ft_arch *a, ft_error *err)
{
    if (a->design == FT_DECODER_ONLY && a->heads > 0) return FT_OK;
    return ft__fail_at(err, FT_E_UNSUPPORTED, "model", 0, 0,
                       "serving is forecast for models that decode with attention; \"%s\" is not one: ask for "
                       "\"infer\"",
                       a->model_type);
}

/* The engine as it is started for this model, this GPU and this load. */
static ft_status find_engine(const ft_serve_request *r, const ft_model_request *read, ft_dtype asked, ft_serving *out,
                             ft_error *err)
{
    const ft_said *said = &r->said;
    const ft_arch *a = read->arch;
    bool wanted = ft__word_of(said, FT_KEY_ID_SETTINGS) == 0;
    const int64_t replicas = ft__whole_of(said, FT_KEY_ID_REPLICAS);
    ft_situation s = {.model_type = wanted ? a->model_type : NULL,
                      .dtype = ft_dtype_name(asked),
                      .hidden = a->hidden,
                      .vocab = a->vocab,
                      .tp = r->layout.tp,
                      .dp = r->layout.dp,
                      .ep = r->layout.ep,
                      .tcgen05 = read->device->matrix_issue == FT_ISSUE_TCGEN05,
                      .mfma = read->device->matrix_issue == FT_ISSUE_MFMA,
                      .isl = ft__real_of(said, FT_KEY_ID_SERVE_ISL),
                      .osl = ft__real_of(said, FT_KEY_ID_SERVE_OSL),
                      .clients = ft__given(said, FT_KEY_ID_CONCURRENCY)
                                     ? (ft__whole_of(said, FT_KEY_ID_CONCURRENCY) + replicas - 1) / replicas
                                     : 0};
    bool numbers = r->engine && ft__given(said, FT_KEY_ID_SERVE_ISL) && ft__given(said, FT_KEY_ID_SERVE_OSL);
    numbers = numbers && !ft__given(said, FT_KEY_ID_PROMPTS) && !ft__given(said, FT_KEY_ID_REQUESTS);
    s.fixed_lengths = s.clients > 0 && numbers && !r->range_given && !ft__given(said, FT_KEY_ID_LENGTHS) &&
                      ft__real_of(said, FT_KEY_ID_LENGTH_SIGMA) <= 0;
    json_t *usual = json_string(ft__serving_usual);
    if (!usual) return ft__no_memory(err);
    ft_status status = ft__serving_engine_read(r->engine ? r->engine : usual, &s, &out->own_engine, &out->engine,
                                               &out->recipes, err);
    json_decref(usual);
    const json_t *own = json_object_get(r->engine, "traits");
    out->ttft_known = json_object_get(own, "ttft_spread") != NULL;
    out->tpot_known = json_object_get(own, "tpot_spread") != NULL;
    return status;
}

/* The step that the model is read with has the model's own length, requests have theirs; of a log nobody knows them. */
static void warn_of_positions(const ft_serve_request *r, const ft_arch *a, ft_serving *out)
{
    double longest = ft__real_of(&r->said, FT_KEY_ID_SERVE_ISL) + ft__real_of(&r->said, FT_KEY_ID_SERVE_OSL);
    bool known = !ft__given(&r->said, FT_KEY_ID_REQUEST_LOG) && !ft__given(&r->said, FT_KEY_ID_LENGTHS);
    if (known) ft__beyond_positions(a, FT_BEYOND_REQUESTS, longest, out->beyond);
    if (*out->beyond) ft__text_addf(&out->warnings, "%s\n", out->beyond);
}

/* "task" is ours here: nobody asked for a decoding step. */
static ft_status generates(ft_status status, const ft_arch *arch, ft_error *err)
{
    if (status != FT_E_UNSUPPORTED || !arch || strcmp(err->where, "task") != 0) return status;
    return ft__fail_at(err, status, "model", 0, 0,
                       "\"%s\" generates no tokens, and serving is forecast for models that do: ask for \"infer\"",
                       arch->model_type);
}

ft_status ft__settle_model(const ft_context *ft, ft_scratch *scratch, const ft_serve_request *r, ft_serving *out,
                           ft_error *err)
{
    ft_finder finder = {ft, scratch};
    ft_model_request read;
    ft_dtype asked;
    const json_t *gpu = ft__key_get(r->base, FT_KEY_ID_GPU);
    if (!gpu)
        return ft__fail_at(err, FT_E_MISSING, "gpu", 0, 0,
                           "\"gpu\" is missing: a name (h100_sxm), a file or a spec object");
    FT_TRY(ft__find_device(&finder, gpu, &out->device, err));
    FT_TRY(read_format(r, out->device, &asked, err));
    if (!ft__key_set(r->base, FT_KEY_ID_TASK, json_string("decode"))) return ft__no_memory(err);
    ft_status known = ft__model_request_of(ft, scratch, r->base, &read, err);
    FT_TRY(generates(known, read.arch, err));
    FT_TRY(check_model(read.arch, err));
    if (read.work.by_module && !ft__key_get(r->base, FT_KEY_ID_MODEL_DTYPE)) asked = ft__checkpoint_dtype(read.arch);
    FT_TRY(find_engine(r, &read, asked, out, err));
    if (r->draft) {
        FT_TRY(ft__settle_draft_model(ft, scratch, r, asked, read.arch->vocab, out, err));
        FT_TRY(ft__model_request_of(ft, scratch, r->base, &read, err));
    }
    out->model = read.model;
    out->quantile = read.quantile > 0 ? read.quantile : ft__context_quantile(ft);
    bool split = r->prefill_workers > 0;
    ft_storage stored = stored_weights(r->base, asked);
    FT_TRY(lay_out(&read, r, &r->layout, asked, stored, split ? "disaggregated.decode" : "parallel", out->engine,
                   &out->served, err));
    FT_TRY(ft__costs_of(ft, scratch, &out->served, &out->costs, err));
    ft__settle_drafts(r, out);
    if (split) {
        FT_TRY(lay_out(&read, r, &r->prefill_layout, asked, stored, "disaggregated.prefill", out->engine,
                       &out->prefill_served, err));
        FT_TRY(ft__costs_of(ft, scratch, &out->prefill_served, &out->prefill_costs, err));
    }
    const char *warnings = ft__device_warnings(scratch, out->device);
    ft__text_add(&out->warnings, warnings);
    if (*warnings) ft__text_add(&out->warnings, "\n");
    warn_of_positions(r, read.arch, out);
    if (*read.quantized) ft__text_addf(&out->warnings, "%s\n", read.quantized);
    FT_TRY(ft__settle_idle(r, &read, out, err));
    ft__idle_say(out->idle.at, out->idle.count, &out->warnings);
    if (out->idle.count > 0) ft__text_add(&out->warnings, "\n");
    return FT_OK;
}

/* -- the engine's settings --------------------------------------------------------------------- */

/* Tokens of an iteration where the engine is started for a load: a prompt, what the clients of a rank decode, and 64.
 */
static double budget_of_load(const ft_serve_request *r, const ft_served *m, double drafts)
{
    double clients = (double)ft__whole_of(&r->said, FT_KEY_ID_CONCURRENCY);
    double of_rank = clients / (double)(ft__whole_of(&r->said, FT_KEY_ID_REPLICAS) * m->dp);
    return 64 * ceil((ft__real_of(&r->said, FT_KEY_ID_SERVE_ISL) + (1 + drafts) * of_rank) / 64 + 1);
}

static ft_status policy_of(const ft_serve_request *r, const ft_served *m, const ft_serving_engine *e, double drafts,
                           ft_text *warnings, ft_policy *out, ft_error *err)
{
    const ft_said *said = &r->said;
    bool large = ft__serving_is_large(e, m->device);
    *out = (ft_policy){
        .order = e->order,
        .admission = e->admission,
        .chunked = e->chunked_prefill,
        .prefix_at_once = e->prefix_at_once,
        .budget = ft__serving_budget(e, m->device),
        .max_sequences = large ? e->max_sequences : e->max_sequences_small,
        .wait_iterations = e->wait_iterations,
        .receive_interval = e->receive_interval,
        .launched_ahead = e->launched_ahead,
        .join_iterations = e->join_iterations,
        .block = e->block_tokens,
        .state = ceil(m->state_bytes / m->kv_bytes_per_token),
        .reserved_output = e->reserved_output,
        .drafts = drafts,
        .accepted = r->drafts > 0 && r->accepted > 0
                        ? r->accepted
                        : ft__drafts_accepted(drafts, r->acceptance >= 0 ? r->acceptance : FT_K_STEP_ACCEPTANCE),
        .stream_ms = e->stream_us / 1e3 / e->stream_interval,
        .scheduling = (ft_scheduling)ft__word_of(said, FT_KEY_ID_SCHEDULING)};
    double engines = (double)ft__whole_of(said, FT_KEY_ID_REPLICAS) * (e->budget_of_rank ? (double)m->dp : 1);
    if (e->sized_to_load && ft__given(said, FT_KEY_ID_CONCURRENCY))
        out->max_sequences = ceil((double)ft__whole_of(said, FT_KEY_ID_CONCURRENCY) / engines);
    if (ft__given(said, FT_KEY_ID_MAX_NUM_SEQS))
        out->max_sequences = (double)ft__whole_of(said, FT_KEY_ID_MAX_NUM_SEQS);
    out->max_sequences = fmax(1, out->max_sequences - e->idle_sequences);
    if (e->budget_of_load && ft__given(said, FT_KEY_ID_CONCURRENCY)) out->budget = budget_of_load(r, m, drafts);
    if (ft__given(said, FT_KEY_ID_MAX_NUM_BATCHED_TOKENS))
        out->budget = (double)ft__whole_of(said, FT_KEY_ID_MAX_NUM_BATCHED_TOKENS);
    if (ft__given(said, FT_KEY_ID_CHUNKED_PREFILL)) out->chunked = ft__switch_of(said, FT_KEY_ID_CHUNKED_PREFILL);
    const double of_rank = out->max_sequences, budget = out->budget;
    if (e->budget_of_rank) {
        out->budget *= (double)m->dp;
        out->max_sequences *= (double)m->dp;
    }
    double host = m->device->pcie_gbps; /* every rank to its own host memory */
    out->keeps_blocks = e->preemption == FT_PREEMPTION_REUSE && e->prefix_cache && out->state <= 0;
    if (e->preemption == FT_PREEMPTION_SWAP && host > 0) out->swap_ms = m->kv_bytes_per_token / (host * 1e6);
    out->wait_tokens = e->wait_share * out->budget;
    return ft__cache_room(r, m, e, of_rank, budget, warnings, &out->capacity, err);
}

double ft__served_transfer_ms(const ft_served *m, const ft_cluster *c)
{
    const ft_tier *t = &c->tier[c->tiers - 1];
    return m->kv_bytes_per_token / (t->gbps * t->efficiency * 1e6);
}

ft_status ft__settle_policy(const ft_serve_request *r, ft_serving *out, ft_error *err)
{
    const ft_said *said = &r->said;
    const ft_serving_engine *e = out->engine;
    FT_TRY(policy_of(r, &out->served, e, out->drafts, &out->warnings, &out->policy, err));
    ft_scene *s = &out->scene;
    const ft_served *m = &out->served;
    *s = (ft_scene){.costs = &out->costs,
                    .policy = &out->policy,
                    .replicas = ft__whole_of(said, FT_KEY_ID_REPLICAS),
                    .routing = (ft_routing_kind)ft__word_of(said, FT_KEY_ID_ROUTING),
                    .request_ms = e->request_ms,
                    .prompt_token_ms = e->prompt_token_us / 1e3,
                    .slo_ttft_ms = r->slo_ttft_ms,
                    .slo_tpot_ms = r->slo_tpot_ms,
                    .slo_e2e_ms = r->slo_e2e_ms};
    out->gpus = ft__served_gpus(m) * s->replicas;
    if (!r->prefill_workers) return FT_OK;
    m = &out->prefill_served;
    FT_TRY(policy_of(r, m, e, out->drafts, &out->warnings, &out->prefill_policy, err));
    out->prefill_policy.prefill_only = true;
    s->replicas = r->decode_workers;
    s->prefill_costs = &out->prefill_costs;
    s->prefill_policy = &out->prefill_policy;
    s->prefill_replicas = r->prefill_workers;
    s->transfer_ms_per_token = ft__served_transfer_ms(&out->served, &out->served.cluster);
    out->gpus = ft__served_gpus(&out->served) * s->replicas + ft__served_gpus(m) * r->prefill_workers;
    return FT_OK;
}

/* -- the load ---------------------------------------------------------------------------------- */

/* Clients of a closed loop whose requests are all alike end in the same iterations for ever, which no measured engine
 * does: sampling, networks and clients shake them apart. A few percent of length stand for that. */
static ft_status settle_lengths(const ft_serve_request *r, ft_load *l, ft_error *err)
{
    const ft_said *said = &r->said;
    double sigma = ft__real_of(said, FT_KEY_ID_LENGTH_SIGMA), jitter = FT_K_STEP_LENGTH_JITTER;
    ft_lengths *of[] = {&l->prompt, &l->answer};
    double means[] = {ft__real_of(said, FT_KEY_ID_SERVE_ISL), ft__real_of(said, FT_KEY_ID_SERVE_OSL)};
    for (int i = 0; i < 2; i++) {
        *of[i] = (ft_lengths){.kind = sigma > 0 ? FT_SPREAD_LOGNORMAL : FT_SPREAD_UNIFORM,
                              .mean = means[i],
                              .low = r->range[0],
                              .high = r->range[1],
                              .sigma = sigma};
        bool drawn = of[i]->kind == FT_SPREAD_LOGNORMAL, shaken = l->clients > 1 && !r->range_given && !drawn;
        if (shaken) of[i]->low = 1 - jitter, of[i]->high = 1 + jitter;
        if (drawn && !r->range_given) of[i]->high = 0;
        if (drawn && !ft__lengths_centre(of[i]))
            return ft__fail_at(err, FT_E_RANGE, "length_range", 0, 0,
                               "\"length_range\" %g to %g cannot bound lengths with mean 1 and \"length_sigma\" %g",
                               of[i]->low, of[i]->high, sigma);
    }
    return FT_OK;
}

/* Prompts that come again: blocks of them are known by their hashes, as those of a log. */
static void settle_prompts(const ft_serve_request *r, ft_serving *out)
{
    const ft_said *said = &r->said;
    const ft_serving_engine *e = out->engine;
    ft_load *l = &out->load;
    bool asked = ft__given(said, FT_KEY_ID_PROMPTS);
    if (!e->prefix_cache) out->scene.hash_tokens = 0;
    out->prompts_said = asked;
    l->prompts = asked ? ft__whole_of(said, FT_KEY_ID_PROMPTS) : (int64_t)e->prompts;
    if (l->log || l->turns > 1 || !e->prefix_cache) l->prompts = 0; /* sessions say by themselves what comes again */
    if (!l->prompts) return;
    double blocks = ft__real_of(said, FT_KEY_ID_SERVE_ISL) / FT_PROMPT_BLOCKS;
    out->scene.hash_tokens = e->block_tokens * fmax(1, ceil(blocks / e->block_tokens));
    l->hash_tokens = out->scene.hash_tokens;
}

/* They take seconds; those of a log are as many as it has. */
enum { MOST_REQUESTS = 10000000 };

ft_status ft__settle_load(const ft_serve_request *r, ft_serving *out, ft_error *err)
{
    const ft_said *said = &r->said;
    ft_load *l = &out->load;
    *l = (ft_load){.burstiness = ft__real_of(said, FT_KEY_ID_BURSTINESS),
                   .prefix_share = ft__real_of(said, FT_KEY_ID_PREFIX_HIT),
                   .turns = ft__whole_of(said, FT_KEY_ID_TURNS),
                   .think_ms = ft__real_of(said, FT_KEY_ID_THINK_MS),
                   .steady = ft__word_of(said, FT_KEY_ID_SERVE_START) == 1};
    if (ft__given(said, FT_KEY_ID_CONCURRENCY)) {
        l->clients = ft__whole_of(said, FT_KEY_ID_CONCURRENCY);
        l->requests = 10 * l->clients;
    } else if (ft__given(said, FT_KEY_ID_RATE)) {
        l->rate_per_s = ft__real_of(said, FT_KEY_ID_RATE);
        l->requests = 1000;
    } else {
        l->requests = INT64_MAX;
        FT_TRY(ft__log_open(said->at[FT_KEY_ID_REQUEST_LOG].text, &l->log, err));
        out->scene.hash_tokens = ft__log_block_tokens(l->log);
    }
    settle_prompts(r, out);
    out->scene.warmup = ft__whole_of(said, FT_KEY_ID_WARMUP);
    if (ft__given(said, FT_KEY_ID_REQUESTS)) l->requests = ft__whole_of(said, FT_KEY_ID_REQUESTS);
    if (!l->log && l->requests > MOST_REQUESTS)
        return ft__fail_at(err, FT_E_RANGE, ft__given(said, FT_KEY_ID_REQUESTS) ? "requests" : "concurrency", 0, 0,
                           "a simulation serves at most %d requests, got %lld; fewer give the same figures",
                           MOST_REQUESTS, (long long)l->requests);
    FT_TRY(settle_lengths(r, l, err));
    if (ft__given(said, FT_KEY_ID_LENGTHS) && !out->pairs)
        FT_TRY(ft__log_lengths(said->at[FT_KEY_ID_LENGTHS].text, &out->pairs, &out->pair_count, err));
    l->pairs = out->pairs;
    l->pair_count = out->pair_count;
    ft__load_seed(l, (uint64_t)ft__whole_of(said, FT_KEY_ID_SERVE_SEED));
    ft__load_scale(l);
    if (l->rate_per_s > 0) ft__load_stretch(l);
    return FT_OK;
}
