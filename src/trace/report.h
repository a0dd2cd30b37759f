/* What a trace shows: steps, where their time went, and what the same run would take elsewhere. */
#ifndef FT_TRACE_REPORT_H
#define FT_TRACE_REPORT_H
#include "kernel/host.h"
#include "trace/groups.h"

enum { FT_TRACE_GAPS = 8, FT_TRACE_TARGETS = 16, FT_TRACE_SYNCS = 6 };

/* Why the GPU had nothing to do. */
typedef enum ft_gap_cause {
    FT_GAP_BETWEEN, /* it had: the next kernel was waiting, and begins a microsecond or two after the last */
    FT_GAP_LAUNCH,  /* operators take the host longer than the GPU */
    FT_GAP_PYTHON,  /* between operators */
    FT_GAP_LOADER,  /* the host waits for data, or makes it */
    FT_GAP_SYNC,    /* the host had waited for the GPU and begins again */
    FT_GAP_COPY,    /* inside a copy to or from the host */
    FT_GAP_CAUSES
} ft_gap_cause;

typedef struct ft_gap {
    double ms, at_ms; /* from the first step's begin */
    int32_t step;
    ft_gap_cause cause;
    char host[160]; /* what the host was doing */
    char next[96];  /* the operator or kernel that ended it */
} ft_gap;

/* Calls in which the host waits for the GPU, of one operator or of none. */
typedef struct ft_sync {
    char call[48], op[64];
    double count, ms; /* per step */
} ft_sync;

typedef struct ft_busy {                     /* all per step, the mean over steps */
    double step_ms, low_ms, high_ms;         /* median, shortest, longest */
    double busy_ms, idle_ms;                 /* some work runs; none does */
    double compute_ms, memory_ms, launch_ms; /* of busy: by what holds the kernels; launch: too short for either */
    double exchange_ms, exposed_ms;          /* exchanges; of that with no kernel beside them */
    double copy_ms, copy_exposed_ms;         /* copies between host and GPU */
    double share[4];                         /* of the step, by ft_bound */
    ft_bound bound;
    double cause_ms[FT_GAP_CAUSES];
    double kernels, streams;
    ft_gap gaps[FT_TRACE_GAPS];
    int gap_count;
    ft_sync syncs[FT_TRACE_SYNCS];
    int sync_count;
    double sync_ms;
} ft_busy;

/* One group against its forecast, per step. */
typedef struct ft_against {
    const ft_trace_group *group;
    ft_price price;   /* of one call; ms 0: nobody knows */
    double ms, calls; /* measured */
    double forecast_ms, low_ms, high_ms;
    double above_ms; /* measured beyond the forecast, 0 within its interval */
    /* matrix units */
    bool product, on_tensor_cores;
    const char *why; /* it is not, or slowly; NULL: nothing to say */
    double could_ms; /* what it would take with them; 0: not known */
} ft_against;

/* The same run on another GPU, or on the same by forecast alone. */
typedef struct ft_elsewhere {
    ft_device device;
    bool here; /* the GPU of the trace */
    double step_ms, low_ms, high_ms;
    double bare_ms; /* without the profiler's share of the host's time; 0: not known */
    double busy_ms, idle_ms;
    double host_ms; /* operators alone: what the host takes to issue them */
    double scaled;  /* share of the busy time scaled operator by operator */
    double guessed; /* share scaled by bandwidth or peak alone */
    bool instead;   /* number formats that the GPU lacks: others ran in their place */
    double class_ms[FT_CALLED_CLASSES];
} ft_elsewhere;

typedef struct ft_trace_report {
    ft_record record;
    ft_trace_groups groups;
    ft_device device; /* of the trace */
    bool device_known;
    char device_note[200]; /* how it was found */
    bool kernels;          /* false: a trace of operators alone */
    ft_busy busy;
    ft_against *against;                        /* one per group, most left on the table first */
    ft_price *here;                             /* one per group, in their order */
    double class_ms[FT_CALLED_CLASSES];         /* measured per step */
    double product_ms, tensor_ms, unaligned_ms; /* per step; of products */
    double bare_ms;                /* the step without the profiler, as far as that can be told; 0: it cannot */
    double forecast_ms, priced_ms; /* per step: forecasts of the groups that have one, and what those took */
    ft_elsewhere elsewhere[FT_TRACE_TARGETS];
    int elsewhere_count;
    double quantile;
    const ft_host *host; /* issues operators of a trace without kernels; NULL: the usual one */
    ft_text warnings;    /* one per line */
} ft_trace_report;

/* `on`: the GPU that recorded it, NULL: as the trace says. Targets: catalogue names or spec files. `host`: NULL, or
 * what outlives the report. Free it either way. */
ft_status ft__trace_report_of(ft_slices *from, const ft_predictor *p, const char *on, const char *const *targets,
                              size_t target_count, double quantile, const ft_host *host, ft_trace_report *out,
                              ft_error *err);
void ft__trace_report_free(ft_trace_report *s);

/* Parts of it. `alone`: forecasts in place of the measured times, on the GPU of the trace itself. */
extern const double ft__trace_in_model, ft__trace_note_ns;
ft_status ft__trace_elsewhere(ft_trace_report *s, const ft_predictor *p, const ft_device *d, bool alone,
                              ft_elsewhere *out, ft_error *err);
/* A trace without kernels: what its operators take there, issued by the host of an eager step. */
ft_status ft__trace_operators(ft_trace_report *s, const ft_predictor *p, const ft_device *d, ft_elsewhere *out,
                              ft_error *err);
/* The step of it: `prices` one per group, `below` and `above` shares by which the GPU's time may be off. */
ft_status ft__trace_pace(const ft_trace_report *s, const ft_price *prices, double below, double above,
                         ft_elsewhere *out, ft_error *err);
ft_status ft__busy_of(const ft_record *r, const ft_trace_groups *g, const ft_price *prices, ft_busy *out,
                      ft_error *err);
/* The catalogue's GPU of a trace's header; false: none that could be it, `note` says the nearest. */
bool ft__find_recorded(const ft_record *r, ft_device *out, char note[200]);
/* Lengths of the work's kernels multiplied by `scale` (one per group): the median step and the busy time. */
typedef struct ft_replayed {
    double step_ms, busy_ms;
} ft_replayed;
/* `host`: times as long as the host took for its own work; 1: as recorded. `note_ns`: what the profiler took of the
 * host for each operator and call, which is left out; 0: nothing. */
ft_status ft__replay(const ft_record *r, const double *scale, double host, double note_ns, ft_replayed *out,
                     ft_error *err);
const char *ft__gap_cause_words(ft_gap_cause c);
const char *ft__gap_cause_name(ft_gap_cause c);
#endif
