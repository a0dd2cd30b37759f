/* speech.c: whisper (Radford et al. 2022): two convolutions over a spectrogram, an encoder, and a decoder that attends
 * to it. Half a minute of sound is max_source frames whatever is said; `seq` counts the decoder's tokens.
 *
 * The encoder's stream stays as the convolutions left it, channels before frames: each norm copies it into order first,
 * and each residual sum reads one operand across. */
#include "graph/emit.h"
#include "model/latent.h"
#include "model/relative.h"

/* -- strides ----------------------------------------------------------------------------------- */

/* A carry comes in contiguous; this one is a permuted view. */
static ft_ref across(ft_build *b, ft_ref x)
{
    if (b->status == FT_OK && x != FT_NONE) b->g->tensors[x].strided = b->g->tensors[x].permuted = true;
    return x;
}

static ft_ref norm(ft_maker *m, ft_at at, ft_ref x)
{
    ft_build *b = &m->b;
    ft_tensor t = *ft__tensor_of(b, x);
    if (t.strided) {
        ft__no_grad_kernels(b, at, "copy", x, t.rows, t.cols, t.element_bytes, 1);
        if (b->status == FT_OK)
            b->g->nodes[b->g->node_count - 1].op = ft__row_kernel("transpose_copy", FT_PASS_FWD, t.rows, t.cols,
                                                                  t.dtype);
    }
    return ft__part_norm(m, at, x, m->arch->norm, m->arch->norm_bias);
}

static ft_ref residual(ft_maker *m, ft_at at, ft_ref x, ft_ref y)
{
    return ft__add(&m->b, at, x, ft__dropout(&m->b, at, y, m->arch->residual_dropout));
}

/* -- attention --------------------------------------------------------------------------------- */

typedef struct span {
    ft_at q, k, v, o, attend, merge;
    int64_t q_len, kv_len;
    bool causal, cross;
} span;

/* [batch, len, heads, dim] -> [batch, heads, len, dim], copied into that order. */
static ft_ref by_heads(ft_maker *m, ft_at at, ft_ref x, int64_t len)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = m->batch * len * a->heads;
    x = ft__view(b, x, rows, a->head_dim, false);
    return ft__contiguous(b, at, ft__view(b, x, rows, a->head_dim, len > 1));
}

static ft_ref kept(ft_maker *m, ft_ref x, const span *s)
{
    const ft_arch *a = m->arch;
    bool generates = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    if (!generates) return x;
    if (!s->cross) return s->causal ? ft__part_remember(m, x, a->heads, a->head_dim) : x;
    ft__cache(&m->b, m->batch * s->kv_len * a->heads, a->head_dim, ft_dtype_bytes(m->work->kv_dtype));
    return ft__copy(&m->b, FT_AT(CROSS_CACHE), x, m->batch * s->kv_len * a->heads, a->head_dim);
}

/* Keys and values of the sound: projected once, then read from the cache. */
static ft_ref remembered(ft_maker *m, const span *s, bool bias)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = m->batch * s->kv_len * a->heads;
    ft__parameter(b, "weight", a->hidden, a->hidden);
    if (bias) ft__parameter(b, "bias", 1, a->hidden);
    return ft__view(b, ft__cache(b, rows, a->head_dim, ft_dtype_bytes(m->work->kv_dtype)), rows, a->head_dim, false);
}

