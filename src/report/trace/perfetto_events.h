/* Events of a trace file, one after another, and the passes drawn with them: for perfetto.c. */
#ifndef FT_REPORT_TRACE_PERFETTO_EVENTS_H
#define FT_REPORT_TRACE_PERFETTO_EVENTS_H
#include "report/trace/step_events.h"

enum {
    FT_TRACK_HOST = 1,
    FT_TRACK_PIECES = 2,
    FT_TRACK_KERNELS = 3,
    FT_TRACK_AXIS = 10,
    FT_TRACK_SEND = 20,
    FT_TRACK_COUNT = 24
};

typedef struct ft_trace_writer {
    const ft_step_view *v;
    ft_text *out;
    int64_t pid;
    double last[FT_TRACK_COUNT]; /* end of a track's last event */
    bool used[FT_TRACK_COUNT];
    ft_rank_events rank;
    int64_t detailed; /* micro-batches whose kernels are drawn */
    double parts;     /* chunks of a stage */
} ft_trace_writer;

/* Every event stands on a line of its own. */
void ft__trace_begin(ft_trace_writer *w, const char *kind);
void ft__trace_track(ft_trace_writer *w, int64_t pid, int tid);
/* Microseconds with three digits behind the point: viewers compare them as decimals. */
void ft__trace_us(ft_text *out, const char *key, double ms);
/* Opens a complete event up to its name; false when nothing of it is left. The name follows, then arguments. */
bool ft__trace_open(ft_trace_writer *w, int tid, const char *category, double start, double end);
void ft__trace_close(ft_trace_writer *w);
/* The part `from`..`to` of a pass (of 1), drawn between two moments. */
void ft__trace_pass(ft_trace_writer *w, const ft_pass_events *p, double from, double to, double start, double end);
/* One micro-batch on its track; one event with a name on any. */
void ft__trace_piece(ft_trace_writer *w, const char *word, const ft_pipe_op *op);
void ft__trace_slice(ft_trace_writer *w, int tid, const char *category, double start, double end, const char *name);
/* Names the process and the tracks that were used. */
void ft__trace_name_tracks(ft_trace_writer *w, const char *process);
/* A process begins: its tracks are empty. */
void ft__trace_process(ft_trace_writer *w, int64_t pid);
#endif
