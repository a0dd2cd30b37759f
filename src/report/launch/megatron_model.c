/* megatron_model.c: what a model is made of, as flags of Megatron-LM (megatron/training/arguments.py of core_r0.15, and
 * from 0.16 on fields of TransformerConfig, of which its flags are made), and what of it no flag says. */
#include <inttypes.h>
#include <string.h>

#include "model/plan.h"
#include "report/launch/launch.h"
#include "report/launch/megatron.h"

static bool named(const char *activation, const char *name) { return activation && !strcmp(activation, name); }

bool ft__megatron_attends(const ft_arch *a)
{
    for (int64_t i = 0; i < a->layers; i++) {
        ft_mixer mixer = ft__layer_at(a, i).mixer;
        if (mixer != FT_MIX_ATTENTION && mixer != FT_MIX_LATENT) return false;
    }
    return true;
}

/* Which layers have what a list of ones and zeros says. */
typedef bool holds(const ft_arch *a, ft_layer_shape l);
static bool has_experts(const ft_arch *a, ft_layer_shape l) { return a->experts > 0 && l.feed == FT_FEED_EXPERTS; }
static bool has_window(const ft_arch *a, ft_layer_shape l)
{
    (void)a;
    return l.window > 0;
}
static bool is_not_turned(const ft_arch *a, ft_layer_shape l) { return a->position == FT_ROTARY && !l.rotated; }

static bool at(const ft_arch *a, holds *has, int64_t i) { return has(a, ft__layer_at(a, i)); }

static int64_t how_many(const ft_arch *a, holds *has)
{
    int64_t count = 0;
    for (int64_t i = 0; i < a->layers; i++) count += at(a, has, i);
    return count;
}

/* Python's list of them, as Megatron-LM reads it: '([0]*3+[1]*58)', '([1]+[0])*12'. */
static void list(ft_text *out, const char *name, const ft_arch *a, holds *has)
{
    int64_t period = 1;
    for (int64_t i = 0; i < a->layers;) {
        if (a->layers % period == 0 && at(a, has, i) == at(a, has, i % period))
            i++;
        else
            period++, i = 0;
    }
    ft__text_addf(out, "  --%s '(", name);
    for (int64_t i = 0, end; i < period; i = end) {
        for (end = i + 1; end < period && at(a, has, end) == at(a, has, i);) end++;
        ft__text_addf(out, "%s[%d]", i ? "+" : "", at(a, has, i));
        if (end - i > 1) ft__text_addf(out, "*%" PRId64, end - i);
    }
    ft__text_add(out, ")");
    if (period < a->layers) ft__text_addf(out, "*%" PRId64, a->layers / period);
    ft__text_add(out, "' \\\n");
}

static int64_t window_of(const ft_arch *a)
{
    int64_t widest = 0;
    for (int64_t i = 0; i < a->layers; i++) {
        int64_t window = ft__layer_at(a, i).window;
        if (window > widest) widest = window;
    }
    return widest;
}

static void attention(ft_text *out, const ft_arch *a)
{
    ft__megatron_whole(out, "num-attention-heads", a->heads);
    if (a->kv_heads > 0 && a->kv_heads < a->heads) {
        ft__megatron_flag(out, "group-query-attention");
        ft__megatron_whole(out, "num-query-groups", a->kv_heads);
    }
    if (a->kv_lora > 0) {
        ft__megatron_flag(out, "multi-latent-attention");
        if (a->q_lora > 0) ft__megatron_whole(out, "q-lora-rank", a->q_lora);
        ft__megatron_whole(out, "kv-lora-rank", a->kv_lora);
        ft__megatron_whole(out, "qk-head-dim", a->nope_dim);
        ft__megatron_whole(out, "qk-pos-emb-head-dim", a->rope_dim);
        ft__megatron_whole(out, "v-head-dim", a->v_dim);
    }
    if (a->qk_norm == FT_QK_NORM_HEAD || a->kv_lora > 0) ft__megatron_flag(out, "qk-layernorm");
    if (a->qk_norm == FT_QK_NORM_BARE) ft__megatron_flag(out, "qk-l2-norm");
    if (a->kv_lora == 0 && a->head_dim > 0 && a->heads > 0 && a->head_dim * a->heads != a->hidden)
        ft__megatron_whole(out, "kv-channels", a->head_dim);
    if (a->sinks) ft__megatron_word(out, "softmax-type", "learnable");
    int64_t windows = how_many(a, has_window);
    if (windows && !a->chunked) ft__text_addf(out, "  --window-size %" PRId64 ",0 \\\n", window_of(a));
    if (windows && windows < a->layers && !a->chunked) list(out, "window-attn-skip-freq", a, has_window);
}

