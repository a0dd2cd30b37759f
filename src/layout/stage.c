/* stage.c: the blocks of one pipeline stage.
 *
 * Layers are shared out as deal.c says. What comes before the layers goes with the first chunk of the first stage, what
 * comes after with the last chunk of the last, of a V of the first. A stage without the embedding starts from what the
 * stage before it sends. */
#include "layout/layout.h"

static bool is_layers(const ft_block *b)
{
    return b->carry_in != FT_NONE && b->kind == FT_BLOCK_LAYERS && b->trunk == FT_TRUNK_MODEL;
}

/* Layers in one iteration of a block: a period of several kinds counts as that many. */
static int64_t period_of(const ft_graph *g, int32_t block)
{
    int64_t attentions = 0;
    const ft_block *b = &g->blocks[block];
    for (int32_t i = b->first; i < b->first + b->count; i++)
        attentions += g->nodes[i].verb == FT_DO_ATTENTION || ft__node_site(&g->nodes[i]) == FT_SITE_ATTN_SCORES;
    return attentions > 0 ? attentions : 1;
}

typedef struct dealer {
    const ft_graph *g;
    int64_t stages, chunks, units, most; /* units: layers; most: of the longest period */
    bool rest;                           /* the last place takes what remains */
    ft_schedule schedule;
    int32_t first, last; /* blocks of layers */
} dealer;

static dealer look(const ft_graph *g, const ft_parallel *p)
{
    dealer d = {.g = g,
                .stages = p->pp,
                .chunks = ft__parallel_chunks(p),
                .rest = p->rest,
                .schedule = p->schedule,
                .most = 1,
                .first = -1,
                .last = -1};
    for (int32_t b = 0; b < g->block_count; b++) {
        if (!is_layers(&g->blocks[b])) continue;
        int64_t period = period_of(g, b);
        if (d.first < 0) d.first = b;
        d.last = b;
        d.units += g->blocks[b].repeat * period;
        if (period > d.most) d.most = period;
    }
    return d;
}

/* Layers from `at` to `end` that a chunk of a stage gets. */
static int64_t met(const dealer *d, int64_t stage, int64_t chunk, int64_t at, int64_t end)
{
    int64_t from, to;
    ft__layout_range(d->units, d->stages * d->chunks, d->rest, ft__schedule_place(d->schedule, d->stages, stage, chunk),
                     &from, &to);
    if (from < at) from = at;
    if (to > end) to = end;
    return to > from ? to - from : 0;
}

/* Iterations of a block of layers that a stage runs, and which part of them each chunk. A period of several kinds, as
 * models have one with more layers than are built apart, goes to the stage in which the stages' layers, counted one
 * stage after the other, begin it. */
static int64_t deal_layers(const dealer *d, int64_t stage, int32_t b, int64_t at, double *parts)
{
    int64_t period = period_of(d->g, b), end = at + d->g->blocks[b].repeat * period, before = 0, mine = 0;
    for (int64_t s = 0; s < stage; s++)
        for (int64_t c = 0; c < d->chunks; c++) before += met(d, s, c, at, end);
    for (int64_t c = 0; c < d->chunks; c++) mine += met(d, stage, c, at, end);
    for (int64_t c = 0; c < d->chunks && parts; c++)
        parts[c * d->g->block_count + b] = mine > 0 ? (double)met(d, stage, c, at, end) / (double)mine : 0;
    return (before + mine + period - 1) / period - (before + period - 1) / period;
}

ft_status ft__layout_shares(const ft_graph *g, const ft_parallel *p, int64_t stage, int64_t *kept, double *parts,
                            ft_error *err)
{
    dealer d = look(g, p);
    int64_t at = 0, mine = 0, last_stage = ft__parallel_end(p);
    for (int32_t b = 0; b < g->block_count; b++) kept[b] = g->blocks[b].repeat;
    for (int64_t i = 0; i < d.chunks * g->block_count && parts; i++) parts[i] = d.chunks == 1;
    if (d.stages <= 1) return FT_OK;
    if (d.first < 0) return ft__fail(err, FT_E_UNSUPPORTED, "this model has no chain of layers to divide into stages");
    if (d.units < d.stages)
        return ft__fail(err, FT_E_RANGE, "%lld pipeline stages are more than the model's %lld layers",
                        (long long)d.stages, (long long)d.units);
    for (int32_t b = 0; b < g->block_count; b++) {
        if (is_layers(&g->blocks[b])) {
            kept[b] = deal_layers(&d, stage, b, at, parts);
            mine += kept[b];
            at += g->blocks[b].repeat * period_of(g, b);
        } else if ((b < d.first && stage > 0) || (b > d.last && stage != last_stage)) {
            kept[b] = 0;
        } else if (parts) {
            int64_t chunk = b > d.last ? d.chunks - 1 : 0;
            parts[chunk * g->block_count + b] = 1;
        }
    }
    if (mine < 1)
        return ft__fail_at(
            err, FT_E_RANGE, "parallel.pp", 0, 0,
            "stage %lld of %lld has no layer: the model's %lld layers come in patterns of %lld; \"pp\" can "
            "be at most %lld",
            (long long)stage, (long long)d.stages, (long long)d.units, (long long)d.most,
            (long long)(d.units / d.most));
    return FT_OK;
}

