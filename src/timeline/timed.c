/* timed.c: the nodes of a graph, each with its forecast: what fusion does to its traffic, what power does to the
 * mixture. */
#include "timeline/timed.h"

#include <math.h>

#include "kernel/kernel.h"
#include "kernel/power.h"

/* A fusion or a cast changed what the node moves: the time beyond the launch follows where memory sets it, and never
 * falls below what the bus needs, nor below what a product's arithmetic does at its peak: of weights in four bits the
 * bus may be done first. */
static void apply_traffic(const ft_device *device, const ft_op *op, double traffic, ft_forecast *f)
{
    if (!(traffic > 0) || traffic == 1) return;
    double body = f->ms - f->launch_ms, bytes = f->bytes * traffic, floor_ms = bytes / (device->memory_gbps * 1e6);
    double scaled = f->bound == FT_COMPUTE ? body : body * traffic;
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

static void stretch(ft_forecast *f, double by)
{
    f->ms *= by;
    f->low_ms *= by;
    f->high_ms *= by;
    f->sustained_ms *= by;
}

/* A kernel whose threads wait for one load before they issue the next is as long as its waits: a trip to memory, as
 * often as a thread makes one, for every round of blocks that the GPU holds. 0.42 us and three blocks per SM fit the
 * H200's batch norms and max pools of ResNet-18 and -50 (batch 1 to 128) within a fifth; latency differs little
 * between GPUs. */
static void apply_trips(const ft_device *device, const ft_node *n, ft_forecast *f)
{
    if (!(n->trips > 0)) return;
    double rounds = fmax(1, (double)n->blocks / (3.0 * device->sms));
    double ms = f->launch_ms + 0.42e-3 * (double)n->trips * rounds;
    if (ms > f->ms && f->ms > 0) stretch(f, ms / f->ms);
}

/* The operator as a framework runs it inside a model. */
static ft_op settled(const ft_node *n)
{
    ft_op op = n->op;
    op.timing = FT_TIMING_DEVICE;
    if (op.engine == FT_ENGINE_ANY && op.kind == FT_OP_ATTENTION) op.engine = FT_ENGINE_BARE;
    if (op.kind == FT_OP_GEMM && op.u.gemm.quantized < 0) op.u.gemm.quantized = 1;
    /* The family takes tensors as equal and asks whether their size is a multiple of 4; a model's mostly are, whatever
     * the mean of their sizes is. */
    if (op.kind == FT_OP_OPTIMIZER && op.u.optimizer.tensors > 0 && op.u.optimizer.params > 4 * op.u.optimizer.tensors)
        op.u.optimizer.params -= op.u.optimizer.params % (4 * op.u.optimizer.tensors);
    return op;
}

static ft_status time_node(ft_run *t, int32_t b, int32_t i, ft_step *step, ft_error *err)
{
    const ft_block *block = &t->g->blocks[b];
    const ft_node *n = &t->g->nodes[i];
    ft_beat *beat = &t->beats[i];
    double micro = n->phase == FT_UPDATE ? 1 : (double)t->work->accumulate;
    double times = (double)n->count * (double)block->repeat * micro;
    beat->count = (double)n->count;
    beat->host = ft__host_node_us(&t->host, n) * 1e-3;
    beat->waits = n->synced || n->verb == FT_DO_SYNC;
    t->host_ms += beat->host * times;
    if (!ft__node_runs(n)) return FT_OK;
    ft_op op = settled(n);
    const ft_forecast *found;
    FT_TRY(ft__memo_find(t->memo, t->predictor, t->device, &op, t->quantile, &found, err));
    ft_timed *k = &step->kernels[step->kernel_count++];
    k->node = i;
    k->block = b;
    k->times = times;
    k->forecast = *found;
    apply_traffic(t->device, &op, (double)n->traffic, &k->forecast);
    apply_trips(t->device, n, &k->forecast);
    if (n->effort > 0 && n->effort != 1) stretch(&k->forecast, (double)n->effort);
    beat->gpu = k->forecast.ms;
    return FT_OK;
}

/* A step is a mixture, and the power controller averages over it: matrix products that alone would hold the board
 * at its limit are diluted by kernels that wait for memory and by gaps. `load` is the mean draw over the limit if
 * nothing gave way. Above 1 the clock falls and all that is bound by arithmetic slows down with it; just below 1
 * it does so part of the time. Our H200, products in the model over their forecast alone: llama 8B prefill, load 0.97,
 * 1.03 to 1.08; llama 1B training, 0.82, 1.00 to 1.02; GPT-2, 0.63, 0.99 to 1.01; nothing but products, 1.19. Training
 * without a pause (training_sustained.jsonl.gz) holds the board at 690 W and 1.45 to 1.64 GHz even where a third of the
 * time goes to memory-bound kernels: those draw two thirds of the limit. The constants below were set by eye on all of
 * it. */
static double power_factor(const ft_run *t, const ft_step *step)
{
    const double waiting = 0.65; /* draw of a kernel that waits for memory, over the limit */
    const double sharp = 10;     /* how abruptly the clock gives way around a load of 1 */
    /* Draw over limit per flop/ms. ft__power_sustained is that factor where it exceeds 1, so it is asked at a rate
     * that no board can hold. */
    double per_rate[FT_DTYPE_COUNT] = {0}, load = 0, busy = 0, most = 0;
    const double impossible = 1e18;
    for (int32_t i = 0; i < step->kernel_count; i++) {
        const ft_timed *k = &step->kernels[i];
        const ft_forecast *f = &k->forecast;
        const ft_op *op = &t->g->nodes[k->node].op;
        double own = 0;
        if (f->flops > 0 && f->ms > 0 && ft__node_class(&t->g->nodes[k->node]) == FT_CONTRACTION) {
            double rate = per_rate[op->dtype];
            if (rate <= 0) rate = ft__power_sustained(t->device, op, impossible, 1) / impossible;
            if (rate * impossible > 1) own = (per_rate[op->dtype] = rate) * f->flops / f->ms;
        }
        most = fmax(most, own);
        load += fmax(own, waiting) * f->ms * k->times;
        busy += f->ms * k->times;
    }
    if (most <= 1) return 1; /* nothing in the step alone draws more than the board has */
    double span = fmax(busy, t->host_ms);
    /* Short steps come with pauses between them, at least in measurements: products of 4 to 60 ms steps took 0.85 to 1
     * of their forecast alone, whatever the load. */
    const double window_ms = 50;
    double steady = span > 0 ? pow(1 + pow(load / span, sharp), 1 / sharp) : 1;
    return 1 + (steady - 1) * span / (span + window_ms);
}

static void apply_power(ft_run *t, ft_step *step)
{
    double factor = power_factor(t, step);
    if (factor < 1.0005) return;
    for (int32_t i = 0; i < step->kernel_count; i++) {
        ft_forecast *f = &step->kernels[i].forecast;
        if (f->bound != FT_COMPUTE) continue;
        double ms = f->launch_ms + (f->ms - f->launch_ms) * factor, ratio = ms / f->ms;
        f->low_ms *= ratio;
        f->high_ms *= ratio;
        f->ms = ms;
        t->beats[step->kernels[i].node].gpu = ms;
    }
}

ft_status ft__time_nodes(ft_run *t, ft_step *step, ft_error *err)
{
    ft__memo_focus(t->memo, t->predictor, t->device, t->quantile);
    t->host_ms = 0;
    step->kernel_count = 0;
    for (int32_t b = 0; b < t->g->block_count; b++)
        for (int32_t i = t->g->blocks[b].first; i < t->g->blocks[b].first + t->g->blocks[b].count; i++)
            FT_TRY(time_node(t, b, i, step, err));
    apply_power(t, step);
    return FT_OK;
}
