/* chakra_data.c: parameters and gradients among data ranks, as a Chakra graph's exchanges. */
#include <math.h>

#include "report/trace/chakra_rank.h"

static const ft_parallel one_gpu = {.dp = 1, .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1, .schedule = FT_1F1B};

const ft_parallel *ft__chakra_layout(const ft_step_view *v) { return v->parallel ? v->parallel : &one_gpu; }

/* Parameters and gradients among data ranks. In hybrid shards they stay with those that share a copy, and gradients'
 * sums go over the copies then (ranks/stage.c's sum_ms); the time is shared out by what a ring would carry. */
int64_t ft__chakra_data(ranker *r, const char *name, ft_exchange_kind kind, double bytes, double ms)
{
    const ft_parallel *p = ft__chakra_layout(r->v);
    if (!ft__chakra_hybrid(p)) return ft__chakra_exchange(r, name, kind, FT_AXIS_DATA, bytes, ms, 0);
    if (kind != FT_EXCHANGE_REDUCE_SCATTER) return ft__chakra_exchange(r, name, kind, FT_CHAKRA_SHARERS, bytes, ms, 0);
    double sharers = (double)p->shard, copies = (double)(p->dp * p->cp) / sharers;
    double within = (sharers - 1) / sharers, over = 2 * (copies - 1) / copies / sharers;
    double first = ms * within / (within + over);
    if (within > 0) ft__chakra_exchange(r, name, kind, FT_CHAKRA_SHARERS, bytes, first, 0);
    return ft__chakra_exchange(r, "sum gradients of copies", FT_EXCHANGE_ALL_REDUCE, FT_CHAKRA_COPIES, bytes / sharers,
                               ms - first, 0);
}

/* Elements of one iteration's parameters. */
static double elements(const ft_graph *g, int32_t block, bool trained)
{
    double sum = 0;
    for (int32_t i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        if (t->role == FT_PARAMETER && t->block == block && t->storage == i && (t->trained || !trained))
            sum += ft__tensor_numel(t);
    }
    return sum;
}

double ft__chakra_gradient_bytes(const ft_step_view *v)
{
    return ft__ranks_reduce_bytes(ft__chakra_layout(v), v->work);
}

static int32_t forward_of(const ft_graph *g, int32_t b)
{
    return g->blocks[b].phase == FT_BACKWARD ? g->blocks[b].mirror : b;
}

void ft__chakra_gather(ranker *r, const ft_graph *g, const ft_lanes *l, int32_t b)
{
    if (!l || !r->gathers || l->gather[b] <= 0) return;
    bool updated = ft__chakra_layout(r->v)->zero < 3; /* those alone */
    double bytes = elements(g, forward_of(g, b), updated) * fmax(2, ft_dtype_bytes(r->v->work->dtype));
    r->kernel = ft__chakra_data(r, "gather parameters", FT_EXCHANGE_ALL_GATHER, bytes, l->gather[b]);
}

void ft__chakra_reduce(ranker *r, const ft_graph *g, const ft_lanes *l, int32_t b)
{
    if (!l || l->scatter[b] <= 0) return;
    const ft_parallel *p = ft__chakra_layout(r->v);
    bool sharded = p->zero >= 1 && !ft__ranks_sums_whole(p, r->v->work);
    ft__chakra_data(r, "reduce gradients", sharded ? FT_EXCHANGE_REDUCE_SCATTER : FT_EXCHANGE_ALL_REDUCE,
                    elements(g, forward_of(g, b), true) * ft__chakra_gradient_bytes(r->v), l->scatter[b]);
}

void ft__chakra_of_tensor(ranker *r, const ft_graph *g, int32_t b, bool gathers, double ms, double all)
{
    int32_t forward = forward_of(g, b);
    double bytes = gathers ? elements(g, forward, false) * fmax(2, ft_dtype_bytes(r->v->work->dtype))
                           : elements(g, forward, true) * ft__chakra_gradient_bytes(r->v);
    if (ms <= 0) return;
    int64_t id = ft__chakra_data(r, gathers ? "gather parameters" : "reduce gradients",
                                 gathers ? FT_EXCHANGE_ALL_GATHER : FT_EXCHANGE_REDUCE_SCATTER,
                                 fmax(bytes * ms / all, 1), ms);
    if (gathers) r->kernel = id;
}

double ft__chakra_block_ms(const ft_graph *g, const ft_lanes *l, int32_t b, bool gathers)
{
    double sum = 0;
    for (int32_t i = g->blocks[b].first; i < g->blocks[b].first + g->blocks[b].count; i++) {
        const ft_sharded *s = &l->sharded[i];
        sum += gathers ? fetched_ms(s) : reduced_ms(&s->before) + reduced_ms(&s->behind);
    }
    return sum;
}
