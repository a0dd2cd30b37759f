/* Whole models measured on the H200 against their forecasts: busy time, wall time, peak memory. */
#ifndef FT_STUDY_MEASURED_H
#define FT_STUDY_MEASURED_H
#include "fit/fit.h"
#include "study/compare.h"

/* `forecast` holds ms and its interval; of memory, GiB in their place and `memory` true. */
typedef void (*ft_measured_case)(void *context, const char *variant, const char *gpu, const char *description,
                                 double measured, const ft_forecast *forecast, bool memory);

/* Appends lines of the family "models" to the table; a folder without h200/models.jsonl.gz appends none. Cases that
 * cannot be forecast are counted in *failed, with the last reason in `err`. `each` may be NULL. */
ft_status ft__validate_models(const char *folder, ft_answerer answer, void *user, ft_measured_case each, void *context,
                              ft_accuracy_table *table, size_t *failed, ft_error *err);
#endif
