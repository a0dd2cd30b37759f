/* pipeline_lists.c: what every stage of a schedule does, in order.
 *
 *   gpipe        all forwards, then all backwards (Huang et al. 2019)
 *   1f1b         as many forwards as there are stages behind, then one backward, one forward (PipeDream-Flush,
 *                Megatron)
 *   interleaved  several chunks of layers per stage, in groups of as many micro-batches as stages (Narayanan et al.
 *                2021)
 *   zero_bubble  1f1b whose backward gives the inputs' gradient first; the weights' gradient follows as many
 *                micro-batches later as there are stages before (ZB-H1, Qi et al. 2023): all stages hold as much
 *                with exchanges hidden behind another micro-batch (`join`), one micro-batch more goes ahead and each
 *                forward is joined to the backward after it (Megatron-Core, combined_1f1b.py, and one more in
 *                schedules.py's get_pp_rank_microbatches); so with one stage
 *   v_zero_bubble, v_half, v_min   pipeline_folded.c
 *   dualpipe     two directions at once: every device holds the chunks s and pp-1-s, half of the micro-batches enter at
 *                either end (DeepSeek-V3, 2024) */
#include "ranks/pipeline_lists.h"

/* Where chunk c of stage s stands in the model. */
int64_t ft__pipeline_place(const ft_pipe *p, int64_t stage, int64_t chunk)
{
    if (p->schedule == FT_DUALPIPE) return chunk == 0 ? stage : p->stages - 1 - stage; /* chunk 0 goes down, 1 up */
    return ft__schedule_place(p->schedule, p->stages, stage, chunk);
}

typedef struct list {
    const ft_pipe *p;
    ft_pipe_op *at;
    int32_t count;
} list;

static void add(list *l, ft_pipe_kind kind, int64_t chunk, int64_t micro)
{
    l->at[l->count++] = (ft_pipe_op){.kind = kind, .chunk = (int32_t)chunk, .micro = micro, .end = -1};
}

/* The last two pieces run beside each other. */
static void join_last(list *l)
{
    if (l->p->join) l->at[l->count - 2].joined = true;
}

static void list_gpipe(list *l)
{
    for (int64_t m = 0; m < l->p->micros; m++) add(l, FT_PIPE_FORWARD, 0, m);
    for (int64_t m = 0; m < l->p->micros; m++) add(l, FT_PIPE_BACKWARD, 0, m);
}

static void list_1f1b(list *l, int64_t stage)
{
    int64_t micros = l->p->micros, warm = l->p->stages - 1 - stage + (l->p->join != NULL), f = 0;
    bool split = l->p->schedule == FT_ZERO_BUBBLE;
    if (warm > micros) warm = micros;
    while (f < warm) add(l, FT_PIPE_FORWARD, 0, f++);
    for (int64_t b = 0; b < micros; b++) {
        bool full = f < micros;
        if (full) add(l, FT_PIPE_FORWARD, 0, f++);
        add(l, split ? FT_PIPE_INPUTS : FT_PIPE_BACKWARD, 0, b);
        if (full && !split) join_last(l);
        if (split && b >= stage) add(l, FT_PIPE_WEIGHTS, 0, b - stage);
    }
    for (int64_t w = micros > stage ? micros - stage : 0; split && w < micros; w++) add(l, FT_PIPE_WEIGHTS, 0, w);
}

/* Where an interleaved list stands: groups of `stages` micro-batches walk all chunks before the next starts. */
typedef struct walk {
    int64_t chunk, first, inside; /* of chunks passed, of the group's first micro-batch, inside of the group */
} walk;

static void add_walked(list *l, walk *w, bool backward)
{
    const ft_pipe *p = l->p;
    add(l, backward ? FT_PIPE_BACKWARD : FT_PIPE_FORWARD, backward ? p->chunks - 1 - w->chunk : w->chunk,
        w->first + w->inside);
    if (++w->inside < p->stages) return;
    w->inside = 0;
    if (++w->chunk < p->chunks) return;
    w->chunk = 0;
    w->first += p->stages;
}

