/* latent.c: multi-head latent attention. transformers expands the latent to the keys and values of every head, at every
 * step for the whole history; the rotary part is shared by all heads. Serving engines do so in prefill, and in decoding
 * multiply queries and results by the two halves of the expansion instead ("absorption", arXiv 2405.04434, 2.1.2), so
 * that one kernel runs over the latents as they lie in the cache. */
#include "model/latent.h"

#include "graph/emit.h"
#include "model/mixers.h"

static bool fused(const ft_maker *m) { return ft__fuses(m->work, m->stack->fused_latent_rotary); }

/* Interleaved rotary of a slice: four products, a difference and a sum over halves, one concatenation. */
static ft_ref rotate_pairs(ft_maker *m, ft_ref x, int64_t rows)
{
    ft_build *b = &m->b;
    if (m->arch->position != FT_ROTARY || x == FT_NONE) return x;
    int64_t half = m->arch->rope_dim / 2;
    if (fused(m) || m->engine) return ft__pointwise2(b, FT_AT(ATTN_ROTARY), "mul", x, m->cos);
    ft_ref even = ft__slice(b, x, rows, half), odd = ft__slice(b, x, rows, half);
    ft_ref c = ft__slice(b, m->cos, m->q_len, half), s = ft__slice(b, m->sin, m->q_len, half);
    ft_at at = FT_AT(ATTN_ROTARY);
    ft_ref both[2], left = ft__mul(b, at, even, c), right = ft__mul(b, at, odd, s);
    both[0] = ft__pointwise2(b, at, "sub", left, right);
    left = ft__mul(b, at, odd, c);
    right = ft__mul(b, at, even, s);
    both[1] = ft__add(b, at, left, right);
    return ft__cat(b, at, 2, both, rows, 2 * half);
}

/* A gate beside the queries, of their latent before and behind its norm: axk2. */
static ft_ref gated_queries(ft_maker *m, ft_ref raw, ft_ref normed, int64_t wide, ft_ref *gate)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, cols[2] = {wide, a->heads * a->v_dim};
    ft_ref both[2] = {normed, raw}, part[2];
    ft_ref q = ft__cat(b, FT_AT(ATTN_Q_B_PROJ), 2, both, tokens, 2 * a->q_lora);
    ft__split(b, ft__linear(b, FT_AT(ATTN_Q_B_PROJ), q, cols[0] + cols[1], FT_NO_BIAS, FT_CUT_COLUMNS), 2, cols, part);
    *gate = ft__contiguous(b, FT_AT(ATTN_GATE), part[1]);
    return part[0];
}

/* With an indexer, how many keys a query is left with; 0: all. */
static ft_ref queries(ft_maker *m, ft_ref x, int64_t *best, ft_ref *gate)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t wide = a->heads * (a->nope_dim + a->rope_dim);
    *best = 0;
    *gate = FT_NONE;
    if (a->q_lora <= 0 && a->index_topk > 0) *best = ft__part_indexer(m, x, x); /* mistral_large4 */
    if (a->q_lora <= 0) return ft__linear(b, FT_AT(ATTN_Q_PROJ), x, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_ref q = ft__linear(b, FT_AT(ATTN_Q_A_PROJ), x, a->q_lora, a->qkv_bias ? FT_BIAS : FT_NO_BIAS, FT_WHOLE);
    ft_ref raw = q;
    q = ft__part_norm(m, FT_AT(ATTN_Q_A_NORM), q, FT_RMSNORM, false);
    if (a->index_topk > 0) *best = ft__part_indexer(m, x, q);
    if (a->attn_gate == FT_GATE_IN_QUERIES) return gated_queries(m, raw, q, wide, gate);
    return ft__linear(b, FT_AT(ATTN_Q_B_PROJ), q, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
}

/* Queries, keys and values by Megatron-Core's rotary kernels (graph/build_rotary.c), which have no cache. */
static bool rotates_whole(const ft_maker *m)
{
    return fused(m) && m->arch->rope_dim > 0 && (m->work->task == FT_TRAIN || m->work->task == FT_FORWARD_PASS);
}

/* One kernel over the cached latents, which are keys and values of all heads at once. */
static ft_ref attend_latents(ft_maker *m, ft_ref q, ft_ref latents, ft_ref k_rope, int64_t best)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (b->status != FT_OK) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_ATTENTION, FT_AT(ATTN_ATTEND));
    ft__node_in(&n, q);
    ft__node_in(&n, latents);
    if (k_rope != FT_NONE) ft__node_in(&n, k_rope);
    ft_tensor t = *ft__tensor_of(b, q);
    ft_ref y = ft__node_out(b, &n, m->batch, a->heads * a->kv_lora, t.dtype, t.element_bytes);
    const ft_tensor *cache = ft__tensor_of(b, latents);
    n.op = (ft_op){.kind = FT_OP_MLA, .name = "mla", .dtype = t.dtype};
    n.op.kv_dtype = cache->element_bytes == 1 ? FT_FP8 : cache->dtype;
    n.op.u.mla.batch = m->batch;
    n.op.u.mla.heads = a->heads;
    n.op.u.mla.q_len = 1;
    n.op.u.mla.kv_len = best > 0 && best < m->kv_len ? best : m->kv_len; /* those that an indexer chose */
    n.op.u.mla.kv_lora = a->kv_lora;
    n.op.u.mla.rope_dim = a->rope_dim;
    n.op.u.mla.nope_dim = a->nope_dim;
    n.op.u.mla.v_dim = a->v_dim;
    ft__emit(b, &n);
    return y;
}

