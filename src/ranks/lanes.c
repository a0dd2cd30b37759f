/* lanes.c: running a rank's streams. */
#include "ranks/lanes.h"

#include <math.h>

#include "layout/layout.h"
#include "timeline/overlap_slowdown.h"

ft_status ft__lanes_awaits(const ft_graph *g, int32_t *awaits, int32_t *sends, ft_error *err)
{
    int32_t *from = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *from);
    int32_t *made = ft__arena_array(g->arena, (size_t)g->tensor_count + 1, sizeof *made);
    if (!from || !made) return ft__no_memory(err);
    for (int32_t i = 0; i < g->tensor_count; i++) from[i] = made[i] = -1;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t i = g->blocks[b].first; i < g->blocks[b].first + g->blocks[b].count; i++) {
            const ft_node *n = &g->nodes[i];
            int32_t maker = n->in_count && n->in[0] >= 0 ? made[n->in[0]] : -1;
            awaits[i] = -1;
            for (int k = 0; k < n->in_count; k++) /* the latest of those it reads */
                if (n->in[k] >= 0 && from[n->in[k]] > awaits[i]) awaits[i] = from[n->in[k]];
            bool exchanges = n->verb == FT_DO_COMM && n->exchange.kind != FT_EXCHANGE_NONE;
            bool passes = !ft__node_runs(n) && !exchanges; /* views carry the wait on to who really reads */
            sends[i] = exchanges && maker >= g->blocks[b].first ? maker : -1;
            for (int k = 0; k < n->out_count; k++) {
                if (n->out[k] < 0) continue;
                from[n->out[k]] = exchanges ? i : passes ? awaits[i] : -1;
                made[n->out[k]] = passes ? maker : i;
            }
            if (passes) awaits[i] = -1;
        }
    return FT_OK;
}

static void tell(const ft_lanes *l, ft_seen_kind kind, int lane, int32_t at, double start, double end, double folded)
{
    if (!l->watch || end <= start) return;
    ft_seen what = {kind, lane, at, start, end, folded};
    l->watch(l->watcher, &what);
}

static bool in_pieces(const ft_lanes *l, int32_t i) { return l->pieces && l->pieces[i]; }

static bool is_product(const ft_lanes *l, int32_t i) { return i >= 0 && l->g->nodes[i].op.kind == FT_OP_GEMM; }

/* User buffers belong to a layer's linears. What reads and makes experts' tokens are grouped products, or a loop of
 * them, and tokens come sorted from a dispatcher that gathers by itself (Megatron-Core's token_dispatcher.py). */
static bool takes_pieces(const ft_lanes *l, int32_t i)
{
    if (!is_product(l, i)) return false;
    const ft_node *n = &l->g->nodes[i];
    for (int k = 0; k < n->in_count; k++)
        if (n->in[k] >= 0 && ft__is_expert(&l->g->tensors[n->in[k]])) return false;
    return true;
}

/* fmax without its rules for what is no number: a layer's kernels are walked several times for every layout. */
static inline double later(double a, double b) { return a > b ? a : b; }

static bool sums_beside(const ft_lanes *l, int32_t i, int32_t j)
{
    return l->comm[j] > 0 && l->async && !in_pieces(l, j) && !(l->left[j] > 0) && l->sends[j] >= 0 && l->sends[j] < i;
}

/* Nodes from a product to the exchange of the one before it. */
enum { FAR = 8 };

static bool near(const ft_graph *g, int32_t i, int32_t j)
{
    return j <= i + FAR && j < g->node_count && g->nodes[j].phase == g->nodes[i].phase;
}

/* Until when exchanges go on that begin with a kernel at `start` but come after it in the graph: Megatron's sums
 * beside the weights' gradient, and what the next kernel reads, gathered again beside this one. */
static double begins_beside(const ft_lanes *l, const ft_clocks *c, int32_t i, double start)
{
    double until = 0;
    bool next = true;
    if (l->begins && !l->begins[i]) return 0;
    for (int32_t j = i + 1; near(l->g, i, j); j++) {
        bool kernel = !(l->comm[j] > 0) && l->costs[j].gpu > 0;
        if (kernel && next && l->again[j] > 0 && !l->copies)
            until = later(until, later(c->lane[FT_AXIS_TENSOR], start) + l->again[j]);
        if (sums_beside(l, i, j))
            until = later(until, later(c->lane[l->axis[j]], start) + l->comm[j] * l->costs[j].count);
        next = next && !kernel;
    }
    return until;
}

void ft__lanes_begins(const ft_lanes *l, bool *begins)
{
    for (int32_t i = 0; i < l->g->node_count; i++) {
        begins[i] = false;
        for (int32_t j = i + 1; near(l->g, i, j) && !begins[i]; j++)
            begins[i] = l->again[j] > 0 || sums_beside(l, i, j);
    }
}

