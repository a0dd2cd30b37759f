/* cut.c: one rank's share of a forward graph.
 *
 * The pass walks the nodes once and keeps for every tensor which part of its rows and columns this rank holds. Products
 * marked by the builder start and end the cut regions, as in Megatron-LM (Shoeybi et al. 2019, fig. 3):
 *
 *     columns: every rank has all of x and some columns of W; the result is split. Going back, the ranks' gradients of x
 *              are summed ("f": nothing forward, all-reduce backward).
 *     rows:    every rank has its columns of x and the matching rows of W; the results are summed ("g").
 *
 * With sequence parallelism (Korthikanti et al. 2022) what lies outside of the regions is split by tokens: f becomes an
 * all-gather (a reduce-scatter backward), g a reduce-scatter (an all-gather backward). Context parallelism holds a part
 * of every sequence: attention first gathers keys and values, or, after Ulysses (Jacobs et al. 2023), trades tokens for
 * heads. Expert parallelism sends tokens to where their experts live and back.
 *
 * Everything between follows from the shapes: a pointwise result is split as its operands are, a view moves the split to
 * the axis where the heads went. */
#include <math.h>
#include <string.h>

#include "layout/layout.h"

typedef struct share {
    double rows, cols; /* held over whole */
    bool split;        /* over tensor ranks, by columns or by heads */
    bool tokens;       /* over tensor ranks, by tokens */
    bool partial;      /* a sum over tensor ranks is still to be taken */
    ft_ref gathered;   /* the result of f on this tensor, when somebody asked already */
} share;

typedef struct cutter {
    ft_graph *g;
    const ft_parallel *p;
    share *of;         /* by tensor */
    int64_t *rows, *cols; /* as they were */
    int32_t known;     /* tensors that existed before the pass */
    ft_status status;
    ft_error *err;
    int32_t block;
} cutter;

static ft_tensor *tensor(const cutter *c, ft_ref x) { return &c->g->tensors[x]; }

static int64_t part(int64_t whole, double share_of)
{
    double local = (double)whole * share_of;
    return local < 1 ? 1 : (int64_t)ceil(local - 1e-9);
}

static void give(cutter *c, ft_ref x, share s)
{
    s.gathered = FT_NONE;
    c->of[x] = s;
    tensor(c, x)->rows = part(c->rows[x], s.rows);
    tensor(c, x)->cols = part(c->cols[x], s.cols);
}

static void fail_memory(cutter *c)
{
    if (c->status == FT_OK) c->status = ft__fail(c->err, FT_E_MEMORY, "out of memory");
}

static void emit(cutter *c, const ft_node *n)
{
    if (c->status == FT_OK && !ft__graph_node(c->g, n)) fail_memory(c);
}

/* -- exchanges --------------------------------------------------------------------------------- */

/* An exchange over x whose result holds `after`. Tensors made here lie beyond the arrays of the old ones. */
static ft_ref exchange(cutter *c, const char *name, ft_ref x, ft_axis axis, ft_exchange_kind kind,
                       ft_exchange_kind gradient, share after)
{
    if (c->status != FT_OK) return x;
    ft_tensor t = *tensor(c, x);
    bool moved = kind != FT_EXCHANGE_NONE && kind != FT_EXCHANGE_ALL_REDUCE;
    double before = ft__tensor_bytes(&t);
    ft_ref whole = x < c->known ? x : FT_NONE;
    if (whole != FT_NONE) {
        t.rows = part(c->rows[whole], after.rows);
        t.cols = part(c->cols[whole], after.cols);
    }
    if (moved) {
        t.storage = FT_NONE;
        t.strided = t.permuted = false;
    }
    t.role = FT_ACTIVATION;
    t.block = c->block;
    t.name = "";
    t.copies = 1;
    double bytes = fmax(before, ft__tensor_bytes(&t)); /* the whole buffer */
    ft_ref out = ft__graph_tensor(c->g, &t);
    if (out == FT_NONE) {
        fail_memory(c);
        return x;
    }
    ft_node n = {.verb = FT_DO_COMM, .name = name, .count = 1, .traffic = 1, .effort = 1, .in_place = !moved};
    n.op.kind = FT_OP_OTHER;
    n.op.name = "comm";
    n.in[n.in_count++] = x;
    n.out[n.out_count++] = out;
    n.exchange = (ft_exchange){.kind = kind, .gradient = gradient, .axis = axis, .bytes = bytes, .gradient_bytes = bytes};
    emit(c, &n);
    return out;
}

