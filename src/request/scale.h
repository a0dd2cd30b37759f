/* `"task": "scale"`: scaling rooflines and curves of a training step. */
#ifndef FT_REQUEST_SCALE_H
#define FT_REQUEST_SCALE_H
#include "request/idle.h"
#include "request/study.h"

enum { FT_SCALE_MOST_GPUS = 1000000 };

/* {"task":"scale","model":"llama-3-70b","gpu":"h100_sxm","gpus":512,"parallel":{"tp":8}}; every other key is one of a
 * training step. Free it with ft__scale_request_free either way. */
typedef struct ft_scale_request {
    json_t *base;
    const json_t *parallel; /* as it was given, of the base; NULL: nothing was */
    int64_t tp, pp, vpp, cp, ep;
    int zero;
    int64_t batch;       /* of one micro-batch */
    int64_t global;      /* sequences of a step; 0: left out */
    int64_t gpus, nodes; /* at the end of the curves; 0: left out */
    ft_idle_list idle;
} ft_scale_request;
ft_status ft__scale_request_read(const json_t *object, ft_scale_request *out, ft_error *err);
void ft__scale_request_free(ft_scale_request *r);
#endif
