/* transformer.c: decoder-only language models, from gpt2 to gpt_oss, as transformers launches them. */
#include "graph/emit.h"
#include "model/latent.h"
#include "model/mixers.h"
#include "model/parts.h"
#include "model/plan.h"
#include "model/relative.h"

/* -- layers ------------------------------------------------------------------------------------ */

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

/* What layers of one model differ in. */
typedef struct ft_layer_kind {
    ft_mixer mixer;
    ft_feed feed;
    bool windowed, rotated, keys_are_values, shares_keys, sparse_gate, start_bare;
    bool grams;
    bool looks; /* behind a layer that looks at what an encoder made */
    int64_t compress;
} ft_layer_kind;

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
static ft_ref layer(ft_maker *m, ft_ref x, ft_layer_kind kind)
{
    m->probabilities = FT_NONE;
    if (kind.looks) x = ft__part_cross_layer(m, x);
    x = halves(m, x, kind);
    if (m->probabilities != FT_NONE) ft__part_held(m, 1, &m->probabilities);
    return x;
}

static ft_layer_kind kind_at(const ft_arch *a, int64_t i)
{
    ft_layer_shape l = ft__layer_at(a, i);
    return (ft_layer_kind){.mixer = l.mixer,
                           .feed = l.feed,
                           .windowed = l.window > 0,
                           .rotated = l.rotated,
                           .looks = a->cross_every > 0 && i % a->cross_every == 0};
}

/* Layer number `i`, counted behind the leading dense ones. */
static ft_layer_kind kind_of(const ft_arch *a, int64_t i)
{
    return kind_at(a, i + (a->experts > 0 ? a->first_dense : 0));
}

static bool equal(ft_layer_kind x, ft_layer_kind y)
{
    return x.feed == y.feed && x.windowed == y.windowed && x.rotated == y.rotated && x.looks == y.looks;
}

/* A pattern as runs of equal layers, for checkpoints, FSDP's units and pipelines, whose measure is the layer. */
static ft_ref runs(ft_maker *m, ft_ref x, const ft_block_info *at, int64_t from, int64_t count)
{
    ft_build *b = &m->b;
    for (int64_t to; from < count && b->status == FT_OK; from = to) {
        ft_layer_kind kind = kind_of(m->arch, from);
        for (to = from + 1; to < count && equal(kind_of(m->arch, to), kind);) to++;
        x = ft__block_open(b, at, to - from, x);
        x = ft__block_close(b, layer(m, x, kind));
    }
    return x;
}

/* -- layers that a plan says one by one ----------------------------------------------------------- */

/* Parts read the architecture: for one layer it is that layer's. */
static ft_ref shaped(ft_maker *m, ft_ref x, const ft_layer_shape *l)
{
    const ft_arch *whole = m->arch;
    ft_arch own;
    ft__layer_arch(whole, l, &own);
    ft_layer_kind kind = {.mixer = l->mixer,
                          .feed = l->feed,
                          .windowed = l->window > 0,
                          .rotated = l->rotated,
                          .keys_are_values = l->keys_are_values,
                          .shares_keys = l->shares_keys,
                          .sparse_gate = l->sparse_gate,
                          .grams = l->grams,
                          .start_bare = l->start_bare,
                          .compress = l->compress};
    m->arch = &own;
    x = layer(m, x, kind);
    m->arch = whole;
    return x;
}

static ft_ref planned(ft_maker *m, ft_ref x, int64_t i) { return shaped(m, x, &m->arch->kinds[m->arch->order[i]]); }

ft_ref ft__part_mtp_layer(ft_maker *m, ft_ref x)
{
    const ft_arch *a = m->arch;
    if (a->mtp_said) return shaped(m, x, &a->mtp);
    if (a->kind_count > 0) return planned(m, x, a->layers - 1);
    int64_t dense = a->experts > 0 ? a->first_dense : 0;
    return layer(m, x, kind_of(a, a->layers > dense ? a->layers - dense - 1 : 0));
}

static ft_ref planned_runs(ft_maker *m, ft_ref x, const ft_block_info *at, int64_t from, int64_t to)
{
    const uint8_t *order = m->arch->order;
    for (int64_t end; from < to && m->b.status == FT_OK; from = end) {
        for (end = from + 1; end < to && order[end] == order[from];) end++;
        x = ft__block_open(&m->b, at, end - from, x);
        x = ft__block_close(&m->b, planned(m, x, from));
    }
    return x;
}

