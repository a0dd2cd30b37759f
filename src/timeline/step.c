/* step.c: from a graph to the time of one step and where it goes. */
#include "timeline/step.h"

#include <math.h>
#include <string.h>

#include "graph/emit.h"
#include "kernel/kernel.h"
#include "model/stack.h"
#include "timeline/interval.h"
#include "timeline/timed.h"

/* Errors of one family on one GPU have one cause and move together; families do not know of each other. */
typedef struct spread {
    const char *family[FT_MAX_FAMILIES + 2];
    double below[FT_MAX_FAMILIES + 2], above[FT_MAX_FAMILIES + 2];
    int count;
} spread;

static void spread_add(spread *s, const ft_forecast *f, double times)
{
    int i = 0;
    while (i < s->count && s->family[i] != f->family) i++;
    if (i == (int)(sizeof s->family / sizeof *s->family)) i--;
    if (i == s->count) {
        s->family[i] = f->family;
        s->below[i] = s->above[i] = 0;
        s->count++;
    }
    s->below[i] += (f->ms - f->low_ms) * times;
    s->above[i] += (f->high_ms - f->ms) * times;
}

static void spread_sum(const spread *s, double *below, double *above)
{
    double b = 0, a = 0;
    for (int i = 0; i < s->count; i++) {
        b += s->below[i] * s->below[i];
        a += s->above[i] * s->above[i];
    }
    *below = sqrt(b);
    *above = sqrt(a);
}

/* Tokens stay on the GPU, and the host issues the next step while one runs. */
static bool replays(const ft_workload *work)
{
    return work->task == FT_DECODE && work->execution == FT_RUN_COMPILE && ft__stack(work)->replays_tokens;
}

bool ft__step_ahead(const ft_workload *work)
{
    const bool replayed = work->task != FT_TRAIN && work->execution == FT_RUN_CUDA_GRAPH;
    return replays(work) || (replayed && ft__stack(work)->issued_ahead);
}

static ft_dispatch dispatch_of(const ft_workload *work)
{
    if (ft__stack(work)->native_host) return FT_DISPATCH_NONE;
    switch (work->execution) {
    case FT_RUN_COMPILE: return replays(work) ? FT_DISPATCH_GRAPH : FT_DISPATCH_COMPILED;
    case FT_RUN_CUDA_GRAPH: return FT_DISPATCH_GRAPH;
    case FT_RUN_IDEAL: return FT_DISPATCH_NONE;
    case FT_RUN_TORCHSCRIPT: return FT_DISPATCH_SCRIPT;
    default: return FT_DISPATCH_EAGER;
    }
}

/* Shapes of attention that this step shows the library for the first time: with a cache that grows by a token every
 * step, all of them but those of layers whose window is full (data/measurements/h200/window_decode.jsonl). */
static double new_shapes(const ft_graph *g, const ft_workload *work)
{
    if (work->task != FT_DECODE || work->cache != FT_CACHE_DYNAMIC || work->attention != FT_SDPA) return 0;
    enum { MOST = 4 };
    int64_t seen[MOST];
    int count = 0;
    for (int32_t i = 0; i < g->node_count && count < MOST; i++) {
        const ft_op *op = &g->nodes[i].op;
        if (op->kind != FT_OP_ATTENTION || ft_dtype_bytes(op->dtype) != 2) continue;
        if (op->u.attention.kv_len < work->seq) continue;
        int at = 0;
        while (at < count && seen[at] != op->u.attention.kv_len) at++;
        if (at == count) seen[count++] = op->u.attention.kv_len;
    }
    return count;
}

/* Operators as the framework dispatches them: a linear layer is a view of its weight, one of its input, the product and
 * a view of its result (72 in transformers' Llama layer, 51 in GPT-NeoX's; 69 and 51 by this count). */
static double operators(const ft_graph *g, const ft_block *block)
{
    double sum = 0;
    for (int32_t i = block->first; i < block->first + block->count; i++)
        sum += (double)g->nodes[i].count * (g->nodes[i].verb == FT_DO_LINEAR ? 4 : 1);
    return sum;
}

/* Python enters those of a layer's modules whose kernels are not replayed: taken as their share of its operators. */
static double entered(const ft_run *t, const ft_block *block)
{
    if (!t->graphed) return 1;
    const ft_captor captor = ft__captor(t->g, block);
    double all = 0, captured = 0;
    for (int32_t i = block->first; i < block->first + block->count; i++) {
        all += 1;
        captured += ft__captured(t->graphed, captor, &t->g->nodes[i]);
    }
    return all > 0 ? 1 - captured / all : 1;
}

