/* replay.c: the recorded run once more, with kernels of other lengths.
 *
 * The host does what it did: between two calls it takes as long as it took. What changes is what it waits for. A kernel
 * begins when it has been launched and when its stream is free, or, where it waited for neither in the recording, when
 * the work of another stream that it had waited for is done. A call in which the host waited (a synchronisation, a copy
 * that blocks, a launch into a full queue) ends when what it waited for does. This is how Daydream (Zhu et al. 2020)
 * and dPRO ask what-if questions of traces; threads of the host are taken as one, since the autograd engine's and the
 * program's take turns.
 *
 * Another host takes so many times as long for what is its own: the calls, and what lies between them. The profiler's
 * own time can be taken off: so much for every operator and call that it wrote down, where the host was not waiting. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "trace/gaps_constants.h"
#include "trace/report.h"

enum { STREAMS = 64, QUEUE = 1000 };

typedef enum moment_kind { LAUNCH, WAIT, STEP_BEGIN, STEP_END } moment_kind;

typedef struct moment { /* on the host */
    int64_t at, end;
    int32_t number; /* of a launch its first piece of work, of a step or a wait its own */
    moment_kind kind;
} moment;

typedef struct lane { /* a stream */
    int64_t stream;
    int64_t old_end;
    double new_end;
} lane;

typedef struct replaying {
    const ft_record *r;
    const double *scale;
    lane lanes[STREAMS];
    int lane_count;
    double host;      /* times as long as the host took of its own */
    double shift;     /* of the host against the recording, ns */
    int64_t old_done; /* all work launched so far, in the recording and now */
    double new_done;
    double ring[QUEUE]; /* ends of the last pieces of work */
    size_t launched;
    double *begins, *ends; /* of steps, on the host and of their work */
    int64_t *noted;        /* when the profiler wrote something down, in order */
    size_t noted_count, noted_at;
    double note_ns;
    int64_t before; /* the end of the last moment, in the recording */
} replaying;

static int by_time(const void *x, const void *y)
{
    const moment *a = x, *b = y;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    if (a->kind != b->kind) return (int)b->kind - (int)a->kind;
    return a->number < b->number ? -1 : a->number > b->number;
}

static lane *lane_of(replaying *p, int64_t stream)
{
    for (int i = 0; i < p->lane_count; i++)
        if (p->lanes[i].stream == stream) return &p->lanes[i];
    if (p->lane_count == STREAMS) return &p->lanes[STREAMS - 1];
    p->lanes[p->lane_count] = (lane){stream, INT64_MIN, -1e300};
    return &p->lanes[p->lane_count++];
}

/* Runs one piece of work that the host handed over at `handed` (then) and `handed` + shift (now). */
static void run(replaying *p, const ft_trace_work *w, int64_t handed, double handed_now)
{
    lane *own = lane_of(p, w->stream);
    int64_t ready = own->old_end > handed ? own->old_end : handed;
    double ready_now = fmax(own->new_end, handed_now), late = (double)(w->start - ready);
    if (late > 10000) { /* it waited for somebody else: for whoever finished last before it began */
        const lane *other = NULL;
        for (int i = 0; i < p->lane_count; i++) {
            const lane *l = &p->lanes[i];
            if (l != own && l->old_end <= w->start + 1000 && l->old_end > ready &&
                (!other || l->old_end > other->old_end))
                other = l;
        }
        if (other) {
            late = (double)(w->start - other->old_end);
            ready_now = fmax(ready_now, other->new_end);
        }
    }
    double scale = w->group >= 0 ? p->scale[w->group] : 1;
    double end = ready_now + fmax(late, 0) + (double)(w->end - w->start) * scale;
    own->old_end = w->end > own->old_end ? w->end : own->old_end;
    own->new_end = end;
    if (w->end > p->old_done) p->old_done = w->end;
    if (end > p->new_done) p->new_done = end;
    p->ring[p->launched++ % QUEUE] = end;
    if (w->step >= 0 && end > p->ends[w->step]) p->ends[w->step] = end;
}

