/* goodput.c: Daly's model of checkpoints and restarts (J. T. Daly, A higher order estimate of the optimum checkpoint
 * interval for restart dumps, 2006), put into closed form.
 *
 * Leaves out: failures that come in groups, nodes that slow down before they fail, and that small jobs stop for other
 * reasons more often than this says (7.9 hours measured at 1,024 GPUs where it has 29). */
#include "cost/goodput.h"

#include <math.h>

#include "cost/failures_constants.h"

static const double day_s = 86400;

ft_failures ft__failures_usual(void)
{
    return (ft_failures){.per_node_day = FT_K_FAILURES_PER_NODE_DAY,
                         .low = FT_K_FAILURES_PER_NODE_DAY * FT_K_FAILURES_LOW_SHARE,
                         .high = FT_K_FAILURES_PER_NODE_DAY * FT_K_FAILURES_HIGH_SHARE,
                         .restart_s = FT_K_FAILURES_RESTART_S,
                         .save_s = FT_K_FAILURES_SAVE_S};
}

ft_failures ft__failures_none(void) { return (ft_failures){0}; }

double ft__daly_interval(double save_s, double mtbf_s)
{
    if (!isfinite(mtbf_s) || !(save_s > 0)) return INFINITY;
    if (save_s >= 2 * mtbf_s) return mtbf_s; /* beyond what the series holds for */
    double part = save_s / (2 * mtbf_s);
    return sqrt(2 * save_s * mtbf_s) * (1 + sqrt(part) / 3 + part / 9) - save_s;
}

double ft__useful_share(double interval_s, double save_s, double restart_s, double mtbf_s)
{
    if (!isfinite(mtbf_s)) return isfinite(interval_s) ? interval_s / (interval_s + save_s) : 1;
    if (!isfinite(interval_s)) return 0;
    /* Work of t takes e^(R/M) * M * (e^((t+d)/M) - 1): each piece again until it and its save are done at once. */
    return interval_s / (exp(restart_s / mtbf_s) * mtbf_s * expm1((interval_s + save_s) / mtbf_s));
}

/* Seconds that a checkpoint takes to be written, or to be read. */
static double moved_s(const ft_failures *f, double bytes)
{
    return f->storage_gbps > 0 ? bytes / (f->storage_gbps * 1e9) : 0;
}

static double share_at(const ft_failures *f, double nodes, double rate, const ft_goodput *g)
{
    double interval_s = g->interval_s, restart_s = f->restart_s + moved_s(f, g->checkpoint_bytes);
    double mtbf = rate > 0 && nodes > 0 ? day_s / (nodes * rate) : INFINITY;
    if (!isfinite(mtbf) && !isfinite(interval_s)) return 1;
    return ft__useful_share(interval_s, f->save_s, restart_s, mtbf);
}

ft_goodput ft__goodput(const ft_failures *f, double nodes, double checkpoint_bytes)
{
    ft_goodput g = {.mtbf_s = INFINITY, .interval_s = INFINITY, .useful = 1, .low = 1, .high = 1};
    g.checkpoint_bytes = checkpoint_bytes;
    if (f->per_node_day > 0 && nodes > 0) g.mtbf_s = day_s / (nodes * f->per_node_day);
    g.interval_s = f->interval_s > 0 ? f->interval_s : ft__daly_interval(f->save_s, g.mtbf_s);
    if (isfinite(g.mtbf_s) && !isfinite(g.interval_s)) g.interval_s = 1; /* saving costs nothing: all the time */
    g.interval_s = fmax(g.interval_s, moved_s(f, checkpoint_bytes));
    g.useful = share_at(f, nodes, f->per_node_day, &g);
    /* Who saves that often cannot know that failures come more or less often. */
    g.low = share_at(f, nodes, f->high, &g);
    g.high = share_at(f, nodes, f->low, &g);
    return g;
}

double ft__expected_failures(const ft_goodput *g, double seconds)
{
    return isfinite(g->mtbf_s) ? seconds / g->mtbf_s : 0;
}

double ft__checkpoint_bytes(double parameters) { return FT_K_FAILURES_CHECKPOINT_BYTES * parameters; }
