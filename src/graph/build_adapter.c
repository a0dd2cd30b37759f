/* build_adapter.c: frozen weights with something trained beside them, and frozen weights of few bits.
 *
 * y = x W + s (x A) B. What runs for it differs by software (graph/adapter.h), and so does how a packed weight is
 * unpacked: bitsandbytes' kernel unpacks before every product that reads the weight, going forward and going back, and
 * the unpacked copy dies with the product; GPTQ's layers unpack by plain operators that autograd sees, so that going
 * back finds the copy of the forward pass, which lives until then. */

#include "graph/adapter.h"

#include <string.h>

#include "graph/adapter_constants.h"
#include "graph/emit.h"
#include "graph/pointwise.h"

/* Layers of a graph that was read, by the end of their name, as diffusers has it (models/attention_processor.py). */
static unsigned by_name(const char *name)
{
    static const struct {
        const char *end;
        unsigned target;
    } known[] = {
        {"to_q", FT_TARGET_Q},       {"to_k", FT_TARGET_K},       {"to_v", FT_TARGET_V},
        {"to_out.0", FT_TARGET_O},   {"add_q_proj", FT_TARGET_Q}, {"add_k_proj", FT_TARGET_K},
        {"add_v_proj", FT_TARGET_V}, {"to_add_out", FT_TARGET_O}, {"net.0.proj", FT_TARGET_GATE | FT_TARGET_UP},
        {"net.2", FT_TARGET_DOWN},   {"proj_mlp", FT_TARGET_UP}};
    const size_t length = name ? strlen(name) : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t end = strlen(known[i].end);
        const bool fits = length == end || (length > end && name[length - end - 1] == '.');
        if (fits && !strcmp(name + length - end, known[i].end)) return known[i].target;
    }
    return FT_TARGET_OTHER;
}

/* What the product at a site is to adapters. */
static unsigned target_of(ft_at at)
{
    switch (at ? at->site : FT_SITE_NONE) {
    case FT_SITE_ATTN_Q:
    case FT_SITE_CROSS_Q:
    case FT_SITE_CROSS_Q_PROJ:
    case FT_SITE_ATTN_Q_PROJ: return FT_TARGET_Q;
    case FT_SITE_ATTN_K:
    case FT_SITE_CROSS_K:
    case FT_SITE_CROSS_K_PROJ:
    case FT_SITE_ATTN_K_PROJ: return FT_TARGET_K;
    case FT_SITE_ATTN_V:
    case FT_SITE_CROSS_V:
    case FT_SITE_CROSS_V_PROJ:
    case FT_SITE_ATTN_V_PROJ: return FT_TARGET_V;
    case FT_SITE_ATTN_QKV_PROJ: return FT_TARGET_Q | FT_TARGET_K | FT_TARGET_V;
    case FT_SITE_ATTN_O:
    case FT_SITE_CROSS_O:
    case FT_SITE_CROSS_O_PROJ:
    case FT_SITE_ATTN_O_PROJ: return FT_TARGET_O;
    case FT_SITE_MLP_WI_0:
    case FT_SITE_MLP_GATE_PROJ: return FT_TARGET_GATE;
    case FT_SITE_MLP_FC1:
    case FT_SITE_MLP_WI:
    case FT_SITE_MLP_WI_1:
    case FT_SITE_MLP_UP_PROJ: return FT_TARGET_UP;
    case FT_SITE_MLP_GATE_UP_PROJ: return FT_TARGET_GATE | FT_TARGET_UP;
    case FT_SITE_MLP_FC2:
    case FT_SITE_MLP_WO:
    case FT_SITE_MLP_DOWN_PROJ: return FT_TARGET_DOWN;
    case FT_SITE_ATTN_Q_A_PROJ: return FT_TARGET_Q_A;
    case FT_SITE_ATTN_Q_B_PROJ: return FT_TARGET_Q_B;
    case FT_SITE_ATTN_KV_A_PROJ: return FT_TARGET_KV_A;
    case FT_SITE_ATTN_KV_B_PROJ: return FT_TARGET_KV_B;
    case FT_SITE_MIXER_IN_PROJ: return FT_TARGET_MIXER_IN;
    case FT_SITE_MIXER_OUT_PROJ: return FT_TARGET_MIXER_OUT;
    default: return by_name(at ? at->name : NULL);
    }
}

