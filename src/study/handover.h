/* What changes hands between engines that generate and what trains on the same model. */
#ifndef FT_STUDY_HANDOVER_H
#define FT_STUDY_HANDOVER_H
#include "study/context.h"
#include "study/rollout.h"

/* Bytes of all weights as they travel, and matrices of a checkpoint, experts' as one. */
typedef struct ft_parcel {
    double bytes, tensors;
} ft_parcel;

/* Adds new weights for engines on so many GPUs. */
ft_status ft__handover_refit(const ft_context *ft, const ft_model_request *r, const ft_parcel *weights, int64_t gpus,
                             double quantile, ft_rollout *sum, ft_error *err);
/* Of a step that was forecast: what leaves for the host beside that, in `rollout`, and what comes back, in the step. */
void ft__handover_host(ft_rollout *rollout, ft_step *step);
#endif
