/* encoder.c: bert, roberta, albert, mpnet, deberta-v2 and their kin: post-norm layers over a whole sequence, with a
 * head that guesses masked words, classifies, or, as a causal decoder, guesses the next word. */
#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"
#include "model/parts.h"
#include "model/relative.h"

/* -- embeddings -------------------------------------------------------------------------------- */

/* Kernels on a handful of integers per token: they cost the host more than the GPU. */
static void small_kernels(ft_build *b, ft_at at, int64_t rows, int64_t cols, int count)
{
    ft_ref x = ft__input(b, rows, cols, 8);
    ft__pointwise(b, at, "copy", x);
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].count = (float)count;
}

/* Eager attention adds a mask of [batch, 1, q, k] even where nothing is hidden; scores of a model's own need none. */
static void make_mask(ft_maker *m)
{
    ft_build *b = &m->b;
    m->mask = FT_NONE;
    if (ft__own_scores(m->arch)) return;
    if (m->work->attention != FT_EAGER && (!m->arch->no_sdpa || m->arch->mask_absent)) return;
    ft_ref full = ft__activation(b, m->batch * m->q_len, m->kv_len, b->stored);
    m->mask = ft__pointwise(b, FT_AT(MASK), "addu", full);
}

static ft_ref embed(ft_maker *m, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = a->position_rows > 0 ? a->position_rows : a->max_position;
    bool placed = a->position == FT_LEARNED_POSITION;
    if (placed && (m->q_len > rows || m->kv_len > rows + 1))
        ft__build_fail(b, FT_E_RANGE, "a sequence of %lld tokens: the model's learned positions end at %lld",
                       (long long)m->work->seq, (long long)rows);
    small_kernels(b, FT_AT(EMBED_POSITIONS), m->batch, m->q_len, a->counted_positions ? 10 : 2);
    ft_ref tokens = ft__input(b, m->batch, m->q_len, 8);
    int64_t width = a->embed_width > 0 ? a->embed_width : a->hidden;
    ft_ref x = ft__embedding(b, FT_AT(EMBED_TOKENS), tokens, a->vocab, width, table);
    if (a->joined_width > 0) { /* its tables lie beside */
        ft_ref all[2] = {x, ft__activation(b, m->batch * m->q_len, a->joined_width, b->stored)};
        x = ft__cat(b, FT_AT(EMBED_PROJECT_IN), 2, all, m->batch * m->q_len, width + a->joined_width);
        x = ft__linear(b, FT_AT(EMBED_PROJECT_IN), x, width, FT_BIAS, FT_WHOLE);
    }
    if (a->token_types > 0) {
        ft_ref kinds = ft__input(b, m->batch, m->q_len, 8), types = FT_NONE;
        x = ft__add(b, FT_AT(EMBED_TYPES), x,
                    ft__embedding(b, FT_AT(EMBED_TYPES), kinds, a->token_types, width, &types));
    }
    if (placed) {
        ft_ref places = ft__input(b, a->counted_positions ? m->batch : 1, m->q_len, 8), positions = FT_NONE;
        x = ft__add(b, FT_AT(EMBED_POSITIONS), x,
                    ft__embedding(b, FT_AT(EMBED_POSITIONS), places, rows, width, &positions));
    }
    if (a->embed_norm) x = ft__part_norm(m, FT_AT(EMBED_NORM), x, a->norm, a->norm_bias);
    x = ft__dropout(b, FT_AT(EMBED_DROPOUT), x, a->embed_dropout);
    if (width != a->hidden) x = ft__linear(b, FT_AT(EMBED_PROJECT_IN), x, a->hidden, FT_BIAS, FT_WHOLE);
    make_mask(m);
    if (a->disentangled) ft__part_places(m);
    if (a->shifted) ft__part_distances(m);
    if (a->position == FT_ROTARY) ft__part_rotary_tables(m, a->head_dim); /* roformer */
    ft__part_unused_weights(m);
    if (a->relative_buckets > 0) ft__relative_bias(m, FT_AT(ATTN_BIAS), m->q_len, m->kv_len, true); /* mpnet */
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
    if (a->disentangled) return ft__part_disentangled(m, x);
    if (a->shifted) return ft__part_shifted(m, x);
    ft__module(b, 3);
    if (m->stack->fused_projections) {
        int64_t part[3] = {width, width, width};
        ft_ref out[3];
        ft__split(b, ft__linear(b, FT_AT(ATTN_QKV_PROJ), x, 3 * width, bias, FT_CUT_COLUMNS), 3, part, out);
        q = out[0];
        k = out[1];
        v = out[2];
    } else {
        q = ft__linear(b, FT_AT(ATTN_Q_PROJ), x, width, bias, FT_CUT_COLUMNS);
        k = ft__linear(b, FT_AT(ATTN_K_PROJ), x, width, bias, FT_CUT_COLUMNS);
        v = ft__linear(b, FT_AT(ATTN_V_PROJ), x, width, bias, FT_CUT_COLUMNS);
    }
    if (a->position == FT_ROTARY) {
        if (ft__part_spelled_out(m)) /* cosines and sines, each repeated for neighbouring pairs */
            ft__no_grad_kernels(b, FT_AT(ATTN_ROTARY), "copy", FT_NONE, m->q_len, a->head_dim,
                                ft_dtype_bytes(b->stored), 2);
        q = ft__part_rotate(m, FT_AT(ATTN_ROTARY), q, a->heads, a->head_dim, a->head_dim);
        k = ft__part_rotate(m, FT_AT(ATTN_ROTARY), k, a->heads, a->head_dim, a->head_dim);
    } else {
        q = ft__view(b, q, tokens * a->heads, a->head_dim, true);
        k = ft__view(b, k, tokens * a->heads, a->head_dim, true);
    }
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
                   .eager_only = a->no_sdpa,
                   .dropout = a->attention_dropout,
                   .scale = a->score_scale,
                   .mask = true,
                   .softmax_fp32 = a->softmax_fp32,
                   .k_dense = cached,
                   .v_dense = cached};
    ft_ref y = ft__part_attend(m, FT_AT(ATTN_ATTEND), q, k, v, &s);
    return ft__linear(b, FT_AT(ATTN_O_PROJ), y, a->hidden, a->out_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_ROWS);
}

