/* perfetto.c: writing trace events (the format of "Trace Event Format", Google, as catapult and Perfetto read it).
 *
 * Complete events ("X") with ts and dur in microseconds; metadata ("M") names processes and tracks; flow events ("s",
 * "f") draw an arrow from the piece that sends to the piece that waits for it. Inside a track events stand in order and
 * do not overlap; what a pass still sends when the next one begins is cut there.
 *
 * Over 400 lines: one format; processes, tracks and arrows refer to each other by numbers made here. */
#include "report/trace/perfetto.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "report/trace/step_events.h"

enum { TRACK_HOST = 1, TRACK_PIECES = 2, TRACK_KERNELS = 3, TRACK_AXIS = 10, TRACK_SEND = 20, TRACK_COUNT = 24 };
enum { MOST_PIECES = 40000, MOST_ALONE = 64, MOST_ARROWS = 4000 };

typedef struct writer {
    const ft_step_view *v;
    ft_text *out;
    int64_t pid;
    double last[TRACK_COUNT]; /* end of a track's last event */
    bool used[TRACK_COUNT];
    ft_rank_events rank;
    int64_t detailed; /* micro-batches whose kernels are drawn */
    double parts;     /* chunks of a stage */
} writer;

/* -- single events ----------------------------------------------------------------------------- */

/* Every event stands on a line of its own. */
static void begin_event(writer *w, const char *kind)
{
    ft__json_line(w->out);
    ft__json_open(w->out);
    ft__json_member_text(w->out, "ph", kind);
}

static void add_track(writer *w, int64_t pid, int tid)
{
    ft__json_member_whole(w->out, "pid", pid);
    ft__json_member_whole(w->out, "tid", tid);
}

/* Microseconds with three digits behind the point: viewers compare them as decimals. */
static void add_us(ft_text *out, const char *key, double ms)
{
    char text[48];
    snprintf(text, sizeof text, "%.3f", ms * 1e3);
    ft__json_member_written(out, key, text);
}

static void name_of(writer *w, const char *what, int tid, const char *name)
{
    begin_event(w, "M");
    add_track(w, w->pid, tid);
    ft__json_member_text(w->out, "name", what);
    ft__json_member_open(w->out, "args");
    ft__json_member_text(w->out, "name", name);
    ft__json_close(w->out);
    ft__json_close(w->out);
}

/* Opens a complete event up to its arguments; false when nothing of it is left. */
static bool open_event(writer *w, int tid, const char *category, double start, double end)
{
    if (start < w->last[tid]) start = w->last[tid];
    if (end - start < 5e-7) return false; /* half a nanosecond: it would have no width in the file */
    w->last[tid] = end;
    w->used[tid] = true;
    begin_event(w, "X");
    add_track(w, w->pid, tid);
    ft__json_member_text(w->out, "cat", category);
    /* The end is rounded, not the length: neighbours meet. */
    double from = round(start * 1e6) / 1e6, to = round(end * 1e6) / 1e6;
    add_us(w->out, "ts", from);
    add_us(w->out, "dur", to - from);
    ft__json_key(w->out, "name");
    return true;
}

static void close_event(writer *w) { ft__json_close(w->out); }

static void add_name(writer *w, const char *before, const char *name, const char *after)
{
    ft_text t = {.cap = 4096};
    ft__text_addf(&t, "%s%s%s", before, name ? name : "", after);
    ft__json_add_text(w->out, t.at ? t.at : "");
    w->out->failed |= t.failed;
    ft__text_free(&t);
}

/* -- kernels and exchanges --------------------------------------------------------------------- */

static const char *exchange_word(ft_exchange_kind k)
{
    static const char *const words[] = {"",          "all_reduce ", "all_gather ", "reduce_scatter ", "all_to_all ",
                                        "send_recv "};
    return (unsigned)k < sizeof words / sizeof *words ? words[k] : "";
}

static void add_kernel(writer *w, const ft_event *e, double start, double end)
{
    const ft_node *n = &w->rank.g->nodes[e->at];
    const ft_timed *t = w->rank.timed[e->at];
    if (!open_event(w, TRACK_KERNELS, ft__phase_name(n->phase), start, end)) return;
    add_name(w, "", n->name && *n->name ? n->name : n->op.name, "");
    ft__json_member_open(w->out, "args");
    ft__json_member_text(w->out, "op", n->op.name ? n->op.name : "");
    if (t) {
        ft__json_member_number(w->out, "flops", t->forecast.flops, 6);
        ft__json_member_number(w->out, "bytes", t->forecast.bytes, 6);
        ft__json_member_text(w->out, "bound", ft_bound_name(t->forecast.bound));
    }
    if (n->count > 1) ft__json_member_number(w->out, "launches", (double)n->count, 6);
    ft__json_close(w->out);
    close_event(w);
}

