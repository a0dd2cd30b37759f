/* One step on one GPU: how long it takes, where the time goes, what memory it needs.
 *
 * Two streams. The host issues operators one after the other, each costing it some microseconds; the GPU runs their
 * kernels in order, none before it was issued. Whoever is late sets the pace, so that small batches come out
 * overhead-bound without being told. A block that repeats is walked until its rhythm repeats, then multiplied. */
#ifndef FT_TIMELINE_STEP_H
#define FT_TIMELINE_STEP_H
#include "kernel/host.h"
#include "kernel/predictor.h"
#include "model/workload.h"

/* One kernel of the step: a node with its forecast. */
typedef struct ft_timed {
    int32_t node, block;
    double times;         /* launches per step: count * the block's repeat */
    ft_forecast forecast; /* of one launch */
} ft_timed;

/* reserved + context within the device; only the peak, or perhaps; not even that (memory/verdict.c). */
typedef enum ft_fit { FT_FIT_YES, FT_FIT_TIGHT, FT_FIT_NO, FT_FIT_COUNT } ft_fit;

typedef struct ft_memory {
    double weights_bytes, gradients_bytes, optimizer_bytes, activations_bytes, temporary_bytes, kv_cache_bytes;
    double communication_bytes, context_bytes;
    double peak_bytes;     /* what the framework's allocator reports as its peak */
    double reserved_bytes; /* with its caching and fragmentation */
    double host_bytes;     /* optimizer states that lie in the host's memory or on its drives */
    double streamed_bytes; /* weights that lie there and are copied in as they are read */
    double away_bytes;     /* activations of one micro-batch that wait in the host's memory */
    double paged_bytes;    /* optimizer states in unified memory that find no room on the GPU */
    double saved_bytes;    /* activations that one micro-batch leaves for its backward pass, wherever the peak is */
    double capacity_bytes;
    ft_fit verdict;
    bool fits;           /* the verdict is not no */
    double chance_fits;  /* of a peak within the device */
    ft_phase peak_phase; /* when the peak happens, and where */
    const char *peak_block, *peak_node;
    int64_t peak_layer; /* of a block that repeats, as the model counts them from 0; -1 */
    const char *remedy; /* when it does not fit: the smallest change that makes it fit; "" */
} ft_memory;

/* What offloading adds to a training step (ranks/offload.c). */
typedef struct ft_offload_cost {
    double update_ms;  /* the host's update, with the drives that it waits for */
    double copies_ms;  /* copies of states and activations, hidden or not */
    double exposed_ms; /* what of these the step waits for */
    double copied_bytes;
} ft_offload_cost;

typedef struct ft_step {
    double step_ms, low_ms, high_ms;
    double busy_ms;                  /* the GPU's share: sum of kernels */
    double idle_ms;                  /* the GPU waits for the host */
    double host_ms;                  /* the host's own time, hidden or not */
    double update_pass_ms;           /* of it, before the update: Python, hooks of every parameter */
    double phase_ms[FT_PHASE_COUNT]; /* of busy */
    double class_ms[FT_CLASS_COUNT], class_flops[FT_CLASS_COUNT];
    double regime[4]; /* shares of step_ms by ft_bound */
    ft_bound bound;
    double model_flops; /* forward and backward once, a causal mask by halves */
    double executed_flops;
    double mfu, hfu, tokens_per_s, model_tflops;
    /* Shares of busy_ms by source: measured on this very GPU, on one of its name, on one of its generation, on none of
     * it, and nothing but the roofline. */
    double calibrated, learned, sibling, physics, roofline;
    double launches;
    double comm_ms;                     /* exchanges of the busiest rank, hidden or not */
    double comm_exposed_ms;             /* that nothing hides */
    double bubble_ms;                   /* its stage waits for others */
    double axis_ms[FT_AXIS_COUNT];      /* exchanges by axis of the layout */
    int64_t ranks, micros, worst_stage; /* worst: by memory */
    const struct ft_pace *pace;         /* what the streams were walked with (stream.h), for whoever walks them again */
    ft_timed *kernels;                  /* in order of execution, equal neighbours not merged; in the arena */
    int32_t kernel_count;
    ft_memory memory;
    const struct ft_lifetimes *lives; /* of its tensors (memory/lifetime.h), for whoever counts them again */
    ft_offload_cost offload;
    int frozen_passes;     /* forward passes beside those that are trained (ranks/complete.c) */
    double reference_ms;   /* what they take */
    double critic_ms;      /* training PPO's value model after it */
    double rollout_ms;     /* generating what is trained on, before the step (study/rollout.c) */
    double refit_ms;       /* of it, passing new weights to what generates */
    double onload_ms;      /* of idle_ms: what had left for the host while others generated comes back */
    double rollout_joules; /* of its kernels */
} ft_step;

