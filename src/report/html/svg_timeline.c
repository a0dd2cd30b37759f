/* svg_timeline.c: the streams of one GPU over one step: passes, kernels, exchanges, the host.
 *
 * Events are slabs, coloured by what holds them (svg_slabs.c). Where hundreds of passes share the picture they are
 * drawn in crowds, each colour as high as its part of the time. Where the GPU waits its track shows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/html/svg_pictures.h"
#include "report/html/svg_slabs.h"
#include "report/text/style.h"
#include "report/trace/step_events.h"

enum { MOST_WALKED = 400000, MOST_PASSES = 512 };

/* Neighbouring passes that are drawn as one. */
typedef struct crowd {
    double from, to;
    double forwards, backwards;
} crowd;

/* -- passes ------------------------------------------------------------------------------------ */

static void one_event(ft_timeline *t, const ft_event *e, double start, double end)
{
    const ft_graph *g = t->rank.g;
    char title[176] = "";
    double ms[4] = {0};
    bool words = !t->dry && !t->plain;
    if (e->lane == FT_LANE_HOST) {
        ms[FT_BOUND_OVERHEAD] = end - start;
        if (words)
            snprintf(title, sizeof title, "the host launches %.60s",
                     g->blocks[e->at].name ? g->blocks[e->at].name : "");
        ft__timeline_slab(t, FT_ROW_HOST, start, end, ms, title);
    } else if (e->lane != FT_LANE_GPU) {
        ms[FT_BOUND_COMMUNICATION] = end - start;
        ft__timeline_slab(t, FT_ROW_AXIS + e->lane, start, end, ms, "exchange");
    } else if (e->kind == FT_SEEN_FOLDED) {
        if (words)
            snprintf(title, sizeof title, "%.60s: %.0f more like this",
                     g->blocks[e->at].name ? g->blocks[e->at].name : "", e->folded);
        ft__timeline_extend_span(t, e->at, start, end);
        ft__timeline_slab(t, FT_ROW_KERNELS, start, end, t->shares[e->at], title);
    } else if (e->kind == FT_SEEN_KERNEL) {
        const ft_timed *k = t->rank.timed[e->at];
        ms[k && (unsigned)k->forecast.bound < 4 ? k->forecast.bound : FT_BOUND_MEMORY] = 1;
        const char *block = g->blocks[t->block_of[e->at]].name, *name = g->nodes[e->at].name;
        if (words)
            snprintf(title, sizeof title, "%.60s %.70s: %.4g ms, from %.5g", block ? block : "", name ? name : "",
                     end - start, start);
        ft__timeline_extend_span(t, t->block_of[e->at], start, end);
        ft__timeline_slab(t, FT_ROW_KERNELS, start, end, ms, title);
    }
}

/* The part `from`..`to` of a pass (of 1), drawn between two moments. */
static void pass(ft_timeline *t, const ft_pass_events *p, double from, double to, double start, double end)
{
    double a = from * p->ms, b = to * p->ms, scale = b > a ? (end - start) / (b - a) : 1;
    t->walked += (double)p->count;
    if (t->walked > MOST_WALKED) return;
    for (size_t i = 0; i < p->count; i++) {
        const ft_event *e = &p->events[i];
        double mark = e->lane == FT_LANE_HOST ? fmin(fmax(e->end, 0), p->ms) : e->start;
        if ((mark < a - 1e-9 && from > 0) || (mark >= b - 1e-12 && to < 1)) continue;
        double x = fmax(start + (e->start - a) * scale, 0), y = start + (e->end - a) * scale;
        if (e->lane == FT_LANE_GPU && y > end) y = end;
        one_event(t, e, x, y);
    }
}

static void piece(ft_timeline *t, const char *word, int64_t number, const char *class, double start, double end)
{
    const ft_band *r = &t->row[FT_ROW_PASSES];
    t->row[FT_ROW_PASSES].used = true;
    if (t->dry) return;
    char name[64], title[128];
    if (number >= 0)
        snprintf(name, sizeof name, "%s %lld", word, (long long)number + 1);
    else
        snprintf(name, sizeof name, "%s", word);
    snprintf(title, sizeof title, "%s: %.4g ms", name, end - start);
    if (!ft__timeline_clip(t, &start, &end)) return;
    double a = ft__ruler_at(&t->x, start), b = ft__ruler_at(&t->x, end);
    ft__svg_box(t->out, a, r->y, fmax(b - a - 0.5, 0.3), r->height, class, t->plain ? NULL : title);
    const char *shown = name;
    if (number >= 0 && ft__svg_label_width(name) > b - a - 4) shown = strchr(name, ' ') + 1;
    if (ft__svg_label_width(shown) <= b - a - 4)
        ft__svg_label(t->out, (a + b) / 2, r->y + 14, FT_MIDDLE, "onbar", shown);
}

