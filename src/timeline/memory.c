/* memory.c: live bytes over the step: where they peak, and what they are at that moment. */
#include <math.h>
#include <string.h>

#include "timeline/allocator.h"
#include "timeline/lifetime.h"
#include "timeline/resident.h"
#include "timeline/states.h"
#include "timeline/step.h"
#include "timeline/workspace.h"

/* What is live, by what it is. */
typedef struct live {
    double gradients, saved, passing, cache;
} live;

typedef struct sweep {
    const ft_graph *g;
    const ft_workload *work;
    ft_lifetimes lives;
    double *size;        /* storage -> bytes; 0 for what is not made by the step */
    bool growing_cache;  /* the step makes the cache; otherwise it is there before */
    bool kept_gradients; /* they are there before the backward pass: accumulated over micro-batches, or fp32 copies */
    live now, peak;
    double *workspace; /* node -> bytes it holds while it runs */
    double peak_total, peak_workspace;
    int32_t peak_block, peak_node;
    int64_t peak_iteration;
} sweep;

static double total(const live *l) { return l->gradients + l->saved + l->passing + l->cache; }

static double *account(sweep *s, ft_ref t)
{
    switch (s->g->tensors[t].role) {
    case FT_GRADIENT: return s->kept_gradients ? &s->now.passing : &s->now.gradients;
    case FT_CACHE: return &s->now.cache;
    default: return s->lives.saved[t] || s->work->task != FT_TRAIN ? &s->now.saved : &s->now.passing;
    }
}

static void note(sweep *s, int32_t block, int32_t node, int64_t iteration, double workspace)
{
    const double bytes = total(&s->now) + workspace;
    if (bytes <= s->peak_total) return;
    s->peak_total = bytes;
    s->peak = s->now;
    s->peak_workspace = workspace;
    s->peak_block = block;
    s->peak_node = node;
    s->peak_iteration = iteration;
}

static void walk_iteration(sweep *s, int32_t b, int64_t iteration)
{
    const ft_graph *g = s->g;
    const ft_block *block = &g->blocks[b];
    for (int32_t n = block->first; n < block->first + block->count; n++) {
        const ft_node *node = &g->nodes[n];
        const double workspace = s->workspace[n];
        for (int i = 0; i < node->out_count; i++) {
            if (node->out[i] < 0) continue;
            const ft_ref t = s->lives.root[node->out[i]];
            if (s->lives.birth[t] != n || s->size[t] <= 0) continue;
            if (i > 0 && s->lives.root[node->out[i - 1]] == t) continue; /* two views of one result */
            *account(s, t) += s->size[t];
        }
        note(s, b, n, iteration, workspace);
        for (int32_t d = s->lives.first[n]; d >= 0; d = s->lives.deaths[d].next) {
            const ft_death *death = &s->lives.deaths[d];
            if (ft__happens(death->when, iteration, block->repeat))
                *account(s, death->tensor) -= s->size[death->tensor];
        }
        if (s->kept_gradients) /* added to the waiting gradient, then gone */
            for (int i = 0; i < node->out_count; i++) {
                const ft_ref t = node->out[i] < 0 ? FT_NONE : s->lives.root[node->out[i]];
                if (t != FT_NONE && g->tensors[t].role == FT_GRADIENT && s->lives.birth[t] == n)
                    s->now.passing -= s->size[t];
            }
    }
}

/* From the second iteration to the last but one every iteration adds the same: bytes are linear in between, and the
 * peak over them is at one of their ends. */
static void walk_block(sweep *s, int32_t b)
{
    const int64_t repeat = s->g->blocks[b].repeat;
    for (int64_t i = 0; i < repeat; i++) {
        const live before = s->now;
        walk_iteration(s, b, i);
        if (i != 1 || repeat <= 4) continue;
        const double skipped = (double)(repeat - 4);
        s->now.gradients += skipped * (s->now.gradients - before.gradients);
        s->now.saved += skipped * (s->now.saved - before.saved);
        s->now.passing += skipped * (s->now.passing - before.passing);
        s->now.cache += skipped * (s->now.cache - before.cache);
        i = repeat - 3;
    }
}

/* What is there before the step begins and after it ended. */
typedef struct kept {
    double weights, gradients, optimizer, inputs, cache;
    double trained; /* bytes of trained parameters */
    const ft_tensor *widest;
    ft_packer packer;
} kept;

static double keep_copies(kept *k, double bytes, int64_t copies)
{
    if (bytes <= 0) return 0;
    if (copies > 4096) { /* nobody's layers: no need to pack one by one */
        const double all = ft__allocated(bytes) * (double)copies;
        k->packer.allocated += all;
        k->packer.reserved += all;
        return all;
    }
    double sum = 0;
    for (int64_t i = 0; i < copies; i++) sum += ft__pack(&k->packer, bytes);
    return sum;
}

static void keep_tensors(const sweep *s, kept *k)
{
    const ft_graph *g = s->g;
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (s->lives.root[i] != i) continue;
        const double bytes = ft__tensor_bytes(t);
        if (t->role == FT_PARAMETER || t->role == FT_BUFFER) {
            k->weights += keep_copies(k, bytes, t->copies);
        } else if (t->role == FT_INPUT) {
            k->inputs += keep_copies(k, bytes, t->copies);
        } else if (t->role == FT_CACHE && !(s->growing_cache && s->lives.birth[i] >= 0)) {
            k->cache += keep_copies(k, bytes, t->copies);
        }
    }
}

