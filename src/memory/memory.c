/* memory.c: live bytes over the step: where they peak, and what they are at that moment.
 *
 * Sizes of tensors and workspaces are measured first; the walk over the nodes (sweep.c) finds the peak; what is there
 * before and after the step (kept.c), libraries and the allocator's rounding are added to it. */
#include <math.h>

#include "layout/layout.h"
#include "memory/allocator.h"
#include "memory/kept.h"
#include "memory/lifetime.h"
#include "memory/rehearse.h"
#include "memory/resident.h"
#include "memory/sizes.h"
#include "memory/sweep.h"
#include "memory/verdict.h"
#include "memory/workspace.h"
#include "timeline/memo.h"
#include "timeline/states.h"
#include "timeline/step.h"

/* What an inference pass of this graph's own code was counted to hold, in the request's format. */
static double held_by(const ft_graph *g, const ft_workload *work, bool compiled)
{
    static const double COUNTED_IN = 2; /* bytes of an element */
    if (work->task != FT_FORWARD_PASS || compiled || work->autocast) return 0;
    return g->held_bytes * ft_dtype_bytes(work->dtype) / COUNTED_IN;
}

/* Python's variables live longer than the operators say, or are let go before: where that was counted, the count is the
 * peak, unless a workspace beside less is more. */
static void settle_held(ft_sweep *s)
{
    if (!(s->held > s->peak_total) || s->peak_node < 0) return;
    s->peak = (ft_live){.saved = s->held};
    s->peak_total = s->held;
    s->peak_workspace = s->peak_beside = 0;
    s->most_saved = fmax(s->most_saved, s->held);
}

/* Unified memory: pages of states that find no room go to the host, and the update brings them back. */
static void page_out(ft_memory *m)
{
    m->paged_bytes = fmin(fmax(m->reserved_bytes + m->context_bytes - m->capacity_bytes, 0), m->optimizer_bytes);
    m->optimizer_bytes -= m->paged_bytes;
    m->reserved_bytes -= m->paged_bytes;
    m->peak_bytes -= m->paged_bytes;
}

/* The model's own number of a layer: a backward pass goes through them from the last to the first. -1: the block is
 * one. */
static int64_t layer_of(const ft_block *block, int64_t iteration)
{
    if (block->repeat < 2) return -1;
    return block->mirror >= 0 ? block->repeat - 1 - iteration : iteration;
}

static bool rehearsed(const ft_sweep *s, const ft_kept *k, double update, double handle, bool expandable, ft_memo *memo,
                      double *beyond)
{
    uint64_t key[2];
    if (!memo) return ft__rehearse(s, k, update, handle, expandable, beyond);
    ft__rehearsal_key(s, k, update, handle, expandable, key);
    if (ft__memo_recalls(memo, key, beyond)) return true;
    if (!ft__rehearse(s, k, update, handle, expandable, beyond)) return false;
    ft__memo_keep(memo, key, *beyond);
    return true;
}

/* A peak that needs no allocator to be judged: twice what there is, whose blocks none would ever see; or, where nothing
 * but the verdict is asked, more than there is, for no allocator reserves less. Pages of an optimizer that find no room
 * leave by what is reserved. */
static bool settled(const ft_workload *work, const ft_device *device, double peak)
{
    const double capacity = ft__device_capacity(device);
    if (peak > 2 * capacity) return true;
    return work->verdict_alone && peak > capacity - ft__context_bytes(device) &&
           !ft__offloads(work, FT_OFFLOAD_PAGED_OPTIMIZER);
}

/* What the allocator reserves: steps are put through it. Blocks of FSDP belong to several streams, and what decoding
 * finds cached is older than its step: there high-water marks of sizes stand for the cache. */
static bool reserve(const ft_sweep *s, const ft_kept *k, const ft_device *device, double libraries, double update,
                    ft_memo *memo, ft_memory *out)
{
    const ft_workload *work = s->work;
    const bool training = work->task == FT_TRAIN, decoding = work->task == FT_DECODE,
               expandable = work->expandable_segments && !decoding;
    double cached = s->share->apart_bytes, most = ft__pool_most(&s->pool) + s->most_beside, beyond = 0;
    if (s->share->fsdp && !s->kept_gradients) {
        cached += s->most_gradients - s->peak.gradients;
        most += s->peak.gradients;
    }
    if (!decoding && !s->share->fsdp && !work->peak_alone && !settled(work, device, out->peak_bytes)) {
        const double handle = ft__library_workspace(device, false);
        if (!rehearsed(s, k, update, handle, expandable, memo, &beyond)) return false;
        out->reserved_bytes = out->peak_bytes + cached + beyond;
        return true;
    }
    if (expandable) most = 0; /* each stream's segment holds what it held at most */
    const double copied = decoding && work->cache == FT_CACHE_DYNAMIC ? k->cache : 0;
    out->reserved_bytes = ft__reserved(training, k->packer.reserved + libraries + cached, fmax(s->peak_total, 0), most,
                                       copied);
    out->reserved_bytes = fmax(out->reserved_bytes, out->peak_bytes);
    return true;
}

/* A thread takes its BLAS workspace with its first product: networks of nothing but convolutions, which cuDNN computes
 * with handles of its own, never do. */
