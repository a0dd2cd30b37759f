/* kept.c: what is there all the time, packed into the allocator's segments one tensor after the other. */
#include "memory/kept.h"

#include <math.h>

#include "layout/layout.h"
#include "model/stack.h"
#include "timeline/states.h"

static double keep_copies(ft_kept *k, double bytes, int64_t copies)
{
    if (bytes <= 0) return 0;
    if (copies > 4096) { /* nobody's layers: no need to pack them */
        const double all = ft__allocated(bytes) * (double)copies;
        k->packer.allocated += all;
        k->packer.reserved += all;
        return all;
    }
    return ft__pack(&k->packer, bytes, copies);
}

double ft__kept_bytes(const ft_graph *g, const ft_memory_share *share, const ft_lifetimes *lives, const ft_kept *k,
                      ft_ref i)
{
    const ft_tensor *t = &g->tensors[i];
    if (lives->root[i] != i) return 0;
    const double bytes = ft__tensor_bytes(t);
    if (t->role == FT_INPUT) return bytes;
    if (t->role == FT_CACHE) return k->growing_cache && lives->birth[i] >= 0 ? 0 : bytes;
    if (t->role != FT_PARAMETER && t->role != FT_BUFFER) return 0;
    const bool wide = k->fp32_shards && t->role == FT_PARAMETER && t->trained;
    return (wide ? fmax(4 * ft__tensor_numel(t), bytes) : bytes) * share->weights[ft__is_expert(t)];
}

/* Weights that lie on the host. Whole ones: of layers two are here, the one that runs and the next. Of shards none are,
 * and what is gathered of them is counted as exchanges. */
int64_t ft__kept_copies(const ft_tensor *t, const ft_memory_share *share, const ft_kept *k)
{
    if (!k->streams || t->role != FT_PARAMETER) return t->copies;
    return share->weights[ft__is_expert(t)] < 1 ? 0 : t->copies > 2 ? 2 : t->copies;
}

static void keep_tensors(const ft_graph *g, const ft_memory_share *share, const ft_lifetimes *lives, ft_kept *k)
{
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        const double bytes = ft__kept_bytes(g, share, lives, k, i);
        if (bytes <= 0) continue;
        const double kept = keep_copies(k, bytes, ft__kept_copies(t, share, k));
        if (k->streams && t->role == FT_PARAMETER) k->streamed += bytes * (double)t->copies;
        if (t->role == FT_INPUT)
            k->inputs += kept;
        else if (t->role == FT_CACHE)
            k->cache += kept;
        else
            k->weights += kept;
    }
}

/* A frozen copy of the model, in the format that it computes in, sharded as the model is. */
static void keep_frozen(const ft_graph *g, const ft_memory_share *share, const ft_lifetimes *lives, ft_kept *k)
{
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (t->role == FT_PARAMETER && lives->root[i] == i)
            k->weights += keep_copies(k, ft__tensor_bytes(t) * share->weights[ft__is_expert(t)], t->copies);
    }
}

static double gradient_element(const ft_workload *work, const ft_memory_share *share, const ft_tensor *t)
{
    return share->gradient_bytes > 0 ? share->gradient_bytes : ft__gradient_element(work, t);
}

double ft__waiting_gradient(const ft_workload *work, const ft_memory_share *share, const ft_tensor *t)
{
    return ft__tensor_numel(t) * gradient_element(work, share, t) * share->gradients[ft__is_expert(t)];
}

/* A second model that is trained in turn with the first: weights and states are there twice, gradients of one of them
 * at a time. */
