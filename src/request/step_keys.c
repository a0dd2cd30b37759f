/* step_keys.c: what most training requests leave out: the loss, packing, moments, averages, a power limit. */
#include "request/step_keys.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/spec.h"
#include "kernel/energy.h"
#include "kernel/power.h"
#include "request/keys.h"

/* Attention reads pairs of tokens of one document, so that of documents of many lengths the mean by tokens counts: the
 * sum of squares over the sum. */
static ft_status read_packing(const json_t *value, int64_t *out, ft_error *err)
{
    static const char form[] =
        "\"packing\" must be the tokens of a document, a whole number from 1 on, or a list of them: 512, [100, 900]";
    const char *flag = json_string_value(value); /* numbers with commas */
    size_t count = json_is_array(value) ? json_array_size(value) : 1;
    double sum = 0, squares = 0;
    for (size_t i = 0; flag ? *flag != 0 : i < count; i++) {
        double length = json_number_value(json_is_array(value) ? json_array_get(value, i) : value);
        if (flag) {
            char *end = NULL;
            length = strtod(flag, &end);
            if (end == flag || (*end && *end != ',')) length = 0;
            flag = *end == ',' ? end + 1 : end;
        }
        if (!(length >= 1) || length > (double)FT_LARGEST_SIZE)
            return ft__fail_at(err, FT_E_RANGE, "packing", 0, 0, "%s; element %zu is not such a number", form, i + 1);
        sum += length;
        squares += length * length;
    }
    if (!(sum > 0)) return ft__fail_at(err, FT_E_TYPE, "packing", 0, 0, "%s", form);
    *out = (int64_t)floor(squares / sum + 0.5);
    return FT_OK;
}

/* Policies keep results by names: where nothing is said of recomputation they ask for it. */
static ft_status settle_policy(const ft_said *said, ft_workload *w, ft_error *err)
{
    if (!ft__given(said, FT_KEY_ID_REMAT)) return FT_OK;
    if (ft__stack(w)->selective == FT_SELECTIVE_CORE_ATTENTION && w->task == FT_TRAIN)
        return ft__fail_at(err, FT_E_RANGE, "remat_policy", 0, 0,
                           "the stack \"%s\" has no policies by names of results; \"recompute_modules\" says what runs "
                           "again there",
                           ft__stack(w)->name);
    if (!ft__given(said, FT_KEY_ID_RECOMPUTE)) w->recompute = FT_RECOMPUTE_FULL;
    for (unsigned i = 0; i < sizeof ft__remat_masks / sizeof *ft__remat_masks; i++)
        if (ft__whole_of(said, FT_KEY_ID_REMAT) & 1 << i) w->spared |= ft__remat_masks[i];
    return FT_OK;
}

/* What Megatron-Core asserts of modules that are captured together (core/transformer/transformer_config.py). */
static ft_status settle_graphs(const ft_said *said, ft_workload *w, ft_error *err)
{
    const unsigned moe = 1u << FT_GRAPHED_MOE, router = 1u << FT_GRAPHED_MOE_ROUTER,
                   preprocess = 1u << FT_GRAPHED_MOE_PREPROCESS, whole = 1u << FT_GRAPHED_FULL_ITERATION;
    const char *wrong = NULL;
    if (!ft__given(said, FT_KEY_ID_GRAPHED)) return FT_OK;
    const unsigned asked = (unsigned)ft__whole_of(said, FT_KEY_ID_GRAPHED);
    if (w->task == FT_TRAIN && ft__stack(w)->selective != FT_SELECTIVE_CORE_ATTENTION)
        wrong = "\"cuda_graph_modules\" are Megatron-Core's: \"execution\" must be \"fused\"; \"cuda_graph\" replays "
                "all of "
                "a step";
    else if (asked & whole && asked != whole)
        wrong = "\"full_iteration\" captures everything: it must be the only entry of \"cuda_graph_modules\"";
    else if (asked & moe && asked & (router | preprocess))
        wrong = "\"moe\" includes the router: it and \"moe_router\" cannot both be captured";
    else if (asked & preprocess && !(asked & router))
        wrong = "\"moe_preprocess\" is captured with the router alone: name \"moe_router\" too";
    if (wrong) return ft__fail_at(err, FT_E_RANGE, "cuda_graph_modules", 0, 0, "%s", wrong);
    w->graphed = asked;
    return FT_OK;
}

