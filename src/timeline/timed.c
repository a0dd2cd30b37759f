/* timed.c: the nodes of a graph, each with its forecast: what fusion does to its traffic, what power does to the
 * mixture. */
#include "timeline/timed.h"

#include <math.h>

#include "device/traits.h"
#include "kernel/attention_library.h"
#include "kernel/energy.h"
#include "kernel/grouped.h"
#include "kernel/kernel.h"
#include "kernel/manner.h"
#include "kernel/power.h"
#include "kernel/walk.h"
#include "model/stack.h"
#include "timeline/in_model_constants.h"
#include "timeline/ported.h"
#include "timeline/states.h"

/* A fusion or a cast changed what the node moves: the time beyond the launch follows where memory sets it, and never
 * falls below what the bus needs, nor below what a product's arithmetic does at its peak: of weights in four bits the
 * bus may be done first. */
static void apply_traffic(const ft_device *device, const ft_op *op, double traffic, ft_forecast *f)
{
    if (!(traffic > 0) || traffic == 1) return;
    double body = f->ms - f->launch_ms, bytes = f->bytes * traffic, floor_ms = bytes / (device->memory_gbps * 1e6);
    double scaled = f->bound == FT_BOUND_COMPUTE ? body : body * traffic;
    if (op->kind == FT_OP_GEMM || op->kind == FT_OP_MOE)
        scaled = fmax(scaled, fmin(body, f->flops / (ft__peak_tflops(device, op->dtype) * 1e9)));
    double ms = f->launch_ms + fmax(scaled, floor_ms), ratio = f->ms > 0 ? ms / f->ms : 1;
    f->low_ms *= ratio;
    f->high_ms *= ratio;
    f->sustained_ms *= ratio;
    f->ms = ms;
    f->bytes = bytes;
    f->intensity = bytes > 0 ? f->flops / bytes : 0;
    f->roofline_ms = fmax(f->roofline_ms, floor_ms);
}

/* A kernel whose threads wait for one load before they issue the next is as long as its waits. */
static void apply_walk(const ft_device *device, const ft_node *n, ft_forecast *f)
{
    if (n->walk == FT_WALK_NONE) return;
    double ms = f->launch_ms + ft__walk_ms(device, n->walk, (double)n->trips, (double)n->blocks);
    if (ms > f->ms && f->ms > 0) ft__forecast_scale(f, ms / f->ms);
}

/* Tables have what a convolution takes; a step's kernels are counted one by one, beside each other or not. */
static void apply_streams(const ft_device *device, const ft_op *op, ft_forecast *f)
{
    double ms = ft__grouped_kernels_ms(device, op);
    if (ms > f->ms && f->ms > 0) ft__forecast_scale(f, ms / f->ms);
}

/* Tables of engines replay one product, whose weights then wait in L2. Weights of a model that is several caches large
 * come from memory every time: a product of few rows takes that long at least. */
static void apply_cold(const ft_device *device, const ft_op *op, double parameters, ft_forecast *f)
{
    if (op->kind != FT_OP_GEMM || op->u.gemm.b > 1 || (double)op->u.gemm.m > FT_K_IN_MODEL_COLD_ROWS) return;
    if (parameters * ft_dtype_bytes(op->dtype) < FT_K_IN_MODEL_COLD_CACHES * device->l2_mib * 1048576) return;
    double ms = f->launch_ms + f->bytes / (FT_K_IN_MODEL_COLD_SHARE * device->memory_gbps * 1e6);
    if (ms > f->ms && f->ms > 0) ft__forecast_scale(f, ms / f->ms);
}

/* Kernels that move bytes are as fast as what they read is near. Not moved: products and attention, whose tables hold
 * within a few percent whatever lies in the cache, kernels whose figures were read off networks of convolutions, and
 * launches of a loop, each of which reads a part of its tensors beside the others'. */
