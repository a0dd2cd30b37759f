/* handover.c: what changes hands between engines that generate and what trains on the same model.
 *
 * New weights: every GPU gathers all of them and loads its part; what a matrix costs beside the links is the host's,
 * more where each travels by itself (verl's per_tensor_generator) than in buckets of many (NeMo RL's packed tensors,
 * verl's checkpoint engine).
 *
 * On the same GPUs one leaves for the host so that the other has room. NeMo RL (models/policy, offload_before_refit,
 * offload_after_refit, prepare_for_training) copies optimizer states and weights into memory that is not pinned and
 * allocated anew each time, and back. On Megatron its reference lies on the host as well (use_reference_model): the
 * weights leave, the copy comes, and after its pass the weights come back. Beside engines on GPUs of their own weights
 * stay; its releases up to 0.4 send the states away for the passes that only go forward (pull request 1404). */
#include "study/handover.h"

#include "comm/collective.h"
#include "study/rollout_constants.h"

enum { US_PER_MS = 1000 };

/* Matrices of experts, which the graph has as one. */
static double experts(const ft_arch *a)
{
    enum { MATRICES = 3 };
    if (a->experts < 2) return 0;
    const double layers = (double)(a->layers - a->first_dense) / (double)(a->moe_every > 1 ? a->moe_every : 1);
    return layers * (double)(a->experts - 1) * MATRICES;
}

ft_status ft__handover_refit(const ft_context *ft, const ft_model_request *r, const ft_parcel *weights, int64_t gpus,
                             double quantile, ft_rollout *sum, ft_error *err)
{
    const bool many = r->work.answers.refit == FT_REFIT_BUCKETS;
    const double tensors = (weights->tensors + experts(r->arch)) / US_PER_MS;
    ft_comm gathered = {0};
    if (gpus > 1) {
        ft_cluster cluster;
        const ft_group all = {.size = gpus, .stride = 1, .narrow = -1, .in_step = true};
        FT_TRY(ft__cluster_read(r->cluster, r->device, gpus, &cluster, err));
        FT_TRY(ft__collective_forecast(ft__context_predictor(ft), r->device, &cluster, FT_COLLECTIVE_ALL_GATHER,
                                       weights->bytes, &all, quantile, &gathered, err));
    }
    sum->refit_ms = gathered.ms + tensors * (many ? FT_K_ROLLOUT_BUCKET_US : FT_K_ROLLOUT_REFIT_US);
    sum->ms += sum->refit_ms;
    sum->low_ms += gathered.low_ms + tensors * (many ? FT_K_ROLLOUT_BUCKET_LEAST_US : FT_K_ROLLOUT_REFIT_LEAST_US);
    sum->high_ms += gathered.high_ms + tensors * (many ? FT_K_ROLLOUT_BUCKET_MOST_US : FT_K_ROLLOUT_REFIT_MOST_US);
    return FT_OK;
}

/* Milliseconds of a copy: bytes / (GB/s) in ms. */
static double copied(double bytes, double gbps) { return bytes / gbps * 1e-6; }

static void rollout_longer(ft_rollout *r, double bytes)
{
    const double ms = copied(bytes, FT_K_ROLLOUT_UNPINNED_GBPS);
    r->refit_ms += ms;
    r->ms += ms;
    r->low_ms += copied(bytes, FT_K_ROLLOUT_UNPINNED_MOST_GBPS);
    r->high_ms += copied(bytes, FT_K_ROLLOUT_UNPINNED_LEAST_GBPS);
}

static double step_longer(ft_step *s, double bytes)
{
    const double ms = copied(bytes, FT_K_ROLLOUT_UNPINNED_GBPS);
    s->step_ms += ms;
    s->low_ms += copied(bytes, FT_K_ROLLOUT_UNPINNED_MOST_GBPS);
    s->high_ms += copied(bytes, FT_K_ROLLOUT_UNPINNED_LEAST_GBPS);
    return ms;
}

void ft__handover_host(ft_rollout *rollout, ft_step *step)
{
    const double weights = rollout->away & 1u << FT_AWAY_WEIGHTS ? step->memory.weights_bytes : 0;
    const double states = rollout->away & 1u << FT_AWAY_OPTIMIZER ? step->memory.optimizer_bytes : 0;
    const double before = step->step_ms;
    if (!rollout->apart) rollout_longer(rollout, weights + states);
    step->onload_ms = step_longer(step, rollout->apart ? 2 * states : weights + states);
    step->idle_ms += step->onload_ms;
    if (rollout->away & 1u << FT_AWAY_REFERENCE) {
        enum { OUT_IN_BACK = 3 };
        const double ms = step_longer(step, OUT_IN_BACK * step->memory.weights_bytes);
        step->reference_ms += ms;
        step->busy_ms += ms;
    }
    const double longer = step->step_ms / before;
    step->tokens_per_s /= longer;
    step->model_tflops /= longer;
    step->mfu /= longer;
    step->hfu /= longer;
    for (int i = 0; i < 4; i++) step->regime[i] /= longer;
    step->regime[FT_BOUND_MEMORY] += 1 - 1 / longer;
}
