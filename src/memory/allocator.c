/* allocator.c: rounding, packing, caching. */
#include "memory/allocator.h"

#include <math.h>

#include "memory/resident_constants.h"

#define MIB 0x1p20
static const double GRAIN = 512, SMALL = MIB, SMALL_SEGMENT = 2 * MIB, LARGE = 10 * MIB, LARGE_SEGMENT = 20 * MIB,
                    SEGMENT_GRAIN = 2 * MIB;

static double round_up(double bytes, double grain) { return ceil(bytes / grain) * grain; }

double ft__allocated(double bytes)
{
    if (bytes <= 0) return 0;
    const double grains = round_up(bytes, GRAIN);
    if (grains < LARGE) return grains;
    const double segment = round_up(grains, SEGMENT_GRAIN);
    return segment - grains <= SMALL ? segment : grains;
}

/* Cuts pieces of `bytes` from what is left of a segment, opening a new one where none fits; the last one that does
 * keeps a rest of up to `least`, which is less than a piece. Bytes are whole grains: counting them is exact. */
static double cut(ft_packer *p, double *left, double bytes, int64_t copies, double segment, double least)
{
    double takes = 0;
    while (copies > 0) {
        if (*left < bytes) {
            p->reserved += segment;
            *left = segment;
        }
        const double fit = fmin(floor(*left / bytes), (double)copies);
        takes += fit * bytes;
        *left -= fit * bytes;
        copies -= (int64_t)fit;
        if (*left > least) continue;
        takes += *left;
        *left = 0;
    }
    return takes;
}

double ft__pack(ft_packer *p, double bytes, int64_t copies)
{
    if (bytes <= 0 || copies < 1) return 0;
    double takes = round_up(bytes, GRAIN);
    if (takes <= SMALL) {
        takes = cut(p, &p->small, takes, copies, SMALL_SEGMENT, GRAIN - 1);
    } else if (takes < LARGE) {
        takes = cut(p, &p->large, takes, copies, LARGE_SEGMENT, SMALL);
    } else {
        p->reserved += round_up(takes, SEGMENT_GRAIN) * (double)copies;
        takes = ft__allocated(bytes) * (double)copies;
    }
    p->allocated += takes;
    return takes;
}

/* -- the cache --------------------------------------------------------------------------------- */

void ft__pool_init(ft_pool *p)
{
    *p = (ft_pool){.count = 2};
    p->size[0] = SMALL;
    p->size[1] = LARGE;
}

int ft__pool_class(ft_pool *p, double bytes)
{
    if (bytes <= SMALL) return 0;
    if (bytes < LARGE) return 1;
    int nearest = 2;
    for (int i = 2; i < p->count; i++) {
        if (p->size[i] == bytes) return i;
        if (fabs(p->size[i] - bytes) < fabs(p->size[nearest] - bytes)) nearest = i;
    }
    if (p->count == FT_POOL_CLASSES) return nearest;
    p->size[p->count] = bytes;
    return p->count++;
}

double ft__pool_most(const ft_pool *p)
{
    double sum = 0;
    for (int i = 0; i < p->count; i++) sum += p->most[i];
    return sum;
}

/* How much of the difference between the two high-water marks is really held: large blocks that training frees are cut
 * up again, a forward pass ends before they would be. A cache that grows by a row finds no old block large enough: over
 * some steps more than the cache is left behind. */
double ft__reserved(bool training, double kept, double peak, double most, double copied)
{
    const double share = training ? FT_K_RESIDENT_HELD_TRAINING : FT_K_RESIDENT_HELD_INFERENCE;
    const double held = share * fmax(most - peak, 0);
    return kept + round_up(peak + held + FT_K_RESIDENT_LEFT_BEHIND * copied, SEGMENT_GRAIN);
}
