/* pipeline.c: running a schedule.
 *
 * Every stage has a list of work. It takes the next piece when the stage is free and what the piece needs has arrived:
 * the activations of the stage before, or the gradients of the stage behind.
 *
 * Time is found by going round the stages until nothing moves: each piece is placed once. */
#include "ranks/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ranks/many_constants.h"
#include "ranks/pipeline_lists.h"
#include "ranks/pipeline_long.h"

/* Pieces that are run one by one: some hundred bytes each. */
static const double most_pieces = 2e6;

const double ft__weights_share = FT_K_MANY_WEIGHTS_SHARE;

enum { KINDS = FT_PIPE_WEIGHTS + 1 };

/* A place in the model: what its chunk takes there, and what was sent from there. */
typedef struct station {
    double ms[KINDS];
    bool sends[KINDS];                      /* on to another stage */
    double *forward_there, *backward_there; /* by micro-batch: when who needs it next has it; -1: not yet */
} station;

typedef struct clock { /* of a stage */
    double free_at, busy;
    double wire; /* when its last transfer has left; one after the other */
    double sent, lost, hidden, last_backward, finish;
    int32_t next; /* of its list */
} clock;

typedef struct runner {
    const ft_pipe *p;
    station *first, *last; /* the model in order */
    clock *clocks;
    station **own; /* [stage][chunk] */
    ft_piped *out;
} runner;

/* fmax without its rules for what is no number: pieces are placed by the hundred thousand. */
static inline double later(double a, double b) { return a > b ? a : b; }

/* When what a piece needs is there; -1 while nobody knows. */
static inline double ready(const runner *r, const station *at, const ft_pipe_op *op)
{
    if (op->kind == FT_PIPE_WEIGHTS) return 0; /* its stage put it off itself */
    if (op->kind == FT_PIPE_FORWARD) return at == r->first ? 0 : at[-1].forward_there[op->micro];
    double own = at->forward_there[op->micro];
    if (own < 0) return -1;
    return at == r->last ? own : at[1].backward_there[op->micro]; /* its own forward was before it in its list */
}

static double length(const ft_pipe *p, int64_t at, ft_pipe_kind kind)
{
    switch (kind) {
    case FT_PIPE_FORWARD: return p->forward[at];
    case FT_PIPE_BACKWARD: return p->backward[at];
    case FT_PIPE_INPUTS: return p->backward[at] * (1 - p->weight_share);
    case FT_PIPE_WEIGHTS: return p->backward[at] * p->weight_share;
    }
    return 0;
}

/* Kernels beside an exchange: slower while it runs, or as long as it where it is longer. */
static double overlapped(double kernels, double exchange, double slower)
{
    return fmax(exchange, kernels + exchange * slower / (1 + slower));
}

/* A forward and a backward pass, layer by layer beside each other, as Megatron-Core orders them
 * (model_chunk_schedule_plan.py, TransformerLayerSchedulePlan.run):
 *
 *     exchanges: combine_bwd | dispatch_fwd -> dispatch_bwd | combine_fwd
 *     kernels:   attn_fwd    | mlp_bwd      -> mlp_fwd      | attn_bwd      */
static double both(const runner *r, const station *f, const station *b, const ft_pipe_op *op)
{
    double apart = f->ms[op[0].kind] + b->ms[op[1].kind];
    const ft_pipe_join *join = r->p->join;
    if (!join) return apart;
    const ft_pipe_parts *there = &join->forward[f - r->first], *back = &join->backward[b - r->first];
    double slower = join->slowdown;
    return fmin(apart, there->alone + back->alone + overlapped(there->attention, back->first, slower) +
                           overlapped(back->experts, there->first, slower) +
                           overlapped(there->experts, back->second, slower) +
                           overlapped(back->attention, there->second, slower));
}

static bool sends_on(const ft_pipe *p, int64_t places, int64_t at, ft_pipe_kind kind)
{
    if (ft__schedule_folds(p->schedule)) { /* at the fold the next chunk is the stage's own */
        if (kind == FT_PIPE_FORWARD && at == p->stages - 1) return false;
        if (kind != FT_PIPE_FORWARD && at == p->stages) return false;
    }
    return kind == FT_PIPE_FORWARD ? at < places - 1 : kind != FT_PIPE_WEIGHTS && at > 0;
}