static void add_exchange(writer *w, const ft_event *e, double start, double end)
{
    const ft_node *n = &w->rank.g->nodes[e->at];
    if (!open_event(w, TRACK_AXIS + e->lane, "exchange", start, end)) return;
    bool again = e->kind == FT_SEEN_AGAIN;
    add_name(w, again ? "all_gather again " : exchange_word(n->exchange.kind), n->name, "");
    if (!again) {
        ft__json_member_open(w->out, "args");
        ft__json_member_number(w->out, "bytes", n->exchange.bytes, 6);
        ft__json_close(w->out);
    }
    close_event(w);
}

static void add_of_block(writer *w, const ft_event *e, double start, double end)
{
    static const char *const before[] = {[FT_SEEN_GATHER] = "gather parameters of ",
                                         [FT_SEEN_SCATTER] = "reduce gradients of ",
                                         [FT_SEEN_ISSUE] = "launch ",
                                         [FT_SEEN_FOLDED] = ""};
    const ft_block *b = &w->rank.g->blocks[e->at];
    int tid = e->lane == FT_LANE_HOST ? TRACK_HOST : e->lane == FT_LANE_GPU ? TRACK_KERNELS : TRACK_AXIS + e->lane;
    char more[48] = "";
    if (e->kind == FT_SEEN_FOLDED) {
        ft_text t = {.cap = 40};
        ft__text_addf(&t, ": %.0f more like this", e->folded);
        if (t.at) memcpy(more, t.at, t.length < sizeof more ? t.length + 1 : sizeof more - 1);
        ft__text_free(&t);
    }
    if (!open_event(w, tid, e->kind == FT_SEEN_FOLDED ? "folded" : "block", start, end)) return;
    add_name(w, before[e->kind], b->name, more);
    close_event(w);
}

/* The part `from`..`to` of a pass (of 1), drawn between two moments. */
static void add_pass(writer *w, const ft_pass_events *p, double from, double to, double start, double end)
{
    double a = from * p->ms, b = to * p->ms, scale = b > a ? (end - start) / (b - a) : 1;
    for (size_t i = 0; i < p->count; i++) {
        const ft_event *e = &p->events[i];
        /* The host runs ahead, gradients travel on: both belong to the part in which they begin or end. */
        bool early = e->lane == FT_LANE_HOST;
        double mark = early ? fmin(fmax(e->end, 0), p->ms) : e->start;
        if (mark < a - 1e-9 && from > 0) continue;
        if (mark >= b - 1e-12 && to < 1) continue;
        double x = start + (e->start - a) * scale, y = start + (e->end - a) * scale;
        if (x < 0) x = 0;
        if (e->lane == FT_LANE_GPU && y > end) y = end;
        if (e->kind == FT_SEEN_KERNEL)
            add_kernel(w, e, x, y);
        else if (e->kind == FT_SEEN_EXCHANGE || e->kind == FT_SEEN_AGAIN)
            add_exchange(w, e, x, y);
        else
            add_of_block(w, e, x, y);
    }
}

static void add_piece(writer *w, const char *word, const ft_pipe_op *op)
{
    if (!open_event(w, TRACK_PIECES, "micro-batch", op->start, op->end)) return;
    char name[96];
    int length = snprintf(name, sizeof name, "%s %" PRId64, word, op->micro);
    if (w->parts > 1) snprintf(name + length, sizeof name - (size_t)length, " chunk %d", (int)op->chunk);
    ft__json_add_text(w->out, name);
    ft__json_member_open(w->out, "args");
    ft__json_member_whole(w->out, "micro_batch", op->micro);
    ft__json_member_whole(w->out, "chunk", op->chunk);
    ft__json_close(w->out);
    close_event(w);
}

static void add_slice(writer *w, int tid, const char *category, double start, double end, const char *name)
{
    if (!open_event(w, tid, category, start, end)) return;
    ft__json_add_text(w->out, name);
    close_event(w);
}

