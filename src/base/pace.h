/* How many items to answer before their answers are written: few where each takes long, so that the first come out soon
 * and an interrupted run keeps what it had; many where they are quick, so that nobody waits for others. */
#ifndef FT_BASE_PACE_H
#define FT_BASE_PACE_H
#include <stddef.h>

typedef struct ft_pace {
    size_t round; /* items until the next answers are written */
    size_t run;   /* neighbours that one thread takes at least: not worth another thread below */
} ft_pace;

#define FT_PACE_ROUND_S 0.25 /* what a round should take */
#define FT_PACE_RUN_S 1e-4   /* what starting another thread is worth */
enum { FT_PACE_FIRST = 8, FT_PACE_RUN = 16, FT_PACE_MOST = 1 << 24 };

/* Before anything is known, a few and each on its own: should they be plans, the first are there in seconds. */
static inline ft_pace ft__pace_begin(void) { return (ft_pace){FT_PACE_FIRST, 1}; }

/* Learns from a round of so many items; `least`: as many as there is room for beside each other. */
static inline ft_pace ft__pace_next(size_t items, double seconds, size_t least)
{
    double each = items && seconds > 0 ? seconds / (double)items : FT_PACE_ROUND_S / FT_PACE_MOST;
    double round = FT_PACE_ROUND_S / each, run = FT_PACE_RUN_S / each;
    ft_pace next = {least, 1};
    if (round > (double)least) next.round = round < FT_PACE_MOST ? (size_t)round : FT_PACE_MOST;
    if (run > 1) next.run = run < FT_PACE_RUN ? (size_t)run : FT_PACE_RUN;
    return next;
}
#endif
