/* norms.c: norms, alone and fused with what stands before them. */
#include <string.h>

#include "import/onnx/run.h"

/* -- norms ----------------------------------------------------------------------------------------- */

static ft_ref row_parameter(ft_onnx_run *r, ft_onnx_item *w, int64_t cols)
{
    if (!w || (w->kind == FT_ONNX_FIXED && ft__onnx_count(w) <= 1)) return FT_NONE;
    return ft__onnx_ref_as(r, w, 1, cols);
}

/* Over the last axes from `axis` on. `traffic`: more than its own matrix, where others are fused with it. */
static void norm(ft_onnx_run *r, const char *op, ft_onnx_item *x, ft_onnx_item *weight, ft_onnx_item *bias, int axis,
                 ft_onnx_item *y, double traffic)
{
    ft_build *b = r->b;
    double wide = 1, all = ft__onnx_count(x);
    for (int i = axis; i < x->dims; i++) wide *= (double)x->dim[i];
    if (all < 1 || ft__onnx_failed(r)) return;
    int64_t cols = (int64_t)wide, rows = (int64_t)(all / wide);
    ft__onnx_dense(r, x);
    ft_ref from = ft__onnx_ref_as(r, x, rows, cols);
    if (b->autocast) from = ft__cast(b, r->label, from, FT_FP32);
    ft_node n = ft__node_of(FT_DO_ROW, r->label);
    ft__node_in(&n, from);
    if (weight && ft__onnx_count(weight) == wide) ft__node_in(&n, row_parameter(r, weight, cols));
    if (bias && ft__onnx_count(bias) == wide) ft__node_in(&n, row_parameter(r, bias, cols));
    ft_tensor t = *ft__tensor_of(b, from);
    ft_ref out = ft__node_out(b, &n, rows, cols, t.dtype, t.element_bytes);
    ft_ref moments = ft__node_out(b, &n, rows, strcmp(op, "layernorm") ? 1 : 2, FT_FP32, 4);
    if (out == FT_NONE || moments == FT_NONE) return;
    b->g->tensors[moments].trained = false;
    n.op = ft__row_kernel(op, FT_PASS_FWD, rows, cols, t.dtype);
    n.traffic = (float)traffic;
    ft__emit(b, &n);
    ft__module(b, 1);
    ft__onnx_set(r, y, out);
}

/* LayerNormalization, RMSNormalization: x, weight, bias. */
static void build_norm(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    if (!x) return;
    int axis = ft__onnx_axis(r, ft__onnx_int(r->at, "axis", -1), x->dims);
    int64_t one[FT_ONNX_DIMS];
    if (axis < 0) return;
    for (int i = 0; i < x->dims; i++) one[i] = i < axis ? x->dim[i] : 1;
    for (int k = 1; k < 3; k++)
        if (ft__onnx_has(r, k)) ft__onnx_filled(r, "fill", ft__onnx_result(r, k, FT_ONNX_FLOAT, x->dims, one));
    ft_onnx_item *y = ft__onnx_result(r, 0, x->type, x->dims, x->dim);
    if (y) norm(r, r->at->rule->word, x, ft__onnx_optional(r, 1), ft__onnx_optional(r, 2), axis, y, 1);
}

/* SkipLayerNormalization: x + skip (+ bias), then the norm, in one kernel that may also write the sum. */
static void build_skip_norm(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *skip = ft__onnx_operand(r, 1), *weight = ft__onnx_operand(r, 2), sum;
    if (!x || !skip || !weight) return;
    bool rms = !strcmp(r->at->rule->word, "rmsnorm");
    ft_onnx_item *beta = rms ? NULL : ft__onnx_optional(r, 3), *bias = ft__onnx_optional(r, rms ? 3 : 4);
    ft_onnx_item *y = ft__onnx_result(r, 0, x->type, x->dims, x->dim), *parts[3] = {x, skip, bias};
    ft_onnx_item *kept = y ? ft__onnx_result(r, 3, x->type, x->dims, x->dim) : NULL;
    if (!kept || !x->dims) return;
    ft__onnx_pointwise(r, "add", bias ? 3 : 2, parts, kept);
    if (ft__onnx_failed(r) || ft__onnx_count(x) < 1) return;
    ft_op *op = &r->b->g->nodes[r->b->g->node_count - 1].op;
    *op = ft__bytes_kernel("add", op->dtype, 0, 0); /* the norm's kernel does it */
    sum = *kept;
    norm(r, r->at->rule->word, &sum, weight, beta, x->dims - 1, y, ft__onnx_has(r, 3) ? 2 : 1.5);
}

