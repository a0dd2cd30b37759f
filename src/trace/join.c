/* join.c: which operator lies in which, who launched what, where steps begin. */
#include <stdlib.h>
#include <string.h>

#include "trace/record.h"

/* -- orders ------------------------------------------------------------------------------------ */

/* What begins and ends together stays as the file has it, whatever qsort() does with ties: orders end in `place`. */
static void sort(void *at, size_t count, size_t size, int (*order)(const void *, const void *))
{
    if (count > 1) qsort(at, count, size, order); /* an empty array may be NULL */
}

#define ORDER(a, b) ((a) < (b) ? -1 : (a) > (b))

static int by_thread(const void *x, const void *y)
{
    const ft_trace_op *a = x, *b = y;
    int c = ORDER(a->thread, b->thread);
    if (!c) c = ORDER(a->start, b->start);
    if (!c) c = ORDER(b->end, a->end); /* the outer one first */
    if (!c) c = ORDER(b->annotation, a->annotation);
    return c ? c : ORDER(a->place, b->place);
}

static int by_correlation(const void *x, const void *y)
{
    const ft_trace_call *a = x, *b = y;
    int c = ORDER(a->correlation, b->correlation);
    if (!c) c = ORDER(a->start, b->start);
    return c ? c : ORDER(a->place, b->place);
}

static int by_start(const void *x, const void *y)
{
    const ft_trace_work *a = x, *b = y;
    int c = ORDER(a->start, b->start);
    if (!c) c = ORDER(a->end, b->end);
    return c ? c : ORDER(a->place, b->place);
}

static int by_host_start(const void *x, const void *y)
{
    const ft_trace_step *a = x, *b = y;
    int c = ORDER(a->host_start, b->host_start);
    return c ? c : ORDER(a->op, b->op);
}

typedef struct owner {
    int64_t id;
    int32_t op;
} owner;

static int by_id(const void *x, const void *y)
{
    const owner *a = x, *b = y;
    int c = ORDER(a->id, b->id);
    return c ? c : ORDER(a->op, b->op);
}

/* -- who belongs to whom ----------------------------------------------------------------------- */

/* Operators of a thread nest; one that begins inside another and ends behind it (a clock that jumped) is inside. */
static void nest(ft_record *r)
{
    sort(r->ops, r->op_count, sizeof *r->ops, by_thread);
    int32_t open = FT_TRACE_NONE;
    for (size_t i = 0; i < r->op_count; i++) {
        ft_trace_op *op = &r->ops[i];
        while (open >= 0 && (r->ops[open].thread != op->thread || r->ops[open].end <= op->start) &&
               !(r->ops[open].thread == op->thread && r->ops[open].start == op->start && op->start == op->end))
            open = r->ops[open].parent;
        op->parent = open;
        open = (int32_t)i;
    }
}

int32_t ft__record_op_begun(const ft_record *r, uint64_t thread, int64_t when)
{
    size_t low = 0, high = r->op_count; /* the first that begins later, or on a later thread */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const ft_trace_op *op = &r->ops[mid];
        if (op->thread < thread || (op->thread == thread && op->start <= when))
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 && r->ops[low - 1].thread == thread ? (int32_t)low - 1 : FT_TRACE_NONE;
}

/* The innermost operator on a thread at a moment; FT_TRACE_NONE. */
static int32_t op_at(const ft_record *r, uint64_t thread, int64_t when)
{
    enum { DEEPEST = 4096 }; /* no program nests so deep; a hostile file must not cost the square of its events */
    int32_t i = ft__record_op_begun(r, thread, when);
    for (int depth = 0; i >= 0 && r->ops[i].thread == thread && depth < DEEPEST; i = r->ops[i].parent, depth++)
        if (r->ops[i].end >= when && !r->ops[i].annotation) return i;
    return FT_TRACE_NONE;
}

/* The call with this correlation that began last before the work did. */
static int32_t call_of(const ft_record *r, int64_t correlation, int64_t before)
{
    size_t low = 0, high = r->call_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const ft_trace_call *c = &r->calls[mid];
        if (c->correlation < correlation || (c->correlation == correlation && c->start <= before))
            low = mid + 1;
        else
            high = mid;
    }
    if (low > 0 && r->calls[low - 1].correlation == correlation) return (int32_t)low - 1;
    if (low < r->call_count && r->calls[low].correlation == correlation) return (int32_t)low;
    return FT_TRACE_NONE;
}

