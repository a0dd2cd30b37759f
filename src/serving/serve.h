/* Serving under load: one request -> what clients see, what the engine does, what holds it. */
#ifndef FT_SERVING_SERVE_H
#define FT_SERVING_SERVE_H
#include "kernel/energy.h"
#include "request/serve.h"
#include "serving/simulate.h"
#include "study/infer.h"

typedef enum ft_serving_bound {
    FT_BOUND_BY_DECODE,
    FT_BOUND_BY_PREFILL,
    FT_BOUND_BY_CACHE,
    FT_BOUND_BY_FRONTEND,
    FT_BOUND_BY_QUEUE, /* max_num_seqs */
    FT_SERVING_BOUNDS
} ft_serving_bound;
extern const char *const ft__serving_bound_words[FT_SERVING_BOUNDS];

typedef struct ft_bounds_ms {
    double low, high;
} ft_bounds_ms;

/* One thing changed, and what the same load then is. */
enum { FT_SERVING_ADVICE = 8 };
typedef struct ft_serving_advice {
    char what[64];
    const char *key; /* of the request; static */
    double value;    /* of a number */
    int64_t gpus;
    double ttft_ms, tpot_ms, tokens_per_s_per_gpu;
    double usd_per_million;              /* 0: nobody knows a price */
    double ttft_saved_ms, tpot_saved_ms; /* below 0: it takes longer */
    bool stable;
} ft_serving_advice;

/* Lives until the next request with the same scratch; free it with ft__serving_free, whatever ft__serve_of said. */
typedef struct ft_serving {
    const char *model;
    const ft_device *device;
    ft_serving_engine own_engine;
    const ft_serving_engine *engine;
    ft_served served, prefill_served; /* disaggregated: of who decodes; of who prefills */
    ft_served draft_served;           /* the model that makes drafts */
    ft_costs costs, prefill_costs, draft_costs;
    double drafts;     /* of a step: as the request says, or else as the engine is started */
    bool drafts_said;  /* by the request */
    bool prompts_said; /* the request says how many prompts come again */
    ft_policy policy, prefill_policy;
    ft_load load;
    ft_length_pair *pairs; /* owned: lengths of a file; NULL: none */
    size_t pair_count;
    ft_scene scene;
    ft_outcome *out;
    double quantile;
    int64_t gpus;                      /* of all engines */
    ft_bounds_ms ttft, tpot, itl, e2e; /* intervals of the means */
    ft_energy energy;                  /* of one GPU, on average, over the run */
    bool ttft_known, tpot_known;       /* the request's own engine says its spread */
    bool stable;
    double slo_share; /* that was asked for; 0: no objectives */
    bool slo_met;
    double nearest_ttft_ms, nearest_tpot_ms, nearest_e2e_ms; /* objectives that as many would keep; 0: not asked for */
    double found; /* "find": the highest load; 0: none keeps the objectives, or not asked */
    ft_find find;
    ft_serving_bound bound;
    ft_serving_advice advice[FT_SERVING_ADVICE];
    size_t advice_count;
    ft_text recipes;             /* whose settings the engine has, one per line */
    ft_text warnings;            /* one per line */
    char beyond[FT_BEYOND_ROOM]; /* one of them: requests are longer than the model has positions; or "" */
    ft_idle_list idle;           /* keys that this engine has no use for; said among the warnings */
} ft_serving;

/* `sink` hears of requests and iterations; NULL: nobody does. */
ft_status ft__serve_of(const ft_context *ft, ft_scratch *scratch, const ft_serve_request *r,
                       const ft_serving_sink *sink, ft_serving *out, ft_error *err);
/* Makes a request of a search one at this load: requests per second, or clients. */
void ft__serve_at(ft_serve_request *r, ft_find what, double load);
/* An engine's step for `infer` (study/infer.h's ft_engine_step). */
ft_status ft__serving_step(const ft_context *ft, ft_scratch *scratch, const json_t *base, const json_t *engine,
                           bool prefill, int64_t batch, int64_t seq, ft_infer_cell *out, ft_error *err);
void ft__serving_free(ft_serving *s);
/* Joules of all GPUs for a token of answers; 0: the GPU's sheet has no limit. */
double ft__serving_joules_per_token(const ft_serving *s);
/* Dollars for a million tokens of answers at the price of the GPU's sheet; 0: it has none. */
double ft__serving_usd_per_million(const ft_serving *s);
/* Requests per second that ended, tokens of answers per second and GPU. */
double ft__serving_requests_per_s(const ft_serving *s);
double ft__serving_frontend_ms(const ft_serving *s); /* of a request of mean length, before it is in the queue */
double ft__serving_tokens_per_s_per_gpu(const ft_serving *s);
#endif