static ft_status settle_offload(const ft_said *said, const ft_parallel *p, ft_workload *w, ft_error *err)
{
    const unsigned weights = 1u << FT_OFFLOAD_PARAMETERS;
    const unsigned host = 1u << FT_OFFLOAD_OPTIMIZER, drives = 1u << FT_OFFLOAD_OPTIMIZER_NVME,
                   pages = 1u << FT_OFFLOAD_PAGED_OPTIMIZER;
    if (!ft__given(said, FT_KEY_ID_OFFLOAD)) return FT_OK;
    w->offload = (unsigned)ft__whole_of(said, FT_KEY_ID_OFFLOAD);
    if (ft__given(said, FT_KEY_ID_OFFLOAD_LAYERS) && ft__offloads(w, FT_OFFLOAD_ACTIVATIONS))
        w->offload_layers = ft__whole_of(said, FT_KEY_ID_OFFLOAD_LAYERS);
    if (w->offload_layers > 0 && p->pp > 1)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "offload_layers", 0, 0,
                           "\"offload_layers\" is forecast without \"pp\"");
    w->host_gbps = ft__real_of(said, FT_KEY_ID_HOST_GBPS);
    w->nvme_gbps = ft__real_of(said, FT_KEY_ID_NVME_GBPS);
    if ((w->offload & weights) && p->dp * p->cp > 1 && p->zero < 3)
        return ft__fail_at(err, FT_E_RANGE, "offload", 0, 0,
                           "\"parameters\" on the host are sharded over data ranks: \"zero\" must be 3, not %d",
                           p->zero);
    if ((w->offload & pages) && (w->offload & (host | drives | weights)))
        return ft__fail_at(err, FT_E_RANGE, "offload", 0, 0,
                           "states are either paged or on the host, not both: \"paged_optimizer\" or \"%s\"",
                           ft__offload_words[w->offload & drives    ? FT_OFFLOAD_OPTIMIZER_NVME
                                             : w->offload & weights ? FT_OFFLOAD_PARAMETERS
                                                                    : FT_OFFLOAD_OPTIMIZER]);
    if ((w->offload & (host | drives | weights)) && w->updates_in_backward)
        return ft__fail_at(err, FT_E_RANGE, "offload", 0, 0,
                           "the host updates weights after the backward pass: \"optimizer_in_backward\" must be false");
    return FT_OK;
}

