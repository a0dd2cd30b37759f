/* llama.c: the llama line and what is written like it, without experts: llama, mistral, qwen2, qwen3, gemma 1 to
 * 3, phi, phi3, starcoder2, stablelm, glm, seed_oss, olmo2, olmo3. */
#include <math.h>

#include "base/json.h"
#include "import/config/family.h"
#include "import/config/type.h"

const ft_config_key ft__llama_keys[] = {
    FT_KEY(SIZE, vocab, "vocab_size", NULL),
    FT_KEY(SIZE, hidden, "hidden_size", NULL),
    FT_KEY(SIZE, ffn, "intermediate_size", NULL),
    FT_KEY(LAYERS, layers, "num_hidden_layers", NULL),
    FT_KEY(SIZE, heads, "num_attention_heads", NULL),
    FT_KEY(MAYBE, kv_heads, "num_key_value_heads", NULL),
    FT_KEY(MAYBE, head_dim, "head_dim", NULL),
    FT_KEY(SIZE, max_position, "max_position_embeddings", NULL),
    FT_KEY(ACTIVATION, activation, "hidden_act", NULL),
    FT_KEY(SHARE, attention_dropout, "attention_dropout", NULL),
    FT_KEY(FLAG, tied, "tie_word_embeddings", NULL),
    FT_KEY_END,
};

static const ft_config_key bias_keys[] = {
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY(FLAG, mlp_bias, "mlp_bias", NULL),
    FT_KEY_END,
};
static const ft_config_key window_keys[] = {FT_KEY(MAYBE, window, "sliding_window", NULL), FT_KEY_END};
static const ft_config_key bias_window_keys[] = {
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY(MAYBE, window, "sliding_window", NULL),
    FT_KEY_END,
};

/* -- llama, mistral, qwen ------------------------------------------------------------------------- */

static const ft_arch llama = {FT_LLAMA_LIKE,        .norm = FT_RMSNORM,  .embed_scale = 1, .vocab = 32000,
                              .hidden = 4096,       .ffn = 11008,        .layers = 32,     .heads = 32,
                              .max_position = 2048, .activation = "silu"};
const ft_config_type ft__config_llama = {.preset = &llama, .keys = {ft__llama_keys, bias_keys}};

static const ft_arch mistral = {FT_LLAMA_LIKE,  .norm = FT_RMSNORM,     .embed_scale = 1,     .vocab = 32000,
                                .hidden = 4096, .ffn = 14336,           .layers = 32,         .heads = 32,
                                .kv_heads = 8,  .max_position = 131072, .activation = "silu", .window = 4096};
const ft_config_type ft__config_mistral = {.preset = &mistral, .keys = {ft__llama_keys, window_keys}};

static const ft_arch qwen2 = {FT_LLAMA_LIKE,    .norm = FT_RMSNORM,    .embed_scale = 1,     .vocab = 151936,
                              .hidden = 4096,   .ffn = 22016,          .layers = 32,         .heads = 32,
                              .kv_heads = 32,   .max_position = 32768, .activation = "silu", .qkv_bias = true,
                              .key_bias = true, .window = 4096};
const ft_config_type ft__config_qwen2 = {.preset = &qwen2, .keys = {ft__llama_keys, window_keys}};

static const ft_arch qwen3 = {FT_LLAMA_LIKE,
                              .norm = FT_RMSNORM,
                              .embed_scale = 1,
                              .vocab = 151936,
                              .hidden = 4096,
                              .ffn = 22016,
                              .layers = 32,
                              .heads = 32,
                              .kv_heads = 32,
                              .head_dim = 128,
                              .max_position = 32768,
                              .activation = "silu",
                              .qk_norm = FT_QK_NORM_HEAD,
                              .window = 4096};
const ft_config_type ft__config_qwen3 = {.preset = &qwen3, .keys = {ft__llama_keys, bias_window_keys}};

