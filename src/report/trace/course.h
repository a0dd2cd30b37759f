/* The course of a step: where its passes stand in time, and the bytes that live meanwhile.
 *
 * Both are of one GPU, or of one rank of a stage, on one axis: what is drawn from them ends where the step does. */
#ifndef FT_REPORT_TRACE_COURSE_H
#define FT_REPORT_TRACE_COURSE_H
#include "report/trace/step_events.h"

typedef struct ft_placed_pass {
    /* "forward", "backward", "inputs", "weights", "optimizer", "micro-batches", "gradients" */
    const char *what;
    int64_t micro;              /* from 0; -1: the step has no such number for it */
    double count;               /* micro-batches that it stands for; 1 mostly */
    double start, end;          /* ms since the step began */
    double from, to;            /* the part of the walk that runs, of 1 */
    const ft_pass_events *walk; /* NULL: nothing was listened to */
} ft_placed_pass;

typedef struct ft_step_course {
    ft_rank_events rank;
    ft_placed_pass *passes;
    size_t count;
    double end;
} ft_step_course;

/* Of stage `stage`, or with -1 of the view's one GPU. In the view's arena. */
ft_status ft__step_course(const ft_step_view *v, int64_t stage, ft_step_course *out, ft_error *err);

/* -- memory (memory_course.c) -------------------------------------------------------------------- */

/* Weights, optimizer, gradients, activations, KV cache, communication, temporary. */
enum { FT_COURSE_KINDS = 7 };
typedef struct ft_course_moment {
    double ms; /* when it begins */
    double bytes[FT_COURSE_KINDS];
} ft_course_moment;

typedef struct ft_memory_course {
    ft_course_moment *at; /* the caller's to free() */
    size_t count;
    double end;
    bool slanted; /* linear from one moment to the next; otherwise steps */
    bool untimed; /* nothing takes time (the task "memory"): moments stand in their order, 0, 1, 2, ... */
} ft_memory_course;

double ft__course_total(const ft_course_moment *m);
/* One GPU: kernel by kernel, micro-batch after micro-batch. Many: the stage that holds most. False: out of memory;
 * `at` is to be freed all the same. */
bool ft__memory_course(const ft_step_view *v, ft_memory_course *out);
/* At most so many moments, of each bin the fullest: a peak must not be lost. */
void ft__memory_course_thin(ft_memory_course *c, double bins);
#endif