static ft_ref attention(ft_maker *m, ft_ref x, ft_ref over, const span *s)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t fresh = s->cross ? s->kv_len : s->q_len;
    ft_bias bias = a->qkv_bias ? FT_BIAS : FT_NO_BIAS, key = a->key_bias ? FT_BIAS : FT_NO_BIAS;
    ft__module(b, 1);
    ft_ref q = ft__linear(b, s->q, x, a->hidden, bias, FT_CUT_COLUMNS), k, v;
    q = by_heads(m, s->q, ft__pointwise(b, s->q, "mulu", q), s->q_len);
    if (s->cross && m->work->task == FT_DECODE) {
        k = remembered(m, s, key == FT_BIAS);
        v = remembered(m, s, bias == FT_BIAS);
    } else {
        k = by_heads(m, s->k, ft__linear(b, s->k, over, a->hidden, key, FT_CUT_COLUMNS), fresh);
        v = by_heads(m, s->v, ft__linear(b, s->v, over, a->hidden, bias, FT_CUT_COLUMNS), fresh);
        k = kept(m, k, s);
        v = kept(m, v, s);
    }
    ft_scores how = {.shape = {.batch = m->batch,
                               .heads = a->heads,
                               .kv_heads = a->heads,
                               .q_len = s->q_len,
                               .kv_len = s->kv_len,
                               .head_dim = a->head_dim,
                               .causal = s->causal && s->q_len > 1},
                     .dropout = a->attention_dropout,
                     .scale = true, /* by one: the queries are scaled already */
                     .mask = s->causal && s->q_len > 1,
                     .q_dense = true,
                     .k_dense = true,
                     .v_dense = true};
    ft_ref y = ft__part_attend(m, s->attend, q, k, v, &how);
    if (m->work->attention == FT_SDPA && s->q_len > 1) { /* the result lies as the queries do */
        y = ft__view(b, y, m->batch * s->q_len, a->hidden, true);
        y = ft__contiguous(b, s->merge, y);
    }
    return ft__linear(b, s->o, y, a->hidden, a->out_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_ROWS);
}

/* -- the encoder ------------------------------------------------------------------------------- */

/* A filter of three frames; the frames it hangs over count as padding. */
static ft_ref frames(ft_maker *m, ft_at at, ft_ref x, int64_t in, int64_t length, int64_t stride)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_conv_shape shape = {
        .n = m->batch, .c = in, .h = 1, .w = length + 2, .k = a->hidden, .r = 1, .s = 3, .stride = stride, .groups = 1};
    x = ft__conv(b, at, x, &shape, FT_NO_BIAS);
    x = ft__pointwise_in_place(b, at, "add", x, ft__parameter(b, "conv.bias", a->hidden, 1));
    return ft__pointwise(b, at, "gelu", x);
}

static ft_ref encode(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t length = a->max_source;
    ft__block_open(b, FT_BLOCK(ENCODER_EMBED), 1, FT_NONE);
    ft_ref x = ft__input(b, m->batch * a->mel_bins, 2 * length, ft_dtype_bytes(b->stored));
    x = frames(m, FT_AT(CONV1), x, a->mel_bins, 2 * length, 1);
    x = frames(m, FT_AT(CONV2), x, a->hidden, 2 * length, 2);
    x = ft__view(b, x, m->batch * length, a->hidden, true);
    bool frozen = b->frozen; /* sinusoids: never trained */
    b->frozen = true;
    ft_ref places = ft__no_grad_kernels(b, FT_AT(EMBED_POSITIONS), "fill", FT_NONE, 1, length, 8, 1), table = FT_NONE;
    ft_ref positions = ft__embedding(b, FT_AT(EMBED_POSITIONS), places, length, a->hidden, &table);
    b->frozen = frozen;
    x = ft__add(b, FT_AT(EMBED_POSITIONS), x, positions);
    x = ft__block_close(b, ft__dropout(b, FT_AT(EMBED_DROPOUT), x, a->embed_dropout));
    x = across(b, ft__block_open(b, FT_BLOCK(ENCODER_LAYERS), a->layers, x));
    span own = {FT_AT(ATTN_Q_PROJ), FT_AT(ATTN_K_PROJ), FT_AT(ATTN_V_PROJ), FT_AT(ATTN_O_PROJ),
                FT_AT(ATTN_ATTEND), FT_AT(ATTN_MERGE),  .q_len = length,    .kv_len = length};
    ft__module(b, 2);
    ft_ref h = norm(m, FT_AT(ATTN_NORM), x);
    x = residual(m, FT_AT(ATTN_RESIDUAL), x, attention(m, h, h, &own));
    x = residual(m, FT_AT(MLP_RESIDUAL), x, ft__part_fc(m, norm(m, FT_AT(MLP_NORM), x)));
    x = ft__block_close(b, x);
    x = across(b, ft__block_open(b, FT_BLOCK(ENCODER_NORM), 1, x));
    return ft__block_close(b, norm(m, FT_AT(ENCODER_NORM), x));
}