/* -- packed weights ---------------------------------------------------------------------------- */

bool ft__packed(const ft_build *b, ft_ref weight, ft_dtype flow)
{
    double wide = ft_dtype_bytes(flow) < 2 ? ft_dtype_bytes(flow) : 2;
    return ft__tensor_of(b, weight)->element_bytes < wide;
}

static ft_op over_weights(ft_dtype flow, double numel, double bytes, bool spread)
{
    ft_op op = {.kind = FT_OP_ELEMENTWISE, .name = "mul", .dtype = flow, .kv_dtype = flow};
    op.u.elementwise.numel = numel > 1 ? (int64_t)numel : 1;
    op.u.elementwise.inputs = 1;
    op.u.elementwise.bytes = numel * bytes;
    if (spread) op.u.elementwise.pattern = FT_PATTERN_SPREAD;
    return op;
}

static void before_unpacked(ft_build *b, ft_at at, ft_ref weight, const ft_op *op, double kernels)
{
    ft_node n = ft__node_of(FT_DO_OTHER, at);
    ft__node_in(&n, weight);
    n.op = *op;
    n.count = (float)kernels;
    ft__emit(b, &n);
}

/* bitsandbytes' kernel: a byte's two weights by a tree of sixteen values, times the block's scale, after scales that
 * are packed themselves (QLoRA's double quantisation) are unpacked, and their mean is added. Of 8 bits: a cast. */
void ft__unpack(ft_build *b, ft_at at, ft_ref weight)
{
    if (b->status != FT_OK) return;
    ft_tensor w = *ft__tensor_of(b, weight);
    ft_node n = ft__node_of(FT_DO_OTHER, at);
    ft__node_in(&n, weight);
    if (w.element_bytes < 1) {
        ft_op scales = over_weights(FT_FP32, ft__tensor_numel(&w) / FT_K_ADAPTER_PAIR_GROUP,
                                    FT_K_ADAPTER_PAIR_SCALE_BYTES, false);
        before_unpacked(b, at, weight, &scales, FT_K_ADAPTER_PAIR_SCALES);
        n.op = over_weights(FT_BF16, ft__tensor_numel(&w) / 2, FT_K_ADAPTER_PAIR_BYTES, true);
    } else {
        n.op = (ft_op){.kind = FT_OP_QUANTIZE, .name = "dequantize", .dtype = FT_FP8, .kv_dtype = FT_BF16};
        n.op.u.quantize.rows = w.rows;
        n.op.u.quantize.cols = w.cols;
    }
    n.workspace = (float)(2 * ft__tensor_numel(&w));
    ft__emit(b, &n);
}

/* What Python does around it that no kernel shows: as many operators' time. */
void ft__packed_call(ft_build *b, ft_at at)
{
    ft_node n = ft__node_of(FT_DO_OTHER, at);
    n.count = (float)FT_K_ADAPTER_PAIR_CALLS;
    ft__emit(b, &n);
}

