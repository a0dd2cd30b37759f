/* taken_in.c: what an inference engine's products do themselves.
 *
 * TensorRT's convolutions end in an epilogue: a norm whose moments are given is multiplied into the filters when the
 * engine is built, and a bias, an activation and a sum with what stands beside it are taken in while the result is
 * still in registers. Its plain products take an activation in; a sum goes to the norm behind it instead. Who joins
 * tensors has its operands written where they belong (TensorRT's developer guide, layer fusion: "merging of
 * concatenation layers by directing layer outputs to the correct eventual destination").
 *
 * What follows from weights alone is computed when the engine is built.
 *
 * Two walks over the nodes, before anything else is merged. */
#include <string.h>

#include "graph/graph.h"

typedef struct books {
    ft_graph *g;
    int32_t *uses;   /* by tensor: nodes that read it, blocks that hand it on */
    int32_t *reader; /* by tensor: the last of those nodes */
    int32_t *maker;  /* by tensor: the node that makes it; -1: it was there */
    ft_ref *handed;  /* by tensor that a block begins with, once: what another block made */
    bool *given;     /* by tensor: it is known when the engine is built */
    bool *placed;    /* by tensor that owned memory: it lies in a joined one */
} books;

static const ft_tensor *tensor(const books *k, ft_ref x) { return &k->g->tensors[x]; }

static bool open_books(books *k)
{
    const ft_graph *g = k->g;
    const size_t tensors = (size_t)g->tensor_count + 1;
    k->uses = ft__arena_array(g->arena, tensors, sizeof *k->uses);
    k->reader = ft__arena_array(g->arena, tensors, sizeof *k->reader);
    k->maker = ft__arena_array(g->arena, tensors, sizeof *k->maker);
    k->handed = ft__arena_array(g->arena, tensors, sizeof *k->handed);
    k->given = ft__arena_array(g->arena, tensors, sizeof *k->given);
    k->placed = ft__arena_array(g->arena, tensors, sizeof *k->placed);
    return k->uses && k->reader && k->maker && k->handed && k->given && k->placed;
}

static void count(books *k)
{
    const ft_graph *g = k->g;
    for (int32_t x = 0; x < g->tensor_count; x++) {
        k->maker[x] = -1;
        k->handed[x] = FT_NONE;
    }
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        for (int j = 0; j < n->in_count; j++) {
            k->uses[n->in[j]]++;
            k->reader[n->in[j]] = i;
        }
        for (int j = 0; j < n->out_count; j++) k->maker[n->out[j]] = i;
    }
    for (int32_t b = 0; b < g->block_count; b++) {
        if (g->blocks[b].carry_out != FT_NONE) k->uses[g->blocks[b].carry_out]++;
        if (g->blocks[b].fed_by != FT_NONE) k->uses[g->blocks[b].fed_by]++;
        if (g->blocks[b].carry_in != FT_NONE && g->blocks[b].repeat == 1)
            k->handed[g->blocks[b].carry_in] = g->blocks[b].fed_by;
    }
}

/* Nothing runs in its place, and nothing is named. */
static void remove_node(ft_node *n)
{
    n->op = (ft_op){.kind = FT_OP_OTHER, .name = "view", .dtype = n->op.dtype, .kv_dtype = n->op.dtype};
    n->verb = FT_DO_VIEW;
    n->in_count = n->out_count = 0;
    n->walk = FT_WALK_NONE;
}

static bool computes(const ft_node *n)
{
    return !n->synced && n->verb != FT_DO_SYNC && n->verb != FT_DO_COMM && n->verb != FT_DO_OTHER &&
           n->verb != FT_DO_OPTIMIZER;
}

/* Whatever follows from weights alone. */
static void build_ahead(books *k)
{
    const ft_graph *g = k->g;
    for (int32_t x = 0; x < g->tensor_count; x++)
        k->given[x] = g->tensors[x].role == FT_PARAMETER || g->tensors[x].role == FT_BUFFER;
    for (int32_t b = 0; b < g->block_count; b++)
        if (g->blocks[b].carry_in != FT_NONE) k->given[g->blocks[b].carry_in] = false;
    for (int32_t i = 0; i < g->node_count; i++) {
        ft_node *n = &g->nodes[i];
        bool given = computes(n) && n->out_count && (n->in_count || n->verb == FT_DO_FILL);
        for (int j = 0; j < n->in_count; j++) given = given && k->given[n->in[j]];
        if (!given) continue;
        for (int j = 0; j < n->out_count; j++) k->given[n->out[j]] = true;
        remove_node(n);
    }
}

static bool same_size(const books *k, ft_ref a, ft_ref b)
{
    return ft__tensor_numel(tensor(k, a)) == ft__tensor_numel(tensor(k, b));
}

/* What a node reads beside the product's result: FT_NONE where there is nothing but weights. False: more than that, or
 * something that is not there yet when the product runs. */
static bool beside(const books *k, const ft_node *n, ft_ref result, int32_t at, ft_ref *other)
{
    *other = FT_NONE;
    for (int j = 0; j < n->in_count; j++) {
        const ft_ref x = n->in[j];
        if (x == result || k->given[x]) continue;
        if (*other != FT_NONE || k->maker[x] >= at || !same_size(k, x, result)) return false;
        *other = x;
    }
    return true;
}

