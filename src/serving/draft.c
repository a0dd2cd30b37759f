/* draft.c: who makes the drafts of a step, and what that costs: a layer of the model's own (multi-token prediction), or
 * a smaller model on the same GPUs. Its weights and its cache take room from the model's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "serving/settle.h"
#include "serving/step_constants.h"

double ft__drafts_accepted(double drafts, double chance)
{
    double tokens = 1, kept = 1;
    for (int i = 0; i < (int)drafts; i++) tokens += kept *= chance;
    return tokens;
}

static ft_status read_draft(const ft_context *ft, ft_scratch *scratch, const ft_serve_request *r,
                            ft_model_request *read, ft_error *err)
{
    json_t *base = ft__study_copy(r->base);
    bool made = base && ft__key_set(base, FT_KEY_ID_MODEL, json_incref((json_t *)(uintptr_t)r->draft));
    ft_status status = made ? ft__model_request_of(ft, scratch, base, read, err) : ft__no_memory(err);
    json_decref(base);
    if (status != FT_OK && err && !strcmp(err->where, "model")) snprintf(err->where, sizeof err->where, "draft");
    if (status != FT_OK) return status;
    if (read->arch->design == FT_DECODER_ONLY && read->arch->heads > 0) return FT_OK;
    return ft__fail_at(err, FT_E_UNSUPPORTED, "draft", 0, 0, "drafts are made by models that decode; \"%s\" does not",
                       read->arch->model_type);
}

/* Read before the served model is, as both live in the same scratch; what is kept of it are figures. */
ft_status ft__settle_draft_model(const ft_context *ft, ft_scratch *scratch, const ft_serve_request *r, ft_dtype asked,
                                 int64_t vocab, ft_serving *out, ft_error *err)
{
    ft_model_request read;
    ft_served *m = &out->draft_served;
    FT_TRY(read_draft(ft, scratch, r, &read, err));
    const ft_arch *a = read.arch;
    int64_t tp = r->layout.tp < a->heads ? r->layout.tp : a->heads;
    *m = (ft_served){.arch = a,
                     .device = out->device,
                     .engine = out->engine,
                     .tp = tp,
                     .dp = r->layout.dp,
                     .ep = 1,
                     .pp = 1,
                     .dtype = asked,
                     .kv_dtype = read.work.kv_dtype};
    FT_TRY(ft__cluster_read(read.cluster, out->device, tp * m->dp, &m->cluster, err));
    ft__served_settle(m);
    FT_TRY(ft__costs_of(ft, scratch, m, &out->draft_costs, err));
    if (fabs((double)(a->vocab - vocab)) > FT_K_STEP_VOCABULARY_SLACK * (double)vocab)
        ft__text_addf(&out->warnings,
                      "draft tokens must be of the model's own vocabulary; \"draft\" has %lld tokens, the model %lld\n",
                      (long long)a->vocab, (long long)vocab);
    m->arch = NULL;
    return FT_OK;
}

/* What the request says; where it says nothing, what the engine is started with for this model. */
void ft__settle_drafts(const ft_serve_request *r, ft_serving *out)
{
    ft_served *m = &out->served;
    bool silent = !r->draft && r->drafts <= 0 && !ft__given(&r->said, FT_KEY_ID_SERVED_MTP);
    bool own = r->own_drafts || (silent && out->engine->drafts > 0);
    out->drafts_said = !silent;
    out->drafts = silent ? out->engine->drafts : r->drafts;
    if (!own && !r->draft) return;
    double weights = out->draft_served.weights_bytes, cache = out->draft_served.kv_bytes_per_token;
    if (own) {
        ft__costs_of_layer(&out->costs, m->layers, &out->draft_costs);
        weights = m->weights_bytes / m->layers;
        cache = m->kv_bytes_per_token / m->layers;
    }
    m->weights_bytes += weights;
    m->kv_bytes_per_token += cache;
    out->costs.draft = &out->draft_costs;
    out->costs.drafts = out->drafts;
}
