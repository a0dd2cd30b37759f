/* chance.c: how likely each of several layouts is the fastest, and how likely a run ends in time.
 *
 * Forecasts of layouts of one job err together; what is left between two of them is a normal error of their ratio
 * (data/constants/search). Half of its variance is each layout's own. Layout i is the fastest when its time, with its
 * error, is below all the others': an integral over that error, done by steps. */
#include <math.h>

#include "search/choose.h"
#include "search/space_constants.h"

enum { STEPS = 400 };
static const double reach = 6; /* standard deviations to either side */

static double above(double z) { return 0.5 * erfc(z / sqrt(2)); }

void ft__plan_chances(const double *ms, size_t count, double spread, double *out)
{
    double own = spread / sqrt(2), sum = 0;
    for (size_t i = 0; i < count; i++) {
        double chance = 0;
        for (int k = 0; k <= STEPS; k++) {
            double z = reach * (2.0 * k / STEPS - 1), weight = exp(-0.5 * z * z), at = log(ms[i]) + own * z;
            for (size_t j = 0; j < count && weight > 0; j++)
                if (j != i) weight *= above((at - log(ms[j])) / own);
            chance += weight;
        }
        out[i] = chance;
        sum += chance;
    }
    for (size_t i = 0; i < count; i++) out[i] = sum > 0 ? out[i] / sum : 1 / (double)count;
}

double ft__chance_within(const ft_span *s, double limit, double level)
{
    if (!(limit > 0) || !isfinite(s->at)) return 0;
    double far = log(limit / s->at), side = far > 0 ? log(s->high / s->at) : log(s->at / s->low);
    if (!(side > 0)) return far < 0 ? 0 : 1;
    return above(-far / side * FT_K_SPACE_NINE_TENTHS * level);
}
