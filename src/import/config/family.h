/* What the files of the llama line and of its mixtures share. Private to config_*.c. */
#ifndef FT_IMPORT_CONFIG_FAMILY_H
#define FT_IMPORT_CONFIG_FAMILY_H
#include "import/config/type.h"

/* Pre-norm, gated MLP, rotary positions; eager attention scales the scores and takes their softmax in fp32; the loss
 * copies the logits to fp32. */
#define FT_LLAMA_LIKE FT_ROTARY_DECODER, .gated = true, .softmax_fp32 = true
/* What those have in common with others that rotate: phi, starcoder2, nemotron, gpt-oss, llama4. */
#define FT_ROTARY_DECODER                                                                              \
    .design = FT_DECODER_ONLY, .causal = true, .final_norm = true, .position = FT_ROTARY, .score_scale = true, \
    .loss_fp32 = true, .lm_head = true

extern const ft_config_key ft__llama_keys[];
#endif
