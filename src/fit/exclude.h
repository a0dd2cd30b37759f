/* Measured rows that no fit uses, by the rules of data/constants/fit/exclude.json; judgement uses all. */
#ifndef FT_FIT_EXCLUDE_H
#define FT_FIT_EXCLUDE_H
#include "base/table.h"
#include "fit/measurements.h"

typedef enum ft_row_use {
    FT_ROW_FITTED,
    FT_ROW_JUDGED, /* left out of fits */
    FT_ROW_UNREAD  /* of another operator than a request can name */
} ft_row_use;

/* What the rules say of the current row of `table`, which is called `name` ("silicon/moe") and was taken on `gpu`. */
ft_row_use ft__row_use(const ft_table *table, const char *name, const char *gpu);
/* Whether a row of experts is too thin a slice, or an accident of its autotuner. `last`: as ft__row_device has it. */
bool ft__moe_excluded(const char *gpu, const ft_row *row, ft_device *last);
#endif
