/* pipeline.c: running a schedule.
 *
 * Every stage has a list of work. It takes the next piece when the stage is free and what the piece needs has arrived:
 * the activations of the stage before, or the gradients of the stage behind. Lists:
 *
 *   gpipe        all forwards, then all backwards (Huang et al. 2019)
 *   1f1b         as many forwards as there are stages behind, then one backward, one forward (PipeDream-Flush, Megatron)
 *   interleaved  several chunks of layers per stage, in groups of as many micro-batches as stages (Narayanan et al. 2021)
 *   zero_bubble  1f1b whose backward gives the inputs' gradient first and the weights' gradient where the stage would
 *                wait (ZB-H1, Qi et al. 2023)
 *   dualpipe     two directions at once: every device holds the chunks s and pp-1-s, half of the micro-batches enter at
 *                either end (DeepSeek-V3, 2024)
 *
 * Time is found by going round the stages until nothing moves: each piece is placed once. */
#include "timeline/pipeline.h"

#include <math.h>
#include <string.h>

typedef struct runner {
    const ft_pipe *p;
    int64_t virtual_stages;     /* stages * chunks: the model in order */
    double *forward_end, *backward_end; /* [virtual stage][micro], -1: not yet */
    ft_piped *out;
    int32_t *next;
    double *free_at, *busy;
    double *owed;               /* weights' gradients that wait for an idle moment */
} runner;

/* Where chunk c of stage s stands in the model. */
static int64_t place(const runner *r, int64_t stage, int64_t chunk, int64_t micro)
{
    const ft_pipe *p = r->p;
    if (p->schedule == FT_DUALPIPE) { /* chunk 0 goes down, chunk 1 up; a micro-batch takes one of the ways */
        (void)micro;
        return chunk == 0 ? stage : p->stages - 1 - stage;
    }
    return chunk * p->stages + stage;
}

static double *slot(const runner *r, double *table, int64_t at, int64_t micro) { return &table[at * r->p->micros + micro]; }

/* -- lists ------------------------------------------------------------------------------------- */

static void add(ft_pipe_op *list, int32_t *count, ft_pipe_kind kind, int64_t chunk, int64_t micro)
{
    list[(*count)++] = (ft_pipe_op){.kind = kind, .chunk = (int32_t)chunk, .micro = (int32_t)micro, .end = -1};
}

static void list_gpipe(const ft_pipe *p, ft_pipe_op *list, int32_t *n)
{
    for (int64_t m = 0; m < p->micros; m++) add(list, n, FT_PIPE_FORWARD, 0, m);
    for (int64_t m = p->micros - 1; m >= 0; m--) add(list, n, FT_PIPE_BACKWARD, 0, m);
}

static void list_1f1b(const ft_pipe *p, int64_t stage, ft_pipe_op *list, int32_t *n)
{
    int64_t warm = p->stages - 1 - stage, f = 0, b = 0;
    if (warm > p->micros) warm = p->micros;
    while (f < warm) add(list, n, FT_PIPE_FORWARD, 0, f++);
    while (b < p->micros) {
        if (f < p->micros) add(list, n, FT_PIPE_FORWARD, 0, f++);
        add(list, n, FT_PIPE_BACKWARD, 0, b++);
    }
}

/* The k-th piece of an interleaved list: groups of `stages` micro-batches walk all chunks before the next group starts. */
static void interleaved_at(const ft_pipe *p, int64_t k, bool backward, int64_t *chunk, int64_t *micro)
{
    int64_t group = k / (p->stages * p->chunks), inside = k % (p->stages * p->chunks);
    *chunk = inside / p->stages;
    if (backward) *chunk = p->chunks - 1 - *chunk;
    *micro = group * p->stages + inside % p->stages;
}

