/* pipeline.c: running a schedule.
 *
 * Every stage has a list of work. It takes the next piece when the stage is free and what the piece needs has arrived:
 * the activations of the stage before, or the gradients of the stage behind. Lists:
 *
 *   gpipe        all forwards, then all backwards (Huang et al. 2019)
 *   1f1b         as many forwards as there are stages behind, then one backward, one forward (PipeDream-Flush,
 *                Megatron)
 *   interleaved  several chunks of layers per stage, in groups of as many micro-batches as stages (Narayanan et al.
 *                2021)
 *   zero_bubble  1f1b whose backward gives the inputs' gradient first; the weights' gradient follows as many
 *                micro-batches later as there are stages before (ZB-H1, Qi et al. 2023): all stages hold as much
 *   dualpipe     two directions at once: every device holds the chunks s and pp-1-s, half of the micro-batches enter at
 *                either end (DeepSeek-V3, 2024)
 *
 * Time is found by going round the stages until nothing moves: each piece is placed once. */
#include "timeline/pipeline.h"

#include <math.h>
#include <string.h>

#include "timeline/pipeline_long.h"

/* Pieces that are run one by one: some hundred bytes each. */
static const double most_pieces = 2e6;

typedef struct runner {
    const ft_pipe *p;
    int64_t places;                     /* the model in order */
    double *forward_end, *backward_end; /* [place][micro], -1: not yet */
    ft_piped *out;
    int32_t *next;
    double *free_at, *busy;
} runner;

/* Where chunk c of stage s stands in the model. */
static int64_t place(const ft_pipe *p, int64_t stage, int64_t chunk)
{
    if (p->schedule == FT_DUALPIPE) return chunk == 0 ? stage : p->stages - 1 - stage; /* chunk 0 goes down, 1 up */
    return chunk * p->stages + stage;
}

static double *slot(const runner *r, double *table, int64_t at, int64_t micro)
{
    return &table[at * r->p->micros + micro];
}

/* -- lists ------------------------------------------------------------------------------------- */

typedef struct list {
    const ft_pipe *p;
    ft_pipe_op *at;
    int32_t count;
} list;

static void add(list *l, ft_pipe_kind kind, int64_t chunk, int64_t micro)
{
    l->at[l->count++] = (ft_pipe_op){.kind = kind, .chunk = (int32_t)chunk, .micro = micro, .end = -1};
}

static void list_gpipe(list *l)
{
    for (int64_t m = 0; m < l->p->micros; m++) add(l, FT_PIPE_FORWARD, 0, m);
    for (int64_t m = 0; m < l->p->micros; m++) add(l, FT_PIPE_BACKWARD, 0, m);
}

static void list_1f1b(list *l, int64_t stage)
{
    int64_t micros = l->p->micros, warm = l->p->stages - 1 - stage, f = 0;
    bool split = l->p->schedule == FT_ZERO_BUBBLE;
    if (warm > micros) warm = micros;
    while (f < warm) add(l, FT_PIPE_FORWARD, 0, f++);
    for (int64_t b = 0; b < micros; b++) {
        if (f < micros) add(l, FT_PIPE_FORWARD, 0, f++);
        add(l, split ? FT_PIPE_INPUTS : FT_PIPE_BACKWARD, 0, b);
        if (split && b >= stage) add(l, FT_PIPE_WEIGHTS, 0, b - stage);
    }
    for (int64_t w = micros > stage ? micros - stage : 0; split && w < micros; w++) add(l, FT_PIPE_WEIGHTS, 0, w);
}

/* The k-th piece of an interleaved list: groups of `stages` micro-batches walk all chunks before the next starts. */
static void interleaved_at(const ft_pipe *p, int64_t k, bool backward, int64_t *chunk, int64_t *micro)
{
    int64_t group = k / (p->stages * p->chunks), inside = k % (p->stages * p->chunks);
    *chunk = inside / p->stages;
    if (backward) *chunk = p->chunks - 1 - *chunk;
    *micro = group * p->stages + inside % p->stages;
}

