/* attend.c: softmax(q k' / sqrt(d)) v in the three ways in which it is launched.
 *
 * eager: the score matrix exists. Transposed views are copied before a batched product can read them, grouped keys and
 * values repeated for every query head; scale, mask, softmax and dropout are a pass over the scores each. sdpa: what
 * PyTorch's scaled_dot_product_attention picks; flash: FlashAttention. */
#include <math.h>

#include "graph/emit.h"
#include "graph/operator.h"
#include "graph/pointwise.h"
#include "model/parts.h"
#include "model/pytorch.h"
#include "model/relative.h"

/* Marks what was appended since `first` as the score matrix and what hangs on it. */
static void mark_core(ft_build *b, int32_t first)
{
    for (int32_t i = first; i < b->g->node_count && b->status == FT_OK; i++) b->g->nodes[i].core = true;
}

/* Python keeps what its variables name: these tensors live until here whoever read them last. */
void ft__part_held(ft_maker *m, int count, const ft_ref *x)
{
    ft_execution how = m->work->execution;
    if (m->b.training || how == FT_RUN_COMPILE || how == FT_RUN_CUDA_GRAPH) return;
    ft_node n = ft__node_of(FT_DO_OTHER, FT_AT(ATTN_VARIABLES));
    for (int i = 0; i < count; i++) ft__node_in(&n, x[i]);
    ft__emit(&m->b, &n);
}

static ft_ref repeated(ft_build *b, ft_ref x, int64_t rows, int64_t cols)
{
    return ft__copy(b, FT_AT(ATTN_REPEAT_KV), x, rows, cols);
}

/* Scores of a model with linear biases. */
static ft_ref biased(ft_maker *m, ft_ref scores, const ft_attention_shape *a)
{
    ft_build *b = &m->b;
    ft_ref slopes = ft__input(b, a->heads, a->kv_len, 4), hidden = ft__input(b, a->batch * a->q_len, a->kv_len, 1);
    if (slopes != FT_NONE) b->g->tensors[slopes].dtype = FT_FP32;
    scores = ft__add(b, FT_AT(ATTN_ALIBI), scores, slopes); /* fp32 from here on */
    const ft_tensor *t = ft__tensor_of(b, scores);
    scores = ft__copy(b, FT_AT(ATTN_MASK), scores, t->rows, t->cols);
    return ft__pointwise_in_place(b, FT_AT(ATTN_MASK), "masked_fill", scores, hidden);
}

/* A learned score per head is appended, the row's maximum taken off, and the column dropped after the softmax. */
static ft_ref with_sinks(ft_maker *m, ft_ref scores, const ft_attention_shape *a)
{
    ft_build *b = &m->b;
    ft_ref named = scores;
    int64_t rows = a->batch * a->heads * a->q_len;
    ft_ref sink = ft__expand(b, ft__parameter(b, "attn.sinks", 1, a->heads), rows, 1), both[2] = {scores, sink};
    scores = ft__cat(b, FT_AT(ATTN_SINKS), 2, both, rows, a->kv_len + 1);
    ft_node max = ft__node_of(FT_DO_GATHER, FT_AT(ATTN_SINKS));
    ft__node_in(&max, scores);
    ft_tensor t = *ft__tensor_of(b, scores);
    ft_ref most = ft__node_out(b, &max, rows, 1, t.dtype, t.element_bytes);
    max.op = ft__row_kernel("argmax", FT_PASS_FWD, rows, t.cols, t.dtype);
    ft__emit(b, &max);
    scores = ft__pointwise2(b, FT_AT(ATTN_SINKS), "sub", scores, most);
    ft_ref less = scores;
    scores = ft__row(b, FT_AT(ATTN_SOFTMAX), "softmax", scores);
    /* A warp holds a row padded to a power of two: one column more than that is twice the registers. */
    if (b->status == FT_OK && a->kv_len <= 1024) b->g->nodes[b->g->node_count - 1].manner |= FT_MANNER_ONE_OVER;
    if (m->arch->sinks_apart) ft__part_held(m, 2, (ft_ref[]){named, less});
    return ft__slice(b, scores, rows, a->kv_len);
}