static void positions(ft_text *out, const ft_arch *a)
{
    if (a->position == FT_ROTARY) ft__megatron_word(out, "position-embedding-type", "rope");
    if (a->position == FT_NO_POSITION) ft__megatron_word(out, "position-embedding-type", "none");
    if (a->rotary_base > 0) ft__text_addf(out, "  --rotary-base %.0f \\\n", a->rotary_base);
    if (a->position != FT_ROTARY || a->kv_lora > 0) return;
    if (a->head_dim > 0 && a->rotary_dim > 0 && a->rotary_dim < a->head_dim)
        ft__text_addf(out, "  --rotary-percent %.6g \\\n", (double)a->rotary_dim / (double)a->head_dim);
    if (a->rotary_interleaved) ft__megatron_flag(out, "rotary-interleaved");
    if (how_many(a, is_not_turned)) list(out, "no-rope-freq", a, is_not_turned);
}

/* Whether products of its networks have a bias. */
static bool biases(const ft_arch *a) { return a->experts > 0 ? a->expert_bias : a->mlp_bias; }

static void network(ft_text *out, const ft_arch *a)
{
    bool rms = a->norm == FT_RMSNORM || a->norm == FT_RMSNORM_WIDE;
    if (rms) ft__megatron_word(out, "normalization", "RMSNorm");
    if (a->norm == FT_LAYERNORM_1P || a->norm_plus_one) ft__megatron_flag(out, "apply-layernorm-1p");
    if (a->gated && named(a->activation, "silu")) ft__megatron_flag(out, "swiglu");
    if (a->gated && named(a->activation, "quick_gelu")) ft__megatron_flag(out, "quick-geglu");
    if (!a->gated && named(a->activation, "relu2")) ft__megatron_flag(out, "squared-relu");
    bool biased = biases(a) || a->out_bias;
    if (!biased) ft__megatron_flag(out, "disable-bias-linear");
    if (!biased && a->qkv_bias) ft__megatron_flag(out, "add-qkv-bias");
    if (!a->tied) ft__megatron_flag(out, "untie-embeddings-and-output-weights");
    /* its own defaults are a tenth each */
    ft__text_addf(out, "  --attention-dropout %g \\\n", a->attention_dropout);
    ft__text_addf(out, "  --hidden-dropout %g \\\n", a->residual_dropout);
}

static void experts(ft_text *out, const ft_arch *a)
{
    int64_t sparse = how_many(a, has_experts);
    if (!sparse) return;
    ft__megatron_whole(out, "num-experts", a->experts);
    ft__megatron_whole(out, "moe-router-topk", a->topk);
    if (sparse < a->layers) list(out, "moe-layer-freq", a, has_experts);
    if (a->moe_ffn > 0) ft__megatron_whole(out, "moe-ffn-hidden-size", a->moe_ffn);
    if (a->shared_ffn > 0) ft__megatron_whole(out, "moe-shared-expert-intermediate-size", a->shared_ffn);
    if (a->router_sigmoid) ft__megatron_word(out, "moe-router-score-function", "sigmoid");
    if (a->router_sigmoid && (a->router_correction || a->routing == FT_ROUTE_CORRECTED || a->expert_groups > 0))
        ft__megatron_flag(out, "moe-router-enable-expert-bias");
    if (a->expert_groups > 1 && a->picked_groups > 0) {
        ft__megatron_whole(out, "moe-router-num-groups", a->expert_groups);
        ft__megatron_whole(out, "moe-router-group-topk", a->picked_groups);
    }
    ft__megatron_flag(out, "moe-grouped-gemm");
}