static ft_status settle_answers(const ft_said *said, ft_workload *w, ft_error *err)
{
    const bool given = ft__given(said, FT_KEY_ID_ROLLOUT);
    ft_answers *a = &w->answers;
    *a = (ft_answers){.tokens = given ? ft__whole_of(said, FT_KEY_ID_ROLLOUT) : w->seq - w->seq / 2,
                      .longest = ft__whole_of(said, FT_KEY_ID_ROLLOUT_LONGEST),
                      .samples = ft__whole_of(said, FT_KEY_ID_ROLLOUT_SAMPLES),
                      .tp = ft__whole_of(said, FT_KEY_ID_ROLLOUT_TP),
                      .at_once = ft__whole_of(said, FT_KEY_ID_ROLLOUT_SEQUENCES),
                      .engine = (ft_rollout_engine)ft__word_of(said, FT_KEY_ID_ROLLOUT_ENGINE),
                      .graphs = ft__switch_of(said, FT_KEY_ID_ROLLOUT_GRAPHS),
                      .memory = ft__real_of(said, FT_KEY_ID_ROLLOUT_MEMORY),
                      .gpus = ft__whole_of(said, FT_KEY_ID_ROLLOUT_GPUS),
                      .ahead = ft__switch_of(said, FT_KEY_ID_ROLLOUT_ASYNC),
                      .age = ft__whole_of(said, FT_KEY_ID_ROLLOUT_AGE),
                      .updates = ft__whole_of(said, FT_KEY_ID_ROLLOUT_UPDATES),
                      .pack = ft__whole_of(said, FT_KEY_ID_ROLLOUT_PACK),
                      .forward = ft__whole_of(said, FT_KEY_ID_ROLLOUT_PACK_LOGPROBS),
                      .away = (unsigned)ft__whole_of(said, FT_KEY_ID_ROLLOUT_OFFLOAD),
                      .refit = (ft_refit)ft__word_of(said, FT_KEY_ID_ROLLOUT_REFIT)};
    if (a->tokens >= w->seq && (given || w->seq < 2))
        return ft__fail_at(err, FT_E_RANGE, "rollout_tokens", 0, 0,
                           "\"rollout_tokens\" %lld leave no prompt: sequences have \"seq\" %lld tokens",
                           (long long)a->tokens, (long long)w->seq);
    if (a->longest > 0 && a->longest < a->tokens)
        return ft__fail_at(err, FT_E_RANGE, "rollout_longest", 0, 0,
                           "\"rollout_longest\" %lld is less than the mean answer, \"rollout_tokens\" %lld",
                           (long long)a->longest, (long long)a->tokens);
    return FT_OK;
}

/* Of pairs "batch" counts pairs: each is two sequences. */
static ft_status settle_trainer(const ft_said *said, ft_model_request *out, ft_error *err)
{
    ft_workload *w = &out->work;
    w->reference = ft__given(said, FT_KEY_ID_REFERENCE) ? ft__switch_of(said, FT_KEY_ID_REFERENCE)
                                                        : w->trainer == FT_TRAINER_DPO || w->trainer == FT_TRAINER_PPO;
    if (w->trainer == FT_TRAINER_SFT) return FT_OK;
    if (out->arch->design != FT_DECODER_ONLY || !out->arch->lm_head)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "trainer", 0, 0,
                           "\"%s\" is about answers of a language model, which \"%s\" is not",
                           ft__trainer_words[w->trainer], out->arch->model_type);
    w->batch *= ft__sequences_each(w->trainer);
    if (!ft__generates(w->trainer)) return FT_OK;
    w->old_logprobs = !ft__given(said, FT_KEY_ID_OLD_LOGPROBS) || ft__switch_of(said, FT_KEY_ID_OLD_LOGPROBS);
    return settle_answers(said, w, err);
}

