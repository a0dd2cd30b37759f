/* A model in Megatron-LM's flags (megatron.c, megatron_model.c). */
#ifndef FT_REPORT_LAUNCH_MEGATRON_H
#define FT_REPORT_LAUNCH_MEGATRON_H
#include "base/text.h"
#include "model/arch.h"
#include "report/launch/launch.h"

/* One flag: alone, with a word, with a whole number. */
void ft__megatron_flag(ft_text *out, const char *name);
void ft__megatron_word(ft_text *out, const char *name, const char *value);
void ft__megatron_whole(ft_text *out, const char *name, int64_t value);
/* Whether attention is all that mixes tokens: GPTModel has no other layers. */
bool ft__megatron_attends(const ft_arch *a);
void ft__megatron_model(ft_text *out, const ft_arch *a, int64_t mtp);
/* What of the model no flag says, as "capped scores and logits; its activation"; nothing where they say it all. */
void ft__megatron_lacks(ft_text *out, const ft_arch *a);
/* What a request says of exchanges, optimizer and loss, where it is not Megatron-LM's own default (megatron_options.c);
 * what no flag says stands in unsaid.c. */
void ft__megatron_exchanges(ft_text *out, const ft_launch *l);
void ft__megatron_update(ft_text *out, const ft_launch *l);
#endif
