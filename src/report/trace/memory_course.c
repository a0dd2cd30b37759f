/* memory_course.c: live bytes over the step, by what they are.
 *
 * On one GPU the sweep of memory/memory.c, kernel by kernel. Each is as wide as it takes, stretched so that a pass ends
 * where the timeline has its end: what the GPU waits inside a pass is spread over its kernels. On many, where a stage
 * holds the activations of several micro-batches, the pipeline says how many those are at each moment: they grow while
 * a forward pass runs and shrink while a backward pass does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/trace/course.h"

enum { BETWEEN = 64 };

double ft__course_total(const ft_course_moment *m)
{
    double sum = 0;
    for (int k = 0; k < FT_COURSE_KINDS; k++) sum += m->bytes[k];
    return sum;
}

/* -- one GPU ----------------------------------------------------------------------------------- */

/* Iterations that were not walked: bytes go evenly from the last moment before them to the first after. */
static void fill_between(ft_memory_course *c, const ft_course_moment *after, double from, double skipped)
{
    int steps = skipped < BETWEEN ? (int)skipped : BETWEEN;
    const ft_course_moment before = c->at[c->count - 1];
    for (int i = 0; i < steps; i++) {
        ft_course_moment *m = &c->at[c->count++];
        double share = ((double)i + 0.5) / (double)steps;
        m->ms = from + (double)i / (double)steps * (after->ms - from);
        for (int k = 0; k < FT_COURSE_KINDS; k++)
            m->bytes[k] = before.bytes[k] + share * (after->bytes[k] - before.bytes[k]);
    }
}

/* The micro-batches behind the first: the same bytes again, as often as the step has them, or as a picture can tell
 * apart; then the update. `pass_ms`: of one in the rhythm of many; `update`: the first moment of the update. */
static bool repeat(ft_memory_course *c, int64_t micros, double first_ms, double pass_ms, size_t update)
{
    enum { MOMENTS = 400 };
    int64_t copies = micros - 1 < BETWEEN ? micros - 1 : BETWEEN;
    double each = pass_ms * (double)(micros - 1) / (double)copies, shift = pass_ms * (double)(micros - 1);
    ft_memory_course head = {.at = c->at, .count = update, .end = first_ms};
    size_t left = c->count - update;
    ft_course_moment *tail = malloc((left + 1) * sizeof *tail);
    if (!tail) return false;
    memcpy(tail, c->at + update, left * sizeof *tail);
    ft__memory_course_thin(&head, MOMENTS);
    size_t one = head.count;
    ft_course_moment *all = realloc(c->at, (one * (size_t)(copies + 1) + left + 1) * sizeof *all);
    if (!all) {
        free(tail);
        return false;
    }
    c->at = all;
    c->count = one;
    for (int64_t m = 0; m < copies; m++)
        for (size_t i = 0; i < one; i++) {
            c->at[c->count] = c->at[i];
            c->at[c->count++].ms = first_ms + each * ((double)m + (first_ms > 0 ? c->at[i].ms / first_ms : 0));
        }
    for (size_t i = 0; i < left; i++) {
        c->at[c->count] = tail[i];
        c->at[c->count++].ms += shift;
    }
    free(tail);
    return true;
}

/* Kernel time to the step's: each pass as long as its streams say. `block`: ms of one iteration's kernels. False: out
 * of memory. */
static bool stretch(const ft_step_view *v, const double *block, ft_memory_course *c)
{
    enum { PARTS = 3 };
    const ft_graph *g = v->graph;
    ft_rank_events rank;
    ft_error ignored;
    double kernels[PARTS] = {0};
    if (ft__rank_events(v, NULL, &rank, &ignored) != FT_OK) return true; /* no streams: kernels one after the other */
    for (int32_t b = 0; b < g->block_count; b++) {
        int part = g->blocks[b].phase == FT_FORWARD ? 0 : g->blocks[b].phase == FT_UPDATE ? 2 : 1;
        kernels[part] += block[b] * (double)(g->blocks[b].repeat > 1 ? g->blocks[b].repeat : 1);
    }
    const double passes[PARTS] = {rank.first_forward.ms, rank.first_backward.ms, rank.update.ms};
    double from[PARTS + 1] = {0}, to[PARTS + 1] = {0};
    for (int p = 0; p < PARTS; p++) {
        from[p + 1] = from[p] + kernels[p];
        to[p + 1] = to[p] + passes[p];
    }
    size_t update = 0; /* moments before it */
    for (size_t i = 0; i < c->count; i++) {
        int p = c->at[i].ms < from[1] ? 0 : c->at[i].ms < from[2] ? 1 : 2;
        if (p < 2) update = i + 1;
        double share = kernels[p] > 0 ? fmin((c->at[i].ms - from[p]) / kernels[p], 1) : 1;
        c->at[i].ms = to[p] + share * passes[p];
    }
    int64_t micros = v->work->task == FT_TRAIN && v->work->accumulate > 1 ? v->work->accumulate : 1;
    double pass_ms = rank.forward.ms + rank.backward.ms;
    c->end = fmax(to[PARTS] + pass_ms * (double)(micros - 1), v->step->step_ms);
    return micros == 1 || repeat(c, micros, to[2], pass_ms, update);
}

