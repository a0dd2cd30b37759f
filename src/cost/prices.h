/* What clouds ask for GPUs (data/prices): offers with their date, and which of them a job can take. */
#ifndef FT_COST_PRICES_H
#define FT_COST_PRICES_H
#include "base/error.h"

typedef enum ft_pricing { FT_ON_DEMAND, FT_SPOT, FT_RESERVED, FT_PRICING_COUNT } ft_pricing;
/* What joins several instances. GPUDirect-TCPX is no RDMA, and carries training all the same. */
typedef enum ft_net { FT_NET_ETHERNET, FT_NET_TCPX, FT_NET_RDMA } ft_net;
extern const char *const ft__pricing_words[FT_PRICING_COUNT];

typedef struct ft_offer {
    const char *gpu, *provider, *instance, *region, *date;
    int64_t day;         /* of the date, since 1970 */
    int64_t gpus;        /* in one instance */
    double usd_per_hour; /* of one instance */
    ft_pricing pricing;
    ft_net network;
    bool hyperscaler;
} ft_offer;

extern const size_t ft__offer_count;
extern const ft_offer ft__offers[]; /* by GPU, the cheapest GPU-hour first */

/* What a job can take. */
typedef struct ft_price_search {
    const char *gpu;
    int64_t gpus;                 /* of the job */
    int64_t node_gpus;            /* that a node of its layout has */
    int64_t joined;               /* GPUs that exchange anything: an engine of several; 0: all of the job */
    const char *const *providers; /* NULL: any */
    size_t provider_count;
    ft_pricing pricing;
} ft_price_search;

typedef struct ft_priced {
    const ft_offer *cheapest, *median, *hyperscaler; /* of those that can be taken, by the hour of the whole job; NULL:
                                                        none */
    size_t known;                                    /* offers of this GPU by these providers, taken or not */
    bool network_lacks; /* some were left out because their instances are not joined well enough */
} ft_priced;
ft_priced ft__price_of(const ft_price_search *s);

/* Dollars per hour of a job on so many GPUs: whole instances. `joined` of them stay in one instance, where one holds so
 * many; 0: all are alike. */
double ft__offer_per_hour(const ft_offer *o, int64_t gpus, int64_t joined);
/* True where the offer is older than a price should be on that day. */
bool ft__offer_old(const ft_offer *o, int64_t today);

/* "2026-11-16" as days since 1970; false where it is no date. And today, by the clock. */
bool ft__day_of(const char *date, int64_t *out);
int64_t ft__today(void);
/* FT_E_NAME with the nearest name where nobody is called so. */
ft_status ft__provider_check(const char *name, ft_error *err);
#endif