static bool moves_bytes(const ft_node *n, const ft_op *op)
{
    return (op->kind == FT_OP_ELEMENTWISE || op->kind == FT_OP_ROW) && n->walk == FT_WALK_NONE &&
           n->verb != FT_DO_BATCHNORM && n->verb != FT_DO_POOL && n->count <= 1;
}

/* What the kernels before left in the cache, against what the kernel found there when it was timed. Row operators gain
 * and lose as far as memory is what holds them. Operands that are not one run were timed in models; what such a kernel
 * loses where it finds less is the wait for every load, which shows as far as its bytes alone do not take as long. */
static void apply_residency(const ft_device *device, const ft_node *n, const ft_op *op, ft_found found, ft_forecast *f)
{
    double body = f->ms - f->launch_ms, per_byte = 1 / (device->memory_gbps * 1e6);
    if (!moves_bytes(n, op) || !(body > 0)) return;
    bool scattered = op->kind == FT_OP_ELEMENTWISE && op->u.elementwise.pattern > 0;
    double timed = ft__residency_timed(device, found.read, scattered);
    if (found.read > f->bytes) { /* it touches a part of what it is given */
        found.hit *= f->bytes / found.read;
        found.read = f->bytes;
    }
    bool mixed = scattered && op->u.elementwise.pattern & FT_PATTERN_MIXED;
    double wait_ms = ft__residency_wait_ms(scattered, mixed, ft_dtype_bytes(op->dtype));
    double more = ft__residency_ms(device, &found, timed, wait_ms), held = fmin(f->bytes * per_byte / body, 1),
           chain = op->kind == FT_OP_ROW && op->pass == FT_PASS_FWD ? ft__residency_chain(&found, op->name, timed) : 0;
    if (op->kind == FT_OP_ROW) more = chain > 0 ? body * (chain - 1) : more * held;
    if (scattered && more > 0) more *= 1 - held;
    double ms = fmax(f->ms + more + fmin(found.back, f->bytes) * per_byte, f->launch_ms);
    ft__forecast_scale(f, ms / f->ms);
}

/* A launch of a graph, by which tables were taken, is longer than its kernel; in a step the pauses between kernels are
 * counted by themselves. Of the same kernels, which are the shortest. */
static void apply_node(const ft_node *n, const ft_op *op, ft_forecast *f)
{
    double ms = f->ms - FT_K_IN_MODEL_NODE_MS;
    if (moves_bytes(n, op) && ms > 0.5 * f->ms) ft__forecast_scale(f, ms / f->ms);
}

/* Weights that are streamed are not in a cache, whatever else may be. */
static void apply_width(unsigned manner, double quantile, ft_forecast *f)
{
    const double log_width = ft__manner_width(manner) * ft__interval_level(quantile);
    if (!(log_width > 0)) return;
    f->low_ms = fmax(f->low_ms, f->ms * exp(-log_width));
    f->high_ms = fmin(f->high_ms, f->ms * exp(log_width));
}

/* The operator as a framework runs it inside a model. What was cast before is cast: but where operands are read along
 * one axis alone, its turned copy, and that of what it meets, are written and counted as a cast. */
static ft_op settled(const ft_device *device, const ft_node *n)
{
    ft_op op = n->op;
    if (n->cast && op.u.gemm.quantized == 0 && ft__reads_across(device)) op.u.gemm.quantized = 1;
    op.timing = FT_TIMING_DEVICE;
    if (op.engine == FT_ENGINE_ANY && op.kind == FT_OP_ATTENTION) op.engine = FT_ENGINE_BARE;
    if (op.kind == FT_OP_ATTENTION && n->manner & (FT_MANNER_MASK_ADDED | FT_MANNER_MASK_OF_KEYS))
        op.u.attention.library = ft__library_of_mask(device, &op);
    if (op.kind == FT_OP_GEMM && op.u.gemm.quantized < 0) op.u.gemm.quantized = 1;
    /* The family takes tensors as equal and asks whether their size is a multiple of 4; a model's mostly are, whatever
     * the mean of their sizes is. */
    if (op.kind == FT_OP_OPTIMIZER && op.u.optimizer.tensors > 0 && op.u.optimizer.params > 4 * op.u.optimizer.tensors)
        op.u.optimizer.params -= op.u.optimizer.params % (4 * op.u.optimizer.tensors);
    return op;
}