/* The last stage begins to go back with its first micro-batch at the model's end: of the last chunk, logits included,
 * it never holds two. Megatron let all go forward first where there were as many micro-batches as stages, until
 * November 2024 (4295be1a; schedules.py, get_pp_rank_microbatches); PyTorch never did (pipelining/schedules.py,
 * _get_warmup_ops).
 *
 * What is sent while the pipeline fills and drains is waited for, also by a Megatron-Core that overlaps the rest: its
 * overlap_p2p_comm_warmup_flush is off unless asked for (schedules.py; Megatron-Bridge's performance guide: "PP
 * send/recv in warmup and flush are exposed by default"). */
static void list_interleaved(list *l, int64_t stage)
{
    const ft_pipe *p = l->p;
    int64_t all = p->micros * p->chunks, warm = (p->stages - stage - 1) * 2 + (p->chunks - 1) * p->stages, f = 0, b = 0;
    walk there = {0}, back = {0};
    if (p->join) warm++;
    if (p->all_ahead && p->micros == p->stages) warm = all;
    if (warm > all) warm = all;
    for (; f < warm; f++) {
        add_walked(l, &there, false);
        l->at[l->count - 1].waits = true;
    }
    for (; b < all; b++) {
        bool drains = f >= all;
        if (!drains) add_walked(l, &there, false), f++;
        add_walked(l, &back, true);
        l->at[l->count - 1].waits = drains;
        if (!drains) join_last(l);
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

/* Activations alive at once: made by a forward, given back when both gradients are there. */
double ft__pipeline_alive(const ft_pipe_op *ops, int32_t count, const double *of_chunk)
{
    double alive = 0, most = 0;
    for (int32_t i = 0; i < count; i++) {
        double one = of_chunk ? of_chunk[ops[i].chunk] : 1;
        if (ops[i].kind == FT_PIPE_FORWARD) alive += one;
        if (ops[i].kind == FT_PIPE_BACKWARD || ops[i].kind == FT_PIPE_WEIGHTS) alive -= one;
        if (alive > most) most = alive;
    }
    return most;
}

ft_status ft__pipeline_lists(const ft_pipe *p, ft_arena *arena, ft_piped *out, ft_error *err)
{
    bool split = p->schedule == FT_ZERO_BUBBLE || p->schedule == FT_DUALPIPE || ft__schedule_folds(p->schedule);
    /* then three pieces per micro-batch */
    size_t pieces = (split ? 3 : 2) * (size_t)p->micros * (size_t)p->chunks;
    int32_t *late = ft__arena_array(arena, (size_t)p->micros * 2, sizeof *late);
    out->in_flight = ft__arena_array(arena, (size_t)p->stages, sizeof *out->in_flight);
    out->ops = ft__arena_array(arena, (size_t)p->stages, sizeof *out->ops);
    out->op_count = ft__arena_array(arena, (size_t)p->stages, sizeof *out->op_count);
    if (!late || !out->in_flight || !out->ops || !out->op_count)
        return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline schedule");
    double *held = p->held ? ft__arena_array(arena, (size_t)p->chunks, sizeof *held) : NULL;
    if (p->held && !held) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline schedule");
    for (int64_t s = 0; s < p->stages; s++) {
        out->ops[s] = ft__arena_bare(arena, pieces, sizeof **out->ops);
        if (!out->ops[s]) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline schedule");
        list l = {.p = p, .at = out->ops[s]};
        switch (p->schedule) {
        case FT_GPIPE: list_gpipe(&l); break;
        case FT_INTERLEAVED: list_interleaved(&l, s); break;
        case FT_DUALPIPE: list_dual(&l, s, late); break;
        case FT_V_ZERO_BUBBLE:
        case FT_V_HALF:
        case FT_V_MIN: ft__pipeline_folded(p, s, late, l.at, &l.count); break;
        default: list_1f1b(&l, s); break;
        }
        out->op_count[s] = l.count;
        for (int64_t c = 0; c < p->chunks && held; c++) held[c] = p->held[ft__pipeline_place(p, s, c)];
        out->in_flight[s] = ft__pipeline_alive(l.at, l.count, held);
    }
    return FT_OK;
}
