/* elsewhere.c: the same run on another GPU, or by forecast alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/host.h"
#include "timeline/step.h"
#include "trace/price_constants.h"
#include "trace/report.h"

/* What kernels in a model do otherwise than alone, at the 0.9 level. */
const double ft__trace_in_model = FT_K_PRICE_RECORDED;

/* What the profiler takes of the host for each operator and each call that it writes down. With Python's stacks it is
 * many times that, and not taken off. */
const double ft__trace_note_ns = FT_K_PRICE_NOTE_NS;

/* Families err together, each apart from the others, as timeline/step.c adds them up. */
typedef struct spread {
    const char *family[FT_MAX_FAMILIES + 2];
    double below[FT_MAX_FAMILIES + 2], above[FT_MAX_FAMILIES + 2];
    int count;
} spread;

static void spread_add(spread *s, const char *family, double below, double above)
{
    int i = 0;
    while (i < s->count && strcmp(s->family[i], family) != 0) i++;
    if (i == (int)(sizeof s->family / sizeof *s->family)) i--;
    if (i == s->count) {
        s->family[i] = family;
        s->below[i] = s->above[i] = 0;
        s->count++;
    }
    s->below[i] += below;
    s->above[i] += above;
}

static double spread_sum(const double *parts, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += parts[i] * parts[i];
    return sqrt(sum);
}

/* How much longer a group takes there. Where nobody can forecast it: products as the peaks of the usual format are to
 * each other, exchanges as the links are, all else as the memories. */
static double ratio_of(const ft_trace_report *s, const ft_trace_group *g, const ft_price *here, const ft_price *there,
                       const ft_device *d, bool *guessed)
{
    const ft_device *from = &s->device;
    *guessed = false;
    if (here->ms > 0 && there->ms > 0) return there->ms / here->ms;
    *guessed = true;
    if (g->kind == FT_GROUP_EXCHANGE)
        return from->link_gbps_per_direction > 0 && d->link_gbps_per_direction > 0
                   ? from->link_gbps_per_direction / d->link_gbps_per_direction
                   : 1;
    double a = ft__peak_tflops(from, s->groups.usual), b = ft__peak_tflops(d, s->groups.usual);
    if (g->called.class == FT_CALLED_PRODUCT && a > 0 && b > 0) return a / b;
    return from->memory_gbps / d->memory_gbps;
}

