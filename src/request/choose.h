/* `"task": "choose"`: which GPUs, and how many, a training job should rent. */
#ifndef FT_REQUEST_CHOOSE_H
#define FT_REQUEST_CHOOSE_H
#include "cost/goodput.h"
#include "cost/prices.h"
#include "request/plan.h"

enum { FT_CHOOSE_GPUS = 24, FT_CHOOSE_COUNTS = 24, FT_CHOOSE_PROVIDERS = 16 };

typedef enum ft_choose_goal {
    FT_CHOOSE_COST,
    FT_CHOOSE_TIME,
    FT_CHOOSE_ENERGY,
    FT_CHOOSE_CARBON,
    FT_CHOOSE_KNEE,
    FT_CHOOSE_GOALS
} ft_choose_goal;

/* {"task":"choose","model":"llama-3-8b","tokens":1e12,"gpus":"8:512","gpu":["h100_sxm"],"deadline":"30d"}; every other
 * key is one of a plan. Free it with ft__choose_request_free either way. */
typedef struct ft_choose_request {
    json_t *typed[2];                /* what a command line says as text: prices, failures */
    json_t *base;                    /* a plan without GPUs */
    const char *gpu[FT_CHOOSE_GPUS]; /* none: those usual */
    size_t gpu_count;
    int64_t counts[FT_CHOOSE_COUNTS];
    size_t count_count;
    double tokens;
    double requests;                  /* of an inference job; 0: they come at a rate */
    double deadline_days, budget_usd; /* 0: none */
    const char *provider[FT_CHOOSE_PROVIDERS];
    size_t provider_count;
    struct {
        const char *gpu;
        double usd; /* of a GPU-hour */
    } price[FT_CHOOSE_GPUS];
    size_t price_count;
    ft_pricing pricing;
    ft_failures failures;
    double pue, kwh_price, kg_per_kwh; /* kwh_price 0: power is in the rent */
    ft_choose_goal goal;
    int64_t today; /* days since 1970 */
    /* Told after every GPU and number of them how much of the whole is done, and what comes next; NULL: nobody. */
    void (*progress)(void *watcher, const char *next, double done);
    void *watcher;
} ft_choose_request;
ft_status ft__choose_request_read(const json_t *object, ft_choose_request *out, ft_error *err);
/* `"task": "choose_serve"`: which GPUs requests should be served on; the base is a plan for serving without GPUs. */
ft_status ft__choose_serve_request_read(const json_t *object, ft_choose_request *out, ft_error *err);
void ft__choose_request_free(ft_choose_request *r);
/* Sequences of a step where nobody says: about as many tokens as large runs take, or runs of adapters, as many that so
 * many GPUs divide them. `seq` 0: not said. */
int64_t ft__usual_global_batch(int64_t seq, int64_t gpus, bool adapters);
#endif
