/* state_space.c: Mamba-2 (Dao & Gu 2024): a product in, a short causal convolution, a recurrence over the state, a
 * gated norm, a product out.
 *
 * The recurrence in the two ways in which it is run. transformers without the mamba-ssm kernels (scan_eager.c) writes
 * the chunked algorithm out in fp32 broadcasts, with tensors of [tokens, chunk, heads, state]. The kernels of mamba-ssm
 * are a handful per layer and touch no such tensor: they stand for fused execution, engines and compiled graphs. */
#include "model/state_space.h"

#include "graph/emit.h"
#include "model/mixers.h"

/* -- the fused kernels --------------------------------------------------------------------------- */

/* causal_conv1d: convolution and activation in one pass over the tokens. */
static ft_ref conv_fused(ft_maker *m, const ft_scan *s, ft_ref x)
{
    ft_build *b = &m->b;
    bool cached = m->work->task == FT_DECODE || m->work->task == FT_PREFILL;
    if (cached) ft__cache(b, s->batch * s->conv_width, s->kernel, ft_dtype_bytes(b->stored));
    ft_node n = ft__node_of(FT_DO_SCAN, FT_AT(MIXER_CONV1D));
    ft__node_in(&n, x);
    ft__node_in(&n, ft__parameter(b, "conv1d.weight", s->conv_width, s->kernel));
    if (m->arch->conv_bias) ft__node_in(&n, ft__parameter(b, "conv1d.bias", 1, s->conv_width));
    ft_tensor t = *ft__tensor_of(b, x);
    ft_ref y = ft__node_out(b, &n, t.rows, t.cols, t.dtype, t.element_bytes);
    if (y == FT_NONE) return y;
    n.op = ft__pointwise_kernel(b->g, "silu", n.in, 1, &b->g->tensors[y]);
    n.op.u.elementwise.pattern = FT_PATTERN_CONTIGUOUS; /* the kernel is written for a slice of the projection */
    n.op.u.elementwise.ops_per_element = 2 * (double)s->kernel + 5;
    if (cached) n.op.u.elementwise.bytes += 2 * (double)(s->batch * s->conv_width * s->kernel) * t.element_bytes;
    n.manner |= FT_MANNER_CAUSAL_CONV;
    ft__emit(b, &n);
    return y;
}

ft_ref ft__looped(ft_build *b, ft_ref x, int64_t times)
{
    if (b->status != FT_OK || times < 2) return x;
    ft_node *n = &b->g->nodes[b->g->node_count - 1];
    n->count = (float)times;
    if (n->op.kind == FT_OP_GEMM && n->op.u.gemm.b % times == 0)
        n->op.u.gemm.b /= times; /* a step's products, each whole */
    else
        ft__op_share(&n->op, (double)times);
    return x;
}

ft_ref ft__each_step(ft_build *b, ft_ref x, int64_t times)
{
    const ft_tensor *t = ft__tensor_of(b, x);
    x = ft__slice(b, x, t->rows, t->cols);
    if (b->status == FT_OK && times > 1) b->g->nodes[b->g->node_count - 1].count = (float)times;
    return x;
}

/* A kernel of the chunked scan. Those that multiply are batched products on the matrix units; the others move bytes. */
ft_ref ft__scan_step(ft_maker *m, ft_at at, ft_op op, int64_t rows, int64_t cols, ft_dtype dtype, const ft_ref *in,
                     int count)
{
    ft_build *b = &m->b;
    ft_node n = ft__node_of(FT_DO_SCAN, at);
    for (int i = 0; i < count; i++) ft__node_in(&n, in[i]);
    ft_ref y = ft__node_out(b, &n, rows, cols, dtype, ft_dtype_bytes(dtype));
    n.op = op;
    if (op.kind == FT_OP_OTHER)
        for (int i = 0; i <= count; i++)
            n.op.u.other.bytes += ft__tensor_bytes(ft__tensor_of(b, i < count ? in[i] : y));
    ft__emit(b, &n);
    return y;
}

/* The five kernels of mamba_chunk_scan_combined: decays, each chunk's state, the walk over the chunks, the products
 * C B' of each chunk, and what each token sees of its chunk (half of it: none sees ahead) and of the state before. */
