/* cut_rows.c: everything that is as split as what it reads. */
#include <math.h>

#include "layout/cutter.h"

/* A node whose work is proportional to what it writes, or reads. */
static void shrink(ft_op *op, const share *s)
{
    double all = s->rows * s->cols;
    switch (op->kind) {
    case FT_OP_ELEMENTWISE:
        op->u.elementwise.numel = ft__cut_part(op->u.elementwise.numel, all);
        op->u.elementwise.bytes *= all;
        break;
    case FT_OP_ROW:
        op->u.row.rows = ft__cut_part(op->u.row.rows, s->rows);
        op->u.row.cols = ft__cut_part(op->u.row.cols, s->cols);
        break;
    case FT_OP_OTHER:
        op->u.other.bytes *= all;
        op->u.other.flops *= all;
        break;
    case FT_OP_QUANTIZE: op->u.quantize.rows = ft__cut_part(op->u.quantize.rows, all); break;
    default: break;
    }
}

/* The share of a tensor in other clothes: tokens stay rows; heads follow the axis they were moved to. */
static share reshaped(const cutter *c, ft_ref from, ft_ref to)
{
    share s = c->of[from];
    int64_t in = c->cols[from], out = c->cols[to];
    s.gathered = FT_NONE;
    if (!s.split || in == out || c->rows[from] == c->rows[to]) return s;
    if (s.in_cols && out < in) { /* heads become rows */
        s.cols /= s.part;
        s.rows *= s.part;
        s.in_cols = false;
    } else if (!s.in_cols && out > in && c->rows[to] < c->rows[from]) { /* and columns again */
        s.rows /= s.part;
        s.cols *= s.part;
        s.in_cols = true;
    }
    return s;
}

void ft__cut_embedding(cutter *c, ft_node *n)
{
    double tp = (double)c->p->tp;
    share s = c->of[n->in[0]], o = whole_share();
    o.rows = s.rows * s.cols;
    bool vocabulary = tp > 1 && c->base[n->in[1]] != FT_NONE && c->of[c->base[n->in[1]]].split;
    ft__cut_give(c, n->out[0], o);
    n->op.u.row.rows = ft__cut_part(n->op.u.row.rows, o.rows);
    if (vocabulary) n->op.u.row.vocab = ft__cut_part(n->op.u.row.vocab, 1 / tp);
    ft__cut_emit(c, n);
    if (vocabulary) ft__cut_g(c, n->at, n->out[0]);
}

/* The operand that decides: the largest, and of equal ones the most divided. */
static ft_ref leader(const cutter *c, const ft_node *n)
{
    ft_ref from = FT_NONE;
    double most = -1;
    for (int i = 0; i < n->in_count; i++) {
        ft_ref x = n->in[i];
        if (x < 0 || x >= c->known || cut_tensor(c, x)->role == FT_PARAMETER) continue;
        double numel = (double)c->rows[x] * (double)c->cols[x];
        bool smaller = from != FT_NONE && numel == most &&
                       c->of[x].rows * c->of[x].cols < 0.999 * c->of[from].rows * c->of[from].cols;
        bool split = n->verb == FT_DO_CAT && from != FT_NONE && c->of[x].split && !c->of[from].split;
        bool kept = n->verb == FT_DO_CAT && from != FT_NONE && c->of[from].split && !c->of[x].split;
        if ((numel > most && !kept) || smaller || split) {
            most = numel;
            from = x;
        }
    }
    return from;
}

/* One of what lies side by side: queries are cut by ranks, keys and values by their heads. */
static share unmixed(const cutter *c, share s, ft_ref from, ft_ref out)
{
    int64_t heads = c->model->heads, kv = c->model->kv_heads, all = heads + 2 * kv;
    bool keys = all > 0 && c->cols[out] * all != c->cols[from] * heads;
    s.part = s.cols = keys && kv >= 1 && kv < c->p->tp ? 1 / (double)kv : 1 / (double)c->p->tp;
    s.mixed = false;
    return s;
}

static void split(cutter *c, ft_node *n)
{
    share s = c->of[n->in[0]];
    s.gathered = FT_NONE;
    for (int i = 0; i < n->out_count; i++) ft__cut_give(c, n->out[i], s.mixed ? unmixed(c, s, n->in[0], n->out[i]) : s);
    ft__cut_emit(c, n);
}

/* A row of every sequence (its last token, its first): on one of the ranks that share the sequence, so that all of them
 * need it. */