/* Granite's: the softmax knows nothing of the sink. What it made is scaled by sigmoid(logsumexp(scores) - sink), in
 * fp32, which is the same; logsumexp takes the maximum off, in a tensor of its own, and adds exponentials up. */
static ft_ref sink_scale(ft_maker *m, ft_ref scores, const ft_attention_shape *a)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_SINKS);
    int64_t rows = a->batch * a->heads * a->q_len;
    ft_tensor t = *ft__tensor_of(b, scores);
    ft_node max = ft__node_of(FT_DO_FILL, at);
    ft__node_in(&max, scores);
    ft_ref most = ft__node_out(b, &max, rows, 1, t.dtype, t.element_bytes);
    max.op = ft__row_kernel("sum_rows", FT_PASS_FWD, rows, t.cols, t.dtype);
    ft__emit(b, &max);
    bool training = b->training;
    b->training = false;
    ft_ref less = ft__pointwise2(b, at, "sub", scores, most);
    less = ft__pointwise_in_place(b, at, "exp", less, FT_NONE);
    b->training = training;
    ft_reduction over = {"logsumexp", "sum_rows", rows, 1, rows, a->kv_len};
    ft_ref sum = ft__reduce_over(b, at, scores, &over);
    ft__part_held(m, 1, &less);
    sum = ft__pointwise2(b, at, "sub", sum, ft__expand(b, ft__parameter(b, "attn.sinks", 1, a->heads), rows, 1));
    return ft__pointwise(b, at, "sigmoid", ft__cast(b, at, sum, FT_FP32));
}

/* Megatron's kernel works on so many rows of scores at once (FusedScaleMaskSoftmax.is_kernel_available). */
static bool takes_heads(const ft_maker *m, const ft_attention_shape *a)
{
    int64_t of = (int64_t)m->stack->softmax_heads, ranks = m->work->head_ranks > 1 ? m->work->head_ranks : 1;
    return of < 2 || a->batch * (a->heads / ranks) % of == 0;
}

/* Without it (forward_torch_softmax): in fp32, scaled by the layer's number, masked in place, and back. */
static ft_ref softmax_of_torch(ft_maker *m, ft_ref scores, ft_dtype low, const ft_attention_shape *a)
{
    ft_build *b = &m->b;
    scores = ft__pointwise(b, FT_AT(ATTN_SCALE), "mulu", ft__cast(b, FT_AT(ATTN_SCALE), scores, FT_FP32));
    if (a->causal) scores = ft__pointwise2(b, FT_AT(ATTN_MASK), "where", scores, ft__input(b, a->q_len, a->kv_len, 1));
    return ft__cast(b, FT_AT(ATTN_SOFTMAX), ft__row(b, FT_AT(ATTN_SOFTMAX), "softmax", scores), low);
}