static ft_ref absorbed(ft_maker *m, ft_ref q_nope, ft_ref q_rope, ft_ref latents, ft_ref k_rope, int64_t best)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = m->batch * a->heads;
    ft_ref keys = ft__weight(b, "attn.kv_b_proj.keys", a->heads * a->nope_dim, a->kv_lora);
    ft_ref values = ft__weight(b, "attn.kv_b_proj.values", a->heads * a->v_dim, a->kv_lora);
    ft_ref q = ft__matmul(b, FT_AT(ATTN_ABSORB), q_nope, keys, a->heads, m->batch, a->kv_lora, a->nope_dim, "nn");
    ft_ref both[2] = {q, q_rope};
    if (q_rope != FT_NONE) q = ft__cat(b, FT_AT(ATTN_Q_CAT), 2, both, rows, a->kv_lora + a->rope_dim);
    ft_ref y = ft__view(b, attend_latents(m, q, latents, k_rope, best), rows, a->kv_lora, true);
    y = ft__matmul(b, FT_AT(ATTN_EXPAND), y, values, a->heads, m->batch, a->v_dim, a->kv_lora, "nt");
    return ft__view(b, y, m->batch, a->heads * a->v_dim, false);
}

/* The last product, behind a gate where there is one. */
static ft_ref out_product(ft_maker *m, ft_ref x, ft_ref y, ft_ref gate)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->attn_gate != FT_NO_ATTN_GATE) {
        bool each = a->attn_gate == FT_GATE_HEAD; /* one number for each head */
        int64_t rows = m->batch * m->q_len * a->heads;
        if (gate == FT_NONE)
            gate = ft__linear(b, FT_AT(ATTN_GATE), x, a->heads * (each ? 1 : a->v_dim), FT_NO_BIAS, FT_CUT_COLUMNS);
        gate = ft__pointwise(b, FT_AT(ATTN_GATE), "sigmoid", gate);
        if (each) y = ft__view(b, y, rows, a->v_dim, false);
        y = ft__mul(b, FT_AT(ATTN_GATE), y, each ? ft__view(b, gate, rows, 1, false) : gate);
        if (each) y = ft__view(b, y, m->batch * m->q_len, a->heads * a->v_dim, false);
    }
    return ft__linear(b, FT_AT(ATTN_O_PROJ), y, a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
}

/* What attention is given: queries and keys of nope_dim + rope_dim, values; rows stand head by head. */
static ft_ref attend(ft_maker *m, ft_ref x, ft_ref gate, ft_ref q, ft_ref k, ft_ref v, bool v_dense, int64_t best)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft_scores s = {.shape = {.batch = m->batch,
                             .heads = a->heads,
                             .kv_heads = a->heads,
                             .q_len = m->q_len,
                             .kv_len = m->kv_len,
                             .head_dim = a->nope_dim + a->rope_dim,
                             .v_dim = a->v_dim,
                             .causal = m->q_len > 1},
                   .dropout = a->attention_dropout,
                   .scale = true,
                   .mask = m->q_len > 1,
                   .softmax_fp32 = !a->sinks,
                   .eager_only = a->sinks,
                   .sinks = a->sinks,
                   .q_dense = true,
                   .merge = true,
                   .k_dense = true,
                   .v_dense = v_dense};
    if (a->sinks && m->work->attention != FT_SDPA && m->work->attention != FT_EAGER)
        ft__parameter(b, "attn.sinks", 1, a->heads); /* attention that is written out makes its own */
    if (best > 0) ft__attend_topk(m, &s, best);
    ft_ref y = ft__part_attend(m, FT_AT(ATTN_ATTEND), q, k, v, &s);
    return out_product(m, x, y, gate);
}

