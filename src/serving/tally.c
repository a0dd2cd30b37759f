/* tally.c: percentiles without keeping what they are of. Bins are powers of 1.005; inside a bin weight is spread
 * evenly, and the ends are the least and the most that was seen. */
#include "serving/tally.h"

#include <math.h>

static const double first_ms = 1e-4, log_step = 0.004987541511039074; /* ln 1.005 */

static int bin_of(double ms)
{
    if (ms <= first_ms) return 0;
    double at = log(ms / first_ms) / log_step;
    return at >= FT_TALLY_BINS - 1 ? FT_TALLY_BINS - 1 : (int)at;
}

void ft__tally_add(ft_tally *t, double ms, double weight)
{
    if (weight <= 0) return;
    t->least = t->count > 0 ? fmin(t->least, ms) : ms;
    t->most = t->count > 0 ? fmax(t->most, ms) : ms;
    t->count += weight;
    t->sum += weight * ms;
    t->bin[bin_of(ms)] += weight;
}

double ft__tally_mean(const ft_tally *t) { return t->count > 0 ? t->sum / t->count : 0; }

double ft__tally_quantile(const ft_tally *t, double share)
{
    double total = 0, seen = 0;
    if (t->count <= 0) return 0;
    for (int i = 0; i < FT_TALLY_BINS; i++) total += t->bin[i];
    double wanted = share * total;
    for (int i = 0; i < FT_TALLY_BINS; i++) {
        double weight = t->bin[i];
        if (weight <= 0 || seen + weight < wanted) {
            seen += weight;
            continue;
        }
        double low = first_ms * exp(i * log_step), into = (wanted - seen) / weight;
        return fmin(t->most, fmax(t->least, low * exp(into * log_step)));
    }
    return t->most;
}

double ft__tally_share(const ft_tally *t, double ms)
{
    double total = 0, below = 0;
    int last = bin_of(ms);
    for (int i = 0; i < FT_TALLY_BINS; i++) {
        total += t->bin[i];
        if (i <= last) below += t->bin[i];
    }
    return total > 0 ? below / total : 0;
}