/* `scale`: what the result is multiplied by, where anything. */
static ft_ref probabilities(ft_maker *m, ft_ref scores, ft_dtype low, const ft_scores *s, ft_ref *scale)
{
    ft_build *b = &m->b;
    if (m->stack->fused_softmax && !takes_heads(m, &s->shape)) return softmax_of_torch(m, scores, low, &s->shape);
    if (m->stack->fused_softmax) { /* scale and mask in the same kernel, which reads the visible half and writes all */
        scores = ft__row(b, FT_AT(ATTN_SOFTMAX), "softmax", scores);
        if (s->shape.causal && b->status == FT_OK) b->g->nodes[b->g->node_count - 1].traffic = 0.75F;
        return scores;
    }
    if (s->scale && !s->baddbmm) scores = ft__pointwise(b, FT_AT(ATTN_SCALE), "mulu", scores);
    if (s->softcap > 0) {
        scores = ft__pointwise(b, FT_AT(ATTN_SOFTCAP), "divu", scores);
        scores = ft__pointwise(b, FT_AT(ATTN_SOFTCAP), "tanh", scores);
        scores = ft__pointwise(b, FT_AT(ATTN_SOFTCAP), "mulu", scores);
    }
    if (s->alibi && !s->baddbmm) {
        scores = biased(m, scores, &s->shape);
        ft_ref probability = ft__cast(b, FT_AT(ATTN_SOFTMAX), ft__row(b, FT_AT(ATTN_SOFTMAX), "softmax", scores), low);
        ft__part_held(m, 1, &scores);
        return probability;
    }
    if (s->hides) { /* gpt_neo: its own mask first */
        ft_ref seen = ft__input(b, s->shape.q_len, s->shape.kv_len, 1);
        scores = ft__pointwise2(b, FT_AT(ATTN_MASK), "where", scores, seen);
    }
    if (s->mask && m->mask != FT_NONE) scores = ft__add(b, FT_AT(ATTN_MASK), scores, m->mask);
    if (s->floors)
        scores = ft__pointwise2(b, FT_AT(ATTN_MASK), "maximum", scores, ft__buffer(b, 1, 1, ft_dtype_bytes(b->stored)));
    if (s->sinks && s->sink_scales) *scale = sink_scale(m, scores, &s->shape);
    if (s->sinks && !s->sink_scales) return with_sinks(m, scores, &s->shape);
    ft_ref probability = ft__softmax(b, FT_AT(ATTN_SOFTMAX), scores, s->softmax_fp32 && !s->scores_fp32);
    if (s->scores_fp32) return ft__cast(b, FT_AT(ATTN_SOFTMAX), probability, low);
    ft__part_held(m, 1, &scores);
    return probability;
}

static ft_ref eager(ft_maker *m, ft_at at, ft_ref q, ft_ref k, ft_ref v, const ft_scores *s)
{
    ft_build *b = &m->b;
    const ft_attention_shape *a = &s->shape;
    int64_t pairs = a->batch * a->heads, v_dim = a->v_dim ? a->v_dim : a->head_dim;
    ft_ref named[6] = {q, k, v, FT_NONE, FT_NONE, FT_NONE};
    q = ft__view(b, q, pairs * a->q_len, a->head_dim, !s->q_dense && a->q_len > 1);
    k = ft__view(b, k, a->batch * a->kv_heads * a->kv_len, a->head_dim, !s->k_dense);
    v = ft__view(b, v, a->batch * a->kv_heads * a->kv_len, v_dim, !s->v_dense);
    if (a->kv_heads < a->heads) {
        k = repeated(b, k, pairs * a->kv_len, a->head_dim);
        v = repeated(b, v, pairs * a->kv_len, v_dim);
    }
    if (s->scores_fp32) {
        q = ft__cast(b, at, q, FT_FP32);
        k = ft__cast(b, at, k, FT_FP32);
        named[3] = q;
        named[4] = k;
    }
    ft_dtype low = ft__tensor_of(b, v)->dtype;
    /* Heads of one sequence alone are a batch of matrices as they lie: matmul's reshape is a view of them. */
    bool apart = a->batch > 1 || !ft__part_spelled_out(m);
    if (!m->stack->fused_softmax && apart) { /* Megatron's products read the views as they are */
        q = ft__contiguous(b, at, q);
        if (s->baddbmm)
            k = ft__contiguous(b, at, k);
        else if (ft__tensor_of(b, k)->strided)
            k = ft__transpose(b, at, k, pairs * a->head_dim, a->kv_len);
    }
    int32_t first = b->g->node_count;
    if (s->baddbmm) { /* its result begins as a copy of the slopes, which the call makes itself */
        ft__copy(b, FT_AT(ATTN_ALIBI), ft__input(b, pairs, a->kv_len, ft_dtype_bytes(low)), pairs * a->q_len,
                 a->kv_len);
        if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].inside = true;
    }
    ft_ref scores = ft__matmul(b, FT_AT(ATTN_SCORES), q, k, pairs, a->q_len, a->kv_len, a->head_dim, "nt");
    ft_ref raw = scores, scale = FT_NONE;
    scores = probabilities(m, scores, low, s, &scale);
    if (s->baddbmm) named[5] = raw; /* bloom: the variable of the scores stays while others are made of it */
    scores = ft__dropout(b, FT_AT(ATTN_DROPOUT), scores, s->dropout);
    mark_core(b, first);
    m->probabilities = scores;
    if (!m->stack->fused_softmax && apart) v = ft__contiguous(b, at, v);
    ft_ref y = ft__matmul(b, FT_AT(ATTN_VALUES), scores, v, pairs, a->q_len, v_dim, a->kv_len, "nn");
    /* Rows of an odd length cannot be read by vectors: the library falls back to its kernels of single elements. */
    if (s->sinks && !s->sink_scales && a->q_len > 1 && b->status == FT_OK)
        b->g->nodes[b->g->node_count - 1].manner |= FT_MANNER_ODD_ROWS;
    if (scale != FT_NONE) y = ft__mul(b, FT_AT(ATTN_SINKS), y, ft__cast(b, FT_AT(ATTN_SINKS), scale, low));
    y = ft__view(b, y, a->batch * a->q_len, a->heads * v_dim, a->q_len > 1 && a->heads > 1);
    y = ft__contiguous(b, FT_AT(ATTN_MERGE), y);
    ft__part_held(m, 6, named);
    return y;
}

