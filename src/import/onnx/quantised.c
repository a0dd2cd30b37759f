/* quantised.c: operators on integers of eight bits and fewer: what they move, and products in int8. */
#include <string.h>

#include "import/onnx/run.h"

/* -- to integers and back -------------------------------------------------------------------------- */

static void build_quantize(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    const ft_onnx_item *zero = ft__onnx_optional(r, 2);
    if (!x) return;
    int type = zero ? zero->type : (int)ft__onnx_int(r->at, "output_dtype", FT_ONNX_UINT8);
    if (x->kind == FT_ONNX_WEIGHT) {
        ft__onnx_pass(r, 0, x);
        return;
    }
    ft_onnx_item *y = ft__onnx_like(r, 0, x, type > 0 ? type : FT_ONNX_UINT8);
    if (y) ft__onnx_pointwise(r, "quantize", 1, &x, y);
}

/* A weight stays in few bits until a product reads it. */
static void build_dequantize(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0), *scale = ft__onnx_operand(r, 1);
    if (!x || !scale) return;
    if (x->kind == FT_ONNX_WEIGHT) {
        ft_onnx_item same = *x;
        same.type = scale->type;
        ft__onnx_pass(r, 0, &same);
        return;
    }
    ft_onnx_item *y = ft__onnx_like(r, 0, x, scale->type);
    if (y) ft__onnx_pointwise(r, "dequantize", 1, &x, y);
}

/* The largest value first, then the numbers. */
static void build_dynamic(ft_onnx_run *r)
{
    ft_onnx_item *x = ft__onnx_operand(r, 0);
    if (!x) return;
    ft_onnx_item *y = ft__onnx_like(r, 0, x, FT_ONNX_UINT8);
    ft_onnx_item *scale = y ? ft__onnx_result(r, 1, FT_ONNX_FLOAT, 0, NULL) : NULL;
    ft_onnx_item *zero = scale ? ft__onnx_result(r, 2, FT_ONNX_UINT8, 0, NULL) : NULL;
    if (!zero || ft__onnx_count(x) < 1) return;
    ft_ref from = ft__onnx_ref(r, x);
    if (ft__onnx_failed(r)) return;
    ft_tensor t = *ft__tensor_of(r->b, from);
    ft_node n = ft__node_of(FT_DO_FILL, r->label);
    ft__node_in(&n, from);
    scale->ref = ft__node_out(r->b, &n, 1, 1, FT_FP32, 4);
    zero->ref = ft__node_out(r->b, &n, 1, 1, FT_FP32, 1);
    n.op = ft__row_kernel("sum_rows", FT_PASS_FWD, 1, (int64_t)ft__tensor_numel(&t), t.dtype);
    ft__emit(r->b, &n);
    ft__onnx_pointwise(r, "quantize", 1, &x, y);
}

/* -- products -------------------------------------------------------------------------------------- */

/* [..., m, k] x [k, n] of bytes; the result's elements as `type` says. */
static void product(ft_onnx_run *r, ft_onnx_item *a, ft_onnx_item *c, int type)
{
    int64_t dim[FT_ONNX_DIMS], m = 1, k, n, batch = 1;
    if (!a || !c) return;
    if (a->dims < 1 || c->dims < 2 || c->dim[c->dims - 2] != a->dim[a->dims - 1]) {
        ft__onnx_fail(r, FT_E_RANGE, "the operands' inner sizes differ");
        return;
    }
    k = a->dim[a->dims - 1];
    n = c->dim[c->dims - 1];
    memcpy(dim, a->dim, sizeof dim);
    dim[a->dims - 1] = n;
    ft_onnx_item *y = ft__onnx_result(r, 0, type, a->dims, dim);
    double rows = ft__onnx_count(a) / (double)(k > 0 ? k : 1), matrices = ft__onnx_count(c) / ((double)k * (double)n);
    if (!y || ft__onnx_count(y) < 1 || k < 1) return;
    if (matrices > 1) {
        batch = (int64_t)matrices;
        rows /= matrices;
    }
    m = rows >= 1 ? (int64_t)rows : 1;
    double bytes;
    ft_dtype dtype = ft__onnx_dtype(r, type, &bytes);
    ft_ref x = ft__onnx_dense(r, a),
           w = c->kind == FT_ONNX_WEIGHT && batch == 1 ? ft__onnx_product_weight(r, c, n, k) : ft__onnx_dense(r, c);
    if (ft__onnx_failed(r)) return;
    ft_node node = ft__node_of(FT_DO_OTHER, r->label);
    ft__node_in(&node, x);
    ft__node_in(&node, w);
    ft_ref out = ft__node_out(r->b, &node, batch * m, n, dtype, bytes);
    node.op = ft__gemm_kernel(FT_INT8, batch, m, n, k, "nt", false);
    node.op.u.gemm.quantized = 1; /* they arrive so */
    ft__emit(r->b, &node);
    ft__module(r->b, 1);
    ft__onnx_set(r, y, out);
}

static void build_integer_product(ft_onnx_run *r)
{
    bool floats = !strcmp(r->at->op, "MatMulIntegerToFloat") || !strcmp(r->at->op, "DynamicQuantizeMatMul");
    product(r, ft__onnx_operand(r, 0), ft__onnx_operand(r, 1), floats ? FT_ONNX_FLOAT : FT_ONNX_INT32);
}

static void build_scaled_product(ft_onnx_run *r)
{
    ft_onnx_item *a = ft__onnx_operand(r, 0), *c = ft__onnx_operand(r, 3), *zero = ft__onnx_operand(r, 7);
    if (zero) product(r, a, c, zero->type);
}