static double libraries_of(const ft_graph *g, const ft_workload *work, const ft_device *device)
{
    bool multiplies[2] = {false, false}; /* the forward pass's thread, autograd's */
    for (int32_t n = 0; n < g->node_count; n++)
        if (ft__calls_blas(&g->nodes[n])) multiplies[g->nodes[n].phase == FT_BACKWARD] = true;
    const int handles = multiplies[0] + (work->task == FT_TRAIN && multiplies[1]);
    return handles * ft__library_workspace(device, false);
}

/* NULL where there is no room: they are looked for again then. */
static const ft_lifetimes *kept_lives(const ft_graph *g, const ft_lifetimes *found)
{
    ft_lifetimes *kept = ft__arena_alloc(g->arena, sizeof *kept);
    if (kept) *kept = *found;
    return kept;
}

static ft_status sweep_step(const ft_graph *g, const ft_workload *work, const ft_device *device,
                            const ft_memory_share *share, ft_memo *memo, const ft_lifetimes **lives, ft_memory *out,
                            ft_memory_curve *curve, ft_error *err)
{
    if (curve) *curve = (ft_memory_curve){0};
    *out = (ft_memory){.peak_block = "", .peak_node = "", .peak_layer = -1, .remedy = ""};
    ft_sweep s;
    ft_kept k;
    double update;
    FT_TRY(ft__sweep_begin(g, work, device, share, lives ? *lives : NULL, &s, &k, &update, err));
    if (lives && !*lives) *lives = kept_lives(g, &s.lives);
    s.curve = curve;
    const double libraries = libraries_of(g, work, device) + s.stand_ins;
    s.held = share == &ft__share_alone ? held_by(g, work, s.compiled) : 0;
    for (int32_t b = 0; b < g->block_count; b++) ft__sweep_block(&s, b);
    settle_held(&s);

    if (curve) {
        if (curve->failed) return ft__fail(err, FT_E_MEMORY, "out of memory over a graph of %d nodes", g->node_count);
        curve->kept = (ft_memory_point){.block = -1,
                                        .node = -1,
                                        .gradients_bytes = k.gradients,
                                        .activations_bytes = k.inputs,
                                        .temporary_bytes = libraries,
                                        .kv_cache_bytes = k.cache};
    }
    out->weights_bytes = k.weights;
    out->gradients_bytes = k.gradients + s.peak.gradients;
    out->optimizer_bytes = k.optimizer;
    out->host_bytes = k.on_host;
    out->streamed_bytes = k.streamed;
    out->away_bytes = s.away_bytes;
    const ft_phase phase = s.peak_node >= 0 ? g->nodes[s.peak_node].phase : FT_FORWARD;
    out->activations_bytes = k.inputs + s.peak.saved + ft__sweep_waiting(&s, phase);
    out->saved_bytes = k.inputs + s.most_saved;
    out->communication_bytes = s.peak_beside - ft__sweep_waiting(&s, phase);
    out->temporary_bytes = s.peak.passing + s.peak_workspace + libraries;
    out->kv_cache_bytes = k.cache + s.peak.cache;
    out->peak_bytes = out->weights_bytes + out->gradients_bytes + out->optimizer_bytes + out->activations_bytes +
                      out->temporary_bytes + out->kv_cache_bytes + out->communication_bytes;
    if (!reserve(&s, &k, device, libraries, update, memo, out))
        return ft__fail(err, FT_E_MEMORY, "out of memory over a graph of %d nodes", g->node_count);
    out->context_bytes = ft__context_bytes(device);
    out->capacity_bytes = ft__device_capacity(device);
    if (ft__offloads(work, FT_OFFLOAD_PAGED_OPTIMIZER)) page_out(out);
    ft__judge(out, work);
    if (s.peak_node >= 0) {
        out->peak_phase = g->nodes[s.peak_node].phase;
        out->peak_node = g->nodes[s.peak_node].name ? g->nodes[s.peak_node].name : "";
        out->peak_block = g->blocks[s.peak_block].name ? g->blocks[s.peak_block].name : "";
        out->peak_layer = layer_of(&g->blocks[s.peak_block], s.peak_iteration);
    }
    return FT_OK;
}

ft_status ft__step_memory(const ft_graph *g, const ft_workload *work, const ft_device *device, ft_memory *out,
                          ft_error *err)
{
    return sweep_step(g, work, device, &ft__share_alone, NULL, NULL, out, NULL, err);
}

ft_status ft__step_memory_memoized(const ft_graph *g, const ft_workload *work, const ft_device *device, ft_memo *memo,
                                   ft_memory *out, ft_error *err)
{
    return sweep_step(g, work, device, &ft__share_alone, memo, NULL, out, NULL, err);
}

ft_status ft__step_memory_shared(const ft_graph *g, const ft_workload *work, const ft_device *device,
                                 const ft_memory_share *share, ft_memo *memo, const ft_lifetimes **lives,
                                 ft_memory *out, ft_error *err)
{
    return sweep_step(g, work, device, share ? share : &ft__share_alone, memo, lives, out, NULL, err);
}

ft_status ft__step_memory_curve(const ft_graph *g, const ft_workload *work, const ft_device *device, ft_memory *out,
                                ft_memory_curve *curve, ft_error *err)
{
    return sweep_step(g, work, device, &ft__share_alone, NULL, NULL, out, curve, err);
}