/* Llama with separate switches for the biases and dropout on both branches. */
static const ft_config_key seed_oss_keys[] = {
    FT_KEY(FLAG, qkv_bias, "attention_bias", NULL),
    FT_KEY(FLAG, key_bias, "attention_bias", NULL),
    FT_KEY(FLAG, out_bias, "attention_out_bias", NULL),
    FT_KEY(FLAG, mlp_bias, "mlp_bias", NULL),
    FT_KEY(SHARE, residual_dropout, "residual_dropout", NULL),
    FT_KEY(SHARE, mlp_dropout, "residual_dropout", NULL),
    FT_KEY_END,
};
static const ft_arch seed_oss = {
    FT_LLAMA_LIKE,          .norm = FT_RMSNORM,   .embed_scale = 1, .vocab = 155136,  .hidden = 4096,
    .ffn = 27648,           .layers = 64,         .heads = 80,      .kv_heads = 8,    .head_dim = 128,
    .max_position = 524288, .activation = "silu", .qkv_bias = true, .key_bias = true, .residual_dropout = 0.1,
    .mlp_dropout = 0.1};
const ft_config_type ft__config_seed_oss = {.preset = &seed_oss, .keys = {ft__llama_keys, seed_oss_keys}};

/* Gate and up in one product, half of each head rotated; glm4 norms what the branches give, too. */
static const ft_config_key glm_keys[] = {
    FT_KEY(FLAG, qkv_bias, "attention_bias", NULL),
    FT_KEY(FLAG, key_bias, "attention_bias", NULL),
    FT_KEY_END,
};
#define GLM_LIKE                                                                                                      \
    FT_LLAMA_LIKE, .norm = FT_RMSNORM, .embed_scale = 1, .vocab = 151552, .hidden = 4096, .ffn = 13696, .layers = 40, \
                   .heads = 32, .kv_heads = 2, .head_dim = 128, .max_position = 131072, .activation = "silu",         \
                   .qkv_bias = true, .key_bias = true, .fused_gate_up = true, .rotary_interleaved = true,             \
                   .rotary_repeats = true
static const ft_arch glm = {GLM_LIKE, .place = FT_PRE_NORM};
const ft_config_type ft__config_glm = {.preset = &glm, .keys = {ft__llama_keys, glm_keys}, .rotary_share = 0.5};
static const ft_arch glm4 = {GLM_LIKE, .place = FT_SANDWICH};
const ft_config_type ft__config_glm4 = {.preset = &glm4, .keys = {ft__llama_keys, glm_keys}, .rotary_share = 0.5};

/* -- gemma: the embedding is multiplied by sqrt(hidden); weights enter the norm as 1 + w in fp32 ------- */

/* Gemma's first configs say "gelu" and mean the tanh form: the library reads hidden_activation alone. */
static const ft_config_key gemma_keys[] = {
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY(ACTIVATION, activation, "hidden_activation", NULL),
    FT_KEY_END,
};
static const ft_config_key gemma2_keys[] = {
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY(ACTIVATION, activation, "hidden_activation", NULL),
    FT_KEY(MAYBE, window, "sliding_window", NULL),
    FT_KEY(MAYBE, window_every, "sliding_window_pattern", NULL),
    FT_KEY(REAL, attention_softcap, "attn_logit_softcapping", NULL),
    FT_KEY(REAL, logit_softcap, "final_logit_softcapping", NULL),
    FT_KEY_END,
};

static ft_status finish_gemma(const ft_reading *r, ft_arch *a)
{
    a->activation = r->type->preset->activation;
    a->embed_scale = sqrt((double)a->hidden);
    return ft__config_keys(r, gemma_keys, a);
}

#define GEMMA_LIKE                                                                                         \
    FT_LLAMA_LIKE, .norm = FT_RMSNORM_WIDE, .norm_weight_fp32 = true, .norm_plus_one = true, .tied = true, \
                   .activation = "gelu_pytorch_tanh"

static const ft_arch gemma = {GEMMA_LIKE,  .vocab = 256000, .hidden = 3072,  .ffn = 24576,        .layers = 28,
                              .heads = 16, .kv_heads = 16,  .head_dim = 256, .max_position = 8192};
