/* perfetto.c: writing trace events (the format of "Trace Event Format", Google, as catapult and Perfetto read it).
 *
 * One GPU is one process; of a pipeline every stage is, with its micro-batches where the schedule put them. Flow events
 * ("s", "f") draw an arrow from the piece that sends to the piece that waits for it. The events themselves are written
 * by perfetto_events.c. */
#include "report/trace/perfetto.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/json_write.h"
#include "report/trace/perfetto_events.h"

enum { MOST_PIECES = 40000, MOST_ALONE = 64, MOST_ARROWS = 4000 };

/* -- one GPU ----------------------------------------------------------------------------------- */

static ft_status add_alone(ft_trace_writer *w, ft_text *notes, ft_error *err)
{
    const ft_step_view *v = w->v;
    FT_TRY(ft__rank_events(v, NULL, &w->rank, err));
    int64_t micros = v->work->accumulate > 1 ? v->work->accumulate : 1,
            shown = micros < MOST_ALONE ? micros : MOST_ALONE;
    size_t each = w->rank.forward.count + w->rank.backward.count + 2;
    w->detailed = (int64_t)(FT_TRACE_EVENTS / each);
    if (w->detailed < 1) w->detailed = 1;
    ft__trace_process(w, 1);
    double now = 0;
    for (int64_t m = 0; m < shown; m++) {
        const ft_pass_events *f = m ? &w->rank.forward : &w->rank.first_forward;
        const ft_pass_events *b = m ? &w->rank.backward : &w->rank.first_backward;
        ft_pipe_op op = {.micro = m, .start = now, .end = now + f->ms};
        ft__trace_piece(w, "forward", &op);
        if (m < w->detailed) ft__trace_pass(w, f, 0, 1, op.start, op.end);
        op = (ft_pipe_op){.micro = m, .start = op.end, .end = op.end + b->ms};
        ft__trace_piece(w, "backward", &op);
        if (m < w->detailed) ft__trace_pass(w, b, 0, 1, op.start, op.end);
        now = op.end;
    }
    if (micros > shown) {
        double rest = (double)(micros - shown) * (w->rank.forward.ms + w->rank.backward.ms);
        ft__trace_slice(w, FT_TRACK_PIECES, "folded", now, now + rest, "more micro-batches like this");
        ft__text_addf(notes, "%" PRId64 " micro-batches after the first %" PRId64 " are one event. ", micros - shown,
                      shown);
        now += rest;
    }
    if (shown > w->detailed)
        ft__text_addf(notes, "Kernels are drawn for the first %" PRId64 " micro-batches. ", w->detailed);
    if (w->rank.update.ms > 0) ft__trace_slice(w, FT_TRACK_PIECES, "update", now, now + w->rank.update.ms, "update");
    ft__trace_pass(w, &w->rank.update, 0, 1, now, now + w->rank.update.ms);
    ft__trace_name_tracks(w, v->device->title[0] ? v->device->title : v->device->name);
    return FT_OK;
}

/* -- stages ------------------------------------------------------------------------------------ */

/* No later piece brings gradients of this chunk (of DualPipe's rank, of either stage): with it they leave. */
static bool last_of_chunk(const ft_trace_writer *w, int64_t s, int32_t i)
{
    const ft_piped *pipe = &w->v->ranked->pipe;
    const ft_pipe_op *ops = pipe->ops[s];
    bool dual = w->v->parallel->schedule == FT_DUALPIPE;
    if (ops[i].kind != FT_PIPE_BACKWARD) return false;
    for (int32_t k = i + 1; k < pipe->op_count[s]; k++)
        if (ops[k].kind == FT_PIPE_BACKWARD && (dual || ops[k].chunk == ops[i].chunk)) return false;
    return true;
}

