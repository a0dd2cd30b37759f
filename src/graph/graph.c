/* graph.c: keeping tensors, nodes and blocks; what they are called; arithmetic of the whole. */
#include "graph/graph.h"

#include <string.h>

ft_graph *ft__graph_new(ft_arena *arena, ft_dtype dtype)
{
    ft_graph *g = ft__arena_alloc(arena, sizeof *g);
    if (!g) return NULL;
    g->arena = arena;
    g->dtype = dtype;
    return g;
}

/* Room for one more. Old arrays stay in the arena until the request is over: doubling wastes at most as much again. */
static void *grown(ft_arena *arena, void *array, int32_t count, int32_t *room, size_t size)
{
    if (count < *room) return array;
    int32_t wider = *room ? *room * 2 : 256;
    if (wider > (1 << 24)) return NULL;
    void *fresh = ft__arena_bare(arena, (size_t)wider, size);
    if (!fresh) return NULL;
    if (count) memcpy(fresh, array, (size_t)count * size);
    *room = wider;
    return fresh;
}

ft_ref ft__graph_tensor(ft_graph *g, const ft_tensor *t)
{
    ft_tensor *array = grown(g->arena, g->tensors, g->tensor_count, &g->tensor_room, sizeof *t);
    if (!array) return FT_NONE;
    g->tensors = array;
    ft_ref at = g->tensor_count++;
    array[at] = *t;
    if (array[at].storage == FT_NONE) array[at].storage = at;
    if (array[at].copies < 1) array[at].copies = 1;
    if (!array[at].name) array[at].name = "";
    return at;
}

ft_node *ft__graph_node(ft_graph *g, const ft_node *n)
{
    ft_node *array = grown(g->arena, g->nodes, g->node_count, &g->node_room, sizeof *n);
    if (!array) return NULL;
    g->nodes = array;
    array[g->node_count] = *n;
    return &array[g->node_count++];
}

bool ft__graph_insert(ft_graph *g, int32_t block, int32_t at, const ft_node *nodes, int count)
{
    const int32_t before = g->node_count;
    for (int i = 0; i < count; i++)
        if (!ft__graph_node(g, &nodes[i])) return false;
    memmove(g->nodes + at + count, g->nodes + at, (size_t)(before - at) * sizeof *g->nodes);
    memcpy(g->nodes + at, nodes, (size_t)count * sizeof *nodes);
    for (int32_t b = 0; b < g->block_count; b++)
        if (b != block && g->blocks[b].first >= at) g->blocks[b].first += count;
    g->blocks[block].count += count;
    return true;
}

ft_block *ft__graph_block(ft_graph *g, const ft_block *b)
{
    ft_block *array = grown(g->arena, g->blocks, g->block_count, &g->block_room, sizeof *b);
    if (!array) return NULL;
    g->blocks = array;
    array[g->block_count] = *b;
    return &array[g->block_count++];
}

bool ft__block_is_layer(const ft_block *b)
{
    return b->carry_in != FT_NONE && b->kind != FT_BLOCK_HEAD && b->kind != FT_BLOCK_END;
}

ft_class ft__node_class(const ft_node *n)
{
    switch (n->verb) {
    case FT_DO_LINEAR:
    case FT_DO_MATMUL:
    case FT_DO_ATTENTION:
    case FT_DO_CONV:
    case FT_DO_EXPERTS: return FT_CONTRACTION;
    case FT_DO_ROW:
    case FT_DO_LOSS:
    case FT_DO_BATCHNORM: return FT_NORMALISATION;
    default: return FT_ELEMENTWISE;
    }
}

const char *ft__verb_name(ft_verb v)
{
    static const char *const names[FT_VERB_COUNT] = {
        [FT_DO_LINEAR] = "linear",       [FT_DO_MATMUL] = "matmul", [FT_DO_ATTENTION] = "attention",
        [FT_DO_POINTWISE] = "pointwise", [FT_DO_ROW] = "row",       [FT_DO_EMBEDDING] = "embedding",
        [FT_DO_COPY] = "copy",           [FT_DO_CAT] = "cat",       [FT_DO_FILL] = "fill",
        [FT_DO_VIEW] = "view",           [FT_DO_SLICE] = "slice",   [FT_DO_SPLIT] = "split",
        [FT_DO_EXPAND] = "expand",       [FT_DO_LOSS] = "loss",     [FT_DO_CONV] = "conv",
        [FT_DO_BATCHNORM] = "batchnorm", [FT_DO_POOL] = "pool",     [FT_DO_EXPERTS] = "experts",
        [FT_DO_SCAN] = "scan",           [FT_DO_RECUR] = "recur",   [FT_DO_GATHER] = "gather",
        [FT_DO_OTHER] = "other",         [FT_DO_SYNC] = "sync",     [FT_DO_COMM] = "comm",
        [FT_DO_PERMUTE] = "permute",     [FT_DO_ROTATE] = "rotate", [FT_DO_OPTIMIZER] = "optimizer",
    };
    return (unsigned)v < FT_VERB_COUNT ? names[v] : "?";
}

const char *ft__phase_name(ft_phase p)
{
    static const char *const names[FT_PHASE_COUNT] = {"forward", "backward", "recompute", "update"};
    return (unsigned)p < FT_PHASE_COUNT ? names[p] : "?";
}

const char *ft__class_name(ft_class c)
{
    static const char *const names[FT_CLASS_COUNT] = {"contraction", "normalisation", "elementwise"};
    return (unsigned)c < FT_CLASS_COUNT ? names[c] : "?";
}

double ft__graph_flops(const ft_graph *g, ft_phase phase)
{
    double sum = 0;
    for (int32_t i = 0; i < g->block_count; i++) {
        const ft_block *block = &g->blocks[i];
        double once = 0;
        for (int32_t n = block->first; n < block->first + block->count; n++)
            if (g->nodes[n].phase == phase && ft__node_runs(&g->nodes[n]))
                once += ft__op_flops(&g->nodes[n].op) * (double)g->nodes[n].count;
        sum += once * (double)block->repeat;
    }
    return sum;
}

void ft__graph_recount(ft_graph *g)
{
    g->parameters = g->trained_parameters = g->parameter_bytes = g->buffer_bytes = 0;
    g->parameter_tensors = g->trained_tensors = 0;
    for (int32_t i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        double all = ft__tensor_numel(t) * (double)t->copies;
        if (t->role == FT_BUFFER) g->buffer_bytes += all * t->element_bytes;
        if (t->role != FT_PARAMETER) continue;
        g->parameters += all * (1 - t->idle);
        g->parameter_bytes += all * t->element_bytes;
        g->parameter_tensors += t->copies;
        if (!t->trained) continue;
        g->trained_parameters += all;
        g->trained_tensors += t->copies;
    }
}
