/* plan_causes.c: where a layout loses its time against the best one. */
#include "report/plan_causes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
    const ft_plan_cause *x = a, *y = b;
    if (fabs(x->change_ms) != fabs(y->change_ms)) return fabs(x->change_ms) > fabs(y->change_ms) ? -1 : 1;
    return strcmp(x->part, y->part);
}

size_t ft__plan_causes(const ft_candidate *best, const ft_candidate *other, ft_plan_cause out[FT_PLAN_CAUSES])
{
    const ft_plan_cause all[FT_PLAN_CAUSES] = {
        {"kernels", other->busy_ms - best->busy_ms},    {"exchanges", other->exposed_ms - best->exposed_ms},
        {"bubble", other->bubble_ms - best->bubble_ms}, {"update", other->update_ms - best->update_ms},
        {"host", other->host_ms - best->host_ms},       {"waits", other->idle_ms - best->idle_ms}};
    size_t count = 0;
    double least = 1e-4 * best->step_ms;
    for (size_t i = 0; i < FT_PLAN_CAUSES; i++)
        if (fabs(all[i].change_ms) > least) out[count++] = all[i];
    qsort(out, count, sizeof *out, by_size);
    return count;
}
