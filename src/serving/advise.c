/* advise.c: the same load again with one thing changed: tensor ranks, the cache's format, the token budget, sequences
 * at once, another replica, an engine that only prefills. What is kept makes an objective of the load better by more
 * than noise: TTFT, TPOT, or tokens of a GPU. */
#include "serving/advise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "serving/step_constants.h"

static void set_whole(ft_serve_request *r, ft_key_id id, double value)
{
    r->said.at[id] = (ft_said_value){.given = true, .whole = (int64_t)value};
}

/* False: it makes no sense here. */
static bool change(const ft_serving *s, const char *key, double factor, ft_serve_request *r, double *value)
{
    const ft_served *m = &s->served;
    if (!strcmp(key, "tp")) {
        if (s->scene.prefill_costs || 2 * m->tp > m->arch->heads || m->arch->heads % (2 * m->tp)) return false;
        r->layout.tp = 2 * m->tp;
        *value = (double)r->layout.tp;
        return true;
    }
    if (!strcmp(key, "replicas")) {
        if (s->scene.prefill_costs) return false;
        *value = 2 * (double)s->scene.replicas;
        set_whole(r, FT_KEY_ID_REPLICAS, *value);
        return true;
    }
    if (!strcmp(key, "max_num_seqs")) {
        if (s->bound != FT_BOUND_BY_QUEUE) return false;
        *value = 2 * s->policy.max_sequences;
        set_whole(r, FT_KEY_ID_MAX_NUM_SEQS, *value);
        return true;
    }
    if (!strcmp(key, "max_num_batched_tokens")) {
        double ranks = s->engine->budget_of_rank ? (double)m->dp : 1;
        *value = floor(factor * s->policy.budget / ranks);
        set_whole(r, FT_KEY_ID_MAX_NUM_BATCHED_TOKENS, *value);
        return *value >= 1;
    }
    if (!strcmp(key, "disaggregated")) { /* one engine of its own for prompts, of the same ranks */
        if (s->scene.prefill_costs || s->policy.drafts > 0 || m->cp > 1) return false;
        r->prefill_workers = 1;
        r->decode_workers = s->scene.replicas;
        r->prefill_layout = r->layout;
        return true;
    }
    bool narrow = m->kv_dtype == FT_FP8 || m->device->peak_tflops[FT_FP8] <= 0; /* kv_dtype */
    return !narrow && ft__key_set(r->base, FT_KEY_ID_MODEL_KV_DTYPE, json_string("fp8"));
}

static void keep(ft_serving *s, const ft_serving *t, const char *what, const char *key, double value)
{
    ft_serving_advice a = {.key = key, .value = value, .gpus = t->gpus};
    double before = ft__serving_tokens_per_s_per_gpu(s), after = ft__serving_tokens_per_s_per_gpu(t);
    snprintf(a.what, sizeof a.what, "%s", what);
    a.ttft_ms = ft__tally_mean(&t->out->ttft);
    a.tpot_ms = ft__tally_mean(&t->out->tpot);
    a.tokens_per_s_per_gpu = after;
    a.usd_per_million = ft__serving_usd_per_million(t);
    a.ttft_saved_ms = ft__tally_mean(&s->out->ttft) - a.ttft_ms;
    a.tpot_saved_ms = ft__tally_mean(&s->out->tpot) - a.tpot_ms;
    a.stable = t->stable;
    double better = 1 - FT_K_STEP_ADVICE_GAIN;
    bool helps = a.ttft_ms < better * ft__tally_mean(&s->out->ttft) ||
                 a.tpot_ms < better * ft__tally_mean(&s->out->tpot) || better * after > before ||
                 (t->stable && !s->stable);
    if (helps && s->advice_count < FT_SERVING_ADVICE) s->advice[s->advice_count++] = a;
}

ft_status ft__serving_advise(const ft_context *ft, ft_scratch *scratch, const ft_serve_request *r, ft_serving *s,
                             ft_error *err)
{
    static const struct {
        const char *key, *what;
        double factor;
    } trials[] = {{"tp", "twice the tensor ranks", 2},
                  {"replicas", "twice the engines", 2},
                  {"disaggregated", "one more prefill engine", 1},
                  {"kv_dtype", "the cache in fp8", 1},
                  {"max_num_batched_tokens", "twice the tokens of an iteration", 2},
                  {"max_num_batched_tokens", "a quarter of the tokens of an iteration", 0.25},
                  {"max_num_seqs", "twice the sequences at once", 2}};
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        ft_serve_request tried = *r;
        ft_serving t = {0};
        double value = 0;
        tried.base = ft__study_copy(r->base);
        if (!tried.base) return ft__no_memory(err);
        if (r->find != FT_FIND_NOTHING) /* the load that was found, or the least that was tried */
            ft__serve_at(&tried, r->find, r->find == FT_FIND_RATE ? s->load.rate_per_s : (double)s->load.clients);
        tried.find = FT_FIND_NOTHING;
        ft_error none = {0}; /* what cannot be done is no advice */
        ft_status status = FT_OK;
        if (change(s, trials[i].key, trials[i].factor, &tried, &value)) {
            status = ft__serve_of(ft, scratch, &tried, NULL, &t, &none);
            if (status == FT_OK) keep(s, &t, trials[i].what, trials[i].key, value);
        }
        ft__serving_free(&t);
        json_decref(tried.base);
        if (status == FT_E_MEMORY) return ft__no_memory(err);
    }
    return FT_OK;
}