/* Whether the product at `at` can do what its only reader does. */
static bool takes(const books *k, int32_t at, const ft_node *reader, ft_ref result, ft_ref *other)
{
    const ft_node *n = &k->g->nodes[at];
    const bool filters = n->verb == FT_DO_CONV;
    if (reader->count != 1 || reader->synced || !reader->out_count) return false;
    if (!same_size(k, reader->out[0], result)) return false;
    if (!beside(k, reader, result, at, other)) return false;
    if (reader->verb == FT_DO_BATCHNORM) return filters && *other == FT_NONE;
    if (reader->verb != FT_DO_POINTWISE || reader->op.kind != FT_OP_ELEMENTWISE) return false;
    if (*other == FT_NONE) return true;
    return filters && !(n->manner & FT_MANNER_ADDS) && !strcmp(reader->op.name, "add");
}

/* The only node behind `at` that reads a tensor, or all of it under another name (`as`); -1: none, or several do. */
static int32_t only_reader(const books *k, const ft_block *block, int32_t at, ft_ref *as)
{
    while (k->uses[*as] == 1) {
        const int32_t next = k->reader[*as];
        const ft_node *n = &k->g->nodes[next];
        if (next <= at || next >= block->first + block->count) return -1;
        if (n->verb != FT_DO_VIEW || ft__node_runs(n)) return next;
        if (n->out_count != 1 || !same_size(k, n->out[0], *as)) return -1;
        *as = n->out[0];
    }
    return -1;
}

/* A product takes in its readers one by one, for as long as there is a single one. */
static void take_in(const books *k, const ft_block *block, int32_t at)
{
    ft_node *n = &k->g->nodes[at];
    for (;;) {
        ft_ref result = n->out[0];
        const int32_t next = only_reader(k, block, at, &result);
        ft_ref other;
        if (next < 0) return;
        ft_node *reader = &k->g->nodes[next];
        if (!takes(k, at, reader, result, &other)) return;
        if (other != FT_NONE) {
            if (n->in_count >= FT_NODE_INPUTS) return;
            n->in[n->in_count++] = other;
            n->manner |= FT_MANNER_ADDS;
        }
        while (k->reader[n->out[0]] != next) { /* views between */
            ft_node *view = &k->g->nodes[k->reader[n->out[0]]];
            n->out[0] = view->out[0];
            remove_node(view);
        }
        n->out[0] = reader->out[0];
        k->maker[n->out[0]] = k->maker[tensor(k, n->out[0])->storage] = at; /* activations work in place */
        remove_node(reader);
    }
}

/* Whose memory a tensor lies in, where it was made. */
static ft_ref origin(const books *k, ft_ref x)
{
    ft_ref own = tensor(k, x)->storage;
    while (k->maker[own] < 0 && k->handed[own] != FT_NONE) own = tensor(k, k->handed[own])->storage;
    return own;
}

/* An operand can be written where it belongs when a kernel makes it, and no other joined tensor has it; of one that is
 * a slice all slices have to go there. */
static bool can_be_placed(const books *k, const ft_node *n, ft_ref x)
{
    const ft_ref own = tensor(k, x)->storage, made = origin(k, x);
    double there = 0;
    if (k->placed[made] || k->maker[made] < 0 || !ft__node_runs(&k->g->nodes[k->maker[made]])) return false;
    for (int j = 0; j < n->in_count; j++)
        if (tensor(k, n->in[j])->storage == own) there += ft__tensor_numel(tensor(k, n->in[j]));
    return there == ft__tensor_numel(tensor(k, own));
}

/* What had memory of its own, and the slices of it, lie in another tensor's. What an earlier block made keeps memory of
 * its own in the books: blocks are counted apart. */
static void lie_in(const books *k, ft_ref own, ft_ref whole)
{
    k->placed[origin(k, own)] = true;
    if (k->maker[own] < 0) return;
    for (int32_t x = 0; x < k->g->tensor_count; x++)
        if (tensor(k, x)->storage == own) k->g->tensors[x].storage = whole;
}

static void join_in_place(const books *k, ft_node *n)
{
    const ft_ref whole = n->out[0];
    if (tensor(k, whole)->storage != whole) return;
    for (int j = 0; j < n->in_count; j++)
        if (!can_be_placed(k, n, n->in[j])) return;
    for (int j = 0; j < n->in_count; j++)
        if (tensor(k, n->in[j])->storage != whole) lie_in(k, tensor(k, n->in[j])->storage, whole);
    n->op = (ft_op){.kind = FT_OP_OTHER, .name = "view", .dtype = n->op.dtype, .kv_dtype = n->op.dtype};
    n->verb = FT_DO_VIEW;
}

ft_status ft__graph_take_in(ft_graph *g, ft_error *err)
{
    books k = {.g = g};
    if (!open_books(&k)) return ft__no_memory(err);
    build_ahead(&k);
    count(&k);
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            ft_node *n = &g->nodes[i];
            const bool product = n->verb == FT_DO_CONV || (n->verb == FT_DO_LINEAR && n->op.kind == FT_OP_GEMM);
            if (product && n->out_count == 1 && n->count == 1) take_in(&k, block, i);
            if (n->verb == FT_DO_CAT && n->in_count > 1 && n->count == 1 && !n->streams) join_in_place(&k, n);
        }
    }
    return FT_OK;
}