static bool course_of_kernels(const ft_step_view *v, ft_memory_course *out)
{
    const ft_graph *g = v->graph;
    ft_memory memory;
    ft_memory_curve curve;
    ft_error ignored;
    if (ft__step_memory_curve(g, v->work, v->device, &memory, &curve, &ignored) != FT_OK) return false;
    double *ms = calloc((size_t)g->node_count + 1, sizeof *ms), *block = calloc((size_t)g->block_count + 1, sizeof *ms);
    out->at = calloc(curve.count + 1 + (size_t)g->block_count * BETWEEN, sizeof *out->at);
    if (!ms || !block || !out->at) {
        free(ms);
        free(block);
        return false;
    }
    for (int32_t i = 0; i < v->step->kernel_count; i++) {
        const ft_timed *k = &v->step->kernels[i];
        double count = g->nodes[k->node].count > 1 ? (double)g->nodes[k->node].count : 1;
        ms[k->node] += k->forecast.ms * count;
        block[k->block] += k->forecast.ms * count;
    }
    double now = 0;
    for (size_t i = 0; i < curve.count; i++) {
        const ft_memory_point *p = &curve.points[i], *before = i ? &curve.points[i - 1] : NULL;
        double skipped = before && before->block == p->block ? (double)(p->iteration - before->iteration - 1) : 0;
        ft_course_moment here = {.ms = now + fmax(skipped, 0) * block[p->block],
                                 .bytes = {memory.weights_bytes, memory.optimizer_bytes,
                                           curve.kept.gradients_bytes + p->gradients_bytes,
                                           curve.kept.activations_bytes + p->activations_bytes,
                                           curve.kept.kv_cache_bytes + p->kv_cache_bytes, 0,
                                           curve.kept.temporary_bytes + p->temporary_bytes}};
        if (skipped > 0) fill_between(out, &here, now, skipped);
        out->at[out->count++] = here;
        now = here.ms + ms[p->node];
    }
    out->end = now;
    bool stretched = stretch(v, block, out);
    free(ms);
    free(block);
    return stretched;
}

/* -- a stage ----------------------------------------------------------------------------------- */

/* The stage holds its states alone from its last piece until the step ends. */
static void extend(const ft_step_view *v, int64_t s, ft_memory_course *c)
{
    ft_step_course whole;
    ft_error ignored;
    if (!c->count || ft__step_course(v, s, &whole, &ignored) != FT_OK || whole.end <= c->end) return;
    c->at[c->count] = c->at[c->count - 1];
    c->at[c->count++].ms = whole.end;
    c->end = whole.end;
}

static bool course_of_stage(const ft_step_view *v, ft_memory_course *out)
{
    const ft_memory *m = &v->step->memory;
    const ft_piped *pipe = &v->ranked->pipe;
    int64_t s = v->step->worst_stage >= 0 && v->step->worst_stage < v->ranked->stage_count ? v->step->worst_stage : 0;
    size_t ops = (size_t)(pipe->op_count[s] > 0 ? pipe->op_count[s] : 0);
    double held = 0, most = 1e-9, now = 0;
    out->at = calloc(2 * ops + 2, sizeof *out->at);
    double *level = calloc(2 * ops + 2, sizeof *level);
    if (!out->at || !level) {
        free(level);
        return false;
    }
    for (size_t i = 0; i < ops; i++) {
        const ft_pipe_op *op = &pipe->ops[s][i];
        const ft_stage *stage = &v->ranked->stages[s]; /* of unequal chunks each counts what it keeps */
        double one = stage->chunks.count > 1 && stage->chunk_saved ? stage->chunk_saved[op->chunk] : 1;
        double change = op->kind == FT_PIPE_FORWARD ? one : op->kind == FT_PIPE_INPUTS ? 0 : -one;
        level[out->count] = held;
        out->at[out->count++].ms = op->start;
        held = fmax(held + change, 0);
        most = fmax(most, held);
        level[out->count] = held;
        out->at[out->count++].ms = op->end;
        now = fmax(now, op->end);
    }
    for (size_t i = 0; i < out->count; i++) {
        const double bytes[FT_COURSE_KINDS] = {
            m->weights_bytes,  m->optimizer_bytes,     m->gradients_bytes, m->activations_bytes * level[i] / most,
            m->kv_cache_bytes, m->communication_bytes, m->temporary_bytes};
        memcpy(out->at[i].bytes, bytes, sizeof bytes);
    }
    free(level);
    out->slanted = true;
    out->end = now;
    extend(v, s, out);
    return true;
}

/* -- both -------------------------------------------------------------------------------------- */

bool ft__memory_course(const ft_step_view *v, ft_memory_course *out)
{
    *out = (ft_memory_course){0};
    if (!(v->ranked ? course_of_stage(v, out) : course_of_kernels(v, out))) return false;
    if (out->end > 0) return true;
    out->untimed = true; /* all of it would stand at one place */
    for (size_t i = 0; i < out->count; i++) out->at[i].ms = (double)i;
    out->end = (double)out->count;
    return true;
}

void ft__memory_course_thin(ft_memory_course *c, double bins)
{
    double bin = c->end / fmax(bins, 1);
    size_t kept = 0, from = 0;
    while (from < c->count) {
        size_t to = from + 1, most = from;
        double limit = (floor(c->at[from].ms / bin) + 1) * bin, start = c->at[from].ms;
        for (; to < c->count && c->at[to].ms < limit; to++)
            if (ft__course_total(&c->at[to]) > ft__course_total(&c->at[most])) most = to;
        ft_course_moment m = c->at[most];
        if (!c->slanted) m.ms = start;
        c->at[kept++] = m;
        from = to;
    }
    c->count = kept;
}