static void launch(replaying *p, const moment *m, const int32_t *next)
{
    double start_now = (double)m->at + p->shift, normal = fmin((double)(m->end - m->at), FT_K_GAPS_CALL_NS) * p->host;
    double oldest = p->launched >= QUEUE ? p->ring[p->launched % QUEUE] : -1e300;
    /* The queue holds about a thousand launches: a long call waited for room in it. */
    double end_now = start_now + normal;
    bool long_call = m->end - m->at > 100000;
    if (long_call && p->launched >= QUEUE) end_now = fmax(end_now, oldest);
    bool blocks = false;
    int64_t done = 0;
    for (int32_t i = m->number; i >= 0; i = next[i]) {
        const ft_trace_work *w = &p->r->work[i];
        run(p, w, m->at, start_now);
        if (w->kind == FT_EVENT_MEMCPY && w->end <= m->end + 2000 && w->end > m->at) blocks = true, done = w->end;
    }
    if (blocks)
        end_now = fmax(start_now, p->new_done) + (double)(m->end - done);
    else if (long_call && p->launched < QUEUE)
        end_now = start_now + (double)(m->end - m->at); /* no queue is full */
    p->shift = end_now - (double)m->end;
}

static void wait(replaying *p, const moment *m)
{
    double start_now = (double)m->at + p->shift;
    bool waited = p->old_done > m->at && p->old_done <= m->end + 5000;
    double after = waited ? fmax(0, (double)(m->end - p->old_done)) : (double)(m->end - m->at);
    p->shift = (waited ? fmax(start_now, p->new_done) : start_now) + after - (double)m->end;
}

/* What the profiler wrote down since the last moment made the host that much later; no more than half of the time. */
static void lighten(replaying *p, int64_t now)
{
    size_t notes = 0;
    while (p->noted_at < p->noted_count && p->noted[p->noted_at] < now) {
        notes += p->noted[p->noted_at] >= p->before;
        p->noted_at++;
    }
    if (p->before != INT64_MIN && now > p->before)
        p->shift -= fmin((double)notes * p->note_ns, 0.5 * (double)(now - p->before));
}

/* Between two calls the host is at work of its own, which another host does in another time. */
static void stretch(replaying *p, int64_t now)
{
    if (p->before != INT64_MIN && now > p->before) p->shift += (p->host - 1) * (double)(now - p->before);
}

