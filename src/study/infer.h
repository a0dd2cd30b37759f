/* Inference over batches and context lengths: prefill, decode, what the cache holds, offline throughput. */
#ifndef FT_STUDY_INFER_H
#define FT_STUDY_INFER_H
#include "request/infer.h"
#include "study/context.h"
#include "study/generate.h"

typedef struct ft_infer_cell {
    double ms, low_ms, high_ms, tokens_per_s;
    bool fits;
    ft_energy energy; /* of one GPU */
} ft_infer_cell;

typedef struct ft_offline {
    int64_t isl, osl, batch;    /* batch 0: not asked for, or nothing fits */
    double prefill_ms, tpot_ms; /* of the whole batch; one step, halfway through the answers */
    double tokens_per_s, total_tokens_per_s, requests_per_s; /* generated; with the prompts */
    double low_tokens_per_s, high_tokens_per_s;              /* generated */
    double tokens_per_joule;                                 /* generated, of the GPUs alone; 0: not known */
} ft_offline;

/* Lives until the next step with the same scratch; free it with ft__infer_free, whatever ft__infer_of said. */
typedef struct ft_infer {
    bool generates;   /* otherwise forward passes over batches alone */
    bool has_context; /* images have none */
    size_t batch_count, seq_count;
    int64_t batches[FT_INFER_SIDE], seqs[FT_INFER_SIDE];
    ft_infer_cell prefill[FT_INFER_SIDE][FT_INFER_SIDE]; /* [seq][batch]; forward passes too */
    ft_infer_cell decode[FT_INFER_SIDE][FT_INFER_SIDE];
    int64_t sequences[FT_INFER_SIDE];         /* that the cache holds at each length; 0: not even one */
    double weights_bytes, kv_bytes_per_token; /* 0: no cache grows */
    double cache_tokens;                      /* at the longest length */
    int64_t gpus;                             /* that share the model; rates are of all of them together */
    bool one_fits;                            /* one sequence of the first length */
    ft_offline offline;
    ft_generated made;     /* an image of its prompt, where the model is a denoiser that is known to make one */
    ft_step_view title;    /* a step of the first batch and length: what is common to all */
    ft_step_view steps[2]; /* with "advice": prefill and decode of them, or the forward pass */
    size_t step_count;
    ft_arena *kept; /* of the first of two steps */
} ft_infer;

/* One step of a serving engine (src/serving, which stands above this room): prefill of `batch` prompts of `seq` tokens,
 * or one token for `batch` sequences with so many in the cache. Fills the times of a cell. */
typedef ft_status (*ft_engine_step)(const ft_context *ft, ft_scratch *scratch, const json_t *base, const json_t *engine,
                                    bool prefill, int64_t batch, int64_t seq, ft_infer_cell *out, ft_error *err);

/* `step`: who answers where the request names an engine. */
ft_status ft__infer_of(const ft_context *ft, ft_scratch *scratch, const ft_infer_request *r, ft_engine_step step,
                       ft_infer *out, ft_error *err);
void ft__infer_free(ft_infer *r);
#endif
