/* encoder.c: bert, roberta and their kin: post-norm layers over a whole sequence, with a head that guesses masked
 * words, classifies, or, as a causal decoder, guesses the next word. */
#include <string.h>

#include "graph/emit.h"
#include "model/latent.h"
#include "model/parts.h"

/* -- embeddings -------------------------------------------------------------------------------- */

/* Kernels on a handful of integers per token: they cost the host more than the GPU. */
static void small_kernels(ft_build *b, const char *name, int64_t rows, int64_t cols, int count)
{
    ft_ref x = ft__input(b, rows, cols, 8);
    ft__pointwise(b, name, "copy", x);
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].count = (float)count;
}

/* Eager attention adds a mask of [batch, 1, q, k] even where nothing is hidden. */
static void make_mask(ft_maker *m)
{
    ft_build *b = &m->b;
    m->mask = FT_NONE;
    if (m->work->attention != FT_EAGER) return;
    ft_ref full = ft__activation(b, m->batch * m->q_len, m->kv_len, b->stored);
    m->mask = ft__pointwise(b, "mask", "addu", full);
}

static ft_ref embed(ft_maker *m, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    /* roberta counts the tokens that are no padding */
    bool counted = strstr(a->model_type, "roberta") || !strcmp(a->model_type, "camembert");
    int64_t rows = a->position_rows > 0 ? a->position_rows : a->max_position;
    if (m->q_len > rows || m->kv_len > rows + 1)
        ft__build_fail(b, FT_E_RANGE, "a sequence of %lld tokens: the model's learned positions end at %lld",
                       (long long)m->work->seq, (long long)rows);
    small_kernels(b, "embed.positions", m->batch, m->q_len, counted ? 10 : 2);
    ft_ref tokens = ft__input(b, m->batch, m->q_len, 8);
    ft_ref x = ft__embedding(b, "embed.tokens", tokens, a->vocab, a->hidden, table);
    if (a->token_types > 0) {
        ft_ref kinds = ft__input(b, m->batch, m->q_len, 8), types = FT_NONE;
        x = ft__add(b, "embed.types", x, ft__embedding(b, "embed.types", kinds, a->token_types, a->hidden, &types));
    }
    ft_ref places = ft__input(b, counted ? m->batch : 1, m->q_len, 8), positions = FT_NONE;
    x = ft__add(b, "embed.positions", x, ft__embedding(b, "embed.positions", places, rows, a->hidden, &positions));
    x = ft__part_norm(m, "embed.norm", x, a->norm, a->norm_bias);
    x = ft__dropout(b, "embed.dropout", x, a->embed_dropout);
    make_mask(m);
    ft__module(b, 3);
    return x;
}

/* -- layers ------------------------------------------------------------------------------------ */

static ft_ref attention(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, width = a->heads * a->head_dim;
    ft_bias bias = a->qkv_bias ? FT_BIAS : FT_NO_BIAS;
    ft_ref q, k, v;
    ft__module(b, 3);
    if (m->fused) {
        int64_t part[3] = {width, width, width};
        ft_ref out[3];
        ft__split(b, ft__linear(b, "attn.qkv_proj", x, 3 * width, bias, FT_CUT_COLUMNS), 3, part, out);
        q = out[0];
        k = out[1];
        v = out[2];
    } else {
        q = ft__linear(b, "attn.q_proj", x, width, bias, FT_CUT_COLUMNS);
        k = ft__linear(b, "attn.k_proj", x, width, bias, FT_CUT_COLUMNS);
        v = ft__linear(b, "attn.v_proj", x, width, bias, FT_CUT_COLUMNS);
    }
    q = ft__view(b, q, tokens * a->heads, a->head_dim, true);
    k = ft__view(b, k, tokens * a->heads, a->head_dim, true);
    v = ft__view(b, v, tokens * a->heads, a->head_dim, true);
    bool cached = a->causal && (m->work->task == FT_PREFILL || m->work->task == FT_DECODE);
    if (cached) {
        k = ft__part_remember(m, k, a->heads, a->head_dim);
        v = ft__part_remember(m, v, a->heads, a->head_dim);
    }
    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = a->heads,
                             .kv_heads = a->heads,
                             .q_len = m->q_len,
                             .kv_len = m->kv_len,
                             .head_dim = a->head_dim,
                             .causal = a->causal && m->q_len > 1},
                   .dropout = a->attention_dropout,
                   .scale = a->score_scale,
                   .mask = true,
                   .softmax_fp32 = a->softmax_fp32,
                   .k_dense = cached,
                   .v_dense = cached};
    ft_ref y = ft__part_attend(m, "attn.attend", q, k, v, &s);
    return ft__linear(b, "attn.o_proj", y, a->hidden, a->out_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_ROWS);
}

