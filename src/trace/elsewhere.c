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

/* A run whose groups are put to other times: how much longer each takes than recorded, and how far off that may be. */
typedef struct scaled_run {
    double *scale, *end; /* per group; `end`: room for the same at an end of the interval */
    double busy_ms;      /* of a step */
    spread errors;
} scaled_run;

/* `out->here`: forecasts in place of the measured times. A group that nobody can forecast keeps its own. */
static ft_status scale_groups(const ft_trace_report *s, const ft_predictor *p, const ft_device *d, scaled_run *run,
                              ft_elsewhere *out, ft_error *err)
{
    double n = (double)s->record.step_count;
    for (size_t i = 0; i < s->groups.count; i++) {
        const ft_trace_group *g = &s->groups.at[i];
        const ft_price *here = &s->here[i];
        ft_price there = *here;
        bool guessed = !(here->ms > 0);
        if (out->here)
            run->scale[i] = guessed || g->kind != FT_GROUP_OP || !(g->ms > 0) ? 1 : here->ms * g->calls / g->ms;
        else {
            FT_TRY(ft__price(p, d, g, s->quantile, FT_DTYPE_COUNT, &there, err));
            run->scale[i] = ratio_of(s, g, here, &there, d, &guessed);
        }
        double ms = g->ms * run->scale[i] / n, known = there.ms > 0 ? there.ms : 1;
        double below = there.ms > 0 ? 1 - there.low_ms / known : FT_K_PRICE_UNKNOWN_BELOW,
               above = there.ms > 0 ? there.high_ms / known - 1 : FT_K_PRICE_UNKNOWN_ABOVE;
        if (out->here && g->kind != FT_GROUP_OP) below = above = 0;
        spread_add(&run->errors, there.family, ms * ft__interval_below(below), ms * above);
        run->busy_ms += ms;
        *(guessed ? &out->guessed : &out->scaled) += ms;
        out->class_ms[g->called.class] += ms;
        out->instead |= there.instead && !here->instead;
    }
    return FT_OK;
}

/* One run, replayed: `recorded` with every group as it was, the others with groups, or the host, scaled. */
typedef struct replays {
    ft_replayed recorded, now, unwatched; /* `unwatched`: less what the profiler took of the host */
    ft_replayed low, high, fast_host, slow_host;
} replays;

static ft_status replay_all(ft_trace_report *s, scaled_run *run, bool alone, replays *r, ft_error *err)
{
    const double side = alone ? ft__trace_in_model : FT_K_PRICE_RATIO;
    const size_t count = s->groups.count;
    FT_TRY(ft__replay(&s->record, run->scale, 1, 0, &r->now, err));
    bool no_python = s->record.python_events == 0 && s->record.call_count > 0;
    if (no_python) FT_TRY(ft__replay(&s->record, run->scale, 1, ft__trace_note_ns, &r->unwatched, err));
    for (int upper = 0; upper < 2; upper++) {
        const double *parts = upper ? run->errors.above : run->errors.below;
        double share = run->busy_ms > 0 ? spread_sum(parts, run->errors.count) / run->busy_ms : 0;
        share = hypot(share, side);
        for (size_t i = 0; i < count; i++)
            run->end[i] = run->scale[i] * (upper ? 1 + share : 1 - ft__interval_below(share));
        FT_TRY(ft__replay(&s->record, run->end, 1, 0, upper ? &r->high : &r->low, err));
    }
    r->fast_host = r->slow_host = r->now;
    if (!alone) { /* another GPU sits in another machine */
        double hosts = 1 + ft__host_usual()->interval.share * ft__interval_level(s->quantile);
        FT_TRY(ft__replay(&s->record, run->scale, 1 / hosts, 0, &r->fast_host, err));
        FT_TRY(ft__replay(&s->record, run->scale, hosts, 0, &r->slow_host, err));
    }
    for (size_t i = 0; i < count; i++) run->end[i] = 1;
    return ft__replay(&s->record, run->end, 1, 0, &r->recorded, err);
}

/* What replaying the recording as it was gets wrong is taken out of the answer; by more than twice, the replay
 * misunderstood it and says nothing of another. */
static double mend_of(const ft_trace_report *s, const ft_replayed *recorded)
{
    double mend = recorded->step_ms > 0 ? s->busy.step_ms / recorded->step_ms : 1;
    return mend > 0.5 && mend < 2 ? mend : 1;
}

static void conclude(const replays *r, double mend, double busy_ms, ft_elsewhere *out)
{
    const double now = r->now.step_ms;
    double below = hypot(fmax(now - r->low.step_ms, 0), fmax(now - r->fast_host.step_ms, 0));
    double above = hypot(fmax(r->high.step_ms - now, 0), fmax(r->slow_host.step_ms - now, 0));
    out->step_ms = now * mend;
    out->low_ms = fmax(out->step_ms - below * mend, ft__interval_least(out->step_ms));
    out->high_ms = out->step_ms + above * mend;
    out->bare_ms = r->unwatched.step_ms * mend;
    out->busy_ms = r->now.busy_ms;
    out->idle_ms = fmax(0, out->step_ms - out->busy_ms);
    if (busy_ms > 0) out->scaled /= busy_ms, out->guessed /= busy_ms;
}

/* `alone`: forecasts in place of the measured times, on the GPU of the trace itself. */
ft_status ft__trace_elsewhere(ft_trace_report *s, const ft_predictor *p, const ft_device *d, bool alone,
                              ft_elsewhere *out, ft_error *err)
{
    const size_t room = s->groups.count + 1;
    scaled_run run = {.scale = calloc(2 * room, sizeof *run.scale)};
    if (!run.scale) return ft__no_memory(err);
    run.end = run.scale + room;
    *out = (ft_elsewhere){.device = *d, .here = alone};
    replays r = {0};
    ft_status status = scale_groups(s, p, d, &run, out, err);
    if (status == FT_OK) status = replay_all(s, &run, alone, &r, err);
    free(run.scale);
    if (status == FT_OK) conclude(&r, mend_of(s, &r.recorded), run.busy_ms, out);
    return status;
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
