/* skew.c: a mixture of experts between the skews that were measured.
 *
 * Loads are drawn from a density x^-skew (moe.c). Rows were measured at 0, 1.01 and 1.2. Above 1.5 such loads draw
 * together again, and as nobody means that by more skew, a larger figure is read as 1.5. As long as every expert has
 * tokens, 64 on average, skew adds work to the heaviest and takes nothing away: there the forecast goes in straight
 * lines between those skews and never down. With few tokens it may fall, and does when measured (H100 and H200, 0.5 to
 * 2 tokens per expert, skew 1.2: 0.66 of the balanced time in the median; 2 to 8: 0.86): experts without a token leave
 * their weights unread. */
#include "kernel/skew.h"

#include <math.h>

#include "kernel/expert.h"
#include "kernel/moe_constants.h"

static void blend(ft_forecast *low, const ft_forecast *high, double t)
{
    low->ms += (high->ms - low->ms) * t;
    low->low_ms += (high->low_ms - low->low_ms) * t;
    low->high_ms += (high->high_ms - low->high_ms) * t;
    low->sustained_ms += (high->sustained_ms - low->sustained_ms) * t;
}

ft_status ft__skewed_forecast(const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                              ft_forecast *out, ft_error *err)
{
    const double *known = ft__k_moe_skews;
    enum { COUNT = FT_K_MOE_SKEWS_COUNT };
    ft_op at = *op;
    double skew = at.u.moe.skew = fmin(op->u.moe.skew, known[COUNT - 1]);
    if (!ft__moe_all_awake(&at)) return ft__expert_forecast(p, device, &at, quantile, out, err);
    for (int i = 0; i < COUNT; i++) {
        ft_forecast next;
        at.u.moe.skew = known[i];
        FT_TRY(ft__expert_forecast(p, device, &at, quantile, &next, err));
        double t = i ? fmin((skew - known[i - 1]) / (known[i] - known[i - 1]), 1) : 1;
        if (i == 0)
            *out = next;
        else if (next.ms > out->ms && t < 1)
            blend(out, &next, t);
        else if (next.ms > out->ms)
            *out = next;
        if (skew <= known[i]) break;
    }
    return FT_OK;
}
