/* attention.c: attention of a graph file, run in the request's way as every other model's is (attend.c). */
#include <string.h>

#include "base/text.h"
#include "graph/emit.h"
#include "import/graphfile/reader.h"
#include "model/relative.h"

static bool fits(const ft_named *q, const ft_named *k, const ft_named *v)
{
    return q->dims == 4 && k->dims == 4 && v->dims == 4 && q->dim[0] == k->dim[0] && k->dim[0] == v->dim[0] &&
           k->dim[1] == v->dim[1] && k->dim[2] == v->dim[2] && q->dim[3] == k->dim[3] && q->dim[1] % k->dim[1] == 0;
}

/* What the node overrules of the request; false after an error. `plain`: sdpa's own, in fp32. */
static bool backend(ft_graph_reader *r, ft_workload *work, bool *plain)
{
    static const char *const names[] = {"flash", "sdpa", "math", "eager"};
    static const ft_attention_kind kinds[] = {FT_FLASH, FT_SDPA, FT_SDPA, FT_EAGER};
    const json_t *value = json_object_get(r->at, "backend");
    const char *said = json_string_value(value);
    *plain = false;
    if (!value) return true;
    for (size_t i = 0; said && i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], said)) {
            work->attention = kinds[i];
            *plain = i == 2;
            return true;
        }
    const char *near = said ? ft__nearest(said, names, sizeof names / sizeof *names) : NULL;
    ft__graphfile_fail(r, FT_E_NAME, "\"backend\" must be flash, sdpa, math or eager%s%s%s",
                       near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return false;
}

/* What eager attention adds to its scores: the node's own mask, or one of the model's that says what is causal. */
static ft_ref added(ft_graph_reader *r, const ft_scores *s)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named mask;
    if (ft__graphfile_operands(r) > 3) return ft__graphfile_operand(r, 3, &mask) ? mask.ref : FT_NONE;
    if (!s->shape.causal && !s->shape.masked) return FT_NONE;
    int64_t rows = s->shape.batch * s->shape.q_len, cols = s->shape.kv_len;
    if (r->mask == FT_NONE || r->mask_rows != rows || r->mask_cols != cols) {
        r->mask = ft__input(b, rows, cols, ft_dtype_bytes(b->stored));
        r->mask_rows = rows;
        r->mask_cols = cols;
    }
    return r->mask;
}

/* A learned mask gets a gradient from the fused kernel: hands the mask to the node that was just made. */
static void let_mask_learn(ft_build *b, const ft_named *mask)
{
    for (int32_t i = b->g->node_count - 1; i >= 0 && i >= b->g->node_count - 3; i--) {
        ft_node *n = &b->g->nodes[i];
        if (n->verb != FT_DO_ATTENTION) continue;
        if (b->training && n->in_count == 3 && ft__tensor_of(b, mask->ref)->trained) ft__node_in(n, mask->ref);
        return;
    }
}

/* sdpa's fallback with a mask: its own passes over the scores, and a gradient for the mask. */
static ft_ref written_out(ft_graph_reader *r, const ft_named *q, const ft_named *k, const ft_named *v,
                          const ft_named *mask, const ft_scores *s)
{
    ft_build *b = ft__graphfile_build(r);
    const ft_attention_shape *a = &s->shape;
    int64_t pairs = a->batch * a->heads;
    ft_ref query = ft__view(b, q->ref, pairs * a->q_len, a->head_dim, !s->q_dense);
    ft_ref key = ft__view(b, k->ref, pairs * a->kv_len, a->head_dim, !s->k_dense);
    ft_ref value = ft__view(b, v->ref, pairs * a->kv_len, a->head_dim, !s->v_dense);
    return ft__attend_written_out(r->m, query, key, value, mask->ref, s);
}

static bool scale_is_fine(ft_graph_reader *r)
{
    const json_t *scale = json_object_get(r->at, "scale");
    if (!scale || json_is_number(scale) || json_is_null(scale)) return true;
    ft__graphfile_fail(r, FT_E_TYPE, "\"scale\" must be a number");
    return false;
}

/* What comes out: [batch, length, heads * dim] as it lies, or a view of it with the heads in front. */
static void give_heads(ft_graph_reader *r, ft_ref y, const ft_named *q, int64_t wide, bool heads_out)
{
    int64_t merged[3] = {q->dim[0], q->dim[2], q->dim[1] * wide};
    if (!heads_out) {
        ft__graphfile_result(r, y, 3, merged);
        return;
    }
    int64_t shape[4] = {q->dim[0], q->dim[1], q->dim[2], wide};
    ft_named out = ft__graphfile_fresh(y, 4, shape);
    out.stride[1] = wide;
    out.stride[2] = q->dim[1] * wide;
    out.ref = ft__view_as(ft__graphfile_build(r), y, q->dim[0] * q->dim[1] * q->dim[2], wide,
                          ft__graphfile_order(&out));
    ft__graphfile_give(r, 0, &out);
}