/* What a language's own small network adds, behind the layer's last norm once more: xmod. */
static ft_ref adapted(ft_maker *m, ft_ref y)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->adapter < 1) return y;
    ft_ref h = ft__no_grad_kernels(b, FT_AT(MLP_NORM), "copy", y, m->batch * m->q_len, a->hidden,
                                   ft_dtype_bytes(b->stored), 1);
    h = ft__linear(b, FT_AT(MLP_UP_PROJ), h, a->hidden / a->adapter, FT_BIAS, FT_WHOLE);
    h = ft__part_activation(m, FT_AT(MLP_ACT), a->activation, h);
    return ft__add(b, FT_AT(MLP_RESIDUAL), ft__linear(b, FT_AT(MLP_DOWN_PROJ), h, a->hidden, FT_BIAS, FT_WHOLE), y);
}

ft_ref ft__part_encoder_layer(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool before = a->place == FT_PRE_NORM;
    ft__module(b, 1);
    ft__part_other_modules(m);
    ft_ref y = attention(m, before ? ft__part_norm(m, FT_AT(ATTN_NORM), x, a->norm, a->norm_bias) : x);
    y = ft__dropout(b, FT_AT(ATTN_DROPOUT), y, a->residual_dropout);
    x = ft__add(b, FT_AT(ATTN_RESIDUAL), y, x);
    if (!before) x = ft__part_norm(m, FT_AT(ATTN_NORM), x, a->norm, a->norm_bias);
    x = ft__part_cross(m, x);
    ft_ref h = before ? ft__part_norm(m, FT_AT(MLP_NORM), x, a->norm, a->norm_bias) : x;
    y = ft__part_mlp(m, h, a->ffn, a->activation, a->gated, a->fused_gate_up, a->mlp_bias ? FT_BIAS : FT_NO_BIAS);
    y = ft__dropout(b, FT_AT(MLP_DROPOUT), y, a->mlp_dropout);
    x = ft__add(b, FT_AT(MLP_RESIDUAL), adapted(m, y), x);
    return before ? x : ft__part_norm(m, FT_AT(MLP_NORM), x, a->norm, a->norm_bias);
}

