/* Plans for serving: which layout an engine should have, how many engines there should be, whether prompts and answers
 * are better served by engines of their own, and with which settings; and which GPUs to rent for it.
 *
 * Every way to serve is tried by simulation (serving/serve.h). Three questions are one search: the fewest GPUs that
 * keep the objectives at a rate; the highest rate that so many GPUs keep them at; the most tokens per second where
 * nobody waits (offline). */
#ifndef FT_FLEET_FLEET_H
#define FT_FLEET_FLEET_H
#include "request/plan.h"
#include "serving/serve.h"

typedef enum ft_fleet_goal {
    FT_FLEET_GPUS,   /* rate and objectives: the fewest GPUs */
    FT_FLEET_RATE,   /* objectives alone: the highest rate */
    FT_FLEET_OFFLINE /* neither: the most tokens per second */
} ft_fleet_goal;
extern const char *const ft__fleet_goal_words[];

/* What keeps a way to serve from being the plan. */
typedef enum ft_fleet_lost {
    FT_FLEET_STANDS,
    FT_FLEET_MEMORY, /* weights leave no room for a cache */
    FT_FLEET_TTFT,   /* not even one request by itself keeps an objective */
    FT_FLEET_TPOT,
    FT_FLEET_E2E,
    FT_FLEET_TOO_MANY, /* it takes more GPUs than there are */
    FT_FLEET_MORE,     /* by its rate alone it takes far more than another, and with as many it does not keep them */
    FT_FLEET_LOSTS
} ft_fleet_lost;
extern const char *const ft__fleet_lost_words[FT_FLEET_LOSTS];

/* One way to serve, and what came of it. */
typedef struct ft_way {
    ft_engine_layout layout, prefill; /* prefill.tp 0: the same engines do both */
    int64_t replicas, prefill_workers;
    int64_t max_seqs, budget; /* 0: the engine's own */
    int64_t requests, warmup; /* that it was simulated with, and of them not counted; 0: not yet, none */
    int64_t gpus;
    ft_fleet_lost lost;
    bool as_many_fail; /* it was simulated with as many GPUs as the best had, and does not keep the objectives */
    double alone;      /* requests per second that one engine (of them that decode) keeps */
    double rate, tokens_per_s, share;
    double joules_per_token; /* of answers, over all GPUs; 0: the GPU's sheet has no limit */
    ft_energy energy;        /* of one GPU, on average */
    double chance;           /* that it is the best of the plans */
    bool front;              /* no other plan has both fewer GPUs (or more requests) and quicker answers */
    double drafts;           /* of a step, by a layer of the model's own; 0: none */
    double ttft_ms, ttft_low_ms, ttft_high_ms, ttft_p90_ms, tpot_ms, tpot_low_ms, tpot_high_ms, tpot_p90_ms, e2e_ms;
} ft_way;

typedef struct ft_fleet {
    const ft_plan_request *asked;
    ft_fleet_goal goal;
    char model[96], gpu[64], engine[48]; /* as the catalogues have them */
    double rate, osl;                    /* asked for; 0: not said */
    ft_way *ways;                        /* the best first; those that lose behind */
    size_t count, room, plans;           /* `plans` of them stand */
    size_t simulations;
    bool proven; /* no other way can do with fewer GPUs */
    bool quick;  /* the search for a rate: fewer requests; what is shown is simulated whole */
    int64_t node_gpus;
    int64_t domain, most; /* GPUs that NVLink joins, a power of two; GPUs that were looked at */
    int64_t least_gpus;   /* no way keeps to the GPUs there are: the fewest that would do; 0: none, or not needed */
    ft_idle_list idle;    /* keys that no way to serve has a use for */
    char beyond[FT_BEYOND_ROOM]; /* requests are longer than the model has positions; or "" */
} ft_fleet;

/* `most`: GPUs that there are. Free it with ft__fleet_free either way. */
ft_status ft__fleet_of(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_fleet *out,
                       ft_error *err);