static ft_ref planned_layers(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    int64_t count = m->arch->layers;
    ft_rhythm how = ft__plan_rhythm(m->arch);
    bool apart = m->work->layers_apart || (b->training && ft__recomputes_layers(m->work));
    if (apart || how.times < 1) return planned_runs(m, x, FT_BLOCK(LAYERS), 0, count);
    x = planned_runs(m, x, FT_BLOCK(LAYERS_DENSE), 0, how.before);
    x = ft__block_open(b, FT_BLOCK(LAYERS), how.times, x);
    for (int64_t i = 0; i < how.period && b->status == FT_OK; i++) x = planned(m, x, how.before + i);
    x = ft__block_close(b, x);
    return planned_runs(m, x, FT_BLOCK(LAYERS_LAST), how.before + how.times * how.period, count);
}

/* Layers that repeat as a pattern become one block of that pattern. */
ft_ref ft__part_layers(ft_maker *m, ft_ref x)
{
    enum { MOST_RUNS = 256 };
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->kind_count > 0) return planned_layers(m, x);
    int64_t dense = a->experts > 0 ? (a->first_dense < a->layers ? a->first_dense : a->layers) : 0;
    if (dense > 0) {
        x = ft__block_open(b, FT_BLOCK(LAYERS_DENSE), dense, x);
        x = ft__block_close(b, layer(m, x, kind_at(a, 0)));
    }
    int64_t rest = a->layers - dense, period = ft__plan_period(a, rest);
    if (b->training && a->free_layers > 0 && a->free_layers < rest && period == 1) {
        b->copies = rest / (a->layer_runs > 1 ? a->layer_runs : 1);
        b->untracked = true;
        x = ft__block_open(b, FT_BLOCK(LAYERS_FREE), a->free_layers, x);
        x = ft__block_close(b, layer(m, x, kind_of(a, 0)));
        b->untracked = false;
        rest -= a->free_layers;
    }
    bool apart = m->work->layers_apart || (b->training && ft__recomputes_layers(m->work));
    /* Not OLMo 3's, whose products read the layer's input itself: its lifetime over runs is not understood yet. */
    if (apart && period > 1 && rest <= MOST_RUNS && a->place != FT_AFTER) return runs(m, x, FT_BLOCK(LAYERS), 0, rest);
    int64_t whole = rest / period;
    int64_t again = m->work->recompute_layers / period;
    bool some = b->training && again > 0 && again < whole && m->work->recompute == FT_RECOMPUTE_FULL;
    for (int part = 0; part < (some ? 2 : 1) && whole > 0; part++) { /* those that run again first, as Megatron's */
        x = ft__block_open(b, FT_BLOCK(LAYERS), !some ? whole : part ? whole - again : again, x);
        for (int64_t i = 0; i < period && b->status == FT_OK; i++) x = layer(m, x, kind_of(a, i));
        if (part && b->status == FT_OK) b->g->blocks[b->block].kept = true;
        x = ft__block_close(b, x);
    }
    return runs(m, x, FT_BLOCK(LAYERS_LAST), whole * period, rest);
}

/* -- the whole --------------------------------------------------------------------------------- */

/* Positions, packing checks and masks: a dozen small kernels and one synchronisation before the first layer. */
static void prepare(ft_maker *m)
{
    ft_build *b = &m->b;
    bool training = b->training;
    b->training = false;
    ft_ref positions = ft__input(b, m->batch, m->q_len, 8);
    ft_ref p = ft__pointwise(b, FT_AT(POSITIONS), "addu", positions);
    if (m->work->task == FT_TRAIN || m->work->task == FT_FORWARD_PASS) {
        for (int i = 0; i < 4; i++) p = ft__pointwise(b, FT_AT(MASK), "addu", p);
        ft__sync(b, FT_AT(MASK));
    }
    m->mask = FT_NONE;
    if ((m->work->attention == FT_EAGER || m->arch->no_sdpa) && ft__attends(m->arch)) {
        ft_ref full = ft__activation(b, m->batch * m->q_len, m->kv_len, b->stored);
        m->mask = ft__pointwise(b, FT_AT(MASK), "addu", full);
    }
    b->training = training;
}

/* Older blocks return their attention's probabilities beside their result: those of the layer before live on while a
 * layer runs. A tensor made before the layers and named after them stands for it. */
static ft_ref returned_before(ft_maker *m)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (b->training || !a->scores_returned || a->layers < 2) return FT_NONE;
    ft_node n = ft__node_of(FT_DO_OTHER, FT_AT(ATTN_VARIABLES));
    ft_dtype low = b->stored;
    ft_ref out = ft__node_out(b, &n, m->batch * a->heads * m->q_len, m->kv_len, low, ft_dtype_bytes(low));
    ft__emit(b, &n);
    return out;
}