/* sdpa's plain implementation: everything in fp32, both operands scaled, and a check for rows that are masked out
 * altogether. It is what remains when no fused kernel takes the operands. */
static ft_ref plain(ft_maker *m, ft_at at, ft_ref q, ft_ref k, ft_ref v, const ft_scores *s)
{
    ft_build *b = &m->b;
    const ft_attention_shape *a = &s->shape;
    int64_t pairs = a->batch * a->heads, rows = pairs * a->q_len, kv_rows = a->batch * a->kv_heads * a->kv_len;
    ft_dtype low = ft__tensor_of(b, q)->dtype;
    bool autocast = b->autocast;
    b->autocast = false;
    q = ft__cast(b, at, ft__view(b, q, rows, a->head_dim, a->q_len > 1), FT_FP32);
    k = ft__cast(b, at, ft__view(b, k, kv_rows, a->head_dim, a->kv_heads > 1), FT_FP32);
    v = ft__cast(b, at, ft__view(b, v, kv_rows, a->head_dim, a->kv_heads > 1), FT_FP32);
    q = ft__contiguous(b, at, ft__pointwise(b, at, "mulu", q));
    k = ft__transpose(b, at, ft__pointwise(b, at, "mulu", k), pairs * a->head_dim, a->kv_len);
    int32_t first = b->g->node_count;
    ft_ref scores = ft__matmul(b, FT_AT(ATTN_SCORES), q, k, pairs, a->q_len, a->kv_len, a->head_dim, "nt");
    if (s->mask) {
        ft_ref mask = ft__input(b, a->batch * a->q_len, a->kv_len, ft_dtype_bytes(low));
        scores = ft__pointwise_in_place(b, FT_AT(ATTN_MASK), "add", scores, mask);
    }
    /* To autograd the check and the choice are part of the softmax: they stand before it, of the same sizes. */
    ft_ref chosen = ft__no_grad_kernels(b, FT_AT(ATTN_SOFTMAX), "where", scores, rows, a->kv_len, 4, 1);
    ft_ref lost = ft__no_grad_kernels(b, FT_AT(ATTN_SOFTMAX), "isneginf", scores, rows, a->kv_len, 1, 1);
    bool training = b->training;
    b->training = false;
    ft__reduce(b, FT_AT(ATTN_SOFTMAX), "all", lost);
    ft__part_held(m, 1, &chosen);
    b->training = training;
    ft_ref probability = ft__row(b, FT_AT(ATTN_SOFTMAX), "softmax", scores);
    ft__no_grad_kernels(b, FT_AT(ATTN_SOFTMAX), ft__cast_name(low), probability, rows, a->kv_len, ft_dtype_bytes(low),
                        1); /* for nobody */
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].op.dtype = FT_FP32;
    probability = ft__dropout(b, FT_AT(ATTN_DROPOUT), probability, s->dropout);
    mark_core(b, first);
    v = ft__copy(b, at, v, pairs * a->kv_len, a->head_dim);
    ft_ref y = ft__matmul(b, FT_AT(ATTN_VALUES), probability, v, pairs, a->q_len, a->head_dim, a->kv_len, "nn");
    y = ft__cast(b, at, y, low);
    b->autocast = autocast;
    y = ft__view(b, y, a->batch * a->q_len, a->heads * a->head_dim, a->q_len > 1);
    return ft__contiguous(b, FT_AT(ATTN_MERGE), y);
}