/* A pass makes its results up while its last kernels run. */
static void add_results(const ft_graph *g, const ft_issuer *host, double *entry)
{
    int32_t last = -1;
    for (int32_t b = 0; b < g->block_count; b++)
        if (g->blocks[b].phase == FT_FORWARD && g->blocks[b].count > 0) last = b;
    if (last >= 0) entry[last] += ft__host_results_us(host) * 1e-3 / (double)g->blocks[last].repeat;
}

/* Layers that run again in the backward pass are checkpointed in the forward pass. `policy`: selectively. */
static void add_checkpoints(const ft_graph *g, const ft_issuer *host, bool policy, double *entry)
{
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (block->count < 1 || g->nodes[block->first].phase != FT_RECOMPUTE)
            continue; /* what runs again comes first */
        entry[b] += ft__host_checkpoint_us(host, FT_RECOMPUTE) * 1e-3;
        if (block->mirror < 0) continue;
        const double asked = policy ? ft__host_policy_us(host, operators(g, &g->blocks[block->mirror])) : 0;
        entry[b] += asked * 1e-3;
        entry[block->mirror] += (ft__host_checkpoint_us(host, FT_FORWARD) + asked) * 1e-3;
    }
}

/* What a kernel contracts: matrix products whichever way they are run, those of a scan and those written out term by
 * term among them. */
static double contracted(const ft_node *n, const ft_timed *k)
{
    if (n->contracts && n->op.kind == FT_OP_ELEMENTWISE) return 2 * (double)n->op.u.elementwise.numel * k->times;
    bool scan = n->verb == FT_DO_SCAN && n->op.kind == FT_OP_GEMM;
    return scan || ft__node_class(n) == FT_CONTRACTION ? k->forecast.flops * k->times : 0;
}

/* Sums over the kernels: phases, classes, sources, and the shares of time by what bounds them. */
static void add_up(const ft_graph *g, ft_step *out, spread *errors)
{
    double by_bound[4] = {0};
    for (int32_t i = 0; i < out->kernel_count; i++) {
        const ft_timed *k = &out->kernels[i];
        const ft_node *n = &g->nodes[k->node];
        const ft_forecast *f = &k->forecast;
        double ms = f->ms * k->times, flops = f->flops * k->times, launch = fmin(f->launch_ms, f->ms) * k->times;
        out->busy_ms += ms;
        out->phase_ms[n->phase] += ms;
        ft_class class = ft__node_class(n);
        out->class_ms[class] += ms;
        out->class_flops[class] += flops;
        /* Rates count contractions, as everybody does. Fused attention makes its scores again in the backward pass, and
         * experts' shares are rounded up to whole rows: that ran, but it is no part of the model. */
        const double product = contracted(n, k);
        out->executed_flops += product;
        if (n->phase != FT_RECOMPUTE)
            out->model_flops += product * (1 - (double)n->empty) *
                                (n->op.kind == FT_OP_ATTENTION && n->op.pass == FT_PASS_BWD ? 0.8 : 1);
        out->launches += k->times;
        by_bound[f->bound == FT_BOUND_OVERHEAD ? FT_BOUND_OVERHEAD : f->bound] += ms - launch;
        *(f->source == FT_SOURCE_ROOFLINE     ? &out->roofline
          : f->source == FT_SOURCE_CALIBRATED ? &out->calibrated
          : f->source == FT_SOURCE_SIBLING    ? &out->sibling
          : f->source == FT_SOURCE_PHYSICS    ? &out->physics
                                              : &out->learned) += ms;
        spread_add(errors, f, k->times);
    }
    if (out->busy_ms > 0) {
        out->learned /= out->busy_ms;
        out->sibling /= out->busy_ms;
        out->physics /= out->busy_ms;
        out->calibrated /= out->busy_ms;
        out->roofline /= out->busy_ms;
    }
    memcpy(out->regime, by_bound, sizeof by_bound);
}

static void regime_of(ft_step *out)
{
    double rest = out->step_ms;
    out->regime[FT_BOUND_COMMUNICATION] = 0;
    for (int i = 0; i < 4; i++) {
        if (i == FT_BOUND_OVERHEAD) continue;
        out->regime[i] = out->step_ms > 0 ? out->regime[i] / out->step_ms : 0;
        rest -= out->regime[i] * out->step_ms;
    }
    out->regime[FT_BOUND_OVERHEAD] = out->step_ms > 0 ? fmax(rest, 0) / out->step_ms : 0;
    out->bound = FT_BOUND_COMPUTE;
    for (int i = 0; i < 4; i++)
        if (out->regime[i] > out->regime[out->bound]) out->bound = (ft_bound)i;
}

