/* seq2seq.c: bart and its kin (mbart, pegasus, marian, blenderbot, m2m_100, ...): two stacks with positions that are
 * learned or sinusoids, one table of words for both, norms behind each half (bart) or before it (pegasus), biases
 * everywhere. `seq` is the length of the target, and of the source unless `source_tokens` says another. T5's own ways are in encoder_decoder.c. */
#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"
#include "model/picture_size.h"
#include "model/relative.h"

typedef struct stack {
    ft_ref source; /* the encoder's result; FT_NONE in the encoder */
    ft_ref seen;   /* what images became, in their places among the words; FT_NONE: there are none */
    int64_t q_len, kv_len, source_len;
    int64_t streams; /* of q_len rows each: one, or more where a decoder predicts several tokens at once */
    bool decodes;
} stack;

static ft_ref norm(ft_maker *m, ft_at at, ft_ref x)
{
    return ft__part_norm(m, at, x, m->arch->norm, m->arch->norm_bias);
}

/* -- layers ------------------------------------------------------------------------------------ */

typedef struct span {
    ft_at q, k, v, o, attend;
    int64_t kv_len;
    bool causal, cross;
} span;

static bool generates(const ft_maker *m) { return m->work->task == FT_PREFILL || m->work->task == FT_DECODE; }

/* Keys or values: made of `over`, or of an earlier step and read from the cache. */
static ft_ref remembered(ft_maker *m, ft_at at, ft_ref over, const stack *s, const span *w)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = m->batch * w->kv_len * a->heads;
    double bytes = ft_dtype_bytes(m->work->kv_dtype);
    if (w->cross && m->work->task == FT_DECODE) {
        ft__parameter(b, "weight", a->hidden, a->hidden);
        if (a->qkv_bias) ft__parameter(b, "bias", 1, a->hidden);
        return ft__view(b, ft__cache(b, rows, a->head_dim, bytes), rows, a->head_dim, false);
    }
    ft_ref x = ft__linear(b, at, over, a->hidden, a->qkv_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_COLUMNS);
    int64_t fresh = m->batch * (w->cross ? w->kv_len : s->q_len) * a->heads;
    x = ft__view(b, x, fresh, a->head_dim, true);
    if (!generates(m) || !s->decodes) return x;
    if (!w->cross) return ft__part_remember(m, x, a->heads, a->head_dim);
    ft__cache(b, rows, a->head_dim, bytes);
    return ft__copy(b, FT_AT(CROSS_CACHE), x, rows, a->head_dim);
}

static ft_ref attention(ft_maker *m, ft_ref x, ft_ref over, const stack *s, const span *w)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft__module(b, 1);
    ft_ref q = ft__linear(b, w->q, x, a->hidden, a->qkv_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_COLUMNS);
    int64_t asks = s->q_len * s->streams;
    if (a->query_scale) q = ft__pointwise(b, FT_AT(ATTN_SCALE), "divu", q);
    q = ft__view(b, q, m->batch * asks * a->heads, a->head_dim, true);
    ft_ref k = remembered(m, w->k, over, s, w), v = remembered(m, w->v, over, s, w);
    ft_scores how = {.shape = {.batch = m->batch,
                               .heads = a->heads,
                               .kv_heads = a->heads,
                               .q_len = asks,
                               .kv_len = w->kv_len,
                               .head_dim = a->head_dim,
                               .causal = w->causal && s->q_len > 1},
                     .dropout = a->attention_dropout,
                     .scale = !a->query_scale,
                     .eager_only = a->no_sdpa,
                     .mask = w->causal && s->q_len > 1,
                     .k_dense = generates(m) && s->decodes,
                     .v_dense = generates(m) && s->decodes};
    ft_ref y = ft__part_attend(m, w->attend, q, k, v, &how);
    return ft__linear(b, w->o, y, a->hidden, a->out_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_ROWS);
}

/* x and what a half made of it; bart norms the sum. */
static ft_ref sum(ft_maker *m, ft_at at, ft_at normed, ft_ref x, ft_ref y)
{
    x = ft__add(&m->b, at, x, ft__dropout(&m->b, at, y, m->arch->residual_dropout));
    return m->arch->place == FT_POST_NORM ? norm(m, normed, x) : x;
}