/* Forecasts of equal operators are made once. One per thread; survives requests on the same device. */
typedef struct ft_memo ft_memo;
ft_memo *ft__memo_new(void);
void ft__memo_free(ft_memo *m);
/* As ft__kernel_forecast; keyed by predictor, device and every figure of the operator. */
ft_status ft__memo_forecast(ft_memo *m, const ft_predictor *p, const ft_device *device, const ft_op *op,
                            double quantile, ft_forecast *out, ft_error *err);

/* Inference of which a pass is issued while the one before it runs. */
bool ft__step_ahead(const ft_workload *work);
/* Who issues a step's kernels, and how. */
ft_issuer ft__step_host(const ft_workload *work, const ft_device *device);
ft_status ft__step_forecast(const ft_graph *g, const ft_workload *work, const ft_device *device, const ft_predictor *p,
                            double quantile, ft_memo *memo, ft_arena *arena, ft_step *out, ft_error *err);
/* Dense TFLOP/s that MFU is measured by, and of which format; `of` may be NULL. */
double ft__step_peak(const ft_device *device, ft_dtype dtype, ft_dtype *of);
/* Half-widths that are known at 0.9, for another share of cases: 1 at 0.9, otherwise as a normal distribution has
 * them. */
double ft__interval_level(double quantile);
/* Whatever errors add up to: how far below a time its interval may begin, as a share of it, and where at the least. */
double ft__interval_below(double share);
double ft__interval_least(double ms);
/* Memory over the step alone (memory.c); ft__step_forecast calls it. */
ft_status ft__step_memory(const ft_graph *g, const ft_workload *work, const ft_device *device, ft_memory *out,
                          ft_error *err);
/* The same, with what was found of equal steps before; `memo` may be NULL. */
ft_status ft__step_memory_memoized(const ft_graph *g, const ft_workload *work, const ft_device *device, ft_memo *memo,
                                   ft_memory *out, ft_error *err);

/* What one rank of many holds of the step and beside it. The peak is where all of it together is most: gradients that
 * are sharded as they are made do not pile up, and what waits for the backward pass is gone at the update. */
typedef struct ft_memory_share {
    double weights[2], gradients[2], optimizer[2]; /* parts that this rank keeps; [1]: of experts */
    double gradient_bytes;                         /* of an element of those kept beside fp32 copies; 0: the stack's */
    double waiting_bytes;                          /* activations of other micro-batches, until the update */
    double moving_bytes[FT_PHASE_COUNT];           /* parameters gathered, gradients on their way: communication */
    double head_moving_bytes, embed_moving_bytes;  /* the same while what is behind or before the layers is undone */
    double update_elements;                        /* how many an update takes at a time; 0: all */
    double flat_bucket_bytes;                      /* DeepSpeed's bucket: gradients, states are stretches; 0: no */
    double apart_bytes;                            /* buffers that other streams cache: reserved, not allocated */
    bool fsdp;                                     /* PyTorch's: shards are the fp32 copies, gradients come and go */
    bool flat_third;                               /* of those its third stage */
    bool keeps_checkpoints;                        /* with their gradients, until the backward pass is over */
} ft_memory_share;
/* `share` NULL: a GPU alone. Births and deaths are looked for the first time that a graph is counted, with *lives NULL,
 * and are in its arena then. */
ft_status ft__step_memory_shared(const ft_graph *g, const ft_workload *work, const ft_device *device,
                                 const ft_memory_share *share, ft_memo *memo, const struct ft_lifetimes **lives,
                                 ft_memory *out, ft_error *err);

/* Live bytes while one kernel runs, its workspace counted as temporary. */
typedef struct ft_memory_point {
    int32_t block, node;
    int64_t iteration;
    double gradients_bytes, activations_bytes, temporary_bytes, kv_cache_bytes;
} ft_memory_point;
/* The same sweep with every moment kept, in the graph's arena. Of a block that repeats more than four times the first
 * two and the last two iterations are there: bytes are linear in between. */
typedef struct ft_memory_curve {
    ft_memory_point kept; /* there all the time, beside weights and optimizer states: add it to every point */
    ft_memory_point *points;
    size_t count, room;
    bool failed;
} ft_memory_curve;
/* `curve` may be NULL. */
ft_status ft__step_memory_curve(const ft_graph *g, const ft_workload *work, const ft_device *device, ft_memory *out,
                                ft_memory_curve *curve, ft_error *err);
#endif
