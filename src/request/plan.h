/* `"task": "plan"`: which layout a training job should run with. */
#ifndef FT_REQUEST_PLAN_H
#define FT_REQUEST_PLAN_H
#include "request/idle.h"
#include "request/study.h"

/* Values of one degree that are searched; none: the search's own choice. */
enum { FT_PLAN_VALUES = 32, FT_PLAN_MOST_TOP = 100, FT_PLAN_MOST_EMITTED = 16, FT_PLAN_FORMATS = 2 };
typedef struct ft_plan_set {
    int64_t at[FT_PLAN_VALUES];
    size_t count;
} ft_plan_set;

/* On GPUs that are rented by the hour the cheapest plan is the fastest. */
typedef enum ft_plan_goal { FT_GOAL_TIME, FT_GOAL_MEMORY, FT_GOAL_ENERGY, FT_GOAL_COST, FT_GOAL_COUNT } ft_plan_goal;

/* {"task":"plan","model":"llama-3-70b","gpu":"h100_sxm","gpus":64,"global_batch":256,"search":{"tp":[4,8]}}; every
 * other key is one of a training step. Free it with ft__plan_request_free either way. */
typedef struct ft_plan_request {
    ft_idle_list idle;     /* keys of a step that a plan has no use for */
    json_t *base;          /* a training step without degrees, micro-batch and recomputation */
    json_t *typed;         /* `search` as a command line says it, read; NULL: it was an object, or left out */
    const char *framework; /* NULL: the one of the stack, or the usual one (search/usual.c) */
    int64_t gpus, global;
    ft_plan_set tp, pp, vpp, cp, ep, etp, zero, batch;
    unsigned recompute, schedules;                                       /* bits; 0: the framework's */
    bool allow_cp, allow_ep, allow_zero3, allow_offload, allow_cp_kinds; /* beyond what is searched anyway */
    unsigned formats; /* bits: fp8, fp4, tried beside the job's own */
    ft_plan_goal goal;
    double margin;                          /* of the memory, left free */
    int64_t top;                            /* plans to show */
    bool exhaustive;                        /* forecast every layout that may fit */
    bool by_gpus;                           /* the best of fewer and of more GPUs, too */
    const char *emit[FT_PLAN_MOST_EMITTED]; /* launch files to write */
    size_t emit_count;
    /* Told, by any thread, what is looked at and how much of the whole is done; NULL: nobody. */
    void (*progress)(void *watcher, const char *what, double done);
    void *watcher;
} ft_plan_request;
ft_status ft__plan_request_read(const json_t *object, ft_plan_request *out, ft_error *err);
/* `"task": "plan_serve"`: how requests should be served. Keys of `serve` are left in the base; of what is searched it
 * has tp, pp and ep; gpus 0: not said. */
ft_status ft__plan_serve_request_read(const json_t *object, ft_plan_request *out, ft_error *err);
void ft__plan_request_free(ft_plan_request *r);
#endif
