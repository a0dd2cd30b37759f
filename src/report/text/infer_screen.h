/* Inference over batches and context lengths, as text and as JSON. */
#ifndef FT_REPORT_TEXT_INFER_SCREEN_H
#define FT_REPORT_TEXT_INFER_SCREEN_H
#include "study/step_view.h"
#include "report/text/style.h"

enum { FT_INFER_SIDE = 8 };

typedef struct ft_infer_cell {
    double ms, low_ms, high_ms, tokens_per_s;
    bool fits;
} ft_infer_cell;

typedef struct ft_offline {
    int64_t isl, osl, batch;     /* batch 0: not asked for, or nothing fits */
    double prefill_ms, tpot_ms;  /* of the whole batch; one step, halfway through the answers */
    double tokens_per_s, total_tokens_per_s, requests_per_s; /* generated; with the prompts */
} ft_offline;

typedef struct ft_infer {
    bool generates;              /* otherwise forward passes over batches alone */
    bool has_context;            /* images have none */
    size_t batch_count, seq_count;
    int64_t batches[FT_INFER_SIDE], seqs[FT_INFER_SIDE];
    ft_infer_cell prefill[FT_INFER_SIDE][FT_INFER_SIDE]; /* [seq][batch]; forward passes too */
    ft_infer_cell decode[FT_INFER_SIDE][FT_INFER_SIDE];
    int64_t sequences[FT_INFER_SIDE]; /* that the cache holds at each length; 0: not even one */
    double weights_bytes, kv_bytes_per_token; /* 0: no cache grows */
    double cache_tokens;         /* at the longest length */
    int64_t gpus;                /* that share the model; rates are of all of them together */
    ft_offline offline;
} ft_infer;

/* One cell's step with what to change about it: the step asked for with advice. `how`: NULL for a few lines, "all", or
 * "techniques". */
bool ft__screen_infer_step(ft_text *out, const ft_style *style, const ft_step_view *v, const char *how);
/* "8.03 B parameters, bf16, cuda_graph, flash attention, paged cache". */
void ft__add_infer_words(ft_text *out, const ft_step_view *v, const ft_infer *r);
bool ft__screen_infer(ft_text *out, const ft_style *style, const ft_step_view *title, const ft_infer *r);
/* `steps`: answers of single steps, comma between them, for "steps"; NULL: none. */
void ft__answer_infer(ft_text *out, const ft_step_view *title, const ft_infer *r, const ft_text *steps);
#endif