static inline void place_op(const ft_pipe *p, clock *c, const station *at, ft_pipe_op *op, double start, double end)
{
    bool sends = at->sends[op->kind];
    op->start = start;
    op->end = end;
    c->free_at = end;
    if (sends) {
        double lost = p->send_ms * (op->waits ? 1 : p->send_share);
        c->free_at += lost;
        c->lost += lost;
        c->sent += p->send_ms;
        c->wire = later(c->wire, end) + p->send_ms;
    }
    double there = sends ? c->wire : end;
    if (op->kind == FT_PIPE_FORWARD) at->forward_there[op->micro] = there;
    if (op->kind == FT_PIPE_BACKWARD || op->kind == FT_PIPE_INPUTS) at->backward_there[op->micro] = there;
    if (op->kind != FT_PIPE_FORWARD) {
        c->last_backward = start;
        c->finish = end;
    }
    c->next++;
}

static bool advance(runner *r, int64_t stage)
{
    const ft_pipe *p = r->p;
    clock *c = &r->clocks[stage];
    station *const *own = &r->own[stage * p->chunks];
    ft_pipe_op *ops = r->out->ops[stage];
    int32_t began = c->next, count = r->out->op_count[stage];
    while (c->next < count) {
        ft_pipe_op *op = &ops[c->next];
        const station *at = own[op->chunk], *joined = op->joined ? own[op[1].chunk] : NULL;
        double from = ready(r, at, op), other = joined ? ready(r, joined, op + 1) : 0;
        if (from < 0 || other < 0) break;
        double start = later(c->free_at, later(from, other)), ms = at->ms[op->kind];
        if (joined) {
            double apart = ms + joined->ms[op[1].kind];
            ms = both(r, at, joined, op);
            c->hidden += apart - ms;
            place_op(p, c, at, op, start, start + ms);
            at = joined;
            op++;
        }
        place_op(p, c, at, op, start, start + ms);
        c->busy += ms;
    }
    return c->next > began;
}

/* How many micro-batches the schedule can be run with. */
static const char *fewer(const ft_pipe *p, char *out, size_t room)
{
    bool dual = p->schedule == FT_DUALPIPE, groups = p->schedule == FT_INTERLEAVED && p->chunks > 1;
    int64_t group = groups ? p->stages : dual ? 2 : 1, least = dual ? 2 * p->stages : group;
    int64_t most = (int64_t)(most_pieces / ((double)p->stages * (double)p->chunks)) / group * group;
    if (most < least) return "fewer stages would do";
    snprintf(out, room, "%lld micro-batches would do", (long long)most);
    return out;
}

ft_status ft__pipeline_check(ft_schedule schedule, int64_t stages, int64_t chunks, int64_t micros, ft_error *err)
{
    if (schedule == FT_INTERLEAVED && chunks > 1 && stages > 1 && micros % stages)
        return ft__fail_at(
            err, FT_E_RANGE, "global_batch", 0, 0,
            "an interleaved schedule needs micro-batches in groups of \"pp\" %lld: %lld or %lld of them, "
            "not %lld",
            (long long)stages, (long long)(micros < stages ? stages : micros / stages * stages),
            (long long)(micros < stages ? 2 : micros / stages + 1) * stages, (long long)micros);
    if (schedule == FT_DUALPIPE && stages > 1 && stages % 2)
        return ft__fail_at(err, FT_E_RANGE, "parallel.pp", 0, 0,
                           "dualpipe pairs the stages: \"pp\" must be even, %lld or %lld, not %lld",
                           (long long)stages - 1, (long long)stages + 1, (long long)stages);
    if (schedule == FT_DUALPIPE && stages > 1 && (micros < 2 * stages || micros % 2))
        return ft__fail_at(err, FT_E_RANGE, "global_batch", 0, 0,
                           "dualpipe needs an even number of micro-batches, at least 2 * pp = %lld; there are %lld",
                           2 * (long long)stages, (long long)micros);
    ft_pipe asked = {.schedule = schedule, .stages = stages, .chunks = chunks, .micros = micros};
    char would_do[64];
    if ((double)stages * (double)chunks * (double)ft__pipeline_listed(&asked) > most_pieces)
        return ft__fail_at(err, FT_E_RANGE, "global_batch", 0, 0,
                           "%lld stages of %lld chunk%s with %lld micro-batches are too many pieces to run; %s",
                           (long long)stages, (long long)chunks, chunks == 1 ? "" : "s", (long long)micros,
                           fewer(&asked, would_do, sizeof would_do));
    return FT_OK;
}