/* Weights of two to eight bits, packed by blocks of columns with a scale each. */
static void build_packed_product(ft_onnx_run *r)
{
    ft_onnx_item *a = ft__onnx_operand(r, 0), *c = ft__onnx_operand(r, 1);
    int64_t k = ft__onnx_int(r->at, "K", 0), n = ft__onnx_int(r->at, "N", 0), bits = ft__onnx_int(r->at, "bits", 4);
    int64_t block = ft__onnx_int(r->at, "block_size", 32), dim[FT_ONNX_DIMS];
    ft_build *b = r->b;
    if (!a || !c) return;
    if (a->dims < 1 || a->dim[a->dims - 1] != k || n < 1 || k < 1 || bits < 1 || bits > 8 || n > (int64_t)1 << 30 ||
        k > (int64_t)1 << 30 || block < 1) {
        ft__onnx_fail(r, FT_E_RANGE, "\"K\" %lld, \"N\" %lld and \"bits\" %lld do not go with its operand",
                      (long long)k, (long long)n, (long long)bits);
        return;
    }
    memcpy(dim, a->dim, sizeof dim);
    dim[a->dims - 1] = n;
    ft_onnx_item *y = ft__onnx_result(r, 0, a->type, a->dims, dim);
    if (!y || ft__onnx_count(y) < 1) return;
    ft__onnx_dense(r, a);
    ft_ref x = ft__onnx_ref_as(r, a, (int64_t)(ft__onnx_count(a) / (double)k), k), w = FT_NONE;
    ft_onnx_item *home = c->kind == FT_ONNX_WEIGHT ? &r->items[c->source] : c;
    if (ft__onnx_failed(r)) return;
    if (home->ref == FT_NONE) {
        bool frozen = b->frozen;
        b->frozen = true;
        home->ref = ft__parameter(b, "packed.weight", n, k);
        b->frozen = frozen;
        if (home->ref == FT_NONE) return;
        ft_tensor *t = &b->g->tensors[home->ref];
        double bytes = (double)bits / 8 + 2.0 / (double)block; /* a scale of two bytes for each block */
        b->g->parameter_bytes += (bytes - t->element_bytes) * ft__tensor_numel(t);
        t->element_bytes = bytes;
    }
    w = home->ref;
    ft__onnx_set(r, y, ft__linear_with(b, r->label, x, w, n, FT_NONE, FT_WHOLE));
    ft__module(b, 1);
}

static void make_int8(ft_onnx_run *r, int32_t first)
{
    for (int32_t i = first; i < r->b->g->node_count && !ft__onnx_failed(r); i++) {
        ft_node *n = &r->b->g->nodes[i];
        if (n->verb != FT_DO_CONV) continue;
        double flops = ft__op_flops(&n->op), bytes = 0;
        for (int k = 0; k < n->in_count; k++) bytes += ft__tensor_bytes(ft__tensor_of(r->b, n->in[k]));
        for (int k = 0; k < n->out_count; k++) bytes += ft__tensor_bytes(ft__tensor_of(r->b, n->out[k]));
        n->verb = FT_DO_OTHER; /* no family of convolutions in int8 is fitted: its bytes and its arithmetic */
        n->op = ft__bytes_kernel("conv_int8", FT_INT8, bytes, flops);
    }
}

static void build_quantised_conv(ft_onnx_run *r)
{
    bool scaled = !strcmp(r->at->op, "QLinearConv");
    ft_onnx_item *x = ft__onnx_operand(r, 0), *weight = ft__onnx_operand(r, scaled ? 3 : 1);
    ft_onnx_item *zero = scaled ? ft__onnx_operand(r, 7) : NULL;
    int32_t first = r->b->g->node_count;
    if (!x || !weight || (scaled && !zero)) return;
    ft__onnx_conv_of(r, x, weight, NULL, scaled ? zero->type : FT_ONNX_INT32);
    make_int8(r, first);
}

/* QLinearAdd and its like: operands 0 and 3, each with scale and zero. */
static void build_quantised_pair(ft_onnx_run *r)
{
    ft_onnx_item *both[2] = {ft__onnx_operand(r, 0), ft__onnx_operand(r, 3)};
    int64_t dim[FT_ONNX_DIMS];
    if (!both[0] || !both[1]) return;
    int dims = ft__onnx_broadcast(r, 2, both, dim);
    ft_onnx_item *y = dims < 0 ? NULL : ft__onnx_result(r, 0, both[0]->type, dims, dim);
    if (y) ft__onnx_pointwise(r, r->at->rule->word, 2, both, y);
}

const ft_onnx_rule ft__onnx_quantised_rules[] = {
    {"QuantizeLinear", 2, build_quantize, ""},       {"DequantizeLinear", 2, build_dequantize, ""},
    {"DynamicQuantizeLinear", 1, build_dynamic, ""}, {"MatMulInteger", 2, build_integer_product, ""},
    {"QLinearMatMul", 8, build_scaled_product, ""},  {"QLinearConv", 8, build_quantised_conv, ""},
    {"ConvInteger", 2, build_quantised_conv, ""},    {0},
};

const ft_onnx_rule ft__onnx_quantised_microsoft_rules[] = {
    {"QuantizeLinear", 2, build_quantize, ""},
    {"DequantizeLinear", 2, build_dequantize, ""},
    {"MatMulIntegerToFloat", 2, build_integer_product, ""},
    {"DynamicQuantizeMatMul", 2, build_integer_product, ""},
    {"MatMulNBits", 2, build_packed_product, ""},
    {"QLinearAdd", 8, build_quantised_pair, "add"},
    {"QLinearMul", 8, build_quantised_pair, "mul"},
    {0},
};
