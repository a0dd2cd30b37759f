/* One rank's graph of a model of the catalogue, and what is in it, for the tests of layouts. */
#ifndef FT_TEST_LAYOUT_MODELS_H
#define FT_TEST_LAYOUT_MODELS_H
#include "kernel_limits.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "import/config/config.h"
#include "layout/layout.h"
#include "ranks/ranks.h"
#include "timeline/step.h"

static inline ft_arch open_model(const char *name)
{
    ft_arch arch;
    ft_error err;
    if (ft__model_open(name, NULL, &arch, &err) != FT_OK) fail_msg("%s: %s", name, err.message);
    return arch;
}

static inline ft_workload train_work(int64_t batch, int64_t seq)
{
    return (ft_workload){.task = FT_TRAIN,
                         .dtype = FT_BF16,
                         .kv_dtype = FT_BF16,
                         .master_weights = true,
                         .batch = batch,
                         .seq = seq,
                         .attention = FT_FLASH,
                         .execution = FT_RUN_FUSED,
                         .optimizer = FT_ADAMW,
                         .accumulate = 1};
}

static inline ft_parallel layout_of(int64_t tp, int64_t pp, int64_t cp, int64_t ep, int64_t dp)
{
    return (ft_parallel){.tp = tp, .pp = pp, .cp = cp, .ep = ep, .dp = dp, .vpp = 1, .schedule = FT_1F1B};
}

/* One stage of one rank, backward and all. */
static inline ft_stage rank_of(const ft_arch *arch, const ft_workload *work, const ft_parallel *p, int64_t stage,
                               ft_arena *arena)
{
    ft_ranks r = {.arch = arch, .work = work, .parallel = p, .arena = arena};
    ft_stage s;
    ft_error err;
    if (ft__ranks_graph(&r, stage, &s, &err) != FT_OK) fail_msg("%s: %s", arch->model_type, err.message);
    return s;
}

/* Arithmetic of matrix products and attention, forward and backward (recomputation apart). */
static inline double contractions(const ft_graph *g, bool again)
{
    double sum = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t i = g->blocks[b].first; i < g->blocks[b].first + g->blocks[b].count; i++) {
            const ft_node *n = &g->nodes[i];
            if ((n->phase == FT_RECOMPUTE) != again || ft__node_class(n) != FT_CONTRACTION) continue;
            sum += ft__op_flops(&n->op) * (double)n->count * (double)g->blocks[b].repeat;
        }
    return sum;
}

/* Bytes of one kind of exchange over an axis in a phase, all iterations. */
static inline double exchanged_bytes(const ft_graph *g, ft_axis axis, ft_exchange_kind kind, ft_phase phase)
{
    double sum = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t i = g->blocks[b].first; i < g->blocks[b].first + g->blocks[b].count; i++) {
            const ft_node *n = &g->nodes[i];
            if (n->verb != FT_DO_COMM || n->exchange.axis != axis || n->exchange.kind != kind || n->phase != phase)
                continue;
            /* not the loss' statistics */
            if (n->out_count) sum += n->exchange.bytes * (double)n->count * (double)g->blocks[b].repeat;
        }
    return sum;
}
#endif
