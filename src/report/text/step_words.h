/* A step in words. */
#ifndef FT_REPORT_TEXT_STEP_WORDS_H
#define FT_REPORT_TEXT_STEP_WORDS_H
#include "study/step_view.h"

/* How a pipeline's layers were dealt out: "2 layers per chunk, 1 in the first and the last, with ...". */
void ft__add_dealt(ft_text *out, const ft_step_view *v);
/* "backward layers mlp.down_proj, iteration 32 of 32": the moment of the peak. */
void ft__add_peak_place(ft_text *out, const ft_step_view *v);
/* What a model is called: "mixtral-8x7b (mixtral)" where the catalogue has another name than the one typed. */
void ft__add_model_name(ft_text *out, const char *asked);
/* What holds the step back: "pipeline bubble"; the view's also names what its samples make it wait for. */
const char *ft__step_bound_words(const ft_step *s);
const char *ft__view_bound_words(const ft_step_view *v);
#endif