/* Keeps the parts of the blocks that stay, by their new numbers. */
static void renumber_parts(const int32_t *renumbered, int32_t before, int32_t now, int64_t chunks, double *parts)
{
    for (int64_t c = 0; c < chunks; c++)
        for (int32_t b = 0; b < before; b++)
            if (renumbered[b] >= 0) parts[c * now + renumbered[b]] = parts[c * before + b];
}

/* The block with its nodes behind those that stay, and so many of its repetitions. */
static ft_status keep_block(ft_graph *g, const ft_node *nodes, int32_t b, int64_t repeat, bool *used, ft_block *out,
                            ft_error *err)
{
    ft_block block = g->blocks[b];
    int32_t start = g->node_count;
    for (int32_t i = block.first; i < block.first + block.count; i++)
        if (!ft__graph_node(g, &nodes[i])) return ft__no_memory(err);
    block.first = start;
    for (int32_t i = block.first; i < block.first + block.count; i++)
        for (int k = 0; k < g->nodes[i].in_count; k++)
            if (g->nodes[i].in[k] >= 0) used[g->tensors[g->nodes[i].in[k]].storage] = true;
    for (int32_t i = 0; i < g->tensor_count; i++) {
        ft_tensor *t = &g->tensors[i];
        if (t->block == b && (t->role == FT_PARAMETER || t->role == FT_CACHE) && t->copies == block.repeat)
            t->copies = repeat;
    }
    block.repeat = repeat;
    *out = block;
    return FT_OK;
}

/* Parameters follow their block; what several stages need (a tied table) stays where it is used. */
static void keep_tensors(ft_graph *g, const bool *used, const int32_t *renumbered)
{
    for (int32_t i = 0; i < g->tensor_count; i++) {
        ft_tensor *t = &g->tensors[i];
        bool kept_here = used[i] || (t->block >= 0 && t->block < g->block_count && renumbered[t->block] >= 0);
        bool elsewhere = t->role == FT_PARAMETER || t->role == FT_CACHE || t->role == FT_BUFFER || t->role == FT_INPUT;
        if (elsewhere && !kept_here) {
            t->role = FT_INPUT;
            t->element_bytes = 0;
            t->trained = false;
        }
        if (t->block >= 0) t->block = renumbered[t->block]; /* tensors name their blocks by number */
    }
}

ft_status ft__layout_stage(ft_graph *g, const ft_parallel *p, int64_t stage, ft_chunks *chunks, ft_error *err)
{
    int64_t count = ft__parallel_chunks(p);
    double *parts = NULL;
    if (chunks) {
        parts = ft__arena_array(g->arena, (size_t)(count * g->block_count) + 1, sizeof *parts);
        if (!parts) return ft__no_memory(err);
        *chunks = (ft_chunks){.count = count, .blocks = g->block_count, .parts = parts};
        for (int32_t b = 0; b < g->block_count; b++) parts[b] = 1;
    }
    if (p->pp <= 1) return FT_OK;
    int64_t *kept = ft__arena_array(g->arena, (size_t)g->block_count, sizeof *kept);
    bool *used = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *used);
    int32_t *renumbered = ft__arena_array(g->arena, (size_t)g->block_count, sizeof *renumbered);
    if (!kept || !used || !renumbered) return ft__no_memory(err);
    FT_TRY(ft__layout_shares(g, p, stage, kept, parts, err));
    ft_node *nodes = g->nodes;
    int32_t out = 0;
    g->nodes = NULL;
    g->node_count = g->node_room = 0;
    for (int32_t b = 0; b < g->block_count; b++) {
        renumbered[b] = kept[b] > 0 ? out : -1;
        if (kept[b] <= 0) continue;
        ft_block block;
        FT_TRY(keep_block(g, nodes, b, kept[b], used, &block, err));
        /* What a stage that is not there would hand on is received. Behind another chunk it takes that one's result:
         * both run, and gradients flow through both. */
        int32_t source = block.fed_by != FT_NONE ? g->tensors[block.fed_by].block : -1;
        bool received = block.carry_in != FT_NONE && (out == 0 || (source >= 0 && renumbered[source] < 0));
        if (received) block.fed_by = out == 0 ? FT_NONE : g->blocks[out - 1].carry_out;
        g->blocks[out++] = block;
    }
    if (parts) {
        renumber_parts(renumbered, g->block_count, out, count, parts);
        chunks->blocks = out;
    }
    keep_tensors(g, used, renumbered);
    g->block_count = out;
    ft__graph_recount(g);
    return FT_OK;
}

double ft__chunk_part(const ft_chunks *chunks, const ft_graph *g, int64_t chunk, int32_t block)
{
    int32_t forward = g->blocks[block].phase == FT_BACKWARD ? g->blocks[block].mirror : block;
    if (!chunks->parts || chunks->count < 2) return 1;
    if (forward < 0 || forward >= chunks->blocks) return chunk == 0;
    return chunks->parts[chunk * chunks->blocks + forward];
}