ft_status ft__step_keys_settle(const json_t *object, const ft_said *said, ft_model_request *out, ft_error *err)
{
    ft_workload *w = &out->work;
    const json_t *packing = ft__key_get(object, FT_KEY_ID_PACKING);
    int moments = ft__word_of(said, FT_KEY_ID_MOMENTS);
    const bool loss_of_stack = w->stack && !ft__given(said, FT_KEY_ID_LOSS);
    w->loss = loss_of_stack ? w->stack->loss : (ft_entropy)ft__word_of(said, FT_KEY_ID_LOSS);
    w->loss_positions = ft__given(said, FT_KEY_ID_LOSS_POSITIONS) ? ft__whole_of(said, FT_KEY_ID_LOSS_POSITIONS) : 0;
    w->mtp = ft__whole_of(said, FT_KEY_ID_MTP);
    w->source = ft__whole_of(said, FT_KEY_ID_SOURCE);
    w->ema = ft__switch_of(said, FT_KEY_ID_EMA);
    w->moment_bytes = moments >= 0 ? ft__moment_bytes[moments] : 0;
    w->updates_in_backward = ft__switch_of(said, FT_KEY_ID_IN_BACKWARD) && w->optimizer != FT_NO_OPTIMIZER;
    w->expandable_segments = ft__switch_of(said, FT_KEY_ID_EXPANDABLE);
    w->recompute_layers = ft__whole_of(said, FT_KEY_ID_RECOMPUTE_LAYERS);
    FT_TRY(settle_policy(said, w, err));
    FT_TRY(settle_graphs(said, w, err));
    FT_TRY(settle_offload(said, &out->parallel, w, err));
    w->trainer = (ft_trainer)ft__word_of(said, FT_KEY_ID_TRAINER);
    if (w->task == FT_TRAIN) FT_TRY(settle_trainer(said, out, err));
    if (packing) FT_TRY(read_packing(packing, &w->packed, err));
    if (w->packed > 0 && out->parallel.cp > 1)
        return ft__fail_at(
            err, FT_E_UNSUPPORTED, "packing", 0, 0,
            "\"packing\" is not forecast with \"cp\": ranks that share a sequence share documents unevenly");
    if (w->updates_in_backward && (w->accumulate > 1 || w->clip))
        return ft__fail_at(err, FT_E_RANGE, "optimizer_in_backward", 0, 0,
                           "a weight that is updated in the backward pass has no gradient left to %s",
                           w->clip ? "clip: \"clip_grad\" must be false" : "add micro-batches to");
    if (w->loss_positions > w->seq)
        return ft__fail_at(err, FT_E_RANGE, "loss_positions", 0, 0, "a sequence has %lld positions, not %lld",
                           (long long)w->seq, (long long)w->loss_positions);
    if (w->loss_positions > 0 && w->loss_positions < w->seq && (out->parallel.cp > 1 || out->parallel.sp))
        return ft__fail_at(
            err, FT_E_UNSUPPORTED, "loss_positions", 0, 0,
            "\"loss_positions\" is forecast where ranks have whole sequences: not with \"cp\" or \"sp\"");
    if (w->offload_layers > out->arch->layers && out->arch->layers > 0)
        return ft__fail_at(err, FT_E_RANGE, "offload_layers", 0, 0, "the model has %lld layers",
                           (long long)out->arch->layers);
    if (w->recompute_layers > 0 && out->parallel.pp > 1)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "recompute_layers", 0, 0,
                           "\"recompute_layers\" is forecast without \"pp\"");
    if (w->recompute_layers > out->arch->layers && out->arch->layers > 0)
        return ft__fail_at(err, FT_E_RANGE, "recompute_layers", 0, 0, "the model has %lld layers",
                           (long long)out->arch->layers);
    return FT_OK;
}

/* The name stays: measurements, the host beside it and what it draws at rest are those of the same board. */
ft_status ft__capped_gpu(const json_t *gpu, const ft_device *device, const ft_said *said, json_t **out, ft_error *err)
{
    *out = NULL;
    if (!ft__given(said, FT_KEY_ID_POWER_CAP)) return FT_OK;
    double watts = ft__real_of(said, FT_KEY_ID_POWER_CAP), awake = ft__watts_awake(device);
    if (!json_is_string(gpu))
        return ft__fail_at(err, FT_E_TYPE, "power_cap_w", 0, 0,
                           "\"power_cap_w\" goes with a GPU's name; an object has a \"power_cap_w\" of its own");
    if (device->tdp_w > 0 && watts >= ft__watts_limit(device)) return FT_OK;
    if (watts <= awake)
        return ft__fail_at(err, FT_E_RANGE, "power_cap_w", 0, 0,
                           "an idle %s draws %.3g W of its %g: its board cannot be capped at %g", device->name, awake,
                           device->tdp_w, watts);
    char start[48], title[sizeof device->title];
    ft__spec_cut(start, sizeof start, *device->title ? device->title : device->name);
    snprintf(title, sizeof title, "%s at %.4g W", start, watts);
    json_t *price = device->price_usd_per_hour > 0 ? json_real(device->price_usd_per_hour) : json_null();
    *out = json_pack("{ss ss ss sf sO}", "base", json_string_value(gpu), "name", device->name, "title", title,
                     "power_cap_w", watts, "price_usd_per_hour", price);
    json_decref(price);
    return *out ? FT_OK : ft__no_memory(err);
}
