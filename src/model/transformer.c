/* transformer.c: decoder-only language models, from gpt2 to gpt_oss, as transformers launches them. */
#include <math.h>
#include <string.h>

#include "graph/emit.h"
#include "model/latent.h"
#include "model/parts.h"

/* -- attention --------------------------------------------------------------------------------- */

/* Keys or values of all tokens so far. Plain transformers concatenates, which copies the past at every step; a static
 * cache takes the new rows in place; a paged one is written by a kernel of the engine. A layer with a window keeps no
 * more than that: the dynamic cache drops the oldest row by a slice, the static one rolls all of them. */
ft_ref ft__part_remember(ft_maker *m, ft_ref fresh, int64_t rows_per_token, int64_t dim)
{
    ft_build *b = &m->b;
    const ft_workload *w = m->work;
    if (w->task != FT_PREFILL && w->task != FT_DECODE) return fresh;
    double bytes = ft_dtype_bytes(w->kv_dtype);
    bool decode = w->task == FT_DECODE, full = decode && m->kv_len <= w->seq;
    int64_t past = decode && !full ? m->kv_len - m->q_len : m->kv_len;
    ft_ref cache = ft__cache(b, m->batch * past * rows_per_token, dim, bytes);
    int64_t rows = m->batch * m->kv_len * rows_per_token;
    if (w->cache == FT_CACHE_PAGED || (w->cache == FT_CACHE_STATIC && !full)) {
        ft__copy(b, "attn.cache", fresh, m->batch * m->q_len * rows_per_token, dim);
        return decode ? ft__view(b, cache, rows, dim, false) : fresh;
    }
    if (w->cache == FT_CACHE_STATIC) {
        ft_ref rolled = ft__append(b, "attn.cache", ft__slice(b, cache, rows, dim), fresh, rows, dim);
        ft__copy(b, "attn.cache", rolled, rows, dim);
        return ft__view(b, cache, rows, dim, false);
    }
    /* One token's rows are contiguous whatever the order of axes, unless they are a slice of fused projections. */
    const ft_tensor *t = ft__tensor_of(b, fresh);
    if (m->q_len == 1 && !t->gaps) fresh = ft__view(b, fresh, m->batch * rows_per_token, dim, false);
    if (!decode)
        cache = ft__slice(b, fresh, 1, 1); /* nothing so far */
    else if (full)
        cache = ft__slice(b, cache, rows, dim);
    return ft__append(b, "attn.cache", cache, fresh, rows, dim);
}

/* PyTorch gives every row a block, however narrow; Transformer Engine a warp, and several rows to a block (rmsnorm's
 * general kernels, from 128 columns on): as fast as one wide row. */
static void pack_rows(ft_build *b)
{
    const int64_t wide = 1024;
    if (b->status != FT_OK || b->g->node_count < 1) return;
    ft_op *op = &b->g->nodes[b->g->node_count - 1].op;
    if (op->kind != FT_OP_ROW || op->u.row.cols >= wide || op->u.row.rows < wide) return;
    int64_t rows = wide / op->u.row.cols;
    op->u.row.rows = (op->u.row.rows + rows - 1) / rows;
    op->u.row.cols *= rows;
}

static ft_ref qk_norm(ft_maker *m, ft_ref x, int64_t heads)
{
    const ft_arch *a = m->arch;
    if (a->qk_norm == FT_QK_NORM_HEAD) {
        x = ft__view(&m->b, x, m->batch * m->q_len * heads, a->head_dim, false);
        ft_ref y = ft__part_norm(m, "attn.qk_norm", x, a->norm, a->norm_bias);
        if (m->fused) pack_rows(&m->b);
        return y;
    }
    return a->qk_norm == FT_QK_NORM_FULL ? ft__part_norm(m, "attn.qk_norm", x, a->norm, a->norm_bias) : x;
}

static ft_scores scores_of(const ft_maker *m, bool windowed)
{
    const ft_arch *a = m->arch;
    return (ft_scores){.shape = {.batch = m->batch,
                                 .heads = a->heads,
                                 .kv_heads = a->kv_heads,
                                 .q_len = m->q_len,
                                 .kv_len = m->kv_len,
                                 .head_dim = a->head_dim,
                                 .window = windowed ? a->window : 0,
                                 .causal = m->q_len > 1},
                       .dropout = a->attention_dropout,
                       .softcap = a->attention_softcap,
                       .scale = a->score_scale,
                       .mask = true,
                       .scores_fp32 = a->scores_fp32,
                       .softmax_fp32 = a->softmax_fp32,
                       .eager_only = a->no_sdpa || a->sinks,
                       .alibi = a->position == FT_ALIBI,
                       .baddbmm = a->baddbmm,
                       .hides = !strcmp(a->model_type, "gpt_neo"),
                       .sinks = a->sinks,
                       .broadcast = a->kv_heads == 1 && a->heads > 1 && !strcmp(a->model_type, "falcon")};
}