/* A kernel of d ms from `start`, all its launches, beside exchanges. */
static double slowed(const ft_lanes *l, const ft_clocks *c, int32_t i, double start, double d)
{
    double until = begins_beside(l, c, i, start), copied = 0; /* copied: by engines, not by SMs */
    for (int a = 0; a < FT_AXIS_COUNT; a++) {
        double *end = a == FT_AXIS_TENSOR && l->copies ? &copied : &until;
        *end = later(*end, c->lane[a]);
    }
    if (l->stands) return d + later(until - start, 0);
    if (l->sms > 0 && is_product(l, i) && until > start) {
        double product = ft__overlap_slowdown_product(&l->g->nodes[i].op, l->sms, l->slowdown / (1 + l->slowdown));
        return d + ft__overlap_slowdown(d, product, until - start);
    }
    return d + ft__overlap_slowdown(d, l->slowdown, later(until, copied) - start);
}

/* A product's first piece is sent while the second is computed, the last when all is there. What runs beside the
 * product slows it down: that is put at the end, where the product's own time is known. */
static double scatter_pieces(const ft_lanes *l, int32_t i, double earliest, const double *ended, double *start)
{
    const ft_node_cost *maker = &l->costs[l->sends[i]];
    double d = l->comm[i] * l->costs[i].count, made = ended[l->sends[i]];
    *start = later(earliest, made - (1 - 1 / l->piece_count) * maker->gpu * maker->count);
    double hidden = fmin(later(made - *start, 0), d);
    return later(*start + d, made + d / l->piece_count) + hidden * l->slowdown;
}

static void exchange(const ft_lanes *l, int32_t i, double waits, double *ended, ft_clocks *c)
{
    const ft_node_cost *b = &l->costs[i];
    double *lane = &c->lane[l->axis[i]], ready = c->gpu;
    ft_exchange_kind kind = l->g->nodes[i].exchange.kind;
    bool going_back = l->g->nodes[i].phase == FT_BACKWARD;
    if (l->left[i] > 0 && going_back)
        ready = c->began; /* keys and their gradients went round beside the kernel */
    else if (l->async && l->sends[i] >= 0)
        ready = ended[l->sends[i]];
    c->host += b->host;
    double earliest = later(later(*lane, waits), c->host + l->latency), start = later(earliest, ready);
    if (in_pieces(l, i) && takes_pieces(l, l->sends[i]) && kind == FT_EXCHANGE_REDUCE_SCATTER)
        *lane = ended[i] = scatter_pieces(l, i, earliest, ended, &start);
    else
        *lane = ended[i] = start + l->comm[i] * b->count;
    /* Steps of a ring, one after each of the kernel's: the last one when that has ended. */
    if (l->left[i] > 0 && going_back && kind == FT_EXCHANGE_SEND_RECV)
        *lane = ended[i] = later(ended[i], c->gpu + l->comm[i]);
    if (l->left[i] < 0 || b->blocks) c->gpu = later(c->gpu, ended[i]);
    if (b->blocks) c->host = later(c->host, c->gpu);
    tell(l, FT_SEEN_EXCHANGE, (int)l->axis[i], i, start, *lane, 0);
}

static void play(const ft_lanes *l, int32_t i, double *ended, ft_clocks *c)
{
    const ft_node_cost *b = &l->costs[i];
    int32_t from = l->awaits[i];
    double waits = from >= 0 ? ended[from] : 0;
    if (l->comm[i] > 0) {
        exchange(l, i, waits, ended, c);
        return;
    }
    if (b->gpu <= 0) {
        c->host += b->host * b->count;
        ended[i] = later(c->gpu, waits);
    } else {
        /* The first part is there from the start. */
        bool pieces = from >= 0 && in_pieces(l, from) && takes_pieces(l, i) &&
                      l->g->nodes[from].exchange.kind == FT_EXCHANGE_ALL_GATHER;
        double left = pieces ? 1 / later(l->piece_count, 1) : from >= 0 ? l->left[from] : 0;
        bool along = left > 0;
        if (l->again[i] > 0) {
            double *lane = &c->lane[FT_AXIS_TENSOR];
            *lane = later(*lane, c->began) + l->again[i];
            tell(l, FT_SEEN_AGAIN, FT_AXIS_TENSOR, i, *lane - l->again[i], *lane, 0);
            waits = later(waits, *lane);
        }
        double calls = later(b->calls, 1), first = later(c->host + b->host / calls + l->latency, along ? 0 : waits);
        double start = later(c->gpu, first);
        double all = slowed(l, c, i, start, b->count * (b->gpu + l->gap - b->spared)),
               d = all / (later(b->count, 1) * calls);
        c->began = start;
        c->gpu = later(start + all, c->host + b->count * b->host + l->latency + d);
        if (along) c->gpu = later(c->gpu, waits + all * left);
        if (b->blocks) c->gpu = start + all + (b->count * calls - 1) * (b->host / calls + l->latency);
        c->host += b->count * b->host;
        ended[i] = c->gpu;
        tell(l, FT_SEEN_KERNEL, FT_LANE_GPU, i, start, c->gpu, 0);
    }
    if (b->waits) c->host = c->gpu = later(c->host, c->gpu);
}