static ft_ref layer(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft__module(b, 1);
    ft_ref y = attention(m, x);
    y = ft__dropout(b, "attn.dropout", y, a->residual_dropout);
    x = ft__part_norm(m, "attn.norm", ft__add(b, "attn.residual", y, x), a->norm, a->norm_bias);
    y = ft__part_mlp(m, "mlp", x, a->ffn, a->activation, a->gated, a->fused_gate_up,
                     a->mlp_bias ? FT_BIAS : FT_NO_BIAS);
    y = ft__dropout(b, "mlp.dropout", y, a->mlp_dropout);
    return ft__part_norm(m, "mlp.norm", ft__add(b, "mlp.residual", y, x), a->norm, a->norm_bias);
}

/* -- heads ------------------------------------------------------------------------------------- */

/* Dense, activation, norm, then the vocabulary. */
static ft_ref words(ft_maker *m, ft_ref x, ft_ref table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool last_only = m->work->task == FT_PREFILL && a->causal && m->q_len > 1;
    if (last_only) x = ft__contiguous(b, "head", ft__slice(b, x, m->batch, a->hidden));
    x = ft__linear(b, "head.dense", x, a->hidden, FT_BIAS, FT_WHOLE);
    x = ft__part_activation(m, "head.act", a->activation, x);
    x = ft__part_norm(m, "head.norm", x, a->norm, a->norm_bias);
    ft_ref weight = a->tied ? table : ft__parameter(b, "lm_head.weight", a->vocab, a->hidden);
    ft_ref bias = a->head_bias ? ft__parameter(b, "lm_head.bias", 1, a->vocab) : FT_NONE;
    ft__module(b, 3);
    return ft__linear_with(b, "lm_head", x, weight, a->vocab, bias, FT_CUT_COLUMNS);
}

/* What the first token says of the sequence. */
static ft_ref pooled(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    ft_ref first = ft__slice(b, x, m->batch, m->arch->hidden);
    first = ft__linear(b, "pooler.dense", first, m->arch->hidden, FT_BIAS, FT_WHOLE);
    ft__module(b, 1);
    return ft__pointwise(b, "pooler.act", "tanh", first);
}

static ft_ref labelled(ft_maker *m, ft_ref x, int64_t labels)
{
    ft_build *b = &m->b;
    x = ft__dropout(b, "classifier.dropout", x, m->arch->residual_dropout);
    return ft__linear(b, "classifier", x, labels, FT_BIAS, FT_WHOLE);
}

static ft_ref head(ft_maker *m, ft_ref x, ft_ref table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rank = b->lora_rank;
    b->lora_rank = 0;
    ft_ref y = x, pool = a->pooler ? pooled(m, x) : FT_NONE;
    if (a->mlm_head) {
        y = words(m, x, table);
        if (b->training) y = ft__loss(b, "loss", y, a->loss_fp32);
        if (a->pooler) { /* pre-training: does the second sentence follow the first? */
            ft_ref next = ft__linear(b, "next_sentence", pool, 2, FT_BIAS, FT_WHOLE);
            if (b->training) y = ft__add(b, "loss", y, ft__loss(b, "loss", next, false));
        }
    } else if (a->labels > 0) {
        y = labelled(m, a->pooler ? pool : x, a->labels);
        if (b->training) y = ft__loss(b, "loss", y, false);
    } else if (a->pooler) {
        y = pool;
    }
    b->lora_rank = rank;
    return y;
}

void ft__make_encoder(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (m->work->task == FT_DECODE && !a->causal) {
        ft__build_fail(b, FT_E_UNSUPPORTED,
                       "%s reads a sequence at once and has no decode step: ask for \"forward\", "
                       "or set is_decoder",
                       a->model_type);
        return;
    }
    ft_ref table = FT_NONE;
    ft__block_open(b, "embed", 1, FT_NONE);
    ft_ref x = ft__block_close(b, embed(m, &table));
    x = ft__block_open(b, "layers", a->layers, x);
    x = ft__block_close(b, layer(m, x));
    x = ft__block_open(b, "head", 1, x);
    ft__block_close(b, head(m, x, table));
}