/* EmbedLayerNormalization: up to three lookups, their sum, a norm. */
static void build_embed_norm(ft_onnx_run *r)
{
    ft_onnx_item *ids = ft__onnx_operand(r, 0), *segments = ft__onnx_optional(r, 1), *words = ft__onnx_operand(r, 2);
    ft_onnx_item *places = ft__onnx_operand(r, 3), *types = ft__onnx_optional(r, 4);
    if (!ids || !words || !places) return;
    if (ids->dims != 2 || words->dims != 2 || places->dims != 2 || words->dim[1] != places->dim[1]) {
        ft__onnx_fail(r, FT_E_RANGE, "it takes [batch, length] indices and tables of equal widths");
        return;
    }
    int64_t wide = words->dim[1], dim[3] = {ids->dim[0], ids->dim[1], wide}, mask[1] = {ids->dim[0]};
    ft_ref index = ft__onnx_ref(r, ids), table = ft__onnx_ref(r, words), place = ft__onnx_ref(r, places);
    if (ft__onnx_failed(r) || ft__onnx_count(ids) < 1) return;
    ft_ref sum = ft__embedding(r->b, r->label, index, words->dim[0], wide, &table);
    sum = ft__add(r->b, r->label, sum, ft__embedding(r->b, r->label, index, places->dim[0], wide, &place));
    if (segments && types && types->dims == 2 && types->dim[1] == wide) {
        ft_ref kinds = ft__onnx_ref(r, types), which = ft__onnx_ref(r, segments);
        if (!ft__onnx_failed(r))
            sum = ft__add(r->b, r->label, sum, ft__embedding(r->b, r->label, which, types->dim[0], wide, &kinds));
    }
    ft_onnx_item *y = ft__onnx_result(r, 0, words->type, 3, dim);
    ft_onnx_item *counts = y ? ft__onnx_result(r, 1, FT_ONNX_INT32, 1, mask) : NULL;
    if (!counts) return;
    ft__onnx_filled(r, "fill", counts);
    ft_onnx_item joined = *y;
    joined.ref = sum;
    if (ft__onnx_has(r, 2)) {
        ft_onnx_item *kept = ft__onnx_result(r, 2, words->type, 3, dim);
        if (kept) kept->ref = sum;
    }
    norm(r, "layernorm", &joined, ft__onnx_optional(r, 5), ft__onnx_optional(r, 6), 2, y, 1);
}

/* Statistics over other axes than the last: groups of channels, single channels. Read twice, written once. */
static void build_channel_norm(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    ft_onnx_item *y = x ? ft__onnx_like(r, 0, x, x->type) : NULL;
    if (!y || ft__onnx_count(y) < 1) return;
    ft_onnx_item *operands[3] = {x, ft__onnx_optional(r, 1), ft__onnx_optional(r, 2)};
    int count = 1;
    for (int k = 1; k < 3; k++)
        if (operands[k] && ft__onnx_count(operands[k]) > 1) operands[count++] = operands[k];
    ft__onnx_pointwise(r, "group_norm", count, operands, y);
    if (ft__onnx_failed(r)) return;
    ft_node *n = &r->b->g->nodes[r->b->g->node_count - 1];
    n->op.u.elementwise.bytes += ft__tensor_bytes(ft__tensor_of(r->b, n->in[0]));
    n->op.u.elementwise.ops_per_element = 8;
    ft__module(r->b, 1);
}

const ft_onnx_rule ft__onnx_norm_rules[] = {
    {"LayerNormalization", 2, build_norm, "layernorm"},
    {"RMSNormalization", 2, build_norm, "rmsnorm"},
    {"SimplifiedLayerNormalization", 2, build_norm, "rmsnorm"}, /* also written without a domain */
    {"GroupNormalization", 3, build_channel_norm, ""},
    {"InstanceNormalization", 3, build_channel_norm, ""},
    {"LpNormalization", 1, build_channel_norm, ""},
    {"MeanVarianceNormalization", 1, build_channel_norm, ""},
    {"LRN", 1, build_channel_norm, ""},
    {0},
};

const ft_onnx_rule ft__onnx_norm_microsoft_rules[] = {
    {"SkipLayerNormalization", 3, build_skip_norm, "layernorm"},
    {"SkipSimplifiedLayerNormalization", 3, build_skip_norm, "rmsnorm"},
    {"SimplifiedLayerNormalization", 2, build_norm, "rmsnorm"},
    {"EmbedLayerNormalization", 4, build_embed_norm, ""},
    {"GroupNorm", 3, build_channel_norm, ""},
    {0},
};