/* Kernels in a row that are captured are one graph: its launch is the first one's, the others' cost the host nothing.
 * What the host asks of the GPU is asked behind a graph of a module; one of both passes has nothing to ask. */
static void replay(const ft_run *t, const ft_issuer *host, const ft_node *n, bool first, ft_node_cost *cost)
{
    const bool whole = t->graphed & 1u << FT_GRAPHED_FULL_ITERATION;
    const double launch = first && !whole ? ft__host_graph_us(host, n->phase) * 1e-3 : 0;
    cost->host = cost->count > 0 ? launch / cost->count : 0;
    cost->calls = 1;
    cost->spared = ft__host_replayed_us(host) * 1e-3;
    if (whole) cost->waits = cost->blocks = false;
}

static ft_status time_node(ft_run *t, const ft_issuer *host, int32_t b, int32_t i, ft_step *step, ft_error *err)
{
    const ft_block *block = &t->g->blocks[b];
    const ft_node *n = &t->g->nodes[i];
    ft_node_cost *cost = &t->costs[i];
    double micro = n->phase == FT_UPDATE ? 1 : (double)t->work->accumulate;
    double times = (double)n->count * (double)block->repeat * micro;
    cost->count = (double)n->count;
    cost->host = ft__host_node_us(host, n) * 1e-3;
    cost->calls = ft__host_calls(n);
    cost->blocks = ft__stack(t->work)->launches_block;
    cost->waits = cost->blocks || n->synced || n->verb == FT_DO_SYNC;
    const bool captured = ft__captured(t->graphed, t->captor, n);
    if (captured) replay(t, host, n, !t->replays, cost);
    t->replays = captured;
    t->host_ms += cost->host * times;
    if (!ft__node_runs(n)) return FT_OK;
    ft_op op = settled(t->device, n);
    const bool ported = ft__ported(t->device, t->work, n);
    if (ported) op.u.gemm.quantized = 1;
    const ft_forecast *found;
    FT_TRY(ft__memo_find(t->memo, t->predictor, t->device, &op, t->quantile, &found, err));
    ft_timed *k = &step->kernels[step->kernel_count++];
    k->node = i;
    k->block = b;
    k->times = times;
    k->forecast = *found;
    ft_op joined;
    if (ft__manner_joined(n->manner, n->each, &op, &joined)) {
        FT_TRY(ft__memo_find(t->memo, t->predictor, t->device, &joined, t->quantile, &found, err));
        if (found->ms > k->forecast.ms) k->forecast = *found;
    }
    /* Factors are floats, the node's own and those of its manner. */
    const float traffic = n->traffic * (float)ft__manner_traffic(n->manner),
                effort = n->effort * (float)ft__manner_effort(t->device, n->manner, n->each, &op);
    apply_traffic(t->device, &op, (double)traffic, &k->forecast);
    ft__manner_adds(t->device, n->manner, &op, &k->forecast);
    apply_cold(t->device, &op, t->g->parameters, &k->forecast);
    apply_walk(t->device, n, &k->forecast);
    apply_streams(t->device, &op, &k->forecast);
    if (effort > 0 && effort != 1) ft__forecast_scale(&k->forecast, ft__kernel_effort(t->device, &op, (double)effort));
    apply_residency(t->device, n, &op, t->found[i], &k->forecast);
    apply_node(n, &op, &k->forecast);
    if (ported) ft__apply_ported(t->device, n, &k->forecast);
    if (ft__ported_undoes(t->device, t->work, n) && n->out_count)
        ft__apply_ported_undoing(t->device, t->work, n, t->g->tensors[n->out[0]].cols, &k->forecast);
    apply_width(n->manner, t->quantile, &k->forecast);
    cost->gpu = k->forecast.ms;
    return FT_OK;
}