static void picked(cutter *c, ft_node *n)
{
    share s = c->of[n->in[0]];
    if (s.tokens) n->in[0] = ft__cut_f(c, n->at, n->in[0]);
    s.rows = 1;
    s.tokens = false;
    ft__cut_give(c, n->out[0], s);
    ft__cut_emit(c, n);
}

/* One row for all heads becomes one per head: every rank takes its own heads' (the rotary keys of latent attention). */
static bool expands_to_heads(const cutter *c, const ft_node *n)
{
    int64_t in = c->rows[n->in[0]], out = c->rows[n->out[0]], heads = c->model->heads;
    bool parameter = c->base[n->in[0]] != FT_NONE;
    return c->p->tp > 1 && heads > 0 && !(c->of[n->in[0]].split && !parameter) && out % heads == 0 &&
           (parameter || out == in * heads);
}

static void expanded(cutter *c, ft_node *n)
{
    double tp = (double)c->p->tp;
    share s = c->of[n->in[0]];
    bool parameter = c->base[n->in[0]] != FT_NONE;
    if (!parameter) {
        n->in[0] = ft__cut_f(c, n->at, n->in[0]);
        if (s.tokens) s.rows *= tp;
    } else {
        s = whole_share();
    }
    ft__cut_give(c, n->out[0], (share){.rows = s.rows / tp, .cols = 1, .part = 1 / tp, .split = true});
    ft__cut_emit(c, n);
}

/* Queries by heads; of keys and values every rank rotates the shared key for its own heads. */
static void rotated(cutter *c, ft_node *n)
{
    share s = c->of[n->in[0]];
    s.gathered = FT_NONE;
    if (n->in_count > 1 && c->p->tp > 1) n->in[1] = ft__cut_f(c, n->at, n->in[1]);
    for (int i = 0; i < n->out_count; i++) ft__cut_give(c, n->out[i], s);
    shrink(&n->op, &s);
    ft__cut_emit(c, n);
}

/* Nodes without operands are as long as there are tokens. */
static share of_nothing(const cutter *c, const ft_node *n)
{
    share s = whole_share();
    s.rows = 1 / (double)c->p->cp;
    if (c->p->sp && c->p->tp > 1 && ft__node_within(n, FT_SITE_MOE)) s.rows /= (double)c->p->tp;
    return s;
}

/* Launched once for every expert: a rank has fewer of them, with more rows each. */
static void by_own_experts(const cutter *c, ft_node *n)
{
    double own = fmax(1, (double)n->count / (double)c->p->ep), more = (double)n->count / own;
    n->op.u.elementwise.numel = (int64_t)((double)n->op.u.elementwise.numel * more);
    n->op.u.elementwise.bytes *= more;
    n->count = (float)own;
}

/* What sends a token once counts and maps by a kernel of its own. */
static void spared(const cutter *c, ft_node *n)
{
    enum { LEAST = 3 };
    n->count = (float)fmax(LEAST, (double)n->count - c->model->routing_spared);
}