static double tokens_of(const ft_workload *work)
{
    double batch = (double)work->batch, seq = (double)(work->seq > 0 ? work->seq : 1);
    if (work->task == FT_DECODE) return batch;
    return batch * seq * (work->task == FT_TRAIN ? (double)work->accumulate : 1);
}

/* What a step of that format could reach: products in 8 or 4 bits leave attention and the rest in 16, so that a device
 * whose int8 is slower than its bf16 (B300) is measured by the faster of the two. */
double ft__step_peak(const ft_device *device, ft_dtype dtype, ft_dtype *of)
{
    double own = ft__peak_tflops(device, dtype), wide = ft__peak_tflops(device, FT_BF16);
    bool widened = ft_dtype_bytes(dtype) < 2 && wide > own;
    if (of) *of = widened ? FT_BF16 : dtype;
    return widened ? wide : own;
}

static void rates_of(const ft_workload *work, const ft_device *device, ft_step *out)
{
    double peak = ft__step_peak(device, work->dtype, NULL), s = out->step_ms * 1e-3;
    if (!(s > 0)) return;
    out->tokens_per_s = tokens_of(work) / s;
    out->model_tflops = out->model_flops / s * 1e-12;
    if (!(peak > 0)) return;
    out->mfu = out->model_tflops / peak;
    out->hfu = out->executed_flops / s * 1e-12 / peak;
}

/* Of states on the host: no kernel updates, but their tensors are looked up in Python all the same, and clipped. */
static double looked_up_ms(const ft_graph *g, const ft_workload *work, const ft_issuer *host)
{
    if (!ft__updates_on_host(work)) return 0;
    ft_node n = ft__node_of(FT_DO_OPTIMIZER, FT_AT(OPTIMIZER));
    n.phase = FT_UPDATE;
    n.op.kind = FT_OP_OPTIMIZER;
    n.op.name = work->optimizer == FT_ADAMW_FOREACH ? "adamw_foreach" : "adamw_fused";
    n.op.u.optimizer.tensors = g->trained_tensors > 0 ? g->trained_tensors : 1;
    double us = ft__host_node_us(host, &n);
    if (!work->clip) return us * 1e-3;
    n = ft__node_of(FT_DO_OPTIMIZER, FT_AT(CLIP_GRAD_NORM));
    n.phase = FT_UPDATE;
    n.op.kind = FT_OP_OPTIMIZER;
    n.op.u.optimizer.tensors = g->trained_tensors > 0 ? g->trained_tensors : 1;
    return (us + ft__host_node_us(host, &n)) * 1e-3;
}

ft_issuer ft__step_host(const ft_workload *work, const ft_device *device)
{
    const ft_host *host = work->host ? work->host : ft__host_of_device(device);
    const bool adapters = work->task == FT_TRAIN && work->lora_rank > 0;
    const bool served = ft__generates_tokens(work); /* by an engine, not by the modules that train */
    const bool unnamed = adapters && !work->stack && work->execution == FT_RUN_EAGER;
    return (ft_issuer){.host = host,
                       .dispatch = dispatch_of(work),
                       .gradients = work->task == FT_TRAIN,
                       .us_per_op = work->host_us_per_op,
                       .lowers = work->autocast || (adapters && ft__adapters_of(work).form == FT_ADAPTER_AUTOCAST),
                       .share = unnamed ? host->adapters.share : 0,
                       .lean_hooks = ft__stack(work)->lean_hooks,
                       .ahead = ft__step_ahead(work),
                       .grouped_product_calls = served ? 1 : ft__stack(work)->grouped_product_calls,
                       .low_product_calls = served ? 1 : ft__stack(work)->low_product_calls};
}

/* A trainer's own loops over the model: training mode, parameters counted for what a step is worth in operations. */
static double walks_ms(const ft_run *t)
{
    const double walks = t->work->task == FT_TRAIN ? ft__stack(t->work)->module_walks : 0;
    double things = (double)t->g->parameter_tensors;
    for (int32_t b = 0; b < t->g->block_count; b++)
        if (t->g->blocks[b].phase == FT_FORWARD)
            things += (double)t->g->blocks[b].modules * (double)t->g->blocks[b].repeat;
    return walks * ft__host_walk_us(&t->host, things) * 1e-3;
}

