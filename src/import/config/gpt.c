/* gpt.c: the GPT-2 line: gpt2, gpt_bigcode, gpt_neo, gpt_neox, gptj, codegen, opt, bloom, falcon, mpt.
 *
 * Flags follow what each implementation launches per layer in eager mode (transformers 5.x): where scores are computed
 * in fp32, which products are one, what is added in parallel. */
#include "base/json.h"
#include "import/config/type.h"

#define GPT_LIKE                                                                                           \
    .design = FT_DECODER_ONLY, .causal = true, .norm = FT_LAYERNORM, .final_norm = true, .embed_scale = 1, \
    .loss_fp32 = true, .lm_head = true
#define ALL_BIASES .qkv_bias = true, .key_bias = true, .out_bias = true, .mlp_bias = true

/* -- gpt2 ----------------------------------------------------------------------------------------- */

static const ft_config_key gpt2_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, max_position, "n_positions", "max_position_embeddings"),
    FT_KEY(SIZE, hidden, "n_embd", "hidden_size"),
    FT_KEY(LAYERS, layers, "n_layer", "num_hidden_layers"),
    FT_KEY(SIZE, heads, "n_head", "num_attention_heads"),
    FT_KEY(MAYBE, ffn, "n_inner", "intermediate_size"),
    FT_KEY(ACTIVATION, activation, "activation_function", NULL),
    FT_KEY(SHARE, residual_dropout, "resid_pdrop", NULL),
    FT_KEY(SHARE, mlp_dropout, "resid_pdrop", NULL),
    FT_KEY(SHARE, embed_dropout, "embd_pdrop", NULL),
    FT_KEY(SHARE, attention_dropout, "attn_pdrop", NULL),
    FT_KEY(FLAG, score_scale, "scale_attn_weights", NULL),
    FT_KEY(FLAG, scores_fp32, "reorder_and_upcast_attn", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_END,
};

#define GPT2_SIZES                                                                                                   \
    .vocab = 50257, .max_position = 1024, .hidden = 768, .layers = 12, .heads = 12, .position = FT_LEARNED_POSITION, \
    .norm_bias = true, .tied = true, .residual_dropout = 0.1, .mlp_dropout = 0.1, .embed_dropout = 0.1,              \
    .attention_dropout = 0.1, .score_scale = true, .fused_qkv = true

static const ft_arch gpt2 = {GPT_LIKE, ALL_BIASES, GPT2_SIZES, .activation = "gelu_new", .conv1d = true};
const ft_config_type ft__config_gpt2 = {.preset = &gpt2, .keys = {gpt2_keys}};

/* Santacoder and Starcoder: gpt2 with ordinary linears and one key and value for all heads. */
static ft_status finish_bigcode(const ft_reading *r, ft_arch *a)
{
    bool one = true;
    FT_TRY(ft__config_flag(r, "multi_query", &one));
    a->kv_heads = one ? 1 : a->heads;
    return FT_OK;
}

static const ft_arch gpt_bigcode = {GPT_LIKE, ALL_BIASES, GPT2_SIZES, .activation = "gelu_pytorch_tanh",
                                    .softmax_fp32 = true};
const ft_config_type ft__config_gpt_bigcode = {.preset = &gpt_bigcode, .keys = {gpt2_keys}, .finish = finish_bigcode};

/* -- gpt_neo: every second layer local, which only masks ------------------------------------------- */

static const ft_config_key gpt_neo_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, max_position, "max_position_embeddings", NULL),
    FT_KEY(SIZE, hidden, "hidden_size", NULL),
    FT_KEY(LAYERS, layers, "num_layers", "num_hidden_layers"),
    FT_KEY(SIZE, heads, "num_heads", "num_attention_heads"),
    FT_KEY(MAYBE, ffn, "intermediate_size", NULL),
    FT_KEY(MAYBE, window, "window_size", NULL),
    FT_KEY(ACTIVATION, activation, "activation_function", NULL),
    FT_KEY(SHARE, residual_dropout, "resid_dropout", NULL),
    FT_KEY(SHARE, mlp_dropout, "resid_dropout", NULL),
    FT_KEY(SHARE, embed_dropout, "embed_dropout", NULL),
    FT_KEY(SHARE, attention_dropout, "attention_dropout", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_END,
};
static const ft_arch gpt_neo = {GPT_LIKE,
                                .vocab = 50257,
                                .max_position = 2048,
                                .hidden = 2048,
                                .layers = 24,
                                .heads = 16,
                                .window = 256,
                                .window_every = 2,
                                .activation = "gelu_new",
                                .norm_bias = true,
                                .position = FT_LEARNED_POSITION,
                                .tied = true,
                                .out_bias = true,
                                .mlp_bias = true,
                                .scores_fp32 = true,
                                .softmax_fp32 = true,
                                .no_sdpa = true,
                                .score_mask = true};
