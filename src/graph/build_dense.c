/* build_dense.c: matrix products, attention. */
#include <string.h>

#include "graph/emit.h"
#include "graph/pointwise.h"

ft_op ft__gemm_kernel(ft_dtype dtype, int64_t b, int64_t m, int64_t n, int64_t k, const char *layout, bool bias)
{
    ft_op op = {.kind = FT_OP_GEMM, .name = b > 1 ? "bmm" : "linear", .dtype = dtype, .kv_dtype = dtype};
    op.u.gemm.b = b;
    op.u.gemm.m = m;
    op.u.gemm.n = n;
    op.u.gemm.k = k;
    op.u.gemm.bias = bias;
    /* What arrives in bf16 is quantised on its way into a low-precision product. */
    op.u.gemm.quantized = ft_dtype_bytes(dtype) < 2 ? 0 : -1;
    memcpy(op.u.gemm.layout, layout, 3);
    return op;
}

ft_dtype ft__flowing(ft_dtype math)
{
    if (math == FT_FP8 || math == FT_INT8 || math == FT_FP4) return FT_BF16;
    return math == FT_TF32 ? FT_FP32 : math;
}

ft_dtype ft__product_dtype(const ft_build *b, const ft_tensor *x)
{
    return x->dtype == ft__flowing(b->math) ? b->math : x->dtype;
}

ft_ref ft__lowered(ft_build *b, ft_at at, ft_ref weight)
{
    if (!b->autocast || weight == FT_NONE) return weight;
    for (int32_t i = 0; i + 1 < b->cast_count; i += 2)
        if (b->casts[i] == weight) return b->casts[i + 1];
    ft_ref copy = ft__cast(b, at, weight, ft__flowing(b->math));
    if (b->cast_count + 2 > b->cast_room) {
        int32_t room = b->cast_room ? 2 * b->cast_room : 64;
        ft_ref *fresh = ft__arena_array(b->g->arena, (size_t)room, sizeof *fresh);
        if (!fresh) {
            ft__build_fail(b, FT_E_MEMORY, "out of memory");
            return FT_NONE;
        }
        if (b->cast_count) memcpy(fresh, b->casts, (size_t)b->cast_count * sizeof *fresh);
        b->casts = fresh;
        b->cast_room = room;
    }
    b->casts[b->cast_count++] = weight;
    b->casts[b->cast_count++] = copy;
    return copy;
}

bool ft__casts_apart(const ft_build *b, const ft_node *n)
{
    return b->g->casts != FT_CASTS_INSIDE && n->op.kind == FT_OP_GEMM && n->op.dtype == FT_FP8;
}

/* A compiler reads the operand for its largest magnitude and again to write it in a byte; plain operators are the
 * quantize kernel's nine, and a copy where the product wants it turned. */
void ft__cast_apart(ft_build *b, ft_at at, ft_ref operand, bool turned)
{
    if (b->status != FT_OK || operand == FT_NONE) return;
    ft_tensor t = *ft__tensor_of(b, operand);
    ft_node n = ft__node_of(FT_DO_OTHER, at);
    ft__node_in(&n, operand);
    n.workspace = (float)ft__tensor_numel(&t);
    if (b->g->casts == FT_CASTS_COMPILED) {
        n.op = ft__bytes_kernel("cast", ft__flowing(FT_FP8), ft__tensor_numel(&t) * (2 * t.element_bytes + 1) / 2, 0);
        n.count = 2;
        ft__emit(b, &n);
        return;
    }
    n.op = (ft_op){.kind = FT_OP_QUANTIZE, .name = "quantize", .dtype = FT_FP8, .kv_dtype = FT_BF16};
    n.op.u.quantize.rows = t.rows;
    n.op.u.quantize.cols = t.cols;
    ft__emit(b, &n);
    if (!turned) return;
    ft_node copy = ft__node_of(FT_DO_OTHER, at);
    ft__node_in(&copy, operand);
    copy.op = ft__row_kernel("transpose_copy", FT_PASS_FWD, t.rows, t.cols, FT_FP8);
    ft__emit(b, &copy);
}

ft_format_was ft__format_open(ft_build *b, ft_at at)
{
    ft_format_was was = {b->weight_bytes, b->math};
    const ft_weight_format *f = b->formats ? &b->formats->of[ft__weight_class(at, b->shared)] : NULL;
    if (b->formats && !f->given) b->weight_bytes = ft_dtype_bytes(b->stored);
    if (!f || !f->given) return was;
    b->weight_bytes = ft__format_bytes(f);
    b->math = f->math;
    return was;
}

void ft__format_close(ft_build *b, ft_format_was was)
{
    b->weight_bytes = was.weight_bytes;
    b->math = was.math;
}

