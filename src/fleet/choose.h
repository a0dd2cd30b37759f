/* Which GPUs requests should be served on: a plan on every kind, what it costs by the hour and by a million tokens of
 * answers; of an inference job, days and dollars on every kind and number. */
#ifndef FT_FLEET_CHOOSE_H
#define FT_FLEET_CHOOSE_H
#include "fleet/fleet.h"
#include "request/choose.h"

/* A plan with fewer GPUs than the choice, which costs more or which nobody rents. */
typedef struct ft_fleet_fewer {
    ft_way way; /* gpus 0: there is none */
    int64_t joined;
    const ft_offer *offer; /* NULL: nobody's */
    double usd_per_hour;   /* 0: not known */
    bool network;          /* it exchanges something between instances */
} ft_fleet_fewer;

typedef struct ft_fleet_choice {
    char gpu[64];
    int64_t limit; /* GPUs that there were; 0: as many as it takes */
    bool planned;  /* some way keeps the objectives */
    ft_way way;
    ft_fleet_fewer fewer;
    ft_priced price;
    int64_t joined;                                  /* GPUs that exchange anything */
    double own_usd;                                  /* of a GPU-hour, as the request says; below 0: it does not */
    double usd_per_hour, usd_per_million, days, usd; /* days, usd: of a job of so many requests */
    double kwh_per_million, kg_per_million;          /* of tokens of answers, with node and building; 0: not known */
    double kwh, kg;                                  /* of the job */
    const char *verdict;                             /* "chosen", or what it loses by */
    char why[160];                                   /* of one that is refused: the message */
    bool front;                                      /* nothing is both faster and cheaper */
    bool knee;                                       /* the corner of those */
} ft_fleet_choice;

typedef struct ft_fleet_chosen {
    const ft_choose_request *asked;
    ft_fleet_goal goal;
    double rate;
    ft_fleet_choice *choices;
    size_t count, best; /* best == count: none */
    ft_status refusal;  /* of the last that was refused */
    int64_t least_gpus; /* nothing keeps to the GPUs there are */
    char least_gpu[64];
    ft_text warnings;
    ft_idle_list idle;           /* keys that no plan has a use for */
    char beyond[FT_BEYOND_ROOM]; /* requests are longer than the model has positions; or "" */
} ft_fleet_chosen;

ft_status ft__fleet_choose(const ft_context *ft, ft_scratch *scratch, const ft_choose_request *r, ft_fleet_chosen *out,
                           ft_error *err);
void ft__fleet_chosen_free(ft_fleet_chosen *c);
#endif
