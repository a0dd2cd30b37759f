/* Moves: single changes of a request that might make its step shorter or smaller. Which ones are worth a forecast
 * follows from the request, the GPU and the kernels of its step; what they are worth is for the forecast to say. */
#ifndef FT_EXPLAIN_MOVES_H
#define FT_EXPLAIN_MOVES_H
#include "explain/change.h"
#include "explain/move_list.h"

typedef enum ft_move_kind {
#define X(id, knob, numbers, why) FT_MOVE_##id,
    FT_MOVE_LIST(X)
#undef X
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
/* Why it helps; empty where that hangs on what it changes. */
const char *ft__move_why(ft_move_kind kind);

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
