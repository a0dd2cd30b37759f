/* A whole-model forecast with everything that was asked: what answers and screens are made from. */
#ifndef FT_REPORT_STEP_VIEW_H
#define FT_REPORT_STEP_VIEW_H
#include "base/text.h"
#include "timeline/ranks.h"
#include "timeline/step.h"

typedef enum ft_detail { FT_SUMMARY, FT_LAYERS, FT_KERNELS } ft_detail;

typedef struct ft_step_view {
    const char *model;      /* as the user calls it */
    const char *dtype_name; /* "amp_bf16" */
    const ft_arch *arch;
    const ft_workload *work;
    const ft_device *device;
    const ft_graph *graph;
    const ft_step *step;
    const ft_parallel *parallel; /* NULL: one GPU */
    const ft_cluster *cluster;
    const ft_ranked *ranked;
    double quantile;
    ft_detail detail;
    bool memory_only;       /* no times were forecast */
    const char *warnings;   /* one per line; "" for none */
    ft_arena *arena;        /* for what a report has to add up */
} ft_step_view;

/* The words of requests, by the enums of model/workload.h. */
extern const char *const ft__task_words[FT_TASK_COUNT];
extern const char *const ft__attention_words[3];
extern const char *const ft__execution_words[5];
extern const char *const ft__cache_words[3];
extern const char *const ft__optimizer_words[FT_OPTIMIZER_COUNT];
extern const char *const ft__recompute_words[3];
extern const char *const ft__detail_words[3];

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

/* Images have no tokens; rates of such models count samples. */
bool ft__counts_samples(const ft_arch *arch);
/* "backward layers mlp.down_proj, iteration 32 of 32": the moment of the peak. */
void ft__add_peak_place(ft_text *out, const ft_step_view *v);
#endif
