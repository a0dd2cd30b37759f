/* Rows that no fit uses.
 *
 * Some rows teach nothing: an autotuner that failed, clocks that had yet to rise, operands that a request cannot
 * describe. They are left out of fits, by rules that are data with a reason each, and of nothing else: `validate`
 * judges by every row of the operator asked for, since whoever asks may meet just such a case. What tables hold of
 * other operators (another engine's, with other steps inside) is not read. */
#include "fit/exclude.h"

#include <math.h>
#include <string.h>

#include "device/gpu.h"
#include "fit/exclude_constants.h"
#include "graph/operator.h"
#include "kernel/kernel.h"

static bool holds(const struct ft__k_exclude_rules *rule, const char *cell)
{
    if (!strcmp(rule->relation, "contains")) return strstr(cell, rule->text) != NULL;
    return (strcmp(cell, rule->text) == 0) == !strcmp(rule->relation, "is");
}

ft_row_use ft__row_use(const ft_table *table, const char *name, const char *gpu)
{
    ft_row_use use = FT_ROW_FITTED;
    for (int i = 0; i < FT_K_EXCLUDE_RULES_COUNT; i++) {
        const struct ft__k_exclude_rules *rule = &ft__k_exclude_rules[i];
        if (strcmp(rule->table, name) != 0 || (*rule->gpu && strcmp(rule->gpu, gpu) != 0)) continue;
        if (*rule->except_gpu && !strcmp(rule->except_gpu, gpu)) continue;
        if (!holds(rule, ft__table_cell(table, ft__table_find(table, rule->column)))) continue;
        if (!rule->judged) return FT_ROW_UNREAD;
        use = FT_ROW_JUDGED;
    }
    return use;
}

bool ft__moe_excluded(const char *gpu, const ft_row *row, ft_device *last)
{
    if (row->op.u.moe.inter < FT_K_EXCLUDE_MOE_THINNEST) return true;
    if (row->op.engine != FT_ENGINE_TRTLLM || ft__row_device(gpu, last, NULL) != FT_OK) return false;
    const struct ft__k_exclude_moe_accident *bound = &ft__k_exclude_moe_accident;
    double routed = (double)row->op.u.moe.tokens * (double)row->op.u.moe.topk * (double)row->op.u.moe.hidden /
                    fmax(1, (double)row->op.u.moe.ep);
    double compute = ft__op_flops(&row->op) / (bound->peak_share * ft__peak_tflops(last, row->op.dtype) * 1e9);
    double memory = ft__op_least_bytes(&row->op) / (last->memory_gbps * 1e6);
    return row->ms > bound->slower * (fmax(compute, memory) + routed * bound->row_bytes / (last->memory_gbps * 1e6) +
                                      bound->start_ms);
}
