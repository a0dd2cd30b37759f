/* regime.c: shares of time, and what stands behind them. */
#include "explain/regime.h"

#include <math.h>
#include <string.h>

#include "device/balance.h"
#include "explain/bounds_constants.h"
#include "kernel/kernel.h"

/* A wave is as many tiles as the GPU holds at once. Of ceil(w) waves w are filled. */
static double tail_of(const ft_forecast *f)
{
    if (!(f->waves > 0) || f->tile_m == 0) return 0;
    return 1 - f->waves / ceil(f->waves - 1e-9);
}

void ft__regime_settle(const ft_graph *g, const ft_device *device, ft_step *step)
{
    double held[2] = {0}, both = step->regime[FT_BOUND_COMPUTE] + step->regime[FT_BOUND_MEMORY];
    for (int32_t i = 0; i < step->kernel_count; i++) {
        ft_timed *k = &step->kernels[i];
        ft_forecast *f = &k->forecast;
        if (f->bound == FT_BOUND_COMPUTE && ft__memory_holds(device, &g->nodes[k->node].op, f))
            f->bound = FT_BOUND_MEMORY;
        if (f->bound == FT_BOUND_COMPUTE || f->bound == FT_BOUND_MEMORY)
            held[f->bound == FT_BOUND_MEMORY] += fmax(f->ms - f->launch_ms, 0) * k->times;
    }
    if (held[0] + held[1] > 0) {
        step->regime[FT_BOUND_COMPUTE] = both * held[0] / (held[0] + held[1]);
        step->regime[FT_BOUND_MEMORY] = both * held[1] / (held[0] + held[1]); /* a difference may end below nothing */
    }
    step->bound = FT_BOUND_COMPUTE;
    for (int i = 0; i < 4; i++)
        if (step->regime[i] > step->regime[step->bound]) step->bound = (ft_bound)i;
    if (step->idle_ms > FT_K_BOUNDS_IDLES * step->step_ms && step->host_ms > FT_K_BOUNDS_WORKS * step->step_ms)
        step->bound = FT_BOUND_OVERHEAD;
}

/* Weights of what a sum of kernels averages. */
typedef struct sums {
    double tiled_ms, waves, tail;
    double flops[FT_DTYPE_COUNT];
} sums;

static void add(ft_verdict *v, sums *s, const ft_graph *g, const ft_timed *k)
{
    const ft_forecast *f = &k->forecast;
    double ms = f->ms * k->times, launch = fmin(f->launch_ms, f->ms) * k->times;
    v->ms += ms;
    v->launches += k->times;
    v->flops += f->flops * k->times;
    v->bytes += f->bytes * k->times;
    v->share[f->bound] += ms - launch;
    v->share[FT_BOUND_OVERHEAD] += launch;
    s->flops[g->nodes[k->node].op.dtype] += f->flops * k->times;
    if (f->tile_m == 0 || !(f->waves > 0)) return;
    s->tiled_ms += ms;
    s->waves += f->waves * ms;
    s->tail += tail_of(f) * ms;
}

static void name_it(ft_verdict *v)
{
    v->bound = FT_BOUND_COMPUTE;
    for (int i = 0; i < 4; i++)
        if (v->share[i] > v->share[v->bound]) v->bound = (ft_bound)i;
}

static void finish(ft_verdict *v, const sums *s, const ft_device *device)
{
    int most = FT_FP32;
    for (int i = 0; i < FT_DTYPE_COUNT; i++)
        if (s->flops[i] > s->flops[most]) most = i;
    v->balance = ft__machine_balance(device, (ft_dtype)most);
    v->peak_tflops = ft__peak_tflops(device, (ft_dtype)most);
    v->peak_gbps = device->memory_gbps;
    v->intensity = v->bytes > 0 ? v->flops / v->bytes : 0;
    v->waves = s->tiled_ms > 0 ? s->waves / s->tiled_ms : 0;
    v->tail = s->tiled_ms > 0 ? s->tail / s->tiled_ms : 0;
    if (!(v->ms > 0)) return;
    v->tflops = v->flops / v->ms * 1e-9;
    v->gbps = v->bytes / v->ms * 1e-6;
    for (int i = 0; i < 4; i++) v->share[i] /= v->ms;
    name_it(v);
}

