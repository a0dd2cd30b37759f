/* lanes.c: running a rank's streams. */
#include "timeline/lanes.h"

#include <math.h>

ft_status ft__lanes_awaits(const ft_graph *g, int32_t *awaits, ft_error *err)
{
    int32_t *from = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *from);
    if (!from) return ft__fail(err, FT_E_MEMORY, "out of memory");
    for (int32_t i = 0; i < g->tensor_count; i++) from[i] = -1;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        awaits[i] = -1;
        for (int k = 0; k < n->in_count; k++) /* the latest of those it reads */
            if (n->in[k] >= 0 && from[n->in[k]] > awaits[i]) awaits[i] = from[n->in[k]];
        bool exchanges = n->verb == FT_DO_COMM && n->exchange.kind != FT_EXCHANGE_NONE;
        bool passes = !ft__node_runs(n) && !exchanges; /* views carry the wait on to who really reads */
        for (int k = 0; k < n->out_count; k++)
            if (n->out[k] >= 0) from[n->out[k]] = exchanges ? i : passes ? awaits[i] : -1;
        if (passes) awaits[i] = -1;
    }
    return FT_OK;
}

/* Ends of the exchanges of the running iteration, by node; the graph is small and so is this window. */
static void play(const ft_lanes *l, int32_t i, double *ended, ft_clocks *c)
{
    const ft_beat *b = &l->beats[i];
    double waits = l->awaits[i] >= 0 ? ended[l->awaits[i]] : 0;
    if (l->comm[i] > 0) {
        double *lane = &c->lane[l->axis[i]];
        c->host += b->host;
        double start = fmax(fmax(*lane, fmax(c->gpu, waits)), c->host + l->latency);
        *lane = ended[i] = start + l->comm[i] * b->count;
        return;
    }
    if (b->gpu <= 0) {
        c->host += b->host * b->count;
    } else {
        double d = b->gpu + l->gap, first = fmax(c->host + b->host + l->latency, waits);
        double start = fmax(c->gpu, first);
        /* Kernels share the memory and the SMs with an exchange that runs beside them. */
        for (int a = 0; a < FT_AXIS_COUNT; a++)
            if (c->lane[a] > start && l->beside > 0) {
                d *= 1 + l->beside;
                break;
            }
        c->gpu = fmax(start + b->count * d, c->host + b->count * b->host + l->latency + d);
        c->host += b->count * b->host;
    }
    if (b->waits) c->host = c->gpu = fmax(c->host, c->gpu);
}

static void iterate(const ft_lanes *l, int32_t block, bool scatters, double *gathered, double *ended, ft_clocks *c)
{
    const ft_block *b = &l->g->blocks[block];
    double *lane = &c->lane[FT_AXIS_DATA];
    c->host += l->entry[block];
    if (l->gather[block] > 0) { /* this iteration's were asked for when the last one began; now ask for the next */
        double began = fmax(c->gpu, *gathered);
        c->gpu = began;
        *lane = fmax(*lane, began) + l->gather[block];
        *gathered = *lane;
    }
    for (int32_t i = b->first; i < b->first + b->count; i++) play(l, i, ended, c);
    if (scatters && l->scatter[block] > 0) *lane = fmax(*lane, c->gpu) + l->scatter[block];
}

static void run_block(const ft_lanes *l, int32_t block, bool scatters, double *gathered, double *ended, ft_clocks *c)
{
    const int64_t exact = 4; /* iterations until the rhythm has settled */
    int64_t repeat = l->g->blocks[block].repeat;
    ft_clocks before = *c;
    for (int64_t i = 0; i < repeat && i < exact; i++) {
        before = *c;
        iterate(l, block, scatters, gathered, ended, c);
    }
    if (repeat <= exact) return;
    double n = (double)(repeat - exact);
    c->host += n * (c->host - before.host);
    c->gpu += n * (c->gpu - before.gpu);
    for (int a = 0; a < FT_AXIS_COUNT; a++) c->lane[a] += n * (c->lane[a] - before.lane[a]);
    *gathered += n * (c->gpu - before.gpu) / (n + 1);
}

void ft__lanes_run(const ft_lanes *l, ft_phase phase, bool scatters, ft_clocks *c)
{
    double *ended = ft__arena_array(l->g->arena, (size_t)l->g->node_count + 1, sizeof *ended);
    if (!ended) return;
    bool first = true;
    double gathered = 0;
    for (int32_t b = 0; b < l->g->block_count; b++) {
        if (l->g->blocks[b].phase != phase) continue;
        if (first && l->gather[b] > 0) { /* nobody asked for the first one before */
            double *lane = &c->lane[FT_AXIS_DATA];
            *lane = gathered = fmax(*lane, c->gpu) + l->gather[b];
        }
        first = false;
        run_block(l, b, scatters, &gathered, ended, c);
    }
    /* The phase is over when what its last nodes sent has arrived; gradients may still travel. */
    for (int a = 0; a < FT_AXIS_COUNT; a++)
        if (a != FT_AXIS_DATA) c->gpu = fmax(c->gpu, c->lane[a]);
}