const ft_config_type ft__config_gpt_neo = {.preset = &gpt_neo, .keys = {gpt_neo_keys}};

/* -- gpt_neox ------------------------------------------------------------------------------------- */

static const ft_config_key gpt_neox_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, max_position, "max_position_embeddings", NULL),
    FT_KEY(SIZE, hidden, "hidden_size", NULL),
    FT_KEY(LAYERS, layers, "num_hidden_layers", NULL),
    FT_KEY(SIZE, heads, "num_attention_heads", NULL),
    FT_KEY(SIZE, ffn, "intermediate_size", NULL),
    FT_KEY(ACTIVATION, activation, "hidden_act", NULL),
    FT_KEY(SHARE, attention_dropout, "attention_dropout", NULL),
    FT_KEY(SHARE, residual_dropout, "hidden_dropout", NULL),
    FT_KEY(SHARE, mlp_dropout, "hidden_dropout", NULL),
    FT_KEY(SHARE, embed_dropout, "hidden_dropout", NULL),
    FT_KEY(FLAG, parallel, "use_parallel_residual", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY_END,
};
static const ft_arch gpt_neox = {GPT_LIKE,
                                 ALL_BIASES,
                                 .vocab = 50432,
                                 .max_position = 2048,
                                 .hidden = 6144,
                                 .layers = 44,
                                 .heads = 64,
                                 .ffn = 24576,
                                 .activation = "gelu",
                                 .norm_bias = true,
                                 .position = FT_ROTARY,
                                 .fused_qkv = true,
                                 .parallel = true,
                                 .softmax_fp32 = true,
                                 .score_scale = true};
const ft_config_type ft__config_gpt_neox = {.preset = &gpt_neox, .keys = {gpt_neox_keys}, .rotary_share = 0.25};

/* -- gptj ----------------------------------------------------------------------------------------- */

static const ft_config_key gptj_keys[] = {FT_KEY(MAYBE, rotary_dim, "rotary_dim", NULL), FT_KEY_END};
static const ft_arch gptj = {GPT_LIKE,
                             .vocab = 50400,
                             .max_position = 2048,
                             .hidden = 4096,
                             .layers = 28,
                             .heads = 16,
                             .rotary_dim = 64,
                             .rotary_interleaved = true,
                             .activation = "gelu_new",
                             .norm_bias = true,
                             .position = FT_ROTARY,
                             .parallel = true,
                             .shared_norm = true,
                             .mlp_bias = true,
                             .head_bias = true,
                             .scores_fp32 = true,
                             .softmax_fp32 = true,
                             .score_scale = true,
                             .no_sdpa = true};
const ft_config_type ft__config_gptj = {.preset = &gptj, .keys = {gpt2_keys, gptj_keys}};

/* Gptj with one product for queries, keys and values. */
static const ft_arch codegen = {GPT_LIKE,
                                .vocab = 50400,
                                .max_position = 2048,
                                .hidden = 4096,
                                .layers = 28,
                                .heads = 16,
                                .rotary_dim = 64,
                                .rotary_interleaved = true,
                                .activation = "gelu_new",
                                .norm_bias = true,
                                .position = FT_ROTARY,
                                .parallel = true,
                                .shared_norm = true,
                                .fused_qkv = true,
                                .mlp_bias = true,
                                .head_bias = true,
                                .scores_fp32 = true,
                                .softmax_fp32 = true,
                                .score_scale = true,
                                .no_sdpa = true};