ft_verdict ft__verdict_kernel(const ft_graph *g, const ft_timed *k, const ft_device *device)
{
    ft_verdict v = {.name = ""};
    sums s = {0};
    add(&v, &s, g, k);
    finish(&v, &s, device);
    v.bound = k->forecast.bound; /* its own forecast knows more than two shares */
    return v;
}

/* The forward block that a block belongs to; the update stands for itself. */
static int32_t home_of(const ft_graph *g, int32_t block)
{
    const ft_block *b = &g->blocks[block];
    return b->phase != FT_UPDATE && b->mirror >= 0 ? b->mirror : block;
}

static ft_status layers_of(const ft_graph *g, const ft_step *step, const ft_device *device, ft_arena *arena,
                           ft_verdicts *out, ft_error *err)
{
    size_t blocks = (size_t)g->block_count + 1;
    ft_verdict *v = ft__arena_array(arena, blocks, sizeof *v);
    sums *s = ft__arena_array(arena, blocks, sizeof *s);
    if (!v || !s) return ft__fail(err, FT_E_MEMORY, "out of memory for the verdicts");
    for (int32_t i = 0; i < step->kernel_count; i++) {
        int32_t home = home_of(g, step->kernels[i].block);
        add(&v[home], &s[home], g, &step->kernels[i]);
    }
    for (int32_t b = 0; b < g->block_count; b++) {
        if (!(v[b].ms > 0)) continue;
        finish(&v[b], &s[b], device);
        v[b].name = g->blocks[b].name ? g->blocks[b].name : "";
        v[out->layer_count++] = v[b];
    }
    out->layers = v;
    return FT_OK;
}

ft_status ft__verdicts_of(const ft_change *c, const ft_graph *g, const ft_step *step, ft_arena *arena, ft_verdicts *out,
                          ft_error *err)
{
    memset(out, 0, sizeof *out);
    sums whole = {0}, phases[FT_PHASE_COUNT] = {{0}};
    for (int32_t i = 0; i < step->kernel_count; i++) {
        const ft_timed *k = &step->kernels[i];
        ft_phase phase = g->nodes[k->node].phase;
        add(&out->whole, &whole, g, k);
        add(&out->phase[phase], &phases[phase], g, k);
    }
    finish(&out->whole, &whole, c->device);
    out->whole.name = "";
    for (int p = 0; p < FT_PHASE_COUNT; p++) {
        finish(&out->phase[p], &phases[p], c->device);
        out->phase[p].name = ft__phase_name((ft_phase)p);
    }
    /* The step knows what lies between its kernels. */
    memcpy(out->whole.share, step->regime, sizeof out->whole.share);
    out->whole.bound = step->bound;
    out->whole.ms = step->step_ms;
    if (step->step_ms > 0) {
        out->whole.tflops = out->whole.flops / step->step_ms * 1e-9;
        out->whole.gbps = out->whole.bytes / step->step_ms * 1e-6;
    }
    out->idle_ms = step->idle_ms;
    out->exposed_ms = step->comm_exposed_ms;
    out->bubble_ms = step->bubble_ms;
    if (step->ranks > 1) out->exposed_bytes = step->comm_exposed_ms * c->device->link_gbps_per_direction * 1e6;
    return layers_of(g, step, c->device, arena, out, err);
}

double ft__doubling(const ft_verdicts *v, const ft_step *step)
{
    return v->doubled_ms > 0 && step->step_ms > 0 ? v->doubled_ms / step->step_ms : 0;
}