/* sdpa's result has the order of its queries: where those stand head by head, heads are brought together by a copy. */
static ft_ref merged(ft_build *b, ft_ref y, const ft_scores *s)
{
    const ft_attention_shape *a = &s->shape;
    if (!s->merge || a->q_len == 1) return y;
    y = ft__view(b, y, a->batch * a->q_len, a->heads * (a->v_dim ? a->v_dim : a->head_dim), true);
    return ft__contiguous(b, FT_AT(ATTN_MERGE), y);
}

/* sdpa with a mask: true and false become zero and minus infinity at every call, which autograd keeps; keys and
 * values are repeated for grouped queries, and the kernel computes all pairs, hidden or not. */
static ft_ref masked(ft_maker *m, ft_at at, ft_ref q, ft_ref k, ft_ref v, const ft_scores *s,
                     const ft_attention_shape *a)
{
    ft_build *b = &m->b;
    ft_attention_shape shape = *a;
    int64_t v_dim = a->v_dim ? a->v_dim : a->head_dim, keys = a->batch * a->heads * a->kv_len;
    q = ft__view(b, q, a->batch * a->heads * a->q_len, a->head_dim, !s->q_dense);
    k = ft__view(b, k, a->batch * a->kv_heads * a->kv_len, a->head_dim, !s->k_dense);
    v = ft__view(b, v, a->batch * a->kv_heads * a->kv_len, v_dim, !s->v_dense);
    if (a->kv_heads > 1 && a->kv_heads < a->heads) { /* a single head is seen by all through a view */
        k = repeated(b, k, keys, a->head_dim);
        v = repeated(b, v, keys, v_dim);
    }
    ft_ref added = FT_NONE;
    if (!s->float_mask) {
        const int64_t rows = s->mask_of_keys ? a->batch : a->batch * a->q_len;
        const double bytes = ft_dtype_bytes(b->stored);
        ft__no_grad_kernels(b, FT_AT(ATTN_MASK), "fill", FT_NONE, 1, 1, bytes, 2);
        added = ft__no_grad_kernels(b, FT_AT(ATTN_MASK), "where", FT_NONE, rows, a->kv_len, bytes, 1);
    }
    if (a->kv_heads > 1) shape.kv_heads = a->heads;
    shape.causal = false;
    if (s->mask_learns && b->training) shape.library = FT_LIBRARY_XFORMERS; /* the one that gives a mask's gradient */
    ft_ref y = ft__attention(b, at, q, k, v, &shape, s->dropout);
    if (b->status == FT_OK && s->mask_learns) ft__node_in(&b->g->nodes[b->g->node_count - 1], s->learned_mask);
    ft_execution how = m->work->execution; /* a compiler makes what is added of the mask again */
    if (b->status == FT_OK && added != FT_NONE && how != FT_RUN_COMPILE && how != FT_RUN_CUDA_GRAPH)
        ft__node_in(&b->g->nodes[b->g->node_count - 1], added);
    if (b->status == FT_OK && a->q_len > 1)
        b->g->nodes[b->g->node_count - 1].manner |= s->mask_of_keys ? FT_MANNER_MASK_OF_KEYS : FT_MANNER_MASK_ADDED;
    return merged(b, y, s);
}