static void add_stage_pieces(ft_trace_writer *w, int64_t s)
{
    static const char *const words[] = {[FT_PIPE_FORWARD] = "forward",
                                        [FT_PIPE_BACKWARD] = "backward",
                                        [FT_PIPE_INPUTS] = "backward of inputs",
                                        [FT_PIPE_WEIGHTS] = "gradients of weights"};
    const ft_piped *pipe = &w->v->ranked->pipe;
    for (int32_t i = 0; i < pipe->op_count[s]; i++) {
        const ft_pipe_op *op = &pipe->ops[s][i];
        bool forward = op->kind == FT_PIPE_FORWARD, last = last_of_chunk(w, s, i);
        if (pipe->skipped > 0 && i == pipe->gap[s] && i > 0)
            ft__trace_slice(w, FT_TRACK_PIECES, "folded", op[-1].end, op->start, "more micro-batches like this");
        ft__trace_piece(w, words[op->kind], op);
        if ((!forward && op->kind != FT_PIPE_BACKWARD) || (op->micro >= w->detailed && !last)) continue;
        double from, to;
        ft__chunk_span(&w->v->ranked->stages[s], forward, op->chunk, &from, &to);
        const ft_pass_events *p = forward ? &w->rank.forward : last ? &w->rank.last_backward : &w->rank.backward;
        ft__trace_pass(w, p, from, to, op->start, op->end);
    }
}

/* After the pipeline: what is left of the gradients' exchange, the update, what is gathered again. */
static double add_tail(ft_trace_writer *w, const ft_stage *stage, bool own, double now)
{
    double left = fmax(stage->last_backward_ms - stage->backward_ms, 0);
    ft__trace_slice(w, FT_TRACK_AXIS + FT_AXIS_DATA, "exchange", now, now + left, "rest of the gradients");
    now += left;
    ft__trace_slice(w, FT_TRACK_AXIS + FT_AXIS_TENSOR, "exchange", now, now + stage->tail_ms,
                    "gradients held by several ranks");
    now += stage->tail_ms;
    ft__trace_slice(w, FT_TRACK_PIECES, "update", now, now + stage->update_ms, "update");
    if (own) ft__trace_pass(w, &w->rank.update, 0, 1, now, now + stage->update_ms);
    now += stage->update_ms;
    /* Now, or beside the next step's first forward pass, whose delay it is. */
    double gather = stage->gather_ms + fmax(stage->first_forward_ms - stage->forward_ms, 0);
    ft__trace_slice(w, FT_TRACK_AXIS + FT_AXIS_DATA, "exchange", now, now + gather, "gather updated parameters");
    return now + gather;
}

static void add_stage_tail(ft_trace_writer *w, int64_t s)
{
    const ft_ranked *r = w->v->ranked;
    double now = add_tail(w, &r->stages[s], true, r->pipe.finish[s]);
    bool dual = w->v->parallel->schedule == FT_DUALPIPE && r->stage_count > 1; /* holds another stage's layers too */
    if (dual) add_tail(w, &r->stages[r->stage_count - 1 - s], false, now);
}

/* Where a chunk of a stage stands in the model, and the other way round. */
static int64_t place_of(const ft_trace_writer *w, int64_t s, int64_t chunk)
{
    int64_t stages = w->v->ranked->stage_count;
    if (w->v->parallel->schedule == FT_DUALPIPE) return chunk == 0 ? s : stages - 1 - s;
    return ft__schedule_place(w->v->parallel->schedule, stages, s, chunk);
}

static const ft_pipe_op *find_piece(const ft_trace_writer *w, int64_t place, int64_t micro, int32_t way, bool forward)
{
    int64_t stages = w->v->ranked->stage_count, s = place % stages, chunk = place / stages;
    const ft_piped *pipe = &w->v->ranked->pipe;
    if (w->v->parallel->schedule == FT_DUALPIPE) s = way == 0 ? place : stages - 1 - place, chunk = way;
    if (ft__schedule_folds(w->v->parallel->schedule) && place >= stages) s = 2 * stages - 1 - place;
    for (int32_t i = 0; i < pipe->op_count[s]; i++) {
        const ft_pipe_op *op = &pipe->ops[s][i];
        bool goes = op->kind == FT_PIPE_FORWARD;
        if (op->micro == micro && op->chunk == chunk && goes == forward && op->kind != FT_PIPE_WEIGHTS) return op;
    }
    return NULL;
}