static ft_ref scan_fused(ft_maker *m, const ft_scan *s, ft_ref x, ft_ref key, ft_ref query, ft_ref dt)
{
    ft_build *b = &m->b;
    int64_t rows = s->batch * s->length, chunks = s->batch * s->chunks, n = s->state;
    int64_t chunk = s->chunk < s->length ? s->chunk : s->length;
    ft_ref a_log = ft__parameter(b, "A_log", 1, s->heads), bias = ft__parameter(b, "dt_bias", 1, s->heads);
    ft_ref skip = ft__parameter(b, "D", 1, s->heads);
    ft_op sum = ft__bytes_kernel("chunk_cumsum", b->stored, 0, (double)rows * (double)s->heads * 8);
    ft_op walk = ft__bytes_kernel("state_passing", b->stored, 0, 2 * (double)(chunks * s->inner) * (double)n);
    ft_op outer = ft__gemm_kernel(b->math, chunks * s->heads, s->head_dim, n, chunk, "nn", false);
    ft_op inner = ft__gemm_kernel(b->math, chunks * s->groups, chunk, chunk, n, "nt", false);
    ft_op seen = ft__gemm_kernel(b->math, chunks * s->heads, chunk, s->head_dim, n + (chunk + 1) / 2, "nn", false);
    ft_ref decay = ft__scan_step(m, FT_AT(MIXER_SCAN_CUMSUM), sum, rows, s->heads, FT_FP32, (ft_ref[]){dt, a_log, bias},
                                 3);
    ft_ref state = ft__scan_step(m, FT_AT(MIXER_SCAN_STATE), outer, chunks * s->inner, n, FT_FP32,
                                 (ft_ref[]){x, key, decay}, 3);
    state = ft__scan_step(m, FT_AT(MIXER_SCAN_PASSING), walk, chunks * s->inner, n, b->stored, (ft_ref[]){state, decay},
                          2);
    ft_ref pairs = ft__scan_step(m, FT_AT(MIXER_SCAN_PAIRS), inner, rows * s->groups, chunk, FT_FP32,
                                 (ft_ref[]){query, key}, 2);
    /* A node hands gradients to its first four inputs; decay and query get theirs through the kernels above. */
    return ft__scan_step(m, FT_AT(MIXER_SCAN_OUTPUT), seen, rows, s->inner, b->stored,
                         (ft_ref[]){x, pairs, state, skip, decay, query}, 6);
}

/* One token: the state is read, decayed, added to and written back by one kernel. */
static ft_ref update_fused(ft_maker *m, const ft_scan *s, ft_ref x, ft_ref key, ft_ref query, ft_ref dt)
{
    ft_build *b = &m->b;
    ft_ref a_log = ft__parameter(b, "A_log", 1, s->heads), bias = ft__parameter(b, "dt_bias", 1, s->heads);
    ft_ref skip = ft__parameter(b, "D", 1, s->heads);
    ft_ref state = ft__cache(b, s->batch * s->inner, s->state, ft_dtype_bytes(b->stored));
    ft_node n = ft__node_of(FT_DO_SCAN, FT_AT(MIXER_SCAN_UPDATE));
    ft_ref in[] = {state, x, key, query, dt, a_log, bias, skip};
    for (int i = 0; i < 8; i++) ft__node_in(&n, in[i]);
    ft_ref y = ft__node_out(b, &n, s->batch, s->inner, b->stored, ft_dtype_bytes(b->stored));
    if (y == FT_NONE) return y;
    double cells = (double)s->batch * (double)s->inner * (double)s->state;
    n.op = ft__pointwise_kernel(b->g, "state_update", n.in, 1, ft__tensor_of(b, state));
    n.op.u.elementwise.ops_per_element = 6;
    n.op.u.elementwise.bytes = 2 * cells * ft_dtype_bytes(b->stored);
    ft__emit(b, &n);
    return y;
}

/* -- a layer ------------------------------------------------------------------------------------- */

/* norm(y * silu(gate)), in fp32. */
static ft_ref gated_norm(ft_maker *m, const ft_scan *s, ft_ref y, ft_ref gate)
{
    ft_build *b = &m->b;
    if (m->stack->fused_scan || m->engine) {
        ft_op one = ft__row_kernel("rmsnorm", FT_PASS_FWD, ft__tensor_of(b, y)->rows, s->inner, b->stored);
        ft_ref out = ft__scan_step(m, FT_AT(MIXER_NORM), one, ft__tensor_of(b, y)->rows, s->inner, b->stored,
                                   (ft_ref[]){y, gate, ft__parameter(b, "norm.weight", 1, s->inner)}, 3);
        if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].traffic = 1.5F; /* the gate is read along */
        return out;
    }
    ft_dtype low = b->stored;
    gate = ft__cast(b, FT_AT(MIXER_NORM), gate, FT_FP32);
    ft_ref h = ft__cast(b, FT_AT(MIXER_NORM), y, FT_FP32);
    h = ft__mul(b, FT_AT(MIXER_NORM), h, ft__pointwise(b, FT_AT(MIXER_NORM), "silu", gate));
    ft_ref mean = ft__reduce(b, FT_AT(MIXER_NORM), "mean", ft__pointwise(b, FT_AT(MIXER_NORM), "powu", h));
    mean = ft__pointwise(b, FT_AT(MIXER_NORM), "rsqrt", ft__pointwise(b, FT_AT(MIXER_NORM), "addu", mean));
    h = ft__mul(b, FT_AT(MIXER_NORM), h, mean);
    h = ft__mul(b, FT_AT(MIXER_NORM), h, ft__parameter(b, "norm.weight", 1, s->inner));
    ft__module(b, 1);
    return ft__cast(b, FT_AT(MIXER_NORM), h, low);
}