static void list_interleaved(list *l, int64_t stage)
{
    const ft_pipe *p = l->p;
    int64_t all = p->micros * p->chunks, warm = (p->stages - stage - 1) * 2 + (p->chunks - 1) * p->stages, f = 0, b = 0;
    int64_t chunk, micro;
    if (p->micros == p->stages) warm = all;
    if (warm > all) warm = all;
    for (; f < warm; f++) {
        interleaved_at(p, f, false, &chunk, &micro);
        add(l, FT_PIPE_FORWARD, chunk, micro);
    }
    while (b < all) {
        if (f < all) {
            interleaved_at(p, f++, false, &chunk, &micro);
            add(l, FT_PIPE_FORWARD, chunk, micro);
        }
        interleaved_at(p, b++, true, &chunk, &micro);
        add(l, FT_PIPE_BACKWARD, chunk, micro);
    }
}

/* -- dualpipe: the eight steps of the published schedule ------------------------------------------ */

typedef struct dual {
    list *l;
    int64_t half;       /* micro-batches that enter at one end */
    int64_t f[2], b[2]; /* next, by way */
    int32_t *late;      /* weights' gradients not yet done: way * micros + micro */
    int64_t late_from, late_to;
    bool turned; /* a device of the second half takes the ways the other way round */
} dual;

static int way_of(const dual *d, int way) { return d->turned ? 1 - way : way; }

static void dual_forward(dual *d, int way)
{
    int w = way_of(d, way);
    if (d->f[w] < d->half) add(d->l, FT_PIPE_FORWARD, w, w * d->half + d->f[w]), d->f[w]++;
}

static void dual_backward(dual *d, int way, bool split)
{
    int w = way_of(d, way);
    if (d->b[w] >= d->half) return;
    int64_t micro = w * d->half + d->b[w]++;
    add(d->l, split ? FT_PIPE_INPUTS : FT_PIPE_BACKWARD, w, micro);
    if (split) d->late[d->late_to++] = (int32_t)(w * 2 * d->half + micro);
}

/* A forward and a backward of the two ways beside each other: what one sends hides behind what the other computes. */
static void dual_both(dual *d, int way)
{
    int32_t at = d->l->count;
    dual_forward(d, way);
    if (d->l->count > at) d->l->at[at].joined = true;
    dual_backward(d, 1 - way, false);
    if (d->l->count < at + 2) d->l->at[at].joined = false;
}

static void dual_weights(dual *d)
{
    if (d->late_from >= d->late_to) return;
    int64_t which = d->late[d->late_from++];
    add(d->l, FT_PIPE_WEIGHTS, which / (2 * d->half), which % (2 * d->half));
}

static void list_dual(list *l, int64_t stage, int32_t *late)
{
    int64_t stages = l->p->stages, halves = stages / 2, near = stage < stages - 1 - stage ? stage : stages - 1 - stage;
    dual d = {.l = l, .half = l->p->micros / 2, .turned = stage >= halves};
    d.late = late;
    int64_t outside = halves - near - 1;
    for (int64_t i = 0; i < 2 * outside; i++) dual_forward(&d, 0);
    for (int64_t i = 0; i < near + 1; i++) dual_forward(&d, 0), dual_forward(&d, 1);
    for (int64_t i = 0; i < outside; i++) dual_backward(&d, 1, true), dual_weights(&d), dual_forward(&d, 1);
    for (int64_t i = 0; i < d.half - stages + near + 1; i++) {
        if (i == 0 && near == halves - 1)
            dual_forward(&d, 0), dual_backward(&d, 1, false); /* what it needs has just been made here */
        else
            dual_both(&d, 0);
        dual_both(&d, 1);
    }
    for (int64_t i = 0; i < outside; i++) {
        dual_backward(&d, 1, false);
        dual_both(&d, 1);
    }
    bool late_weights = false; /* from the middle on, weights' gradients are put off */
    for (int64_t i = 0; i < near + 1; i++) {
        late_weights |= i == (near + 1) / 2 && near % 2 == 1;
        dual_backward(&d, 1, late_weights);
        late_weights |= i == (near + 1) / 2;
        dual_backward(&d, 0, late_weights);
    }
    for (int64_t i = 0; i < outside; i++) dual_weights(&d), dual_backward(&d, 0, true);
    while (d.late_from < d.late_to) dual_weights(&d);
}