/* -- crowds ------------------------------------------------------------------------------------ */

static void add_up(const ft_timeline *t, const ft_pass_events *p, double times, double ms[FT_ROW_COUNT][4])
{
    for (size_t i = 0; i < p->count; i++) {
        const ft_event *e = &p->events[i];
        double length = fmax(e->end - e->start, 0) * times;
        if (e->lane == FT_LANE_HOST) {
            ms[FT_ROW_HOST][FT_BOUND_OVERHEAD] += length;
        } else if (e->lane != FT_LANE_GPU) {
            ms[FT_ROW_AXIS + e->lane][FT_BOUND_COMMUNICATION] += length;
        } else if (e->kind == FT_SEEN_FOLDED) {
            const double *of = t->shares[e->at];
            double sum = of[0] + of[1] + of[2] + of[3];
            for (int b = 0; b < 4 && sum > 0; b++) ms[FT_ROW_KERNELS][b] += of[b] / sum * length;
        } else if (e->kind == FT_SEEN_KERNEL) {
            const ft_timed *k = t->rank.timed[e->at];
            ms[FT_ROW_KERNELS][k && (unsigned)k->forecast.bound < 4 ? k->forecast.bound : FT_BOUND_MEMORY] += length;
        }
    }
}

/* Every colour as high as its part of the time between the crowd's ends. */
static void draw_crowd(ft_timeline *t, crowd *c)
{
    double ms[FT_ROW_COUNT][4] = {{0}}, extent = c->to - c->from, forward = c->forwards * t->rank.forward.ms;
    double both = forward + c->backwards * t->rank.backward.ms;
    char title[128];
    ft__timeline_close_span(t);
    add_up(t, &t->rank.forward, c->forwards, ms);
    add_up(t, &t->rank.backward, c->backwards, ms);
    snprintf(title, sizeof title, "%.0f forward, %.0f backward passes: %.4g ms", c->forwards, c->backwards, extent);
    t->row[FT_ROW_PASSES].used = true;
    double from = c->from, to = c->to;
    if (!t->dry && !ft__timeline_clip(t, &from, &to)) {
        *c = (crowd){0};
        return;
    }
    double a = ft__ruler_at(&t->x, from), b = ft__ruler_at(&t->x, to);
    for (int row = 0; row < FT_ROW_COUNT && extent > 0; row++) {
        ft_band *r = &t->row[row];
        double sum = ms[row][0] + ms[row][1] + ms[row][2] + ms[row][3], y = r->y;
        if (sum > 0) r->used = true;
        if (t->dry || !(sum > 0)) continue;
        ft__timeline_flush(t, row);
        for (int k = 0; k < 4; k++) {
            double high = ms[row][k] / fmax(sum, extent) * r->height;
            if (high >= 0.4) ft__timeline_box(t, a, y, fmax(b - a, 0.5), high, k, title);
            y += high;
        }
    }
    const ft_band *r = &t->row[FT_ROW_PASSES];
    if (!t->dry && both > 0 && extent > 0) {
        double high = forward / both * r->height;
        if (high > 0) ft__svg_box(t->out, a, r->y, fmax(b - a, 0.5), high, "forward", title);
        if (high < r->height)
            ft__svg_box(t->out, a, r->y + high, fmax(b - a, 0.5), r->height - high, "backward", title);
        snprintf(title, sizeof title, "%.0f micro-batches", fmax(c->forwards, c->backwards));
        if (ft__svg_label_width(title) <= b - a - 4)
            ft__svg_label(t->out, (a + b) / 2, r->y + 14, FT_MIDDLE, "onbar", title);
    }
    *c = (crowd){0};
}

/* The crowd takes passes until it is wide enough to be seen or the stage waits. */
static void join(ft_timeline *t, crowd *c, double start, double end, double forwards, double backwards)
{
    bool any = c->forwards + c->backwards > 0;
    if (any && !t->dry) {
        double wide = ft__ruler_at(&t->x, c->to) - ft__ruler_at(&t->x, c->from);
        if (wide >= 24 || ft__ruler_at(&t->x, start) - ft__ruler_at(&t->x, c->to) > 0.5) {
            draw_crowd(t, c);
            any = false;
        }
    }
    if (!any) c->from = start;
    c->to = fmax(end, any ? c->to : end);
    c->forwards += forwards;
    c->backwards += backwards;
}