void ft__fleet_free(ft_fleet *f);
/* The same, and nobody asks how many GPUs would do where none stands: `least_gpus` is what the search came upon. */
ft_status ft__fleet_search(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, ft_fleet *out,
                           ft_error *err);
/* How many GPUs would do, of a search where nothing stands (larger.c). */
ft_status ft__fleet_least(const ft_context *ft, ft_scratch *scratch, ft_fleet *f, ft_error *err);
/* What it warns of, a line each. */
void ft__fleet_say(const ft_fleet *f, ft_text *out);
/* What `proven` says of the plans, in words. */
const char *ft__fleet_proof(const ft_fleet *f);
/* The `serve` request that is answered with a way's figures, to be released; NULL: out of memory. */
json_t *ft__fleet_json(const ft_fleet *f, const ft_way *way);
/* GPUs of one engine. */
int64_t ft__engine_gpus(const ft_engine_layout *l);

/* Between the files of this room. */
/* Stages of an engine at most, and of its data ranks so many times what NVLink joins. */
enum { FT_FLEET_STAGES = 4 };
/* Of the plans: how likely each is the best, and which are on the front (compare.c). */
void ft__fleet_compare(ft_fleet *f);
typedef struct ft_fleet_bench {
    const ft_context *ft;
    ft_scratch *scratch;
    ft_fleet *fleet;
    int64_t heads, experts, domain, most; /* most: GPUs that are looked at */
    int64_t best;                         /* GPUs of the best so far; 0: none yet */
    double guess;                         /* requests per second and GPU, of the last layout; 0: none yet */
    const char *stage;                    /* of the search, and how much of it is done */
    double done;
    bool verdict_alone; /* a way that misses the objectives is not asked what else it is, nor why it misses them */
} ft_fleet_bench;
/* What else an engine is tried with: tokens of an iteration, sequences at once. */
enum { FT_FLEET_BUDGETS = 5, FT_FLEET_SEQUENCES = 4 };
extern const int64_t ft__fleet_budgets[FT_FLEET_BUDGETS], ft__fleet_sequences[FT_FLEET_SEQUENCES];
ft_status ft__fleet_add(ft_fleet *f, const ft_way *w, ft_error *err);
/* The better way first. */
int ft__fleet_by_gpus(const void *a, const void *b);
int ft__fleet_by_rate(const void *a, const void *b);
/* Tells who watches the search; again before every simulation (trial.c). */
void ft__fleet_tell(ft_fleet_bench *b, const char *stage, double done);
/* As few engines as keep the objectives at a rate, from the numbers of the way on. */
ft_status ft__fleet_fewest(ft_fleet_bench *b, ft_way *way, double rate, ft_error *err);
int64_t ft__fleet_needed(double rate, double each); /* engines */
/* Of these layouts every pair (apart.c). */
ft_status ft__fleet_apart(ft_fleet_bench *b, const ft_engine_layout *layouts, size_t count, ft_error *err);
/* The search that passes nothing over (every.c). */
ft_status ft__fleet_every(ft_fleet_bench *b, const ft_engine_layout *layouts, size_t count, ft_error *err);
/* Layouts of one engine (space.c). The caller frees. */
ft_status ft__fleet_layouts(const ft_fleet_bench *b, ft_engine_layout **out, size_t *count, ft_error *err);
/* The way at a rate (trial.c): whether it keeps the objectives, and what clients see. What does not fit has lost by
 * memory. Offline there is no rate. */
ft_status ft__fleet_try(ft_fleet_bench *b, ft_way *way, double rate, ft_error *err);
/* The same, and why it does not keep them is not asked. */
ft_status ft__fleet_stands(ft_fleet_bench *b, ft_way *way, double rate, ft_error *err);
/* The way at the highest rate that it keeps, from a guess on; found whole where `whole`. */
ft_status ft__fleet_find(ft_fleet_bench *b, ft_way *way, double guess, bool whole, ft_error *err);
#endif
