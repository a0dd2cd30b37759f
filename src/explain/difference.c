/* difference.c: matching kernels of two steps. */
#include "explain/difference.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "explain/change_constants.h"
#include "kernel/host.h"
#include "timeline/interval_constants.h"
#include "timeline/stream.h"

/* How much hosts differ, as in the step's interval. */
static double in_host(void) { return ft__host_usual()->interval.share; }

static uint64_t key_of(const ft_node *n)
{
    uint64_t h = (uint64_t)n->op.kind | (uint64_t)n->phase << 8 | (uint64_t)n->op.pass << 16;
    h = ft__mix_text(h, n->op.name ? n->op.name : "", SIZE_MAX);
    return ft__mix_text(h, n->name ? n->name : "", SIZE_MAX);
}

/* Equal operators have equal work; the clock that power leaves them may differ. */
static uint64_t work_of(const ft_node *n, const ft_timed *k)
{
    const ft_forecast *f = &k->forecast;
    uint64_t h = ft__mix_double(ft__mix_double((uint64_t)n->op.dtype, f->flops), f->bytes);
    return ft__mix_double(h, f->roofline_ms) * (uint64_t)(k->times + 0.5);
}

static int by_key(const void *a, const void *b)
{
    const ft_tally_entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->kernel - y->kernel; /* the first one lends its family, and sums keep their order */
}

/* Walks the streams again with another host. Among ranks the walk is not one of streams alone: there a slower host adds
 * what it lacks behind the GPU. */
static void doubt_host(const ft_graph *g, const ft_step *step, ft_tally *out)
{
    const double share[] = {[FT_HOST_OF_RUN] = FT_K_CHANGE_RUN, [FT_HOST_OF_BOTH] = in_host()};
    for (size_t i = 0; i < sizeof share / sizeof *share; i++) {
        double more = 1 + share[i];
        if (step->ranks > 1 || !step->pace) {
            out->late[i] = fmax(more * step->host_ms - step->step_ms, 0) + share[i] * out->idle_ms;
            out->early[i] = share[i] / more * out->idle_ms;
            continue;
        }
        ft_pace pace = *step->pace;
        double as_asked = ft__stream_walk(g, &pace).total;
        pace.host_scale = more;
        out->late[i] = fmax(ft__stream_walk(g, &pace).total - as_asked, 0);
        pace.host_scale = 1 / more;
        out->early[i] = fmax(as_asked - ft__stream_walk(g, &pace).total, 0);
    }
}

ft_status ft__tally(const ft_graph *g, const ft_step *step, bool fused, double input_ms, ft_arena *arena, ft_tally *out,
                    ft_error *err)
{
    memset(out, 0, sizeof *out);
    ft_tally_entry *e = ft__arena_array(arena, (size_t)step->kernel_count + 1, sizeof *e);
    if (!e) return ft__fail(err, FT_E_MEMORY, "out of memory for the comparison of two steps");
    size_t count = (size_t)step->kernel_count, kept = 0;
    for (size_t i = 0; i < count; i++) {
        const ft_timed *k = &step->kernels[i];
        const ft_forecast *f = &k->forecast;
        e[i] = (ft_tally_entry){.key = key_of(&g->nodes[k->node]),
                                .work = work_of(&g->nodes[k->node], k),
                                .family = f->family,
                                .ms = f->ms * k->times,
                                .below = (f->ms - f->low_ms) * k->times,
                                .above = (f->high_ms - f->ms) * k->times,
                                .kernel = (int32_t)i};
    }
    qsort(e, count, sizeof *e, by_key);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && e[kept - 1].key == e[i].key) {
            e[kept - 1].work += e[i].work;
            e[kept - 1].ms += e[i].ms;
            e[kept - 1].below += e[i].below;
            e[kept - 1].above += e[i].above;
        } else {
            e[kept++] = e[i];
        }
    }
    *out = (ft_tally){.entries = e,
                      .count = kept,
                      .step_ms = step->step_ms,
                      .host_ms = step->host_ms,
                      .busy_ms = step->busy_ms,
                      .idle_ms = fmax(step->idle_ms - input_ms, 0),
                      .input_ms = input_ms,
                      .exposed_ms = step->comm_exposed_ms,
                      .bubble_ms = step->bubble_ms,
                      .fused = fused};
    doubt_host(g, step, out);
    return FT_OK;
}

