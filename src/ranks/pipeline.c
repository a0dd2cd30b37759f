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

typedef struct runner {
    const ft_pipe *p;
    int64_t places;                         /* the model in order */
    double *forward_there, *backward_there; /* [place][micro]: when who needs it next has it; -1: not yet */
    ft_piped *out;
    int32_t *next;
    double *free_at, *busy;
    double *wire;   /* by stage: when its last transfer has left; one after the other */
    int64_t *where; /* [stage][chunk]: its place */
} runner;

/* fmax without its rules for what is no number: pieces are placed by the hundred thousand. */
static inline double later(double a, double b) { return a > b ? a : b; }

static inline int64_t place_of(const runner *r, int64_t stage, const ft_pipe_op *op)
{
    return r->where[stage * r->p->chunks + op->chunk];
}

static double *slot(const runner *r, double *table, int64_t at, int64_t micro)
{
    return &table[at * r->p->micros + micro];
}

/* When what a piece needs is there; -1 while nobody knows. */
static double ready(const runner *r, int64_t at, const ft_pipe_op *op)
{
    if (op->kind == FT_PIPE_WEIGHTS) return 0; /* its stage put it off itself */
    if (op->kind == FT_PIPE_FORWARD) return at == 0 ? 0 : *slot(r, r->forward_there, at - 1, op->micro);
    double own = *slot(r, r->forward_there, at, op->micro);
    if (own < 0) return -1;
    if (at == r->places - 1) return own;
    return *slot(r, r->backward_there, at + 1, op->micro); /* its own forward was before it in its list */
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
static double beside(double kernels, double exchange, double slower)
{
    return fmax(exchange, kernels + exchange * slower / (1 + slower));
}

/* A forward and a backward pass, layer by layer beside each other, as Megatron-Core orders them
 * (model_chunk_schedule_plan.py, TransformerLayerSchedulePlan.run):
 *
 *     exchanges: combine_bwd | dispatch_fwd -> dispatch_bwd | combine_fwd
 *     kernels:   attn_fwd    | mlp_bwd      -> mlp_fwd      | attn_bwd      */
static double both(const ft_pipe *p, int64_t f, int64_t b, const ft_pipe_op *op)
{
    double apart = length(p, f, op[0].kind) + length(p, b, op[1].kind);
    if (!p->join) return apart;
    const ft_pipe_parts *there = &p->join->forward[f], *back = &p->join->backward[b];
    double slower = p->join->beside;
    return fmin(apart, there->alone + back->alone + beside(there->attention, back->first, slower) +
                           beside(back->experts, there->first, slower) + beside(there->experts, back->second, slower) +
                           beside(back->attention, there->second, slower));
}

static bool sends_on(const runner *r, int64_t at, ft_pipe_kind kind)
{
    if (ft__schedule_folds(r->p->schedule)) { /* at the fold the next chunk is the stage's own */
        if (kind == FT_PIPE_FORWARD && at == r->p->stages - 1) return false;
        if (kind != FT_PIPE_FORWARD && at == r->p->stages) return false;
    }
    return kind == FT_PIPE_FORWARD ? at < r->places - 1 : kind != FT_PIPE_WEIGHTS && at > 0;
}

static void place_op(runner *r, int64_t stage, int64_t where, ft_pipe_op *op, double start, double end, double busy)
{
    const ft_pipe *p = r->p;
    op->start = start;
    op->end = end;
    bool sends = sends_on(r, where, op->kind);
    double lost = sends ? p->send_ms * (op->waits ? 1 : p->send_share) : 0;
    r->free_at[stage] = end + lost;
    r->out->lost_ms[stage] += lost;
    if (sends) r->out->sent_ms[stage] += p->send_ms;
    if (sends) r->wire[stage] = later(r->wire[stage], end) + p->send_ms;
    r->busy[stage] += busy;
    if (op->kind != FT_PIPE_WEIGHTS)
        *slot(r, op->kind == FT_PIPE_FORWARD ? r->forward_there : r->backward_there, where,
              op->micro) = sends ? r->wire[stage] : end;
    if (op->kind != FT_PIPE_FORWARD) {
        r->out->last_backward[stage] = start;
        r->out->finish[stage] = end;
    }
    r->next[stage]++;
}

static bool advance(runner *r, int64_t stage)
{
    const ft_pipe *p = r->p;
    bool moved = false;
    while (r->next[stage] < r->out->op_count[stage]) {
        ft_pipe_op *op = &r->out->ops[stage][r->next[stage]];
        int64_t where = place_of(r, stage, op), beside = op->joined ? place_of(r, stage, op + 1) : 0;
        double at = ready(r, where, op), other = op->joined ? ready(r, beside, op + 1) : 0;
        if (at < 0 || other < 0) break;
        double start = later(r->free_at[stage], later(at, other));
        double ms = length(p, where, op->kind);
        double busy = ms;
        if (op->joined) {
            busy = both(p, where, beside, op);
            r->out->hidden_ms[stage] += ms + length(p, beside, op[1].kind) - busy;
            ms = busy;
            place_op(r, stage, where, op, start, start + ms, busy);
            busy = 0;
            where = beside;
            op++;
        }
        place_op(r, stage, where, op, start, start + ms, busy);
        moved = true;
    }
    return moved;
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

ft_status ft__pipeline_run(const ft_pipe *whole, ft_arena *arena, ft_piped *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    FT_TRY(ft__pipeline_check(whole->schedule, whole->stages, whole->chunks, whole->micros, err));
    ft_pipe listed = *whole, *p = &listed;
    listed.micros = ft__pipeline_listed(whole);
    size_t stages = (size_t)p->stages;
    runner r = {.p = p, .out = out, .places = p->schedule == FT_DUALPIPE ? p->stages : p->stages * p->chunks};
    size_t cells = (size_t)r.places * (size_t)p->micros;
    out->last_backward = ft__arena_array(arena, stages, sizeof *out->last_backward);
    out->finish = ft__arena_array(arena, stages, sizeof *out->finish);
    out->sent_ms = ft__arena_array(arena, stages, sizeof *out->sent_ms);
    out->lost_ms = ft__arena_array(arena, stages, sizeof *out->lost_ms);
    out->hidden_ms = ft__arena_array(arena, stages, sizeof *out->hidden_ms);
    r.forward_there = ft__arena_bare(arena, cells, sizeof *r.forward_there);
    r.backward_there = ft__arena_bare(arena, cells, sizeof *r.backward_there);
    r.wire = ft__arena_array(arena, stages, sizeof *r.wire);
    r.next = ft__arena_array(arena, stages, sizeof *r.next);
    r.free_at = ft__arena_array(arena, stages, sizeof *r.free_at);
    r.busy = ft__arena_array(arena, stages, sizeof *r.busy);
    r.where = ft__arena_array(arena, stages * (size_t)p->chunks, sizeof *r.where);
    if (!out->last_backward || !out->finish || !out->sent_ms || !out->lost_ms || !out->hidden_ms || !r.forward_there ||
        !r.backward_there || !r.wire || !r.next || !r.free_at || !r.busy || !r.where)
        return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline of %lld stages and %lld micro-batches",
                        (long long)p->stages, (long long)p->micros);
    for (size_t i = 0; i < cells; i++) r.forward_there[i] = r.backward_there[i] = -1;
    for (int64_t i = 0; i < p->stages * p->chunks; i++)
        r.where[i] = ft__pipeline_place(p, i / p->chunks, i % p->chunks);
    FT_TRY(ft__pipeline_lists(p, arena, out, err));
    for (bool moved = true; moved;) {
        moved = false;
        for (int64_t s = 0; s < p->stages; s++) moved |= advance(&r, s);
        for (int64_t s = p->stages - 1; s >= 0; s--) moved |= advance(&r, s);
    }
    int64_t busiest = 0;
    for (int64_t s = 0; s < p->stages; s++)
        if (r.next[s] < out->op_count[s])
            return ft__fail(err, FT_E_BUG,
                            "the %s schedule of %lld stages and %lld micro-batches stopped: please report it",
                            ft__schedule_name(p->schedule), (long long)p->stages, (long long)p->micros);
    if (listed.micros < whole->micros)
        FT_TRY(ft__pipeline_lengthen(whole, whole->micros - listed.micros, r.busy, arena, out, err));
    for (int64_t s = 0; s < p->stages; s++) {
        out->lost_ms[s] = fmax(out->lost_ms[s], out->sent_ms[s] - r.busy[s]); /* more than there is work to hide it */
        if (out->finish[s] > out->total_ms) out->total_ms = out->finish[s];
        if (r.busy[s] > r.busy[busiest]) busiest = s;
    }
    out->busy_ms = r.busy[busiest];
    out->bubble_ms = fmax(out->total_ms - out->busy_ms, 0);
    return FT_OK;
}
