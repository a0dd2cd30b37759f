/* svg_memory.c: live bytes over the step, by what they are.
 *
 * On one GPU the sweep of memory/memory.c, kernel by kernel, each as wide as it takes. On many, where a stage holds
 * the activations of several micro-batches, the pipeline says how many those are at each moment: they grow while a
 * forward pass runs and shrink while a backward pass does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/html/svg_pictures.h"
#include "report/text/lines.h"
#include "report/text/step_words.h"
#include "report/text/style.h"

enum { KINDS = 7, BETWEEN = 64 };
const ft_key ft__memory_keys[KINDS] = {{"m0", "weights"},     {"m1", "optimizer"}, {"m2", "gradients"},
                                       {"m3", "activations"}, {"m4", "KV cache"},  {"m5", "communication"},
                                       {"m6", "temporary"}};

typedef struct moment {
    double ms; /* when it begins */
    double bytes[KINDS];
} moment;

typedef struct course {
    moment *at;
    size_t count;
    double end;
    bool slanted; /* linear from one moment to the next; otherwise steps */
} course;

static double total(const moment *m)
{
    double sum = 0;
    for (int k = 0; k < KINDS; k++) sum += m->bytes[k];
    return sum;
}

/* -- one GPU ----------------------------------------------------------------------------------- */

/* Iterations that were not walked: bytes go evenly from the last moment before them to the first after. */
static void fill_between(course *c, const moment *after, double from, double skipped)
{
    int steps = skipped < BETWEEN ? (int)skipped : BETWEEN;
    const moment before = c->at[c->count - 1];
    for (int i = 0; i < steps; i++) {
        moment *m = &c->at[c->count++];
        double share = ((double)i + 0.5) / (double)steps;
        m->ms = from + (double)i / (double)steps * (after->ms - from);
        for (int k = 0; k < KINDS; k++) m->bytes[k] = before.bytes[k] + share * (after->bytes[k] - before.bytes[k]);
    }
}

static bool course_of_kernels(const ft_step_view *v, course *out)
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
        moment here = {.ms = now + fmax(skipped, 0) * block[p->block],
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
    free(ms);
    free(block);
    return true;
}

/* -- a stage ----------------------------------------------------------------------------------- */

static bool course_of_stage(const ft_step_view *v, course *out)
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
        const double bytes[KINDS] = {
            m->weights_bytes,  m->optimizer_bytes,     m->gradients_bytes, m->activations_bytes * level[i] / most,
            m->kv_cache_bytes, m->communication_bytes, m->temporary_bytes};
        memcpy(out->at[i].bytes, bytes, sizeof bytes);
    }
    free(level);
    out->slanted = true;
    out->end = now;
    return true;
}

/* -- drawing ----------------------------------------------------------------------------------- */

/* One moment per pixel and a half, the fullest: a peak must not be lost between pixels. */
static void thin_out(course *c, double pixels)
{
    double bin = c->end / fmax(pixels / 1.5, 1);
    size_t kept = 0, from = 0;
    while (from < c->count) {
        size_t to = from + 1, most = from;
        double limit = (floor(c->at[from].ms / bin) + 1) * bin, start = c->at[from].ms;
        for (; to < c->count && c->at[to].ms < limit; to++)
            if (total(&c->at[to]) > total(&c->at[most])) most = to;
        moment m = c->at[most];
        if (!c->slanted) m.ms = start;
        c->at[kept++] = m;
        from = to;
    }
    c->count = kept;
}

static void add_layer(ft_text *out, const course *c, int kind, const ft_ruler *x, const ft_ruler *y)
{
    double any = 0;
    for (size_t i = 0; i < c->count; i++) any = fmax(any, c->at[i].bytes[kind]);
    if (any <= 0 || c->count == 0) return;
    ft__text_addf(out, "<path class=\"area edge %s\" d=\"M", ft__memory_keys[kind].class);
    for (int side = 0; side < 2; side++)
        for (size_t n = 0; n < c->count; n++) {
            size_t i = side ? c->count - 1 - n : n;
            double sum = 0, next = i + 1 < c->count ? c->at[i + 1].ms : c->end;
            for (int k = 0; k < kind + (side ? 0 : 1); k++) sum += c->at[i].bytes[k];
            double px = ft__ruler_at(x, c->at[i].ms), py = ft__ruler_at(y, sum / 1073741824.0);
            if (c->slanted)
                ft__text_addf(out, "%.1f,%.1f ", px, py);
            else if (side)
                ft__text_addf(out, "%.1f,%.1f %.1f,%.1f ", ft__ruler_at(x, next), py, px, py);
            else
                ft__text_addf(out, "%.1f,%.1f %.1f,%.1f ", px, py, ft__ruler_at(x, next), py);
        }
    ft__text_addf(out, "Z\"><title>%s</title></path>\n", ft__memory_keys[kind].name);
}

