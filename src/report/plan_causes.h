/* Why one layout of a job is slower than another: its step's parts, which add up to it, against the other's. */
#ifndef FT_REPORT_PLAN_CAUSES_H
#define FT_REPORT_PLAN_CAUSES_H
#include "search/plan.h"

enum { FT_PLAN_CAUSES = 6 };
typedef struct ft_plan_cause {
    const char *part; /* "kernels", "exchanges", "bubble", "update", "host", "waits" */
    double change_ms; /* above 0: time lost there */
} ft_plan_cause;
/* The largest first; parts that do not differ are left out. Returns how many. */
size_t ft__plan_causes(const ft_candidate *best, const ft_candidate *other, ft_plan_cause out[FT_PLAN_CAUSES]);
#endif
