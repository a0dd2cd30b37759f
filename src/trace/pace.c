/* pace.c: a run of operators alone, host and GPU side by side.
 *
 * A recording without kernels says which operators ran and in which order, but not how long a host takes to issue them.
 * Each gets what it costs eager PyTorch (kernel/host.h), forward with or without autograd, backward or in an optimizer,
 * and the two streams are walked as a step of a model is (timeline/stream.c). Operators count one launch each, views
 * what a view costs; Python modules are counted where the recording names them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/host.h"
#include "timeline/step.h"
#include "timeline/stream.h"
#include "trace/report.h"

typedef struct issued { /* an operator that the host calls by itself */
    int64_t start;
    int32_t op, group, step;
    ft_phase phase;
} issued;

typedef struct steps { /* blocks of each step; `last`: how many blocks there are up to its end */
    ft_block *blocks;
    int32_t *last, count;
} steps;

static int by_start(const void *x, const void *y)
{
    const issued *a = x, *b = y;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return (a->op > b->op) - (a->op < b->op);
}

/* Backward: the autograd engine calls it, by its mark or on a thread of its own. Update: inside an optimizer's step. */
static ft_phase phase_of(const ft_record *r, const ft_trace_op *op, uint64_t first_thread)
{
    ft_phase phase = op->thread != first_thread ? FT_BACKWARD : FT_FORWARD;
    int32_t at = op->parent;
    for (int depth = 0; at >= 0 && depth < 256; depth++) {
        const char *name = r->names[r->ops[at].name];
        if (!strncmp(name, "Optimizer.step#", 15)) return FT_UPDATE;
        if (!strncmp(name, "autograd::engine::evaluate_function", 35)) phase = FT_BACKWARD;
        at = r->ops[at].parent;
    }
    return phase;
}

/* What the host takes it for. */
static ft_verb verb_of(const ft_called *c)
{
    static const ft_verb of[FT_OP_KIND_COUNT] = {
        [FT_OP_GEMM] = FT_DO_MATMUL,
        [FT_OP_ATTENTION] = FT_DO_ATTENTION,
        [FT_OP_MLA] = FT_DO_ATTENTION,
        [FT_OP_ELEMENTWISE] = FT_DO_POINTWISE,
        [FT_OP_ROW] = FT_DO_ROW,
        [FT_OP_CONV2D] = FT_DO_CONV,
        [FT_OP_MOE] = FT_DO_EXPERTS,
        [FT_OP_OPTIMIZER] = FT_DO_OPTIMIZER,
        [FT_OP_QUANTIZE] = FT_DO_POINTWISE,
        [FT_OP_COLLECTIVE] = FT_DO_COMM,
        [FT_OP_OTHER] = FT_DO_OTHER,
    };
    if (c->count == 0) return FT_DO_OTHER;
    const ft_op *op = &c->part[0].op;
    if (op->kind == FT_OP_GEMM) return op->u.gemm.b > 1 ? FT_DO_MATMUL : FT_DO_LINEAR;
    if (c->class == FT_CALLED_MEMORY) return FT_DO_COPY;
    return (unsigned)op->kind < FT_OP_KIND_COUNT ? of[op->kind] : FT_DO_OTHER;
}

static ft_node_cost node_cost_of(const ft_issuer *host, const ft_trace_groups *g, const ft_price *prices,
                                 const issued *i)
{
    ft_node n = {.verb = FT_DO_VIEW, .phase = i->phase};
    n.op.kind = FT_OP_OTHER;
    if (i->group < 0) return (ft_node_cost){.host = ft__host_node_us(host, &n) * 1e-3, .count = 1};
    const ft_called *called = &g->at[i->group].called;
    double kernels = 0;
    for (int k = 0; k < called->count; k++) kernels += called->part[k].times;
    n.verb = verb_of(called);
    n.op.u.other.bytes = 1;                                              /* it runs */
    double behind = fmax(0, kernels - 1) * ft__host_gap_us(host) * 1e-3; /* between the kernels of one operator */
    /* An optimizer's own loop over tensors has no model's Python between its operators: see data/hosts. */
    double us = i->phase == FT_UPDATE && n.verb != FT_DO_OPTIMIZER ? ft__host_loop_us(host)
                                                                   : ft__host_node_us(host, &n);
    return (ft_node_cost){.host = us * 1e-3, .gpu = prices[i->group].ms + behind, .count = 1};
}

/* Operators that the host calls, in order; views and the like count where they lie in nothing that counts. */
static size_t list_issued(const ft_record *r, const ft_trace_groups *g, issued *out)
{
    size_t count = 0;
    uint64_t first_thread = 0;
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < r->op_count; i++)
        if (!r->ops[i].annotation && r->ops[i].start < first) {
            first = r->ops[i].start;
            first_thread = r->ops[i].thread;
        }
    for (size_t i = 0; i < r->op_count; i++) {
        if (g->of_op[i] == FT_OP_INSIDE) continue;
        out[count++] = (issued){r->ops[i].start, (int32_t)i, g->of_op[i], 0, phase_of(r, &r->ops[i], first_thread)};
    }
    if (count > 1) qsort(out, count, sizeof *out, by_start);
    size_t step = 0;
    for (size_t i = 0; i < count && !r->whole; i++) { /* what stands between two steps goes with the second */
        while (step + 1 < r->step_count && out[i].start > r->steps[step].host_end) step++;
        out[i].step = (int32_t)step;
    }
    return count;
}

