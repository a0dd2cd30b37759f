/* How sure a difference between two steps is.
 *
 * Two forecasts of almost the same step err almost alike: kernels that both run cancel, and only what differs is in
 * doubt; kernels of the same place in the model but of other sizes cancel in part. Errors of one family of kernels move
 * together, families do not know of each other, as in the step's own interval. */
#ifndef FT_EXPLAIN_DIFFERENCE_H
#define FT_EXPLAIN_DIFFERENCE_H
#include "timeline/step.h"

/* How far a host may be off: both steps run on the same one, yet no two runs on it go equally fast. */
typedef enum ft_host_doubt { FT_HOST_OF_RUN, FT_HOST_OF_BOTH } ft_host_doubt;

/* The kernels of one step added up by their place. */
typedef struct ft_tally_entry {
    uint64_t key;  /* module, operator and phase */
    uint64_t work; /* what is done there, as a sum over launches */
    const char *family;
    double ms, below, above;
    int32_t kernel; /* the first of them in the step */
} ft_tally_entry;

typedef struct ft_tally {
    ft_tally_entry *entries; /* ascending keys */
    size_t count;
    double step_ms, host_ms;
    double busy_ms, idle_ms, exposed_ms, bubble_ms, input_ms; /* idle: without the wait for samples */
    double late[2], early[2]; /* what a slower or faster host adds to the step or takes off it, by ft_host_doubt */
    bool fused;
} ft_tally;

/* In the arena. `fused`: a compiler's kernels, which are less certain; `input_ms`: the step waits so long for
 * samples. */
ft_status ft__tally(const ft_graph *g, const ft_step *step, bool fused, double input_ms, ft_arena *arena, ft_tally *out,
                    ft_error *err);

/* Half-widths of (a - scale * b). `apart`: on different GPUs, where nothing cancels; `quantile`: the share of cases
 * that they should cover, at which the kernels' own intervals were taken. */
void ft__difference(const ft_tally *a, const ft_tally *b, double scale, bool apart, double quantile, double *below,
                    double *above);
#endif