/* -- the step ---------------------------------------------------------------------------------- */

static double draw_alone(ft_timeline *t)
{
    const ft_workload *w = t->v->work;
    int64_t micros = w->task == FT_TRAIN && w->accumulate > 1 ? w->accumulate : 1;
    double now = 0;
    const char *first = w->task == FT_PREFILL ? "prefill" : w->task == FT_DECODE ? "decode" : "forward";
    int64_t alone = 2 * micros > MOST_PASSES ? 1 : micros; /* the first has the host's start in it */
    for (int64_t m = 0; m < alone; m++) {
        const ft_pass_events *f = m ? &t->rank.forward : &t->rank.first_forward;
        const ft_pass_events *b = m ? &t->rank.backward : &t->rank.first_backward;
        int64_t number = micros > 1 ? m : -1;
        piece(t, first, number, "forward", now, now + f->ms);
        pass(t, f, 0, 1, now, now + f->ms);
        now += f->ms;
        if (b->ms > 0) piece(t, "backward", number, "backward", now, now + b->ms);
        pass(t, b, 0, 1, now, now + b->ms);
        now += b->ms;
    }
    if (micros > alone) {
        double left = (double)(micros - alone), ms = left * (t->rank.forward.ms + t->rank.backward.ms);
        draw_crowd(t, &(crowd){.from = now, .to = now + ms, .forwards = left, .backwards = left});
        now += ms;
    }
    if (t->rank.update.ms > 0) piece(t, "optimizer", -1, "update", now, now + t->rank.update.ms);
    pass(t, &t->rank.update, 0, 1, now, now + t->rank.update.ms);
    return now + t->rank.update.ms;
}

/* Too many pieces for a picture to tell apart, or a middle that is not listed. */
static void draw_crowded_stage(ft_timeline *t, int64_t s)
{
    const ft_piped *pipe = &t->v->ranked->pipe;
    const ft_parallel *p = t->v->parallel;
    double parts = (double)ft__parallel_chunks(p);
    crowd c = {0};
    for (int32_t i = 0; i < pipe->op_count[s]; i++) {
        const ft_pipe_op *op = &pipe->ops[s][i];
        bool forward = op->kind == FT_PIPE_FORWARD;
        if (pipe->skipped > 0 && i == pipe->gap[s] && i > 0)
            join(t, &c, pipe->ops[s][i - 1].end, op->start, (double)pipe->skipped, (double)pipe->skipped);
        double weight = op->kind == FT_PIPE_INPUTS || op->kind == FT_PIPE_WEIGHTS ? 0.5 : 1;
        join(t, &c, op->start, op->end, forward ? 1 / parts : 0, forward ? 0 : weight / parts);
    }
    if (c.forwards + c.backwards > 0) draw_crowd(t, &c);
}

static double draw_stage(ft_timeline *t, int64_t s)
{
    const ft_ranked *r = t->v->ranked;
    const ft_piped *pipe = &r->pipe;
    const ft_stage *stage = &r->stages[s];
    static const char *const words[] = {"forward", "backward", "inputs", "weights"};
    int32_t last = -1;
    for (int32_t i = 0; i < pipe->op_count[s]; i++)
        if (pipe->ops[s][i].kind == FT_PIPE_BACKWARD) last = i;
    bool crowded = pipe->skipped > 0 || pipe->op_count[s] > MOST_PASSES;
    if (crowded) draw_crowded_stage(t, s);
    for (int32_t i = 0; i < pipe->op_count[s] && !crowded; i++) {
        const ft_pipe_op *op = &pipe->ops[s][i];
        bool forward = op->kind == FT_PIPE_FORWARD;
        piece(t, words[op->kind], op->micro, forward ? "forward" : "backward", op->start, op->end);
        if (!forward && op->kind != FT_PIPE_BACKWARD) continue;
        double from, to;
        ft__chunk_span(stage, forward, op->chunk, &from, &to);
        const ft_pass_events *e = forward ? &t->rank.forward : i == last ? &t->rank.last_backward : &t->rank.backward;
        pass(t, e, from, to, op->start, op->end);
    }
    double now = pipe->finish[s], left = fmax(stage->last_backward_ms - stage->backward_ms, 0), ms[4] = {0};
    double gather = stage->gather_ms + fmax(stage->first_forward_ms - stage->forward_ms, 0);
    ms[FT_BOUND_COMMUNICATION] = 1;
    if (left > 0) ft__timeline_slab(t, FT_ROW_AXIS + FT_AXIS_DATA, now, now + left, ms, "rest of the gradients");
    now += left + stage->tail_ms;
    if (stage->update_ms > 0) piece(t, "optimizer", -1, "update", now, now + stage->update_ms);
    pass(t, &t->rank.update, 0, 1, now, now + stage->update_ms);
    now += stage->update_ms;
    if (gather > 0)
        ft__timeline_slab(t, FT_ROW_AXIS + FT_AXIS_DATA, now, now + gather, ms, "gather updated parameters");
    return now + gather;
}

