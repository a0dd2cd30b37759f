/* encoder.c: models with an encoder: bert, roberta, distilbert, t5, mt5, switch_transformers, whisper. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "import/config/type.h"

/* -- bert ----------------------------------------------------------------------------------------- */

static const ft_config_key bert_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, hidden, "hidden_size", NULL),
    FT_KEY(LAYERS, layers, "num_hidden_layers", NULL),
    FT_KEY(SIZE, heads, "num_attention_heads", NULL),
    FT_KEY(SIZE, ffn, "intermediate_size", NULL),
    FT_KEY(ACTIVATION, activation, "hidden_act", NULL),
    FT_KEY(SHARE, embed_dropout, "hidden_dropout_prob", NULL),
    FT_KEY(SHARE, residual_dropout, "hidden_dropout_prob", NULL),
    FT_KEY(SHARE, mlp_dropout, "hidden_dropout_prob", NULL),
    FT_KEY(SHARE, attention_dropout, "attention_probs_dropout_prob", NULL),
    FT_KEY(SIZE, max_position, "max_position_embeddings", NULL),
    FT_KEY(MAYBE, token_types, "type_vocab_size", NULL),
    FT_KEY(FLAG, causal, "is_decoder", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_END,
};

#define BERT_SIZES                                                                                                  \
    .design = FT_ENCODER_ONLY, .hidden = 768, .heads = 12, .ffn = 3072, .activation = "gelu", .embed_dropout = 0.1, \
    .residual_dropout = 0.1, .mlp_dropout = 0.1, .attention_dropout = 0.1, .token_types = 2, .max_position = 512,   \
    .qkv_bias = true, .key_bias = true, .out_bias = true, .mlp_bias = true, .head_bias = true, .tied = true,        \
    .norm = FT_LAYERNORM, .norm_bias = true, .place = FT_POST_NORM, .embed_norm = true,                             \
    .position = FT_LEARNED_POSITION, .embed_scale = 1, .score_scale = true, .mlm_head = true

static ft_status finish_bert(const ft_reading *r, ft_arch *a)
{
    bool crossed = false;
    (void)a;
    FT_TRY(ft__config_flag(r, "add_cross_attention", &crossed));
    if (!crossed) return FT_OK;
    return ft__config_fail(r, FT_E_UNSUPPORTED, "add_cross_attention",
                           "cross-attention layers need the other model "
                           "too, which this config does not describe");
}

static const ft_arch bert = {BERT_SIZES, .vocab = 30522, .layers = 12};
const ft_config_type ft__config_bert = {.preset = &bert, .keys = {bert_keys}, .finish = finish_bert};

/* Positions come from the padding mask and begin behind the padding index: the same work. */
static const ft_arch roberta = {BERT_SIZES, .vocab = 50265, .layers = 12, .counted_positions = true};
const ft_config_type ft__config_roberta = {.preset = &roberta, .keys = {bert_keys}, .finish = finish_bert};
static const ft_arch xlm_roberta = {BERT_SIZES, .vocab = 30522, .layers = 12, .counted_positions = true};
const ft_config_type ft__config_xlm_roberta = {.preset = &xlm_roberta, .keys = {bert_keys}, .finish = finish_bert};

static const ft_config_key distilbert_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, hidden, "dim", "hidden_size"),
    FT_KEY(LAYERS, layers, "n_layers", "num_hidden_layers"),
    FT_KEY(SIZE, heads, "n_heads", "num_attention_heads"),
    FT_KEY(SIZE, ffn, "hidden_dim", NULL),
    FT_KEY(ACTIVATION, activation, "activation", NULL),
    FT_KEY(SHARE, embed_dropout, "dropout", NULL),
    FT_KEY(SHARE, mlp_dropout, "dropout", NULL),
    FT_KEY(SHARE, attention_dropout, "attention_dropout", NULL),
    FT_KEY(SIZE, max_position, "max_position_embeddings", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_END,
};

/* Bert without segments, without a pooler and without dropout behind attention. */
static ft_status finish_distilbert(const ft_reading *r, ft_arch *a)
{
    (void)r;
    a->token_types = 0;
    a->residual_dropout = 0;
    return FT_OK;
}

static const ft_arch distilbert = {BERT_SIZES, .vocab = 30522, .layers = 6};
const ft_config_type ft__config_distilbert = {
    .preset = &distilbert, .keys = {distilbert_keys}, .finish = finish_distilbert};

/* -- t5 ------------------------------------------------------------------------------------------- */