/* Transposed for the convolution, which puts its border on both ends; what lies beyond the last token is cut off. */
static ft_ref conv_eager(ft_maker *m, const ft_scan *s, ft_ref x)
{
    ft_build *b = &m->b;
    int64_t rows = s->batch * s->conv_width, border = s->kernel - 1;
    if (m->work->task == FT_PREFILL) ft__scan_keep(b, rows, s->kernel, b->stored, x);
    x = ft__across(b, FT_AT(MIXER_CONV1D), ft__view(b, x, rows, s->length, true));
    ft_conv_shape shape = {.n = s->batch,
                           .c = s->conv_width,
                           .h = 1,
                           .w = s->length + 2 * border,
                           .k = s->conv_width,
                           .r = 1,
                           .s = s->kernel,
                           .stride = 1,
                           .groups = s->conv_width};
    ft_ref y = ft__conv(b, FT_AT(MIXER_CONV1D), x, &shape, m->arch->conv_bias ? FT_BIAS : FT_NO_BIAS);
    y = ft__slice(b, y, rows, s->length);
    y = ft__part_activation(m, FT_AT(MIXER_ACT), m->arch->design == FT_STATE_SPACE ? m->arch->activation : "silu", y);
    return ft__view(b, y, s->batch * s->length, s->conv_width, true);
}

/* One token: put behind the last ones in the cache, which moves up, and convolved with them. */
static ft_ref conv_once(ft_maker *m, const ft_scan *s, ft_ref x)
{
    ft_build *b = &m->b;
    int64_t rows = s->batch * s->conv_width;
    ft_ref cache = ft__cache(b, rows, s->kernel, ft_dtype_bytes(b->stored));
    ft_ref both[2] = {cache, ft__view(b, x, rows, 1, true)};
    ft_ref line = ft__cat(b, FT_AT(MIXER_CACHE), 2, both, rows, s->kernel + 1);
    ft__copy(b, FT_AT(MIXER_CACHE), ft__slice(b, line, rows, s->kernel), rows, s->kernel);
    ft_conv_shape shape = {.n = s->batch,
                           .c = s->conv_width,
                           .h = 1,
                           .w = s->kernel + 1,
                           .k = s->conv_width,
                           .r = 1,
                           .s = s->kernel,
                           .stride = 1,
                           .groups = s->conv_width};
    ft_ref y = ft__conv(b, FT_AT(MIXER_CONV1D), line, &shape, m->arch->conv_bias ? FT_BIAS : FT_NO_BIAS);
    y = ft__part_activation(m, FT_AT(MIXER_ACT), m->arch->design == FT_STATE_SPACE ? m->arch->activation : "silu",
                            ft__slice(b, y, rows, 1));
    return ft__view(b, y, s->batch, s->conv_width, false);
}

bool ft__scan_has_kernels(const ft_maker *m)
{
    bool compiled = ft__compiles(m->work);
    return m->stack->fused_scan || m->engine || compiled;
}

ft_ref ft__scan_conv(ft_maker *m, const ft_scan *s, ft_ref x)
{
    if (ft__scan_has_kernels(m)) return conv_fused(m, s, x);
    return m->work->task == FT_DECODE ? conv_once(m, s, x) : conv_eager(m, s, x);
}

/* A short convolution in fp32 that what it reads is added to: inkling. */
ft_ref ft__part_stream_conv(ft_maker *m, ft_ref x, int64_t width)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(MIXER_CONV1D);
    ft_dtype low = b->stored;
    int64_t border = m->arch->conv_kernel - 1, rows = m->batch * width, one = m->work->task == FT_DECODE;
    ft_ref wide = ft__cast(b, at, x, FT_FP32);
    ft_ref line = ft__across(b, at, ft__view(b, wide, rows, m->q_len, true));
    if (one) {
        ft_ref both[2] = {ft__cache(b, rows, border, 4), line};
        line = ft__cat(b, at, 2, both, rows, border + 1);
    } else if (m->work->task == FT_PREFILL) {
        ft__scan_keep(b, rows, border, FT_FP32, line);
    }
    ft_conv_shape shape = {.n = m->batch,
                           .c = width,
                           .h = 1,
                           .w = m->q_len + (one ? border : 2 * border),
                           .k = width,
                           .r = 1,
                           .s = border + 1,
                           .stride = 1,
                           .groups = width};
    ft_ref y = ft__slice(b, ft__conv(b, at, line, &shape, FT_NO_BIAS), rows, m->q_len);
    y = ft__add(b, at, ft__view(b, y, m->batch * m->q_len, width, true), wide);
    ft__module(b, 2);
    return ft__cast(b, at, y, low);
}

