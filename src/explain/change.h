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
} ft_change;

/* Forecasts a request, its input counted. What `out` points to lives until the next call. FT_E_MEMORY ends
 * everything; any other failure means that there is no such request. */
typedef struct ft_again_step {
    ft_step step;
    const ft_graph *graph;
    ft_loading loading;
} ft_again_step;
typedef ft_status (*ft_again)(const ft_change *change, void *user, ft_again_step *out, ft_error *err);

/* Samples that one GPU's step is fed with. */
static inline double ft__change_fed(const ft_change *c)
{
    bool adds_up = c->work.task == FT_TRAIN && c->work.accumulate > 1;
    return (double)c->work.batch * (adds_up ? (double)c->work.accumulate : 1);
}

/* Samples (sequences, images; decoding: tokens) of a step on one GPU: what a saving is reckoned over. Sharing one
 * sample among GPUs gives each a part of it. */
static inline double ft__change_samples(const ft_change *c)
{
    double shared = (double)(c->parallel.tp * c->parallel.pp * c->parallel.cp);
    return ft__change_fed(c) / (shared > 1 ? shared : 1);
}
#endif