static const ft_config_key t5_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, hidden, "d_model", "hidden_size"),
    FT_KEY(SIZE, head_dim, "d_kv", "head_dim"),
    FT_KEY(SIZE, ffn, "d_ff", NULL),
    FT_KEY(LAYERS, layers, "num_layers", "num_hidden_layers"),
    FT_KEY(MAYBE, decoder_layers, "num_decoder_layers", NULL),
    FT_KEY(SIZE, heads, "num_heads", "num_attention_heads"),
    FT_KEY(SIZE, relative_buckets, "relative_attention_num_buckets", NULL),
    FT_KEY(SIZE, max_position, "n_positions", NULL),
    FT_KEY(SHARE, embed_dropout, "dropout_rate", NULL),
    FT_KEY(SHARE, attention_dropout, "dropout_rate", NULL),
    FT_KEY(SHARE, residual_dropout, "dropout_rate", NULL),
    FT_KEY(SHARE, mlp_dropout, "dropout_rate", NULL),
    FT_KEY(SHARE, activation_dropout, "dropout_rate", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_END,
};

/* "gated-gelu" is a gate through gelu_new; "relu" has none. Switch's key is dense_act_fn. */
static ft_status read_feed_forward(const ft_reading *r, ft_arch *a)
{
    static const char gated[] = "gated-";
    const char *kind = NULL, *act = NULL;
    FT_TRY(ft__json_string(r->config, "feed_forward_proj", FT_OPTIONAL, &kind, r->where, r->err));
    FT_TRY(ft__json_string(r->config, "dense_act_fn", FT_OPTIONAL, &act, r->where, r->err));
    if (kind) {
        a->gated = !strncmp(kind, gated, sizeof gated - 1);
        const char *name = a->gated ? kind + sizeof gated - 1 : kind;
        if (a->gated && !strcmp(name, "gelu")) name = "gelu_new";
        FT_TRY(ft__config_activation(r, "feed_forward_proj", name, &a->activation));
    } else if (act) {
        FT_TRY(ft__config_activation(r, "dense_act_fn", act, &a->activation));
    }
    return FT_OK;
}

static ft_status finish_t5(const ft_reading *r, ft_arch *a)
{
    FT_TRY(read_feed_forward(r, a));
    if (!a->decoder_layers) a->decoder_layers = a->layers;
    if (a->decoder_layers > 1000000)
        return ft__config_fail(r, FT_E_RANGE, "num_decoder_layers", "\"num_decoder_layers\" must be at most 10^6");
    return FT_OK;
}

#define T5_LIKE                                                                                                      \
    .design = FT_ENCODER_DECODER, .head_dim = 64, .relative_buckets = 32, .max_position = 512, .embed_dropout = 0.1, \
    .attention_dropout = 0.1, .residual_dropout = 0.1, .mlp_dropout = 0.1, .activation_dropout = 0.1,                \
    .norm = FT_RMSNORM, .final_norm = true, .position = FT_RELATIVE, .tied = true, .embed_scale = 1, .lm_head = true

static const ft_arch t5 = {T5_LIKE,     .vocab = 32128, .hidden = 512,       .ffn = 2048,
                           .layers = 6, .heads = 8,     .activation = "relu"};
const ft_config_type ft__config_t5 = {.preset = &t5, .keys = {t5_keys}, .finish = finish_t5};

static const ft_arch mt5 = {T5_LIKE,    .vocab = 250112,          .hidden = 512, .ffn = 1024, .layers = 8,
                            .heads = 6, .activation = "gelu_new", .gated = true};
const ft_config_type ft__config_mt5 = {.preset = &mt5, .keys = {t5_keys}, .finish = finish_t5};

/* -- switch_transformers: t5 with experts in every few layers, one expert a token, a loop over them ----- */

static const ft_config_key switch_keys[] = {
    FT_KEY(SIZE, experts, "num_experts", NULL),
    FT_KEY(SIZE, expert_capacity, "expert_capacity", NULL),
    FT_KEY(MAYBE, sparse_encoder_layers, "num_sparse_encoder_layers", NULL),
    FT_KEY(MAYBE, sparse_decoder_layers, "num_sparse_decoder_layers", NULL),
    FT_KEY(FLAG, router_bias, "router_bias", NULL),
    FT_KEY_END,
};

static ft_status finish_switch(const ft_reading *r, ft_arch *a)
{
    const char *router = NULL;
    FT_TRY(finish_t5(r, a));
    a->gated = false; /* the library has no gated experts, whatever the config says */
    FT_TRY(ft__json_string(r->config, "router_dtype", FT_OPTIONAL, &router, r->where, r->err));
    if (router) a->router_fp32 = !strcmp(router, "float32");
    if (a->sparse_encoder_layers > a->layers)
        return ft__config_fail(r, FT_E_RANGE, "num_sparse_encoder_layers", "%" PRId64 " sparse layers of %" PRId64,
                               a->sparse_encoder_layers, a->layers);
    if (a->sparse_decoder_layers > a->decoder_layers)
        return ft__config_fail(r, FT_E_RANGE, "num_sparse_decoder_layers", "%" PRId64 " sparse layers of %" PRId64,
                               a->sparse_decoder_layers, a->decoder_layers);
    return FT_OK;
}

