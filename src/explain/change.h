/* A request in the words of the rooms below, as remedies change it, and the way to have it forecast again. */
#ifndef FT_EXPLAIN_CHANGE_H
#define FT_EXPLAIN_CHANGE_H
#include "explain/loader.h"
#include "layout/layout.h"
#include "timeline/step.h"

typedef struct ft_change {
    const ft_arch *arch;
    ft_workload work;
    ft_parallel parallel;
    const ft_device *device;
    ft_loader loader;
    int64_t global_batch; /* as the request has it; 0: left out, one micro-batch on every data rank */
    bool zero_raised;     /* "zero" 0, said or not, and the stack that followed shards in any case */
    bool kv_given;        /* the request names the cache's format; else it follows the dtype */
} ft_change;

/* Every field that a key of the request stands for; but for "kv_dtype", which may be left out, and "global_batch", a
 * product: batch x accumulate x dp. */
/* clang-format off */
#define FT_CHANGE_FIELDS(X)                                                                    \
    X(work.batch) X(work.dtype) X(work.autocast) X(work.attention) X(work.execution)           \
    X(work.optimizer) X(work.recompute) X(work.nchw) X(work.cache) X(work.weight_bits)         \
    X(work.lora_rank) X(work.packed) X(work.loss) X(work.stack)                                \
    X(parallel.dp) X(parallel.tp) X(parallel.pp) X(parallel.cp) X(parallel.vpp) X(parallel.ep) \
    X(parallel.etp) X(parallel.dispatch_once) X(parallel.expert_overlap) X(parallel.zero)      \
    X(parallel.sp) X(parallel.overlap) X(parallel.no_overlap) X(parallel.in_pieces)            \
    X(parallel.gather) X(parallel.schedule) X(parallel.bucket_bytes) X(parallel.reduce_bytes)  \
    X(loader.workers) X(loader.pageable) X(loader.samples_per_s_disk)                          \
    X(device)                                                                                  \
    X(arch->vocab) X(arch->ffn) X(arch->hidden)
/* clang-format on */

/* "global_batch" of a request that stands for this; 0: it can do without. */
static inline int64_t ft__change_global(const ft_change *c)
{
    if (c->work.task != FT_TRAIN || (!c->global_batch && c->work.accumulate <= 1)) return 0;
    return c->work.batch * c->work.accumulate * c->parallel.dp;
}

/* Forecasts a request, its input counted. What `out` points to lives until the next call. FT_E_MEMORY ends
 * everything; any other failure means that there is no such request. */
typedef struct ft_reforecast_step {
    ft_step step;
    const ft_graph *graph;
    ft_loading loading;
} ft_reforecast_step;
typedef ft_status (*ft_reforecast)(const ft_change *change, void *user, ft_reforecast_step *out, ft_error *err);

/* Samples that one GPU's step is fed with. */
static inline double ft__change_fed(const ft_change *c)
{
    bool adds_up = c->work.task == FT_TRAIN && c->work.accumulate > 1;
    return (double)c->work.batch * (adds_up ? (double)c->work.accumulate : 1);
}

/* Samples (sequences, images; decoding: tokens) of a step on one GPU: what a saving is counted over. Sharing one
 * sample among GPUs gives each a part of it. */
static inline double ft__change_samples(const ft_change *c)
{
    double shared = (double)(c->parallel.tp * c->parallel.pp * c->parallel.cp);
    return ft__change_fed(c) / (shared > 1 ? shared : 1);
}
#endif
