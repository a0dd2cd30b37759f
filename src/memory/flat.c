#include "memory/flat.h"

#include <math.h>

#include "layout/layout.h"
#include "model/stack.h"
#include "timeline/states.h"

enum { WIDE = 4, WIDEST = 8 }; /* bytes of an fp32 element; of one in fp64 */
enum { MOST_PARTS = 256 };     /* of more of them where each lies tells nothing more */

static int32_t take(ft_cache *c, double bytes)
{
    ft_cache_hint hint = {0};
    return ft__cache_take(c, ft__cache_grains(bytes), &hint);
}

static void give(ft_cache *c, int32_t block, double bytes) { ft__cache_give(c, block, ft__cache_grains(bytes)); }

static void keep(ft_cache *c, double bytes) { ft__cache_keep(c, ft__cache_grains(bytes), 1); }

bool ft__flat_of(const ft_workload *work, const ft_memory_share *share, const ft_kept *k, ft_flat *out)
{
    if (work->task != FT_TRAIN || !(share->flat_bucket_bytes > 0) || !k->kept_gradients || !k->widest) return false;
    if (ft__updates_on_host(work) || !(k->main_elements > 0)) return false;
    double parts[FT_STATE_PARTS] = {0};
    const int count = ft__optimizer_states(work, k->widest, parts);
    *out = (ft_flat){.third = share->flat_third,
                     .elements = k->main_elements,
                     .at_a_time = k->main_elements,
                     .narrow = k->widest->element_bytes,
                     .bucket = share->flat_bucket_bytes,
                     .largest = ft__tensor_numel(k->widest) * share->optimizer[ft__is_expert(k->widest)],
                     .buckets = -1,
                     .joined = -1};
    if (share->update_elements > 0 && share->update_elements < out->at_a_time) out->at_a_time = share->update_elements;
    if (out->elements > out->at_a_time * MOST_PARTS) out->at_a_time = out->elements / MOST_PARTS;
    out->parts = (int)ceil(out->elements / out->at_a_time);
    for (int p = 1; p < count && out->moment_count < 8; p++) /* the first is the copy */
        out->moments[out->moment_count++] = parts[p] / ft__tensor_numel(k->widest);
    return true;
}

/* Of the elements those of one part. */
static double part_of(const ft_flat *f, int part)
{
    const double left = f->elements - part * f->at_a_time;
    return left < f->at_a_time ? left : f->at_a_time;
}

void ft__flat_begin(const ft_flat *f, ft_cache *c)
{
    for (int i = 0; i < f->parts; i++) {
        const double part = part_of(f, i), first = part * (f->third ? WIDE : f->narrow);
        const int32_t block = take(c, first);
        keep(c, part * WIDE);
        give(c, block, first);
    }
    give(c, take(c, f->at_a_time * WIDE), f->at_a_time * WIDE);
    if (!f->third) return;
    keep(c, f->bucket);
    keep(c, f->elements * f->narrow);
}

double ft__flat_apart(const ft_flat *f)
{
    const double all = f->elements * f->narrow;
    return !f->third ? 0 : all < f->bucket ? all : f->bucket;
}

void ft__flat_backward(ft_flat *f, ft_cache *c)
{
    if (f->third || f->buckets != -1) return;
    f->buckets = take(c, f->bucket);
    f->joined = take(c, f->elements * f->narrow);
}

void ft__flat_update(ft_flat *f, ft_cache *c)
{
    give(c, f->buckets, f->bucket);
    give(c, take(c, f->largest * WIDEST), f->largest * WIDEST); /* norms of gradients are taken in fp64 */
    for (int i = 0; i < f->parts; i++) {
        const double part = part_of(f, i);
        const int32_t narrow = take(c, part * f->narrow), wide = take(c, part * WIDE);
        give(c, narrow, part * f->narrow);
        if (!f->third) give(c, f->joined, f->elements * f->narrow);
        for (int m = 0; m < f->moment_count && !f->stepped; m++) keep(c, part * f->moments[m]);
        give(c, wide, part * WIDE);
    }
    f->buckets = f->joined = -1;
    f->stepped = true;
}