static void keep_critic(const ft_graph *g, const ft_workload *work, const ft_memory_share *share,
                        const ft_lifetimes *lives, ft_kept *k)
{
    const bool away = ft__updates_on_host(work);
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (t->role != FT_PARAMETER || lives->root[i] != i) continue;
        double parts[FT_STATE_PARTS] = {0};
        const int count = t->trained ? ft__optimizer_states(work, t, parts) : 0;
        const double states = share->optimizer[ft__is_expert(t)];
        k->weights += keep_copies(k, ft__kept_bytes(g, share, lives, k, i), ft__kept_copies(t, share, k));
        for (int p = k->fp32_shards && t->element_bytes < 4 ? 1 : 0; p < count; p++) {
            if (away)
                k->on_host += parts[p] * states * (double)t->copies;
            else
                k->optimizer += keep_copies(k, parts[p] * states, t->copies);
        }
    }
}

static void keep_training(const ft_graph *g, const ft_workload *work, const ft_memory_share *share,
                          const ft_lifetimes *lives, ft_kept *k)
{
    const bool away = ft__updates_on_host(work);
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (t->role != FT_PARAMETER || !t->trained || lives->root[i] != i) continue;
        double parts[FT_STATE_PARTS] = {0};
        const int count = ft__optimizer_states(work, t, parts);
        const bool expert = ft__is_expert(t);
        const double states = share->optimizer[expert];
        const int first = k->fp32_shards && t->element_bytes < 4 ? 1 : 0; /* the copy is the parameter */
        for (int p = first; p < count; p++) {
            if (away)
                k->on_host += parts[p] * states * (double)t->copies;
            else
                k->optimizer += keep_copies(k, parts[p] * states, t->copies);
        }
        const double element = gradient_element(work, share, t);
        if (k->kept_gradients) k->gradients += keep_copies(k, ft__waiting_gradient(work, share, t), t->copies);
        if (work->master_weights && element < 4 && !away) {
            const double joined = ft__stack(work)->flattens_gradients ? element : 0;
            const double mine = ft__tensor_numel(t) * states * (double)t->copies;
            k->main_gradients += (4 + joined) * mine;
            k->main_elements += mine;
        }
        k->trained += ft__tensor_bytes(t) * states * (double)t->copies;
        if (!k->widest || ft__tensor_numel(t) > ft__tensor_numel(k->widest)) k->widest = t;
    }
}

void ft__keep(const ft_graph *g, const ft_workload *work, const ft_memory_share *share, const ft_lifetimes *lives,
              ft_kept *k)
{
    k->fp32_shards = share->fsdp && work->task == FT_TRAIN && work->master_weights && !ft__updates_on_host(work);
    k->streams = ft__offloads(work, FT_OFFLOAD_PARAMETERS);
    keep_tensors(g, share, lives, k);
    for (int i = 0; i < ft__frozen_copies(work); i++) keep_frozen(g, share, lives, k);
    if (ft__has_critic(work)) keep_critic(g, work, share, lives, k);
    if (work->task == FT_TRAIN) keep_training(g, work, share, lives, k);
    const double at_a_time = share->update_elements;
    if (at_a_time > 0 && k->main_elements > at_a_time) k->main_gradients *= at_a_time / k->main_elements;
}

/* Gradients are all there when the last one is made, as the graph has them or as they wait for the next micro-batch:
 * the fewer bytes of the two. Rounding and what shares segments come on top. */
double ft__least_kept(const ft_graph *g, const ft_workload *work)
{
    double weights = 0, states = 0, trained = 0, gradients = 0;
    if (work->offload) return 0;
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (t->storage != i || (t->role != FT_PARAMETER && t->role != FT_GRADIENT)) continue;
        const double bytes = ft__tensor_bytes(t) * (double)t->copies;
        if (t->role == FT_GRADIENT) gradients += bytes;
        if (t->role != FT_PARAMETER) continue;
        weights += bytes;
        if (t->trained) trained += bytes;
        double parts[FT_STATE_PARTS] = {0};
        const int count = ft__optimizer_states(work, t, parts);
        for (int p = 0; p < count; p++) states += parts[p] * (double)t->copies;
    }
    const bool dropped = work->task != FT_TRAIN || work->updates_in_backward;
    return weights + states + (dropped ? 0 : fmin(trained, gradients));
}