static void mark_peak(ft_text *out, const ft_frame *f, const ft_step_view *v, const course *c, const ft_ruler *x,
                      const ft_ruler *y)
{
    size_t most = 0;
    for (size_t i = 0; i < c->count; i++)
        if (total(&c->at[i]) > total(&c->at[most])) most = i;
    ft_text t = {.cap = 1024};
    ft__text_add(&t, "peak ");
    ft__add_gib(&t, v->step->memory.peak_bytes);
    ft__text_add(&t, " GiB");
    if (!v->ranked && !f->narrow) {
        ft__text_add(&t, ": ");
        ft__add_peak_place(&t, v);
    }
    double px = ft__ruler_at(x, c->at[most].ms), py = ft__ruler_at(y, total(&c->at[most]) / 1073741824.0);
    double half = ft__svg_label_width(t.at ? t.at : "") / 2, at = fmin(fmax(px, x->from + half), x->to - half);
    ft__text_addf(out, "<circle class=\"value peak\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", px, py);
    if (t.at) ft__svg_label(out, at, py - 9, FT_MIDDLE, "strong halo", t.at);
    out->failed |= t.failed;
    ft__text_free(&t);
}

/* Its words stand over the line, or under it where those of the peak would lie over them. */
static void add_capacity(ft_text *out, const ft_ruler *x, const ft_ruler *y, double gib, double peak_gib)
{
    ft_text t = {.cap = 256};
    double py = ft__ruler_at(y, gib), peak = ft__ruler_at(y, peak_gib);
    bool under = fabs((peak - 9) - (py - 6)) < 16;
    ft__svg_line(out, x->from, py, x->to, py, "under"); /* it may cross any colour */
    ft__svg_line(out, x->from, py, x->to, py, "limit");
    ft__text_add(&t, "the GPU has ");
    ft__add_figure(&t, gib, 3);
    ft__text_add(&t, " GiB");
    if (t.at) ft__svg_label(out, x->from + 6, under ? py + 15 : py - 6, FT_START, "halo", t.at);
    out->failed |= t.failed;
    ft__text_free(&t);
}

bool ft__svg_memory(ft_text *out, const ft_frame *f, const ft_step_view *v)
{
    course c = {0};
    if (!(v->ranked ? course_of_stage(v, &c) : course_of_kernels(v, &c))) {
        free(c.at);
        return false;
    }
    ft_key keys[KINDS];
    size_t key_count = 0;
    double most = 0;
    for (int k = 0; k < KINDS; k++)
        for (size_t i = 0; i < c.count; i++)
            if (c.at[i].bytes[k] > 0) {
                keys[key_count++] = ft__memory_keys[k];
                break;
            }
    for (size_t i = 0; i < c.count; i++) most = fmax(most, total(&c.at[i]) / 1073741824.0);
    double capacity = v->step->memory.capacity_bytes / 1073741824.0;
    bool near = capacity > 0 && capacity < 2.2 * most;
    double top = ft__svg_keys_height(f, 0, keys, key_count) + 32, bottom = top + (f->narrow ? 200 : 260);
    ft_ruler x = {.low = 0, .high = c.end > 0 ? c.end : 1, .from = f->narrow ? 40 : 60, .to = f->width - 12};
    ft_ruler y = {.low = 0, .high = fmax(most, near ? capacity : 0) * 1.12, .from = bottom, .to = top};
    if (!(y.high > 0)) y.high = 1;
    thin_out(&c, x.to - x.from);
    ft__svg_open(out, f, "memory", bottom + 44, "Memory over the step",
                 "Live bytes on one GPU while the step runs, stacked by what they are. The table of memory has the "
                 "figures of the peak.");
    ft__svg_keys(out, f, 0, 0, keys, key_count);
    ft__svg_ruler_x(out, &x, top, bottom,
                    v->work->accumulate > 1 && !v->ranked ? "ms of kernels, one micro-batch"
                    : v->ranked                           ? "ms"
                                                          : "ms of kernels");
    ft__svg_ruler_y(out, &y, x.from, x.to, "GiB");
    for (int k = 0; k < KINDS; k++) add_layer(out, &c, k, &x, &y);
    if (near) add_capacity(out, &x, &y, capacity, v->step->memory.peak_bytes / 1073741824.0);
    if (c.count) mark_peak(out, f, v, &c, &x, &y);
    ft__svg_close(out);
    free(c.at);
    return !out->failed;
}
