/* parameters.c: zero 3 as DeepSpeed ran it from March to October 2021 (versions 0.3.12 to 0.5.4, stage3.py and
 * partition_parameters.py; improved by its pull requests 1188 and 1453).
 *
 * A hook before every module gathers its parameters, each tensor by an all_gather of its own over all ranks, into a
 * list of as many pieces as there are ranks. Before each the host waits for the whole GPU (torch.cuda.synchronize in
 * _allgather_param), and behind each module again, when what it used is dropped (_partition_param): nothing runs beside
 * a gather but what follows an asked-for one.
 *
 * One gather is asked for ahead, of the next tensors up to a bucket, while fewer parameters are there than a limit; of
 * several the last alone is not waited for. A tied table is held by the outermost module through a whole pass, and
 * counts: with 51200 x 12288 of them the limit lets one in four of GPT-3's gathers run ahead, with x 20480 none. Going
 * back with full recomputation a layer's parameters are gathered twice, for running it again and for its gradient,
 * unless less than a distance lies between: four times the parameters pass the wire (Rajbhandari et al. 2021,
 * "ZeRO-Infinity", section 4.1), not three.
 *
 * Gradients wait in a bucket until one comes that does not fit; then each tensor of it is reduced by itself, small ones
 * too. Small parameters are whole until the update and then gathered at once, but copied out rank by rank.
 *
 * Limits are those of DeepSpeed's tutorial for Megatron-LM (data/constants/ranks/parameters.json); the code's own
 * defaults are the same but for larger buckets. What one exchange takes is in lists.c. */
#include "ranks/parameters.h"

#include <math.h>
#include <string.h>

#include "ranks/lists.h"
#include "ranks/parameters_constants.h"

typedef enum where { ABSENT, FLYING, THERE } where;

typedef struct use {
    int32_t node;
    ft_ref of;
} use;

typedef struct walk {
    const ft_ranks *r;
    const ft_graph *g;
    ft_stage *stage;
    ft_ranks_width *width;
    ft_sharded *at;    /* by node */
    ft_listed *gather; /* by tensor */
    where *state;
    bool *tied;
    int32_t *readers; /* by tensor: forward blocks that read it */
    int32_t *last;    /* by tensor: the last node that writes its storage */
    use *uses;
    int32_t use_count;
    double live, held; /* elements: there or on their way; of tied tables */
} walk;

/* -- gathers ----------------------------------------------------------------------------------- */

static ft_ref parameter(const ft_graph *g, ft_ref x)
{
    if (x < 0) return FT_NONE;
    ft_ref root = g->tensors[x].storage;
    return root >= 0 && g->tensors[root].role == FT_PARAMETER ? root : FT_NONE;
}

static bool large(const ft_graph *g, ft_ref x)
{
    return ft__tensor_numel(&g->tensors[x]) >= FT_K_PARAMETERS_PERSISTENT;
}

static bool same_module(const ft_node *a, const ft_node *b) { return a->phase == b->phase && a->at == b->at; }

/* The last node of a row of nodes that are one module. */
static int32_t module_end(const ft_graph *g, const ft_block *b, int32_t i)
{
    while (i + 1 < b->first + b->count && same_module(&g->nodes[i], &g->nodes[i + 1])) i++;
    return i;
}

static void list_uses(walk *w, const ft_block *b)
{
    w->use_count = 0;
    for (int32_t i = b->first; i < b->first + b->count; i++)
        for (int k = 0; k < w->g->nodes[i].in_count; k++) {
            ft_ref of = parameter(w->g, w->g->nodes[i].in[k]);
            if (of == FT_NONE || !large(w->g, of)) continue;
            const use *before = w->use_count ? &w->uses[w->use_count - 1] : NULL;
            if (before && before->of == of && same_module(&w->g->nodes[before->node], &w->g->nodes[i])) continue;
            w->uses[w->use_count++] = (use){i, of};
        }
}

static void land(walk *w)
{
    for (int32_t i = 0; i < w->use_count; i++)
        if (w->state[w->uses[i].of] == FLYING) w->state[w->uses[i].of] = THERE;
}

static bool flies(const walk *w)
{
    for (int32_t i = 0; i < w->use_count; i++)
        if (w->state[w->uses[i].of] == FLYING) return true;
    return false;
}

/* The next ones, in the order of use; after a block's last iteration comes another block, whose are not asked for. */
static void ask_ahead(walk *w, int32_t k, bool repeats, ft_sharded *at)
{
    double asked = 0;
    ft_ref last = FT_NONE;
    int32_t end = repeats ? k + w->use_count : w->use_count;
    for (int32_t j = k + 1; j < end && asked < FT_K_PARAMETERS_ASK_BUCKET; j++) {
        ft_ref of = w->uses[j % w->use_count].of;
        if (w->tied[of] || w->state[of] != ABSENT || !(w->gather[of].whole > 0)) continue;
        if (last != FT_NONE) at->fetch += w->gather[last].whole;
        w->state[of] = FLYING;
        asked += ft__tensor_numel(&w->g->tensors[of]);
        last = of;
    }
    if (last == FT_NONE) return;
    w->live += asked;
    at->stops = true;
    at->issue = w->gather[last].issue;
    at->ahead = w->gather[last].whole;
}

