/* first.c: a training run of which only the GPUs and the tokens are said is planned before it is forecast. */
#include "search/first.h"

#include <inttypes.h>
#include <stdio.h>

#include "layout/layout.h"
#include "request/choose.h"
#include "request/keys.h"

/* One of these says how it is laid out: nothing is left to plan. */
static const char *const degrees[] = {"dp", "tp", "pp", "vpp", "cp", "ep", "etp", "sp", "zero", "shard", "schedule"};

static bool wanted(const json_t *document)
{
    const json_t *parallel = ft__key_get(document, FT_KEY_ID_PARALLEL);
    if (!ft__key_get(document, FT_KEY_ID_TRAIN_TOKENS) || !ft__key_get(parallel, FT_KEY_ID_GPUS)) return false;
    if (ft__key_get(document, FT_KEY_ID_NETWORK)) return false;
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++)
        if (json_object_get(parallel, degrees[i])) return false;
    return true;
}

static ft_status plan_of(const json_t *document, const ft_model_request *read, json_t **out, ft_error *err)
{
    const ft_parallel *p = &read->parallel;
    int64_t gpus = p->dp * p->tp * p->pp * p->cp;
    int64_t global = read->global_batch > 0 ? read->global_batch
                     : ft__key_get(document, FT_KEY_ID_MICRO_BATCH)
                         ? read->work.batch * read->work.accumulate * gpus
                         : ft__usual_global_batch(read->work.seq, gpus, read->work.lora_rank > 0);
    json_t *asked = *out = ft__study_copy(document),
           *parallel = ft__study_copy(ft__key_get(document, FT_KEY_ID_PARALLEL));
    ft__key_drop(parallel, FT_KEY_ID_GPUS);
    ft__key_drop(asked, FT_KEY_ID_ID);
    bool fine = asked && parallel && ft__key_set(asked, FT_KEY_ID_TASK, json_string("plan")) &&
                ft__key_set(asked, FT_KEY_ID_PLAN_GPUS, json_integer(gpus)) &&
                ft__key_set(asked, FT_KEY_ID_PLAN_GLOBAL, json_integer(global)) &&
                ft__key_set(asked, FT_KEY_ID_PLAN_TOP, json_integer(1));
    if (fine && json_object_size(parallel) > 0)
        fine = ft__key_set(asked, FT_KEY_ID_PARALLEL, json_incref(parallel));
    else if (fine)
        ft__key_drop(asked, FT_KEY_ID_PARALLEL);
    json_decref(parallel);
    return fine ? FT_OK : ft__no_memory(err);
}

ft_status ft__plan_first(const ft_context *ft, ft_scratch *scratch, const json_t *document, ft_planned *out,
                         ft_error *err)
{
    ft_model_request read;
    ft_plan_request request = {0};
    json_t *asked = NULL;
    *out = (ft_planned){0};
    const json_t *stack = ft__key_get(document, FT_KEY_ID_STACK);
    if (!wanted(document) || (stack && !(json_is_string(stack) && ft__framework_of_stack(json_string_value(stack)))))
        return FT_OK; /* a stack that is no framework's has nobody who lays out */
    FT_TRY(ft__model_request_of(ft, scratch, document, &read, err));
    if (read.ask != FT_ASK_TRAIN || read.parallel.dp < 2 || read.arch->design != FT_DECODER_ONLY) return FT_OK;
    ft_plan plan = {0};
    ft_status status = plan_of(document, &read, &asked, err);
    if (status == FT_OK) status = ft__plan_request_read(asked, &request, err);
    if (status == FT_OK) status = ft__plan_best(ft, scratch, &request, &plan, err);
    if (status == FT_OK) {
        json_t *id = ft__key_get(document, FT_KEY_ID_ID);
        out->tried = true;
        out->framework = plan.search.framework;
        out->candidates = plan.candidates;
        out->forecasts = plan.forecasts;
        out->least_gpus = plan.plan_count ? 0 : ft__plan_least(ft, scratch, &request);
        if (!plan.plan_count)
            snprintf(out->shown, sizeof out->shown, "dp %" PRId64 ", batch %" PRId64 ", zero %d", read.parallel.dp,
                     read.work.batch, read.parallel.zero);
        if (plan.plan_count) out->request = ft__plan_json(&plan, &plan.plans[0].layout);
        if (plan.plan_count && (!out->request || (id && !ft__key_set(out->request, FT_KEY_ID_ID, json_incref(id)))))
            status = ft__no_memory(err);
    }
    ft__plan_free(&plan);
    ft__plan_request_free(&request);
    json_decref(asked);
    return status;
}

void ft__planned_free(ft_planned *p)
{
    json_decref(p->request);
    p->request = NULL;
}
