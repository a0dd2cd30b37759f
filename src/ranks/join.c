/* join.c: what of a pass another micro-batch's exchanges with experts can hide behind, and its own exchanges.
 *
 * Megatron-Core's overlap_moe_expert_parallel_comm and DeepSeek's DualPipe run a forward and a backward pass of two
 * micro-batches layer by layer beside each other. A layer is then four parts, attention, what goes to the experts,
 * experts (shared ones among them: fine_grained_callables.py), what comes back, and those of the two passes stand side
 * by side as pipeline.c has them. Its layers are alike, so that the parts of a chunk are those of its stage. */
#include <math.h>

#include "ranks/lanes.h"
#include "ranks/ranks.h"

/* Experts' kernels, shared ones' too; routing is before them, the residual behind. */
static bool of_experts(const ft_node *n)
{
    switch (ft__node_site(n)) {
    case FT_SITE_MOE_ROUTER:
    case FT_SITE_MOE_ROUTER_GROUPS:
    case FT_SITE_MOE_TOPK:
    case FT_SITE_MOE_MAP:
    case FT_SITE_MOE_SORT:
    case FT_SITE_MLP_NORM:
    case FT_SITE_MLP_POST_NORM:
    case FT_SITE_MLP_RESIDUAL:
    case FT_SITE_MLP_DROPOUT: return false;
    default: return ft__node_within(n, FT_SITE_MOE) || ft__node_within(n, FT_SITE_MLP);
    }
}

static bool exchanges(const ft_lanes *l, int32_t i)
{
    return l->g->nodes[i].verb == FT_DO_COMM && l->axis[i] == FT_AXIS_EXPERT;
}

ft_pipe_parts ft__ranks_parts(const ft_lanes *l, ft_phase phase, double quiet_ms)
{
    ft_pipe_parts p = {0};
    for (int32_t b = 0; b < l->g->block_count; b++) {
        const ft_block *block = &l->g->blocks[b];
        double repeat = (double)block->repeat, attention = 0, experts = 0;
        bool sparse = false;
        if (block->phase != phase) continue;
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            const ft_node *n = &l->g->nodes[i];
            if (!exchanges(l, i)) {
                *(of_experts(n) ? &experts : &attention) += l->costs[i].gpu * l->costs[i].count * repeat;
                continue;
            }
            sparse = true;
            bool back = ft__node_site(n) == FT_SITE_MOE_COMBINE;
            *(back == (phase == FT_BACKWARD) ? &p.first : &p.second) += l->comm[i] * (double)n->count * repeat;
        }
        p.alone += sparse ? 0 : attention + experts;
        p.attention += sparse ? attention : 0;
        p.experts += sparse ? experts : 0;
    }
    /* Kernels by their share of what the pass takes: its gaps and other exchanges go with them. */
    double scale = quiet_ms / fmax(p.alone + p.attention + p.experts, 1e-9);
    p.alone *= scale;
    p.attention *= scale;
    p.experts *= scale;
    return p;
}

bool ft__ranks_joins(const ft_ranks *r) { return ft__expert_overlaps(r->parallel) && r->work->task == FT_TRAIN; }

static ft_pipe_parts scaled(const ft_pipe_parts *p, double by)
{
    return (ft_pipe_parts){.alone = p->alone * by,
                           .attention = p->attention * by,
                           .experts = p->experts * by,
                           .first = p->first * by,
                           .second = p->second * by};
}

ft_status ft__ranks_join(const ft_ranks *r, const ft_stage *stages, const ft_pipe *run, double slowdown,
                         ft_pipe_join *out, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    size_t places = (size_t)(run->stages * run->chunks);
    ft_pipe_parts *forward = ft__arena_array(r->arena, places, sizeof *forward);
    ft_pipe_parts *backward = ft__arena_array(r->arena, places, sizeof *backward);
    if (!forward || !backward) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline");
    for (int64_t at = 0; at < p->pp * ft__parallel_chunks(p); at++) {
        const ft_stage *s = &stages[at % p->pp];
        forward[at] = scaled(&s->there, run->forward[at] / fmax(s->forward_ms, 1e-9));
        backward[at] = scaled(&s->back, run->backward[at] / fmax(s->backward_ms, 1e-9));
    }
    *out = (ft_pipe_join){.forward = forward, .backward = backward, .slowdown = slowdown};
    return FT_OK;
}