static void list_interleaved(const ft_pipe *p, int64_t stage, ft_pipe_op *list, int32_t *n)
{
    int64_t all = p->micros * p->chunks, warm = (p->stages - stage - 1) * 2 + (p->chunks - 1) * p->stages, f = 0, b = 0;
    int64_t chunk, micro;
    if (p->micros == p->stages) warm = all;
    if (warm > all) warm = all;
    for (; f < warm; f++) {
        interleaved_at(p, f, false, &chunk, &micro);
        add(list, n, FT_PIPE_FORWARD, chunk, micro);
    }
    while (b < all) {
        if (f < all) {
            interleaved_at(p, f++, false, &chunk, &micro);
            add(list, n, FT_PIPE_FORWARD, chunk, micro);
        }
        interleaved_at(p, b++, true, &chunk, &micro);
        add(list, n, FT_PIPE_BACKWARD, chunk, micro);
    }
}

/* Both directions alternate; each way is a 1f1b of half of the micro-batches over the same stages. */
static void list_dual(const ft_pipe *p, int64_t stage, ft_pipe_op *list, int32_t *n)
{
    int64_t half = (p->micros + 1) / 2, f[2] = {0, half}, b[2] = {0, half}, end[2] = {half, p->micros};
    int64_t warm[2] = {p->stages - 1 - stage, stage};
    int way = warm[0] >= warm[1] ? 0 : 1;
    while (b[0] < end[0] || b[1] < end[1]) {
        int32_t before = *n;
        for (int k = 0; k < 2; k++, way = 1 - way) {
            int64_t start = way ? half : 0;
            if (f[way] < end[way] && f[way] - start <= warm[way] + (b[way] - start)) add(list, n, FT_PIPE_FORWARD, way, f[way]++);
            if (b[way] < end[way] && (f[way] - b[way] > warm[way] || f[way] == end[way]))
                add(list, n, FT_PIPE_BACKWARD, way, b[way]++);
        }
        if (*n > before) continue; /* neither way may go on by the rule: the one with more left does */
        way = end[0] - f[0] >= end[1] - f[1] ? 0 : 1;
        if (f[way] < end[way])
            add(list, n, FT_PIPE_FORWARD, way, f[way]++);
        else
            add(list, n, FT_PIPE_BACKWARD, b[0] < end[0] ? 0 : 1, b[b[0] < end[0] ? 0 : 1]++);
    }
}

/* -- running ----------------------------------------------------------------------------------- */

/* When what a piece needs is there; -1 while nobody knows. */
static double ready(const runner *r, int64_t stage, const ft_pipe_op *op)
{
    int64_t at = place(r, stage, op->chunk, op->micro);
    double sent = r->p->send_ms;
    if (op->kind == FT_PIPE_FORWARD) {
        if (at == 0) return 0;
        double end = *slot(r, r->forward_end, at - 1, op->micro);
        return end < 0 ? -1 : end + sent;
    }
    double own = *slot(r, r->forward_end, at, op->micro);
    if (own < 0) return -1;
    if (at == r->virtual_stages - 1) return own;
    double end = *slot(r, r->backward_end, at + 1, op->micro);
    return end < 0 ? -1 : fmax(own, end + sent);
}

static bool advance(runner *r, int64_t stage)
{
    const ft_pipe *p = r->p;
    ft_pipe_op *list = r->out->ops[stage];
    bool split = p->schedule == FT_ZERO_BUBBLE || p->schedule == FT_DUALPIPE, moved = false;
    while (r->next[stage] < r->out->op_count[stage]) {
        ft_pipe_op *op = &list[r->next[stage]];
        double at = ready(r, stage, op);
        if (at < 0) break;
        if (split && at > r->free_at[stage] && r->owed[stage] > 0) { /* an idle moment: weights' gradients */
            double done = fmin(r->owed[stage], at - r->free_at[stage]);
            r->owed[stage] -= done;
            r->free_at[stage] += done;
            r->busy[stage] += done;
        }
        double whole = op->kind == FT_PIPE_FORWARD ? p->forward[stage] : p->backward[stage];
        double later = split && op->kind == FT_PIPE_BACKWARD ? whole * p->weight_share : 0;
        op->start = fmax(r->free_at[stage], at);
        op->end = op->start + whole - later;
        r->owed[stage] += later;
        r->free_at[stage] = op->end;
        r->busy[stage] += whole - later;
        *slot(r, op->kind == FT_PIPE_FORWARD ? r->forward_end : r->backward_end, place(r, stage, op->chunk, op->micro),
              op->micro) = op->end;
        if (op->kind == FT_PIPE_BACKWARD) r->out->last_backward[stage] = op->start;
        r->next[stage]++;
        moved = true;
    }
    return moved;
}

