/* memory.c: live bytes over the step: where they peak, and what they are at that moment.
 *
 * Sizes of tensors and workspaces are measured first; the walk over the nodes (sweep.c) finds the peak; what is there
 * before and after the step (kept.c), libraries and the allocator's rounding are added to it. */
#include <math.h>

#include "layout/layout.h"
#include "memory/allocator.h"
#include "memory/kept.h"
#include "memory/lifetime.h"
#include "memory/operands.h"
#include "memory/rehearse.h"
#include "memory/resident.h"
#include "memory/sweep.h"
#include "memory/verdict.h"
#include "memory/workspace.h"
#include "model/pytorch.h"
#include "timeline/memo.h"
#include "timeline/states.h"
#include "timeline/step.h"

/* A GPU alone keeps all, and has nothing beside. */
static const ft_memory_share ALONE = {.weights = {1, 1}, .gradients = {1, 1}, .optimizer = {1, 1}};

/* A weight's gradient that its product adds to those that wait: it has no memory of its own. */
static bool added_by_product(const ft_sweep *s, ft_ref t)
{
    const ft_verb verb = s->g->nodes[s->lives.birth[t]].verb;
    return s->stand_ins > 0 && s->g->tensors[t].role == FT_GRADIENT && (verb == FT_DO_LINEAR || verb == FT_DO_MATMUL);
}

static bool measure(ft_sweep *s)
{
    const ft_graph *g = s->g;
    s->size = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *s->size);
    s->pool_of = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *s->pool_of);
    const float *low = NULL;
    if (!s->size || !s->pool_of || !ft__low_operands(g, &s->lives, s->work, &low)) return false;
    ft__pool_init(&s->pool);
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_role role = g->tensors[i].role;
        if (s->lives.root[i] != i || s->lives.birth[i] < 0) continue;
        if (role != FT_ACTIVATION && role != FT_GRADIENT && !(role == FT_CACHE && s->growing_cache)) continue;
        if (added_by_product(s, i)) continue;
        /* Of a gradient that stays, the shard does; one that is added to its sum at once is there whole before. */
        const bool stays = role == FT_GRADIENT && !s->kept_gradients;
        double part = stays ? s->share->gradients[ft__is_expert(&g->tensors[i])] : 1;
        if (stays && s->share->fsdp)
            part *= (s->share->gradient_bytes > 0 ? s->share->gradient_bytes
                                                  : ft__gradient_element(s->work, &g->tensors[i])) /
                    g->tensors[i].element_bytes;
        if (low) part *= (double)low[i];
        s->size[i] = ft__allocated(ft__tensor_held(&g->tensors[i]) * part);
        s->pool_of[i] = (uint8_t)ft__pool_class(&s->pool, s->size[i]);
    }
    return true;
}

/* A node whose result takes the place of what it reads: the old bytes go as soon as the new ones are written, so that
 * only the moment of writing counts. The growing cache: keys and values with one more row replace those without. */
static bool replaces(const ft_sweep *s, const ft_node *n)
{
    if (n->verb != FT_DO_CAT || n->in_count < 1 || n->in[0] < 0 || s->work->cache != FT_CACHE_DYNAMIC) return false;
    return s->g->tensors[s->lives.root[n->in[0]]].role == FT_CACHE;
}

/* The second gradient of a tied weight is added to the first in a third tensor: autograd adds in place only what nobody
 * else sees. */
static bool adds_gradients(const ft_sweep *s, const ft_node *n)
{
    if (!n->in_place || n->in_count < 2 || n->in[0] < 0 || n->in[1] < 0) return false;
    const ft_ref to = s->lives.root[n->in[0]];
    return s->g->tensors[to].role == FT_GRADIENT && s->lives.root[n->in[1]] != to;
}

static bool measure_workspaces(ft_sweep *s, const ft_device *device, double update)
{
    const ft_graph *g = s->g;
    s->workspace = ft__arena_array(g->arena, (size_t)g->node_count + 1, sizeof *s->workspace);
    s->pool_at = ft__arena_array(g->arena, (size_t)g->node_count + 1, sizeof *s->pool_at);
    if (!s->workspace || !s->pool_at) return false;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        double bytes = ft__allocated(ft__node_workspace(g, n, device));
        if (n->verb == FT_DO_OPTIMIZER) bytes += update;
        for (int k = 0; k < n->out_count && s->share->fsdp; k++) { /* whole, before it is scattered */
            const ft_ref t = ft__sweep_made_by(s, i, k);
            if (t != FT_NONE && ft__sweep_apart(s, t)) bytes += ft__allocated(ft__tensor_held(&g->tensors[t]));
        }
        if (adds_gradients(s, n)) bytes += s->size[s->lives.root[n->in[0]]];
        if (replaces(s, n) && n->out_count > 0 && n->out[0] >= 0) {
            const ft_ref t = s->lives.root[n->out[0]];
            bytes += s->size[t];
            s->size[t] = 0;
        }
        s->workspace[i] = bytes;
        if (bytes > 0) s->pool_at[i] = (uint8_t)ft__pool_class(&s->pool, bytes);
    }
    return true;
}

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

