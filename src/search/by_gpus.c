/* by_gpus.c: time against GPUs: the best plan of the same job on fewer of them, and on twice as many.
 *
 * The job stays what it is, its global batch above all. A number that no layout of the framework takes, or on which
 * none fits, is said to be none. */
#include "search/plan.h"

ft_status ft__plan_by_gpus(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_plan *out,
                           ft_error *err)
{
    static const struct {
        int64_t times, of;
    } parts[] = {{1, 8}, {1, 4}, {1, 2}, {1, 1}, {2, 1}};
    enum { COUNT = sizeof parts / sizeof *parts };
    double fastest = 0;
    for (size_t i = 0; i < COUNT; i++) {
        if (r->gpus % parts[i].of || r->gpus > FT_MOST_RANKS / parts[i].times) continue;
        ft_plan_of_gpus *at = &out->by_gpus[out->by_gpus_count++];
        ft_plan_request tried = *r;
        ft_plan trial;
        ft_error said = {0};
        at->gpus = tried.gpus = r->gpus / parts[i].of * parts[i].times;
        tried.top = 1;
        tried.progress = NULL;
        if (r->progress) r->progress(r->watcher, "other numbers of GPUs", (double)i / COUNT);
        ft_status status = ft__plan_best(ft, scratch, &tried, &trial, &said);
        at->fits = status == FT_OK && trial.plan_count > 0;
        if (at->fits) at->best = trial.plans[0];
        ft__plan_free(&trial);
        if (status == FT_E_MEMORY) return ft__no_memory(err);
        at->front = at->fits && (!(fastest > 0) || at->best.step_ms < fastest);
        if (at->front) fastest = at->best.step_ms;
    }
    return FT_OK;
}
