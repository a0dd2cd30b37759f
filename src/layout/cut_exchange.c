/* cut_exchange.c: what ranks send each other where a cut region begins and ends. */
#include <math.h>

#include "layout/cutter.h"

ft_ref ft__cut_exchange(cutter *c, ft_ref x, share after, const exchanged *how)
{
    if (c->status != FT_OK) return x;
    ft_tensor t = *cut_tensor(c, x);
    bool moved = how->kind != FT_EXCHANGE_NONE && how->kind != FT_EXCHANGE_ALL_REDUCE;
    double before = ft__tensor_bytes(&t);
    if (x < c->known) {
        t.rows = ft__cut_part(c->rows[x], after.rows);
        t.cols = ft__cut_part(c->cols[x], after.cols);
    }
    double bytes = fmax(before, ft__tensor_bytes(&t)); /* the whole buffer */
    if (moved && !how->borrowed) {
        t.storage = FT_NONE;
        t.strided = t.permuted = t.gaps = false;
    }
    t.role = FT_ACTIVATION;
    t.block = c->block;
    t.name = "";
    t.expert = FT_NO_EXPERT;
    t.copies = 1;
    ft_ref out = ft__graph_tensor(c->g, &t);
    if (out == FT_NONE) {
        c->status = ft__no_memory(c->err);
        return x;
    }
    ft_node n = {.verb = FT_DO_COMM, .at = how->at, .count = 1, .traffic = 1, .effort = 1, .in_place = !moved};
    n.name = how->at ? how->at->name : "";
    n.op.kind = FT_OP_OTHER;
    n.op.name = "comm";
    n.in[n.in_count++] = x;
    n.out[n.out_count++] = out;
    if (how->borrowed) n.workspace = (float)bytes;
    n.exchange = (ft_exchange){.kind = how->kind,
                               .gradient = how->gradient,
                               .axis = how->axis,
                               .bytes = bytes,
                               .gradient_bytes = bytes * (how->gradient_scale > 0 ? how->gradient_scale : 1)};
    ft__cut_emit(c, &n);
    return out;
}

ft_ref ft__cut_trade(cutter *c, ft_at at, ft_ref x, ft_axis axis)
{
    exchanged how = {.at = at, .axis = axis, .kind = FT_EXCHANGE_ALL_TO_ALL, .gradient = FT_EXCHANGE_ALL_TO_ALL};
    return ft__cut_exchange(c, x, c->of[x], &how);
}

/* Products that read the same tensor share what was exchanged, unless each is a parallel module of its own: then it is
 * exchanged for each, and so is its gradient.
 *
 * Under sequence parallelism only a rank's own tokens are kept for the backward pass, which gathers the others again
 * beside the product that gives the inputs' gradient (Korthikanti et al. 2022, section 4.2.2). */
ft_ref ft__cut_f(cutter *c, ft_at at, ft_ref x)
{
    share s = c->of[x];
    if (s.gathered != FT_NONE && !c->model->apart) return s.gathered;
    share after = s;
    after.tokens = false;
    exchanged how = {.at = at, .axis = FT_AXIS_TENSOR, .gradient = FT_EXCHANGE_ALL_REDUCE};
    if (s.tokens) {
        after.rows *= (double)c->p->tp;
        how.kind = FT_EXCHANGE_ALL_GATHER;
        how.gradient = FT_EXCHANGE_REDUCE_SCATTER;
        how.borrowed = c->model->training;
    }
    ft_ref out = ft__cut_exchange(c, x, after, &how);
    c->of[x].gathered = out;
    return out;
}

void ft__cut_g(cutter *c, ft_at at, ft_ref x)
{
    share after = c->of[x];
    bool tokens = c->p->sp && c->p->tp > 1;
    if (tokens) {
        after.rows /= (double)c->p->tp;
        after.tokens = true;
    }
    exchanged how = {.at = at,
                     .axis = FT_AXIS_TENSOR,
                     .kind = tokens ? FT_EXCHANGE_REDUCE_SCATTER : FT_EXCHANGE_ALL_REDUCE,
                     .gradient = tokens ? FT_EXCHANGE_ALL_GATHER : FT_EXCHANGE_NONE};
    c->alias[x] = ft__cut_exchange(c, x, after, &how);
    after.gathered = FT_NONE;
    c->of[x] = after; /* later nodes ask by the old name */
}

/* Maximum, sum and the target's own logit of a row whose columns lie on several ranks; nothing goes back. */
void ft__cut_sums(cutter *c, const ft_node *n, int count)
{
    if (c->status != FT_OK) return;
    ft_node sums = {.verb = FT_DO_COMM, .at = n->at, .name = n->name, .count = (float)count, .traffic = 1, .effort = 1};
    sums.op.kind = FT_OP_OTHER;
    sums.op.name = "comm";
    sums.exchange = (ft_exchange){
        .kind = FT_EXCHANGE_ALL_REDUCE, .axis = FT_AXIS_TENSOR, .bytes = 4 * (double)cut_tensor(c, n->out[0])->rows};
    ft__cut_emit(c, &sums);
}