const ft_config_type ft__config_gemma = {
    .preset = &gemma, .keys = {ft__llama_keys, gemma_keys}, .finish = finish_gemma};

static const ft_arch gemma2 = {GEMMA_LIKE,
                               .place = FT_SANDWICH,
                               .vocab = 256000,
                               .hidden = 2304,
                               .ffn = 9216,
                               .layers = 26,
                               .heads = 8,
                               .kv_heads = 4,
                               .head_dim = 256,
                               .max_position = 8192,
                               .attention_softcap = 50,
                               .logit_softcap = 30,
                               .window = 4096,
                               .window_every = 2};
const ft_config_type ft__config_gemma2 = {
    .preset = &gemma2, .keys = {ft__llama_keys, gemma2_keys}, .finish = finish_gemma};

/* The language model; its eyes work only when pictures are given. */
static const ft_arch gemma3 = {GEMMA_LIKE,
                               .place = FT_SANDWICH,
                               .vocab = 262208,
                               .hidden = 2304,
                               .ffn = 9216,
                               .layers = 26,
                               .heads = 8,
                               .kv_heads = 4,
                               .head_dim = 256,
                               .max_position = 131072,
                               .qk_norm = FT_QK_NORM_HEAD,
                               .window = 4096,
                               .window_every = 6};
const ft_config_type ft__config_gemma3 = {
    .preset = &gemma3, .keys = {ft__llama_keys, gemma2_keys}, .finish = finish_gemma};

/* -- phi ------------------------------------------------------------------------------------------ */

static const ft_config_key phi_keys[] = {
    FT_KEY(SHARE, residual_dropout, "resid_pdrop", NULL),
    FT_KEY(SHARE, mlp_dropout, "resid_pdrop", NULL),
    FT_KEY(SHARE, embed_dropout, "embd_pdrop", NULL),
    FT_KEY(MAYBE, window, "sliding_window", NULL),
    FT_KEY_END,
};

static ft_status finish_phi(const ft_reading *r, ft_arch *a)
{
    bool normed = false;
    FT_TRY(ft__config_flag(r, "qk_layernorm", &normed));
    if (normed) a->qk_norm = FT_QK_NORM_HEAD;
    a->window = 0;
    return FT_OK;
}

static const ft_arch phi = {FT_ROTARY_DECODER,    .norm = FT_LAYERNORM, .norm_bias = true,    .embed_scale = 1,
                            .softmax_fp32 = true, .vocab = 51200,       .hidden = 2048,       .ffn = 8192,
                            .layers = 24,         .heads = 32,          .max_position = 2048, .activation = "gelu_new",
                            .qkv_bias = true,     .key_bias = true,     .out_bias = true,     .mlp_bias = true,
                            .head_bias = true,    .parallel = true,     .shared_norm = true};
const ft_config_type ft__config_phi = {
    .preset = &phi, .keys = {ft__llama_keys, phi_keys}, .rotary_share = 0.5, .finish = finish_phi};

static const ft_arch phi3 = {FT_LLAMA_LIKE,        .norm = FT_RMSNORM,   .embed_scale = 1,  .vocab = 32064,
                             .hidden = 3072,       .ffn = 8192,          .layers = 32,      .heads = 32,
                             .max_position = 4096, .activation = "silu", .fused_qkv = true, .fused_gate_up = true,
                             .qkv_slices = true,   .rotary_joins = true};
const ft_config_type ft__config_phi3 = {.preset = &phi3, .keys = {ft__llama_keys, phi_keys}};

/* -- layer norms instead of RMS norms -------------------------------------------------------------- */