/* Shares of tensors that the pass made itself are looked up through the tensor they came from. */
static ft_ref f_of(cutter *c, const char *name, ft_ref x)
{
    share s = c->of[x];
    if (s.gathered != FT_NONE) return s.gathered;
    share after = s;
    after.tokens = false;
    ft_ref out;
    if (s.tokens) {
        after.rows *= (double)c->p->tp;
        out = exchange(c, name, x, FT_AXIS_TENSOR, FT_EXCHANGE_ALL_GATHER, FT_EXCHANGE_REDUCE_SCATTER, after);
    } else {
        out = exchange(c, name, x, FT_AXIS_TENSOR, FT_EXCHANGE_NONE, FT_EXCHANGE_ALL_REDUCE, after);
    }
    c->of[x].gathered = out;
    return out;
}

/* Sums a partial result: x is replaced by the sum for all that read it later. */
static void g_of(cutter *c, const char *name, ft_ref x, ft_ref *alias)
{
    share after = c->of[x];
    after.partial = false;
    bool tokens = c->p->sp && c->p->tp > 1;
    if (tokens) {
        after.rows /= (double)c->p->tp;
        after.tokens = true;
    }
    ft_ref out = exchange(c, name, x, FT_AXIS_TENSOR, tokens ? FT_EXCHANGE_REDUCE_SCATTER : FT_EXCHANGE_ALL_REDUCE,
                          tokens ? FT_EXCHANGE_ALL_GATHER : FT_EXCHANGE_NONE, after);
    alias[x] = out;
    after.gathered = FT_NONE;
    c->of[x] = after; /* later nodes ask by the old name */
}

/* -- ops --------------------------------------------------------------------------------------- */

static int64_t divided(int64_t n, double by) { return n > 0 ? part(n, 1 / by) : n; }

/* A node whose work is proportional to what it writes, or reads. */
static void shrink(ft_op *op, const share *s)
{
    double all = s->rows * s->cols;
    switch (op->kind) {
    case FT_OP_ELEMENTWISE:
        op->u.elementwise.numel = part(op->u.elementwise.numel, all);
        op->u.elementwise.bytes *= all;
        break;
    case FT_OP_ROW:
        op->u.row.rows = part(op->u.row.rows, s->rows);
        op->u.row.cols = part(op->u.row.cols, s->cols);
        break;
    case FT_OP_OTHER:
        op->u.other.bytes *= all;
        op->u.other.flops *= all;
        break;
    case FT_OP_QUANTIZE: op->u.quantize.rows = part(op->u.quantize.rows, all); break;
    default: break;
    }
}

/* The share of a tensor in other clothes: tokens stay rows; heads follow the axis they were moved to. */
static share reshaped(const cutter *c, ft_ref from, ft_ref to)
{
    share s = c->of[from];
    int64_t in = c->cols[from], out = c->cols[to];
    if (!s.split || in == out) return s;
    double tp = (double)c->p->tp;
    bool by_cols = s.cols < 0.999;
    if (by_cols && out < in) { /* heads become rows */
        s.cols *= tp;
        s.rows /= tp;
    } else if (!by_cols && out > in) { /* and columns again */
        s.rows *= tp;
        s.cols /= tp;
    }
    return s;
}

/* -- nodes ------------------------------------------------------------------------------------- */

