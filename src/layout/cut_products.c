/* cut_products.c: products and experts of one rank. */
#include <math.h>

#include "layout/cutter.h"

double ft__cut_kv_part(const cutter *c)
{
    double tp = (double)c->p->tp, kv = (double)c->model->kv_heads;
    return kv >= 1 && kv < tp ? 1 / kv : 1 / tp;
}

/* The part of a product's columns that one rank holds. */
static double columns_of(const cutter *c, const ft_node *n)
{
    double tp = (double)c->p->tp, heads = (double)c->model->heads, kv = (double)c->model->kv_heads;
    ft_site site = ft__node_site(n);
    if (site == FT_SITE_ATTN_K_PROJ || site == FT_SITE_ATTN_V_PROJ) return ft__cut_kv_part(c);
    if (site == FT_SITE_ATTN_QKV_PROJ && heads > 0 && kv > 0)
        return (heads / tp + 2 * kv * ft__cut_kv_part(c)) / (heads + 2 * kv);
    return 1 / tp;
}

/* -- weights ----------------------------------------------------------------------------------- */

static void cut_parameter(cutter *c, ft_ref w, double rows, double cols)
{
    if (w == FT_NONE || w >= c->known) return;
    ft_ref own = c->base[w];
    if (own == FT_NONE || c->of[own].split) return; /* no parameter, or tied: cut already */
    share s = {.rows = rows, .cols = cols, .part = rows * cols, .split = true, .gathered = FT_NONE};
    ft__cut_give(c, own, s);
}

static bool is_down(const ft_node *n) { return ft__node_site(n) == FT_SITE_MOE_DOWN; }

static bool expert_bias(const cutter *c, ft_ref x)
{
    return x != FT_NONE && c->base[x] == x && cut_tensor(c, x)->expert == FT_EXPERT_BIAS;
}

/* Before anything runs, so that casts of weights are cut too. */
void ft__cut_weights(cutter *c, const ft_node *nodes, int32_t count)
{
    double tp = (double)c->p->tp, ep = (double)c->p->ep, etp = (double)ft__expert_tensor(c->p);
    for (int32_t i = 0; i < count; i++) {
        const ft_node *n = &nodes[i];
        ft_ref weight = n->in_count > 1 ? n->in[1] : FT_NONE, bias = n->in_count > 2 ? n->in[2] : FT_NONE;
        bool copy = n->verb == FT_DO_POINTWISE || (n->verb == FT_DO_OTHER && n->out_count == 1); /* cast, unpacked */
        if (n->in_count == 1 && n->in[0] >= 0 && c->base[n->in[0]] != FT_NONE && copy)
            c->base[n->out[0]] = c->base[n->in[0]];
        bool expert = weight != FT_NONE && c->base[weight] != FT_NONE && n->verb == FT_DO_MATMUL;
        if (expert && is_down(n)) {
            cut_parameter(c, weight, 1 / ep, 1 / etp);
        } else if (expert || n->verb == FT_DO_EXPERTS) {
            cut_parameter(c, weight, 1 / (ep * etp), 1);
        } else if (n->verb == FT_DO_GATHER && n->in[0] >= 0 && c->base[n->in[0]] != FT_NONE) { /* experts' biases */
            cut_parameter(c, n->in[0], 1 / ep, is_down(n) ? 1 : 1 / etp);
        } else if (n->verb == FT_DO_POINTWISE && expert_bias(c, weight)) { /* weighed and added (moe_megatron.c) */
            cut_parameter(c, weight, 1 / ep, 1);
        }
        if (expert && expert_bias(c, bias)) cut_parameter(c, bias, 1 / ep, is_down(n) ? 1 : 1 / etp);
        if (tp <= 1) continue;
        if (n->verb == FT_DO_LINEAR && n->cut == FT_CUT_COLUMNS) {
            double columns = columns_of(c, n);
            cut_parameter(c, weight, columns, 1);
            cut_parameter(c, bias, 1, columns);
        } else if (n->verb == FT_DO_LINEAR && n->cut == FT_CUT_ROWS) {
            cut_parameter(c, weight, 1, 1 / tp);
        } else if (n->verb == FT_DO_EMBEDDING && ft__node_site(n) == FT_SITE_EMBED_TOKENS) {
            cut_parameter(c, weight, 1 / tp, 1); /* positions and types are held whole */
        } else if (n->verb == FT_DO_EXPAND && c->base[n->in[0]] != FT_NONE && c->cols[n->in[0]] == c->model->heads) {
            cut_parameter(c, n->in[0], 1, 1 / tp);
        }
    }
}