static ft_attention_library library_of(const ft_maker *m)
{
    if (m->engine) return FT_LIBRARY_OPEN;
    if (m->work->attention == FT_FLASH1 && m->stack->triton_flash1)
        return (ft_attention_library)FT__LIBRARY_FLASH1_TRITON;
    if (m->stack->engine_attention && m->work->attention == FT_SDPA)
        return (ft_attention_library)FT__LIBRARY_ENGINE_OPEN;
    if (m->stack->engine_attention && m->work->attention == FT_FLASH)
        return (ft_attention_library)FT__LIBRARY_ENGINE_FLASH;
    return ft__attention_library(m->work->attention);
}

/* Layers whose tokens lie in one order and a fused kernel that wants another: what it reads is copied, so often. Of one
 * sequence both orders are the same: then what lies by itself, as rotary embedding leaves it, needs one copy less. */
static ft_ref in_order(ft_maker *m, ft_at at, ft_ref x, bool apart)
{
    const ft_tensor t = *ft__tensor_of(&m->b, x);
    for (int i = apart ? 1 : 0; i < (int)m->stack->order_copies; i++) x = ft__copy(&m->b, at, x, t.rows, t.cols);
    return x;
}

/* Traced, transformers makes a mask even where nothing is hidden: "query >= 0" for each pair, one number along the keys
 * (masking_utils.py, bidirectional_mask_function). Its last stride is 0, which no fused kernel takes (sdp_utils_cpp.h,
 * check_last_dim_stride_equals_1): sdpa is taken apart. cuDNN takes a window's and one of numbers for each pair, the
 * memory-efficient kernel one that learns. A model with a twin that passes none is the twin where no stack is named. */
static bool traced_with_mask(const ft_maker *m, const ft_scores *s)
{
    const bool twin = m->arch->twin_unmasked, other = m->work->causal_by_name && twin;
    bool library = (m->work->task == FT_TRAIN || (m->work->stack && twin)) && m->stack->passes_masks && !other;
    bool has = (library && !m->arch->never_masks && !s->maskless) || s->mask;
    bool windowed = s->shape.window > 0 && s->shape.window < s->shape.kv_len, of_pairs = !s->mask_of_keys;
    bool real = windowed || (s->float_mask && of_pairs && (s->shape.masked || !m->b.training));
    return m->work->execution == FT_RUN_COMPILE && !m->engine && s->shape.q_len > 1 && has && !real && !s->shape.causal;
}

static bool repeats_keys(const ft_maker *m, const ft_attention_shape *a)
{
    if (a->kv_heads >= a->heads) return false;
    return (m->stack->repeats_keys && m->work->task == FT_TRAIN) || ft__sdpa_copies_groups(m->work);
}

/* What the framework asks the kernel for, which may be more than the layer needs. */
static ft_attention_shape shape_asked(const ft_maker *m, const ft_attention_shape *a)
{
    ft_attention_shape shape = *a;
    const bool sdpa = m->work->attention == FT_SDPA;
    const ft_execution how = m->work->execution;
    /* The package of that name, in eager models as in Megatron's: published long-context runs on H100 (NeMo, 16k to 1M
     * tokens) go at its rate, 310 TFLOP/s forward and backward. Serving engines have newer kernels. */
    shape.library = library_of(m);
    /* sdpa has no window: beyond it a mask says which keys count, and all of them are computed. */
    if (shape.window > 0 && (sdpa || shape.window >= shape.kv_len)) {
        shape.masked |= shape.window < shape.kv_len;
        shape.window = 0;
    }
    /* A model of transformers that is being traced cannot ask whether its mask hides anything: it is always passed. A
     * layer by itself gets the answer from outside; frameworks' own layers say that they are causal. */
    bool compiled = how == FT_RUN_COMPILE || how == FT_RUN_CUDA_GRAPH;
    bool passes = m->stack->passes_masks && !m->work->causal_by_name;
    if (compiled && passes && m->work->scope != FT_SCOPE_LAYERS && shape.causal && sdpa) shape.masked = true;
    /* Where a batch is padded the mask hides something, and is passed from eager code, too. */
    if (m->work->padded && m->stack->passes_masks && a->q_len > 1) shape.masked = true;
    return shape;
}

