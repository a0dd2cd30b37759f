/* What a trace holds, once it has been read: operators and calls on the host, work on the GPU, and how they belong
 * together. A few dozen bytes per event; names and the shapes of inputs are kept once each.
 *
 * Who launched a kernel: its "External id" names the innermost operator; where that is missing or not unique, the
 * runtime call with the same correlation tells the time and the thread of the launch, and the innermost operator around
 * it is taken. */
#ifndef FT_TRACE_RECORD_H
#define FT_TRACE_RECORD_H
#include "base/arena.h"
#include "base/error.h"
#include "trace/event.h"
#include "trace/slices.h"

enum { FT_TRACE_NONE = -1 };

typedef struct ft_trace_op { /* an operator or an annotation on the host */
    int64_t start, end;      /* ns */
    uint64_t thread;
    int64_t external;
    int32_t name;        /* of ft_record.names */
    int32_t inputs;      /* of ft_record.signatures; FT_TRACE_NONE: not recorded */
    int32_t parent;      /* innermost operator around it; FT_TRACE_NONE */
    uint32_t place : 31; /* in the file: what comes first of two that begin and end together */
    bool annotation : 1;
} ft_trace_op;

typedef struct ft_trace_call { /* of the runtime or the driver */
    int64_t start, end;
    uint64_t thread;
    int64_t correlation;
    int32_t name, op; /* op: the innermost operator around it */
    int32_t place;    /* in the file */
} ft_trace_call;

typedef struct ft_trace_work { /* on the GPU */
    int64_t start, end;
    int64_t stream, correlation, external;
    double bytes;           /* of a copy, a fill or an exchange */
    int32_t name, op, call; /* FT_TRACE_NONE where unknown */
    int32_t step;           /* FT_TRACE_NONE: between steps */
    int32_t group;          /* filled by ft__groups_of */
    int16_t device;
    uint8_t kind;          /* an ft_trace_event_kind */
    bool exchange;         /* NCCL, RCCL */
    float blocks, threads; /* of the launch; 0: not known */
    int32_t ranks;         /* of an exchange; 0: not known */
    int32_t place;         /* in the file */
} ft_trace_work;

typedef struct ft_trace_step {
    int64_t host_start, host_end; /* as the host marked it */
    int64_t start, end;           /* as the GPU ran it: from the end of the one before to its own */
    int32_t name, op;             /* op: the annotation that marks it */
} ft_trace_step;

typedef struct ft_signature_text {
    const char *dims, *types, *strides, *concrete; /* "" where missing */
} ft_signature_text;

typedef struct ft_record {
    ft_arena *arena;
    ft_trace_op *ops;
    ft_trace_call *calls;
    ft_trace_work *work;  /* sorted by start */
    ft_trace_step *steps; /* at least one where there is any work */
    const char **names;
    ft_signature_text *signatures;
    size_t op_count, call_count, work_count, step_count, name_count, signature_count;
    bool whole;     /* no ProfilerStep: the one step is everything */
    int64_t device; /* whose work this is; others are left out */
    /* what was odd */
    uint64_t bytes, events, python_events, skipped;
    uint64_t modules; /* calls of Python modules, where the trace names them */
    size_t negative, early, orphans, duplicate_ids, other_devices, capped;
    char broken[128];
    /* the header */
    char gpu_name[96];
    double gpu_memory_bytes;
    int gpu_sms, gpu_count;
    int64_t ranks; /* of the job; 0: not said */
} ft_record;

/* Reads all of it. `most_bytes` bounds the memory for events: what comes after is left out and counted in `capped`.
 * A file that ends early gives what came before, `broken` says why. Free it either way. */
ft_status ft__record_read(ft_slices *from, size_t most_bytes, ft_record *out, ft_error *err);
void ft__record_free(ft_record *r);

/* Behind reading: parents, owners, steps. */
ft_status ft__record_join(ft_record *r, ft_error *err);
/* The step that the host was in; FT_TRACE_NONE between two. */
int32_t ft__record_step_at(const ft_record *r, int64_t when);
/* The last operator or annotation on the thread that began before `when`; FT_TRACE_NONE. */
int32_t ft__record_op_begun(const ft_record *r, uint64_t thread, int64_t when);
const char *ft__record_name(const ft_record *r, int32_t name); /* "" for FT_TRACE_NONE */
#endif