/* -- linear ------------------------------------------------------------------------------------ */

void ft__cut_linear(cutter *c, ft_node *n)
{
    ft_ref x = n->in[0], y = n->out[0];
    double tp = (double)c->p->tp;
    share s = c->of[x], o = s;
    o.mixed = false;
    bool partial = false;
    if (n->cut == FT_CUT_COLUMNS && tp > 1 && !s.split) {
        double columns = columns_of(c, n);
        n->in[0] = ft__cut_f(c, n->at, x);
        o = (share){.rows = s.rows * (s.tokens ? tp : 1), .cols = columns, .part = columns, .split = true};
        o.in_cols = true;
        o.mixed = ft__node_site(n) == FT_SITE_ATTN_QKV_PROJ;
    } else if (s.split && s.in_cols) { /* cut by rows, or a small product over what is split: a sum of the ranks' */
        if (n->cut != FT_CUT_ROWS) cut_parameter(c, n->in[1], 1, s.cols);
        o = (share){.rows = s.rows, .cols = 1, .part = 1};
        partial = true;
    } else {
        o.cols = 1;
    }
    ft__cut_give(c, y, o);
    n->op.u.gemm.k = ft__cut_part(n->op.u.gemm.k, s.split && s.in_cols ? s.cols : 1);
    n->op.u.gemm.n = ft__cut_part(n->op.u.gemm.n, o.cols);
    n->op.u.gemm.m = ft__cut_part(n->op.u.gemm.m, o.rows);
    ft__cut_emit(c, n);
    if (partial) ft__cut_g(c, n->at, y);
    /* Nobody samples from a part of the vocabulary. A loss that reads all of it has the same gradient on every rank,
     * which keeps its own columns of it. */
    const bool whole = !c->model->training || c->model->whole_logits;
    if (whole && o.split && ft__node_site(n) == FT_SITE_LM_HEAD) {
        share all = o;
        all.cols = all.part = 1;
        all.split = all.in_cols = false;
        exchanged how = {.at = n->at, .axis = FT_AXIS_TENSOR, .kind = FT_EXCHANGE_ALL_GATHER};
        c->alias[y] = ft__cut_exchange(c, y, all, &how);
        c->of[y] = all;
    }
}

/* -- experts ----------------------------------------------------------------------------------- */

/* How many of a rank's experts get a row when `rows` of them choose at random. */
static double hit_here(const cutter *c, double rows)
{
    double here = (double)c->model->experts / (double)c->p->ep;
    if (!(here >= 1)) return 1;
    double hit = here * (1 - pow(1 - 1 / here, rows));
    return hit < 1 ? 1 : floor(hit + 0.5);
}

/* Experts are spread over the expert ranks, and each is cut like a feed-forward network over the tensor ranks
 * (Megatron's default: expert-tensor-parallel-size as large as tp), or whole. After the exchange a rank has as many
 * rows as before it, for fewer experts. */