static void cut_parameter(cutter *c, ft_ref w, double rows, double cols)
{
    if (w == FT_NONE || w >= c->known) return;
    ft_ref own = tensor(c, w)->storage;
    if (c->of[own].split) return; /* tied: cut already */
    share s = {.rows = rows, .cols = cols, .split = true};
    give(c, own, s);
    if (own != w) give(c, w, s);
}

static void linear(cutter *c, ft_node *n, ft_ref *alias)
{
    ft_ref x = n->in[0], weight = n->in[1], bias = n->in_count > 2 ? n->in[2] : FT_NONE, y = n->out[0];
    double tp = (double)c->p->tp;
    share s = c->of[x];
    if (n->cut == FT_CUT_COLUMNS && tp > 1 && !s.split) {
        ft_ref all = f_of(c, n->name, x);
        cut_parameter(c, weight, 1 / tp, 1);
        cut_parameter(c, bias, 1, 1 / tp);
        n->in[0] = all;
        if (s.tokens) s.rows *= tp;
        give(c, y, (share){.rows = s.rows, .cols = 1 / tp, .split = true});
        n->op.u.gemm.n = divided(n->op.u.gemm.n, tp);
    } else if (n->cut == FT_CUT_ROWS && tp > 1 && s.split) {
        cut_parameter(c, weight, 1, 1 / tp);
        n->op.u.gemm.k = divided(n->op.u.gemm.k, tp);
        give(c, y, (share){.rows = s.rows, .cols = 1, .partial = true});
    } else {
        give(c, y, (share){.rows = s.rows, .cols = s.split ? s.cols : 1, .split = s.split, .tokens = s.tokens});
        if (s.split) n->op.u.gemm.k = divided(n->op.u.gemm.k, tp);
    }
    n->op.u.gemm.m = part(n->op.u.gemm.m, s.rows);
    emit(c, n);
    if (c->of[y].partial) g_of(c, n->name, y, alias);
}

/* Experts: over expert ranks whole, or each of them over tensor ranks. */
static void experts(cutter *c, ft_node *n, ft_ref *alias)
{
    ft_ref x = n->in[0], weight = n->in[1], y = n->out[0];
    double tp = (double)c->p->tp, ep = (double)c->p->ep;
    share s = c->of[x];
    if (ep > 1) {
        cut_parameter(c, weight, 1 / ep, 1);
        n->op.u.gemm.b = divided(n->op.u.gemm.b, ep);
        n->op.u.gemm.m = part(n->op.u.gemm.m, s.rows * ep);
        give(c, y, s);
    } else if (tp > 1 && !s.tokens) {
        if (!s.split) {
            cut_parameter(c, weight, 1 / tp, 1);
            n->op.u.gemm.n = divided(n->op.u.gemm.n, tp);
            give(c, y, (share){.rows = s.rows, .cols = 1 / tp, .split = true});
        } else {
            cut_parameter(c, weight, 1, 1 / tp);
            n->op.u.gemm.k = divided(n->op.u.gemm.k, tp);
            give(c, y, (share){.rows = s.rows, .cols = 1, .partial = true});
        }
        n->op.u.gemm.m = part(n->op.u.gemm.m, s.rows);
    } else {
        n->op.u.gemm.m = part(n->op.u.gemm.m, s.rows);
        give(c, y, s);
    }
    emit(c, n);
    if (c->of[y].partial) g_of(c, n->name, y, alias);
}

static void matmul(cutter *c, ft_node *n, ft_ref *alias)
{
    if (tensor(c, n->in[1])->role == FT_PARAMETER) {
        experts(c, n, alias);
        return;
    }
    share s = c->of[n->in[0]];
    double tp = s.split ? (double)c->p->tp : 1;
    n->op.u.gemm.b = divided(n->op.u.gemm.b, tp);
    n->op.u.gemm.m = part(n->op.u.gemm.m, s.rows * tp);
    give(c, n->out[0], (share){.rows = s.rows, .cols = 1, .split = s.split, .tokens = s.tokens});
    emit(c, n);
}