/* Stations of all places, in the order of the model, before anything has run. */
static bool build(runner *r, ft_arena *arena)
{
    const ft_pipe *p = r->p;
    int64_t places = p->schedule == FT_DUALPIPE ? p->stages : p->stages * p->chunks;
    size_t cells = (size_t)places * (size_t)p->micros;
    double *there = ft__arena_bare(arena, 2 * cells, sizeof *there);
    r->clocks = ft__arena_array(arena, (size_t)p->stages, sizeof *r->clocks);
    r->own = ft__arena_array(arena, (size_t)(p->stages * p->chunks), sizeof(station *));
    r->first = ft__arena_array(arena, (size_t)places, sizeof *r->first);
    if (!there || !r->clocks || !r->own || !r->first) return false;
    for (size_t i = 0; i < 2 * cells; i++) there[i] = -1;
    for (int64_t at = 0; at < places; at++) {
        station *one = &r->first[at];
        one->forward_there = there + at * p->micros;
        one->backward_there = there + (places + at) * p->micros;
        for (int kind = 0; kind < KINDS; kind++) {
            one->ms[kind] = length(p, at, (ft_pipe_kind)kind);
            one->sends[kind] = sends_on(p, places, at, (ft_pipe_kind)kind);
        }
    }
    r->last = r->first + places - 1;
    for (int64_t i = 0; i < p->stages * p->chunks; i++)
        r->own[i] = r->first + ft__pipeline_place(p, i / p->chunks, i % p->chunks);
    return true;
}

static void read_off(const runner *r, double *busy)
{
    for (int64_t s = 0; s < r->p->stages; s++) {
        const clock *c = &r->clocks[s];
        busy[s] = c->busy;
        r->out->sent_ms[s] = c->sent;
        r->out->lost_ms[s] = c->lost;
        r->out->hidden_ms[s] = c->hidden;
        r->out->last_backward[s] = c->last_backward;
        r->out->finish[s] = c->finish;
    }
}

ft_status ft__pipeline_run(const ft_pipe *whole, ft_arena *arena, ft_piped *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    FT_TRY(ft__pipeline_check(whole->schedule, whole->stages, whole->chunks, whole->micros, err));
    ft_pipe listed = *whole, *p = &listed;
    listed.micros = ft__pipeline_listed(whole);
    size_t stages = (size_t)p->stages;
    runner r = {.p = p, .out = out};
    out->last_backward = ft__arena_array(arena, stages, sizeof *out->last_backward);
    out->finish = ft__arena_array(arena, stages, sizeof *out->finish);
    out->sent_ms = ft__arena_array(arena, stages, sizeof *out->sent_ms);
    out->lost_ms = ft__arena_array(arena, stages, sizeof *out->lost_ms);
    out->hidden_ms = ft__arena_array(arena, stages, sizeof *out->hidden_ms);
    double *busy = ft__arena_array(arena, stages, sizeof *busy);
    if (!out->last_backward || !out->finish || !out->sent_ms || !out->lost_ms || !out->hidden_ms || !busy ||
        !build(&r, arena))
        return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline of %lld stages and %lld micro-batches",
                        (long long)p->stages, (long long)p->micros);
    FT_TRY(ft__pipeline_lists(p, arena, out, err));
    for (bool moved = true; moved;) {
        moved = false;
        for (int64_t s = 0; s < p->stages; s++) moved |= advance(&r, s);
        for (int64_t s = p->stages - 1; s >= 0; s--) moved |= advance(&r, s);
    }
    int64_t busiest = 0;
    for (int64_t s = 0; s < p->stages; s++)
        if (r.clocks[s].next < out->op_count[s])
            return ft__fail(err, FT_E_BUG,
                            "the %s schedule of %lld stages and %lld micro-batches stopped: please report it",
                            ft__schedule_name(p->schedule), (long long)p->stages, (long long)p->micros);
    read_off(&r, busy);
    if (listed.micros < whole->micros)
        FT_TRY(ft__pipeline_lengthen(whole, whole->micros - listed.micros, busy, arena, out, err));
    for (int64_t s = 0; s < p->stages; s++) {
        out->lost_ms[s] = fmax(out->lost_ms[s], out->sent_ms[s] - busy[s]); /* more than there is work to hide it */
        if (out->finish[s] > out->total_ms) out->total_ms = out->finish[s];
        if (busy[s] > busy[busiest]) busiest = s;
    }
    out->busy_ms = busy[busiest];
    out->bubble_ms = fmax(out->total_ms - out->busy_ms, 0);
    return FT_OK;
}