typedef struct pass {
    bool gathers, scatters;
    double gathered; /* when the next iteration's parameters are whole */
    double *ended;
    int32_t next; /* the block behind the one that runs; -1: none, and nobody is gathered for */
} pass;

/* The host stops when the queue is full: it is no further ahead than so many kernels of this block take. */
static void hold_host(const ft_lanes *l, int32_t block, ft_clocks *c)
{
    const ft_block *b = &l->g->blocks[block];
    double running = 0, launches = 0;
    if (!(l->queue > 0)) return;
    for (int32_t i = b->first; i < b->first + b->count; i++)
        if (l->costs[i].gpu > 0) {
            running += l->costs[i].count * (l->costs[i].gpu + l->gap - l->costs[i].spared);
            launches += l->costs[i].count;
        }
    if (launches > 0) c->host = fmax(c->host, c->gpu - l->queue * running / launches);
}

static void reduce(const ft_lanes *l, int32_t block, const ft_reducing *r, ft_clocks *c)
{
    double *lane = &c->lane[FT_AXIS_DATA];
    if (r->exchange <= 0) return;
    c->host = fmax(c->host, *lane) + r->list; /* those before have to be done */
    double start = fmax(c->host + l->latency, r->fresh ? c->gpu : 0);
    *lane = start + r->exchange;
    tell(l, FT_SEEN_SCATTER, FT_AXIS_DATA, block, start, *lane, 0);
}

static void fetch(const ft_lanes *l, int32_t block, const ft_sharded *s, ft_clocks *c)
{
    double *lane = &c->lane[FT_AXIS_DATA], now = fmax(fmax(c->host, c->gpu), *lane);
    tell(l, FT_SEEN_GATHER, FT_AXIS_DATA, block, now, now + s->fetch, 0);
    now += s->fetch;
    tell(l, FT_SEEN_GATHER, FT_AXIS_DATA, block, now, now + s->ahead, 0);
    *lane = now + s->ahead;
    c->host = now + s->issue;
    c->gpu = now;
}

/* A node with its parameters and gradients, where they travel by themselves. */
static void play_sharded(const ft_lanes *l, int32_t block, int32_t i, pass *p, ft_clocks *c)
{
    const ft_sharded *s = &l->sharded[i];
    if (p->scatters) reduce(l, block, &s->before, c);
    if (p->gathers && s->stops) fetch(l, block, s, c);
    play(l, i, p->ended, c);
    if (p->scatters) reduce(l, block, &s->behind, c);
    if (p->gathers && s->releases) c->host = fmax(c->host, c->gpu);
}

/* Parameters of one iteration of a block, asked for now. */
static void ask_for(const ft_lanes *l, int32_t block, pass *p, ft_clocks *c)
{
    double *lane = &c->lane[FT_AXIS_DATA];
    if (block < 0 || l->gather[block] <= 0) return;
    *lane = p->gathered = fmax(*lane, c->gpu) + l->gather[block];
    tell(l, FT_SEEN_GATHER, FT_AXIS_DATA, block, *lane - l->gather[block], *lane, 0);
    c->gpu += l->holds * l->gather[block];
}

static void iterate(const ft_lanes *l, int32_t block, bool last, pass *p, ft_clocks *c)
{
    const ft_block *b = &l->g->blocks[block];
    double *lane = &c->lane[FT_AXIS_DATA], issued = c->host;
    c->host += l->entry[block];
    if (p->gathers && l->gather[block] > 0) { /* this iteration's were asked for when the last one began */
        c->gpu = fmax(c->gpu, p->gathered);
        ask_for(l, last ? p->next : block, p, c);
    }
    for (int32_t i = b->first; i < b->first + b->count; i++)
        if (l->sharded)
            play_sharded(l, block, i, p, c);
        else
            play(l, i, p->ended, c);
    hold_host(l, block, c);
    tell(l, FT_SEEN_ISSUE, FT_LANE_HOST, block, issued, c->host, 0);
    if (!p->scatters || l->scatter[block] <= 0) return;
    *lane = fmax(*lane, c->gpu) + l->scatter[block];
    tell(l, FT_SEEN_SCATTER, FT_AXIS_DATA, block, *lane - l->scatter[block], *lane, 0);
}

