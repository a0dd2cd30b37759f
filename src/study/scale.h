/* Scaling: closed forms beside the timeline, and curves over the number of GPUs. */
#ifndef FT_STUDY_SCALE_H
#define FT_STUDY_SCALE_H
#include "explain/scaling.h"
#include "request/scale.h"
#include "study/context.h"

/* Where the exchange of gradients (and of parameters) takes as long as the arithmetic it hides behind. */
typedef struct ft_scale_knee {
    char name[40];   /* "FSDP, tp 8" */
    const char *key; /* in JSON */
    ft_parallel parallel;
    double closed, timeline; /* tokens per GPU; timeline 0: exchanges never take so long */
    double math, wire;       /* shares of C and of W that kernels and exchanges reach there */
    double exposed;          /* share of the step that the exchange still adds there */
} ft_scale_knee;

/* One degree of tensor or expert parallelism: exchange over arithmetic, 1 where both take as long. */
typedef struct ft_scale_degree {
    int64_t degree;
    double closed, layer, timeline; /* layer: of the closed form with all of a layer counted; 0: has none */
    double math, wire;              /* shares of C and W; of tensor: timeline = layer * math / wire */
    double tokens_per_s;            /* per GPU */
    double efficiency;              /* to one way, the update left out */
} ft_scale_degree;

typedef struct ft_scale_point {
    int64_t gpus, dp, micros, global_batch;
    double step_ms, low_ms, high_ms;
    double tokens_per_s; /* per GPU */
    double efficiency;   /* to the fewest GPUs of the curve */
    double mfu, comm_ms, exposed_ms, bubble_ms, peak_bytes;
    ft_fit verdict;
    bool fits; /* the verdict is not no */
} ft_scale_point;

enum { FT_SCALE_KNEES = 5, FT_SCALE_DEGREES = 12, FT_SCALE_POINTS = 24 };

typedef struct ft_scale {
    const char *model, *dtype_name;
    ft_device device;
    char understood[400]; /* the cluster */
    ft_cluster cluster;   /* whose names `closed` points to */
    ft_workload work;
    ft_parallel parallel; /* of the curves' last point */
    double parameters, active_parameters;
    int64_t gpus, experts, topk;
    bool images; /* rates count samples, not tokens */
    ft_scaling closed;
    ft_scale_knee knees[FT_SCALE_KNEES];
    ft_scale_degree tensor[FT_SCALE_DEGREES], expert[FT_SCALE_DEGREES];
    ft_scale_point strong[FT_SCALE_POINTS], weak[FT_SCALE_POINTS];
    size_t knee_count, tensor_count, expert_count, strong_count, weak_count;
    double pipeline_hop;    /* timeline: one send over one stage's forward pass; 0: no pipeline */
    double pipeline_bubble; /* timeline: waiting over the rest of the step */
    ft_text warnings;       /* of the request, one per line */
} ft_scale;

/* Free it with ft__scale_free, whatever ft__scale_of said. Names live as long as the request. */
ft_status ft__scale_of(const ft_context *ft, ft_scratch *scratch, const ft_scale_request *r, ft_scale *out,
                       ft_error *err);
/* The curves alone, of a step that was forecast: `request` is what was asked, `v` what came of it, which stays: the
 * steps of the curves have a scratch of their own. */
ft_status ft__scale_of_step(const ft_context *ft, const json_t *request, const ft_step_view *v, ft_scale *out,
                            ft_error *err);
void ft__scale_free(ft_scale *s);

/* Degree at which the timeline's ratio passes 1, between the degrees that were tried; 0: at none of them. */
double ft__scale_crossing(const ft_scale_degree *d, size_t count);
#endif