ft_storage ft__format_stored(const ft_build *b, ft_at at)
{
    const ft_weight_format *f = b->formats ? &b->formats->of[ft__weight_class(at, b->shared)] : NULL;
    return f && f->given ? f->stored : FT_STORED_AS_COMPUTED;
}

/* Whether the kernel before was attention, views aside. */
static bool attended(const ft_build *b)
{
    int32_t i = b->g->node_count - 1;
    while (i >= 0 && b->g->nodes[i].verb == FT_DO_VIEW) i--;
    return i >= 0 && b->g->nodes[i].op.kind == FT_OP_ATTENTION;
}

/* Norms and activations scale what they write for a product in 8 or 4 bits; attention does not, and a kernel reads its
 * 16 bits to write fewer. */
static void quantise_attended(ft_build *b, ft_at at, ft_ref x)
{
    ft_tensor t = *ft__tensor_of(b, x);
    ft_dtype low = ft__product_dtype(b, &t);
    if (!b->quantises_apart || ft_dtype_bytes(low) >= 2 || !attended(b)) return;
    ft_node n = ft__node_of(FT_DO_OTHER, at);
    ft__node_in(&n, x);
    n.op = (ft_op){.kind = FT_OP_QUANTIZE, .name = "quantize_cast", .dtype = low, .kv_dtype = ft__flowing(low)};
    n.op.u.quantize.rows = t.rows;
    n.op.u.quantize.cols = t.cols;
    n.workspace = (float)(ft__tensor_numel(&t) * ft_dtype_bytes(low));
    ft__emit(b, &n);
}

ft_ref ft__linear_with(ft_build *b, ft_at at, ft_ref x, ft_ref weight, int64_t out, ft_ref bias, ft_cut cut)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_dtype came = ft__tensor_of(b, x)->dtype, flow = b->autocast ? ft__flowing(b->math) : came;
    bool packed = b->training && ft__packed(b, weight, flow); /* no copy for autocast's cache: it is unpacked anew */
    if (b->autocast) x = ft__cast(b, at, x, flow);
    if (!packed) weight = ft__lowered(b, at, weight);
    bias = ft__lowered(b, at, bias);
    ft_tensor t = *ft__tensor_of(b, x);
    if (b->training && b->unpacks_openly && ft__packed(b, weight, flow)) weight = ft__unpacked(b, at, weight, flow);
    if (b->status != FT_OK) return FT_NONE;
    quantise_attended(b, at, x);
    ft_node n = ft__node_of(FT_DO_LINEAR, at);
    ft__node_in(&n, x);
    ft__node_in(&n, weight);
    ft__node_in(&n, bias);
    n.cut = cut;
    ft_ref y = ft__node_out(b, &n, t.rows, out, flow, ft_dtype_bytes(flow));
    n.op = ft__gemm_kernel(ft__product_dtype(b, &t), 1, t.rows, out, t.cols, b->conv1d ? "nn" : "nt", bias != FT_NONE);
    if (ft__casts_apart(b, &n)) {
        ft__cast_apart(b, at, x, false);
        ft__cast_apart(b, at, weight, false);
        n.op.u.gemm.quantized = 1;
    }
    const ft_tensor *w = ft__tensor_of(b, weight);
    if (b->training && ft__packed(b, weight, flow)) {
        if (w->element_bytes < 1) ft__packed_call(b, at);
        ft__unpack(b, at, weight);
    } else if (w->element_bytes < ft_dtype_bytes(n.op.dtype) && ft__format_stored(b, at) != FT_STORED_AS_COMPUTED) {
        n.op.weights = ft__format_stored(b, at); /* its kernel widens them on the way */
        n.op.u.gemm.by = b->weights_by;
    } else if (w->element_bytes < ft_dtype_bytes(flow)) { /* the product itself unpacks: a serving engine's kernel */
        double dense = ft__op_bytes(&n.op);
        n.traffic = (float)((dense - ft__tensor_numel(w) * (ft_dtype_bytes(n.op.dtype) - w->element_bytes)) / dense);
    }
    ft__emit(b, &n);
    return packed && !b->unpacks_openly ? ft__cast(b, at, y, came) : y; /* Linear4bit gives back what it was given */
}

void ft__as_weight(ft_build *b, ft_ref parameter)
{
    if (b->status != FT_OK || parameter == FT_NONE) return;
    ft_tensor *t = &b->g->tensors[parameter];
    if (t->role != FT_PARAMETER || b->weight_bytes >= t->element_bytes) return;
    b->g->parameter_bytes -= (t->element_bytes - b->weight_bytes) * ft__tensor_numel(t) * (double)t->copies;
    t->element_bytes = b->weight_bytes;
}

