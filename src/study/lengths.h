/* Steps whose lengths vary: the mean over them, and the memory of the longest. */
#ifndef FT_STUDY_LENGTHS_H
#define FT_STUDY_LENGTHS_H
#include "study/context.h"
#include "study/new_lengths.h"
#include "study/step.h"

/* Tokens of a sequence, over all batches of a run. */
typedef struct ft_lengths_view {
    int64_t typical;                    /* of the step that takes as long as the mean of all does */
    int64_t longest;                    /* of the longest batch of the run */
    double mean, padded;                /* of sequences as they are; of what batches are filled up to */
    double kept;                        /* share of sequences that are trained on */
    double useful;                      /* share of a step's tokens that are no padding */
    double sd_ms, p10_ms, p90_ms;       /* of a step's time, from step to step */
    ft_new_lengths fresh;               /* batches that are the first of their length */
    double waits_ms;                    /* of the mean: for ranks with longer sequences */
    double flops, executed;             /* means, of what the typical step has: shares */
    ft_memory memory;                   /* of the longest batch, reserved after all others */
    char peak_block[64], peak_node[64]; /* its names, whose own graph is gone */
} ft_lengths_view;

/* Forecasts steps of a few lengths, and memory. Empties the scratch's arena. Nothing is done where lengths do not
 * vary: `typical` is 0. */
ft_status ft__lengths_of(const ft_context *ft, ft_scratch *s, const ft_model_request *r, double quantile,
                         ft_lengths_view *out, ft_error *err);
/* Makes the mean of a step of the typical length. */
void ft__lengths_apply(const ft_lengths_view *v, ft_step *step);
#endif