static ft_ref attention(ft_maker *m, ft_ref x, bool windowed)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t dim = a->head_dim, tokens = m->batch * m->q_len;
    ft_ref q, k, v;
    ft__module(b, 1);
    if (a->fused_qkv || m->fused || m->engine) {
        int64_t part[3] = {a->heads * dim, a->kv_heads * dim, a->kv_heads * dim};
        ft_ref out[3];
        ft_ref qkv = ft__linear(b, "attn.qkv_proj", x, part[0] + part[1] + part[2], a->qkv_bias ? FT_BIAS : FT_NO_BIAS,
                                FT_CUT_COLUMNS);
        /* Slices, whose gradients are zeroed tensors with one part filled, or a split, whose gradients are joined. */
        bool slices = !strcmp(a->model_type, "bloom") || !strcmp(a->model_type, "phi3") ||
                      !strcmp(a->model_type, "falcon");
        if (slices && !m->fused && !m->engine)
            for (int i = 0; i < 3; i++) out[i] = ft__slice(b, qkv, tokens, part[i]);
        else
            ft__split(b, qkv, 3, part, out);
        q = qk_norm(m, out[0], a->heads);
        k = qk_norm(m, out[1], a->kv_heads);
        v = out[2];
    } else {
        ft_bias bias = a->qkv_bias ? FT_BIAS : FT_NO_BIAS, key = a->qkv_bias && a->key_bias ? FT_BIAS : FT_NO_BIAS;
        q = ft__linear(b, "attn.q_proj", x, a->heads * dim, bias, FT_CUT_COLUMNS);
        q = qk_norm(m, q, a->heads);
        if (!strcmp(a->model_type, "opt") && !m->fused) q = ft__pointwise(b, "attn.scale", "mulu", q);
        k = ft__linear(b, "attn.k_proj", x, a->kv_heads * dim, key, FT_CUT_COLUMNS);
        k = qk_norm(m, k, a->kv_heads);
        v = ft__linear(b, "attn.v_proj", x, a->kv_heads * dim, bias, FT_CUT_COLUMNS);
    }
    if (a->position == FT_ROTARY) {
        q = ft__part_rotate(m, "attn.rotary", q, a->heads, dim, a->rotary_dim);
        k = ft__part_rotate(m, "attn.rotary", k, a->kv_heads, dim, a->rotary_dim);
    } else {
        q = ft__view(b, q, tokens * a->heads, dim, true);
        k = ft__view(b, k, tokens * a->kv_heads, dim, true);
    }
    v = ft__view(b, v, tokens * a->kv_heads, dim, true);
    int64_t seen = m->kv_len; /* gpt_neo's local layers hide keys by a mask, but keep them all */
    bool outgrown = windowed && m->work->task == FT_DECODE && a->window < seen && !a->scores_fp32;
    if (outgrown) m->kv_len = a->window;
    ft_scores s = scores_of(m, windowed);
    s.shape.masked = outgrown || (m->work->task == FT_DECODE && m->work->cache == FT_CACHE_STATIC);
    k = ft__part_remember(m, k, a->kv_heads, dim);
    v = ft__part_remember(m, v, a->kv_heads, dim);
    bool cached = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    /* A rotation that ends in a concatenation leaves its result dense, unless it is transposed only then. */
    bool joined = a->position == FT_ROTARY && !(a->rotary_interleaved && a->scores_fp32) &&
                  (a->sinks || !strcmp(a->model_type, "phi3") || (a->rotary_dim > 0 && a->rotary_dim < dim));
    s.q_dense = s.merge = joined;
    s.k_dense = cached || joined;
    s.v_dense = cached;
    if (a->sinks && ft__flashes(m->work->attention)) ft__parameter(b, "attn.sinks", 1, a->heads);
    ft_ref y = ft__part_attend(m, "attn.attend", q, k, v, &s);
    m->kv_len = seen;
    return ft__linear(b, "attn.o_proj", y, a->hidden, a->out_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_ROWS);
}

