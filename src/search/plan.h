/* Which layout a training job should run with: every layout that its framework takes, the fastest that fits, and the
 * proof that no other of them is faster.
 *
 * Layouts are thousands, forecasts of a whole step a millisecond. Three things keep the search short (plan.c):
 * layouts that are the same run are counted once (space.c); what a layout takes at least, in time and in memory,
 * follows from a few stages that many layouts share (cells.c); layouts are forecast in the order of those bounds until
 * the next bound is beyond what was found. */
#ifndef FT_SEARCH_PLAN_H
#define FT_SEARCH_PLAN_H
#include "ranks/ranks.h"
#include "request/plan.h"
#include "request/words.h"
#include "search/framework.h"
#include "search/workers.h"
#include "study/context.h"
#include "study/rollout.h"

typedef struct ft_plan ft_plan;

/* One layout, as far as a search changes it. */
typedef struct ft_layout {
    ft_parallel parallel;
    int64_t batch, micros;
    ft_recompute recompute;
    unsigned offload; /* bits of ft_offload: what lies on the host */
} ft_layout;

/* What became of a candidate. */
typedef enum ft_fate {
    FT_FATE_OPEN,      /* its bound was enough */
    FT_FATE_TOO_LARGE, /* cannot fit: what it holds at least is too much */
    FT_FATE_REFUSED,   /* cannot be forecast */
    FT_FATE_FORECAST
} ft_fate;

typedef struct ft_candidate {
    ft_layout layout;
    int32_t cell; /* in ft_search.cells */
    ft_fate fate;
    bool fits;
    double bound_ms;     /* no step is shorter */
    double least_bytes;  /* no rank of its worst stage holds less */
    double least_joules; /* no GPU draws less over a step */
    double step_ms, low_ms, high_ms, busy_ms, exposed_ms, bubble_ms, idle_ms, update_ms, mfu, tokens_per_s;
    double rollout_ms; /* answers that are generated first */
    double host_ms;    /* waited for copies to and from the host, and for its update */
    double axis_ms[FT_AXIS_COUNT];
    ft_memory memory;
    ft_energy energy; /* of one GPU */
    double chance;    /* that it is the fastest of those shown */
} ft_candidate;

/* What layouts share that cut a layer alike and run it on as many tokens. */
typedef struct ft_cell {
    ft_parallel parallel; /* one stage, or those that are looked at; as many data ranks as there is room for, or none */
    int64_t batch, micros; /* two stand for more */
    ft_recompute recompute;
    unsigned offload;
    bool probed, failed, wanted;
    double whole_ms;                      /* forward and backward of a micro-batch through the whole model */
    double layer_ms;                      /* through one layer of a pipeline; 0: layers differ */
    double end_ms;                        /* through what its last stage has beside layers */
    double joules;                        /* of its kernels, beyond what a waiting GPU draws */
    double weights, gradients, optimizer; /* bytes of the whole model's on one tensor rank, nothing sharded */
    double expert_share;                  /* of its trained parameters */
    double first_share;                   /* the first stage's states, of what an even share would be; at most 1 */
    double layer_saved;                   /* activations that a layer leaves for the backward pass; 0: layers differ */
} ft_cell;

/* Everything that stays the same from layout to layout. */
typedef struct ft_search {
    const ft_context *ft;
    const ft_plan_request *asked;
    const ft_framework *framework;
    ft_model_request request; /* of the base: one GPU */
    ft_cluster cluster;
    ft_divisible model;
    double quantile;
    double capacity; /* bytes that a rank may take */
    double trained;  /* parameters of the whole model */
    bool uniform;    /* every layer is like the others */
    bool recomputes; /* some layer can run again */
    ft_candidate *candidates;
    size_t candidate_count, candidate_room;
    ft_cell *cells;
    size_t cell_count, cell_room;
    ft_rollout rollout; /* before every step; 0 ms: nothing is generated */
    int threads;
    bool own_stack, own_execution; /* the request names them; otherwise they are the framework's */
} ft_search;

/* Fills candidates, twins left out; without the checks, and with none where there are none (space.c). What cannot be
 * met, with the rule and the nearest that works (cannot.c). */
ft_status ft__plan_layouts(ft_search *s, ft_error *err);
ft_status ft__plan_cannot(const ft_search *s, ft_error *err);
/* What the framework or the model does not have at all is refused, with what would do (refused.c). */
ft_status ft__plan_refused(const ft_search *s, ft_error *err);
/* Whether every value of a set cuts something: one that leaves the choice of 1 asks for nothing that cannot be. */
bool ft__plan_cuts_by(const ft_plan_set *set);
ft_status ft__plan_space(ft_search *s, ft_error *err);
/* The cell of a candidate; probing it; and what follows for the candidate (cells.c). */
ft_status ft__plan_cell(ft_search *s, ft_candidate *c, ft_error *err);
ft_status ft__plan_probe(const ft_search *s, ft_cell *cell, ft_worker *worker, ft_error *err);
void ft__plan_spare(ft_search *s);
void ft__plan_bound(const ft_search *s, ft_candidate *c);
/* Fills the search's rollout, by the fastest engines (rollout.c). */
ft_status ft__plan_rollout(ft_search *s, ft_scratch *scratch, ft_error *err);
/* Whether the search lists values of ZeRO, schedules or recomputation that the framework does not have beside some that
 * it has. */
bool ft__plan_asks_in_vain(const ft_search *s);
/* Keys of the request that have no effect in any of the candidates' steps, and what `train` would warn of besides
 * (idle.c); both as lines, behind those that are there. */
