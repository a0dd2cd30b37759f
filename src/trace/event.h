/* One event of a trace as figures and as pieces of its own text. */
#ifndef FT_TRACE_EVENT_H
#define FT_TRACE_EVENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ft_trace_event_kind {
    FT_EVENT_OTHER,      /* flows, counters, metadata, instants, the profiler's own overhead */
    FT_EVENT_OP,         /* an operator on the host */
    FT_EVENT_ANNOTATION, /* record_function, ProfilerStep#N, DataLoader, Optimizer.step */
    FT_EVENT_CALL,       /* of the CUDA or HIP runtime or driver */
    FT_EVENT_KERNEL,
    FT_EVENT_MEMCPY,
    FT_EVENT_MEMSET,
    FT_EVENT_PYTHON
} ft_trace_event_kind;

/* Part of the event's text, quotes and brackets included for arrays; length 0 where it is missing. */
typedef struct ft_trace_text {
    const char *at;
    size_t length;
} ft_trace_text;

typedef struct ft_trace_event {
    ft_trace_event_kind kind;
    bool timed;                    /* has both a begin and a duration */
    ft_trace_text name;            /* unescaped */
    int64_t start_ns, duration_ns; /* on the trace's clock */
    uint64_t thread;               /* process and thread, hashed */
    int64_t external, correlation; /* 0: none */
    int64_t stream, device;        /* -1: none */
    double bytes;                  /* of a copy or a fill */
    int64_t grid[3], block[3];
    ft_trace_text dims, types, strides, concrete; /* of an operator's inputs */
    ft_trace_text collective;                     /* name of the exchange that a kernel belongs to */
    double elements;                              /* that it takes in */
    int64_t ranks;
    ft_trace_text element_type;
} ft_trace_event;

/* False: the text is no event. The text is changed where names are unescaped. */
bool ft__event_read(char *text, size_t length, ft_trace_event *out);

/* A value of a JSON object's text by its key at the top level; length 0 where there is none. For the header. */
ft_trace_text ft__json_member(ft_trace_text object, const char *key);
#endif