static void name_tracks(writer *w, const char *process)
{
    static const char *const names[TRACK_COUNT] = {[TRACK_HOST] = "host",
                                                   [TRACK_PIECES] = "micro-batches",
                                                   [TRACK_KERNELS] = "kernels",
                                                   [TRACK_AXIS + FT_AXIS_TENSOR] = "tensor exchanges",
                                                   [TRACK_AXIS + FT_AXIS_CONTEXT] = "context exchanges",
                                                   [TRACK_AXIS + FT_AXIS_EXPERT] = "expert exchanges",
                                                   [TRACK_AXIS + FT_AXIS_DATA] = "data exchanges",
                                                   [TRACK_AXIS + FT_AXIS_PIPELINE] = "pipeline exchanges",
                                                   [TRACK_SEND] = "sends activations",
                                                   [TRACK_SEND + 1] = "sends gradients"};
    name_of(w, "process_name", 0, process);
    for (int i = 0; i < TRACK_COUNT; i++) {
        if (!w->used[i] || !names[i]) continue;
        name_of(w, "thread_name", i, names[i]);
        begin_event(w, "M");
        add_track(w, w->pid, i);
        ft__json_member_text(w->out, "name", "thread_sort_index");
        ft__json_member_open(w->out, "args");
        ft__json_member_whole(w->out, "sort_index", i);
        ft__json_close(w->out);
        ft__json_close(w->out);
    }
}

static void new_process(writer *w, int64_t pid)
{
    w->pid = pid;
    memset(w->last, 0, sizeof w->last);
    memset(w->used, 0, sizeof w->used);
}

/* -- one GPU ----------------------------------------------------------------------------------- */

static ft_status add_alone(writer *w, ft_text *notes, ft_error *err)
{
    const ft_step_view *v = w->v;
    FT_TRY(ft__rank_events(v, NULL, &w->rank, err));
    int64_t micros = v->work->accumulate > 1 ? v->work->accumulate : 1,
            shown = micros < MOST_ALONE ? micros : MOST_ALONE;
    size_t each = w->rank.forward.count + w->rank.backward.count + 2;
    w->detailed = (int64_t)(FT_TRACE_EVENTS / each);
    if (w->detailed < 1) w->detailed = 1;
    new_process(w, 1);
    double now = 0;
    for (int64_t m = 0; m < shown; m++) {
        const ft_pass_events *f = m ? &w->rank.forward : &w->rank.first_forward;
        const ft_pass_events *b = m ? &w->rank.backward : &w->rank.first_backward;
        ft_pipe_op op = {.micro = m, .start = now, .end = now + f->ms};
        add_piece(w, "forward", &op);
        if (m < w->detailed) add_pass(w, f, 0, 1, op.start, op.end);
        op = (ft_pipe_op){.micro = m, .start = op.end, .end = op.end + b->ms};
        add_piece(w, "backward", &op);
        if (m < w->detailed) add_pass(w, b, 0, 1, op.start, op.end);
        now = op.end;
    }
    if (micros > shown) {
        double rest = (double)(micros - shown) * (w->rank.forward.ms + w->rank.backward.ms);
        add_slice(w, TRACK_PIECES, "folded", now, now + rest, "more micro-batches like this");
        ft__text_addf(notes, "%" PRId64 " micro-batches after the first %" PRId64 " are one event. ", micros - shown,
                      shown);
        now += rest;
    }
    if (shown > w->detailed)
        ft__text_addf(notes, "Kernels are drawn for the first %" PRId64 " micro-batches. ", w->detailed);
    if (w->rank.update.ms > 0) add_slice(w, TRACK_PIECES, "update", now, now + w->rank.update.ms, "update");
    add_pass(w, &w->rank.update, 0, 1, now, now + w->rank.update.ms);
    name_tracks(w, v->device->title[0] ? v->device->title : v->device->name);
    return FT_OK;
}

/* -- stages ------------------------------------------------------------------------------------ */

/* No later piece brings gradients of this chunk (of DualPipe's rank, of either stage): with it they leave. */
static bool last_of_chunk(const writer *w, int64_t s, int32_t i)
{
    const ft_piped *pipe = &w->v->ranked->pipe;
    const ft_pipe_op *ops = pipe->ops[s];
    bool dual = w->v->parallel->schedule == FT_DUALPIPE;
    if (ops[i].kind != FT_PIPE_BACKWARD) return false;
    for (int32_t k = i + 1; k < pipe->op_count[s]; k++)
        if (ops[k].kind == FT_PIPE_BACKWARD && (dual || ops[k].chunk == ops[i].chunk)) return false;
    return true;
}

static void add_stage_pieces(writer *w, int64_t s)
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
            add_slice(w, TRACK_PIECES, "folded", op[-1].end, op->start, "more micro-batches like this");
        add_piece(w, words[op->kind], op);
        if ((!forward && op->kind != FT_PIPE_BACKWARD) || (op->micro >= w->detailed && !last)) continue;
        double from, to;
        ft__chunk_span(&w->v->ranked->stages[s], forward, op->chunk, &from, &to);
        const ft_pass_events *p = forward ? &w->rank.forward : last ? &w->rank.last_backward : &w->rank.backward;
        add_pass(w, p, from, to, op->start, op->end);
    }
}

