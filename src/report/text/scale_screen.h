/* Scaling: closed forms beside the timeline, and curves over the number of GPUs, as text, JSON and CSV. */
#ifndef FT_REPORT_TEXT_SCALE_SCREEN_H
#define FT_REPORT_TEXT_SCALE_SCREEN_H
#include "explain/scaling.h"
#include "report/text/step_screen.h"

/* Where the exchange of gradients (and of parameters) takes as long as the arithmetic it hides behind. */
typedef struct ft_scale_knee {
    char name[40];           /* "FSDP, tp 8" */
    const char *key;         /* in JSON */
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
    double tokens_per_s;            /* per GPU */
    double efficiency;              /* to the fewest GPUs of the curve */
    double mfu, comm_ms, exposed_ms, bubble_ms, peak_bytes;
    bool fits;
} ft_scale_point;

enum { FT_SCALE_KNEES = 5, FT_SCALE_DEGREES = 12, FT_SCALE_POINTS = 24 };

typedef struct ft_scale {
    const char *model, *dtype_name;
    ft_device device;
    char understood[400];    /* the cluster */
    ft_workload work;
    ft_parallel parallel;    /* of the curves' last point */
    double parameters, active_parameters;
    int64_t gpus, experts, topk;
    bool images;             /* rates count samples, not tokens */
    ft_scaling closed;
    ft_scale_knee knees[FT_SCALE_KNEES];
    ft_scale_degree tensor[FT_SCALE_DEGREES], expert[FT_SCALE_DEGREES];
    ft_scale_point strong[FT_SCALE_POINTS], weak[FT_SCALE_POINTS];
    size_t knee_count, tensor_count, expert_count, strong_count, weak_count;
    double pipeline_hop;     /* timeline: one send over one stage's forward pass; 0: no pipeline */
    double pipeline_bubble;  /* timeline: waiting over the rest of the step */
} ft_scale;

/* Degree at which the timeline's ratio passes 1, between the degrees that were tried; 0: at none of them. */
double ft__scale_crossing(const ft_scale_degree *d, size_t count);

bool ft__screen_scale(ft_text *out, const ft_style *style, const ft_scale *s);
/* Appends a step on `gpus` to a curve; its efficiency is against the curve's first point. */
void ft__scale_add(ft_scale_point *curve, size_t *count, int64_t gpus, int64_t dp, int64_t batch, int64_t global,
                   const ft_step *step);
void ft__answer_scale(ft_text *out, const ft_scale *s);
bool ft__csv_scale(ft_text *out, const ft_scale *s);
#endif