/* One kernel over queries, keys and values that are copied first where it cannot read them as they lie. */
static ft_ref fused(ft_maker *m, ft_at at, ft_ref q, ft_ref k, ft_ref v, const ft_scores *s, ft_attention_shape *shape)
{
    ft_build *b = &m->b;
    const ft_attention_shape *a = &s->shape;
    int64_t v_dim = a->v_dim ? a->v_dim : a->head_dim;
    q = ft__view(b, q, a->batch * a->heads * a->q_len, a->head_dim, !s->q_dense);
    k = ft__view(b, k, a->batch * a->kv_heads * a->kv_len, a->head_dim, !s->k_dense);
    v = ft__view(b, v, a->batch * a->kv_heads * a->kv_len, v_dim, !s->v_dense);
    if (repeats_keys(m, a)) {
        k = repeated(b, k, a->batch * a->heads * a->kv_len, a->head_dim);
        v = repeated(b, v, a->batch * a->heads * a->kv_len, v_dim);
        shape->kv_heads = a->heads;
    }
    bool reorders = m->stack->order_copies > 0 && m->work->task == FT_TRAIN, several = a->batch > 1;
    if (reorders) {
        bool rotated = m->arch->rotary_dim > 0;
        q = in_order(m, at, q, rotated && !several);
        k = in_order(m, at, k, rotated && !several);
        v = in_order(m, at, v, false);
    }
    ft_ref y = ft__attention(b, at, q, k, v, shape, s->dropout);
    if (reorders && several && b->status == FT_OK) {
        const ft_tensor t = *ft__tensor_of(b, y);
        return ft__copy(b, FT_AT(ATTN_MERGE), y, t.rows, t.cols);
    }
    return m->work->attention == FT_SDPA ? merged(b, y, s) : y;
}

ft_ref ft__part_attend(ft_maker *m, ft_at at, ft_ref q, ft_ref k, ft_ref v, const ft_scores *s)
{
    enum { WIDEST = 256 };
    const ft_attention_shape *a = &s->shape;
    const bool sdpa = m->work->attention == FT_SDPA;
    if (m->work->attention == FT_EAGER || (s->eager_only && sdpa)) return eager(m, at, q, k, v, s);
    bool broadcast = s->broadcast && !repeats_keys(m, a);
    if (sdpa && (broadcast || traced_with_mask(m, s))) return plain(m, at, q, k, v, s);
    ft_attention_shape shape = shape_asked(m, a);
    /* An earlier version of PyTorch may pick another kernel, or have none. */
    ft_sdpa_way way = ft__sdpa_pick(m->work, a, shape.masked, s->dropout, &shape.library);
    if (way == FT_SDPA_WRITTEN_OUT) return plain(m, at, q, k, v, s);
    /* Neither cuDNN nor FlashAttention takes wider heads: sdpa falls back to the memory-efficient kernels. */
    if (a->head_dim > WIDEST && sdpa && !m->engine && a->q_len > 1) shape.library = FT_LIBRARY_XFORMERS;
    if (shape.masked && sdpa && !m->engine) return masked(m, at, q, k, v, s, &shape);
    return fused(m, at, q, k, v, s, &shape);
}