const ft_config_type ft__config_codegen = {.preset = &codegen, .keys = {gpt2_keys, gptj_keys}};

/* -- opt: its table of positions begins at 2; the 350m is post-norm behind projections of a narrower embedding -- */

static const ft_config_key opt_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, max_position, "max_position_embeddings", NULL),
    FT_KEY(SIZE, hidden, "hidden_size", NULL),
    FT_KEY(LAYERS, layers, "num_hidden_layers", NULL),
    FT_KEY(SIZE, heads, "num_attention_heads", NULL),
    FT_KEY(SIZE, ffn, "ffn_dim", NULL),
    FT_KEY(MAYBE, embed_width, "word_embed_proj_dim", NULL),
    FT_KEY(ACTIVATION, activation, "activation_function", NULL),
    FT_KEY(SHARE, residual_dropout, "dropout", NULL),
    FT_KEY(SHARE, mlp_dropout, "dropout", NULL),
    FT_KEY(SHARE, attention_dropout, "attention_dropout", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_ATTENTION_BIAS("enable_bias"),
    FT_KEY(FLAG, mlp_bias, "enable_bias", NULL),
    FT_KEY_END,
};

static ft_status finish_opt(const ft_reading *r, ft_arch *a)
{
    bool before = true, removed = false;
    FT_TRY(ft__config_flag(r, "do_layer_norm_before", &before));
    FT_TRY(ft__config_flag(r, "_remove_final_layer_norm", &removed));
    a->place = before ? FT_PRE_NORM : FT_POST_NORM;
    a->final_norm = before && !removed;
    a->position_rows = a->max_position + 2;
    return FT_OK;
}

static const ft_arch opt = {GPT_LIKE,
                            ALL_BIASES,
                            .vocab = 50272,
                            .max_position = 2048,
                            .hidden = 768,
                            .layers = 12,
                            .heads = 12,
                            .ffn = 3072,
                            .activation = "relu",
                            .norm_bias = true,
                            .position = FT_LEARNED_POSITION,
                            .tied = true,
                            .residual_dropout = 0.1,
                            .mlp_dropout = 0.1,
                            .softmax_fp32 = true,
                            .score_scale = true,
                            .query_scale = true};
const ft_config_type ft__config_opt = {.preset = &opt, .keys = {opt_keys}, .finish = finish_opt};

/* -- bloom ---------------------------------------------------------------------------------------- */

static const ft_config_key bloom_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, hidden, "hidden_size", "n_embed"),
    FT_KEY(LAYERS, layers, "n_layer", "num_hidden_layers"),
    FT_KEY(SIZE, heads, "n_head", "num_attention_heads"),
    FT_KEY(SIZE, max_position, "seq_length", NULL),
    FT_KEY(SHARE, residual_dropout, "hidden_dropout", NULL),
    FT_KEY(SHARE, mlp_dropout, "hidden_dropout", NULL),
    FT_KEY(SHARE, attention_dropout, "attention_dropout", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_END,
};
/* Alibi knows no longest position; 2048 is what the released models were trained on. */
static const ft_arch bloom = {GPT_LIKE,           ALL_BIASES,           .vocab = 250880, .max_position = 2048,
                              .hidden = 64,       .layers = 2,          .heads = 8,      .activation = "gelu_new",
                              .norm_bias = true,  .position = FT_ALIBI, .tied = true,    .embed_norm = true,
                              .fused_qkv = true,  .softmax_fp32 = true, .baddbmm = true, .no_sdpa = true,
                              .qkv_slices = true, .gelu_function = true};
const ft_config_type ft__config_bloom = {.preset = &bloom, .keys = {bloom_keys}};

/* -- falcon --------------------------------------------------------------------------------------- */