static ft_ref words(ft_maker *m, ft_ref tokens, ft_ref seen, int64_t width, ft_ref *table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool frozen = ft__part_thaw_table(m, a->vocab, width);
    ft_ref x = ft__embedding(b, FT_AT(EMBED_TOKENS), tokens, a->vocab, width, table);
    b->frozen = frozen;
    if (a->scaled_branches || (a->embed_scale != 0 && a->embed_scale != 1))
        x = ft__pointwise(b, FT_AT(EMBED_SCALE), "mulu", x);
    /* Where the sequence has places for them: a mask as wide as the stream, and a masked scatter. */
    if (seen == FT_NONE) return x;
    ft__no_grad_kernels(b, FT_AT(EMBED_TOKENS), "compare", FT_NONE, m->batch * m->q_len, width, 1, 2);
    return ft__scatter(b, FT_AT(EMBED_TOKENS), x, seen, 0, false, false);
}

void ft__make_transformer(ft_maker *m)
{
    enum { MOST_PREFIX = 1 << 20 };
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool steps = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    if (a->bidirectional && steps) {
        ft__build_fail(b, FT_E_UNSUPPORTED, "%s reads a sequence at once and keeps no cache: ask for \"forward\"",
                       a->model_type);
        return;
    }
    if (a->bytes.group > 0) ft__make_bytes(m);
    if (a->bytes.group > 0) return;
    b->conv1d = a->conv1d;
    ft__part_source(m);
    ft_ref seen = a->tower_layers > 0 && !a->tower_source ? ft__part_tower(m) : FT_NONE;
    if (a->ear_layers > 0) ft__part_audio_weights(m);
    ft_ref table = FT_NONE;
    if (a->merged) seen = ft__part_encode_before(m, seen, &table);
    if (a->canvas > 0) seen = ft__part_prompt_before(m, seen, &table);
    if (a->prefix > MOST_PREFIX)
        ft__build_fail(b, FT_E_RANGE, "a prompt of %lld learned tokens is beyond any machine", (long long)a->prefix);
    if (b->status != FT_OK) return;
    if (m->work->task != FT_DECODE) m->q_len += a->prefix;
    m->kv_len += a->prefix;
    ft__block_open(b, FT_BLOCK(EMBED), 1, FT_NONE);
    ft_ref tokens = ft__input(b, m->batch, m->q_len, 8);
    int64_t width = a->embed_width ? a->embed_width : a->hidden;
    ft_ref x = a->draft_width > 0 ? ft__part_draft_open(m, &table) : words(m, tokens, seen, width, &table);
    if (a->canvas > 0) x = ft__part_conditioned(m, x);
    prepare(m);
    if (a->position == FT_LEARNED_POSITION) {
        ft_ref places = ft__input(b, 1, m->q_len, 8), positions = FT_NONE;
        int64_t rows = a->position_rows > 0 ? a->position_rows : a->max_position;
        ft_ref p = ft__embedding(b, FT_AT(EMBED_POSITIONS), places, rows, a->hidden, &positions);
        if (a->embed_width && a->embed_width != a->hidden)
            x = ft__linear(b, FT_AT(EMBED_PROJECT_IN), x, a->hidden, FT_NO_BIAS, FT_WHOLE);
        x = ft__add(b, FT_AT(EMBED_POSITIONS), x, p);
    }
    if (a->embed_norm) x = ft__part_norm(m, FT_AT(EMBED_NORM), x, a->norm, a->norm_bias);
    x = ft__dropout(b, FT_AT(EMBED_DROPOUT), x, a->embed_dropout);
    if (a->position == FT_ROTARY)
        ft__part_rotary_tables(m, a->kv_lora > 0 ? a->rope_dim : a->rotary_dim > 0 ? a->rotary_dim : a->head_dim);
    if (a->per_layer_width > 0) ft__part_per_layer_inputs(m, tokens, x);
    if (a->altup > 1) x = ft__part_altup_open(m, x);
    ft__part_shared_open(m, x);
    ft__part_unused_weights(m);
    x = ft__part_stream_open(m, x);
    if (a->streams > 1) x = ft__copy(b, FT_AT(HYPER), x, m->batch * m->q_len, a->streams * a->hidden);
    ft__module(b, 2);
    ft_ref before = returned_before(m);
    x = ft__block_close(b, x);
    b->runs_each = a->layer_runs;
    x = ft__part_layers(m, x);
    b->runs_each = b->copies = 0;
    x = ft__block_open(b, FT_BLOCK(HEAD), 1, x);
    if (before != FT_NONE) ft__part_held(m, 1, &before);
    b->conv1d = false;
    if (a->prefix > 0 && m->work->task != FT_DECODE) {
        m->q_len -= a->prefix;
        x = ft__contiguous(b, FT_AT(HEAD), ft__slice(b, x, m->batch * m->q_len, a->hidden));
    }
    x = ft__part_logits(m, x, table, width);
    ft__block_close(b, x);
}