static void keep_training(const sweep *s, kept *k)
{
    const ft_graph *g = s->g;
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (t->role != FT_PARAMETER || !t->trained || s->lives.root[i] != i) continue;
        double parts[FT_STATE_PARTS] = {0};
        const int count = ft__optimizer_states(s->work, t, parts);
        for (int p = 0; p < count; p++) k->optimizer += keep_copies(k, parts[p], t->copies);
        if (s->kept_gradients)
            k->gradients += keep_copies(k, ft__tensor_numel(t) * ft__gradient_element(s->work, t), t->copies);
        k->trained += ft__tensor_bytes(t) * (double)t->copies;
        if (!k->widest || ft__tensor_numel(t) > ft__tensor_numel(k->widest)) k->widest = t;
    }
}

static double *sizes(const sweep *s, double *largest)
{
    const ft_graph *g = s->g;
    double *size = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *size);
    if (!size) return NULL;
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_role role = g->tensors[i].role;
        if (s->lives.root[i] != i || s->lives.birth[i] < 0) continue;
        if (role != FT_ACTIVATION && role != FT_GRADIENT && !(role == FT_CACHE && s->growing_cache)) continue;
        size[i] = ft__allocated(ft__tensor_bytes(&g->tensors[i]));
        *largest = fmax(*largest, size[i]);
    }
    return size;
}

/* An update that takes the place of what it reads: the old bytes go as soon as the new ones are written, so that only the
 * moment of writing counts. The growing cache: keys and values with one more row replace those without. */
static bool replaces(const sweep *s, const ft_node *n)
{
    if (n->verb != FT_DO_CAT || n->in_count < 1 || n->in[0] < 0 || s->work->cache != FT_CACHE_DYNAMIC) return false;
    return s->g->tensors[s->lives.root[n->in[0]]].role == FT_CACHE;
}

/* The second gradient of a tied weight is added to the first in a third tensor: autograd adds in place only what nobody
 * else sees. */
static bool adds_gradients(const sweep *s, const ft_node *n)
{
    if (!n->in_place || n->in_count < 2 || n->in[0] < 0 || n->in[1] < 0) return false;
    const ft_ref to = s->lives.root[n->in[0]];
    return s->g->tensors[to].role == FT_GRADIENT && s->lives.root[n->in[1]] != to;
}

static double *workspaces(sweep *s, const ft_device *device, double update)
{
    const ft_graph *g = s->g;
    double *bytes = ft__arena_array(g->arena, (size_t)g->node_count + 1, sizeof *bytes);
    if (!bytes) return NULL;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        bytes[i] = ft__allocated(ft__node_workspace(g, n, device));
        if (n->verb == FT_DO_OPTIMIZER) bytes[i] += update;
        if (adds_gradients(s, n)) bytes[i] += s->size[s->lives.root[n->in[0]]];
        if (replaces(s, n) && n->out_count > 0 && n->out[0] >= 0) {
            const ft_ref t = s->lives.root[n->out[0]];
            bytes[i] += s->size[t];
            s->size[t] = 0;
        }
    }
    return bytes;
}

ft_status ft__step_memory(const ft_graph *g, const ft_workload *work, const ft_device *device, ft_memory *out,
                          ft_error *err)
{
    *out = (ft_memory){.peak_block = "", .peak_node = "", .remedy = ""};
    sweep s = {.g = g, .work = work, .peak_block = -1, .peak_node = -1, .peak_total = -1};
    const bool compiled = work->execution == FT_RUN_COMPILE || work->execution == FT_RUN_CUDA_GRAPH;
    FT_TRY(ft__lifetimes(g, !compiled, &s.lives, err));
    const bool training = work->task == FT_TRAIN;
    s.growing_cache = work->task == FT_PREFILL && work->cache == FT_CACHE_DYNAMIC;
    s.kept_gradients = training && (work->accumulate > 1 || work->master_weights);
    double largest = 0;
    s.size = sizes(&s, &largest);
    if (!s.size) return ft__fail(err, FT_E_MEMORY, "out of memory over a graph of %d tensors", g->tensor_count);

    kept k = {0};
    keep_tensors(&s, &k);
    if (training) keep_training(&s, &k);
    s.workspace = workspaces(&s, device, training ? ft__update_workspace(work, k.trained, k.widest) : 0);
    if (!s.workspace) return ft__fail(err, FT_E_MEMORY, "out of memory over a graph of %d nodes", g->node_count);
    const double libraries = ft__library_workspace(device, training);
    for (int32_t b = 0; b < g->block_count; b++) walk_block(&s, b);

    out->weights_bytes = k.weights;
    out->gradients_bytes = k.gradients + s.peak.gradients;
    out->optimizer_bytes = k.optimizer;
    out->activations_bytes = k.inputs + s.peak.saved;
    out->temporary_bytes = s.peak.passing + s.peak_workspace + libraries;
    out->kv_cache_bytes = k.cache + s.peak.cache;
    out->peak_bytes = out->weights_bytes + out->gradients_bytes + out->optimizer_bytes + out->activations_bytes +
                      out->temporary_bytes + out->kv_cache_bytes;
    out->reserved_bytes = ft__reserved(k.packer.reserved + libraries, fmax(s.peak_total, 0), largest);
    out->context_bytes = ft__context_bytes(device);
    out->capacity_bytes = ft__device_capacity(device);
    out->fits = out->reserved_bytes + out->context_bytes <= out->capacity_bytes;
    if (s.peak_node >= 0) {
        out->peak_phase = g->nodes[s.peak_node].phase;
        out->peak_node = g->nodes[s.peak_node].name ? g->nodes[s.peak_node].name : "";
        out->peak_block = g->blocks[s.peak_block].name ? g->blocks[s.peak_block].name : "";
        out->peak_iteration = (double)s.peak_iteration;
    }
    return FT_OK;
}