/* `alone`: forecasts in place of the measured times, on the GPU of the trace itself. */
ft_status ft__trace_elsewhere(ft_trace_report *s, const ft_predictor *p, const ft_device *d, bool alone,
                              ft_elsewhere *out, ft_error *err)
{
    double *scale = calloc(2 * (s->groups.count + 1), sizeof *scale), *end = scale ? scale + s->groups.count + 1 : NULL;
    if (!scale) return ft__no_memory(err);
    *out = (ft_elsewhere){.device = *d, .here = alone};
    double n = (double)s->record.step_count, busy = 0;
    spread errors = {.count = 0};
    ft_status status = FT_OK;
    for (size_t i = 0; i < s->groups.count && status == FT_OK; i++) {
        const ft_trace_group *g = &s->groups.at[i];
        const ft_price *here = &s->here[i];
        ft_price there = *here;
        bool guessed = !(here->ms > 0);
        if (!alone) status = ft__price(p, d, g, s->quantile, FT_DTYPE_COUNT, &there, err);
        if (status != FT_OK) break;
        scale[i] = alone ? (guessed || g->kind != FT_GROUP_OP || !(g->ms > 0) ? 1 : here->ms * g->calls / g->ms)
                         : ratio_of(s, g, here, &there, d, &guessed);
        double ms = g->ms * scale[i] / n, known = there.ms > 0 ? there.ms : 1;
        double below = there.ms > 0 ? 1 - there.low_ms / known : FT_K_PRICE_UNKNOWN_BELOW,
               above = there.ms > 0 ? there.high_ms / known - 1 : FT_K_PRICE_UNKNOWN_ABOVE;
        if (alone && g->kind != FT_GROUP_OP) below = above = 0;
        spread_add(&errors, there.family, ms * ft__interval_below(below), ms * above);
        busy += ms;
        *(guessed ? &out->guessed : &out->scaled) += ms;
        out->class_ms[g->called.class] += ms;
        out->instead |= there.instead && !here->instead;
    }
    ft_replayed was = {0}, now = {0}, low = {0}, high = {0}, bare = {0}, fast = {0}, slow = {0};
    double side = alone ? ft__trace_in_model : FT_K_PRICE_RATIO;
    if (status == FT_OK) status = ft__replay(&s->record, scale, 1, 0, &now, err);
    bool light = s->record.python_events == 0 && s->record.call_count > 0;
    if (status == FT_OK && light) status = ft__replay(&s->record, scale, 1, ft__trace_note_ns, &bare, err);
    for (int pass = 0; pass < 2 && status == FT_OK; pass++) {
        double share = busy > 0 ? spread_sum(pass ? errors.above : errors.below, errors.count) / busy : 0;
        share = hypot(share, side);
        for (size_t i = 0; i < s->groups.count; i++)
            end[i] = scale[i] * (pass ? 1 + share : 1 - ft__interval_below(share));
        status = ft__replay(&s->record, end, 1, 0, pass ? &high : &low, err);
    }
    /* Another GPU sits in another machine. */
    double hosts = 1 + ft__host_usual()->interval.share * ft__interval_level(s->quantile);
    fast = slow = now;
    if (status == FT_OK && !alone) status = ft__replay(&s->record, scale, 1 / hosts, 0, &fast, err);
    if (status == FT_OK && !alone) status = ft__replay(&s->record, scale, hosts, 0, &slow, err);
    for (size_t i = 0; i < s->groups.count; i++) end[i] = 1;
    if (status == FT_OK) status = ft__replay(&s->record, end, 1, 0, &was, err);
    free(scale);
    if (status != FT_OK) return status;
    /* What replaying the recording as it was gets wrong is taken out of the answer. */
    double mend = was.step_ms > 0 ? s->busy.step_ms / was.step_ms : 1;
    if (!(mend > 0.5 && mend < 2)) mend = 1;
    out->step_ms = now.step_ms * mend;
    double below = hypot(fmax(now.step_ms - low.step_ms, 0), fmax(now.step_ms - fast.step_ms, 0));
    double above = hypot(fmax(high.step_ms - now.step_ms, 0), fmax(slow.step_ms - now.step_ms, 0));
    out->low_ms = fmax(out->step_ms - below * mend, ft__interval_least(out->step_ms));
    out->high_ms = out->step_ms + above * mend;
    out->bare_ms = bare.step_ms * mend;
    out->busy_ms = now.busy_ms;
    out->idle_ms = fmax(0, out->step_ms - out->busy_ms);
    if (busy > 0) out->scaled /= busy, out->guessed /= busy;
    return FT_OK;
}

/* A trace without kernels: what its operators take there, issued one after the other by a host. */
ft_status ft__trace_operators(ft_trace_report *s, const ft_predictor *p, const ft_device *d, ft_elsewhere *out,
                              ft_error *err)
{
    double n = fmax(1, (double)s->record.step_count);
    spread errors = {.count = 0};
    *out = (ft_elsewhere){.device = *d};
    ft_price *prices = calloc(s->groups.count + 1, sizeof *prices);
    ft_status status = prices ? FT_OK : ft__no_memory(err);
    for (size_t i = 0; i < s->groups.count && status == FT_OK; i++) {
        const ft_trace_group *g = &s->groups.at[i];
        ft_price *price = &prices[i];
        status = ft__price(p, d, g, s->quantile, FT_DTYPE_COUNT, price, err);
        if (status != FT_OK) break;
        double ms = price->ms * g->calls / n;
        spread_add(&errors, price->family, (price->ms - price->low_ms) * g->calls / n,
                   (price->high_ms - price->ms) * g->calls / n);
        out->busy_ms += ms;
        *(g->called.known ? &out->scaled : &out->guessed) += ms;
        out->class_ms[g->called.class] += ms;
        out->instead |= price->instead;
    }
    double busy = fmax(out->busy_ms, 1e-12);
    double below = hypot(spread_sum(errors.below, errors.count) / busy, ft__trace_in_model);
    double above = hypot(spread_sum(errors.above, errors.count) / busy, ft__trace_in_model);
    if (status == FT_OK) status = ft__trace_pace(s, prices, below, above, out, err);
    free(prices);
    if (out->busy_ms > 0) out->scaled /= out->busy_ms, out->guessed /= out->busy_ms;
    return status;
}