static int in_order(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

static bool take_notes(replaying *p)
{
    const ft_record *r = p->r;
    p->noted = malloc((r->op_count + r->call_count + 1) * sizeof *p->noted);
    if (!p->noted) return false;
    for (size_t i = 0; i < r->op_count; i++) p->noted[p->noted_count++] = r->ops[i].start;
    for (size_t i = 0; i < r->call_count; i++) p->noted[p->noted_count++] = r->calls[i].start;
    if (p->noted_count > 1) qsort(p->noted, p->noted_count, sizeof *p->noted, in_order);
    return true;
}

/* -- moments ----------------------------------------------------------------------------------- */

/* What the host did, in order; `next` chains the work of one call. */
static size_t collect(const ft_record *r, moment *out, int32_t *next)
{
    size_t count = 0;
    int32_t *last = malloc((r->call_count + 1) * sizeof *last), *place = malloc((r->call_count + 1) * sizeof *place);
    if (!last || !place) {
        free(last);
        free(place);
        return SIZE_MAX;
    }
    for (size_t i = 0; i < r->call_count; i++) last[i] = place[i] = FT_TRACE_NONE;
    for (size_t i = 0; i < r->work_count; i++) {
        const ft_trace_work *w = &r->work[i];
        next[i] = FT_TRACE_NONE;
        if (w->call < 0) continue;
        if (last[w->call] >= 0)
            next[last[w->call]] = (int32_t)i;
        else {
            place[w->call] = (int32_t)count;
            const ft_trace_call *c = &r->calls[w->call];
            out[count++] = (moment){c->start, c->end, (int32_t)i, LAUNCH};
        }
        last[w->call] = (int32_t)i;
    }
    for (size_t i = 0; i < r->call_count; i++)
        if (place[i] < 0 && strstr(r->names[r->calls[i].name], "Synchronize"))
            out[count++] = (moment){r->calls[i].start, r->calls[i].end, (int32_t)i, WAIT};
    for (size_t i = 0; i < r->step_count; i++) {
        out[count++] = (moment){r->steps[i].host_start, r->steps[i].host_start, (int32_t)i, STEP_BEGIN};
        out[count++] = (moment){r->steps[i].host_end, r->steps[i].host_end, (int32_t)i, STEP_END};
    }
    free(last);
    free(place);
    if (count > 1) qsort(out, count, sizeof *out, by_time);
    return count;
}

/* Steps as join.c bounds them: from the end of the one before to the end of its own work, or of the host's part. */
static double median_step(const replaying *p, const double *host_end, double *ms)
{
    const ft_record *r = p->r;
    double before = -1e300;
    for (size_t i = 0; i < r->step_count; i++) {
        double end = p->ends[i] > -1e299 ? p->ends[i] : host_end[i];
        if (!r->whole) end = fmax(end, host_end[i]);
        double begin = i == 0 ? (double)r->steps[0].start : fmax(before, p->begins[i]);
        ms[i] = fmax(end - begin, 0) * 1e-6;
        before = end;
    }
    qsort(ms, r->step_count, sizeof *ms, ft__ascending);
    return ft__median(ms, r->step_count);
}

ft_status ft__replay(const ft_record *r, const double *scale, double host, double note_ns, ft_replayed *out,
                     ft_error *err)
{
    memset(out, 0, sizeof *out);
    if (r->step_count == 0) return FT_OK;
    size_t most = r->work_count + r->call_count + 2 * r->step_count + 1;
    moment *moments = malloc(most * sizeof *moments);
    int32_t *next = malloc((r->work_count + 1) * sizeof *next);
    double *steps = calloc(4 * (r->step_count + 1), sizeof *steps);
    replaying *p = calloc(1, sizeof *p);
    size_t count = moments && next && steps && p ? collect(r, moments, next) : SIZE_MAX;
    ft_status status = FT_OK;
    if (count == SIZE_MAX) {
        status = ft__fail(err, FT_E_MEMORY, "out of memory for a trace of %zu kernels", r->work_count);
    } else {
        size_t n = r->step_count + 1;
        *p = (replaying){.r = r, .scale = scale, .host = host, .old_done = INT64_MIN, .new_done = -1e300};
        p->begins = steps;
        p->ends = steps + n;
        double *host_end = steps + 2 * n;
        for (size_t i = 0; i < r->step_count; i++) p->ends[i] = -1e300;
        /* Launched before the recording began, or by nobody knows whom: it comes first, gaps as they were. */
        for (size_t i = 0; i < r->work_count; i++) {
            const ft_trace_work *w = &r->work[i];
            if (w->call >= 0) continue;
            const lane *own = lane_of(p, w->stream);
            bool alone = own->old_end == INT64_MIN || w->group < 0;
            run(p, w, alone ? w->start : own->old_end, alone ? (double)w->start : own->new_end);
        }
        p->note_ns = note_ns;
        p->before = INT64_MIN;
        if (note_ns > 0 && !take_notes(p)) status = ft__no_memory(err);
        for (size_t i = 0; i < count; i++) {
            const moment *m = &moments[i];
            lighten(p, m->at);
            stretch(p, m->at);
            p->before = m->end > p->before ? m->end : p->before;
            if (m->kind == LAUNCH)
                launch(p, m, next);
            else if (m->kind == WAIT)
                wait(p, m);
            else if (m->kind == STEP_BEGIN)
                p->begins[m->number] = (double)m->at + p->shift;
            else
                host_end[m->number] = (double)m->at + p->shift;
        }
        out->step_ms = median_step(p, host_end, steps + 3 * n);
        for (size_t i = 0; i < r->work_count; i++)
            if (r->work[i].step >= 0 && r->work[i].group >= 0)
                out->busy_ms += (double)(r->work[i].end - r->work[i].start) * 1e-6 * scale[r->work[i].group];
        out->busy_ms /= (double)r->step_count;
    }
    free(moments);
    free(next);
    free(steps);
    if (p) free(p->noted);
    free(p);
    return status;
}