static void attention(cutter *c, ft_node *n)
{
    share s = c->of[n->in[0]];
    double tp = s.split ? (double)c->p->tp : 1, cp = (double)c->p->cp;
    n->op.u.attention.heads = divided(n->op.u.attention.heads, tp);
    n->op.u.attention.kv_heads = divided(n->op.u.attention.kv_heads, tp);
    share tokens = {.rows = s.rows * (s.cols < 0.999 ? 1 : tp), .cols = 1 / tp, .split = s.split, .tokens = s.tokens};
    if (cp > 1 && c->p->ulysses) { /* tokens for heads and back: the whole sequence, some of the heads */
        for (int i = 0; i < 3; i++)
            n->in[i] = exchange(c, n->name, n->in[i], FT_AXIS_CONTEXT, FT_EXCHANGE_ALL_TO_ALL, FT_EXCHANGE_ALL_TO_ALL,
                                c->of[n->in[i]]);
        n->op.u.attention.heads = divided(n->op.u.attention.heads, cp);
        n->op.u.attention.kv_heads = divided(n->op.u.attention.kv_heads, cp);
    } else if (cp > 1) {
        /* Every rank holds two slices of each sequence, an early and a late one, so that causal work is even. Keys and
         * values travel the ring while the ones that are there are used: in sum an all-gather. */
        for (int i = 1; i < 3; i++) {
            share all = c->of[n->in[i]];
            all.rows *= cp;
            n->in[i] = exchange(c, n->name, n->in[i], FT_AXIS_CONTEXT, FT_EXCHANGE_ALL_GATHER,
                                FT_EXCHANGE_REDUCE_SCATTER, all);
        }
        n->op.u.attention.q_len = divided(n->op.u.attention.q_len, cp);
        if (n->op.u.attention.causal) { /* half of the pairs, as a rectangle */
            n->op.u.attention.causal = false;
            n->op.u.attention.kv_len = (n->op.u.attention.kv_len + 1) / 2;
        }
    }
    give(c, n->out[0], tokens);
    for (int i = 1; i < n->out_count; i++) give(c, n->out[i], (share){.rows = 1 / tp, .cols = 1 / cp, .split = s.split});
    emit(c, n);
}

static void embedding(cutter *c, ft_node *n, ft_ref *alias)
{
    const int64_t small = 8192; /* tables of positions and types are held whole */
    double tp = (double)c->p->tp;
    share s = c->of[n->in[0]];
    double tokens = s.rows * s.cols;
    bool vocabulary = n->verb == FT_DO_EMBEDDING && tp > 1 && c->rows[n->in[1]] >= small;
    if (vocabulary) cut_parameter(c, n->in[1], 1 / tp, 1);
    give(c, n->out[0], (share){.rows = tokens, .cols = 1, .partial = vocabulary});
    n->op.u.row.rows = part(n->op.u.row.rows, tokens);
    if (vocabulary) n->op.u.row.vocab = divided(n->op.u.row.vocab, tp);
    emit(c, n);
    if (vocabulary) g_of(c, n->name, n->out[0], alias);
}

/* Logits split by vocabulary: maximum, sum and the target's own logit are each reduced over the ranks. */
static void vocabulary_sums(cutter *c, const ft_node *n)
{
    if (c->status != FT_OK) return;
    ft_node sums = {.verb = FT_DO_COMM, .name = n->name, .count = 3, .traffic = 1, .effort = 1};
    sums.op.kind = FT_OP_OTHER;
    sums.op.name = "comm";
    sums.exchange = (ft_exchange){.kind = FT_EXCHANGE_ALL_REDUCE,
                                  .axis = FT_AXIS_TENSOR,
                                  .bytes = 4 * (double)tensor(c, n->out[0])->rows};
    emit(c, &sums);
}

