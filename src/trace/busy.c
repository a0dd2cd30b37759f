/* busy.c: what the GPU did at every moment of the steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "trace/scan.h"

static bool waits(const char *call)
{
    return strstr(call, "Synchronize") != NULL; /* cuda and hip: Stream, Device, Event, Ctx */
}

static int by_start(const void *x, const void *y)
{
    const ft_trace_call *a = *(const ft_trace_call *const *)x, *b = *(const ft_trace_call *const *)y;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a < b ? -1 : a > b; /* of one array */
}

/* -- one step ---------------------------------------------------------------------------------- */

static bool is_copy(const ft_trace_groups *groups, const ft_trace_work *w)
{
    return w->group >= 0 && (groups->at[w->group].kind == FT_GROUP_UP || groups->at[w->group].kind == FT_GROUP_DOWN);
}

/* The work of a step in order of its start: what is new of each piece goes to what holds it, what lies between is a
 * gap. */
static void walk(ft_trace_scan *l, int32_t step, const int32_t *list, size_t count, const ft_trace_groups *groups,
                 const ft_price *prices)
{
    const ft_trace_step *s = &l->r->steps[step];
    ft_busy *b = l->out;
    int64_t all = s->start, kernels = all;
    for (size_t i = 0; i < count; i++) {
        const ft_trace_work *w = &l->r->work[list[i]];
        int64_t from = w->start < s->start ? s->start : w->start, to = w->end > s->end ? s->end : w->end;
        if (to <= from) continue;
        bool copy = is_copy(groups, w);
        double length = (double)(to - from) * 1e-6;
        if (w->exchange) b->exchange_ms += length;
        if (copy) b->copy_ms += length;
        if (from > all) ft__trace_scan_gap(l, all, from, w);
        if (!w->exchange && !copy) {
            int64_t begin = from > kernels ? from : kernels;
            double fresh = to > begin ? (double)(to - begin) * 1e-6 : 0;
            ft_bound bound = w->group >= 0 ? prices[w->group].bound : FT_BOUND_MEMORY;
            if (bound == FT_BOUND_COMPUTE)
                b->compute_ms += fresh;
            else if (bound == FT_BOUND_OVERHEAD)
                b->launch_ms += fresh;
            else
                b->memory_ms += fresh;
            if (to > kernels) kernels = to;
        }
        if (to > all) {
            b->busy_ms += (double)(to - (from > all ? from : all)) * 1e-6;
            all = to;
        }
    }
    if (s->end <= all) return;
    ft_trace_work tail = {.call = FT_TRACE_NONE, .op = FT_TRACE_NONE, .name = FT_TRACE_NONE, .step = step};
    if (count > 0) tail.call = l->r->work[list[count - 1]].call; /* the thread to look at */
    ft__trace_scan_gap(l, all, s->end, &tail);
}

/* Time in which exchanges (or copies) run and nothing else does: what they add to the union of the rest. */
static double alone(const ft_record *r, const ft_trace_groups *groups, bool copies)
{
    double with = 0, without = 0;
    int64_t end_with = INT64_MIN, end_without = INT64_MIN;
    for (size_t i = 0; i < r->work_count; i++) {
        const ft_trace_work *w = &r->work[i];
        bool copy = is_copy(groups, w), wanted = copies ? copy : w->exchange;
        if (w->step < 0 || (!wanted && (copy || w->exchange))) continue;
        if (w->end > end_with) {
            with += (double)(w->end - (w->start > end_with ? w->start : end_with));
            end_with = w->end;
        }
        if (wanted || w->end <= end_without) continue;
        without += (double)(w->end - (w->start > end_without ? w->start : end_without));
        end_without = w->end;
    }
    return fmax(0, with - without) * 1e-6;
}

/* Work by step: `first[i]` to `first[i + 1]` of the list. NULL: out of memory. */
static int32_t *by_step(const ft_record *r, size_t *first)
{
    int32_t *list = malloc((r->work_count + 1) * sizeof *list);
    if (!list) return NULL;
    for (size_t i = 0; i < r->work_count; i++)
        if (r->work[i].step >= 0) first[r->work[i].step + 1]++;
    for (size_t i = 0; i < r->step_count; i++) first[i + 1] += first[i];
    for (size_t i = 0; i < r->work_count; i++)
        if (r->work[i].step >= 0) list[first[r->work[i].step]++] = (int32_t)i;
    for (size_t i = r->step_count; i > 0; i--) first[i] = first[i - 1];
    first[0] = 0;
    return list;
}

/* -- waiting ----------------------------------------------------------------------------------- */

