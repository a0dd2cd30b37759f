/* Moves: single changes of a request that might make its step shorter or smaller. Which ones are worth a forecast
 * follows from the request, the GPU and the kernels of its step; what they are worth is for the forecast to say. */
#ifndef FT_EXPLAIN_MOVES_H
#define FT_EXPLAIN_MOVES_H
#include "explain/change.h"

typedef enum ft_move_kind {
    FT_MOVE_VOCAB,          /* to: rows of the embedding and of the head, padded */
    FT_MOVE_FFN,            /* to: width of the MLP */
    FT_MOVE_HIDDEN,         /* to: width of the model */
    FT_MOVE_BATCH,          /* to: sequences; the step grows or shrinks with them */
    FT_MOVE_MICRO,          /* to: sequences of a micro-batch; the step stays, accumulation follows */
    FT_MOVE_EXECUTION,      /* to: ft_execution */
    FT_MOVE_ATTENTION,      /* to: ft_attention_kind */
    FT_MOVE_OPTIMIZER,      /* to: ft_optimizer */
    FT_MOVE_DTYPE,          /* to: ft_dtype; FT_MOVE_AUTOCAST added where parameters stay fp32 */
    FT_MOVE_RECOMPUTE,      /* to: ft_recompute */
    FT_MOVE_IMAGES,         /* channels last */
    FT_MOVE_KV,             /* to: ft_dtype of the cache */
    FT_MOVE_WEIGHTS,        /* to: bits */
    FT_MOVE_CACHE,          /* to: ft_cache_kind */
    FT_MOVE_ADAPTERS,       /* to: rank */
    FT_MOVE_DEGREES,        /* to: ft_shift */
    FT_MOVE_ZERO,           /* to: stage */
    FT_MOVE_COPIES,         /* to: ZeRO stage on eight GPUs, for who has one */
    FT_MOVE_SEQUENCE,       /* sequence parallel on */
    FT_MOVE_PIECES,         /* tensor ranks exchange beside their products */
    FT_MOVE_GATHER,         /* sharded parameters gathered by the layer, ahead */
    FT_MOVE_DISPATCH,       /* a token travels once to several of its experts */
    FT_MOVE_EXPERT_OVERLAP, /* tokens travel beside another micro-batch's kernels */
    FT_MOVE_WHOLE_EXPERTS,  /* spread over tensor ranks too */
    FT_MOVE_SCHEDULE,       /* to: ft_schedule */
    FT_MOVE_CHUNKS,         /* to: virtual stages */
    FT_MOVE_OVERLAP,        /* gradients exchanged beside the backward pass */
    FT_MOVE_BUCKET,         /* to: MiB */
    FT_MOVE_WIRE,           /* to: bytes of a gradient's element on the wire */
    FT_MOVE_WORKERS,        /* to: loader processes */
    FT_MOVE_PINNED,         /* loader: pinned memory */
    FT_MOVE_PACKED,         /* loader: packed shards instead of files */
    FT_MOVE_GPU,            /* another GPU */
    FT_MOVE_KINDS
} ft_move_kind;

enum { FT_MOVE_AUTOCAST = 256, FT_MOST_MOVES = 64 };

/* GPUs go from one axis of the layout to another; their number and the global batch stay. */
typedef enum ft_shift {
    FT_SHIFT_TP_TO_DP,
    FT_SHIFT_DP_TO_TP,
    FT_SHIFT_PP_TO_DP,
    FT_SHIFT_DP_TO_PP,
    FT_SHIFT_TP_TO_PP,
    FT_SHIFT_PP_TO_TP,
    FT_SHIFT_CP_TO_DP,
    FT_SHIFTS
} ft_shift;

typedef struct ft_move {
    ft_move_kind kind;
    int64_t to;
    const ft_device *device; /* FT_MOVE_GPU */
} ft_move;

/* Moves of the same knob exclude each other. */
int ft__move_knob(const ft_move *m);
/* The same mathematics to the last bits of rounding: nothing to tune again, nothing to validate. */
bool ft__move_exact(const ft_move *m, const ft_change *now);

/* Changes `c`; a padded model is copied into the arena. False: it says nothing new here, or memory is exhausted. */
bool ft__move_apply(const ft_move *m, ft_change *c, ft_arena *arena);

/* What `alone` changes in `now`, merged key by key into `before`, gives `after`: a patch of those keys says all. */
bool ft__change_merges(const ft_change *now, const ft_change *alone, const ft_change *before, const ft_change *after);

/* What is worth trying for speed. `compute_ms`: the step if it never waited for its input. `gpus`: other GPUs to
 * think of. Returns how many of `out` (FT_MOST_MOVES) are set. */
size_t ft__moves_for_speed(const ft_change *now, const ft_graph *g, const ft_step *step, double compute_ms,
                           const ft_device *const *gpus, size_t gpu_count, ft_move *out);
/* One of each technique in both directions, for a table: those that save memory as well as those that save time. */
size_t ft__moves_for_table(const ft_change *now, double compute_ms, ft_move *out);
#endif
