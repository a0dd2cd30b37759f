/* Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): keys and values through a narrow latent. */
#ifndef FT_MODEL_LATENT_H
#define FT_MODEL_LATENT_H
#include "model/parts.h"

ft_ref ft__part_latent_attention(ft_maker *m, ft_ref x);
/* What a layer keeps of earlier tokens: see self_attention.c. */
ft_ref ft__part_remember(ft_maker *m, ft_ref fresh, int64_t rows_per_token, int64_t dim);
#endif