/* -- layers ------------------------------------------------------------------------------------ */

static ft_ref feed_forward(ft_maker *m, ft_ref x, bool sparse)
{
    const ft_arch *a = m->arch;
    if (sparse) return ft__part_experts(m, "moe", x);
    return ft__part_mlp(m, "mlp", x, a->ffn, a->activation, a->gated, a->fused_gate_up,
                        a->mlp_bias ? FT_BIAS : FT_NO_BIAS);
}

static ft_ref layer(ft_maker *m, ft_ref x, bool sparse, bool windowed)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool pre = a->place == FT_PRE_NORM || a->place == FT_SANDWICH;
    bool after = a->place == FT_SANDWICH || a->place == FT_AFTER;
    ft__module(b, 1);
    ft_ref h = pre ? ft__part_norm(m, "attn.norm", x, a->norm, a->norm_bias) : x;
    ft_ref y = a->kv_lora > 0 ? ft__part_latent_attention(m, h) : attention(m, h, windowed);
    if (after) y = ft__part_norm(m, "attn.post_norm", y, a->norm, a->norm_bias);
    if (a->parallel) {
        ft_ref h2 = a->shared_norm ? h : ft__part_norm(m, "mlp.norm", x, a->norm, a->norm_bias);
        ft_ref z = feed_forward(m, h2, sparse);
        y = ft__dropout(b, "attn.dropout", y, a->residual_dropout);
        z = ft__dropout(b, "mlp.dropout", z, a->mlp_dropout);
        return ft__add(b, "residual", ft__add(b, "residual", z, y), x);
    }
    y = ft__dropout(b, "attn.dropout", y, a->residual_dropout);
    x = ft__add(b, "attn.residual", x, y);
    if (a->place == FT_POST_NORM) x = ft__part_norm(m, "attn.norm", x, a->norm, a->norm_bias);
    h = pre ? ft__part_norm(m, "mlp.norm", x, a->norm, a->norm_bias) : x;
    y = feed_forward(m, h, sparse);
    if (after) y = ft__part_norm(m, "mlp.post_norm", y, a->norm, a->norm_bias);
    y = ft__dropout(b, "mlp.dropout", y, a->mlp_dropout);
    x = ft__add(b, "mlp.residual", x, y);
    return a->place == FT_POST_NORM ? ft__part_norm(m, "mlp.norm", x, a->norm, a->norm_bias) : x;
}

static bool is_sparse(const ft_arch *a, int64_t i)
{
    return a->experts > 0 && (a->moe_every <= 1 || (i + 1) % a->moe_every == 0);
}

static bool is_windowed(const ft_arch *a, int64_t i)
{
    return a->window > 0 && (a->window_every <= 1 || (i + 1) % a->window_every != 0);
}

/* A pattern as runs of equal layers, for checkpoints, FSDP's units and pipelines, whose measure is the layer. */
static ft_ref runs(ft_maker *m, ft_ref x, int64_t count)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    for (int64_t from = 0, to; from < count && b->status == FT_OK; from = to) {
        bool sparse = is_sparse(a, from), windowed = is_windowed(a, from);
        for (to = from + 1; to < count && is_sparse(a, to) == sparse && is_windowed(a, to) == windowed;) to++;
        x = ft__block_open(b, "layers", to - from, x);
        x = ft__block_close(b, layer(m, x, sparse, windowed));
    }
    return x;
}

/* Layers that repeat as a pattern become one block of that pattern. */
static ft_ref layers(ft_maker *m, ft_ref x)
{
    enum { MOST_RUNS = 256 };
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t dense = a->experts > 0 ? (a->first_dense < a->layers ? a->first_dense : a->layers) : 0;
    if (dense > 0) {
        x = ft__block_open(b, "layers.dense", dense, x);
        x = ft__block_close(b, layer(m, x, false, a->window > 0 && a->window_every == 0));
    }
    int64_t rest = a->layers - dense, period = 1;
    if (a->window > 0 && a->window_every > 1) period = a->window_every;
    if (a->experts > 0 && a->moe_every > 1) period = period > 1 ? period : a->moe_every;
    bool apart = m->work->layers_apart || (b->training && ft__recomputes_layers(m->work));
    /* Not OLMo 3's, whose products read the layer's input itself: its lifetime over runs is not understood yet. */
    if (apart && period > 1 && rest <= MOST_RUNS && a->place != FT_AFTER) return runs(m, x, rest);
    if (period > rest) period = rest > 0 ? rest : 1;
    if (period > 64) period = 64;
    int64_t whole = rest / period, tail = rest % period;
    if (whole > 0) {
        x = ft__block_open(b, "layers", whole, x);
        for (int64_t i = 0; i < period && b->status == FT_OK; i++) {
            x = layer(m, x, is_sparse(a, i), is_windowed(a, i));
        }
        x = ft__block_close(b, x);
    }
    if (tail > 0) {
        x = ft__block_open(b, "layers.last", tail, x);
        x = ft__block_close(b, layer(m, x, a->experts > 0 && a->moe_every <= 1, a->window > 0));
    }
    return x;
}