void ft__cut_follow(cutter *c, ft_node *n)
{
    ft_ref from = leader(c, n);
    bool parameter = from == FT_NONE && n->in_count && n->in[0] >= 0 && c->base[n->in[0]] != FT_NONE;
    bool same_width = from != FT_NONE && n->out_count && c->cols[n->out[0]] == c->cols[from];
    if (n->verb == FT_DO_SPLIT || n->verb == FT_DO_ROTATE) {
        (n->verb == FT_DO_SPLIT ? split : rotated)(c, n);
        return;
    }
    if (n->verb == FT_DO_SLICE && same_width && c->rows[n->out[0]] < c->rows[from] &&
        cut_tensor(c, from)->role != FT_CACHE && !c->of[from].split) {
        picked(c, n);
        return;
    }
    if (n->verb == FT_DO_EXPAND && expands_to_heads(c, n)) {
        expanded(c, n);
        return;
    }
    share s = from != FT_NONE ? c->of[from] : parameter ? c->of[c->base[n->in[0]]] : of_nothing(c, n);
    s.gathered = FT_NONE;
    bool reduces = n->verb == FT_DO_ROW && n->out_count && c->cols[n->out[0]] == 1 && from != FT_NONE;
    for (int i = 0; i < n->out_count; i++) {
        ft_ref out = n->out[i];
        bool keeps = n->verb == FT_DO_POINTWISE || n->verb == FT_DO_ROW;
        share o = from != FT_NONE && !keeps ? reshaped(c, from, out) : s;
        if (s.mixed && n->verb == FT_DO_SLICE) o = unmixed(c, o, from, out);
        if (c->cols[out] == 1) o.cols = 1;
        if (c->cols[out] == 1 && o.in_cols) {
            o.split = o.in_cols = false;
            o.part = 1;
        }
        if (c->cols[out] == 1 && c->rows[out] == 1) o = whole_share();
        /* Keys repeated for every query head: from here on as many as there are query heads. */
        double grown = from == FT_NONE ? 1
                                       : (double)c->rows[out] * (double)c->cols[out] /
                                             ((double)c->rows[from] * (double)c->cols[from]);
        if (n->verb == FT_DO_COPY && o.split && !o.in_cols && grown > 1.5) {
            o.rows *= 1 / (double)c->p->tp / o.part;
            o.part = 1 / (double)c->p->tp;
        }
        ft__cut_give(c, out, o);
    }
    share work = n->out_count && !reduces ? c->of[n->out[0]] : s;
    if (n->verb == FT_DO_LOSS && from != FT_NONE) work = (share){.rows = s.rows, .cols = 1};
    shrink(&n->op, &work);
    if (n->op.kind == FT_OP_ELEMENTWISE && n->count > 1 && c->p->ep > 1 && ft__node_site(n) == FT_SITE_MOE_BIAS)
        by_own_experts(c, n);
    if (c->p->dispatch_once && c->p->ep > 1 && ft__node_site(n) == FT_SITE_MOE_MAP) spared(c, n);
    ft__cut_emit(c, n);
    bool over_ranks = n->verb == FT_DO_ROW && n->out_count && from != FT_NONE && s.split && s.in_cols;
    if (over_ranks) ft__cut_sums(c, n, reduces ? 1 : ft__node_site(n) == FT_SITE_LOSS ? 3 : 1);
}

/* Rows come from an all-to-all rank by rank and are sorted by expert where a rank has several, and back before they
 * return (Megatron-Core's sort_chunks_by_idxs, torchtitan's permutation). What sends a token once (DeepEP, HybridEP)
 * brings it where it belongs. */
static ft_ref sorted(cutter *c, ft_at at, ft_ref x)
{
    if (c->status != FT_OK || c->p->dispatch_once || c->model->experts <= c->p->ep) return x;
    ft_tensor t = *cut_tensor(c, x);
    t.storage = FT_NONE;
    ft_ref out = ft__graph_tensor(c->g, &t);
    if (out == FT_NONE) {
        c->status = ft__no_memory(c->err);
        return x;
    }
    ft_node n = {.verb = FT_DO_PERMUTE, .at = at, .name = at ? at->name : "", .count = 1, .traffic = 1, .effort = 1};
    n.in[n.in_count++] = x;
    n.out[n.out_count++] = out;
    ft__op_init("copy", &n.op);
    n.op.dtype = t.dtype;
    n.op.u.elementwise.numel = (int64_t)ft__tensor_numel(&t);
    n.op.u.elementwise.bytes = 2 * ft__tensor_bytes(&t);
    ft__cut_emit(c, &n);
    return out;
}

/* Tokens travel to their experts and back: after they are sorted, and before they are put in order again. */
void ft__cut_gather(cutter *c, ft_node *n)
{
    bool there = ft__node_site(n) == FT_SITE_MOE_DISPATCH, back = ft__node_site(n) == FT_SITE_MOE_COMBINE;
    share s = c->of[n->in[0]];
    if (c->base[n->in[0]] != FT_NONE) /* a row per token of its expert's bias */
        s = c->expert != FT_NONE ? c->of[c->expert] : whole_share();
    s.gathered = FT_NONE;
    exchanged how = {
        .at = n->at, .axis = FT_AXIS_EXPERT, .kind = FT_EXCHANGE_ALL_TO_ALL, .gradient = FT_EXCHANGE_ALL_TO_ALL};
    ft_ref summed = c->alias[n->in[0]]; /* over tensor ranks, where experts are cut */
    if (c->p->ep > 1 && back)
        n->in[0] = ft__cut_exchange(c, sorted(c, n->at, summed != FT_NONE ? summed : n->in[0]), s, &how);
    if (c->cols[n->out[0]] == 1) s.cols = 1;
    ft__cut_give(c, n->out[0], s);
    shrink(&n->op, &s);
    ft__cut_emit(c, n);
    if (c->p->ep > 1 && there) c->alias[n->out[0]] = sorted(c, n->at, ft__cut_exchange(c, n->out[0], s, &how));
}
