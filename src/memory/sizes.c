/* sizes.c: sizes of tensors and workspaces are measured before the walk over the nodes. */
#include "memory/sizes.h"

#include "memory/allocator.h"
#include "memory/operands.h"
#include "memory/workspace.h"
#include "model/pytorch.h"
#include "timeline/states.h"

const ft_memory_share ft__share_alone = {.weights = {1, 1}, .gradients = {1, 1}, .optimizer = {1, 1}};

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

static ft_holder holder_of(const ft_graph *g, bool compiled)
{
    return !compiled ? FT_PYTHON_HOLDS : g->layers_compiled ? FT_PYTHON_HOLDS_AROUND_LAYERS : FT_NOBODY_HOLDS;
}

ft_status ft__sweep_begin(const ft_graph *g, const ft_workload *work, const ft_device *device,
                          const ft_memory_share *share, const ft_lifetimes *lives, ft_sweep *s, ft_kept *k,
                          double *update, ft_error *err)
{
    *s = (ft_sweep){.g = g, .work = work, .share = share, .peak_block = -1, .peak_node = -1, .peak_total = -1};
    s->compiled = work->execution == FT_RUN_COMPILE || work->execution == FT_RUN_CUDA_GRAPH;
    if (lives)
        s->lives = *lives;
    else
        FT_TRY(ft__lifetimes(g, holder_of(g, s->compiled), &s->lives, err));
    const bool training = work->task == FT_TRAIN;
    s->growing_cache = work->task == FT_PREFILL && work->cache == FT_CACHE_DYNAMIC;
    /* Megatron's fp32 gradients are a buffer; PyTorch's are dropped before the next step, since 2.0. */
    s->kept_gradients = training &&
                        (work->accumulate > 1 || (!share->fsdp && (work->master_weights || ft__keeps_gradients(work))));
    s->away = ft__offloads(work, FT_OFFLOAD_ACTIVATIONS);
    /* Who updates on the host adds micro-batches up there: a gradient leaves as soon as it is made. */
    const bool dropped = training &&
                         ((work->updates_in_backward && work->accumulate <= 1) || ft__updates_on_host(work));
    if (s->kept_gradients && !dropped && share->gradients[0] >= 1) s->stand_ins = ft__stand_ins(g, work);
    if (!measure(s)) return ft__fail(err, FT_E_MEMORY, "out of memory over a graph of %d tensors", g->tensor_count);

    *k = (ft_kept){.growing_cache = s->growing_cache, .kept_gradients = s->kept_gradients && !dropped};
    s->kept_gradients = s->kept_gradients || dropped; /* each is gone when its node is done */
    ft__keep(g, work, share, &s->lives, k);
    const bool here = training && !ft__updates_on_host(work);
    *update = here ? ft__update_workspace(work, k->trained, k->widest) + k->main_gradients : 0;
    if (!measure_workspaces(s, device, *update) || !ft__sweep_moves(s))
        return ft__fail(err, FT_E_MEMORY, "out of memory over a graph of %d nodes", g->node_count);
    return FT_OK;
}
