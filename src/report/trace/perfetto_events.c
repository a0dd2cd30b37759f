/* perfetto_events.c: single events of a trace, and kernels, exchanges and passes made of them.
 *
 * Complete events ("X") with ts and dur in microseconds; metadata ("M") names processes and tracks. Inside a track
 * events stand in order and do not overlap; what a pass still sends when the next one begins is cut there. */
#include "report/trace/perfetto_events.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"

/* -- single events ----------------------------------------------------------------------------- */

void ft__trace_begin(ft_trace_writer *w, const char *kind)
{
    ft__json_line(w->out);
    ft__json_open(w->out);
    ft__json_member_text(w->out, "ph", kind);
}

void ft__trace_track(ft_trace_writer *w, int64_t pid, int tid)
{
    ft__json_member_whole(w->out, "pid", pid);
    ft__json_member_whole(w->out, "tid", tid);
}

void ft__trace_us(ft_text *out, const char *key, double ms)
{
    char text[48];
    snprintf(text, sizeof text, "%.3f", ms * 1e3);
    ft__json_member_written(out, key, text);
}

static void name_of(ft_trace_writer *w, const char *what, int tid, const char *name)
{
    ft__trace_begin(w, "M");
    ft__trace_track(w, w->pid, tid);
    ft__json_member_text(w->out, "name", what);
    ft__json_member_open(w->out, "args");
    ft__json_member_text(w->out, "name", name);
    ft__json_close(w->out);
    ft__json_close(w->out);
}

bool ft__trace_open(ft_trace_writer *w, int tid, const char *category, double start, double end)
{
    if (start < w->last[tid]) start = w->last[tid];
    if (end - start < 5e-7) return false; /* half a nanosecond: it would have no width in the file */
    w->last[tid] = end;
    w->used[tid] = true;
    ft__trace_begin(w, "X");
    ft__trace_track(w, w->pid, tid);
    ft__json_member_text(w->out, "cat", category);
    /* The end is rounded, not the length: neighbours meet. */
    double from = round(start * 1e6) / 1e6, to = round(end * 1e6) / 1e6;
    ft__trace_us(w->out, "ts", from);
    ft__trace_us(w->out, "dur", to - from);
    ft__json_key(w->out, "name");
    return true;
}

void ft__trace_close(ft_trace_writer *w) { ft__json_close(w->out); }

static void add_name(ft_trace_writer *w, const char *before, const char *name, const char *after)
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

static void add_kernel(ft_trace_writer *w, const ft_event *e, double start, double end)
{
    const ft_node *n = &w->rank.g->nodes[e->at];
    const ft_timed *t = w->rank.timed[e->at];
    if (!ft__trace_open(w, FT_TRACK_KERNELS, ft__phase_name(n->phase), start, end)) return;
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
    ft__trace_close(w);
}

static void add_exchange(ft_trace_writer *w, const ft_event *e, double start, double end)
{
    const ft_node *n = &w->rank.g->nodes[e->at];
    if (!ft__trace_open(w, FT_TRACK_AXIS + e->lane, "exchange", start, end)) return;
    bool again = e->kind == FT_SEEN_AGAIN;
    add_name(w, again ? "all_gather again " : exchange_word(n->exchange.kind), n->name, "");
    if (!again) {
        ft__json_member_open(w->out, "args");
        ft__json_member_number(w->out, "bytes", n->exchange.bytes, 6);
        ft__json_close(w->out);
    }
    ft__trace_close(w);
}

static void add_of_block(ft_trace_writer *w, const ft_event *e, double start, double end)
{
    static const char *const before[] = {[FT_SEEN_GATHER] = "gather parameters of ",
                                         [FT_SEEN_SCATTER] = "reduce gradients of ",
                                         [FT_SEEN_ISSUE] = "launch ",
                                         [FT_SEEN_FOLDED] = ""};
    const ft_block *b = &w->rank.g->blocks[e->at];
    int tid = e->lane == FT_LANE_HOST  ? FT_TRACK_HOST
              : e->lane == FT_LANE_GPU ? FT_TRACK_KERNELS
                                       : FT_TRACK_AXIS + e->lane;
    char more[48] = "";
    if (e->kind == FT_SEEN_FOLDED) snprintf(more, sizeof more, ": %.0f more like this", e->folded);
    if (!ft__trace_open(w, tid, e->kind == FT_SEEN_FOLDED ? "folded" : "block", start, end)) return;
    add_name(w, before[e->kind], b->name, more);
    ft__trace_close(w);
}

void ft__trace_pass(ft_trace_writer *w, const ft_pass_events *p, double from, double to, double start, double end)
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

void ft__trace_piece(ft_trace_writer *w, const char *word, const ft_pipe_op *op)
{
    if (!ft__trace_open(w, FT_TRACK_PIECES, "micro-batch", op->start, op->end)) return;
    char name[96];
    int length = snprintf(name, sizeof name, "%s %" PRId64, word, op->micro);
    if (w->parts > 1) snprintf(name + length, sizeof name - (size_t)length, " chunk %d", (int)op->chunk);
    ft__json_add_text(w->out, name);
    ft__json_member_open(w->out, "args");
    ft__json_member_whole(w->out, "micro_batch", op->micro);
    ft__json_member_whole(w->out, "chunk", op->chunk);
    ft__json_close(w->out);
    ft__trace_close(w);
}

void ft__trace_slice(ft_trace_writer *w, int tid, const char *category, double start, double end, const char *name)
{
    if (!ft__trace_open(w, tid, category, start, end)) return;
    ft__json_add_text(w->out, name);
    ft__trace_close(w);
}

void ft__trace_name_tracks(ft_trace_writer *w, const char *process)
{
    static const char *const names[FT_TRACK_COUNT] = {[FT_TRACK_HOST] = "host",
                                                      [FT_TRACK_PIECES] = "micro-batches",
                                                      [FT_TRACK_KERNELS] = "kernels",
                                                      [FT_TRACK_AXIS + FT_AXIS_TENSOR] = "tensor exchanges",
                                                      [FT_TRACK_AXIS + FT_AXIS_CONTEXT] = "context exchanges",
                                                      [FT_TRACK_AXIS + FT_AXIS_EXPERT] = "expert exchanges",
                                                      [FT_TRACK_AXIS + FT_AXIS_DATA] = "data exchanges",
                                                      [FT_TRACK_AXIS + FT_AXIS_PIPELINE] = "pipeline exchanges",
                                                      [FT_TRACK_SEND] = "sends activations",
                                                      [FT_TRACK_SEND + 1] = "sends gradients"};
    name_of(w, "process_name", 0, process);
    for (int i = 0; i < FT_TRACK_COUNT; i++) {
        if (!w->used[i] || !names[i]) continue;
        name_of(w, "thread_name", i, names[i]);
        ft__trace_begin(w, "M");
        ft__trace_track(w, w->pid, i);
        ft__json_member_text(w->out, "name", "thread_sort_index");
        ft__json_member_open(w->out, "args");
        ft__json_member_whole(w->out, "sort_index", i);
        ft__json_close(w->out);
        ft__json_close(w->out);
    }
}

void ft__trace_process(ft_trace_writer *w, int64_t pid)
{
    w->pid = pid;
    memset(w->last, 0, sizeof w->last);
    memset(w->used, 0, sizeof w->used);
}