/* -- the whole --------------------------------------------------------------------------------- */

/* Positions, packing checks and masks: a dozen small kernels and one synchronisation before the first layer. */
static void prepare(ft_maker *m)
{
    ft_build *b = &m->b;
    bool training = b->training;
    b->training = false;
    ft_ref positions = ft__input(b, m->batch, m->q_len, 8);
    ft_ref p = ft__pointwise(b, "positions", "addu", positions);
    if (m->work->task == FT_TRAIN || m->work->task == FT_FORWARD_PASS) {
        for (int i = 0; i < 4; i++) p = ft__pointwise(b, "mask", "addu", p);
        ft__sync(b, "mask");
    }
    m->mask = FT_NONE;
    if (m->work->attention == FT_EAGER || m->arch->no_sdpa) {
        ft_ref full = ft__activation(b, m->batch * m->q_len, m->kv_len, b->stored);
        m->mask = ft__pointwise(b, "mask", "addu", full);
    }
    b->training = training;
}

/* Older blocks return their attention's probabilities beside their result: those of the layer before live on while a
 * layer runs. A tensor made before the layers and named after them stands for it. */
static ft_ref returned_before(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (b->training || !a->no_sdpa || a->sinks || a->layers < 2) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_OTHER, "attn.variables");
    ft_dtype low = b->stored;
    ft_ref out = ft__node_out(b, &n, m->batch * a->heads * m->q_len, m->kv_len, low, ft_dtype_bytes(low));
    ft__emit(b, &n);
    return out;
}

void ft__make_transformer(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    b->conv1d = a->conv1d;
    ft__block_open(b, "embed", 1, FT_NONE);
    ft_ref tokens = ft__input(b, m->batch, m->q_len, 8), table = FT_NONE;
    int64_t width = a->embed_width ? a->embed_width : a->hidden;
    ft_ref x = ft__embedding(b, "embed.tokens", tokens, a->vocab, width, &table);
    if (a->embed_scale != 0 && a->embed_scale != 1) x = ft__pointwise(b, "embed.scale", "mulu", x);
    prepare(m);
    if (a->position == FT_LEARNED_POSITION) {
        ft_ref places = ft__input(b, 1, m->q_len, 8), positions = FT_NONE;
        int64_t rows = a->position_rows > 0 ? a->position_rows : a->max_position;
        ft_ref p = ft__embedding(b, "embed.positions", places, rows, a->hidden, &positions);
        if (a->embed_width && a->embed_width != a->hidden)
            x = ft__linear(b, "embed.project_in", x, a->hidden, FT_NO_BIAS, FT_WHOLE);
        x = ft__add(b, "embed.positions", x, p);
    }
    if (a->embed_norm) x = ft__part_norm(m, "embed.norm", x, a->norm, a->norm_bias);
    x = ft__dropout(b, "embed.dropout", x, a->embed_dropout);
    if (a->position == FT_ROTARY)
        ft__part_rotary_tables(m, a->kv_lora > 0 ? a->rope_dim : a->rotary_dim > 0 ? a->rotary_dim : a->head_dim);
    ft__module(b, 2);
    ft_ref before = returned_before(m);
    x = ft__block_close(b, x);
    x = layers(m, x);
    x = ft__block_open(b, "head", 1, x);
    if (before != FT_NONE) ft__part_held(m, 1, &before);
    b->conv1d = false;
    if (a->final_norm) x = ft__part_norm(m, "norm", x, a->norm, a->norm_bias);
    if (a->embed_width && a->embed_width != a->hidden)
        x = ft__linear(b, "head.project_out", x, a->embed_width, FT_NO_BIAS, FT_WHOLE);
    x = ft__part_head(m, x, a->tied ? table : FT_NONE);
    ft__block_close(b, x);
}
