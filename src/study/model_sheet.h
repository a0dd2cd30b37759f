/* What the catalogue, or a file, says of a model. */
#ifndef FT_STUDY_MODEL_SHEET_H
#define FT_STUDY_MODEL_SHEET_H
#include "import/config/config.h"
#include "study/step_view.h"

typedef struct ft_model_sheet {
    const ft_model_entry *entry; /* NULL: a file of the user's */
    const char *name;
    ft_arch arch;
    double parameters, active_parameters;
    double kv_bytes_per_token; /* in bf16; 0 where there is no cache */
} ft_model_sheet;
#endif