enum { MOST_FAMILIES = 40 };

typedef struct families {
    const char *name[MOST_FAMILIES];
    double below[MOST_FAMILIES], above[MOST_FAMILIES]; /* of a - b */
    int count;
} families;

/* `share`: of the entry's time that the other step does not have too. */
static void doubt(families *f, const ft_tally_entry *e, double share, bool first)
{
    int i = 0;
    while (i < f->count && f->name[i] != e->family) i++;
    if (i == MOST_FAMILIES) i--;
    if (i == f->count) {
        f->name[i] = e->family;
        f->below[i] = f->above[i] = 0;
        f->count++;
    }
    /* The minuend lower or the subtrahend higher makes the difference smaller. */
    f->below[i] += share * (first ? e->below : e->above);
    f->above[i] += share * (first ? e->above : e->below);
}

/* Squares. A run of its own with each step, and one host under both, slow or fast. */
static void add_hosts(const ft_tally *a, const ft_tally *b, double scale, double level, double *low, double *high)
{
    const int own = FT_HOST_OF_RUN, both = FT_HOST_OF_BOTH;
    *low += pow(level * a->early[own], 2) + pow(level * scale * b->late[own], 2);
    *high += pow(level * a->late[own], 2) + pow(level * scale * b->early[own], 2);
    double slow = a->late[both] - scale * b->late[both], fast = scale * b->early[both] - a->early[both];
    *high += pow(level * fmax(fmax(slow, fast), 0), 2);
    *low += pow(level * fmin(fmin(slow, fast), 0), 2);
}

void ft__difference(const ft_tally *a, const ft_tally *b, double scale, bool apart, double quantile, double *below,
                    double *above)
{
    families f = {.count = 0};
    double only_b = 0;
    for (size_t i = 0, k = 0; i < a->count || k < b->count;) {
        const ft_tally_entry *x = i < a->count ? &a->entries[i] : NULL, *y = k < b->count ? &b->entries[k] : NULL;
        if (x && y && x->key == y->key && !apart) {
            double left = x->ms - scale * y->ms, both = fmin(x->ms, scale * y->ms);
            const ft_tally_entry *more = left > 0 ? x : y;
            if (x->work != y->work) left += left > 0 ? FT_K_CHANGE_OWN * both : -FT_K_CHANGE_OWN * both;
            if (more->ms > 0) doubt(&f, more, fabs(left) / more->ms, left > 0);
            if (left < 0) only_b -= left;
            i++, k++;
        } else if (x && (!y || x->key <= y->key)) {
            doubt(&f, x, 1, true);
            i++;
        } else if (y) {
            doubt(&f, y, scale, false);
            only_b += scale * y->ms;
            k++;
        }
    }
    double low = 0, high = 0, level = ft__interval_level(quantile);
    for (int i = 0; i < f.count; i++) {
        low += f.below[i] * f.below[i];
        high += f.above[i] * f.above[i];
    }
    const double beside[] = {FT_K_CHANGE_KERNELS * (a->busy_ms - scale * b->busy_ms),
                             FT_K_CHANGE_STEPS * fmin(a->step_ms, scale * b->step_ms),
                             b->fused && !a->fused ? FT_K_INTERVAL_IN_FUSION * only_b : 0,
                             FT_K_CHANGE_EXCHANGE * (a->exposed_ms - scale * b->exposed_ms),
                             FT_K_CHANGE_KERNELS * (a->bubble_ms - scale * b->bubble_ms),
                             in_host() / 4 * (a->input_ms - scale * b->input_ms)};
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        double wide = beside[i] * level;
        low += wide * wide;
        high += wide * wide;
    }
    add_hosts(a, b, scale, level, &low, &high);
    *below = sqrt(low);
    *above = sqrt(high);
}
