/* The models known, and everything about one, as text and as JSON. */
#ifndef FT_REPORT_MODELS_SCREEN_H
#define FT_REPORT_MODELS_SCREEN_H
#include "report/step_view.h"
#include "report/style.h"

typedef struct ft_model_sheet {
    const ft_model_entry *entry; /* NULL: a file of the user's */
    const char *name;
    ft_arch arch;
    double parameters, active_parameters;
    double kv_bytes_per_token;   /* in bf16; 0 where there is no cache */
} ft_model_sheet;

/* One row each. `sources`: also where the figures come from. False: out of memory. */
bool ft__screen_models(ft_text *out, const ft_style *style, const ft_model_sheet *sheets, size_t count, bool sources);
/* One model; `layers`: the parameters by block. */
bool ft__screen_model(ft_text *out, const ft_style *style, const ft_model_sheet *sheet, const ft_layer *layers,
                      size_t layer_count);
void ft__answer_model(ft_text *out, const ft_model_sheet *sheet);
#endif
