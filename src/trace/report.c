/* report.c: from a trace to what it shows. */
#include "trace/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/gpu.h"
#include "timeline/step.h"

/* Memory for events; a trace of 500 MB needs about 150 MB. */
static const size_t most_bytes = (size_t)700 << 20;

static void say(ft_trace_report *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(ft_trace_report *s, const char *format, ...)
{
    char line[400];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (s->warnings.length) ft__text_add(&s->warnings, "\n");
    ft__text_add(&s->warnings, line);
}

static void say_oddities(ft_trace_report *s)
{
    const ft_record *r = &s->record;
    unsigned long long events = (unsigned long long)r->events;
    if (r->broken[0]) say(s, "%s; this answer covers the %llu events before that", r->broken, events);
    if (r->capped) say(s, "the trace is too large: %zu of %llu events were left out", r->capped, events);
    if (r->skipped) say(s, "%llu events could not be read", (unsigned long long)r->skipped);
    if (r->negative) say(s, "%zu events were left out: their clock runs backwards or jumps", r->negative);
    if (r->early > r->work_count / 100 + 1)
        say(s, "%zu kernels begin before they were launched: the clocks of host and GPU differ", r->early);
    if (r->duplicate_ids)
        say(s, "%zu kernels carry an operator id that several operators share; their launches told which",
            r->duplicate_ids);
    if (r->other_devices)
        say(s, "%zu kernels of other GPUs were left out; device %lld is the busiest", r->other_devices,
            (long long)r->device);
    if (r->whole && s->kernels)
        say(s, "no ProfilerStep marks: all of the trace is taken as one step (call profiler.step() after each)");
    size_t shapeless = 0;
    for (size_t i = 0; i < s->groups.count; i++) shapeless += s->groups.at[i].kind == FT_GROUP_OP;
    if (s->kernels && shapeless == 0 && r->op_count > 0)
        say(s, "the inputs' shapes were not recorded (record_shapes=True): kernels cannot be compared with their "
               "forecasts");
}

/* -- each group against its forecast ----------------------------------------------------------- */

static const char *no_tensor_cores(const ft_trace_report *s, const ft_against *a)
{
    const ft_trace_group *g = a->group;
    if (g->called.count == 0) return "its inputs are not recorded";
    ft_dtype d = g->called.part[0].op.dtype;
    if (d == FT_FP32) return "fp32 with TF32 off: bf16, or torch.set_float32_matmul_precision(\"high\")";
    if (d == FT_FP64) return "fp64";
    if (s->device_known && !(s->device.matrix_fma_per_clk_sm > 0)) return "this GPU has no matrix units";
    return "the library chose a kernel without them";
}

static ft_status look_at_products(ft_trace_report *s, const ft_predictor *p, ft_against *a, ft_error *err)
{
    const ft_trace_group *g = a->group;
    double n = (double)s->record.step_count;
    a->product = g->called.class == FT_CALLED_PRODUCT && (g->product_ms > 0 || g->kind == FT_GROUP_OP);
    if (!a->product) return FT_OK;
    double inside = g->product_ms > 0 ? g->product_ms : g->ms;
    s->product_ms += inside / n;
    s->tensor_ms += g->tensor_ms / n;
    a->on_tensor_cores = g->tensor_ms > 0.5 * inside;
    ft_price other;
    if (!a->on_tensor_cores) {
        a->why = no_tensor_cores(s, a);
        bool fp32 = g->called.count > 0 && g->called.part[0].op.dtype == FT_FP32;
        if (s->device_known && fp32 && s->device.peak_tflops[FT_TF32] > 0) {
            FT_TRY(ft__price(p, &s->device, g, s->quantile, FT_TF32, &other, err));
            a->could_ms = other.ms * a->calls;
        }
    } else if (g->unaligned && g->called.count > 0 && g->called.part[0].op.kind == FT_OP_GEMM) {
        s->unaligned_ms += g->ms / n;
        a->why = "the row length is not a multiple of 8 elements: padding it selects the faster kernel";
        ft_trace_group padded = *g;
        for (int i = 0; i < padded.called.count; i++) {
            ft_op *op = &padded.called.part[i].op;
            if (op->kind != FT_OP_GEMM) continue;
            op->u.gemm.m += op->u.gemm.m % 8 ? 8 - op->u.gemm.m % 8 : 0;
            op->u.gemm.n += op->u.gemm.n % 8 ? 8 - op->u.gemm.n % 8 : 0;
            op->u.gemm.k += op->u.gemm.k % 8 ? 8 - op->u.gemm.k % 8 : 0;
            padded.called.part[i].manner = 0;
        }
        if (s->device_known) {
            FT_TRY(ft__price(p, &s->device, &padded, s->quantile, FT_DTYPE_COUNT, &other, err));
            a->could_ms = other.ms * a->calls;
        }
    }
    return FT_OK;
}

static int most_first(const void *x, const void *y)
{
    const ft_against *a = x, *b = y;
    if (a->above_ms != b->above_ms) return a->above_ms > b->above_ms ? -1 : 1;
    if (a->ms != b->ms) return a->ms > b->ms ? -1 : 1;
    return a->group < b->group ? -1 : a->group > b->group; /* of one array */
}

static ft_status compare(ft_trace_report *s, const ft_predictor *p, ft_error *err)
{
    double n = fmax(1, (double)s->record.step_count);
    s->against = calloc(s->groups.count + 1, sizeof *s->against);
    s->here = calloc(s->groups.count + 1, sizeof *s->here);
    if (!s->against || !s->here) return ft__no_memory(err);
    for (size_t i = 0; i < s->groups.count; i++) {
        const ft_trace_group *g = &s->groups.at[i];
        ft_against *a = &s->against[i];
        a->group = g;
        a->ms = g->ms / n;
        a->calls = g->calls / n;
        s->class_ms[g->called.class] += a->ms;
        if (s->device_known)
            FT_TRY(ft__price(p, &s->device, g, s->quantile, FT_DTYPE_COUNT, &a->price, err));
        else
            a->price = (ft_price){.family = "", .bound = FT_BOUND_MEMORY, .dtype = FT_DTYPE_COUNT};
        /* Without a forecast a kernel's own name tells what it is. */
        if (!(a->price.ms > 0) && g->called.class == FT_CALLED_PRODUCT) a->price.bound = FT_BOUND_COMPUTE;
        s->here[i] = a->price;
        if (a->price.ms > 0 && g->kind != FT_GROUP_EXCHANGE) {
            /* A kernel in a model also does what it does not do alone. */
            double below = hypot(1 - a->price.low_ms / a->price.ms, ft__trace_in_model);
            double above = hypot(a->price.high_ms / a->price.ms - 1, ft__trace_in_model);
            a->forecast_ms = a->price.ms * a->calls;
            a->low_ms = a->forecast_ms * (1 - ft__interval_below(below));
            a->high_ms = a->forecast_ms * (1 + above);
            bool copy = g->kind != FT_GROUP_OP;
            if (a->ms > a->high_ms && g->called.known && !copy) a->above_ms = a->ms - a->forecast_ms;
            s->forecast_ms += a->forecast_ms;
            s->priced_ms += a->ms;
        }
        FT_TRY(look_at_products(s, p, a, err));
    }
    return FT_OK;
}

/* -- together ---------------------------------------------------------------------------------- */

/* `key`: what the request calls it. */
static ft_status open_named(const char *name, const char *key, ft_device *out, ft_error *err)
{
    ft_status status = ft__device_open(name, out, NULL, err);
    if (status != FT_OK && err && !err->where[0]) snprintf(err->where, sizeof err->where, "%s", key);
    return status;
}

static ft_status targets_of(ft_trace_report *s, const ft_predictor *p, const char *const *targets, size_t count,
                            ft_error *err)
{
    bool own = false;
    for (size_t i = 0; i < count && s->elsewhere_count < FT_TRACE_TARGETS; i++) {
        ft_device d;
        FT_TRY(open_named(targets[i], "gpu", &d, err));
        bool same = s->device_known && !strcmp(d.name, s->device.name);
        own |= same;
        ft_elsewhere *e = &s->elsewhere[s->elsewhere_count];
        if (!s->kernels)
            FT_TRY(ft__trace_operators(s, p, &d, e, err));
        else
            FT_TRY(ft__trace_elsewhere(s, p, &d, same, e, err));
        s->elsewhere_count++;
    }
    if (own || !s->kernels || !s->device_known || s->elsewhere_count == FT_TRACE_TARGETS) return FT_OK;
    /* The recorded GPU by forecast alone stands first: it shows what the forecasts are worth on this run. */
    memmove(s->elsewhere + 1, s->elsewhere, (size_t)s->elsewhere_count * sizeof *s->elsewhere);
    FT_TRY(ft__trace_elsewhere(s, p, &s->device, true, &s->elsewhere[0], err));
    s->elsewhere_count++;
    return FT_OK;
}

static ft_status without_profiler(ft_trace_report *s, ft_error *err)
{
    if (s->record.python_events > 0 || s->record.call_count == 0) return FT_OK;
    double *scale = malloc((s->groups.count + 1) * sizeof *scale);
    if (!scale) return ft__no_memory(err);
    for (size_t i = 0; i < s->groups.count; i++) scale[i] = 1;
    ft_replayed bare;
    ft_status status = ft__replay(&s->record, scale, 1, ft__trace_note_ns, &bare, err);
    free(scale);
    s->bare_ms = bare.step_ms < s->busy.step_ms ? bare.step_ms : s->busy.step_ms;
    return status;
}

ft_status ft__trace_report_of(ft_slices *from, const ft_predictor *p, const char *on, const char *const *targets,
                              size_t target_count, double quantile, const ft_host *host, ft_trace_report *out,
                              ft_error *err)
{
    memset(out, 0, sizeof *out);
    out->quantile = quantile;
    out->host = host;
    FT_TRY(ft__record_read(from, most_bytes, &out->record, err));
    const ft_record *r = &out->record;
    for (size_t i = 0; i < r->work_count && !out->kernels; i++) out->kernels = r->work[i].step >= 0;
    if (on) {
        FT_TRY(open_named(on, "on", &out->device, err));
        out->device_known = true;
    } else {
        out->device_known = ft__find_recorded(r, &out->device, out->device_note);
    }
    if (!out->kernels && r->op_count == 0)
        return ft__fail(err, FT_E_MISSING,
                        "the trace has no operators and no kernels%s%s; record CPU and CUDA activities",
                        r->broken[0] ? ": " : "", r->broken);
    if (out->kernels && !out->device_known && target_count > 0)
        return ft__fail(err, FT_E_MISSING, "%s; say it with --on", out->device_note);
    FT_TRY(out->kernels ? ft__groups_of(&out->record, &out->groups, err)
                        : ft__groups_of_ops(&out->record, &out->groups, err));
    say_oddities(out);
    if (out->kernels && !out->device_known)
        say(out, "%s; say it with --on to see what kernels should take", out->device_note);
    else if (out->kernels && out->device_note[0])
        say(out, "%s", out->device_note);
    if (out->kernels) {
        FT_TRY(compare(out, p, err));
        FT_TRY(ft__busy_of(r, &out->groups, out->here, &out->busy, err));
        FT_TRY(without_profiler(out, err));
        if (host) say(out, "\"host\" has no effect: the trace has kernels, and its own host is replayed");
    } else {
        say(out, "the trace has no kernels: the answer is a forecast from its operators alone, issued by eager "
                 "PyTorch's host");
        if (out->groups.count == 0)
            return ft__fail(err, FT_E_MISSING,
                            "%s%sthe trace has no kernels, and of its %zu operators none says the shapes of its "
                            "inputs: record with record_shapes=True",
                            r->broken, r->broken[0] ? ": " : "", r->op_count);
        if (target_count == 0)
            return ft__fail(err, FT_E_MISSING,
                            "%s%sthe trace has no kernels: it can be forecast from its %zu operators; which GPU? --gpu",
                            r->broken, r->broken[0] ? ": " : "", r->op_count);
    }
    FT_TRY(targets_of(out, p, targets, target_count, err));
    if (out->against) qsort(out->against, out->groups.count, sizeof *out->against, most_first);
    return out->warnings.failed ? ft__no_memory(err) : FT_OK;
}

void ft__trace_report_free(ft_trace_report *s)
{
    ft__groups_free(&s->groups);
    ft__record_free(&s->record);
    free(s->against);
    free(s->here);
    ft__text_free(&s->warnings);
    memset(s, 0, sizeof *s);
}