static ft_holder holder_of(const ft_graph *g, bool compiled)
{
    return !compiled ? FT_PYTHON_HOLDS : g->layers_compiled ? FT_PYTHON_HOLDS_AROUND_LAYERS : FT_NOBODY_HOLDS;
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

static ft_status sweep_step(const ft_graph *g, const ft_workload *work, const ft_device *device,
                            const ft_memory_share *share, ft_memo *memo, ft_memory *out, ft_memory_curve *curve,
                            ft_error *err)
{
    if (curve) *curve = (ft_memory_curve){0};
    *out = (ft_memory){.peak_block = "", .peak_node = "", .peak_layer = -1, .remedy = ""};
    ft_sweep s = {
        .g = g, .work = work, .share = share, .peak_block = -1, .peak_node = -1, .peak_total = -1, .curve = curve};
    s.compiled = work->execution == FT_RUN_COMPILE || work->execution == FT_RUN_CUDA_GRAPH;
    FT_TRY(ft__lifetimes(g, holder_of(g, s.compiled), &s.lives, err));
    const bool training = work->task == FT_TRAIN;
    s.growing_cache = work->task == FT_PREFILL && work->cache == FT_CACHE_DYNAMIC;
    /* Megatron's fp32 gradients are a buffer; PyTorch's are dropped before the next step, since 2.0. */
    s.kept_gradients = training &&
                       (work->accumulate > 1 || (!share->fsdp && (work->master_weights || ft__keeps_gradients(work))));
    s.away = ft__offloads(work, FT_OFFLOAD_ACTIVATIONS);
    /* Who updates on the host adds micro-batches up there: a gradient leaves as soon as it is made. */
    const bool dropped = training &&
                         ((work->updates_in_backward && work->accumulate <= 1) || ft__updates_on_host(work));
    if (s.kept_gradients && !dropped && share->gradients[0] >= 1) s.stand_ins = ft__stand_ins(g, work);
    if (!measure(&s)) return ft__fail(err, FT_E_MEMORY, "out of memory over a graph of %d tensors", g->tensor_count);

    ft_kept k = {.growing_cache = s.growing_cache, .kept_gradients = s.kept_gradients && !dropped};
    s.kept_gradients = s.kept_gradients || dropped; /* each is gone when its node is done */
    ft__keep(g, work, share, &s.lives, &k);
    const bool here = training && !ft__updates_on_host(work);
    const double update = here ? ft__update_workspace(work, k.trained, k.widest) + k.main_gradients : 0;
    if (!measure_workspaces(&s, device, update) || !ft__sweep_moves(&s))
        return ft__fail(err, FT_E_MEMORY, "out of memory over a graph of %d nodes", g->node_count);
    const double libraries = libraries_of(g, work, device) + s.stand_ins;
    s.held = share == &ALONE ? held_by(g, work, s.compiled) : 0;
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
    return sweep_step(g, work, device, &ALONE, NULL, out, NULL, err);
}

ft_status ft__step_memory_memoized(const ft_graph *g, const ft_workload *work, const ft_device *device, ft_memo *memo,
                                   ft_memory *out, ft_error *err)
{
    return sweep_step(g, work, device, &ALONE, memo, out, NULL, err);
}

ft_status ft__step_memory_shared(const ft_graph *g, const ft_workload *work, const ft_device *device,
                                 const ft_memory_share *share, ft_memo *memo, ft_memory *out, ft_error *err)
{
    return sweep_step(g, work, device, share, memo, out, NULL, err);
}

ft_status ft__step_memory_curve(const ft_graph *g, const ft_workload *work, const ft_device *device, ft_memory *out,
                                ft_memory_curve *curve, ft_error *err)
{
    return sweep_step(g, work, device, &ALONE, NULL, out, curve, err);
}
