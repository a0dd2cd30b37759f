/* residency.c: how far apart two touches of a storage are, in bytes of other traffic.
 *
 * A clock counts the bytes that kernels bring into the cache: operands that were not there, and results. A tensor that
 * was touched when it stood at some value is still there as far as the clock has not gone on by more than the cache has
 * room for. One walk over the graph: nodes in order, a block that repeats once. In a round of it the carry was just
 * written by the round before; what blocks before it left is as far away as all rounds together bring it, and weights
 * as far as the whole step does. So a model that fits the cache finds all of its weights there, and a tensor that does
 * not fit finds nothing. */
#include "timeline/residency.h"

#include <math.h>
#include <string.h>

#include "kernel/traffic.h"
#include "timeline/residency_constants.h"

typedef struct walk {
    const ft_graph *g;
    double room;  /* bytes after which half of a tensor is gone */
    double most;  /* that wait to be written to memory at once */
    double clock; /* bytes brought in so far */
    double dirty; /* bytes that wait */
    double *last; /* by storage: the clock when it was touched */
} walk;

static double cache_bytes(const ft_device *device) { return device->l2_mib * 1048576; }

/* What a node reads of a tensor: a lookup no more than it gives back. */
static double read_of(const ft_graph *g, const ft_node *n, ft_ref r, double wrote)
{
    double bytes = ft__tensor_bytes(&g->tensors[r]);
    return n->verb == FT_DO_EMBEDDING || n->verb == FT_DO_GATHER ? fmin(bytes, wrote) : bytes;
}

/* While a kernel reads an operand from its first byte to its last, half of the rest of its own traffic comes between,
 * on average, and the operand's own bytes lie between a touch of one of them and the next. */
static void visit(walk *w, const ft_node *n, ft_found *f)
{
    const ft_graph *g = w->g;
    double wrote = 0, read = 0;
    for (int i = 0; i < n->out_count; i++)
        if (n->out[i] >= 0) wrote += ft__tensor_bytes(&g->tensors[n->out[i]]);
    for (int i = 0; i < n->in_count; i++)
        if (n->in[i] >= 0) read += read_of(g, n, n->in[i], wrote);
    for (int i = 0; i < n->in_count; i++) {
        if (n->in[i] < 0) continue;
        double bytes = read_of(g, n, n->in[i], wrote), since = w->clock - w->last[g->tensors[n->in[i]].storage];
        double there = ft__resident(since + bytes + 0.5 * (read - bytes + wrote), w->room);
        f->hit += bytes * there;
        f->least = fmin(f->least, there);
    }
    double missed = read - f->hit;
    f->read = read;
    f->back = wrote < FT_K_RESIDENCY_READS_ALONE * read ? fmin(w->dirty, missed) : 0;
    w->dirty = fmin(fmax(w->dirty - missed, 0) + wrote, w->most);
    w->clock += missed + wrote;
    for (int i = 0; i < n->in_count; i++)
        if (n->in[i] >= 0) w->last[g->tensors[n->in[i]].storage] = w->clock;
    for (int i = 0; i < n->out_count; i++)
        if (n->out[i] >= 0) w->last[g->tensors[n->out[i]].storage] = w->clock;
}

/* Bytes that a whole step brings in: its weights, and what its kernels make. */
static double whole_step(const ft_graph *g)
{
    double sum = g->parameter_bytes;
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        double made = 0;
        for (int32_t i = block->first; i < block->first + block->count; i++)
            for (int k = 0; k < g->nodes[i].out_count; k++)
                if (g->nodes[i].out[k] >= 0) made += ft__tensor_bytes(&g->tensors[g->nodes[i].out[k]]);
        sum += made * (double)block->repeat;
    }
    return sum;
}

void ft__residency_walk(const ft_graph *g, const ft_device *device, double *last, ft_found *found)
{
    double cache = cache_bytes(device), before = -whole_step(g);
    walk w = {.g = g, .room = FT_K_RESIDENCY_ROOM * cache, .most = FT_K_RESIDENCY_DIRTY * cache, .last = last};
    for (int32_t i = 0; i < g->tensor_count; i++) last[i] = before;
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        double began = w.clock;
        if (block->carry_in >= 0 && block->carry_in < g->tensor_count)
            last[g->tensors[block->carry_in].storage] = w.clock;
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            found[i] = (ft_found){.least = 1};
            if (ft__node_runs(&g->nodes[i])) visit(&w, &g->nodes[i], &found[i]);
        }
        w.clock += (w.clock - began) * (double)(block->repeat - 1);
    }
}

double ft__residency_timed(const ft_device *device, double bytes, bool in_models)
{
    double room = in_models ? FT_K_RESIDENCY_START_ROOM : FT_K_RESIDENCY_TIMED_ROOM;
    double found = ft__resident(bytes, room * cache_bytes(device));
    return in_models ? fmax(found, FT_K_RESIDENCY_SCATTERED_FOUND) : found;
}

double ft__residency_chain(const ft_found *found, const char *op, double timed)
{
    if (!(found->read > 0)) return 1;
    for (int i = 0; i < FT_K_RESIDENCY_CHAIN_COUNT; i++)
        if (!strcmp(ft__k_residency_chain[i].name, op))
            return (1 - ft__k_residency_chain[i].saved * FT_K_RESIDENCY_REACH * found->hit / found->read) /
                   (1 - ft__k_residency_chain[i].saved * timed);
    return 0;
}

double ft__residency_ms(const ft_device *device, const ft_found *found, double timed, double wait_ms)
{
    if (!(found->read > 0)) return 0;
    double bytes_ms = FT_K_RESIDENCY_SAVED_SHARE * found->read / (device->memory_gbps * 1e6);
    return (timed - FT_K_RESIDENCY_REACH * found->least) * wait_ms +
           (timed - FT_K_RESIDENCY_REACH * found->hit / found->read) * bytes_ms;
}

double ft__residency_wait_ms(bool scattered, bool mixed, double bytes)
{
    enum { NARROW, WIDE, MIXED };
    return scattered ? ft__k_residency_scattered_ms[mixed       ? MIXED
                                                    : bytes > 2 ? WIDE
                                                                : NARROW]
                     : FT_K_RESIDENCY_SAVED_MS;
}
