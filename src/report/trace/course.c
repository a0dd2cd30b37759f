/* course.c: where the passes of a step stand in time.
 *
 * One GPU runs them one after the other; of a pipeline the schedule says when, and behind it come what is left of the
 * gradients' exchange, the update, and what is gathered again. Passes beyond some hundreds are one, with their
 * number. */
#include "report/trace/course.h"

#include <math.h>

enum { MOST_PASSES = 512 };

static void place(ft_step_course *c, ft_placed_pass p)
{
    if (p.end > p.start) c->passes[c->count++] = p;
    c->end = fmax(c->end, p.end);
}

static void place_alone(const ft_step_view *v, ft_step_course *c)
{
    const ft_workload *w = v->work;
    const ft_rank_events *r = &c->rank;
    int64_t micros = w->task == FT_TRAIN && w->accumulate > 1 ? w->accumulate : 1;
    int64_t alone = 2 * micros > MOST_PASSES ? 1 : micros; /* the first has the host's start in it */
    const char *first = w->task == FT_PREFILL ? "prefill" : w->task == FT_DECODE ? "decode" : "forward";
    double now = 0;
    for (int64_t m = 0; m < alone; m++) {
        const ft_pass_events *f = m ? &r->forward : &r->first_forward, *b = m ? &r->backward : &r->first_backward;
        int64_t number = micros > 1 ? m : -1;
        place(c, (ft_placed_pass){first, number, 1, now, now + f->ms, 0, 1, f});
        now += f->ms;
        place(c, (ft_placed_pass){"backward", number, 1, now, now + b->ms, 0, 1, b});
        now += b->ms;
    }
    if (micros > alone) {
        double left = (double)(micros - alone), ms = left * (r->forward.ms + r->backward.ms);
        place(c, (ft_placed_pass){"micro-batches", -1, left, now, now + ms, 0, 1, NULL});
        now += ms;
    }
    place(c, (ft_placed_pass){"optimizer", -1, 1, now, now + r->update.ms, 0, 1, &r->update});
}

static void place_stage(const ft_step_view *v, int64_t s, ft_step_course *c)
{
    static const char *const words[] = {[FT_PIPE_FORWARD] = "forward",
                                        [FT_PIPE_BACKWARD] = "backward",
                                        [FT_PIPE_INPUTS] = "inputs",
                                        [FT_PIPE_WEIGHTS] = "weights"};
    const ft_piped *pipe = &v->ranked->pipe;
    const ft_stage *stage = &v->ranked->stages[s];
    int32_t last = -1;
    for (int32_t i = 0; i < pipe->op_count[s]; i++)
        if (pipe->ops[s][i].kind == FT_PIPE_BACKWARD) last = i;
    for (int32_t i = 0; i < pipe->op_count[s]; i++) {
        const ft_pipe_op *op = &pipe->ops[s][i];
        bool forward = op->kind == FT_PIPE_FORWARD, whole = forward || op->kind == FT_PIPE_BACKWARD;
        if (pipe->skipped > 0 && i == pipe->gap[s] && i > 0)
            place(c, (ft_placed_pass){"micro-batches", -1, (double)pipe->skipped, op[-1].end, op->start, 0, 1, NULL});
        const ft_pass_events *e = forward ? &c->rank.forward : i == last ? &c->rank.last_backward : &c->rank.backward;
        ft_placed_pass p = {words[op->kind], op->micro, 1, op->start, op->end, 0, 1, whole ? e : NULL};
        if (whole) ft__chunk_span(stage, forward, op->chunk, &p.from, &p.to);
        place(c, p);
    }
    double now = pipe->finish[s], left = fmax(stage->last_backward_ms - stage->backward_ms, 0) + stage->tail_ms;
    double gather = stage->gather_ms + fmax(stage->first_forward_ms - stage->forward_ms, 0);
    place(c, (ft_placed_pass){"gradients", -1, 1, now, now + left, 0, 1, NULL});
    now += left;
    place(c, (ft_placed_pass){"optimizer", -1, 1, now, now + stage->update_ms, 0, 1, &c->rank.update});
    now += stage->update_ms;
    place(c, (ft_placed_pass){"parameters", -1, 1, now, now + gather, 0, 1, NULL});
}

ft_status ft__step_course(const ft_step_view *v, int64_t stage, ft_step_course *out, ft_error *err)
{
    *out = (ft_step_course){0};
    bool piped = stage >= 0;
    FT_TRY(ft__rank_events(v, piped ? &v->ranked->stages[stage] : NULL, &out->rank, err));
    size_t most = (piped ? (size_t)fmax(v->ranked->pipe.op_count[stage], 0) : MOST_PASSES) + 5;
    out->passes = ft__arena_array(v->arena, most, sizeof *out->passes);
    if (!out->passes) return ft__fail(err, FT_E_MEMORY, "out of memory for the course of a step");
    if (piped)
        place_stage(v, stage, out);
    else
        place_alone(v, out);
    out->end = fmax(out->end, v->step->step_ms); /* other stages, or the samples, may take longer */
    return FT_OK;
}