static int32_t op_of(const owner *owners, size_t count, int64_t id, size_t *duplicates)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (owners[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == count || owners[low].id != id) return FT_TRACE_NONE;
    if (low + 1 < count && owners[low + 1].id == id) {
        ++*duplicates;
        return FT_TRACE_NONE;
    }
    return owners[low].op;
}

/* Work whose clock has nothing to do with that of the call that launched it. A few milliseconds are usual. */
static bool clock_jumped(const ft_record *r, const ft_trace_work *w)
{
    const int64_t before = INT64_C(10000000000), after = INT64_C(3600000000000); /* 10 s, an hour */
    if (w->call < 0) return false;
    const int64_t launched = r->calls[w->call].start;
    return w->start < launched - before || w->start > launched + after;
}

static ft_status own(ft_record *r, ft_error *err)
{
    sort(r->calls, r->call_count, sizeof *r->calls, by_correlation);
    for (size_t i = 0; i < r->call_count; i++) r->calls[i].op = op_at(r, r->calls[i].thread, r->calls[i].start);
    owner *owners = malloc((r->op_count + 1) * sizeof *owners);
    if (!owners) return ft__fail(err, FT_E_MEMORY, "out of memory for %zu operators", r->op_count);
    size_t count = 0;
    for (size_t i = 0; i < r->op_count; i++)
        if (r->ops[i].external > 0 && !r->ops[i].annotation) owners[count++] = (owner){r->ops[i].external, (int32_t)i};
    sort(owners, count, sizeof *owners, by_id);
    size_t kept = 0;
    for (size_t i = 0; i < r->work_count; i++) {
        ft_trace_work *w = &r->work[kept];
        *w = r->work[i];
        if (w->correlation > 0) w->call = call_of(r, w->correlation, w->start);
        if (clock_jumped(r, w)) {
            r->negative++;
            continue;
        }
        kept++;
        if (w->call >= 0 && w->start < r->calls[w->call].start) r->early++;
        if (w->external > 0) w->op = op_of(owners, count, w->external, &r->duplicate_ids);
        if (w->op < 0 && w->call >= 0) w->op = r->calls[w->call].op;
        if (w->op < 0) r->orphans++;
    }
    r->work_count = kept;
    free(owners);
    return FT_OK;
}

/* -- one GPU ----------------------------------------------------------------------------------- */

/* A process may drive several; the one that works most is looked at. */
static void choose_device(ft_record *r)
{
    enum { MOST = 64 };
    double busy[MOST] = {0};
    for (size_t i = 0; i < r->work_count; i++)
        if (r->work[i].device < MOST) busy[r->work[i].device] += (double)(r->work[i].end - r->work[i].start);
    int best = 0;
    for (int i = 1; i < MOST; i++)
        if (busy[i] > busy[best]) best = i;
    r->device = best;
    size_t kept = 0;
    for (size_t i = 0; i < r->work_count; i++)
        if (r->work[i].device == best) r->work[kept++] = r->work[i];
    r->other_devices = r->work_count - kept;
    r->work_count = kept;
}

/* -- steps ------------------------------------------------------------------------------------- */

static ft_status find_steps(ft_record *r, ft_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < r->op_count; i++)
        if (!strncmp(r->names[r->ops[i].name], "ProfilerStep#", 13)) count++;
    r->steps = calloc(count + 1, sizeof *r->steps);
    if (!r->steps) return ft__fail(err, FT_E_MEMORY, "out of memory for %zu steps", count);
    for (size_t i = 0; i < r->op_count; i++) {
        const ft_trace_op *op = &r->ops[i];
        if (strncmp(r->names[op->name], "ProfilerStep#", 13)) continue;
        r->steps[r->step_count++] =
            (ft_trace_step){.host_start = op->start, .host_end = op->end, .name = op->name, .op = (int32_t)i};
    }
    sort(r->steps, r->step_count, sizeof *r->steps, by_host_start);
    /* Several threads may have marked the same step; the later mark is dropped. */
    size_t kept = 0;
    for (size_t i = 0; i < r->step_count; i++)
        if (kept == 0 || r->steps[i].host_start >= r->steps[kept - 1].host_end) r->steps[kept++] = r->steps[i];
    r->step_count = kept;
    if (r->step_count > 0) return FT_OK;
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < r->op_count; i++) {
        if (r->ops[i].start < first) first = r->ops[i].start;
        if (r->ops[i].end > last) last = r->ops[i].end;
    }
    for (size_t i = 0; i < r->work_count; i++) {
        if (r->work[i].start < first) first = r->work[i].start;
        if (r->work[i].end > last) last = r->work[i].end;
    }
    r->whole = true;
    if (last < first) return FT_OK; /* nothing at all */
    r->steps[r->step_count++] =
        (ft_trace_step){.host_start = first, .host_end = last, .name = FT_TRACE_NONE, .op = FT_TRACE_NONE};
    return FT_OK;
}

