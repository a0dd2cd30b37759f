/* `"task": "sweep"`: a request asked over a range of one of its numbers; and such ranges. */
#ifndef FT_REQUEST_SWEEP_H
#define FT_REQUEST_SWEEP_H
#include "request/study.h"

enum {
    FT_SWEEP_POINTS = 2000,    /* at most, of steps */
    FT_SWEEP_KERNELS = 100000, /* and of kernels */
    FT_RANGE_TEXT = 160        /* characters of a range that are too many */
};
#define FT_RANGE_LARGEST 0x1p53 /* whole numbers beyond it cannot be told apart */

/* n=128:8192:128, seq=512:8192:x2, skew=0:2:0.25. Free it with ft__range_free, whatever ft__range_read said. */
typedef struct ft_range {
    char key[32]; /* with underscores */
    double *x;
    size_t count;
    bool whole; /* every point is a whole number */
} ft_range;
/* Errors begin after the name of what was read: "takes KEY=FROM:TO[:STEP], not ...". */
ft_status ft__range_read(const char *text, size_t most, ft_range *out, ft_error *err);
void ft__range_free(ft_range *range);

/* {"task":"sweep","of":"train","sweep":"batch=1:64:x2","model":"gpt2","gpu":["h100_sxm","l40s"]}; "over" in place of
 * "sweep": {"batch":"1:64:x2"} or {"batch":[1,3,9]}. Free it with ft__sweep_request_free either way. */
typedef struct ft_sweep_request {
    json_t *base; /* of one point, its "task" that of "of" */
    ft_range range;
    const char *section; /* the object in the request that the number stands in, "parallel"; NULL: the request */
    const json_t *gpus;  /* one, or a list of them */
} ft_sweep_request;
ft_status ft__sweep_request_read(const json_t *object, ft_sweep_request *out, ft_error *err);
void ft__sweep_request_free(ft_sweep_request *r);
#endif