/* Blocks of one phase each, step by step. */
static int32_t cut(const issued *list, size_t count, steps *out)
{
    int32_t blocks = 0;
    out->count = 0;
    for (size_t i = 0; i < count; i++) {
        bool fresh = !i || list[i].step != list[i - 1].step;
        if (fresh && i) out->last[out->count++] = blocks;
        if (!fresh && out->blocks[blocks - 1].phase == list[i].phase) {
            out->blocks[blocks - 1].count++;
            continue;
        }
        out->blocks[blocks++] =
            (ft_block){.phase = list[i].phase, .first = (int32_t)i, .count = 1, .repeat = 1, .mirror = -1};
    }
    if (count) out->last[out->count++] = blocks;
    return blocks;
}

/* One step after the other: both have finished when the next begins. */
static ft_walked walk_all(const steps *s, const double *entry, ft_pace *pace)
{
    ft_walked all = {0};
    for (int32_t i = 0; i < s->count; i++) {
        const int32_t from = i ? s->last[i - 1] : 0;
        const ft_graph g = {.blocks = s->blocks + from, .block_count = s->last[i] - from};
        pace->entry = entry + from;
        ft_walked one = ft__stream_walk(&g, pace);
        all.total += one.total;
        all.host += one.host;
        all.running += one.running;
    }
    return all;
}

static void walk(const steps *s, const double *entry, ft_pace *pace, double below, double above, double host_spread,
                 ft_elsewhere *out)
{
    double n = fmax(1, (double)s->count);
    ft_walked now = walk_all(s, entry, pace);
    out->step_ms = now.total / n;
    out->host_ms = now.host / n;
    out->idle_ms = fmax(0, (now.total - now.running) / n);
    pace->gpu_scale = 1 - ft__interval_below(below);
    double low = now.total - walk_all(s, entry, pace).total;
    pace->gpu_scale = 1 + above;
    double high = walk_all(s, entry, pace).total - now.total;
    pace->gpu_scale = 1;
    pace->host_scale = 1 / (1 + host_spread);
    low = hypot(low, now.total - walk_all(s, entry, pace).total);
    pace->host_scale = 1 + host_spread;
    high = hypot(high, walk_all(s, entry, pace).total - now.total);
    out->low_ms = fmax((now.total - low) / n, ft__interval_least(out->step_ms));
    out->high_ms = (now.total + high) / n;
}

ft_status ft__trace_pace(const ft_trace_report *s, const ft_price *prices, double below, double above,
                         ft_elsewhere *out, ft_error *err)
{
    const ft_record *r = &s->record;
    if (r->op_count > INT32_MAX / 2) return ft__fail(err, FT_E_MEMORY, "more operators than can be walked");
    issued *list = calloc(r->op_count + 1, sizeof *list);
    ft_node_cost *costs = calloc(r->op_count + 1, sizeof *costs);
    steps all = {.blocks = calloc(r->op_count + 1, sizeof *all.blocks),
                 .last = calloc(r->op_count + 1, sizeof *all.last)};
    double *entry = calloc(r->op_count + 1, sizeof *entry);
    ft_status status = FT_OK;
    if (list && costs && all.blocks && all.last && entry) {
        size_t count = list_issued(r, &s->groups, list);
        int32_t blocks = cut(list, count, &all);
        ft_issuer host = {.host = s->host ? s->host : ft__host_of_device(&out->device), .dispatch = FT_DISPATCH_EAGER};
        double forward = 0;
        for (int32_t i = 0; i < blocks; i++) host.gradients |= all.blocks[i].phase == FT_BACKWARD;
        for (size_t i = 0; i < count; i++) forward += list[i].phase == FT_FORWARD;
        /* Modules are called between the operators: all of them at the beginning would have the GPU wait that long. */
        double between = ft__host_module_us(&host, (double)r->modules) * 1e-3 / fmax(1, forward);
        for (size_t i = 0; i < count; i++) {
            costs[i] = node_cost_of(&host, &s->groups, prices, &list[i]);
            if (list[i].phase == FT_FORWARD) costs[i].host += between;
        }
        ft_pace pace = {.costs = costs,
                        .latency = ft__host_latency_us(&host) * 1e-3,
                        .gap = ft__host_gap_us(&host) * 1e-3,
                        .queue = ft__host_queue(&host),
                        .accumulate = 1,
                        .host_scale = 1,
                        .gpu_scale = 1};
        for (int i = 0; i < FT_PHASE_COUNT; i++) pace.pass[i] = ft__host_pass_us(&host, (ft_phase)i) * 1e-3;
        walk(&all, entry, &pace, below, above, ft__host_interval(&host) * ft__interval_level(s->quantile), out);
    } else {
        status = ft__no_memory(err);
    }
    free(list);
    free(costs);
    free(all.blocks);
    free(all.last);
    free(entry);
    return status;
}