static ft_ref layer(ft_maker *m, const stack *s, ft_ref x)
{
    const ft_arch *a = m->arch;
    bool before = a->place == FT_PRE_NORM;
    span own = {FT_AT(ATTN_Q_PROJ), FT_AT(ATTN_K_PROJ),  FT_AT(ATTN_V_PROJ),  FT_AT(ATTN_O_PROJ),
                FT_AT(ATTN_ATTEND), .kv_len = s->kv_len, .causal = s->decodes};
    ft__module(&m->b, 2);
    ft_ref h = before ? norm(m, FT_AT(ATTN_NORM), x) : x;
    ft_ref y = s->streams > 1 ? ft__part_ahead_attention(m, h) : attention(m, h, h, s, &own);
    x = sum(m, FT_AT(ATTN_RESIDUAL), FT_AT(ATTN_NORM), x, y);
    if (s->decodes) {
        span cross = {FT_AT(CROSS_Q_PROJ), FT_AT(CROSS_K_PROJ),     FT_AT(CROSS_V_PROJ), FT_AT(CROSS_O_PROJ),
                      FT_AT(CROSS_ATTEND), .kv_len = s->source_len, .cross = true};
        h = before ? norm(m, FT_AT(CROSS_NORM), x) : x;
        x = sum(m, FT_AT(CROSS_RESIDUAL), FT_AT(CROSS_NORM), x, attention(m, h, s->source, s, &cross));
    }
    h = before ? norm(m, FT_AT(MLP_NORM), x) : x;
    return sum(m, FT_AT(MLP_RESIDUAL), FT_AT(MLP_NORM), x, ft__part_fc(m, h));
}

/* -- stacks ------------------------------------------------------------------------------------ */

static ft_ref embed(ft_maker *m, const stack *s, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref tokens = ft__input(b, m->batch, s->q_len, 8), positions = FT_NONE;
    ft_ref x = ft__embedding(b, FT_AT(EMBED_TOKENS), tokens, a->vocab, a->hidden, table);
    /* transformers multiplies by one as well, and asks before its decoder whether anything is padded. */
    bool written = ft__part_spelled_out(m) && s->streams == 1;
    if (written || (a->embed_scale != 0 && a->embed_scale != 1)) x = ft__pointwise(b, FT_AT(EMBED_SCALE), "mulu", x);
    if (written && s->decodes && !generates(m)) {
        enum { ASKED = 4 };
        ft__no_grad_kernels(b, FT_AT(MASK), "compare", FT_NONE, m->batch, s->q_len, 1, ASKED);
        ft__sync(b, FT_AT(MASK));
    }
    if (s->seen != FT_NONE) {
        ft__no_grad_kernels(b, FT_AT(EMBED_TOKENS), "compare", FT_NONE, m->batch * s->q_len, a->hidden, 1, 2);
        x = ft__scatter(b, FT_AT(EMBED_TOKENS), x, s->seen, 0, false, false);
    }
    bool frozen = b->frozen;
    if (a->position == FT_SINUSOIDAL) b->frozen = true;
    int64_t rows = a->position_rows > 0 ? a->position_rows : a->max_position;
    enum { COUNTED = 9, NUMBERED = 2 };
    ft_ref places = ft__no_grad_kernels(b, FT_AT(EMBED_POSITIONS), "copy", FT_NONE, 1, s->q_len, 8,
                                        a->counted_positions ? COUNTED : NUMBERED);
    ft_ref p = a->position == FT_LEARNED_POSITION || a->position_rows > 0
                   ? ft__embedding(b, FT_AT(EMBED_POSITIONS), places, rows, a->hidden, &positions)
                   : ft__buffer(b, s->q_len, a->hidden, ft_dtype_bytes(b->stored));
    b->frozen = frozen;
    x = ft__add(b, FT_AT(EMBED_POSITIONS), x, p);
    if (s->streams > 1) x = ft__part_ahead_open(m, x, &positions);
    if (a->embed_norm) x = norm(m, FT_AT(EMBED_NORM), x);
    m->mask = FT_NONE;
    if (m->work->attention == FT_EAGER && s->decodes)
        m->mask = ft__no_grad_kernels(b, FT_AT(MASK), "copy", FT_NONE, m->batch * s->q_len, s->kv_len,
                                      ft_dtype_bytes(b->stored), 2);
    ft__module(b, 2);
    return ft__dropout(b, FT_AT(EMBED_DROPOUT), x, a->embed_dropout);
}