/* Used again in this iteration, with less than so many elements used in between. */
static bool kept_for_later(const walk *w, int32_t k)
{
    double between = 0;
    for (int32_t j = k + 1; j < w->use_count; j++) {
        if (w->uses[j].of == w->uses[k].of) return between < FT_K_PARAMETERS_REUSE_DISTANCE;
        between += ft__tensor_numel(&w->g->tensors[w->uses[j].of]);
    }
    return false;
}

static void walk_use(walk *w, const ft_block *b, int32_t k)
{
    const use *u = &w->uses[k];
    ft_sharded *at = &w->at[u->node];
    double numel = ft__tensor_numel(&w->g->tensors[u->of]);
    if (!(w->gather[u->of].whole > 0)) return; /* held whole: experts that no other rank has */
    if (w->state[u->of] == ABSENT) {
        at->stops = true;
        at->fetch += w->gather[u->of].whole;
        if (!w->tied[u->of]) w->live += numel; /* those count from the start */
    }
    at->stops = at->stops || w->state[u->of] == FLYING;
    if (at->stops) land(w);
    w->state[u->of] = THERE;
    if (!flies(w) && w->live < FT_K_PARAMETERS_MOST_LIVE) ask_ahead(w, k, b->repeat > 1, at);
    if (w->tied[u->of] || kept_for_later(w, k)) return;
    w->state[u->of] = ABSENT;
    w->live -= numel;
    w->at[module_end(w->g, b, u->node)].releases = true;
}

static void clear_gathers(walk *w, const ft_block *b)
{
    for (int32_t i = b->first; i < b->first + b->count; i++) {
        ft_sharded *at = &w->at[i];
        at->fetch = at->issue = at->ahead = 0;
        at->stops = at->releases = false;
    }
}

static ft_status price(walk *w, ft_ref of, ft_error *err)
{
    return ft__list_gather(w->r, w->stage->step.pace, &w->g->tensors[of], w->width, &w->gather[of], err);
}

/* Of a block that repeats, an iteration that has another one before it. */
static ft_status gather_block(walk *w, const ft_block *b, ft_error *err)
{
    list_uses(w, b);
    for (int32_t i = 0; i < w->use_count; i++)
        if (!(w->gather[w->uses[i].of].whole > 0)) FT_TRY(price(w, w->uses[i].of, err));
    for (int32_t i = 0; i < w->use_count; i++)
        if (!w->tied[w->uses[i].of]) w->state[w->uses[i].of] = ABSENT;
    w->live = w->held;
    for (int round = 0; round < (b->repeat > 1 ? 2 : 1); round++) {
        clear_gathers(w, b);
        for (int32_t k = 0; k < w->use_count; k++) walk_use(w, b, k);
    }
    for (int32_t i = b->first; i < b->first + b->count; i++)
        w->stage->axis_ms[FT_AXIS_DATA] += (w->at[i].fetch + w->at[i].ahead) * (double)b->repeat;
    return FT_OK;
}

/* -- reductions -------------------------------------------------------------------------------- */

typedef struct bucket {
    double numel, most;
    ft_reducing all;
    int32_t since; /* the node that made the latest */
} bucket;

static void flush(bucket *b, int32_t module, ft_reducing *at)
{
    at->list += b->all.list;
    at->exchange += b->all.exchange;
    at->fresh = at->fresh || b->since >= module;
    b->all = (ft_reducing){0};
    b->numel = 0;
}

/* A gradient is complete, made by a module whose first node is `module`. */
static ft_status arrive(walk *w, bucket *b, ft_ref gradient, int32_t node, int32_t module, ft_reducing *at,
                        ft_error *err)
{
    const ft_tensor *t = &w->g->tensors[gradient];
    double numel = ft__tensor_numel(t);
    if (b->numel > 0 && b->numel + numel > b->most) flush(b, module, at);
    b->numel += numel;
    b->since = node;
    return ft__list_reduce(w->r, t, w->width, &b->all, err);
}

/* Megatron adds biases outside of the product: their gradients are there before the product's. */
static ft_status arrivals(walk *w, bucket *b, int32_t from, int32_t to, bool biases_first, ft_error *err)
{
    for (int round = biases_first ? 0 : 1; round < 2; round++)
        for (int32_t i = from; i <= to; i++) {
            const ft_node *n = &w->g->nodes[i];
            for (int k = 0; k < n->out_count; k++) {
                ft_ref x = n->out[k] < 0 ? FT_NONE : w->g->tensors[n->out[k]].storage;
                if (x < 0 || w->g->tensors[x].role != FT_GRADIENT || w->last[x] != i) continue;
                bool early = biases_first && to > from && !large(w->g, x);
                if (early != (round == 0)) continue;
                FT_TRY(
                    arrive(w, b, x, early ? from - 1 : i, from, early ? &w->at[from].before : &w->at[i].behind, err));
            }
        }
    return FT_OK;
}