/* What the kernel draws over what the board gives, as timed alone; 0 for all but products. */
static double draw_alone(const ft_run *t, const ft_timed *k)
{
    const ft_node *n = &t->g->nodes[k->node];
    const ft_forecast *f = &k->forecast;
    if (!(f->flops > 0) || ft__node_class(n) != FT_CONTRACTION) return 0;
    return ft__power_draw(t->device, &n->op, f->flops, f->ms);
}

/* How much longer a pass takes when its kernels together would draw more than the board holds, those included that wait
 * for memory and leave it power to spare: as a share of the kernels that arithmetic holds. */
static double energy_lost(const ft_run *t, const ft_step *step, double span)
{
    double joules = 0, busy = 0, bound = 0;
    for (int32_t i = 0; i < step->kernel_count; i++) {
        const ft_timed *k = &step->kernels[i];
        const ft_forecast *f = &k->forecast;
        const ft_op *op = &t->g->nodes[k->node].op;
        double ms = f->ms / ft__power_alone(t->device, draw_alone(t, k), f->ms);
        joules += k->times * ft__kernel_joules(t->device, op, f->flops, f->bytes, ms, f->launch_ms);
        busy += k->times * ms;
        if (f->bound == FT_BOUND_COMPUTE) bound += k->times * ms;
    }
    if (!(bound > 0)) return 0;
    return (ft__clock_slowdown(t->device, joules / (span * 1e-3)) - 1) * busy / bound;
}

/* How much slower the clock is in this step than a board with power to spare would run it. A step is a mixture: what
 * its products would draw too much at full clock, averaged over kernels that wait for memory and over gaps, is what the
 * clock gives up, and all that is bound by arithmetic slows down with it: attention, which alone never meets the limit,
 * as well. It does so within a tenth of a second (data/measurements/h200/settling.jsonl). Training steps shorter than
 * that came with pauses between them when they were measured. Who trains on many GPUs does it for hours, micro-batch
 * after micro-batch, with an update after so many; who issues passes ahead leaves no pause either, and no denoiser
 * rests between its passes. Other passes that only go forward are repeated by whoever serves or times them, and settle
 * at what all their kernels draw; without a host they are kernels by themselves, from rest. Nothing but products takes,
 * in the end, what ft__power_draw says. GPUs that wait for each other have the clock of the one among them that needs
 * the most power.
 *
 * Products in fp32 exceed the limit of small boards alone, whose steps were all published of loops without a pause:
 * what they draw too much is lost from the first step on. */
static double clock_lost(const ft_run *t, const ft_step *step)
{
    double excess = 0, lasting = 0, busy = 0, hungriest = ft__power_hungriest(t->work->fleet);
    for (int32_t i = 0; i < step->kernel_count; i++) {
        const ft_timed *k = &step->kernels[i];
        double draw = draw_alone(t, k), alone = ft__power_alone(t->device, draw, k->forecast.ms),
               ms = k->forecast.ms / alone, times = k->times;
        if (t->work->unpaused > 1 && t->g->nodes[k->node].phase == FT_UPDATE) times /= (double)t->work->unpaused;
        double *more = t->g->nodes[k->node].op.dtype == FT_FP32 ? &lasting : &excess;
        *more += fmax(draw * alone * hungriest - 1, 0) * ms * times;
        busy += ms * times;
    }
    double span = fmax(busy, t->host_ms);
    if (!(excess + lasting > 0) || !(span > 0)) return 0;
    const double all = excess / span, kept = lasting / span, x = span / FT_K_IN_MODEL_SETTLES_MS;
    if (t->work->unpaused || ft__step_ahead(t->work)) return kept + all;
    if (t->work->task != FT_TRAIN && t->work->execution != FT_RUN_IDEAL)
        return kept + fmin(all, energy_lost(t, step, span));
    return kept + all * (1 - (1 - exp(-x)) / x); /* of the step, on average */
}