/* More iterations like the one that began at `before`. */
static void fold(const ft_lanes *l, int32_t block, double n, const ft_clocks *before, pass *p, ft_clocks *c)
{
    double gpu = c->gpu - before->gpu;
    tell(l, FT_SEEN_FOLDED, FT_LANE_HOST, block, c->host, c->host + n * (c->host - before->host), n);
    tell(l, FT_SEEN_FOLDED, FT_LANE_GPU, block, c->gpu, c->gpu + n * gpu, n);
    for (int a = 0; a < FT_AXIS_COUNT; a++)
        tell(l, FT_SEEN_FOLDED, a, block, c->lane[a], c->lane[a] + n * (c->lane[a] - before->lane[a]), n);
    c->host += n * (c->host - before->host);
    c->gpu += n * gpu;
    c->began += n * gpu;
    for (int a = 0; a < FT_AXIS_COUNT; a++) c->lane[a] += n * (c->lane[a] - before->lane[a]);
    p->gathered += n * gpu;
    hold_host(l, block, c);
}

/* As stream.c does it: a host that is slower than the GPU uses up its lead first, and from then on sets the rhythm. */
static void run_block(const ft_lanes *l, int32_t block, pass *p, ft_clocks *c)
{
    const int64_t exact = 4;     /* iterations until the rhythm has settled */
    const int64_t patience = 64; /* then the last one's is taken for it */
    int64_t walked = 0;
    double last = -1;
    for (int64_t left = l->g->blocks[block].repeat; left > 0;) {
        ft_clocks before = *c;
        iterate(l, block, left == 1, p, c);
        left--;
        double host = c->host - before.host, gpu = c->gpu - before.gpu, lead = c->gpu - c->host, jump = 0;
        bool settled = fabs(gpu - last) <= 1e-6 * gpu;
        last = gpu;
        if (++walked < exact || left < 1) continue;
        if (host <= gpu * (1 + 1e-3) || walked >= patience)
            jump = settled || walked >= patience ? (double)left : 0;
        else if (settled)
            jump = floor(fmin((double)left, fmax(lead - host - l->latency, 0) / (host - gpu)));
        if (p->gathers && l->gather[block] > 0) jump = fmin(jump, (double)left - 1); /* the last one asks for others */
        if (jump < 1) continue;
        fold(l, block, jump, &before, p, c);
        left -= (int64_t)jump;
    }
}

/* What a pass waits for before it begins: gradients that every micro-batch sends on (ZeRO-2) have left their buffers
 * before the next one's are made. Gathers on the same lane (ZeRO-3 over more than one rank) keep both in step. */
static double backlog(const ft_lanes *l, ft_phase phase, bool gathers, bool scatters, const ft_clocks *c)
{
    if (phase != FT_BACKWARD || !scatters || (gathers && l->sharded)) return 0;
    for (int32_t b = 0; b < l->g->block_count && gathers; b++)
        if (l->gather[b] > 0) return 0;
    return fmax(c->lane[FT_AXIS_DATA] - c->gpu, 0);
}

/* The block of a phase whose parameters are gathered while this one runs. */
static int32_t next_of(const ft_lanes *l, ft_phase phase, int32_t block)
{
    for (int32_t b = block + 1; b < l->g->block_count; b++)
        if (l->g->blocks[b].phase == phase && l->gather[b] > 0) return b;
    return -1;
}

void ft__lanes_run(const ft_lanes *l, ft_phase phase, bool gathers, bool scatters, double *ended, ft_clocks *c)
{
    pass p = {.gathers = gathers, .scatters = scatters};
    p.ended = ended;
    bool first = true;
    c->gpu += backlog(l, phase, gathers, scatters, c);
    for (int32_t b = 0; b < l->g->block_count; b++) {
        if (l->g->blocks[b].phase != phase) continue;
        double before = c->gpu;
        if (first && l->pass) c->host += l->pass[phase];
        p.next = next_of(l, phase, b);
        if (gathers && first) ask_for(l, l->gather[b] > 0 ? b : p.next, &p, c); /* nobody did before */
        first = false;
        run_block(l, b, &p, c);
        if (l->spent) l->spent[b] = c->gpu - before;
    }
    /* The phase is over when what its last nodes sent has arrived; gradients may still travel. */
    for (int a = 0; a < FT_AXIS_COUNT; a++)
        if (a != FT_AXIS_DATA) c->gpu = fmax(c->gpu, c->lane[a]);
    if (l->reads_loss && phase == FT_BACKWARD) c->host = c->gpu = fmax(c->host, c->gpu);
}
