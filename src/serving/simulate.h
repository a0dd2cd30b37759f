/* Requests over time on one engine, on several behind a router, or on engines that prefill and engines that decode. */
#ifndef FT_SERVING_SIMULATE_H
#define FT_SERVING_SIMULATE_H
#include "serving/dispatcher.h"
#include "serving/load.h"
#include "serving/tally.h"

/* One request, when it has ended: as the client saw it. */
typedef struct ft_served_request {
    double sent_ms, started_ms, first_ms, ended_ms;
    int32_t prompt, answer, client, priority;
} ft_served_request;
/* One iteration, or several equal ones at once. */
typedef struct ft_served_step {
    double start_ms, ms, steps, decoders, prompts, prompt_tokens;
} ft_served_step;
typedef struct ft_serving_sink {
    void *user;
    void (*request)(void *user, const ft_served_request *r); /* NULL: nobody wants to know */
    void (*step)(void *user, const ft_served_step *s);
    void (*progress)(void *watcher, double share);
    void *watcher; /* whom progress tells */
} ft_serving_sink;

typedef struct ft_scene {
    const ft_costs *costs; /* of engines that decode, or do both */
    const ft_policy *policy;
    int64_t replicas;
    const ft_costs *prefill_costs; /* disaggregated; NULL: not */
    const ft_policy *prefill_policy;
    int64_t prefill_replicas;
    double transfer_ms_per_token; /* of a prompt's cache to who decodes */
    ft_routing_kind routing;
    double request_ms, prompt_token_ms;          /* from the client to the queue */
    int64_t warmup;                              /* requests that are not counted */
    double slo_ttft_ms, slo_tpot_ms, slo_e2e_ms; /* 0: none */
    double hash_tokens;                          /* of a block with a hash; 0: no prefix cache */
    double give_up; /* share of requests that must be good: it ends when they cannot be any more; 0: nobody asks */
    const ft_serving_sink *sink; /* NULL: none */
} ft_scene;

enum { FT_COURSE = 256 };
/* Queue, running sequences and cache over time. */
typedef struct ft_course_point {
    double ms, waiting, running, cache_share;
} ft_course_point;

typedef struct ft_client_service {
    double tokens, wait_ms, requests;
} ft_client_service;

typedef struct ft_course {
    ft_course_point at[FT_COURSE];
    int count;
    int64_t every, skipped; /* iterations between two points */
} ft_course;

/* What iterations of one kind had in them, summed over them. */
typedef struct ft_worked {
    double steps, decoders, context, prompts, prompt_tokens, rows;
} ft_worked;

typedef struct ft_outcome {
    ft_tally ttft, tpot, itl, e2e, queue;
    double requests, prompt_tokens, answer_tokens; /* that ended and count */
    double known_tokens;                           /* of prompts, that the cache had when they began */
    double good;                                   /* of them, those that met every objective */
    double first_ms, last_ms;                      /* from the first that counts was sent to the last end */
    double steps_decode, steps_mixed, decode_ms, mixed_ms;
    ft_worked decoded, mixed, prefilled; /* of engines that do both, or that decode; of engines that only prefill */
    double running_ms, running_max;      /* sequences times milliseconds */
    double busy_ms, blocked_ms, full_ms, front_lag_ms;
    double peak_tokens;
    int64_t preemptions;
    double waiting_half, waiting_end; /* requests in queues when half and when all had come */
    double sent_last_ms;
    double jain, worst_client_ratio; /* 0: a single client */
    int64_t clients;
    ft_course course;
} ft_outcome;

/* course.c: whether the next moment is to be kept (there is room for it then); the work of iterations, added. */
bool ft__course_due(ft_course *c);
void ft__worked_add(ft_worked *w, const ft_iteration *i, double steps);
/* A queue that is as long as never before when the last of so many requests comes would go on growing. */
bool ft__queue_grows(const ft_outcome *o, int64_t requests);
/* Fills jain, worst_client_ratio and clients. */
void ft__judge_fairness(const ft_client_service *clients, size_t count, ft_outcome *out);
ft_status ft__simulate(const ft_scene *s, ft_load *load, ft_outcome *out, ft_error *err);
#endif
