/* Inference over batches and context lengths, as text. */
#ifndef FT_REPORT_TEXT_INFER_SCREEN_H
#define FT_REPORT_TEXT_INFER_SCREEN_H
#include "report/text/style.h"
#include "study/infer.h"

bool ft__screen_infer(ft_text *out, const ft_style *style, const ft_infer *r);
/* One cell's step with what to change about it: the step asked for with advice. `how`: NULL for a few lines, "all", or
 * "techniques". */
bool ft__screen_infer_step(ft_text *out, const ft_style *style, const ft_step_view *v, const char *how);
/* "8.03 B parameters, bf16, cuda_graph, flash attention, paged cache". */
void ft__add_infer_words(ft_text *out, const ft_infer *r);
#endif