/* -- running ----------------------------------------------------------------------------------- */

/* When what a piece needs is there; -1 while nobody knows. */
static double ready(const runner *r, int64_t stage, const ft_pipe_op *op)
{
    int64_t at = place(r->p, stage, op->chunk);
    double sent = r->p->send_ms;
    if (op->kind == FT_PIPE_WEIGHTS) return 0; /* its stage put it off itself */
    if (op->kind == FT_PIPE_FORWARD) {
        if (at == 0) return 0;
        double end = *slot(r, r->forward_end, at - 1, op->micro);
        return end < 0 ? -1 : end + sent;
    }
    double own = *slot(r, r->forward_end, at, op->micro);
    if (own < 0) return -1;
    if (at == r->places - 1) return own;
    double end = *slot(r, r->backward_end, at + 1, op->micro);
    return end < 0 ? -1 : fmax(own, end + sent);
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

static bool sends_on(const runner *r, int64_t at, ft_pipe_kind kind)
{
    return kind == FT_PIPE_FORWARD ? at < r->places - 1 : kind != FT_PIPE_WEIGHTS && at > 0;
}

static void place_op(runner *r, int64_t stage, ft_pipe_op *op, double start, double end)
{
    const ft_pipe *p = r->p;
    int64_t where = place(p, stage, op->chunk);
    op->start = start;
    op->end = end;
    r->free_at[stage] = end + (sends_on(r, where, op->kind) ? p->send_ms * p->send_share : 0);
    r->busy[stage] += length(p, where, op->kind);
    if (op->kind != FT_PIPE_WEIGHTS)
        *slot(r, op->kind == FT_PIPE_FORWARD ? r->forward_end : r->backward_end, where, op->micro) = end;
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
        double at = ready(r, stage, op), other = op->joined ? ready(r, stage, op + 1) : 0;
        if (at < 0 || other < 0) break;
        double start = fmax(r->free_at[stage], fmax(at, other));
        double ms = length(p, place(p, stage, op->chunk), op->kind);
        if (op->joined) {
            ms += length(p, place(p, stage, op[1].chunk), op[1].kind);
            place_op(r, stage, op, start, start + ms);
            op++;
        }
        place_op(r, stage, op, start, start + ms);
        moved = true;
    }
    return moved;
}

/* Chunks of activations alive at once: made by a forward, given back when both gradients are there. */
static double most_alive(const ft_pipe_op *ops, int32_t count)
{
    int64_t alive = 0, most = 0;
    for (int32_t i = 0; i < count; i++) {
        if (ops[i].kind == FT_PIPE_FORWARD) alive++;
        if (ops[i].kind == FT_PIPE_BACKWARD || ops[i].kind == FT_PIPE_WEIGHTS) alive--;
        if (alive > most) most = alive;
    }
    return (double)most;
}