/* Everything that is as split as what it reads. */
static void follow(cutter *c, ft_node *n)
{
    share s = {.rows = 1, .cols = 1, .gathered = FT_NONE};
    double most = -1;
    ft_ref from = FT_NONE;
    for (int i = 0; i < n->in_count; i++) { /* the largest operand decides */
        ft_ref x = n->in[i];
        if (x >= c->known || tensor(c, x)->role == FT_PARAMETER) continue;
        double numel = (double)c->rows[x] * (double)c->cols[x];
        if (numel > most) {
            most = numel;
            from = x;
        }
    }
    if (from != FT_NONE) s = c->of[from];
    bool reduces = n->verb == FT_DO_ROW && n->out_count && c->cols[n->out[0]] == 1 && from != FT_NONE;
    for (int i = 0; i < n->out_count; i++) {
        bool keeps = n->verb == FT_DO_POINTWISE || n->verb == FT_DO_SPLIT || n->verb == FT_DO_ROW;
        share o = from != FT_NONE && !keeps ? reshaped(c, from, n->out[i]) : s;
        if (c->cols[n->out[i]] == 1 && c->rows[n->out[i]] == 1) o = (share){.rows = 1, .cols = 1};
        if (c->cols[n->out[i]] == 1) o.cols = 1;
        give(c, n->out[i], o);
    }
    if (n->verb == FT_DO_COPY && from != FT_NONE && n->out_count && c->of[from].split) {
        share o = c->of[from]; /* repeated keys: still heads in the rows */
        give(c, n->out[0], o);
    }
    share work = n->out_count && !reduces ? c->of[n->out[0]] : s;
    if (n->verb == FT_DO_LOSS) work.cols = 1;
    shrink(&n->op, &work);
    if (n->op.kind == FT_OP_MOE) {
        n->op.u.moe.tokens = part(n->op.u.moe.tokens, work.rows * (double)c->p->ep);
        n->op.u.moe.experts = divided(n->op.u.moe.experts, (double)c->p->ep);
        if (n->in_count > 1) cut_parameter(c, n->in[1], 1 / (double)c->p->ep, 1);
    }
    emit(c, n);
    if (n->verb == FT_DO_ROW && n->out_count && c->of[n->out[0]].split && c->of[n->out[0]].cols < 0.999)
        vocabulary_sums(c, n);
}

/* Tokens travel to their experts and back: after they are sorted, and before they are put in order again. */
static void dispatch(cutter *c, ft_node *n, ft_ref *alias)
{
    bool there = !strcmp(n->name, "moe.dispatch") && n->verb == FT_DO_GATHER;
    bool back = !strcmp(n->name, "moe.combine") && n->verb == FT_DO_GATHER;
    share s = c->of[n->in[0]];
    if (tensor(c, n->in[0])->role == FT_PARAMETER) s = (share){.rows = 1 / (double)c->p->cp, .cols = 1};
    if (c->p->ep > 1 && back)
        n->in[0] = exchange(c, n->name, n->in[0], FT_AXIS_EXPERT, FT_EXCHANGE_ALL_TO_ALL, FT_EXCHANGE_ALL_TO_ALL,
                            c->of[n->in[0]]);
    give(c, n->out[0], (share){.rows = s.rows, .cols = s.cols, .split = s.split, .tokens = s.tokens});
    shrink(&n->op, &c->of[n->out[0]]);
    emit(c, n);
    if (c->p->ep > 1 && there) {
        share after = c->of[n->out[0]];
        alias[n->out[0]] = exchange(c, n->name, n->out[0], FT_AXIS_EXPERT, FT_EXCHANGE_ALL_TO_ALL,
                                    FT_EXCHANGE_ALL_TO_ALL, after);
    }
}

/* -- the walk ---------------------------------------------------------------------------------- */