/* Products that held themselves back in their benchmarks, as neighbours of themselves, get that time back. */
static void apply_power(ft_run *t, ft_step *step)
{
    double clock = 1 + clock_lost(t, step);
    for (int32_t i = 0; i < step->kernel_count; i++) {
        ft_timed *k = &step->kernels[i];
        ft_forecast *f = &k->forecast;
        if (f->bound != FT_BOUND_COMPUTE) continue;
        double factor = clock / ft__power_alone(t->device, draw_alone(t, k), f->ms);
        if (fabs(factor - 1) < 0.0005) continue;
        double ms = fmax(f->launch_ms + (f->ms - f->launch_ms) * factor, f->roofline_ms), ratio = ms / f->ms;
        f->low_ms *= ratio;
        f->high_ms *= ratio;
        f->ms = ms;
        t->costs[k->node].gpu = ms;
    }
}

/* Megatron's weight gradients are added to a buffer as they are computed (gradient accumulation fusion): the product
 * reads what is there and writes it back, in fp32 beside bf16, instead of writing 16 bits. Its epilogue does not hide
 * all of that. */
static void apply_sums(ft_run *t, ft_step *step)
{
    const ft_workload *work = t->work;
    if (work->task != FT_TRAIN || !ft__stack(work)->sums_in_products || !work->master_weights) return;
    for (int32_t i = 0; i < step->kernel_count; i++) {
        ft_timed *k = &step->kernels[i];
        ft_forecast *f = &k->forecast;
        const ft_node *n = &t->g->nodes[k->node];
        if (n->phase != FT_BACKWARD || ft__node_class(n) != FT_CONTRACTION || !n->out_count || n->out[0] < 0) continue;
        const ft_tensor *sum = &t->g->tensors[n->out[0]];
        if (t->g->tensors[sum->storage].role != FT_GRADIENT) continue;
        double bytes = ft__tensor_numel(sum) * fmax(2 * ft__main_gradient(work) - sum->element_bytes, 0);
        double ms = FT_K_IN_MODEL_SUMS_SHOW * bytes / (t->device->memory_gbps * 1e6);
        ft__forecast_add(f, bytes, ms);
        t->costs[k->node].gpu = f->ms;
    }
}

/* A layer that is checkpointed by re-entry goes forward without autograd (torch.utils.checkpoint's CheckpointFunction,
 * Megatron's: torch.no_grad around it), and is recorded when it runs again. */
static bool goes_unrecorded(const ft_run *t, int32_t forward)
{
    if (t->work->recompute != FT_RECOMPUTE_FULL || !ft__host_reenters(&t->host)) return false;
    for (int32_t b = 0; b < t->g->block_count; b++) {
        const ft_block *block = &t->g->blocks[b];
        if (block->mirror == forward && block->count > 0 && t->g->nodes[block->first].phase == FT_RECOMPUTE)
            return true;
    }
    return false;
}

ft_status ft__time_nodes(ft_run *t, ft_step *step, ft_error *err)
{
    ft__memo_focus(t->memo, t->predictor, t->device, t->quantile);
    t->host_ms = 0;
    step->kernel_count = 0;
    ft__residency_walk(t->g, t->device, t->last, t->found);
    for (int32_t b = 0; b < t->g->block_count; b++) {
        const ft_block *block = &t->g->blocks[b];
        ft_issuer host = t->host;
        host.gradients = host.gradients && !goes_unrecorded(t, b);
        t->replays = false;
        if (t->graphed) t->captor = ft__captor(t->g, block);
        for (int32_t i = block->first; i < block->first + block->count; i++)
            FT_TRY(time_node(t, &host, b, i, step, err));
    }
    apply_power(t, step);
    apply_sums(t, step);
    return FT_OK;
}