ft_status ft__plan_idle(const ft_search *s, ft_plan *out, ft_error *err);
void ft__plan_say(const ft_plan *p, ft_text *out);
/* The request with a candidate's layout. */
ft_model_request ft__plan_request_of(const ft_search *s, const ft_layout *layout);
/* Whether how context ranks exchange is worth a word: it is not what frameworks do by themselves. */
bool ft__layout_says_context(const ft_parallel *p);
/* The candidate's whole step. Its fate says what came of it; an error is one of memory. */
ft_status ft__plan_forecast(const ft_search *s, ft_candidate *c, const ft_cluster *cluster, ft_worker *worker,
                            ft_error *err);

/* Chances that each of `count` times is the shortest, when times of layouts err by `spread` of each other (chance.c).
 * */
void ft__plan_chances(const double *ms, size_t count, double spread, double *out);

/* -- the answer -------------------------------------------------------------------------------- */

typedef struct ft_plan_changed { /* the same plans under another assumption */
    const char *what;            /* "the network between nodes at half its rate" */
    size_t best;                 /* of the plans */
    double step_ms[FT_PLAN_MOST_TOP];
} ft_plan_changed;

typedef struct ft_plan_of_gpus { /* the best on another number of GPUs */
    int64_t gpus;
    bool fits, front; /* front: no fewer GPUs are as fast */
    ft_candidate best;
} ft_plan_of_gpus;

typedef struct ft_plan_of_format { /* the best in another number format */
    ft_dtype dtype;
    bool fits;
    ft_candidate best;
    char why[160]; /* where it is refused: the GPU lacks it */
} ft_plan_of_format;

struct ft_plan {
    ft_search search;
    size_t candidates, refused, too_large, forecasts, fit, tight;
    bool proven, trial; /* a trial looks for one plan and nothing beside it */
    double gap;         /* where it is not: how much faster something unseen may be */
    double search_ms;
    ft_candidate *plans; /* the best first, in the search's memory */
    size_t plan_count;
    ft_candidate *faster;  /* the nearest that is faster than all that fit, and does not; NULL: none */
    const char *remedy;    /* what would make it fit; "" for none */
    ft_candidate **pareto; /* time against memory, the fastest first */
    size_t pareto_count;
    ft_plan_changed changed[4];
    size_t changed_count;
    ft_plan_of_gpus by_gpus[5]; /* where that was asked for: the fewest first, those asked for among them */
    size_t by_gpus_count;
    ft_plan_of_format formats[1 + FT_PLAN_FORMATS]; /* where others are allowed: the job's own first */
    size_t format_count;
    ft_idle_list idle;  /* keys that no layout has a use for */
    const char *remark; /* what the request was taken for, and what was made of its model; "" for nothing */
    int64_t least_gpus; /* nothing fits: the fewest that would do; 0: not known */
    ft_arena *arena;
};

/* The model of a plan whose software is not settled yet: read without what only some software has (usual.c). */
ft_status ft__plan_model(const ft_context *ft, ft_scratch *scratch, const json_t *base, ft_model_request *out,
                         ft_error *err);
/* The framework of a training step that names none: that of its stack, or the usual one for such models (usual.c). */
ft_status ft__framework_usual(const ft_context *ft, ft_scratch *scratch, const json_t *base, const ft_framework **out,
                              ft_error *err);
/* FT_E_RANGE: the request names the stack of another framework, whose layouts are not this one's. */
ft_status ft__framework_agrees(const ft_framework *f, const json_t *base, ft_error *err);
/* FT_E_RANGE where weights are of fewer bits than it trains beside adapters. */
ft_status ft__framework_holds(const ft_framework *f, const ft_model_request *r, ft_error *err);
/* The best plan and nothing beside it. */
ft_status ft__plan_best(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_plan *out,
                        ft_error *err);
/* Free it with ft__plan_free either way. No plan fits: plan_count is 0. */
ft_status ft__plan_of(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_plan *out, ft_error *err);
void ft__plan_free(ft_plan *p);
/* The fewest GPUs, more than were asked for, on which some layout fits; 0: none is known. */
int64_t ft__plan_least(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r);
/* A plan in the format that the request has; then in those that it allows beside it, of which the better stays
 * (formats.c). How a goal orders candidates, as qsort asks. */
ft_status ft__plan_in_format(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, bool trial,
                             ft_plan *out, ft_error *err);
ft_status ft__plan_formats(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, bool trial,
                           ft_plan *out, ft_error *err);
typedef int (*ft_plan_order)(const void *a, const void *b);
ft_plan_order ft__plan_orders(ft_plan_goal goal);
/* Plans of an eighth to twice as many GPUs, and which of them are worth having (by_gpus.c). */
ft_status ft__plan_by_gpus(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_plan *out,
                           ft_error *err);
/* The request that a layout is the answer of, to be released; NULL: out of memory. */
json_t *ft__plan_json(const ft_plan *p, const ft_layout *layout);

/* Between plan.c and alternatives.c: bytes that a rank takes, whether a layout can be a plan, the order of plans by
 * time. */
double ft__plan_held(const ft_candidate *c);
bool ft__plan_stands(const ft_candidate *c);
int ft__plan_by_time(const void *a, const void *b);
/* Forecasts what may be faster than everything that was, where the goal is another; what may hold less; what would be
 * faster than all that fit and lacks least, once `pareto` is known; time against memory; the plans again with slower
 * networks. */
ft_status ft__plan_fastest(ft_search *s, ft_workers *workers, ft_plan *out, ft_error *err);
ft_status ft__plan_smaller(ft_search *s, ft_workers *workers, ft_plan *out, ft_error *err);
ft_status ft__plan_faster(ft_search *s, ft_workers *workers, ft_plan *out, ft_error *err);
ft_status ft__plan_pareto(ft_search *s, ft_plan *out, ft_error *err);
ft_status ft__plan_changes(ft_search *s, ft_workers *workers, ft_plan *out, ft_error *err);
#endif