static const ft_config_key starcoder2_keys[] = {
    FT_KEY_ATTENTION_BIAS("use_bias"),
    FT_KEY(FLAG, mlp_bias, "use_bias", NULL),
    FT_KEY(SHARE, residual_dropout, "residual_dropout", NULL),
    FT_KEY(SHARE, mlp_dropout, "residual_dropout", NULL),
    FT_KEY(SHARE, embed_dropout, "embedding_dropout", NULL),
    FT_KEY(MAYBE, window, "sliding_window", NULL),
    FT_KEY_END,
};
static const ft_arch starcoder2 = {FT_ROTARY_DECODER,
                                   .norm = FT_LAYERNORM,
                                   .norm_bias = true,
                                   .embed_scale = 1,
                                   .softmax_fp32 = true,
                                   .vocab = 49152,
                                   .hidden = 3072,
                                   .ffn = 12288,
                                   .layers = 30,
                                   .heads = 24,
                                   .kv_heads = 2,
                                   .max_position = 4096,
                                   .activation = "gelu_pytorch_tanh",
                                   .qkv_bias = true,
                                   .key_bias = true,
                                   .out_bias = true,
                                   .mlp_bias = true,
                                   .tied = true};
const ft_config_type ft__config_starcoder2 = {.preset = &starcoder2, .keys = {ft__llama_keys, starcoder2_keys}};

static const ft_config_key stablelm_keys[] = {
    FT_KEY(FLAG, qkv_bias, "use_qkv_bias", NULL),          FT_KEY(FLAG, key_bias, "use_qkv_bias", NULL),
    FT_KEY(FLAG, parallel, "use_parallel_residual", NULL), FT_KEY(FLAG, shared_norm, "use_parallel_residual", NULL),
    FT_KEY(SHARE, mlp_dropout, "hidden_dropout", NULL),    FT_KEY_END,
};

static ft_status finish_stablelm(const ft_reading *r, ft_arch *a)
{
    bool normed = false;
    (void)a;
    FT_TRY(ft__config_flag(r, "qk_layernorm", &normed));
    if (!normed) return FT_OK;
    return ft__config_fail(r, FT_E_UNSUPPORTED, "qk_layernorm",
                           "stablelm with qk_layernorm: a norm for each head of "
                           "its own is not modelled");
}

static const ft_arch stablelm = {FT_LLAMA_LIKE,  .norm = FT_LAYERNORM, .norm_bias = true,    .embed_scale = 1,
                                 .vocab = 50304, .hidden = 2560,       .ffn = 6912,          .layers = 32,
                                 .heads = 32,    .kv_heads = 32,       .max_position = 4096, .activation = "silu"};
const ft_config_type ft__config_stablelm = {
    .preset = &stablelm, .keys = {ft__llama_keys, stablelm_keys}, .rotary_share = 0.25, .finish = finish_stablelm};

/* -- olmo2: norms behind the branches and over the whole width of queries and keys -------------------- */

static const ft_arch olmo2 = {FT_LLAMA_LIKE,
                              .norm = FT_RMSNORM_WIDE,
                              .place = FT_AFTER,
                              .embed_scale = 1,
                              .vocab = 50304,
                              .hidden = 4096,
                              .ffn = 11008,
                              .layers = 32,
                              .heads = 32,
                              .max_position = 2048,
                              .activation = "silu",
                              .qk_norm = FT_QK_NORM_FULL,
                              .rotary_tables_fp32 = true};
const ft_config_type ft__config_olmo2 = {.preset = &olmo2, .keys = {ft__llama_keys, bias_keys}};

/* The same with windows: of four layers the last one sees everything. */
static const ft_arch olmo3 = {FT_LLAMA_LIKE,
                              .norm = FT_RMSNORM_WIDE,
                              .place = FT_AFTER,
                              .embed_scale = 1,
                              .vocab = 50304,
                              .hidden = 4096,
                              .ffn = 11008,
                              .layers = 32,
                              .heads = 32,
                              .max_position = 2048,
                              .activation = "silu",
                              .qk_norm = FT_QK_NORM_FULL,
                              .window = 4096,
                              .window_every = 4,
                              .rotary_tables_fp32 = true};
const ft_config_type ft__config_olmo3 = {.preset = &olmo3, .keys = {ft__llama_keys, bias_window_keys}};
