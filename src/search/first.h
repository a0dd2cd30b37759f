/* `train` with "tokens" and "gpus" and no degrees: which layout is meant is the best one. */
#ifndef FT_SEARCH_FIRST_H
#define FT_SEARCH_FIRST_H
#include "search/plan.h"

typedef struct ft_planned {
    bool tried;      /* the request left its layout open */
    json_t *request; /* the best layout's; NULL: it was not tried, or nothing fits. Released by ft__planned_free */
    const ft_framework *framework;
    size_t candidates, forecasts;
    int64_t least_gpus; /* nothing fits: the fewest GPUs that would do; 0: not known */
    char shown[64];     /* nothing fits: what is forecast instead, the request as it stands; "" otherwise */
} ft_planned;

/* Plans where the request is one to be planned; free it with ft__planned_free either way. */
ft_status ft__plan_first(const ft_context *ft, ft_scratch *scratch, const json_t *document, ft_planned *out,
                         ft_error *err);
void ft__planned_free(ft_planned *p);
#endif