static void add_arrow_end(ft_trace_writer *w, int64_t id, int64_t pid, double at)
{
    ft__json_member_whole(w->out, "id", id);
    ft__trace_track(w, pid, FT_TRACK_PIECES);
    ft__json_member_text(w->out, "cat", "send");
    ft__json_member_text(w->out, "name", "send");
    ft__trace_us(w->out, "ts", at);
    ft__json_close(w->out);
}

/* Sends as events of the sender, and arrows to who waits for them. */
static void add_sends(ft_trace_writer *w, int64_t s, double send_ms, const int64_t *pid_of, int64_t *arrows)
{
    const ft_piped *pipe = &w->v->ranked->pipe;
    int64_t stages = w->v->ranked->stage_count, dual = w->v->parallel->schedule == FT_DUALPIPE;
    int64_t places = dual ? stages : stages * (int64_t)w->parts;
    for (int32_t i = 0; i < pipe->op_count[s]; i++) {
        const ft_pipe_op *op = &pipe->ops[s][i];
        bool forward = op->kind == FT_PIPE_FORWARD;
        if (op->kind == FT_PIPE_WEIGHTS) continue;
        int64_t to = place_of(w, s, op->chunk) + (forward ? 1 : -1);
        if (to < 0 || to >= places || (dual == 0 && to == place_of(w, s, !op->chunk))) continue;
        if (ft__trace_open(w, FT_TRACK_SEND + !forward, "send", op->end, op->end + send_ms)) {
            char name[48];
            snprintf(name, sizeof name, "micro-batch %" PRId64, op->micro);
            ft__json_add_text(w->out, name);
            ft__trace_close(w);
        }
        int64_t other = dual ? (op->chunk == 0 ? to : stages - 1 - to) : to % stages;
        if (!pid_of[other] || *arrows >= MOST_ARROWS) continue;
        const ft_pipe_op *there = find_piece(w, to, op->micro, op->chunk, forward);
        if (!there) continue;
        int64_t id = ++*arrows;
        ft__trace_begin(w, "s");
        add_arrow_end(w, id, w->pid, op->start + 0.999 * (op->end - op->start));
        ft__trace_begin(w, "f");
        ft__json_member_text(w->out, "bp", "e");
        add_arrow_end(w, id, pid_of[other], there->start + 0.001 * (there->end - there->start));
    }
}

/* A boundary's transfer: the second stage's first piece starts when it has arrived. */
static double send_ms_of(const ft_ranked *r)
{
    if (r->stage_count < 2 || r->pipe.op_count[0] < 1 || r->pipe.op_count[1] < 1) return 0;
    return fmax(r->pipe.ops[1][0].start - r->pipe.ops[0][0].end, 0);
}