void ft__megatron_model(ft_text *out, const ft_arch *a, int64_t mtp)
{
    ft__megatron_whole(out, "num-layers", a->layers);
    ft__megatron_whole(out, "hidden-size", a->hidden);
    ft__megatron_whole(out, "ffn-hidden-size", a->ffn);
    attention(out, a);
    positions(out, a);
    network(out, a);
    experts(out, a);
    if (mtp > 0) ft__megatron_whole(out, "mtp-num-layers", mtp);
}

/* Layers that differ in their widths or heads, or in how far their windows reach. */
static bool uneven(const ft_arch *a)
{
    for (int32_t i = 0; i < a->kind_count; i++) {
        const ft_layer_shape *l = &a->kinds[i];
        if (l->heads || l->kv_heads || l->head_dim || l->ffn || l->moe_ffn || l->topk || l->shared_ffn) return true;
        if (l->mixer == FT_MIX_NONE || l->feed == FT_FEED_NONE || l->shares_keys || l->keys_are_values) return true;
        if (l->window > 0 && l->window != window_of(a)) return true;
    }
    return false;
}

static bool own_activation(const ft_arch *a)
{
    bool gelu = a->activation && strstr(a->activation, "gelu");
    if (a->gate_limits || a->gate_soft) return true;
    if (a->gated) return !named(a->activation, "silu") && !named(a->activation, "quick_gelu");
    return !gelu && !named(a->activation, "relu2");
}

void ft__megatron_lacks(ft_text *out, const ft_arch *a)
{
    bool bare = a->norm == FT_LAYERNORM_BARE || a->norm == FT_RMSNORM_BARE;
    bool norms = a->qk_norm == FT_QK_NORM_OWN || a->qk_norm == FT_QK_NORM_FULL;
    const struct {
        bool is;
        const char *what;
    } all[] = {
        {a->tower_layers > 0 || a->ear_layers > 0, "what sees or hears"},
        {uneven(a), "layers that differ from each other"},
        {own_activation(a), "its activation"},
        {bare, "norms without weights"},
        {a->place != FT_PRE_NORM, "norms behind attention and network"},
        {a->parallel, "attention and network side by side"},
        {a->embed_norm, "the embedding's norm"},
        {a->position == FT_ALIBI || a->position == FT_RELATIVE || a->position == FT_SINUSOIDAL, "its positions"},
        {norms, "norms over all queries and keys"},
        {a->chunked && a->window > 0, "attention in chunks"},
        {a->attention_softcap > 0 || a->logit_softcap > 0, "capped scores and logits"},
        {a->embed_scale != 1 && a->embed_scale != 0, "the embedding's factor"},
        {a->scaled_branches || a->scaled_logits || a->scaled_head, "factors of branches and logits"},
        {a->attn_gate != FT_NO_ATTN_GATE, "attention's gate"},
        {a->index_topk > 0 || a->index_blocks > 0, "the indexer of sparse attention"},
        {biases(a) != a->out_bias || (biases(a) && !a->qkv_bias), "which products have a bias"},
        {a->experts > 0 && (a->shared_gate || a->expert_plain != !a->gated), "how its experts are gated"},
        {a->streams > 1 || a->altup > 0 || a->per_layer_width > 0 || a->residual_blocks > 0, "its residual streams"},
        {a->layers_shared || a->layer_runs > 1 || a->shared_blocks > 0, "layers that share weights"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].is) ft__text_addf(out, "%s%s", out->length ? "; " : "", all[i].what);
}