static void walk(cutter *c, ft_node *old, ft_ref *alias)
{
    for (int32_t b = 0; b < c->g->block_count && c->status == FT_OK; b++) {
        ft_block *block = &c->g->blocks[b];
        int32_t first = block->first, count = block->count;
        c->block = b;
        block->first = c->g->node_count;
        if (block->carry_in != FT_NONE) {
            /* Received from the stage before, as that one had it at its end. */
            bool tokens = c->p->sp && c->p->tp > 1;
            share received = {.rows = 1 / ((double)c->p->cp * (tokens ? (double)c->p->tp : 1)), .cols = 1, .tokens = tokens};
            give(c, block->carry_in, block->fed_by != FT_NONE ? c->of[block->fed_by] : received);
        }
        for (int32_t i = first; i < first + count && c->status == FT_OK; i++) {
            ft_node n = old[i]; /* shares are asked by the old names; results get their new ones at the end */
            switch (n.verb) {
            case FT_DO_LINEAR: linear(c, &n, alias); break;
            case FT_DO_MATMUL: matmul(c, &n, alias); break;
            case FT_DO_ATTENTION: attention(c, &n); break;
            case FT_DO_EMBEDDING: embedding(c, &n, alias); break;
            case FT_DO_GATHER: dispatch(c, &n, alias); break;
            default: follow(c, &n); break;
            }
        }
        block->count = c->g->node_count - block->first;
        if (block->carry_out != FT_NONE && alias[block->carry_out] != FT_NONE)
            block->carry_out = alias[block->carry_out];
    }
    /* Whoever read a tensor that was exchanged since reads the exchange's result. */
    for (int32_t i = 0; i < c->g->node_count; i++) {
        ft_node *n = &c->g->nodes[i];
        for (int k = 0; k < n->in_count; k++) {
            ft_ref x = n->in[k];
            if (x < c->known && alias[x] != FT_NONE && !(n->verb == FT_DO_COMM && n->out[0] == alias[x]))
                n->in[k] = alias[x];
        }
    }
    for (int32_t i = 0; i < c->known; i++) { /* views of what was exchanged are views of the result */
        ft_tensor *t = tensor(c, i);
        if (t->storage != i && t->storage < c->known && alias[t->storage] != FT_NONE) t->storage = alias[t->storage];
    }
}

ft_status ft__layout_cut(ft_graph *g, const ft_parallel *p, ft_error *err)
{
    if (p->tp <= 1 && p->cp <= 1 && p->ep <= 1) return FT_OK;
    cutter c = {.g = g, .p = p, .known = g->tensor_count, .err = err};
    size_t known = (size_t)g->tensor_count + 1;
    c.of = ft__arena_array(g->arena, known, sizeof *c.of);
    c.rows = ft__arena_array(g->arena, known, sizeof *c.rows);
    c.cols = ft__arena_array(g->arena, known, sizeof *c.cols);
    ft_ref *alias = ft__arena_array(g->arena, known, sizeof *alias);
    if (!c.of || !c.rows || !c.cols || !alias) return ft__fail(err, FT_E_MEMORY, "out of memory");
    double cp = (double)p->cp;
    for (int32_t i = 0; i < g->tensor_count; i++) {
        c.rows[i] = g->tensors[i].rows;
        c.cols[i] = g->tensors[i].cols;
        alias[i] = FT_NONE;
        c.of[i] = (share){.rows = 1, .cols = 1, .gathered = FT_NONE};
    }
    /* What comes from outside is a part of every sequence: tokens stand in columns, masks and images in rows. */
    for (int32_t i = 0; i < g->tensor_count && cp > 1; i++)
        if (g->tensors[i].role == FT_INPUT) give(&c, i, (share){.rows = 1, .cols = 1 / cp, .gathered = FT_NONE});
    ft_node *old = g->nodes;
    g->nodes = NULL;
    g->node_count = g->node_room = 0;
    walk(&c, old, alias);
    if (c.status == FT_OK) ft__graph_recount(g);
    return c.status;
}