static const ft_config_key falcon_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, max_position, "max_position_embeddings", NULL),
    FT_KEY(SIZE, hidden, "hidden_size", NULL),
    FT_KEY(LAYERS, layers, "num_hidden_layers", "n_layer"),
    FT_KEY(SIZE, heads, "num_attention_heads", "n_head"),
    FT_KEY(MAYBE, kv_heads, "num_kv_heads", "n_head_kv"),
    FT_KEY(MAYBE, ffn, "ffn_hidden_size", NULL),
    FT_KEY(ACTIVATION, activation, "activation", NULL),
    FT_KEY(SHARE, residual_dropout, "hidden_dropout", NULL),
    FT_KEY(SHARE, mlp_dropout, "hidden_dropout", NULL),
    FT_KEY(SHARE, attention_dropout, "attention_dropout", NULL),
    FT_KEY(FLAG, parallel, "parallel_attn", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_ATTENTION_BIAS("bias"),
    FT_KEY(FLAG, mlp_bias, "bias", NULL),
    FT_KEY_END,
};

/* Three layouts under one name: falcon-7b (one key and value, one norm for both halves), falcon-40b and later
 * ("new": groups of keys, two norms beside each other unless the config says one), falcon-rw (alibi, sequential). */
static ft_status finish_falcon(const ft_reading *r, ft_arch *a)
{
    bool alibi = false, newer = false, one = true;
    int64_t norms = 0;
    FT_TRY(ft__config_flag(r, "alibi", &alibi));
    FT_TRY(ft__config_flag(r, "new_decoder_architecture", &newer));
    FT_TRY(ft__config_flag(r, "multi_query", &one));
    if (!json_is_null(json_object_get(r->config, "num_ln_in_parallel_attn")))
        FT_TRY(ft__json_whole(r->config, "num_ln_in_parallel_attn", FT_OPTIONAL, 1, 2, &norms, r->where, r->err));
    if (!norms) norms = newer ? 2 : 1;
    if (!newer) a->kv_heads = one ? 1 : a->heads;
    if (newer) a->parallel = true;
    a->shared_norm = a->parallel && norms == 1;
    a->position = alibi ? FT_ALIBI : FT_ROTARY;
    return FT_OK;
}

static const ft_arch falcon = {
    GPT_LIKE,          .vocab = 65024,       .max_position = 2048, .hidden = 4544,        .layers = 32,
    .heads = 71,       .activation = "gelu", .norm_bias = true,    .position = FT_ROTARY, .tied = true,
    .fused_qkv = true, .parallel = true,     .score_scale = true,  .qkv_slices = true,    .key_broadcast = true};
const ft_config_type ft__config_falcon = {.preset = &falcon, .keys = {falcon_keys}, .finish = finish_falcon};

/* -- mpt: no bias anywhere, alibi always (the library has no other positions for it) ----------------- */

static const ft_config_key mpt_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, max_position, "max_seq_len", NULL),
    FT_KEY(SIZE, hidden, "d_model", "hidden_size"),
    FT_KEY(LAYERS, layers, "n_layers", "num_hidden_layers"),
    FT_KEY(SIZE, heads, "n_heads", "num_attention_heads"),
    FT_KEY(SHARE, residual_dropout, "resid_pdrop", NULL),
    FT_KEY(SHARE, mlp_dropout, "resid_pdrop", NULL),
    FT_KEY(SHARE, embed_dropout, "emb_pdrop", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_END,
};
static const ft_config_key mpt_attention_keys[] = {FT_KEY(SHARE, attention_dropout, "attn_pdrop", NULL), FT_KEY_END};

static ft_status finish_mpt(const ft_reading *r, ft_arch *a)
{
    double ratio = 4;
    ft_reading inside;
    ft_config_path path;
    FT_TRY(ft__json_number(r->config, "expansion_ratio", FT_OPTIONAL, 0.001, 1000, &ratio, r->where, r->err));
    a->ffn = (int64_t)((double)a->hidden * ratio);
    if (a->ffn < 1) a->ffn = 1;
    if (ft__config_inside(r, "attn_config", &inside, path)) FT_TRY(ft__config_keys(&inside, mpt_attention_keys, a));
    return FT_OK;
}

static const ft_arch mpt = {GPT_LIKE,       .vocab = 50368,    .max_position = 2048, .hidden = 2048,
                            .layers = 24,   .heads = 16,       .activation = "gelu", .position = FT_ALIBI,
                            .tied = true,   .fused_qkv = true, .softmax_fp32 = true, .score_scale = true,
                            .no_sdpa = true};
const ft_config_type ft__config_mpt = {.preset = &mpt, .keys = {mpt_keys}, .finish = finish_mpt};