/* After the pipeline: what is left of the gradients' exchange, the update, what is gathered again. */
static double add_tail(writer *w, const ft_stage *stage, bool own, double now)
{
    double left = fmax(stage->last_backward_ms - stage->backward_ms, 0);
    add_slice(w, TRACK_AXIS + FT_AXIS_DATA, "exchange", now, now + left, "rest of the gradients");
    now += left;
    add_slice(w, TRACK_AXIS + FT_AXIS_TENSOR, "exchange", now, now + stage->tail_ms, "gradients held by several ranks");
    now += stage->tail_ms;
    add_slice(w, TRACK_PIECES, "update", now, now + stage->update_ms, "update");
    if (own) add_pass(w, &w->rank.update, 0, 1, now, now + stage->update_ms);
    now += stage->update_ms;
    /* Now, or beside the next step's first forward pass, whose delay it is. */
    double gather = stage->gather_ms + fmax(stage->first_forward_ms - stage->forward_ms, 0);
    add_slice(w, TRACK_AXIS + FT_AXIS_DATA, "exchange", now, now + gather, "gather updated parameters");
    return now + gather;
}

static void add_stage_tail(writer *w, int64_t s)
{
    const ft_ranked *r = w->v->ranked;
    double now = add_tail(w, &r->stages[s], true, r->pipe.finish[s]);
    bool dual = w->v->parallel->schedule == FT_DUALPIPE && r->stage_count > 1; /* holds another stage's layers too */
    if (dual) add_tail(w, &r->stages[r->stage_count - 1 - s], false, now);
}

/* Where a chunk of a stage stands in the model, and the other way round. */
static int64_t place_of(const writer *w, int64_t s, int64_t chunk)
{
    int64_t stages = w->v->ranked->stage_count;
    if (w->v->parallel->schedule == FT_DUALPIPE) return chunk == 0 ? s : stages - 1 - s;
    return ft__schedule_place(w->v->parallel->schedule, stages, s, chunk);
}

static const ft_pipe_op *find_piece(const writer *w, int64_t place, int64_t micro, int32_t way, bool forward)
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

static void add_arrow_end(writer *w, int64_t id, int64_t pid, double at)
{
    ft__json_member_whole(w->out, "id", id);
    add_track(w, pid, TRACK_PIECES);
    ft__json_member_text(w->out, "cat", "send");
    ft__json_member_text(w->out, "name", "send");
    add_us(w->out, "ts", at);
    ft__json_close(w->out);
}

/* Sends as events of the sender, and arrows to who waits for them. */
static void add_sends(writer *w, int64_t s, double send_ms, const int64_t *pid_of, int64_t *arrows)
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
        if (open_event(w, TRACK_SEND + !forward, "send", op->end, op->end + send_ms)) {
            char name[48];
            snprintf(name, sizeof name, "micro-batch %" PRId64, op->micro);
            ft__json_add_text(w->out, name);
            close_event(w);
        }
        int64_t other = dual ? (op->chunk == 0 ? to : stages - 1 - to) : to % stages;
        if (!pid_of[other] || *arrows >= MOST_ARROWS) continue;
        const ft_pipe_op *there = find_piece(w, to, op->micro, op->chunk, forward);
        if (!there) continue;
        int64_t id = ++*arrows;
        begin_event(w, "s");
        add_arrow_end(w, id, w->pid, op->start + 0.999 * (op->end - op->start));
        begin_event(w, "f");
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

static ft_status add_stages(writer *w, ft_text *notes, ft_error *err)
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
        new_process(w, pid_of[s]);
        add_stage_pieces(w, s);
        add_stage_tail(w, s);
        if (stages > 1) add_sends(w, s, send_ms_of(v->ranked), pid_of, &arrows);
        ft_text name = {.cap = 256};
        ft__text_addf(&name, "stage %" PRId64 " of %" PRId64 ": GPU %" PRId64, s, stages, s * same);
        if (same > 1) ft__text_addf(&name, " and %" PRId64 " like it", same - 1);
        name_tracks(w, name.at ? name.at : "stage");
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
    writer w = {.v = v, .out = out, .parts = 1};
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
    ft__text_free(&notes);
    if (status != FT_OK) return status;
    return failed ? ft__fail(err, FT_E_MEMORY, "out of memory for a trace") : FT_OK;
}
