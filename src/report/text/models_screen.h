/* The models known, and everything about one, as text. */
#ifndef FT_REPORT_TEXT_MODELS_SCREEN_H
#define FT_REPORT_TEXT_MODELS_SCREEN_H
#include "report/text/style.h"
#include "study/model_sheet.h"

/* One row each. `sources`: also where the figures come from. False: out of memory. */
bool ft__screen_models(ft_text *out, const ft_style *style, const ft_model_sheet *sheets, size_t count, bool sources);
/* One model; `layers`: the parameters by block. */
bool ft__screen_model(ft_text *out, const ft_style *style, const ft_model_sheet *sheet, const ft_layer *layers,
                      size_t layer_count);
#endif