ft_ref ft__unpacked(ft_build *b, ft_at at, ft_ref weight, ft_dtype flow)
{
    if (b->status != FT_OK) return FT_NONE;
    ft_tensor w = *ft__tensor_of(b, weight);
    double numel = ft__tensor_numel(&w);
    ft_op zeros = over_weights(flow, numel / FT_K_ADAPTER_UNPACK_GROUP, FT_K_ADAPTER_UNPACK_PLAIN_BYTES, false);
    ft_op plain = over_weights(flow, numel, FT_K_ADAPTER_UNPACK_PLAIN_BYTES, false);
    before_unpacked(b, at, weight, &zeros, FT_K_ADAPTER_UNPACK_SMALL);
    before_unpacked(b, at, weight, &plain, FT_K_ADAPTER_UNPACK_PLAIN);
    ft_node n = ft__node_of(FT_DO_OTHER, at);
    ft__node_in(&n, weight);
    ft_ref out = ft__node_out(b, &n, w.rows, w.cols, flow, ft_dtype_bytes(flow));
    if (out == FT_NONE) return out;
    b->g->tensors[out].trained = false;
    n.op = over_weights(flow, numel, FT_K_ADAPTER_UNPACK_SPREAD_BYTES, true);
    n.count = (float)FT_K_ADAPTER_UNPACK_SPREAD;
    n.workspace = (float)(FT_K_ADAPTER_UNPACK_WORKSPACE * numel);
    ft__emit(b, &n);
    return out;
}

/* -- adapters ---------------------------------------------------------------------------------- */

static ft_ref trained(ft_build *b, const char *name, int64_t rows, int64_t cols, ft_dtype format)
{
    ft_dtype stored = b->stored;
    b->frozen = false;
    b->stored = format;
    ft_ref made = ft__parameter(b, name, rows, cols);
    b->frozen = true;
    b->stored = stored;
    return made;
}

static ft_ref identity(ft_build *b, ft_at at, int64_t rows, ft_dtype dtype)
{
    ft_node n = ft__node_of(FT_DO_OTHER, at);
    ft_ref out = ft__node_out(b, &n, rows, rows, dtype, ft_dtype_bytes(dtype));
    if (out == FT_NONE) return out;
    n.op = over_weights(dtype, (double)rows * (double)rows, ft_dtype_bytes(dtype), false);
    ft__emit(b, &n);
    return out;
}

/* DoRA (Liu et al. 2024) as peft runs it (tuners/lora/dora.py): the norms of the rows of W + s B A, then
 * (m / norm - 1) y + m / norm s (x A) B. Norms are taken for constants. B A is what the adapter makes of an identity as
 * wide as the layer's input, turned: the sum with W, in the adapter's format, reads one of its operands across. */
static ft_ref with_magnitude(ft_build *b, ft_at at, ft_ref y, ft_ref delta, ft_ref down, ft_ref up, ft_ref magnitude)
{
    ft_tensor a = *ft__tensor_of(b, down), w = *ft__tensor_of(b, up);
    ft_dtype low = ft__tensor_of(b, y)->dtype;
    bool training = b->training, cast = b->adapters.form == FT_ADAPTER_AUTOCAST;
    b->training = false;
    ft_ref eye = identity(b, at, a.cols, a.dtype);
    if (cast) eye = ft__cast(b, at, eye, low);
    ft_ref across = ft__view(b, ft__detach(b, down), a.cols, a.rows, true);
    ft_ref small = ft__matmul(b, at, eye, across, 1, a.cols, a.rows, a.cols, "nn");
    ft_ref wide = ft__view(b, ft__detach(b, up), w.cols, w.rows, true);
    ft_ref whole = ft__matmul(b, at, small, wide, 1, a.cols, w.rows, a.rows, "nn");
    whole = ft__pointwise(b, at, "mulu", whole);
    if (ft_dtype_bytes(a.dtype) > ft_dtype_bytes(low)) { /* W is raised to the adapter's format */
        ft_op widened = over_weights(a.dtype, (double)w.rows * (double)a.cols,
                                     ft_dtype_bytes(a.dtype) + ft_dtype_bytes(low), false);
        before_unpacked(b, at, whole, &widened, 1);
    }
    /* Reading B A across takes what turning it does, and the rest of the sum what any sum does. */
    ft_op turned = ft__row_kernel("transpose_copy", FT_PASS_FWD, w.rows, a.cols, low);
    before_unpacked(b, at, whole, &turned, 1);
    whole = ft__view(b, whole, w.rows, a.cols, true);
    ft_node n = ft__node_of(FT_DO_OTHER, at);
    ft__node_in(&n, whole);
    ft_ref sum = ft__node_out(b, &n, w.rows, a.cols, a.dtype, ft_dtype_bytes(a.dtype));
    if (sum == FT_NONE) return sum;
    n.op = over_weights(a.dtype, (double)w.rows * (double)a.cols, 2 * ft_dtype_bytes(a.dtype), false);
    ft__emit(b, &n);
    ft_ref norms = ft__reduce(b, at, "sum", sum);
    b->training = training;
    norms = ft__view(b, norms, 1, w.rows, false);
    ft_ref length = ft__pointwise2(b, at, "div", magnitude, norms);
    ft_ref rest = ft__pointwise(b, at, "subu", length);
    y = ft__mul(b, at, y, rest);
    return ft__add(b, at, y, ft__mul(b, at, delta, length));
}

