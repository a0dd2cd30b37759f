/* stream.c: host and GPU side by side.
 *
 * A launch is issued when the host has done its part; its kernel starts when it has arrived and the one before
 * is over. Repeated blocks: an iteration changes the host's clock by H and the GPU's by G. While the GPU never
 * waits inside an iteration, both advance by constants and the lead of the host is linear in the iterations: those
 * are added at once, up to the one where the lead is used up or the queue is full. Where the GPU waits, the rhythm
 * is found when two iterations in a row cost the same. */
#include "timeline/stream.h"

#include <math.h>

/* Iterations after which what the last one took is taken for the rhythm; any model has found its own by then. */
enum { PATIENCE = 2000 };

typedef struct streams {
    double host, gpu;     /* clocks */
    double work, running; /* host's own time, GPU's */
    double launches;
} streams;

static void play(const ft_pace *p, const ft_node_cost *b, streams *s)
{
    double calls = b->calls > 1 ? b->calls : 1, h = b->host * p->host_scale / calls, n = b->count * calls;
    s->work += h * n;
    if (b->gpu <= 0) {
        s->host += h * n;
    } else {
        double d = (b->gpu * p->gpu_scale + p->gap - b->spared) / calls;
        /* n equal launches through two servers in a row: the last ends after the slower of the two had its n. */
        double first = s->host + h + p->latency, last = s->host + n * h + p->latency;
        s->gpu = b->blocks ? fmax(s->gpu, first) + n * d + last - first + (n - 1) * p->latency
                           : fmax(fmax(s->gpu, first) + n * d, last + d);
        s->host += n * h;
        s->running += n * d;
        s->launches += b->count;
    }
    if (b->waits) s->host = s->gpu = fmax(s->host, s->gpu);
}

static void iterate(const ft_graph *g, const ft_pace *p, int32_t block, streams *s)
{
    const ft_block *b = &g->blocks[block];
    double entry = p->entry[block] * p->host_scale, launches = s->launches, running = s->running;
    s->host += entry;
    s->work += entry;
    for (int32_t i = b->first; i < b->first + b->count; i++) play(p, &p->costs[i], s);
    /* The queue, as the time that so many kernels of this block take. */
    launches = s->launches - launches;
    if (launches > 0) s->host = fmax(s->host, s->gpu - p->queue * (s->running - running) / launches);
}

static void run_block(const ft_graph *g, const ft_pace *p, int32_t block, streams *s)
{
    double last = -1;
    for (int64_t left = g->blocks[block].repeat; left > 0; left--) {
        streams before = *s;
        iterate(g, p, block, s);
        double host = s->host - before.host, gpu = s->gpu - before.gpu, running = s->running - before.running;
        int64_t jump = 0;
        /* In the first iteration the host may still wait for a queue that other blocks filled. */
        bool first = left == g->blocks[block].repeat;
        if (left > 2 && !first && fabs(gpu - running) <= 1e-9 * running && running > 0) { /* the GPU never waited */
            double lead = s->gpu - s->host, spare = fabs(lead) - host - p->latency;
            jump = host <= gpu ? left - 1
                   : lead > 0  ? (int64_t)fmin((double)left - 1, fmax(spare, 0) / (host - gpu))
                               : 0;
        } else if (left > 2 && fabs(gpu - last) <= 1e-6 * gpu && fabs(host - gpu) <= 1e-3 * gpu) {
            jump = left - 1; /* both in step */
        }
        if (g->blocks[block].repeat - left >= PATIENCE) jump = left - 1;
        last = gpu;
        if (!jump) continue;
        double n = (double)jump, launches = s->launches - before.launches;
        s->host += n * host;
        s->gpu += n * gpu;
        s->work += n * (s->work - before.work);
        s->running += n * running;
        s->launches += n * launches;
        if (launches > 0) s->host = fmax(s->host, s->gpu - p->queue * running / launches);
        left -= jump;
    }
}

static void run_phase(const ft_graph *g, const ft_pace *p, bool update, streams *s)
{
    ft_phase phase = FT_PHASE_COUNT;
    for (int32_t i = 0; i < g->block_count; i++) {
        if ((g->blocks[i].phase == FT_UPDATE) != update) continue;
        if (g->blocks[i].phase != phase) {
            phase = g->blocks[i].phase;
            double pass = p->pass[phase] * p->host_scale;
            s->host += pass;
            s->work += pass;
        }
        run_block(g, p, i, s);
    }
    if (p->reads_loss && !update) s->host = s->gpu = fmax(s->host, s->gpu);
}

ft_walked ft__stream_walk(const ft_graph *g, const ft_pace *p)
{
    streams s = {0};
    double settled = 0;
    for (int64_t left = p->accumulate; left > 0; left--) {
        streams before = s;
        run_phase(g, p, false, &s);
        double gpu = s.gpu - before.gpu;
        if (left > 2 && (fabs(gpu - settled) <= 1e-6 * gpu || p->accumulate - left >= PATIENCE)) {
            double n = (double)(left - 1);
            s.host += n * (s.host - before.host);
            s.gpu += n * gpu;
            s.work += n * (s.work - before.work);
            s.running += n * (s.running - before.running);
            break;
        }
        settled = gpu;
    }
    run_phase(g, p, true, &s);
    ft_walked out = {fmax(s.host, s.gpu), s.work, s.running};
    return out;
}