/* What the host takes for kernels, blocks and passes; `entry` gets that of every block. */
static ft_pace pace_of(const ft_run *t, double *entry)
{
    const ft_graph *g = t->g;
    const ft_workload *work = t->work;
    ft_pace pace = {.costs = t->costs,
                    .entry = entry,
                    .latency = ft__host_latency_us(&t->host) * 1e-3,
                    .gap = ft__host_gap_us(&t->host) * 1e-3,
                    .queue = ft__host_queue(&t->host),
                    .accumulate = work->accumulate,
                    .reads_loss = work->task == FT_TRAIN && ft__stack(work)->reads_loss,
                    .host_scale = 1,
                    .gpu_scale = 1};
    for (int32_t b = 0; b < g->block_count; b++)
        entry[b] = ft__host_module_us(&t->host, (double)g->blocks[b].modules) * 1e-3 * entered(t, &g->blocks[b]);
    const bool whole = t->graphed & 1u << FT_GRAPHED_FULL_ITERATION;
    if (!whole) add_results(g, &t->host, entry);
    if (!whole) add_checkpoints(g, &t->host, work->recompute == FT_RECOMPUTE_SELECTIVE, entry);
    for (int i = 0; i < FT_PHASE_COUNT; i++)
        pace.pass[i] = whole && i != FT_UPDATE ? 0 : ft__host_pass_us(&t->host, (ft_phase)i) * 1e-3;
    pace.pass[FT_FORWARD] += new_shapes(g, work) * ft__host_plan_us(&t->host, t->device) * 1e-3;
    if (!whole) pace.pass[FT_FORWARD] += walks_ms(t);
    pace.slowest = ft__host_slowest(&t->host, work->company);
    for (int32_t i = 0; i < g->node_count; i++) t->costs[i].host *= pace.slowest;
    for (int32_t b = 0; b < g->block_count; b++) entry[b] *= pace.slowest;
    for (int i = 0; i < FT_PHASE_COUNT; i++) pace.pass[i] *= pace.slowest;
    return pace;
}

ft_status ft__step_forecast(const ft_graph *g, const ft_workload *asked, const ft_device *device, const ft_predictor *p,
                            double quantile, ft_memo *memo, ft_arena *arena, ft_step *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    ft_workload work = *asked;
    if (work.accumulate < 1 || work.task != FT_TRAIN) work.accumulate = 1;
    ft_run t = {.g = g, .work = &work, .device = device, .predictor = p, .quantile = quantile, .memo = memo};
    t.host = ft__step_host(&work, device);
    t.graphed = ft__graphed(&work);
    size_t nodes = (size_t)g->node_count + 1, blocks = (size_t)g->block_count + 1;
    double *entry = ft__arena_array(arena, blocks, sizeof *entry);
    t.costs = ft__arena_array(arena, nodes, sizeof *t.costs);
    t.found = ft__arena_bare(arena, nodes, sizeof *t.found);
    t.last = ft__arena_bare(arena, (size_t)g->tensor_count + 1, sizeof *t.last);
    out->kernels = ft__arena_bare(arena, nodes, sizeof *out->kernels);
    if (!t.found || !t.last || !t.costs || !entry || !out->kernels)
        return ft__fail(err, FT_E_MEMORY, "out of memory for the timeline of %d operators", (int)g->node_count);
    FT_TRY(ft__time_nodes(&t, out, err));
    spread errors = {.count = 0};
    add_up(g, out, &errors);

    ft_pace *pace = ft__arena_alloc(arena, sizeof *pace);
    if (!pace) return ft__fail(err, FT_E_MEMORY, "out of memory for the timeline");
    *pace = pace_of(&t, entry);
    out->pace = pace;
    ft_walked walked = ft__stream_walk(g, pace);
    out->step_ms = walked.total;
    out->host_ms = walked.host;
    out->update_pass_ms = pace->pass[FT_UPDATE] + looked_up_ms(g, &work, &t.host) * pace->slowest;
    out->idle_ms = fmax(walked.total - walked.running, 0);
    double below, above;
    spread_sum(&errors, &below, &above);
    if (!work.time_alone) ft__step_interval(&t, below, above, out);
    regime_of(out);
    rates_of(&work, device, out);
    return ft__step_memory_shared(g, &work, device, NULL, memo, &out->lives, &out->memory, err);
}