ft_status ft__pipeline_check(ft_schedule schedule, int64_t stages, int64_t chunks, int64_t micros, ft_error *err)
{
    if (schedule == FT_INTERLEAVED && chunks > 1 && stages > 1 && micros % stages)
        return ft__fail_at(
            err, FT_E_RANGE, "global_batch", 0, 0,
            "an interleaved schedule needs micro-batches in groups of \"pp\" %lld: %lld or %lld of them, "
            "not %lld",
            (long long)stages, (long long)(micros < stages ? stages : micros / stages * stages),
            (long long)(micros / stages + 1) * stages, (long long)micros);
    if (schedule == FT_DUALPIPE && stages > 1 && stages % 2)
        return ft__fail_at(err, FT_E_RANGE, "parallel.pp", 0, 0,
                           "dualpipe pairs the stages: \"pp\" must be even, %lld or %lld, not %lld",
                           (long long)stages - 1, (long long)stages + 1, (long long)stages);
    if (schedule == FT_DUALPIPE && stages > 1 && (micros < 2 * stages || micros % 2))
        return ft__fail_at(err, FT_E_RANGE, "global_batch", 0, 0,
                           "dualpipe needs an even number of micro-batches, at least 2 * pp = %lld; there are %lld",
                           2 * (long long)stages, (long long)micros);
    ft_pipe asked = {.schedule = schedule, .stages = stages, .chunks = chunks, .micros = micros};
    if ((double)stages * (double)chunks * (double)ft__pipeline_listed(&asked) > most_pieces)
        return ft__fail_at(err, FT_E_RANGE, "global_batch", 0, 0,
                           "%lld stages of %lld chunks with %lld micro-batches are too many pieces: at most %.0f",
                           (long long)stages, (long long)chunks, (long long)micros, most_pieces);
    return FT_OK;
}

static ft_status make_lists(const ft_pipe *p, ft_arena *arena, ft_piped *out, ft_error *err)
{
    bool split = p->schedule == FT_ZERO_BUBBLE || p->schedule == FT_DUALPIPE; /* three pieces per micro-batch */
    size_t pieces = (split ? 3 : 2) * (size_t)p->micros * (size_t)p->chunks;
    int32_t *late = ft__arena_array(arena, (size_t)p->micros * 2, sizeof *late);
    for (int64_t s = 0; s < p->stages; s++) {
        out->ops[s] = ft__arena_array(arena, pieces, sizeof **out->ops);
        if (!out->ops[s] || !late) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline schedule");
        list l = {.p = p, .at = out->ops[s]};
        switch (p->schedule) {
        case FT_GPIPE: list_gpipe(&l); break;
        case FT_INTERLEAVED: list_interleaved(&l, s); break;
        case FT_DUALPIPE: list_dual(&l, s, late); break;
        default: list_1f1b(&l, s); break;
        }
        out->op_count[s] = l.count;
        out->in_flight[s] = most_alive(l.at, l.count);
    }
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
    out->in_flight = ft__arena_array(arena, stages, sizeof *out->in_flight);
    out->last_backward = ft__arena_array(arena, stages, sizeof *out->last_backward);
    out->finish = ft__arena_array(arena, stages, sizeof *out->finish);
    out->ops = ft__arena_array(arena, stages, sizeof *out->ops);
    out->op_count = ft__arena_array(arena, stages, sizeof *out->op_count);
    r.forward_end = ft__arena_array(arena, cells, sizeof *r.forward_end);
    r.backward_end = ft__arena_array(arena, cells, sizeof *r.backward_end);
    r.next = ft__arena_array(arena, stages, sizeof *r.next);
    r.free_at = ft__arena_array(arena, stages, sizeof *r.free_at);
    r.busy = ft__arena_array(arena, stages, sizeof *r.busy);
    if (!out->in_flight || !out->last_backward || !out->finish || !out->ops || !out->op_count || !r.forward_end ||
        !r.backward_end || !r.next || !r.free_at || !r.busy)
        return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline of %lld stages and %lld micro-batches",
                        (long long)p->stages, (long long)p->micros);
    for (size_t i = 0; i < cells; i++) r.forward_end[i] = r.backward_end[i] = -1;
    FT_TRY(make_lists(p, arena, out, err));
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
        if (out->finish[s] > out->total_ms) out->total_ms = out->finish[s];
        if (r.busy[s] > r.busy[busiest]) busiest = s;
    }
    out->busy_ms = r.busy[busiest];
    out->bubble_ms = fmax(out->total_ms - out->busy_ms, 0);
    return FT_OK;
}