static ft_status reduce_block(walk *w, const ft_block *b, ft_error *err)
{
    double element = ft__ranks_reduce_bytes(w->r->parallel, w->r->work), asked = w->r->parallel->bucket_bytes;
    bucket full = {.most = asked > 0 ? asked / element : FT_K_PARAMETERS_REDUCE_BUCKET, .since = -1};
    bool megatron = ft__stack(w->r->work)->fused_activations; /* with its bias */
    int32_t end = b->first + b->count;
    for (int round = 0; round < (b->repeat > 1 ? 2 : 1); round++) {
        for (int32_t i = b->first; i < end; i++) w->at[i].before = w->at[i].behind = (ft_reducing){0};
        full.since = -1; /* the iteration before is over */
        for (int32_t i = b->first, last; i < end; i = last + 1) {
            last = module_end(w->g, b, i);
            FT_TRY(arrivals(w, &full, i, last, megatron, err));
        }
    }
    if (b->repeat <= 1 && b->count > 0 && full.numel > 0) flush(&full, b->first, &w->at[end - 1].behind);
    for (int32_t i = b->first; i < end; i++) {
        const ft_sharded *at = &w->at[i];
        double ms = at->before.list + at->before.exchange + at->behind.list + at->behind.exchange;
        w->stage->gradient_ms += ms * (double)b->repeat;
    }
    return FT_OK;
}

/* -- all of it --------------------------------------------------------------------------------- */

/* After the update: one gather of all that is small, then every tensor copied out of every rank's part. */
static ft_status gather_small(walk *w, ft_error *err)
{
    double tensors = 0, elements = 0, ms;
    for (int32_t i = 0; i < w->g->tensor_count; i++) {
        const ft_tensor *t = &w->g->tensors[i];
        if (t->role != FT_PARAMETER || t->storage != i || !t->trained || large(w->g, i)) continue;
        tensors += (double)t->copies;
        elements += ft__tensor_numel(t) * (double)t->copies;
    }
    FT_TRY(ft__list_spread(w->r, tensors, elements, w->width, &ms, err));
    w->stage->gather_ms += ms;
    return FT_OK;
}

static ft_status make_room(walk *w, ft_error *err)
{
    size_t nodes = (size_t)w->g->node_count + 1, tensors = (size_t)w->g->tensor_count + 1;
    ft_arena *arena = w->r->arena;
    w->at = ft__arena_array(arena, nodes, sizeof *w->at);
    w->uses = ft__arena_array(arena, nodes * FT_NODE_INPUTS, sizeof *w->uses);
    w->gather = ft__arena_array(arena, tensors, sizeof *w->gather);
    w->state = ft__arena_array(arena, tensors, sizeof *w->state);
    w->tied = ft__arena_array(arena, tensors, sizeof *w->tied);
    w->readers = ft__arena_array(arena, tensors, sizeof *w->readers);
    w->last = ft__arena_array(arena, tensors, sizeof *w->last);
    if (!w->at || !w->uses || !w->gather || !w->state || !w->tied || !w->readers || !w->last)
        return ft__fail(err, FT_E_MEMORY, "out of memory for a stage's parameters");
    return FT_OK;
}

/* Who writes a tensor last, which parameters several blocks read. */
static void look_around(walk *w)
{
    const ft_graph *g = w->g;
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (block->phase == FT_FORWARD) list_uses(w, block);
        for (int32_t i = 0; i < w->use_count && block->phase == FT_FORWARD; i++) {
            ft_ref of = w->uses[i].of;
            bool again = false;
            for (int32_t j = 0; j < i; j++) again = again || w->uses[j].of == of;
            if (!again && ++w->readers[of] == 2) {
                w->tied[of] = true;
                w->held += ft__tensor_numel(&g->tensors[of]);
            }
        }
        for (int32_t i = block->first; i < block->first + block->count; i++)
            for (int k = 0; k < g->nodes[i].out_count; k++)
                if (g->nodes[i].out[k] >= 0 && g->tensors[g->nodes[i].out[k]].storage >= 0)
                    w->last[g->tensors[g->nodes[i].out[k]].storage] = i;
    }
}

ft_status ft__ranks_parameters(const ft_ranks *r, ft_stage *stage, ft_ranks_width *width, const ft_sharded **out,
                               ft_error *err)
{
    walk w = {.r = r, .g = stage->g, .stage = stage, .width = width};
    FT_TRY(make_room(&w, err));
    look_around(&w);
    bool going_back = false;
    for (int32_t b = 0; b < w.g->block_count; b++) {
        const ft_block *block = &w.g->blocks[b];
        if (block->phase == FT_UPDATE) continue;
        if (block->phase == FT_BACKWARD && !going_back) { /* a new pass: tied tables too are gathered again */
            memset(w.state, 0, ((size_t)w.g->tensor_count + 1) * sizeof *w.state);
            going_back = true;
        }
        bool kept = going_back && r->parallel->keep_gathered;
        if (!kept) FT_TRY(gather_block(&w, block, err));
        if (going_back) FT_TRY(reduce_block(&w, block, err));
    }
    *out = w.at;
    return gather_small(&w, err);
}