static void count_waits(ft_trace_scan *l)
{
    const ft_record *r = l->r;
    ft_busy *b = l->out;
    for (size_t i = 0; i < l->wait_count; i++) {
        const ft_trace_call *c = l->waits[i];
        if (ft__record_step_at(r, c->start) < 0) continue;
        const char *call = r->names[c->name];
        int32_t op = c->op;
        while (op >= 0 && r->ops[op].parent >= 0 && !r->ops[r->ops[op].parent].annotation &&
               strcmp(r->names[r->ops[op].name], "aten::item") != 0)
            op = r->ops[op].parent;
        const char *by = op >= 0 ? r->names[r->ops[op].name] : "";
        int k = 0;
        while (k < b->sync_count && (strncmp(b->syncs[k].call, call, 47) || strncmp(b->syncs[k].op, by, 63))) k++;
        double ms = (double)(c->end - c->start) * 1e-6;
        b->sync_ms += ms;
        if (k == FT_TRACE_SYNCS) continue;
        if (k == b->sync_count) {
            memset(&b->syncs[k], 0, sizeof b->syncs[k]);
            snprintf(b->syncs[k].call, sizeof b->syncs[k].call, "%.47s", call);
            snprintf(b->syncs[k].op, sizeof b->syncs[k].op, "%.63s", by);
            b->sync_count++;
        }
        b->syncs[k].count++;
        b->syncs[k].ms += ms;
    }
}

/* -- together ---------------------------------------------------------------------------------- */

static ft_status step_times(const ft_record *r, ft_busy *b, ft_error *err)
{
    double *ms = malloc((r->step_count + 1) * sizeof *ms);
    if (!ms) return ft__no_memory(err);
    for (size_t i = 0; i < r->step_count; i++) ms[i] = (double)(r->steps[i].end - r->steps[i].start) * 1e-6;
    qsort(ms, r->step_count, sizeof *ms, ft__ascending);
    b->step_ms = ft__median(ms, r->step_count);
    b->low_ms = ms[0];
    b->high_ms = ms[r->step_count - 1];
    free(ms);
    return FT_OK;
}

static void per_step(ft_busy *b, double n)
{
    double *const figures[] = {&b->busy_ms,    &b->compute_ms, &b->memory_ms,       &b->launch_ms, &b->exchange_ms,
                               &b->exposed_ms, &b->copy_ms,    &b->copy_exposed_ms, &b->sync_ms,   &b->kernels};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) *figures[i] /= n;
    for (int i = 0; i < FT_GAP_CAUSES; i++) b->cause_ms[i] /= n;
    for (int i = 0; i < b->sync_count; i++) {
        b->syncs[i].count /= n;
        b->syncs[i].ms /= n;
    }
}

ft_status ft__busy_of(const ft_record *r, const ft_trace_groups *g, const ft_price *prices, ft_busy *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    if (r->step_count == 0) return FT_OK;
    FT_TRY(step_times(r, out, err));
    ft_trace_scan l = {.r = r, .out = out};
    l.waits = malloc((r->call_count + 1) * sizeof *l.waits);
    if (!l.waits) return ft__no_memory(err);
    for (size_t i = 0; i < r->call_count; i++)
        if (waits(r->names[r->calls[i].name])) l.waits[l.wait_count++] = &r->calls[i];
    if (l.wait_count > 1) qsort(l.waits, l.wait_count, sizeof *l.waits, by_start);
    size_t *first = calloc(r->step_count + 2, sizeof *first);
    int32_t *list = first ? by_step(r, first) : NULL;
    if (!list) {
        free(first);
        free(l.waits);
        return ft__no_memory(err);
    }
    int64_t streams[16];
    int stream_count = 0;
    double span = 0;
    for (size_t i = 0; i < r->step_count; i++) {
        walk(&l, (int32_t)i, list + first[i], first[i + 1] - first[i], g, prices);
        span += (double)(r->steps[i].end - r->steps[i].start) * 1e-6;
    }
    free(list);
    free(first);
    for (size_t i = 0; i < r->work_count; i++) {
        const ft_trace_work *w = &r->work[i];
        if (w->step < 0) continue;
        out->kernels += w->kind == FT_EVENT_KERNEL;
        int k = 0;
        while (k < stream_count && streams[k] != w->stream) k++;
        if (k == stream_count && k < 16) streams[stream_count++] = w->stream;
    }
    out->streams = stream_count;
    out->exposed_ms = alone(r, g, false);
    out->copy_exposed_ms = alone(r, g, true);
    count_waits(&l);
    free(l.waits);
    per_step(out, (double)r->step_count);
    double mean = span / (double)r->step_count;
    out->idle_ms = fmax(0, mean - out->busy_ms);
    if (mean > 0) {
        out->share[FT_BOUND_COMPUTE] = out->compute_ms / mean;
        out->share[FT_BOUND_MEMORY] = (out->memory_ms + out->copy_exposed_ms) / mean;
        out->share[FT_BOUND_COMMUNICATION] = out->exposed_ms / mean;
        out->share[FT_BOUND_OVERHEAD] = fmax(0, 1 - out->share[FT_BOUND_COMPUTE] - out->share[FT_BOUND_MEMORY] -
                                                    out->share[FT_BOUND_COMMUNICATION]);
    }
    for (int i = 0; i < 4; i++)
        if (out->share[i] > out->share[out->bound]) out->bound = (ft_bound)i;
    return FT_OK;
}