/* -- heads ------------------------------------------------------------------------------------- */

/* Dense, activation, norm, then the vocabulary; bert-generation has the vocabulary alone. */
static ft_ref words(ft_maker *m, ft_ref x, ft_ref table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool last_only = m->work->task == FT_PREFILL && a->causal && m->q_len > 1;
    if (last_only) x = ft__contiguous(b, FT_AT(HEAD), ft__slice(b, x, m->batch, a->hidden));
    x = ft__part_chosen(m, x);
    int64_t width = a->head_width > 0 ? a->head_width : a->hidden;
    if (a->mlm_head) {
        x = ft__linear(b, FT_AT(HEAD_DENSE), x, width, FT_BIAS, FT_WHOLE);
        x = ft__part_activation(m, FT_AT(HEAD_ACT), a->activation, x);
        x = ft__part_norm(m, FT_AT(HEAD_NORM), x, a->norm, a->norm_bias);
    }
    ft_ref weight = a->tied ? table : ft__parameter(b, "lm_head.weight", a->vocab, width);
    ft_ref bias = a->head_bias ? ft__parameter(b, "lm_head.bias", 1, a->vocab) : FT_NONE;
    ft__module(b, 3);
    return ft__linear_with(b, FT_AT(LM_HEAD), x, weight, a->vocab, bias, FT_CUT_COLUMNS);
}

/* What the first token says of the sequence. */
static ft_ref pooled(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    ft_ref first = ft__slice(b, x, m->batch, m->arch->hidden);
    first = ft__linear(b, FT_AT(POOLER_DENSE), first, m->arch->hidden, FT_BIAS, FT_WHOLE);
    ft__module(b, 1);
    return ft__pointwise(b, FT_AT(POOLER_ACT), "tanh", first);
}

static ft_ref labelled(ft_maker *m, ft_ref x, int64_t labels)
{
    ft_build *b = &m->b;
    x = ft__dropout(b, FT_AT(CLASSIFIER_DROPOUT), x, m->arch->residual_dropout);
    return ft__linear(b, FT_AT(CLASSIFIER), x, labels, FT_BIAS, FT_WHOLE);
}

static ft_ref head(ft_maker *m, ft_ref x, ft_ref table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rank = b->lora_rank;
    b->lora_rank = 0;
    ft_ref y = x, pool = a->pooler ? pooled(m, x) : FT_NONE;
    if (a->mlm_head || a->lm_head) {
        y = words(m, x, table);
        if (b->training) y = ft__loss(b, FT_AT(LOSS), y, ft__upcasts(m));
        if (a->pooler) { /* pre-training: does the second sentence follow the first? */
            ft_ref next = ft__linear(b, FT_AT(NEXT_SENTENCE), pool, 2, FT_BIAS, FT_WHOLE);
            if (b->training) y = ft__add(b, FT_AT(LOSS), y, ft__loss(b, FT_AT(LOSS), next, false));
        }
    } else if (a->labels > 0) {
        y = labelled(m, a->pooler ? pool : x, a->labels);
        if (b->training) y = ft__loss(b, FT_AT(LOSS), y, false);
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
    ft__part_source(m);
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref x = ft__block_close(b, embed(m, &table));
    x = ft__block_open(b, FT_BLOCK(LAYERS), a->layers, x);
    b->once = a->layers_shared;
    x = ft__part_encoder_layer(m, x);
    b->once = false;
    x = ft__block_close(b, x);
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    if (a->final_norm) x = ft__part_norm(m, FT_AT(NORM), x, a->norm, a->norm_bias);
    ft__block_close(b, head(m, x, table));
}
