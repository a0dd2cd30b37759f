/* apart.c: engines that only prefill and engines that only decode. Each kind is tried first beside more of the other
 * than it needs, then so many of both as the rate takes. */
#include <math.h>

#include "fleet/fleet.h"
#include "fleet/fleet_constants.h"

static const double PART = 0.5; /* of a search: what went before; of the rest, each kind by itself */

int64_t ft__fleet_needed(double rate, double each) { return each > 0 ? (int64_t)fmax(1, ceil(rate / each)) : 1; }

/* Requests per second that one engine of a kind keeps up with, beside more of the other kind than it needs: of its own
 * layout, or where these miss the objectives of the first that do not. */
static ft_status alone(ft_fleet_bench *b, const ft_engine_layout *layouts, size_t count, size_t at, bool prefills,
                       double *out, ft_error *err)
{
    const ft_engine_layout *l = &layouts[at];
    const ft_fleet_lost own = prefills ? FT_FLEET_TTFT : FT_FLEET_TPOT; /* what others do not help with */
    for (size_t i = 0; i <= count; i++) {
        const ft_engine_layout *other = i ? &layouts[i - 1] : l;
        ft_way w = {.layout = prefills ? *other : *l, .prefill = prefills ? *l : *other};
        w.replicas = prefills ? (int64_t)FT_K_FLEET_PLENTY : 1;
        w.prefill_workers = prefills ? 1 : (int64_t)FT_K_FLEET_PLENTY;
        if (i == at + 1) continue;
        FT_TRY(ft__fleet_find(b, &w, b->guess * (double)ft__engine_gpus(l), false, err));
        *out = w.lost == FT_FLEET_STANDS ? w.rate : 0;
        if (*out > 0 || w.lost == own || w.lost == FT_FLEET_MEMORY) return FT_OK;
    }
    return FT_OK;
}

/* So many GPUs: the numbers of both kinds that carry most. */
static void share_out(const ft_fleet_bench *b, ft_way *w, double prefills, double decodes)
{
    int64_t p = ft__engine_gpus(&w->prefill), d = ft__engine_gpus(&w->layout);
    double best = 0;
    for (int64_t n = 1; n * p + d <= b->most; n++) {
        int64_t left = (b->most - n * p) / d;
        double carries = fmin((double)n * prefills, (double)left * decodes);
        if (carries <= best) continue;
        best = carries;
        w->prefill_workers = n;
        w->replicas = left;
    }
}

ft_status ft__fleet_apart(ft_fleet_bench *b, const ft_engine_layout *layouts, size_t count, ft_error *err)
{
    enum { MOST = 16 };
    double prefills[MOST] = {0}, decodes[MOST] = {0};
    ft_fleet *f = b->fleet;
    const double after = PART + PART * PART;
    if (count > MOST) count = MOST;
    for (size_t i = 0; i < count; i++) {
        ft__fleet_tell(b, "engines apart", PART + PART * PART * (double)i / (double)count);
        FT_TRY(alone(b, layouts, count, i, true, &prefills[i], err));
        FT_TRY(alone(b, layouts, count, i, false, &decodes[i], err));
    }
    for (size_t p = 0; p < count; p++)
        for (size_t d = 0; d < count; d++) {
            ft_way w = {.layout = layouts[d], .prefill = layouts[p], .alone = decodes[d]};
            if (!(prefills[p] > 0 && decodes[d] > 0)) continue;
            ft__fleet_tell(b, "engines apart", after + (1 - after) * (double)(p * count + d) / (double)(count * count));
            w.replicas = ft__fleet_needed(f->rate, decodes[d]);
            w.prefill_workers = ft__fleet_needed(f->rate, prefills[p]);
            if (f->goal == FT_FLEET_RATE) {
                w.replicas = 0;
                share_out(b, &w, prefills[p], decodes[d]);
                if (w.replicas == 0) continue;
                FT_TRY(ft__fleet_find(
                    b, &w, fmin((double)w.prefill_workers * prefills[p], (double)w.replicas * decodes[d]), true, err));
            } else {
                FT_TRY(ft__fleet_fewest(b, &w, f->rate, err));
            }
            FT_TRY(ft__fleet_add(f, &w, err));
        }
    return FT_OK;
}
