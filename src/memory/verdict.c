/* verdict.c: whether a step's memory is there.
 *
 * What a process reserves is not what it needs: PyTorch's allocator gives cached blocks back to the driver before it
 * fails (c10/cuda/CUDACachingAllocator.cpp, release_cached_blocks and a second try), and with expandable segments it
 * holds little beyond its peak. So a step whose reserve is there `fits`; one whose peak alone may be there is `tight`:
 * it runs with retries of the allocator, or with expandable segments; and only what the peak exceeds by more than
 * forecasts of peaks err is `no`. The chance is that of a peak within the room, errors taken as normal in the
 * logarithm. Weights and optimizer states are counted, not forecast: where they alone exceed the room, there is no
 * chance. */
#include "memory/verdict.h"

#include <math.h>

#include "memory/resident_constants.h"

const char *const ft__fit_words[FT_FIT_COUNT] = {[FT_FIT_YES] = "fits", [FT_FIT_TIGHT] = "tight", [FT_FIT_NO] = "no"};
const char *const ft__fit_answers[FT_FIT_COUNT] = {[FT_FIT_YES] = "yes", [FT_FIT_TIGHT] = "tight", [FT_FIT_NO] = "no"};

void ft__judge(ft_memory *m, const ft_workload *work)
{
    const double spread = work->stack ? FT_K_RESIDENT_PEAK_SPREAD_NAMED : FT_K_RESIDENT_PEAK_SPREAD;
    const double room = m->capacity_bytes - m->context_bytes;
    m->chance_fits = 0;
    if (room > 0 && m->weights_bytes + m->optimizer_bytes <= room)
        m->chance_fits = m->peak_bytes > 0 ? 0.5 * erfc(-log(room / m->peak_bytes) / (spread * sqrt(2.0))) : 1;
    m->verdict = m->reserved_bytes <= room                      ? FT_FIT_YES
                 : m->chance_fits >= FT_K_RESIDENT_LEAST_CHANCE ? FT_FIT_TIGHT
                                                                : FT_FIT_NO;
    m->fits = m->verdict != FT_FIT_NO;
}
