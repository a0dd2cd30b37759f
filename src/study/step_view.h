/* A whole-model forecast with everything that was asked: what answers and screens are made from. */
#ifndef FT_STUDY_STEP_VIEW_H
#define FT_STUDY_STEP_VIEW_H
#include "base/text.h"
#include "explain/advice.h"
#include "ranks/ranks.h"
#include "request/words.h"
#include "timeline/energy.h"
#include "timeline/step.h"

typedef struct ft_step_view {
    const char *model;      /* as the user calls it */
    const char *dtype_name; /* "amp_bf16" */
    const ft_arch *arch;
    const ft_workload *work;
    const ft_device *device;
    const struct ft_stack *stack; /* the software, named or following from the rest */
    const ft_graph *graph;
    const ft_step *step;
    const ft_parallel *parallel; /* NULL: one GPU */
    const ft_cluster *cluster;
    const ft_ranked *ranked;
    double quantile;
    double tokens; /* of a whole training run; 0: none was asked for */
    ft_detail detail;
    bool course;            /* the answer has the step over time */
    unsigned pictures;      /* bits by ft_picture: drawings in the answer */
    bool memory_only;       /* no times were forecast */
    const char *warnings;   /* one per line; "" for none */
    const ft_change *asked; /* the request as advice changes it; NULL where nothing was to be explained */
    const ft_advised *advised;
    ft_loading loading;                    /* how its samples arrive */
    const struct ft_lengths_view *lengths; /* sequences of many lengths (study/lengths.h); NULL: of one */
    const struct ft_scale *scale;          /* the same step on more GPUs (study/scale.h); NULL: not asked */
    ft_arena *arena;                       /* for what a report has to add up */
} ft_step_view;

/* Kernels of the step that are one in everything but their place: name, operator, sizes, phase and block. */
typedef struct ft_merged {
    const ft_node *node;
    const ft_block *block;
    const ft_forecast *forecast; /* of one launch */
    double count;                /* launches per step */
    double total_ms;
} ft_merged;
/* In order of execution; NULL when memory is exhausted. */
ft_merged *ft__merge_kernels(const ft_step_view *v, size_t *count);

/* One forward block with what its backward pass adds. */
typedef struct ft_layer {
    const char *name;
    double repeat;
    double forward_ms, backward_ms, recompute_ms; /* all iterations of all micro-batches */
    double flops, parameters, saved_bytes;        /* saved: activations kept for the backward pass */
} ft_layer;
/* The forward blocks in order, then "update" where there is an optimizer, then "unread" where parameters lie idle. NULL
 * when memory is exhausted. */
ft_layer *ft__layers(const ft_step_view *v, size_t *count);

/* What one GPU draws over the step. */
ft_energy ft__view_energy(const ft_step_view *v);

/* It has attention of the kind that the request names; convolutions and state spaces have none. */
bool ft__view_attends(const ft_step_view *v);

/* -- many GPUs: of a view with `ranked` ---------------------------------------------------------- */

/* GPUs of the step; 1 without a layout. */
int64_t ft__view_gpus(const ft_step_view *v);
/* Parameters of the whole model, where the graph at hand is one rank's share. False: out of memory, as below. */
bool ft__view_parameters(const ft_step_view *v, double *all, double *active);
/* The stage whose kernels are shown: the one that takes longest for a micro-batch. */
int64_t ft__slowest_stage(const ft_step_view *v);
/* Micro-batches whose activations a stage holds at once. */
double ft__in_flight(const ft_step_view *v, int64_t stage);
/* Where a chunk's part of its stage's pass begins and ends, of 1: going back the last chunk comes first. */
void ft__chunk_span(const ft_stage *stage, bool forward, int64_t chunk, double *from, double *to);
/* Overhead that is mostly waiting for other stages is a pipeline's bubble, and no launch's. And the bubble's share of
 * the step, of overhead's. */
bool ft__bound_by_bubble(const ft_step *s);
double ft__bubble_share(const ft_step *s);
/* From the end of a kernel to the begin of the next: what phases, exchanges, bubble and waiting leave of the step. On
 * many GPUs it is counted as waiting. */
double ft__between_ms(const ft_step *s);
/* Of the exchanges along each axis, what nothing hides. */
bool ft__axes_exposed(const ft_step_view *v, double out[FT_AXIS_COUNT]);
extern const char *const ft__axis_words[FT_AXIS_COUNT]; /* "tensor" */
/* Tokens or samples per second of all GPUs together. */
double ft__view_tokens_per_s(const ft_step_view *v);
double ft__view_samples_per_s(const ft_step_view *v);

#endif