/* Chunks of activations alive at once: made by a forward, given back by its backward. */
static int64_t most_alive(const ft_pipe_op *list, int32_t count)
{
    int64_t alive = 0, most = 0;
    for (int32_t i = 0; i < count; i++) {
        alive += list[i].kind == FT_PIPE_FORWARD ? 1 : -1;
        if (alive > most) most = alive;
    }
    return most;
}

ft_status ft__pipeline_run(const ft_pipe *p, ft_arena *arena, ft_piped *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    size_t stages = (size_t)p->stages, pieces = 2 * (size_t)p->micros * (size_t)p->chunks;
    runner r = {.p = p, .out = out, .virtual_stages = p->stages * p->chunks};
    if (p->schedule == FT_DUALPIPE) r.virtual_stages = p->stages;
    size_t cells = (size_t)r.virtual_stages * (size_t)p->micros;
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
    r.owed = ft__arena_array(arena, stages, sizeof *r.owed);
    if (!out->in_flight || !out->last_backward || !out->finish || !out->ops || !out->op_count || !r.forward_end ||
        !r.backward_end || !r.next || !r.free_at || !r.busy || !r.owed)
        return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline of %lld stages and %lld micro-batches",
                        (long long)p->stages, (long long)p->micros);
    for (size_t i = 0; i < cells; i++) r.forward_end[i] = r.backward_end[i] = -1;
    for (int64_t s = 0; s < p->stages; s++) {
        out->ops[s] = ft__arena_array(arena, pieces, sizeof **out->ops);
        if (!out->ops[s]) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline schedule");
        switch (p->schedule) {
        case FT_GPIPE: list_gpipe(p, out->ops[s], &out->op_count[s]); break;
        case FT_INTERLEAVED: list_interleaved(p, s, out->ops[s], &out->op_count[s]); break;
        case FT_DUALPIPE: list_dual(p, s, out->ops[s], &out->op_count[s]); break;
        default: list_1f1b(p, s, out->ops[s], &out->op_count[s]); break;
        }
        out->in_flight[s] = most_alive(out->ops[s], out->op_count[s]);
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int64_t s = 0; s < p->stages; s++) moved |= advance(&r, s);
        for (int64_t s = p->stages - 1; s >= 0; s--) moved |= advance(&r, s);
    }
    int64_t last = 0;
    for (int64_t s = 0; s < p->stages; s++) {
        if (r.next[s] < out->op_count[s])
            return ft__fail(err, FT_E_BUG, "the %s schedule of %lld stages and %lld micro-batches stopped: please report it",
                            ft__schedule_name(p->schedule), (long long)p->stages, (long long)p->micros);
        out->finish[s] = r.free_at[s] + r.owed[s];
        r.busy[s] += r.owed[s];
        if (out->finish[s] > out->finish[last]) last = s;
    }
    int64_t busiest = 0;
    for (int64_t s = 0; s < p->stages; s++)
        if (r.busy[s] > r.busy[busiest]) busiest = s;
    out->total_ms = out->finish[last];
    out->busy_ms = r.busy[busiest];
    out->bubble_ms = fmax(out->total_ms - out->busy_ms, 0);
    return FT_OK;
}