static void grouped(cutter *c, ft_node *n)
{
    ft_ref x = n->in[0], y = n->out[0];
    double tp = (double)ft__expert_tensor(c->p);
    share s = c->of[x], o = s;
    bool partial = false;
    if (tp > 1 && !s.split) {
        n->in[0] = ft__cut_f(c, n->at, x);
        o = (share){
            .rows = s.rows * (s.tokens ? tp : 1), .cols = 1 / tp, .part = 1 / tp, .split = true, .in_cols = true};
        n->op.u.gemm.n = cut_divided(n->op.u.gemm.n, tp);
    } else if (tp > 1) {
        o = (share){.rows = s.rows, .cols = 1, .part = 1};
        n->op.u.gemm.k = cut_divided(n->op.u.gemm.k, tp);
        partial = true;
    }
    ft__cut_give(c, y, o);
    double rows = (double)cut_tensor(c, y)->rows, hit = hit_here(c, rows);
    if (n->count > 1 && n->op.u.gemm.b == 1)
        n->count = (float)hit;
    else
        n->op.u.gemm.b = (int64_t)hit;
    n->op.u.gemm.m = (int64_t)ceil(rows / hit);
    if (c->p->ep > 1 && c->p->skew > 1) n->effort *= (float)c->p->skew; /* all wait for the rank that got most */
    ft__cut_emit(c, n);
    if (partial) ft__cut_g(c, n->at, y);
    c->expert = y;
}

/* A serving engine's one kernel: rows per expert are tokens * topk / experts, so that fewer experts get more each. */
void ft__cut_experts(cutter *c, ft_node *n)
{
    double tp = (double)ft__expert_tensor(c->p), ep = (double)c->p->ep;
    ft_ref x = n->in[0], y = n->out[0];
    share s = c->of[x], o = s;
    if (tp > 1) {
        n->in[0] = ft__cut_f(c, n->at, x);
        if (s.tokens) o.rows *= tp;
        o.tokens = false;
    }
    o.gathered = FT_NONE;
    ft__cut_give(c, y, o);
    int64_t topk = n->op.u.moe.topk;
    n->op.u.moe.tokens = ft__cut_part(n->op.u.moe.tokens, o.rows);
    n->op.u.moe.inter = cut_divided(n->op.u.moe.inter, tp);
    n->op.u.moe.experts = cut_divided(n->op.u.moe.experts, ep);
    if (n->op.u.moe.topk > n->op.u.moe.experts) { /* a rank has fewer experts than a token chooses: as many rows */
        n->op.u.moe.tokens = (n->op.u.moe.tokens * topk + n->op.u.moe.experts - 1) / n->op.u.moe.experts;
        n->op.u.moe.topk = n->op.u.moe.experts;
    }
    if (ep > 1 && c->p->skew > 1) n->effort *= (float)c->p->skew;
    if (ep > 1) {
        n->in[0] = ft__cut_trade(c, n->at, n->in[0] < c->known ? n->in[0] : x, FT_AXIS_EXPERT);
        if (c->status == FT_OK) c->g->nodes[c->g->node_count - 1].exchange.bytes *= (double)topk;
    }
    ft__cut_emit(c, n);
    if (tp > 1) ft__cut_g(c, n->at, y);
    if (ep > 1) {
        ft_ref summed = c->alias[y];
        c->alias[y] = ft__cut_trade(c, n->at, y, FT_AXIS_EXPERT);
        if (c->status == FT_OK) {
            ft_node *back = &c->g->nodes[c->g->node_count - 1];
            back->exchange.bytes *= (double)topk;
            if (summed != FT_NONE) back->in[0] = summed;
        }
    }
}

/* -- of two activations, or by heads ------------------------------------------------------------ */

void ft__cut_matmul(cutter *c, ft_node *n)
{
    ft_ref weight = n->in[1] >= 0 && n->in[1] < c->known ? c->base[n->in[1]] : FT_NONE;
    if (weight != FT_NONE && ft__is_expert(cut_tensor(c, weight))) {
        grouped(c, n);
        return;
    }
    share s = c->of[n->in[0]];
    double heads = s.split ? s.part : 1;
    if (weight != FT_NONE && heads < 1) /* one matrix per head: its heads' */
        ft__cut_give(c, n->in[1], (share){.rows = heads, .cols = 1, .part = heads, .split = true});
    n->op.u.gemm.b = ft__cut_part(n->op.u.gemm.b, heads);
    n->op.u.gemm.m = ft__cut_part(n->op.u.gemm.m, s.rows / heads);
    ft__cut_give(c, n->out[0],
                 (share){.rows = s.rows, .cols = 1, .part = s.part, .split = s.split, .tokens = s.tokens});
    ft__cut_emit(c, n);
}
