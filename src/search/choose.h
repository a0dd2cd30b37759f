/* Which GPUs, and how many of them, a training job should rent: a plan for every kind and number, what it takes in
 * days, dollars, energy and carbon with failures counted, the front of days against dollars, and why others lose. */
#ifndef FT_SEARCH_CHOOSE_H
#define FT_SEARCH_CHOOSE_H
#include "request/choose.h"
#include "search/plan.h"

/* What keeps a choice from being the one. */
typedef enum ft_lost {
    FT_LOST_NOTHING,  /* it is the one */
    FT_LOST_MEMORY,   /* no layout fits */
    FT_LOST_REFUSED,  /* no layout can be forecast: the GPU lacks the format */
    FT_LOST_FAILURES, /* they leave no time: the job never ends */
    FT_LOST_NETWORK,  /* nobody rents so many, joined well enough */
    FT_LOST_UNKNOWN,  /* nobody's price is known */
    FT_LOST_DEADLINE,
    FT_LOST_BUDGET,
    FT_LOST_SPEED,  /* slower, and no cheaper */
    FT_LOST_PRICE,  /* dearer */
    FT_LOST_ENERGY, /* takes more energy */
    FT_LOST_COUNT
} ft_lost;
extern const char *const ft__lost_words[FT_LOST_COUNT];

typedef struct ft_span {
    double at, low, high;
} ft_span;

typedef struct ft_choice {
    char gpu[64];
    int64_t gpus, nodes;
    bool planned; /* a layout fits */
    ft_layout layout;
    double step_ms, mfu;
    ft_energy energy; /* of one GPU */
    ft_goodput goodput;
    ft_priced price;
    double own_usd;      /* of a GPU-hour, as the request says; below 0: it does not */
    double usd_per_hour; /* of the job; 0: not known */
    ft_span days, usd;   /* usd: with power where that is paid apart */
    double in_time;      /* how likely it keeps the deadline; below 0: there is none */
    double gpu_hours, kwh, kg, restarts;
    ft_lost lost;
    char why[160];    /* of one that is refused: the message */
    bool front, knee; /* of days against dollars */
} ft_choice;

typedef struct ft_chosen {
    const ft_choose_request *asked;
    double steps, tokens_per_step;
    ft_status refusal;  /* of the last that was refused */
    bool samples;       /* "tokens" are images, or what else the model takes one by one */
    ft_choice *choices; /* by GPU as they were named, then by number */
    size_t count;
    size_t best;        /* `count`: none */
    ft_text warnings;   /* a line each */
    ft_idle_list idle;  /* keys that no plan has a use for */
    int64_t least_gpus; /* where nothing fits anywhere: the smallest cluster that would; 0: not known */
    char least_gpu[64]; /* of which GPU */
} ft_chosen;

ft_status ft__choose_of(const ft_context *ft, ft_scratch *scratch, const ft_choose_request *r, ft_chosen *out,
                        ft_error *err);
void ft__chosen_free(ft_chosen *c);
/* How likely a figure is at most `limit`: a normal in its logarithm, whose ends lie where the interval's do, to either
 * side by itself. `level`: ft__interval_level of the interval's quantile (chance.c). */
double ft__chance_within(const ft_span *s, double limit, double level);
/* The offer whose price a choice is forecast with; NULL: the request's own price, or none. */
const ft_offer *ft__choice_offer(const ft_choice *c);

/* By which name the GPU is rented: a board that the request holds to fewer watts ("h100_sxm at 500 W") costs what it
 * costs without. `size`: of `out`. */
void ft__rented_as(const ft_context *ft, const char *gpu, const char *asked, char *out, size_t size);
/* Dollars of a GPU-hour that the request says itself, by the GPU's name, by what it was asked for as, or by another of
 * the catalogue's names for it; below 0: it does not (own_price.c). */
double ft__own_price(const ft_context *ft, const ft_choose_request *r, const char *gpu, const char *asked);
/* Prices of GPUs that nobody knows are an error; those of none of the `count` that were tried a line of `warnings`. */
ft_status ft__own_prices_told(const ft_context *ft, const ft_choose_request *r, const char *const *chosen, size_t count,
                              ft_text *warnings, ft_error *err);

/* Prices of these offers that are old by the request's day, or of a later day than it: a line of `warnings` each
 * (price_dates.c). NULL among the offers: none. */
void ft__price_dates_told(const ft_offer *const *offers, size_t count, int64_t today, ft_text *warnings);

/* One of several that trade time for money. `front`: of those that stand nothing is both faster and cheaper. Returns
 * which is the knee; `count` where none stands. */
typedef struct ft_traded {
    double time, cost;
    bool stands, front;
} ft_traded;
size_t ft__front(ft_traded *all, size_t count);
#endif