static ft_ref mixer(ft_maker *m, const ft_scan *s, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool one = m->work->task == FT_DECODE, hybrid = a->design != FT_STATE_SPACE;
    bool kernels = ft__scan_has_kernels(m), biased = hybrid ? a->ssm_bias : a->qkv_bias;
    ft_ref part[3], xbc[3];
    int64_t widths[3] = {s->inner, s->conv_width, s->heads};
    int64_t inside[3] = {s->inner, s->groups * s->state, s->groups * s->state};
    ft_ref h = ft__linear(b, FT_AT(MIXER_IN_PROJ), x, s->inner + s->conv_width + s->heads,
                          biased ? FT_BIAS : FT_NO_BIAS, FT_CUT_COLUMNS);
    ft__split(b, h, 3, widths, part);
    ft_ref conv = ft__scan_conv(m, s, part[1]);
    ft__split(b, conv, 3, inside, xbc);
    ft_ref (*scan)(ft_maker *, const ft_scan *, ft_ref, ft_ref, ft_ref,
                   ft_ref) = kernels ? (one ? update_fused : scan_fused) : (one ? ft__scan_once : ft__scan_eager);
    ft_ref y = scan(m, s, xbc[0], xbc[1], xbc[2], part[2]);
    if (a->ssm_norm_absent)
        y = ft__mul(b, FT_AT(MIXER_NORM), y, ft__pointwise(b, FT_AT(MIXER_NORM), "silu", part[0]));
    else
        y = gated_norm(m, s, y, part[0]);
    return ft__linear(b, FT_AT(MIXER_OUT_PROJ), y, a->hidden,
                      (hybrid ? a->ssm_bias : a->out_bias) ? FT_BIAS : FT_NO_BIAS, FT_CUT_ROWS);
}

static ft_scan sizes(const ft_maker *m, int64_t heads, int64_t head_dim)
{
    const ft_arch *a = m->arch;
    int64_t length = m->q_len, chunk = a->chunk > 0 ? a->chunk : 256, inner = heads * head_dim;
    return (ft_scan){.batch = m->batch,
                     .length = length,
                     .heads = heads,
                     .head_dim = head_dim,
                     .inner = inner,
                     .state = a->state,
                     .groups = a->groups,
                     .kernel = a->conv_kernel,
                     .chunk = chunk,
                     .chunks = (length + chunk - 1) / chunk,
                     .conv_width = inner + 2 * a->groups * a->state};
}

/* The written-out scan's largest tensor, before 64 bits wrap. */
static bool too_long(ft_maker *m, const ft_scan *s)
{
    double most = (double)s->batch * (double)(s->length + s->chunk) * (double)s->chunk * (double)s->heads;
    if (most * (double)(s->state > s->head_dim ? s->state : s->head_dim) <= 1e18) return false;
    ft__build_fail(&m->b, FT_E_RANGE, "%lld sequences of %lld tokens in chunks of %lld are too large for any machine",
                   (long long)s->batch, (long long)s->length, (long long)s->chunk);
    return true;
}

ft_ref ft__part_mamba2(ft_maker *m, ft_ref x)
{
    ft_scan s = sizes(m, m->arch->ssm_heads, m->arch->ssm_head_dim);
    ft__module(&m->b, 2);
    return too_long(m, &s) ? FT_NONE : mixer(m, &s, x);
}

void ft__make_state_space(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t length = m->q_len;
    ft_scan s = sizes(m, a->heads, a->head_dim);
    if (too_long(m, &s)) return;
    ft_dtype low = b->stored;
    ft_ref table = FT_NONE;
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref x = ft__embedding(b, FT_AT(EMBED), ft__input(b, m->batch, length, 8), a->vocab, a->hidden, &table);
    if (a->residual_fp32) x = ft__cast(b, FT_AT(RESIDUAL), x, FT_FP32);
    x = ft__block_close(b, x);
    x = ft__block_open(b, FT_BLOCK(LAYERS), a->layers, x);
    ft__module(b, 2);
    ft_ref h = ft__part_norm(m, FT_AT(NORM), ft__cast(b, FT_AT(NORM), x, low), FT_RMSNORM, false);
    x = ft__add(b, FT_AT(RESIDUAL), x, mixer(m, &s, h));
    x = ft__block_close(b, x);
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    x = ft__part_norm(m, FT_AT(NORM), ft__cast(b, FT_AT(NORM), x, low), FT_RMSNORM, false);
    if (a->lm_head) x = ft__part_head(m, x, a->tied ? table : FT_NONE);
    ft__block_close(b, x);
}