/* The latent and the rotary key that all heads share, side by side from one product. */
static void latents(ft_maker *m, ft_ref x, ft_ref *c, ft_ref *k_rope)
{
    const ft_arch *a = m->arch;
    ft_ref both = ft__linear(&m->b, FT_AT(ATTN_KV_A_PROJ), x, a->kv_lora + a->rope_dim,
                             a->qkv_bias ? FT_BIAS : FT_NO_BIAS, FT_WHOLE);
    ft_ref part[2] = {both, FT_NONE};
    int64_t cols[2] = {a->kv_lora, a->rope_dim};
    if (a->rope_dim > 0) ft__split(&m->b, both, 2, cols, part);
    *c = ft__part_norm(m, FT_AT(ATTN_KV_A_NORM), part[0], FT_RMSNORM, false);
    *k_rope = part[1];
}

static ft_ref rotated_whole(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t rows = m->batch * m->q_len * a->heads;
    int64_t best;
    ft_ref gate, q = ft__view(b, queries(m, x, &best, &gate), rows, a->nope_dim + a->rope_dim, false), c, k_rope, k, v;
    latents(m, x, &c, &k_rope);
    ft_ref kv = ft__linear(b, FT_AT(ATTN_KV_B_PROJ), c, a->heads * (a->nope_dim + a->v_dim), FT_NO_BIAS,
                           FT_CUT_COLUMNS);
    q = ft__rotate_tail(b, FT_AT(ATTN_ROTARY), q, a->rope_dim);
    ft__rotate_split(b, FT_AT(ATTN_ROTARY), ft__view(b, kv, rows, a->nope_dim + a->v_dim, false), k_rope, a->v_dim, &k,
                     &v);
    return attend(m, x, gate, q, k, v, true, best);
}

ft_ref ft__part_latent_attention(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, dim = a->nope_dim + a->rope_dim, rows = tokens * a->heads;
    ft__module(b, 1);
    if (rotates_whole(m)) return rotated_whole(m, x);
    bool moved =
        !m->stack->fused_projections; /* transformers stands tokens behind heads, Megatron leaves them where they are */
    int64_t best;
    ft_ref gate, q = ft__view(b, queries(m, x, &best, &gate), rows, dim, moved), part[2], c, k_rope;
    int64_t q_cols[2] = {a->nope_dim, a->rope_dim};
    bool turns = a->rope_dim > 0; /* without turned columns nothing is split and joined: glm5_next */
    if (turns) ft__split(b, q, 2, q_cols, part);
    ft_ref q_nope = turns ? part[0] : q, q_rope = turns ? part[1] : FT_NONE;
    latents(m, x, &c, &k_rope);
    q_rope = rotate_pairs(m, q_rope, rows);
    bool absorbs = m->engine && m->q_len == 1;
    ft_ref both[2] = {q_nope, q_rope};
    if (!absorbs && turns) q = ft__cat(b, FT_AT(ATTN_Q_CAT), 2, both, rows, dim);
    k_rope = rotate_pairs(m, k_rope, tokens);

    /* The cache holds the latent and the shared rotary key. */
    c = ft__part_remember(m, c, 1, a->kv_lora);
    if (turns) k_rope = ft__part_remember(m, k_rope, 1, a->rope_dim);
    if (absorbs) return out_product(m, x, absorbed(m, q_nope, q_rope, c, k_rope, best), gate);
    int64_t seen = m->batch * m->kv_len;
    ft_ref kv = ft__linear(b, FT_AT(ATTN_KV_B_PROJ), c, a->heads * (a->nope_dim + a->v_dim), FT_NO_BIAS,
                           FT_CUT_COLUMNS);
    kv = ft__view(b, kv, seen * a->heads, a->nope_dim + a->v_dim, moved);
    int64_t cols[2] = {a->nope_dim, a->v_dim};
    ft__split(b, kv, 2, cols, part);
    if (!turns) return attend(m, x, gate, q, part[0], part[1], false, best);
    ft_ref nope_rope[2] = {part[0], ft__expand(b, k_rope, seen * a->heads, a->rope_dim)};
    if (m->stack->fused_projections) {
        ft_ref k = ft__cat(b, FT_AT(ATTN_K_CAT), 2, nope_rope, seen * a->heads, dim);
        return attend(m, x, gate, q, k, ft__contiguous(b, FT_AT(ATTN_V), part[1]), true, best);
    }
    ft_ref k = ft__assemble(b, FT_AT(ATTN_K_CAT), 2, nope_rope, seen * a->heads, dim);
    return attend(m, x, gate, q, k, part[1], false, best);
}
