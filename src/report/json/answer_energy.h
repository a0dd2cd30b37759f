/* What a step draws, as JSON. */
#ifndef FT_REPORT_JSON_ANSWER_ENERGY_H
#define FT_REPORT_JSON_ANSWER_ENERGY_H
#include "base/text.h"
#include "kernel/energy.h"

/* `"energy":{...}` of a step on so many GPUs that makes `count` of `what` ("tokens_per_joule" says per what); nothing
 * where it is not known. */
void ft__answer_energy(ft_text *out, const ft_energy *e, double gpus, const char *what, double count);
#endif