static ft_ref encode_with(ft_maker *m, ft_ref seen, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t read = ft__encoder_tokens(m);
    stack s = {.source = FT_NONE, .seen = seen, .q_len = read, .kv_len = read, .streams = 1};
    ft__block_open(b, FT_BLOCK(ENCODER_EMBED), 1, FT_NONE);
    ft_ref x = ft__block_close(b, embed(m, &s, table));
    x = ft__block_open(b, FT_BLOCK(ENCODER_LAYERS), a->layers, x);
    x = ft__block_close(b, layer(m, &s, x));
    if (!a->final_norm) return x;
    x = ft__block_open(b, FT_BLOCK(ENCODER_NORM), 1, x);
    return ft__block_close(b, norm(m, FT_AT(ENCODER_NORM), x));
}

static ft_ref encode(ft_maker *m)
{
    ft_ref table = FT_NONE;
    return encode_with(m, FT_NONE, &table);
}

void ft__make_seq2seq(ft_maker *m)
{
    enum { MOST_AHEAD = 1024 };
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref table = FT_NONE, source = FT_NONE;
    int64_t rows = a->position_rows > 0 ? a->position_rows : a->max_position;
    int64_t longest = ft__encoder_tokens(m) > m->work->seq ? ft__encoder_tokens(m) : m->work->seq;
    if (a->position == FT_LEARNED_POSITION && longest > rows) {
        ft__build_fail(b, FT_E_RANGE, "a sequence of %lld tokens: the model's learned positions end at %lld",
                       (long long)longest, (long long)rows);
        return;
    }
    if (a->ahead > MOST_AHEAD) {
        ft__build_fail(b, FT_E_RANGE, "%lld tokens ahead at once: %d are beyond any model", (long long)a->ahead,
                       MOST_AHEAD);
        return;
    }
    if (a->decoder_layers < 1) {
        ft__build_fail(b, FT_E_RANGE, "%s: \"decoder_layers\" must be a whole number from 1 on", a->model_type);
        return;
    }
    const ft_workload *w = m->work;
    ft_ref seen = a->tower_layers > 0 ? ft__part_tower(m) : FT_NONE;
    if (w->task == FT_DECODE)
        ft__encoder_at_rest(m, encode, (double)a->vocab * (double)a->hidden);
    else
        source = encode_with(m, seen, &table);
    if (seen != FT_NONE) { /* which stand in the source alone */
        int64_t pictures = w->images * ft__picture_tokens(a, w->image_height, w->image_width);
        m->q_len = m->kv_len = w->seq > pictures ? w->seq - pictures : 1;
    }
    if (m->work->task == FT_PREFILL) m->q_len = m->kv_len = 1; /* the word that starts the answer */
    stack s = {.source = source,
               .seen = FT_NONE,
               .q_len = m->q_len,
               .kv_len = m->kv_len,
               .source_len = ft__encoder_tokens(m),
               .streams = 1 + a->ahead,
               .decodes = true};
    ft__block_open(b, FT_BLOCK(DECODER_EMBED), 1, FT_NONE);
    ft__part_unused_weights(m);
    ft_ref x = ft__block_close(b, embed(m, &s, &table));
    x = ft__block_open(b, FT_BLOCK(DECODER_LAYERS), a->decoder_layers, x);
    x = ft__block_close(b, layer(m, &s, x));
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    if (a->final_norm) x = norm(m, FT_AT(NORM), x);
    if (a->ahead > 0) x = ft__part_ahead_close(m, x);
    if (a->lm_head) x = ft__part_head(m, x, a->tied ? table : FT_NONE);
    if (a->logits_offset && !b->training) /* a buffer of zeros is added, which makes the logits twice */
        x = ft__add(b, FT_AT(LM_HEAD), x, ft__buffer(b, 1, a->vocab, ft_dtype_bytes(b->stored)));
    ft__answered(b, source);
    ft__block_close(b, x);
}
