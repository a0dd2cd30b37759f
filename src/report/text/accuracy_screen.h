/* Accuracy tables as text and as JSON, and a budget that they may not exceed. */
#ifndef FT_REPORT_TEXT_ACCURACY_SCREEN_H
#define FT_REPORT_TEXT_ACCURACY_SCREEN_H
#include "base/error.h"
#include "fit/fit.h"
#include "report/text/style.h"

/* Baselines stand beside the table when given: their lines are matched by family, variant, GPU and kind. */
typedef struct ft_baseline_table {
    const char *name; /* "roofline" */
    const ft_accuracy_table *table;
} ft_baseline_table;
bool ft__screen_accuracy(ft_text *out, const ft_style *style, const ft_accuracy_table *table,
                         const ft_baseline_table *beside, size_t beside_count);
void ft__answer_accuracy(ft_text *out, const ft_accuracy_table *table);

/* {"lines": [{"family": "gemm_tensor", "variant": "bf16", "gpu"?, "max_mean": 0.06, "min_inside": 0.85,
 * "max_inside"?: 0.97, "held_out"?: {"max_mean": 0.09, ...}}, ...]}: what rows that were fitted stand among, and what
 * those that were not may have, which is more. Every transgression is one line of `complaints`. With `all`, a budget
 * line that matches nothing is a transgression too: an accuracy nobody measures any more is not kept. */
ft_status ft__budget_check(const char *path, const ft_accuracy_table *table, bool all, ft_text *complaints,
                           size_t *checked, ft_error *err);
#endif