static const ft_arch switch_transformers = {T5_LIKE,
                                            .vocab = 32128,
                                            .ffn = 2048,
                                            .activation = "relu",
                                            .hidden = 768,
                                            .layers = 12,
                                            .decoder_layers = 12,
                                            .heads = 12,
                                            .experts = 8,
                                            .topk = 1,
                                            .expert_capacity = 64,
                                            .sparse_encoder_layers = 3,
                                            .sparse_decoder_layers = 3,
                                            .router_fp32 = true,
                                            .expert_loop = true,
                                            .no_sdpa = true};
const ft_config_type ft__config_switch_transformers = {
    .preset = &switch_transformers, .keys = {t5_keys, switch_keys}, .finish = finish_switch};

/* -- whisper -------------------------------------------------------------------------------------- */

static const ft_config_key whisper_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, hidden, "d_model", "hidden_size"),
    FT_KEY(LAYERS, layers, "encoder_layers", "num_hidden_layers"),
    FT_KEY(LAYERS, decoder_layers, "decoder_layers", NULL),
    FT_KEY(SIZE, heads, "encoder_attention_heads", "num_attention_heads"),
    FT_KEY(SIZE, ffn, "encoder_ffn_dim", NULL),
    FT_KEY(SIZE, mel_bins, "num_mel_bins", NULL),
    FT_KEY(SIZE, max_source, "max_source_positions", NULL),
    FT_KEY(SIZE, max_target, "max_target_positions", NULL),
    FT_KEY(ACTIVATION, activation, "activation_function", NULL),
    FT_KEY(SHARE, embed_dropout, "dropout", NULL),
    FT_KEY(SHARE, residual_dropout, "dropout", NULL),
    FT_KEY(SHARE, mlp_dropout, "dropout", NULL),
    FT_KEY(SHARE, attention_dropout, "attention_dropout", NULL),
    FT_KEY(SHARE, activation_dropout, "activation_dropout", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_END,
};
/* The decoder's own sizes, read into a copy: one builder serves both stacks. */
static const ft_config_key whisper_decoder_keys[] = {
    FT_KEY(SIZE, heads, "decoder_attention_heads", NULL),
    FT_KEY(SIZE, ffn, "decoder_ffn_dim", NULL),
    FT_KEY_END,
};

static ft_status finish_whisper(const ft_reading *r, ft_arch *a)
{
    ft_arch decoder = *r->type->preset;
    bool scaled = false;
    FT_TRY(ft__config_keys(r, whisper_decoder_keys, &decoder));
    FT_TRY(ft__config_flag(r, "scale_embedding", &scaled));
    if (decoder.heads != a->heads)
        return ft__config_fail(r, FT_E_UNSUPPORTED, "decoder_attention_heads",
                               "%" PRId64 " heads in the decoder beside %" PRId64 " in the encoder: only equal stacks "
                               "are supported",
                               decoder.heads, a->heads);
    if (decoder.ffn != a->ffn)
        return ft__config_fail(r, FT_E_UNSUPPORTED, "decoder_ffn_dim",
                               "%" PRId64 " in the decoder beside %" PRId64 " in the encoder: only equal stacks are "
                               "supported",
                               decoder.ffn, a->ffn);
    if (scaled) a->embed_scale = sqrt((double)a->hidden);
    a->max_position = a->position_rows = a->max_target;
    return FT_OK;
}

/* Queries are scaled right behind their product, so that the scores are not. */
static const ft_arch whisper = {.design = FT_SPEECH,
                                .vocab = 51865,
                                .hidden = 384,
                                .layers = 4,
                                .decoder_layers = 4,
                                .heads = 6,
                                .ffn = 1536,
                                .mel_bins = 80,
                                .max_source = 1500,
                                .max_target = 448,
                                .activation = "gelu",
                                .qkv_bias = true,
                                .out_bias = true,
                                .mlp_bias = true,
                                .norm = FT_LAYERNORM,
                                .norm_bias = true,
                                .final_norm = true,
                                .position = FT_LEARNED_POSITION,
                                .tied = true,
                                .embed_scale = 1,
                                .lm_head = true};
const ft_config_type ft__config_whisper = {.preset = &whisper, .keys = {whisper_keys}, .finish = finish_whisper};
