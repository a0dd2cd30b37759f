/* layer.c: a layer of a decoder, whatever mixes its tokens and whatever follows that. */
#include "model/layer.h"

#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"

static ft_ref feed_forward(ft_maker *m, ft_ref x, ft_feed feed)
{
    const ft_arch *a = m->arch;
    if (feed == FT_FEED_BESIDE) {
        ft_ref sparse = ft__part_experts(m, x);
        return ft__add(&m->b, FT_AT(MOE_ADD), feed_forward(m, x, FT_FEED_DENSE), sparse);
    }
    if (feed == FT_FEED_EXPERTS) {
        ft_ref y = ft__part_experts(m, x);
        if (!a->attn_experts) return y;
        return ft__add(&m->b, FT_AT(MOE_ADD), y, ft__parameter(&m->b, "experts.bias", 1, a->hidden));
    }
    if (a->mixer == FT_MIX_RWKV) return ft__part_rwkv_feed(m, x);
    return ft__part_mlp(m, x, a->ffn, a->activation, a->gated, a->fused_gate_up, a->mlp_bias ? FT_BIAS : FT_NO_BIAS);
}

static ft_ref mixed(ft_maker *m, ft_ref h, const ft_layer_kind *kind)
{
    if (m->arch->attn_experts) return ft__part_attention_experts(m, h);
    switch (kind->mixer) {
    case FT_MIX_LATENT: return ft__part_latent_attention(m, h);
    case FT_MIX_COMPRESSED: return ft__part_compressed_attention(m, h, kind->compress);
    case FT_MIX_DELTA: return ft__part_delta(m, h);
    case FT_MIX_MAMBA2: return ft__part_mamba2(m, h);
    case FT_MIX_MAMBA: return ft__part_mamba(m, h);
    case FT_MIX_LIGHTNING: return ft__part_lightning(m, h);
    case FT_MIX_CONV: return ft__part_short_conv(m, h);
    case FT_MIX_BOTH: {
        ft_ref state = ft__part_mamba2(m, h);
        return ft__add(&m->b, FT_AT(RESIDUAL), ft__part_self_attention(m, h, kind->windowed, kind->rotated, 0), state);
    }
    case FT_MIX_RECURRENT: return ft__part_recurrent(m, h);
    case FT_MIX_SHARED: return ft__part_mamba2(m, h);
    case FT_MIX_RWKV: return ft__part_rwkv(m, h);
    case FT_MIX_MLSTM: return ft__part_mlstm(m, h);
    case FT_MIX_NEAR: return ft__part_near(m, h);
    case FT_MIX_HASHED: return ft__part_hashed(m, h);
    case FT_MIX_ATTENTION:
    case FT_MIX_NONE: break;
    }
    unsigned manner = (kind->keys_are_values ? FT_KEYS_ARE_VALUES : 0) | (kind->shares_keys ? FT_SHARES_KEYS : 0);
    return ft__part_self_attention(m, h, kind->windowed, kind->rotated, manner);
}

/* A network and experts side by side, each behind norms of its own, then a norm of their sum. */
static ft_ref both_feeds(ft_maker *m, ft_ref x)
{
    const ft_arch *a = m->arch;
    ft_ref y = feed_forward(m, ft__part_norm(m, FT_AT(MLP_NORM), x, a->norm, a->norm_bias), FT_FEED_DENSE);
    y = ft__part_norm(m, FT_AT(MLP_POST_NORM), y, a->norm, a->norm_bias);
    ft_ref z = ft__part_experts(m, ft__part_norm(m, FT_AT(MLP_NORM), x, a->norm, a->norm_bias));
    z = ft__part_norm(m, FT_AT(MLP_POST_NORM), z, a->norm, a->norm_bias);
    return ft__add(&m->b, FT_AT(MOE_ADD), y, z);
}

/* A layer with one half: a norm, the half, the sum. */
static ft_ref half_layer(ft_maker *m, ft_ref x, const ft_layer_kind *kind)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool mixes = kind->mixer != FT_MIX_NONE;
    ft__module(b, 1);
    ft_ref reads = x;
    if (kind->mixer == FT_MIX_SHARED) reads = ft__add(b, FT_AT(RESIDUAL), x, ft__part_shared_block(m, x));
    ft_ref h = ft__part_norm(m, mixes ? FT_AT(ATTN_NORM) : FT_AT(MLP_NORM), reads, a->norm, a->norm_bias);
    ft_ref y = mixes ? mixed(m, h, kind) : feed_forward(m, h, kind->feed);
    if (a->scaled_branches) y = ft__pointwise(b, FT_AT(MLP_MULTIPLIER), "mulu", y);
    return ft__add(b, mixes ? FT_AT(ATTN_RESIDUAL) : FT_AT(MLP_RESIDUAL), x, y);
}