/* -- the decoder ------------------------------------------------------------------------------- */

static ft_ref embed(ft_maker *m, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref tokens = ft__input(b, m->batch, m->q_len, 8), positions = FT_NONE;
    ft_ref x = ft__embedding(b, FT_AT(EMBED_TOKENS), tokens, a->vocab, a->hidden, table);
    if (a->embed_scale != 0 && a->embed_scale != 1) x = ft__pointwise(b, FT_AT(EMBED_SCALE), "mulu", x);
    ft_ref places = ft__no_grad_kernels(b, FT_AT(EMBED_POSITIONS), "copy", FT_NONE, m->batch, m->q_len, 8, 3);
    x = ft__add(b, FT_AT(EMBED_POSITIONS), x,
                ft__embedding(b, FT_AT(EMBED_POSITIONS), places, a->max_target, a->hidden, &positions));
    ft__no_grad_kernels(b, FT_AT(MASK), "copy", FT_NONE, m->batch, m->q_len, 8,
                        9); /* are several texts packed into one? */
    if (m->q_len > 1) ft__sync(b, FT_AT(MASK));
    m->mask = FT_NONE;
    if (m->work->attention == FT_EAGER)
        m->mask = ft__no_grad_kernels(b, FT_AT(MASK), "copy", FT_NONE, m->batch * m->q_len, m->kv_len,
                                      ft_dtype_bytes(b->stored), 2);
    ft__module(b, 2);
    return ft__dropout(b, FT_AT(EMBED_DROPOUT), x, a->embed_dropout);
}

static ft_ref decoder_layer(ft_maker *m, ft_ref x, ft_ref source)
{
    ft_build *b = &m->b;
    span own = {FT_AT(ATTN_Q_PROJ), FT_AT(ATTN_K_PROJ), FT_AT(ATTN_V_PROJ),  FT_AT(ATTN_O_PROJ), FT_AT(ATTN_ATTEND),
                FT_AT(ATTN_MERGE),  .q_len = m->q_len,  .kv_len = m->kv_len, .causal = true};
    span cross = {FT_AT(CROSS_Q_PROJ), FT_AT(CROSS_K_PROJ),           FT_AT(CROSS_V_PROJ),
                  FT_AT(CROSS_O_PROJ), FT_AT(CROSS_ATTEND),           FT_AT(CROSS_MERGE),
                  .q_len = m->q_len,   .kv_len = m->arch->max_source, .cross = true};
    ft__module(b, 2);
    ft_ref h = norm(m, FT_AT(ATTN_NORM), x);
    x = residual(m, FT_AT(ATTN_RESIDUAL), x, attention(m, h, h, &own));
    h = norm(m, FT_AT(CROSS_NORM), x);
    x = residual(m, FT_AT(CROSS_RESIDUAL), x, attention(m, h, source, &cross));
    return residual(m, FT_AT(MLP_RESIDUAL), x, ft__part_fc(m, norm(m, FT_AT(MLP_NORM), x)));
}

void ft__make_speech(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref table = FT_NONE;
    if (m->q_len > a->max_target || m->kv_len > a->max_target + 1) {
        ft__build_fail(b, FT_E_RANGE, "a text of %lld tokens: the decoder's positions end at %lld",
                       (long long)m->work->seq, (long long)a->max_target);
        return;
    }
    ft_ref source = FT_NONE;
    if (m->work->task == FT_DECODE)
        ft__encoder_at_rest(m, encode, 0);
    else
        source = encode(m);
    ft__block_open(b, FT_BLOCK(DECODER_EMBED), 1, FT_NONE);
    ft_ref x = ft__block_close(b, embed(m, &table));
    x = ft__block_open(b, FT_BLOCK(DECODER_LAYERS), a->decoder_layers, x);
    x = ft__block_close(b, decoder_layer(m, x, source));
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    x = norm(m, FT_AT(NORM), x);
    if (a->lm_head) x = ft__part_head(m, x, a->tied ? table : FT_NONE);
    ft__answered(b, source);
    ft__block_close(b, x);
}
