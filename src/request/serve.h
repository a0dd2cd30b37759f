/* `"task": "serve"`: requests over time on a serving engine. */
#ifndef FT_REQUEST_SERVE_H
#define FT_REQUEST_SERVE_H
#include "request/idle.h"
#include "request/keys.h"
#include "request/study.h"

typedef enum ft_find { FT_FIND_NOTHING = -1, FT_FIND_RATE, FT_FIND_CONCURRENCY } ft_find;

/* Degrees of one engine: attention-data-parallel ranks in dp, expert ranks over tp x dp in ep. */
typedef struct ft_engine_layout {
    int64_t tp, pp, dp, ep;
    int64_t cp; /* ranks that share every sequence, tp x dp x pp each; 0: as 1 */
} ft_engine_layout;

/* What is said, checked one by one; the engine, the model and the load are made of it in serving/. Free it with
 * ft__serve_request_free either way. */
typedef struct ft_serve_request {
    json_t *base; /* the model's own keys, to be read as a decode step without a layout */
    ft_said said;
    const json_t *engine; /* NULL: the usual one */
    ft_engine_layout layout;
    double range[2]; /* of lengths */
    bool range_given;
    bool verdict_alone; /* where the objectives are missed nothing else is asked: the run ends when that is certain */
    bool lasting;       /* "requests" are the least: at a rate as many as it takes to fill the engine and keep it so */
    double drafts, accepted;                 /* 0 and 1: no speculation; accepted 0: nobody said */
    double acceptance;                       /* chance of a draft; below 0: nobody said */
    bool own_drafts;                         /* by a layer of the model's own */
    const json_t *draft;                     /* the model that makes them; NULL: none */
    int64_t prefill_workers, decode_workers; /* 0: not disaggregated */
    ft_engine_layout prefill_layout;
    double slo_ttft_ms, slo_tpot_ms, slo_e2e_ms, slo_share; /* 0: none */
    ft_find find;
    ft_idle_list idle;
} ft_serve_request;
ft_status ft__serve_request_read(const json_t *object, ft_serve_request *out, ft_error *err);
void ft__serve_request_free(ft_serve_request *r);
#endif
