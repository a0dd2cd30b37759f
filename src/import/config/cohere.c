/* cohere.c: Command R and its kin: attention and MLP side by side behind one layer norm, pairs of neighbours
 * rotated in fp32, scaled logits. */
#include "import/config/family.h"

#define COHERE_LIKE                                                                                                \
    FT_LLAMA_LIKE, .norm = FT_LAYERNORM_FP32, .embed_scale = 1, .parallel = true, .shared_norm = true,             \
                   .rotary_interleaved = true, .rotary_fp32 = true, .scaled_logits = true, .tied = true,           \
                   .vocab = 256000, .hidden = 8192, .ffn = 22528, .layers = 40, .heads = 64, .max_position = 8192, \
                   .activation = "silu"

static const ft_config_key cohere_keys[] = {FT_KEY_ATTENTION_BIAS("attention_bias"), FT_KEY_END};

static ft_status finish_cohere(const ft_reading *r, ft_arch *a)
{
    bool normed = false;
    FT_TRY(ft__config_flag(r, "use_qk_norm", &normed));
    if (normed) a->qk_norm = FT_QK_NORM_OWN;
    return FT_OK;
}

static const ft_arch cohere = {COHERE_LIKE, .place = FT_PRE_NORM};
const ft_config_type ft__config_cohere = {
    .preset = &cohere, .keys = {ft__llama_keys, cohere_keys}, .finish = finish_cohere};

static const ft_config_key cohere2_keys[] = {
    FT_KEY_ATTENTION_BIAS("attention_bias"),
    FT_KEY(MAYBE, window, "sliding_window", NULL),
    FT_KEY(MAYBE, window_every, "sliding_window_pattern", NULL),
    FT_KEY_END,
};

/* Of four layers the last one sees everything and has no positions. The library does not read head_dim. */
static ft_status finish_cohere2(const ft_reading *r, ft_arch *a)
{
    (void)r;
    a->head_dim = 0;
    return FT_OK;
}

static const ft_arch cohere2 = {COHERE_LIKE, .window = 4096, .window_every = 4, .turn_windowed = true};
const ft_config_type ft__config_cohere2 = {
    .preset = &cohere2, .keys = {ft__llama_keys, cohere2_keys}, .finish = finish_cohere2};
