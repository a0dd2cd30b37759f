/* stage.c: the blocks of one pipeline stage.
 *
 * Layers are shared out evenly, one more to the first stages where they do not divide. What comes before the layers
 * goes with the first stage, what comes after with the last. A stage without the embedding starts from what the stage
 * before it sends. */
#include <string.h>

#include "layout/layout.h"

static bool is_layers(const ft_block *b) { return b->carry_in != FT_NONE && !strncmp(b->name, "layers", 6); }

/* Layers in one iteration of a block: a period of several kinds counts as that many. */
static int64_t period_of(const ft_graph *g, int32_t block)
{
    int64_t attentions = 0;
    const ft_block *b = &g->blocks[block];
    for (int32_t i = b->first; i < b->first + b->count; i++)
        attentions += g->nodes[i].verb == FT_DO_ATTENTION || !strcmp(g->nodes[i].name, "attn.scores");
    return attentions > 0 ? attentions : 1;
}

/* Iterations of a block that begin before layer `to`, when its first one begins with layer `at`. */
static int64_t begun(int64_t to, int64_t at, int64_t period, int64_t repeat)
{
    int64_t n = to <= at ? 0 : (to - at + period - 1) / period;
    return n > repeat ? repeat : n;
}

ft_status ft__layout_shares(const ft_graph *g, int64_t stage, int64_t stages, int64_t *kept, ft_error *err)
{
    int64_t units = 0, most = 1, at = 0, mine = 0;
    int32_t first = -1, last = -1;
    for (int32_t b = 0; b < g->block_count; b++) {
        kept[b] = g->blocks[b].repeat;
        if (!is_layers(&g->blocks[b])) continue;
        int64_t period = period_of(g, b);
        if (first < 0) first = b;
        last = b;
        units += g->blocks[b].repeat * period;
        if (period > most) most = period;
    }
    if (stages <= 1) return FT_OK;
    if (first < 0) return ft__fail(err, FT_E_UNSUPPORTED, "this model has no row of layers to share out over stages");
    if (units < stages)
        return ft__fail(err, FT_E_RANGE, "%lld pipeline stages are more than the model's %lld layers",
                        (long long)stages, (long long)units);
    int64_t each = units / stages, more = units % stages;
    int64_t from = stage * each + (stage < more ? stage : more), to = from + each + (stage < more ? 1 : 0);
    for (int32_t b = 0; b < g->block_count; b++) {
        int64_t repeat = g->blocks[b].repeat;
        if (is_layers(&g->blocks[b])) { /* a period of several kinds is not taken apart */
            int64_t period = period_of(g, b);
            kept[b] = begun(to, at, period, repeat) - begun(from, at, period, repeat);
            mine += kept[b];
            at += repeat * period;
        } else if ((b < first && stage > 0) || (b > last && stage < stages - 1)) {
            kept[b] = 0;
        }
    }
    if (mine < 1)
        return ft__fail_at(
            err, FT_E_RANGE, "parallel.pp", 0, 0,
            "stage %lld of %lld has no layer: the model's %lld layers come in patterns of %lld; \"pp\" can "
            "be at most %lld",
            (long long)stage, (long long)stages, (long long)units, (long long)most, (long long)(units / most));
    return FT_OK;
}

ft_status ft__layout_stage(ft_graph *g, int64_t stage, int64_t stages, ft_error *err)
{
    if (stages <= 1) return FT_OK;
    int64_t *kept = ft__arena_array(g->arena, (size_t)g->block_count, sizeof *kept);
    bool *used = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *used);
    int32_t *renumbered = ft__arena_array(g->arena, (size_t)g->block_count, sizeof *renumbered);
    if (!kept || !used || !renumbered) return ft__fail(err, FT_E_MEMORY, "out of memory");
    FT_TRY(ft__layout_shares(g, stage, stages, kept, err));
    ft_node *nodes = g->nodes;
    int32_t out = 0;
    g->nodes = NULL;
    g->node_count = g->node_room = 0;
    for (int32_t b = 0; b < g->block_count; b++) {
        renumbered[b] = kept[b] > 0 ? out : -1;
        if (kept[b] <= 0) continue;
        ft_block block = g->blocks[b];
        int32_t start = g->node_count;
        for (int32_t i = block.first; i < block.first + block.count; i++)
            if (!ft__graph_node(g, &nodes[i])) return ft__fail(err, FT_E_MEMORY, "out of memory");
        block.first = start;
        for (int32_t i = block.first; i < block.first + block.count; i++)
            for (int k = 0; k < g->nodes[i].in_count; k++)
                if (g->nodes[i].in[k] >= 0) used[g->tensors[g->nodes[i].in[k]].storage] = true;
        for (int32_t i = 0; i < g->tensor_count; i++) {
            ft_tensor *t = &g->tensors[i];
            if (t->block == b && (t->role == FT_PARAMETER || t->role == FT_CACHE) && t->copies == block.repeat)
                t->copies = kept[b];
        }
        block.repeat = kept[b];
        if (out == 0 && block.carry_in != FT_NONE) block.fed_by = FT_NONE; /* received */
        g->blocks[out++] = block;
    }
    /* Parameters follow their block; what several stages need (a tied table) stays where it is used. */
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
    g->block_count = out;
    ft__graph_recount(g);
    return FT_OK;
}