static ft_ref with_adapter(ft_build *b, ft_at at, ft_ref x, ft_ref y, int64_t out, ft_cut cut)
{
    const ft_adapters *how = &b->adapters;
    int64_t in = ft__tensor_of(b, x)->cols;
    ft_dtype low = ft__tensor_of(b, y)->dtype;
    bool model = how->form == FT_ADAPTER_MODEL, cast = how->form == FT_ADAPTER_AUTOCAST && !b->autocast;
    bool wide = b->autocast && b->stored == FT_FP32;
    ft_dtype kept = model ? b->stored : FT_FP32, math = b->math;
    ft_ref down = trained(b, "lora_A.weight", b->lora_rank, in, kept);
    ft_ref up = trained(b, "lora_B.weight", out, b->lora_rank, kept);
    ft_ref magnitude = how->magnitude ? trained(b, "lora_magnitude", 1, out, kept) : FT_NONE;
    if (!wide && !model && !(how->form == FT_ADAPTER_AUTOCAST && how->narrow_inputs))
        x = ft__cast(b, at, x, FT_FP32); /* as its weights are */
    x = ft__dropout(b, at, x, how->dropout);
    if (model && ft_dtype_bytes(math) < 2) b->math = ft__flowing(math); /* recipes of 8 bits leave small ones alone */
    if (how->copies_base) y = ft__copy(b, at, y, ft__tensor_of(b, y)->rows, out);
    ft_ref a = down, c = up;
    if (cast) {
        x = ft__cast(b, at, x, low);
        a = ft__cast(b, at, down, low);
        c = ft__cast(b, at, up, low);
    }
    ft_ref small = ft__linear_with(b, at, x, a, b->lora_rank, FT_NONE, FT_WHOLE);
    ft_cut as = cut == FT_CUT_COLUMNS ? cut : FT_WHOLE; /* its columns are the layer's */
    ft_ref delta = ft__linear_with(b, at, small, c, out, FT_NONE, as);
    b->math = math;
    ft__module(b, how->dropout > 0 ? 4 : 3);
    if (!how->scaled_in_product) delta = ft__pointwise(b, at, "mulu", delta);
    ft_ref sum = magnitude == FT_NONE ? ft__add(b, at, y, delta) : with_magnitude(b, at, y, delta, down, up, magnitude);
    return ft__cast(b, at, sum, low);
}

ft_ref ft__adapted(ft_build *b, ft_at at, ft_ref x, ft_ref y, int64_t out, ft_cut cut)
{
    if (b->status != FT_OK || b->lora_rank < 1 || b->block < 0) return y;
    if (!(target_of(at) & b->adapters.targets)) return y;
    bool layer = b->g->blocks[b->block].kind == FT_BLOCK_LAYERS; /* which may be the only one of its kind */
    return b->repeat > 1 || layer ? with_adapter(b, at, x, y, out, cut) : y;
}
