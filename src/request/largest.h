/* `"task": "largest"`: the largest model of a family that trains or serves. */
#ifndef FT_REQUEST_LARGEST_H
#define FT_REQUEST_LARGEST_H
#include "request/idle.h"
#include "request/study.h"

/* {"task":"largest","gpu":"h100_sxm","gpus":4,"family":"gpt","use":"infer"}; every other key is one of a model, but for
 * "model" and "parallel", which are the study's. Free it with ft__largest_request_free either way. */
typedef struct ft_largest_request {
    json_t *base;
    bool gpt, training;
    int64_t gpus;
    double tokens; /* to train on; 0: 20 per parameter */
    ft_idle_list idle;
} ft_largest_request;
ft_status ft__largest_request_read(const json_t *object, ft_largest_request *out, ft_error *err);
void ft__largest_request_free(ft_largest_request *r);
#endif
