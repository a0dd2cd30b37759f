/* nemotron.c: Nemotron-4 (arXiv 2402.16819, 2406.11704): squared relu without a gate, half of each head rotated,
 * layer norms whose weight is kept as its distance from one. */
#include "import/config/family.h"

static const ft_config_key nemotron_keys[] = {
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY(FLAG, mlp_bias, "mlp_bias", NULL),
    FT_KEY_END,
};
static const ft_arch nemotron = {
    FT_ROTARY_DECODER,    .norm = FT_LAYERNORM_1P, .norm_bias = true, .embed_scale = 1, .softmax_fp32 = true,
    .vocab = 256000,      .hidden = 6144,          .ffn = 24576,      .layers = 32,     .heads = 48,
    .max_position = 4096, .activation = "relu2"};
const ft_config_type ft__config_nemotron = {
    .preset = &nemotron, .keys = {ft__llama_keys, nemotron_keys}, .rotary_share = 0.5};
