/* From held-out errors to intervals, by conformal prediction: the interval at level q is the q-quantile of what the
 * model got wrong on rows it had not seen (cell.c), over scales that had not seen them either (sigma.c), each side by
 * itself, so that coverage does not depend on errors being normal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "fit/cell.h"
#include "fit/learning_constants.h"

static double quantile(const double *sorted, size_t n, double q)
{
    if (n == 0) return 0;
    double at = q * (double)(n + 1) - 1; /* conformal: n + 1 in place of n */
    if (at <= 0) return sorted[0];
    if (at >= (double)(n - 1)) return sorted[n - 1];
    size_t i = (size_t)at;
    double t = at - (double)i;
    return sorted[i] * (1 - t) + sorted[i + 1] * t;
}

bool ft__spreads(const double *z, size_t count, double inflate, float *low, float *high)
{
    double *sorted = malloc((count ? count : 1) * sizeof *sorted);
    if (!sorted) return false;
    memcpy(sorted, z, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, ft__ascending);
    for (int q = 0; q < FT_QUANTILES; q++) {
        double tail = (1 - ft__quantile_levels[q]) / 2;
        low[q] = (float)fmax(FT_K_LEARNING_LEAST_SPREAD, -inflate * quantile(sorted, count, tail));
        high[q] = (float)fmax(FT_K_LEARNING_LEAST_SPREAD, inflate * quantile(sorted, count, 1 - tail));
    }
    free(sorted);
    return true;
}

bool ft__errors_add(ft_errors *e, double residual, double low, double high)
{
    if (e->count == e->room) {
        size_t room = e->room ? 2 * e->room : 1024;
        double *at = realloc(e->residual, 3 * room * sizeof *at);
        if (!at) return false;
        memmove(at + 2 * room, at + 2 * e->room, e->count * sizeof *at);
        memmove(at + room, at + e->room, e->count * sizeof *at);
        e->residual = at;
        e->room = room;
    }
    e->low = e->residual + e->room;
    e->high = e->residual + 2 * e->room;
    e->residual[e->count] = residual;
    e->low[e->count] = low;
    e->high[e->count++] = high;
    return true;
}

bool ft__errors_summary(const ft_errors *e, ft_accuracy *out)
{
    size_t n = e->count, inside = 0;
    double *error = malloc((n ? n : 1) * sizeof *error), sum = 0, bias = 0;
    out->rows = n;
    out->mean = out->median = out->p90 = out->bias = out->inside = 0;
    if (!error || n == 0) {
        free(error);
        return n == 0;
    }
    for (size_t i = 0; i < n; i++) {
        double relative = exp(-e->residual[i]) - 1; /* forecast / measured - 1 */
        error[i] = fabs(relative);
        sum += error[i];
        bias += relative;
        inside += e->residual[i] >= -e->low[i] - 1e-12 && e->residual[i] <= e->high[i] + 1e-12;
    }
    qsort(error, n, sizeof *error, ft__ascending);
    out->mean = sum / (double)n;
    out->bias = bias / (double)n;
    out->median = ft__median(error, n);
    out->p90 = error[9 * n / 10];
    out->inside = (double)inside / (double)n;
    free(error);
    return true;
}

void ft__errors_free(ft_errors *e)
{
    free(e->residual);
    memset(e, 0, sizeof *e);
}