/* Several residual streams: each half reads a weighted sum of them and writes into all. */
static ft_ref hyper_layer(ft_maker *m, ft_ref x, const ft_layer_kind *kind)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft__module(b, 1);
    if (kind->grams) x = ft__add(b, FT_AT(PER_LAYER), x, ft__part_ngrams(m, x));
    for (int half = 0; half < 2; half++) {
        ft_hyper mix = ft__part_hyper_collapse(m, x);
        ft_at at = half ? FT_AT(MLP_NORM) : FT_AT(ATTN_NORM);
        bool normed = a->streams_rank > 0; /* before they were mixed */
        ft_ref h = normed ? mix.collapsed : ft__part_norm(m, at, mix.collapsed, a->norm, a->norm_bias);
        ft_ref y = half ? feed_forward(m, h, kind->feed) : mixed(m, h, kind);
        x = ft__part_hyper_expand(m, x, y, &mix);
    }
    return x;
}

static ft_ref halves(ft_maker *m, ft_ref x, ft_layer_kind kind)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool pre = a->place == FT_PRE_NORM || a->place == FT_SANDWICH;
    bool after = a->place == FT_SANDWICH || a->place == FT_AFTER;
    if (kind.mixer == FT_MIX_NONE || kind.feed == FT_FEED_NONE) return half_layer(m, x, &kind);
    if (a->streams > 1) return hyper_layer(m, x, &kind);
    if (a->altup > 1) return ft__part_altup_layer(m, x, kind.windowed, kind.shares_keys, kind.sparse_gate);
    ft__module(b, 1);
    ft__part_other_modules(m);
    ft_ref h = pre && !kind.start_bare ? ft__part_layer_norm(m, FT_AT(ATTN_NORM), x) : x;
    ft_ref y = mixed(m, h, &kind);
    if (a->stream_convs) y = ft__part_stream_conv(m, y, a->hidden);
    if (after) y = ft__part_norm(m, FT_AT(ATTN_POST_NORM), y, a->norm, a->norm_bias);
    if (a->parallel) {
        ft_ref h2 = a->shared_norm ? h : ft__part_norm(m, FT_AT(MLP_NORM), x, a->norm, a->norm_bias);
        ft_ref z = feed_forward(m, h2, kind.feed);
        y = ft__dropout(b, FT_AT(ATTN_DROPOUT), y, a->residual_dropout);
        z = ft__dropout(b, FT_AT(MLP_DROPOUT), z, a->mlp_dropout);
        return ft__add(b, FT_AT(RESIDUAL), ft__add(b, FT_AT(RESIDUAL), z, y), x);
    }
    y = ft__dropout(b, FT_AT(ATTN_DROPOUT), y, a->residual_dropout);
    if (a->scaled_branches) y = ft__pointwise(b, FT_AT(ATTN_MULTIPLIER), "mulu", y);
    x = ft__part_stream_add(m, FT_AT(ATTN_RESIDUAL), x, y);
    if (a->place == FT_POST_NORM) x = ft__part_norm(m, FT_AT(ATTN_NORM), x, a->norm, a->norm_bias);
    x = ft__part_cross(m, x);
    h = pre && kind.feed != FT_FEED_BOTH ? ft__part_layer_norm(m, FT_AT(MLP_NORM), x) : x;
    y = kind.feed == FT_FEED_BOTH ? both_feeds(m, x) : feed_forward(m, h, kind.feed);
    if (a->stream_convs) y = ft__part_stream_conv(m, y, a->hidden);
    if (after) y = ft__part_norm(m, FT_AT(MLP_POST_NORM), y, a->norm, a->norm_bias);
    y = ft__dropout(b, FT_AT(MLP_DROPOUT), y, a->mlp_dropout);
    if (a->scaled_branches) y = ft__pointwise(b, FT_AT(MLP_MULTIPLIER), "mulu", y);
    x = ft__part_stream_add(m, FT_AT(MLP_RESIDUAL), x, y);
    if (a->per_layer_width > 0) x = ft__part_per_layer(m, x);
    if (a->layer_scalar) x = ft__mul(b, FT_AT(MLP_MULTIPLIER), x, ft__buffer(b, 1, 1, ft_dtype_bytes(b->stored)));
    return a->place == FT_POST_NORM ? ft__part_norm(m, FT_AT(MLP_NORM), x, a->norm, a->norm_bias) : x;
}

/* What attention returns beside its result stays a variable of the layer until that returns. */
ft_ref ft__part_layer(ft_maker *m, ft_ref x, ft_layer_kind kind)
{
    const bool behind = m->arch->cross_behind;
    m->probabilities = FT_NONE;
    if (m->arch->reversible)
        return ft__part_reversible(m, x, kind.mixer == FT_MIX_HASHED ? ft__part_hashed : ft__part_near);
    if (kind.looks && !behind) x = ft__part_cross_layer(m, x);
    x = halves(m, x, kind);
    if (kind.looks && behind) x = ft__part_aligner(m, x);
    if (m->probabilities != FT_NONE) ft__part_held(m, 1, &m->probabilities);
    return x;
}