static double draw(ft_timeline *t, int64_t stage)
{
    t->walked = 0;
    t->span_block = -1;
    double end = stage >= 0 ? draw_stage(t, stage) : draw_alone(t);
    ft__timeline_close_span(t);
    for (int i = 0; i < FT_ROW_COUNT && !t->dry; i++) ft__timeline_flush(t, i);
    return end;
}

static bool prepare(ft_timeline *t)
{
    const ft_graph *g = t->rank.g;
    t->block_of = ft__arena_array(t->v->arena, (size_t)g->node_count + 1, sizeof *t->block_of);
    t->shares = ft__arena_array(t->v->arena, (size_t)g->block_count + 1, sizeof *t->shares);
    if (!t->block_of || !t->shares) return false;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t n = g->blocks[b].first; n < g->blocks[b].first + g->blocks[b].count; n++) {
            const ft_timed *k = t->rank.timed[n];
            t->block_of[n] = b;
            if (!k) continue;
            double count = g->nodes[n].count > 1 ? (double)g->nodes[n].count : 1;
            t->shares[b][(unsigned)k->forecast.bound < 4 ? k->forecast.bound : FT_BOUND_MEMORY] += k->forecast.ms *
                                                                                                   count;
        }
    return true;
}

bool ft__svg_timeline(ft_text *out, const ft_frame *f, const ft_step_view *v)
{
    static const char *const names[FT_ROW_COUNT] = {"passes",  "layers", "kernels",  "tensor", "context",
                                                    "experts", "data",   "pipeline", "host"};
    int64_t stage = v->ranked ? ft__slowest_stage(v) : -1;
    ft_timeline t = {.out = out, .v = v, .dry = true, .plain = f->plain};
    ft_error err = {0};
    if (ft__rank_events(v, stage >= 0 ? &v->ranked->stages[stage] : NULL, &t.rank, &err) != FT_OK)
        return err.code != FT_E_MEMORY; /* no streams, no picture */
    if (!prepare(&t)) return false;
    double end = fmax(draw(&t, stage), v->step->step_ms), top = ft__svg_keys_height(f, 0, ft__bound_keys, 4) + 8,
           y = top;
    for (int i = 0; i < FT_ROW_COUNT; i++) {
        if (!t.row[i].used) continue;
        t.row[i].y = y + (f->narrow ? 15 : 0);
        t.row[i].height = i == FT_ROW_KERNELS ? 56 : 20;
        y = t.row[i].y + t.row[i].height + 8;
    }
    bool part = f->to_ms > f->from_ms && f->from_ms < end;
    t.x = (ft_ruler){.low = part ? fmax(f->from_ms, 0) : 0,
                     .high = part      ? fmin(f->to_ms, end)
                             : end > 0 ? end
                                       : 1,
                     .from = f->narrow ? 4 : 74,
                     .to = f->width - 12};
    ft__svg_open(
        out, f, "timeline", y + 42, "Timeline of the step",
        "Passes, layers, kernels, exchanges and the host of one GPU over one step; kernels are coloured by what limits "
        "them. The tables of phases and layers have the figures.");
    ft__svg_keys(out, f, 0, 0, ft__bound_keys, v->ranked ? 4 : 3);
    ft__svg_ruler_time(out, &t.x, top, y);
    for (int i = 0; i < FT_ROW_COUNT; i++) {
        const ft_band *r = &t.row[i];
        if (!r->used) continue;
        ft__svg_label(out, 0, f->narrow ? r->y - 4 : r->y + r->height / 2 + 4, FT_START, "dim", names[i]);
        if (i != FT_ROW_PASSES && i != FT_ROW_BLOCKS)
            ft__svg_box(out, t.x.from, r->y, t.x.to - t.x.from, r->height, "track", NULL);
    }
    t.dry = false;
    draw(&t, stage);
    ft__timeline_paths(&t);
    ft__svg_plot(out, f, &t.x, NULL);
    ft__svg_close(out);
    return !out->failed;
}
