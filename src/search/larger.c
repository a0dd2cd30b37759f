/* larger.c: the smallest cluster that a job would fit on.
 *
 * Twice as many GPUs, and so on, until some layout fits; then whole nodes between that number and half of it, a few of
 * them evenly apart, the smallest first, and so on between the first that does and the last that does not. More GPUs
 * are not always enough where fewer were (the degrees must divide them), so numbers are tried, not inferred. The job
 * stays what it is: its global batch above all. */
#include "search/plan.h"

enum { DOUBLINGS = 14, BETWEEN = 8 };

static bool fits_on(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, int64_t gpus, int64_t *node)
{
    ft_plan_request tried = *r;
    ft_plan trial;
    ft_error ignored;
    tried.gpus = gpus;
    tried.goal = FT_GOAL_MEMORY;
    tried.top = 1;
    tried.exhaustive = false;
    if (tried.progress) tried.progress(tried.watcher, "larger clusters", 1);
    tried.progress = NULL;
    /* What holds least: one sequence at a time, everything run again, a stage in one piece. */
    if (!tried.batch.count) tried.batch = (ft_plan_set){.at = {1}, .count = 1};
    if (!tried.vpp.count) tried.vpp = (ft_plan_set){.at = {1}, .count = 1};
    if (!tried.recompute) tried.recompute = 1u << FT_RECOMPUTE_FULL;
    bool fits = ft__plan_best(ft, scratch, &tried, &trial, &ignored) == FT_OK && trial.plan_count;
    *node = trial.search.cluster.gpus_per_node;
    ft__plan_free(&trial);
    return fits;
}

int64_t ft__plan_least(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r)
{
    int64_t enough = r->gpus, node = 1;
    bool found = false;
    for (int i = 0; i < DOUBLINGS && !found && enough < FT_MOST_RANKS / 2; i++) {
        enough *= 2;
        found = fits_on(ft, scratch, r, enough, &node);
    }
    if (!found) return 0;
    if (node < 1 || enough <= node) return enough; /* inside a node: powers of two */
    int64_t low = enough / 2 / node, high = (enough + node - 1) / node, step, ignored; /* nodes: too few, and enough */
    do {
        step = (high - low + BETWEEN - 1) / BETWEEN;
        int64_t at = low + step;
        while (at < high && !fits_on(ft, scratch, r, at * node, &ignored)) at += step;
        low = at - step;
        if (at >= high) continue;
        high = at;
        enough = at * node;
    } while (step > 1 && high - low > 1);
    return enough;
}