int32_t ft__record_step_at(const ft_record *r, int64_t when)
{
    size_t low = 0, high = r->step_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (r->steps[mid].host_start <= when)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 && when <= r->steps[low - 1].host_end ? (int32_t)low - 1 : FT_TRACE_NONE;
}

/* The step in which the host launched it: by the launch, by the operator, or by its own begin. */
static int32_t step_of(const ft_record *r, const ft_trace_work *w)
{
    int64_t when = w->call >= 0 ? r->calls[w->call].start : w->op >= 0 ? r->ops[w->op].start : w->start;
    if (r->whole) return r->step_count ? 0 : FT_TRACE_NONE;
    /* Launched before the recording began: what the steps before had left in the queue. */
    const bool some_owned = r->orphans < r->work_count + r->other_devices; /* else no kernel says who launched it */
    if (w->call < 0 && w->op < 0 && r->call_count > 0 && some_owned) return FT_TRACE_NONE;
    return ft__record_step_at(r, when);
}

/* The host may be ahead of the GPU by most of a step. A step of the GPU lasts from the end of the work of the one
 * before, or from the host's mark where the GPU had nothing left to do, to the same moment of the next. */
static void bound_steps(ft_record *r)
{
    for (size_t i = 0; i < r->step_count; i++) r->steps[i].start = INT64_MAX, r->steps[i].end = INT64_MIN;
    for (size_t i = 0; i < r->work_count; i++) {
        ft_trace_work *w = &r->work[i];
        w->step = step_of(r, w);
        if (w->step < 0) continue;
        ft_trace_step *s = &r->steps[w->step];
        if (w->start < s->start) s->start = w->start;
        if (w->end > s->end) s->end = w->end;
    }
    int64_t before = INT64_MIN;
    for (size_t i = 0; i < r->step_count; i++) {
        ft_trace_step *s = &r->steps[i];
        if (s->start == INT64_MAX) s->start = s->host_start, s->end = s->host_end; /* nothing ran */
        int64_t begin = before > s->host_start ? before : s->host_start;
        /* Nothing was recorded before the first one. A kernel that waited for its turn tells that something ran, and
         * work of no step says until when. */
        for (size_t k = 0; i == 0 && k < r->work_count; k++) {
            const ft_trace_work *w = &r->work[k];
            if (w->step < 0 && w->end > begin && w->end <= s->end) begin = w->end;
            if (w->step != 0) continue;
            int64_t launched = w->call >= 0 ? r->calls[w->call].end : w->start;
            if (w->start - launched > 50000 && begin == s->host_start) begin = w->start;
            if (begin > w->start || r->whole) begin = w->start;
            break; /* the first: they are in order */
        }
        s->start = begin < s->end ? begin : s->start;
        if (!r->whole && s->host_end > s->end) s->end = s->host_end;
        before = s->end;
    }
}

ft_status ft__record_join(ft_record *r, ft_error *err)
{
    if (r->op_count > INT32_MAX / 2 || r->call_count > INT32_MAX / 2 || r->work_count > INT32_MAX / 2)
        return ft__fail(err, FT_E_RANGE, "a trace of more than a billion events");
    nest(r);
    FT_TRY(own(r, err));
    choose_device(r);
    sort(r->work, r->work_count, sizeof *r->work, by_start);
    FT_TRY(find_steps(r, err));
    bound_steps(r);
    return FT_OK;
}
