/* Attention kernels by name: FlashAttention's generations, cuDNN, xformers, Triton, against what a framework takes
 * today. */
#ifndef FT_KERNEL_ATTENTION_LIBRARY_H
#define FT_KERNEL_ATTENTION_LIBRARY_H
#include "foretell.h"

/* Whether a name was given that counts: decoding has kernels of its own, and fp32 one alone (xformers', as measured,
 * AOTriton's on AMD's units).
 * No name is a framework's own choice, which is one where the device's units are said to have it. */
bool ft__library_named(const ft_device *device, const ft_op *op);
/* What an engine's attention is where it brings no kernels of its own; any other: itself. */
ft_attention_library ft__library_asked_for(ft_attention_library library);
/* Whose kernel adds a mask to the scores of many queries where this library is asked for. */
ft_attention_library ft__library_of_mask(const ft_device *device, const ft_op *op);
/* The same attention over sequences so long that starts and ends do not count; false: it is that long. */
bool ft__library_longer(const ft_op *op, ft_op *longer);
/* Makes the forecast of the open kernel, and of the one above, that of the named one, its interval at `quantile`. */
void ft__library_apply(const ft_device *device, const ft_op *op, const ft_forecast *steady, double quantile,
                       ft_forecast *f);
#endif