static ft_status add_stages(ft_trace_writer *w, ft_text *notes, ft_error *err)
{
    const ft_step_view *v = w->v;
    const ft_parallel *p = v->parallel;
    int64_t stages = v->ranked->stage_count, shown = stages < FT_TRACE_STAGES ? stages : FT_TRACE_STAGES, arrows = 0;
    int64_t same = p->tp * p->cp * p->dp;
    w->parts = (double)ft__parallel_chunks(p);
    int64_t *pid_of = ft__arena_array(v->arena, (size_t)stages, sizeof *pid_of);
    if (!pid_of) return ft__fail(err, FT_E_MEMORY, "out of memory for a trace");
    double pieces = (double)v->ranked->pipe.op_count[0] * (double)shown;
    if (pieces > MOST_PIECES) {
        shown = (int64_t)fmax(1, MOST_PIECES / fmax(1, (double)v->ranked->pipe.op_count[0]));
        if (v->ranked->pipe.op_count[0] > MOST_PIECES)
            return ft__fail(err, FT_E_RANGE, "a trace draws up to %d pieces of work on a stage; this step has %d",
                            MOST_PIECES, (int)v->ranked->pipe.op_count[0]);
    }
    int64_t front = (shown + 1) / 2;
    for (int64_t i = 0; i < shown; i++) pid_of[i < front ? i : stages - shown + i] = i + 1;
    for (int64_t s = 0; s < stages; s++) {
        if (!pid_of[s]) continue;
        FT_TRY(ft__rank_events(v, &v->ranked->stages[s], &w->rank, err));
        size_t each = w->rank.forward.count + w->rank.backward.count + 2;
        double room = (double)FT_TRACE_EVENTS / (double)shown / (double)each;
        w->detailed = room < 1 ? 1 : (int64_t)room;
        ft__trace_process(w, pid_of[s]);
        add_stage_pieces(w, s);
        add_stage_tail(w, s);
        if (stages > 1) add_sends(w, s, send_ms_of(v->ranked), pid_of, &arrows);
        ft_text name = {.cap = 256};
        ft__text_addf(&name, "stage %" PRId64 " of %" PRId64 ": GPU %" PRId64, s, stages, s * same);
        if (same > 1) ft__text_addf(&name, " and %" PRId64 " like it", same - 1);
        ft__trace_name_tracks(w, name.at ? name.at : "stage");
        ft__text_free(&name);
    }
    if (shown < stages)
        ft__text_addf(notes, "Of %" PRId64 " stages the first %" PRId64 " and the last %" PRId64 " are drawn. ", stages,
                      front, shown - front);
    if (v->ranked->pipe.skipped > 0)
        ft__text_addf(notes, "%" PRId64 " micro-batches in the middle are one event. ", v->ranked->pipe.skipped);
    if (v->work->accumulate > w->detailed)
        ft__text_addf(notes, "Kernels are drawn for the first %" PRId64 " micro-batches and the last backward. ",
                      w->detailed);
    if (p->schedule == FT_ZERO_BUBBLE || p->schedule == FT_DUALPIPE || ft__schedule_folds(p->schedule))
        ft__text_add(notes, "Backward pieces whose weights' gradients wait are drawn without kernels. ");
    if (w->parts > 1)
        ft__text_add(notes, "Kernels of a chunk are its share of the stage's pass, drawn to the chunk's length. ");
    if (arrows >= MOST_ARROWS) ft__text_addf(notes, "Arrows are drawn for the first %d sends. ", MOST_ARROWS);
    return FT_OK;
}

ft_status ft__perfetto(const ft_step_view *v, ft_text *out, ft_error *err)
{
    ft_trace_writer w = {.v = v, .out = out, .parts = 1};
    ft_text notes = {.cap = 4096};
    if (v->memory_only) return ft__fail(err, FT_E_UNSUPPORTED, "a request for memory has no times to trace");
    ft__json_open(out);
    ft__json_member_text(out, "displayTimeUnit", "ms");
    ft__json_member_list(out, "traceEvents");
    ft_status status = v->ranked ? add_stages(&w, &notes, err) : add_alone(&w, &notes, err);
    ft__text_add(&notes, "Equal layers are drawn four times, the others are one event.");
    ft__text_add(out, "\n");
    ft__json_close_list(out);
    ft__json_member_open(out, "otherData");
    ft__json_member_text(out, "model", v->model);
    ft__json_member_text(out, "gpu", v->device->name);
    ft__json_member_whole(out, "gpus", ft__view_gpus(v));
    ft__json_member_number(out, "step_ms", v->step->step_ms, 6);
    ft__json_member_text(out, "notes", notes.at ? notes.at : "");
    ft__json_close(out);
    ft__json_close(out);
    ft__text_add(out, "\n");
    bool failed = out->failed || notes.failed;
    ft__text_drop(&notes, out);
    if (status != FT_OK) return status;
    return failed ? ft__fail(err, FT_E_MEMORY, "out of memory for a trace") : FT_OK;
}
