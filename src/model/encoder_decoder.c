/* encoder_decoder.c: t5 and switch_transformers: two stacks of pre-norm layers, the second of which also attends to
 * what the first made of the source. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

typedef struct stack {
    ft_ref bias, mask;    /* of self-attention */
    ft_ref source, zeros; /* cross-attention: the encoder's result, its bias; FT_NONE in the encoder */
    int64_t q_len, kv_len, source_len;
    bool decodes;
} stack;

/* -- layers ------------------------------------------------------------------------------------ */

static ft_ref residual(ft_maker *m, ft_at at, ft_ref x, ft_ref y)
{
    y = ft__dropout(&m->b, at, y, m->arch->residual_dropout);
    if (ft__part_spelled_out(m)) ft__module(&m->b, 1); /* the dropout's */
    return ft__add(&m->b, at, x, y);
}

static ft_ref feed_forward(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref h = ft__linear(b, a->gated ? FT_AT(MLP_WI_0) : FT_AT(MLP_WI), x, a->ffn, FT_NO_BIAS, FT_CUT_COLUMNS);
    h = ft__part_activation(m, FT_AT(MLP_ACT), a->activation, h);
    if (a->gated)
        h = ft__mul(b, FT_AT(MLP_ACT), h, ft__linear(b, FT_AT(MLP_WI_1), x, a->ffn, FT_NO_BIAS, FT_CUT_COLUMNS));
    h = ft__dropout(b, FT_AT(MLP_ACT_DROPOUT), h, a->activation_dropout);
    if (ft__part_spelled_out(m)) ft__module(b, 1);
    h = ft__cast(b, FT_AT(MLP_WO), h, b->stored); /* to its weights' format, which autocast takes back */
    ft__module(b, 2);
    return ft__linear(b, FT_AT(MLP_WO), h, a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
}

/* By distance, from a table that is learned; of what looks at the source there is none, and zeros stand for it. */
static void biases(ft_maker *m, stack *s)
{
    ft_build *b = &m->b;
    s->bias = ft__relative_bias(m, FT_AT(ATTN_BIAS), s->q_len, s->kv_len, !s->decodes);
    if (s->decodes)
        s->zeros = ft__no_grad_kernels(b, FT_AT(CROSS_BIAS), "fill", FT_NONE, m->arch->heads * s->q_len, s->source_len,
                                       ft_dtype_bytes(b->stored), 1);
}

static ft_ref layer(ft_maker *m, const stack *s, ft_ref x, bool sparse)
{
    ft_build *b = &m->b;
    bool loops = m->arch->experts > 0; /* switch_transformers keeps keys and values even while it trains */
    stack own_biases = *s;
    if (m->arch->bias_each) {
        biases(m, &own_biases);
        s = &own_biases;
    }
    ft_relative own = {FT_AT(ATTN_Q),
                       FT_AT(ATTN_K),
                       FT_AT(ATTN_V),
                       FT_AT(ATTN_O),
                       FT_AT(ATTN_ATTEND),
                       .q_len = s->q_len,
                       .kv_len = s->kv_len,
                       .bias = s->bias,
                       .mask = s->mask,
                       .causal = s->decodes,
                       .cached = s->decodes && loops};
    ft__module(b, 2);
    ft_ref h = ft__relative_norm(m, FT_AT(ATTN_NORM), x);
    x = residual(m, FT_AT(ATTN_RESIDUAL), x, ft__relative_attention(m, h, h, &own));
    if (s->decodes) {
        ft_relative cross = {FT_AT(CROSS_Q),      FT_AT(CROSS_K),    FT_AT(CROSS_V),          FT_AT(CROSS_O),
                             FT_AT(CROSS_ATTEND), .q_len = s->q_len, .kv_len = s->source_len, .bias = s->zeros,
                             .mask = FT_NONE,     .cross = true,     .cached = loops};
        h = ft__relative_norm(m, FT_AT(CROSS_NORM), x);
        x = residual(m, FT_AT(CROSS_RESIDUAL), x, ft__relative_attention(m, h, s->source, &cross));
        ft__module(b, 1);
    }
    h = ft__relative_norm(m, FT_AT(MLP_NORM), x);
    return residual(m, FT_AT(MLP_RESIDUAL), x, sparse ? ft__expert_loop(m, h) : feed_forward(m, h));
}

/* Every so many layers the last one is sparse: whole periods as one block, the rest as another. Recomputation works
 * layer by layer, so that each is a block of its own then. */
static ft_ref layers(ft_maker *m, const stack *s, ft_ref x, int64_t count, int64_t sparse)
{
    enum { MOST_SINGLE = 64 };
    ft_build *b = &m->b;
    const ft_block_info *at = s->decodes ? FT_BLOCK(DECODER_LAYERS) : FT_BLOCK(ENCODER_LAYERS);
    const ft_block_info *rest = s->decodes ? FT_BLOCK(DECODER_LAYERS_DENSE) : FT_BLOCK(ENCODER_LAYERS_DENSE);
    int64_t period = sparse > 0 ? count / sparse : 1, whole = count / period;
    if (period > 1 && count <= MOST_SINGLE && b->training && ft__recomputes_layers(m->work)) {
        for (int64_t i = 0; i < count && b->status == FT_OK; i++) {
            x = ft__block_open(b, at, 1, x);
            x = ft__block_close(b, layer(m, s, x, i < whole * period && i % period == period - 1));
        }
        return x;
    }
    if (period > MOST_SINGLE) whole = count / (period = MOST_SINGLE);
    x = ft__block_open(b, at, whole, x);
    for (int64_t i = 0; i < period && b->status == FT_OK; i++) x = layer(m, s, x, sparse > 0 && i == period - 1);
    x = ft__block_close(b, x);
    if (count - whole * period < 1) return x;
    x = ft__block_open(b, rest, count - whole * period, x);
    return ft__block_close(b, layer(m, s, x, false));
}

/* -- stacks ------------------------------------------------------------------------------------ */

static bool adds_masks(const ft_maker *m)
{
    return m->work->attention == FT_EAGER || (m->arch->experts > 0 && m->work->attention == FT_SDPA);
}

static ft_ref embed(ft_maker *m, stack *s, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref tokens = ft__input(b, m->batch, s->q_len, 8);
    ft_ref x = ft__embedding(b, FT_AT(EMBED_TOKENS), tokens, a->vocab, a->hidden, table);
    x = ft__dropout(b, FT_AT(EMBED_DROPOUT), x, a->embed_dropout);
    s->mask = s->zeros = FT_NONE;
    if (adds_masks(m)) /* over the source a row of padding, over the target what comes later */
        s->mask = ft__no_grad_kernels(b, FT_AT(MASK), "copy", FT_NONE, s->decodes ? m->batch * s->q_len : m->batch,
                                      s->kv_len, ft_dtype_bytes(b->stored), 4);
    s->bias = FT_NONE;
    if (!a->bias_each) biases(m, s);
    ft__module(b, 2);
    return x;
}

static ft_ref encode_with(ft_maker *m, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    stack s = {.source = FT_NONE, .q_len = ft__encoder_tokens(m), .kv_len = ft__encoder_tokens(m)};
    ft__block_open(b, FT_BLOCK(ENCODER_EMBED), 1, FT_NONE);
    ft_ref x = ft__block_close(b, embed(m, &s, table));
    x = layers(m, &s, x, a->layers, a->sparse_encoder_layers);
    x = ft__block_open(b, FT_BLOCK(ENCODER_NORM), 1, x);
    x = ft__relative_norm(m, FT_AT(ENCODER_NORM), x);
    return ft__block_close(b, ft__dropout(b, FT_AT(ENCODER_DROPOUT), x, a->embed_dropout));
}

static ft_ref encode(ft_maker *m)
{
    ft_ref table = FT_NONE;
    return encode_with(m, &table);
}

/* Over the last word's state, when the class says so. */
static ft_ref classified(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    x = ft__contiguous(b, FT_AT(CLASSIFIER), ft__slice(b, x, m->batch, a->hidden));
    x = ft__linear(b, FT_AT(CLASSIFIER_DENSE), x, a->hidden, FT_BIAS, FT_WHOLE);
    x = ft__linear(b, FT_AT(CLASSIFIER), ft__pointwise(b, FT_AT(CLASSIFIER_ACT), "tanh", x), a->labels, FT_BIAS,
                   FT_WHOLE);
    return b->training ? ft__loss(b, FT_AT(LOSS), x, false) : x;
}

static void decode(ft_maker *m, ft_ref source, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (m->work->task == FT_PREFILL && !a->tower_source) m->q_len = m->kv_len = 1; /* the word that starts the answer */
    int64_t source_len = a->tower_source ? m->source_len : ft__encoder_tokens(m);
    stack s = {.source = source, .q_len = m->q_len, .kv_len = m->kv_len, .source_len = source_len, .decodes = true};
    ft__block_open(b, FT_BLOCK(DECODER_EMBED), 1, FT_NONE);
    ft__part_unused_weights(m);
    ft_ref x = ft__block_close(b, embed(m, &s, table));
    x = layers(m, &s, x, a->decoder_layers, a->sparse_decoder_layers);
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    x = ft__relative_norm(m, FT_AT(NORM), x);
    x = ft__dropout(b, FT_AT(HEAD_DROPOUT), x, a->embed_dropout);
    if (a->lm_head && a->tied) x = ft__pointwise(b, FT_AT(HEAD_SCALE), "mulu", x); /* by 1 / sqrt(hidden) */
    if (a->lm_head)
        x = ft__part_head(m, x, a->tied ? *table : FT_NONE);
    else if (a->labels > 0)
        x = classified(m, x);
    ft__answered(b, source);
    ft__block_close(b, x);
}

void ft__make_encoder_decoder(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_ref table = FT_NONE, source = FT_NONE;
    if (a->position != FT_RELATIVE) {
        ft__make_seq2seq(m);
        return;
    }
    bool decodes = m->work->task == FT_DECODE;
    if (decodes && a->decoder_layers < 1) {
        ft__build_fail(b, FT_E_UNSUPPORTED,
                       "%s here is its encoder alone, which has no decode step: ask for \"forward\"", a->model_type);
        return;
    }
    if (a->tower_source) { /* what is read is an image: pix2struct */
        ft__part_source(m);
        decode(m, m->source, &table);
        return;
    }
    if (!decodes) source = encode_with(m, &table);
    if (decodes) ft__encoder_at_rest(m, encode, (double)a->vocab * (double)a->hidden);
    if (a->decoder_layers > 0) decode(m, source, &table);
}
