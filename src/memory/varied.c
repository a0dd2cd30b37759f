/* varied.c: steps of many lengths are put through the allocator.
 *
 * A block that one length left is too small for a longer one and is cut up by a shorter one, so that plain segments
 * pile up; a step that asks for the sizes of the step before finds all of its blocks. */
#include "memory/varied.h"

#include <math.h>

#include "memory/allocator.h"
#include "memory/rehearse.h"
#include "memory/resident.h"
#include "memory/sizes.h"
#include "memory/workspace.h"

typedef struct course {
    const ft_varied *v;
    ft_sweep of[FT_VARIED_GRAPHS];
    double *size, *workspace; /* of the last of them, which the steps' own take the place of */
} course;

/* Lagrange's weights of the three lengths. */
static void weigh(const double at[FT_VARIED_GRAPHS], double x, double out[FT_VARIED_GRAPHS])
{
    for (int i = 0; i < FT_VARIED_GRAPHS; i++) {
        out[i] = 1;
        for (int k = 0; k < FT_VARIED_GRAPHS; k++)
            if (k != i) out[i] *= (x - at[k]) / (at[i] - at[k]);
    }
}

static double between(const double weight[FT_VARIED_GRAPHS], double a, double b, double c)
{
    if (a == c && b == c) return c;
    return ft__allocated(fmin(fmax(weight[0] * a + weight[1] * b + weight[2] * c, 0), fmax(a, c)));
}

static void resize(void *user, int step)
{
    course *c = user;
    double w[FT_VARIED_GRAPHS];
    const ft_sweep *a = &c->of[0], *b = &c->of[1], *last = &c->of[2];
    weigh(c->v->at, c->v->lengths[step], w);
    for (ft_ref t = 0; t < last->g->tensor_count; t++) last->size[t] = between(w, a->size[t], b->size[t], c->size[t]);
    for (int32_t n = 0; n < last->g->node_count; n++)
        last->workspace[n] = between(w, a->workspace[n], b->workspace[n], c->workspace[n]);
}

static bool alike(const ft_graph *a, const ft_graph *b)
{
    if (a->tensor_count != b->tensor_count || a->node_count != b->node_count || a->block_count != b->block_count)
        return false;
    for (int32_t n = 0; n < a->node_count; n++)
        if (a->nodes[n].verb != b->nodes[n].verb) return false;
    return true;
}

static double *copied(ft_arena *arena, const double *from, size_t count)
{
    double *to = ft__arena_bare(arena, count + 1, sizeof *to);
    for (size_t i = 0; to && i < count; i++) to[i] = from[i];
    return to;
}

ft_status ft__varied_beyond(const ft_varied *v, const ft_device *device, double *beyond, ft_error *err)
{
    course c = {.v = v};
    ft_kept k;
    double update;
    *beyond = -1;
    const ft_graph *longest = v->graph[FT_VARIED_GRAPHS - 1];
    for (int i = 0; i < FT_VARIED_GRAPHS; i++) {
        if (!alike(v->graph[i], longest)) return FT_OK;
        FT_TRY(ft__sweep_begin(v->graph[i], &v->work[i], device, &ft__share_alone, NULL, &c.of[i], &k, &update, err));
    }
    const ft_sweep *s = &c.of[FT_VARIED_GRAPHS - 1];
    c.size = copied(longest->arena, s->size, (size_t)longest->tensor_count);
    c.workspace = copied(longest->arena, s->workspace, (size_t)longest->node_count);
    if (!c.size || !c.workspace) return ft__no_memory(err);
    const ft_course steps = {.update = update,
                             .handle = ft__library_workspace(device, false),
                             .expandable = s->work->expandable_segments,
                             .room = ft__device_capacity(device) - ft__context_bytes(device),
                             .steps = v->steps,
                             .resize = resize,
                             .user = &c};
    if (!ft__rehearse_varied(s, &k, &steps, beyond))
        return ft__fail(err, FT_E_MEMORY, "out of memory over a graph of %d nodes", longest->node_count);
    return FT_OK;
}