ft_ref ft__weight(ft_build *b, const char *name, int64_t out, int64_t in)
{
    ft_ref weight = ft__parameter(b, name, out, in);
    ft__as_weight(b, weight);
    return weight;
}

ft_ref ft__linear(ft_build *b, ft_at at, ft_ref x, int64_t out, ft_bias bias, ft_cut cut)
{
    if (b->status != FT_OK) return FT_NONE;
    int64_t in = ft__tensor_of(b, x)->cols;
    ft_format_was was = ft__format_open(b, at);
    ft_ref weight = ft__weight(b, "weight", out, in);
    ft_ref offset = bias == FT_BIAS ? ft__parameter(b, "bias", 1, out) : FT_NONE;
    ft_ref y = ft__linear_with(b, at, x, weight, out, offset, cut);
    ft__format_close(b, was);
    ft__module(b, 1);
    return ft__adapted(b, at, x, y, out, cut);
}

ft_ref ft__matmul(ft_build *b, ft_at at, ft_ref x, ft_ref y, int64_t batch, int64_t m, int64_t n, int64_t k,
                  const char *layout)
{
    if (b->status != FT_OK) return FT_NONE;
    if (b->autocast) {
        x = ft__cast(b, at, x, ft__flowing(b->math));
        y = ft__cast(b, at, y, ft__flowing(b->math));
    }
    ft_node node = ft__node_of(FT_DO_MATMUL, at);
    ft__node_in(&node, x);
    ft__node_in(&node, y);
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref out = ft__node_out(b, &node, batch * m, n, t.dtype, t.element_bytes);
    node.op = ft__gemm_kernel(ft__product_dtype(b, &t), batch, m, n, k, layout, false);
    node.op.name = "bmm";
    /* One row per product is a product with a vector: kernels of their own. */
    if (m == 1 && batch > 1) node.manner |= layout[1] == 't' ? FT_MANNER_VECTOR : FT_MANNER_VECTOR_ACROSS;
    ft__emit(b, &node);
    return out;
}

ft_ref ft__attention(ft_build *b, ft_at at, ft_ref q, ft_ref k, ft_ref v, const ft_attention_shape *s, double dropout)
{
    if (b->status != FT_OK) return FT_NONE;
    if (b->autocast) {
        q = ft__cast(b, at, q, ft__flowing(b->math));
        k = ft__cast(b, at, k, ft__flowing(b->math));
        v = ft__cast(b, at, v, ft__flowing(b->math));
    }
    ft_node n = ft__node_of(FT_DO_ATTENTION, at);
    ft__node_in(&n, q);
    ft__node_in(&n, k);
    ft__node_in(&n, v);
    ft_tensor t = *ft__tensor_of(b, q);
    int64_t v_dim = s->v_dim ? s->v_dim : s->head_dim;
    ft_ref y = ft__node_out(b, &n, s->batch * s->q_len, s->heads * v_dim, t.dtype, t.element_bytes);
    ft_ref statistics = b->training ? ft__node_out(b, &n, s->batch * s->heads, s->q_len, FT_FP32, 4) : FT_NONE;
    if (statistics != FT_NONE) b->g->tensors[statistics].trained = false;
    ft_dtype math = ft_dtype_bytes(t.dtype) > 2 ? t.dtype : ft__flowing(b->math);
    n.op = (ft_op){.kind = FT_OP_ATTENTION, .name = "attention", .dtype = math, .engine = FT_ENGINE_BARE};
    const ft_tensor *key = ft__tensor_of(b, k); /* a cache has a format of its own: a byte per element is fp8 */
    n.op.kv_dtype = key->element_bytes == 1 ? FT_FP8 : key->dtype;
    n.op.u.attention.batch = s->batch;
    n.op.u.attention.heads = s->heads;
    n.op.u.attention.kv_heads = s->kv_heads;
    n.op.u.attention.q_len = s->q_len;
    n.op.u.attention.kv_len = s->kv_len;
    n.op.u.attention.head_dim = s->head_dim;
    n.op.u.attention.v_dim = s->v_dim == s->head_dim ? 0 : s->v_dim;
    n.op.u.attention.window = s->window;
    n.op.u.attention.causal = s->causal;
    n.op.u.attention.library = s->library;
    if (s->packed > 0 && s->packed < s->q_len) {
        n.op.u.attention.batch = (s->batch * s->q_len + s->packed - 1) / s->packed;
        n.op.u.attention.q_len = n.op.u.attention.kv_len = s->packed;
    }
    if (s->masked) n.manner |= FT_MANNER_MASK;
    if (b->training && dropout > 0) n.manner |= FT_MANNER_DROPOUT; /* drawn inside the kernel, no mask is stored */
    ft__emit(b, &n);
    return y;
}