/* What the node says of its attention. False after an error. */
static bool read_scores(ft_graph_reader *r, const ft_named *q, const ft_named *k, const ft_named *v, ft_workload *work,
                        ft_scores *s)
{
    int64_t window = ft__graphfile_whole(r, "window", 0, 0, (int64_t)1 << 40);
    bool causal = ft__graphfile_truth(r, "causal", false), plain;
    bool masked = ft__graphfile_truth(r, "masked", ft__graphfile_operands(r) > 3);
    bool softmax_fp32 = ft__graphfile_truth(r, "softmax_fp32", true);
    double dropout = ft__graphfile_number(r, "dropout", 0, 0, 1),
           softcap = ft__graphfile_number(r, "softcap", 0, 0, 1e9);
    if (ft__graphfile_failed(r) || !scale_is_fine(r) || !backend(r, work, &plain)) return false;
    if (!fits(q, k, v)) {
        ft__graphfile_fail(
            r, FT_E_RANGE,
            "attention takes q, k, v as [batch, heads, length, dim]: one batch, k and v of equal heads and "
            "lengths, q and k of equal dim, heads of q a multiple of k's");
        return false;
    }
    const ft_build *b = ft__graphfile_build(r);
    *s = (ft_scores){.shape = {.batch = q->dim[0],
                               .heads = q->dim[1],
                               .kv_heads = k->dim[1],
                               .q_len = q->dim[2],
                               .kv_len = k->dim[2],
                               .head_dim = q->dim[3],
                               .v_dim = v->dim[3],
                               .window = window,
                               .causal = causal && q->dim[2] > 1,
                               .masked = masked},
                     .dropout = dropout,
                     .softcap = softcap,
                     .scale = true,
                     .mask = causal || masked,
                     .maskless = r->pictures && !r->m->arch->traces_masks,
                     .softmax_fp32 = softmax_fp32,
                     .broadcast = plain && v->dim[3] == q->dim[3],
                     .q_dense = !ft__tensor_of(b, q->ref)->strided,
                     .k_dense = !ft__tensor_of(b, k->ref)->strided,
                     .v_dense = !ft__tensor_of(b, v->ref)->strided};
    s->merge = s->q_dense;
    int64_t most[4] = {q->dim[0], q->dim[1], q->dim[2] > k->dim[2] ? q->dim[2] : k->dim[2],
                       q->dim[3] > v->dim[3] ? q->dim[3] : v->dim[3]};
    return ft__graphfile_possible(r, 4, most);
}

/* A mask that the file has as a tensor. */
static void read_mask(ft_graph_reader *r, const ft_named *mask, ft_attention_kind attention, ft_scores *s)
{
    const ft_attention_shape *a = &s->shape;
    s->float_mask = mask->values == FT_FLOATS;
    s->mask_of_keys = a->q_len > 1 && (mask->dims < 2 || mask->dim[mask->dims - 2] == 1);
    /* Fused kernels read a mask of numbers only with its last axis innermost (t5's biases are not). A file that knows
     * strides which the reader cannot follow says so. */
    if (s->float_mask && !ft__graphfile_truth(r, "mask_in_order", false) && attention == FT_SDPA &&
        mask->dim[mask->dims - 1] > 1 && a->v_dim == a->head_dim)
        s->broadcast |= mask->unordered || mask->stride[mask->dims - 1] != 1;
}

void ft__read_attention(ft_graph_reader *r, ft_at at)
{
    ft_maker *m = r->m;
    ft_workload work = *m->work;
    const ft_workload *const asked = m->work;
    const ft_ref mask_before = m->mask;
    ft_named q, k, v, mask;
    ft_scores s;
    if (!ft__graphfile_operand(r, 0, &q) || !ft__graphfile_operand(r, 1, &k) || !ft__graphfile_operand(r, 2, &v))
        return;
    bool heads_out = ft__graphfile_truth(r, "heads_out", false);
    if (!read_scores(r, &q, &k, &v, &work, &s)) return;
    if (ft__graphfile_operands(r) > 3) {
        if (!ft__graphfile_operand(r, 3, &mask)) return;
        read_mask(r, &mask, work.attention, &s);
    }
    m->work = &work;
    m->mask = work.attention == FT_EAGER ? added(r, &s) : FT_NONE;
    bool beside = s.float_mask && s.broadcast && s.shape.kv_heads == s.shape.heads && !m->stack->fused_softmax;
    ft_ref y = beside ? written_out(r, &q, &k, &v, &mask, &s) : ft__part_attend(m, at, q.ref, k.ref, v.ref, &s);
    if (s.float_mask && !ft__graphfile_failed(r)) let_mask_learn(&m->b, &mask);
    m->mask = mask_before;
    m->work = asked;
    give_heads(r, y, &q, v.dim[3], heads_out);
}
