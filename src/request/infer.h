/* `"task": "infer"`: prefill and decode over batches and lengths. */
#ifndef FT_REQUEST_INFER_H
#define FT_REQUEST_INFER_H
#include "request/idle.h"
#include "request/study.h"

enum { FT_INFER_SIDE = 8 };

/* {"task":"infer","model":"llama-3-8b","gpu":"h100_sxm","batch":[1,16],"seq":[2048],"isl":1024,"osl":256}; every other
 * key is one of a model. Free it with ft__infer_request_free either way. */
typedef struct ft_infer_request {
    json_t *base;                  /* of one step; its task, batch and seq are the study's to set */
    size_t batch_count, seq_count; /* 0: the usual ones */
    int64_t batches[FT_INFER_SIDE], seqs[FT_INFER_SIDE];
    int64_t isl, osl;        /* tokens of a prompt and of its answer; 0: not asked */
    int64_t steps;           /* of denoising; 0: the usual number */
    int guidance;            /* ft_guidance; -1: the usual one */
    bool tiling;             /* the decoder makes an image tile by tile */
    const json_t *engine;    /* a serving engine, whose steps these are; NULL: the framework's own */
    bool advice, techniques; /* the steps of the first batch and length with what to change */
    ft_idle_list idle;
} ft_infer_request;
ft_status ft__infer_request_read(const json_t *object, ft_infer_request *out, ft_error *err);
void ft__infer_request_free(ft_infer_request *r);
#endif
