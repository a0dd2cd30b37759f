/* pipeline_folded.c: V schedules (Qi et al. 2024, Pipeline Parallelism with Controllable Memory).
 *
 * The model goes down the stages and back up: stage s has places s and 2 p - 1 - s, so that what a micro-batch leaves
 * on a stage waits long in one of its chunks and briefly in the other, and every stage holds as much as the others. The
 * backward pass is halved: the inputs' gradient goes on at once, the weights' fills what would be a bubble.
 *
 * A schedule is one micro-batch's way, repeated every six moments: two chunks, three pieces each. Going down and up,
 * and back, it spends so many moments on every stage; the more, the less a late piece holds up others, and the more
 * waits: one each on four ways are 4 p moments of 6, two thirds of p chunks, a third of what 1f1b's first stage holds
 * (v_min); six are half of it (v_half), twelve all of it (v_zero_bubble). Where the ways turn they wait until no two
 * pieces of a stage fall on one moment of the six; weights' gradients take the moments that are left. pipeline.c runs
 * the lists with their real times. */
#include "ranks/pipeline_lists.h"

enum { WAYS = 4, PIECES = 6 };

/* Moments per stage: down, up, and back down and up. */
static const int64_t paces[][WAYS] = {
    [0] = {2, 4, 2, 4}, /* FT_V_ZERO_BUBBLE, the first of them */
    [FT_V_HALF - FT_V_ZERO_BUBBLE] = {1, 2, 1, 2},
    [FT_V_MIN - FT_V_ZERO_BUBBLE] = {1, 1, 1, 1},
};
static const ft_pipe_kind kinds[WAYS] = {FT_PIPE_FORWARD, FT_PIPE_FORWARD, FT_PIPE_INPUTS, FT_PIPE_INPUTS};
static const int32_t chunks[WAYS] = {0, 1, 1, 0};

/* When the first micro-batch comes to stage 0 on each of its ways. */
typedef struct pattern {
    const int64_t *pace;
    int64_t at[WAYS];
} pattern;

/* Down and back down later on every stage, up and back up earlier. */
static int64_t moment(const pattern *w, int way, int64_t stage)
{
    return w->at[way] + (way % 2 ? -1 : 1) * w->pace[way] * stage;
}

static bool apart(const pattern *w, int64_t stages)
{
    for (int64_t s = 0; s < stages; s++)
        for (int i = 1; i < WAYS; i++)
            for (int k = 0; k < i; k++)
                if ((moment(w, i, s) - moment(w, k, s)) % PIECES == 0) return false;
    return true;
}

/* The turns with the least waiting of which no two pieces meet; there is one within six moments at each. */
static pattern find(const ft_pipe *p)
{
    pattern best = {.pace = paces[p->schedule - FT_V_ZERO_BUBBLE]}, w = best;
    const int64_t way = p->stages - 1;
    int64_t least = -1;
    for (int64_t turn = 0; turn < PIECES * PIECES * PIECES; turn++) {
        w.at[1] = (w.pace[0] + w.pace[1]) * way + 1 + turn % PIECES;
        w.at[2] = w.at[1] + 1 + turn / PIECES % PIECES;
        w.at[3] = w.at[2] + (w.pace[2] + w.pace[3]) * way + 1 + turn / PIECES / PIECES;
        const int64_t waits = w.at[3] + w.at[2] - w.at[1];
        if ((least >= 0 && waits >= least) || !apart(&w, p->stages)) continue;
        least = waits;
        best = w;
    }
    return best;
}

typedef struct folder {
    ft_pipe_op *at;
    int32_t count;
    int32_t *late; /* chunks whose weights' gradients wait, in order */
    int64_t late_from, late_to, weights[2];
} folder;

static void add(folder *f, ft_pipe_kind kind, int32_t chunk, int64_t micro)
{
    f->at[f->count++] = (ft_pipe_op){.kind = kind, .chunk = chunk, .micro = micro, .end = -1};
    if (kind == FT_PIPE_INPUTS) f->late[f->late_to++] = chunk;
}

static void add_weights(folder *f)
{
    if (f->late_from >= f->late_to) return;
    const int32_t chunk = f->late[f->late_from++];
    add(f, FT_PIPE_WEIGHTS, chunk, f->weights[chunk]++);
}

void ft__pipeline_folded(const ft_pipe *p, int64_t stage, int32_t *late, ft_pipe_op *ops, int32_t *count)
{
    const pattern w = find(p);
    folder f = {.at = ops};
    f.late = late;
    const int64_t end = moment(&w, WAYS - 1, stage) + PIECES * p->micros;
    for (int64_t t = 0; t < end; t++) {
        int way = 0;
        int64_t since = 0;
        for (; way < WAYS; way++) {
            since = t - moment(&w, way, stage);
            if (since >= 0 && since % PIECES == 0 && since / PIECES < p->micros) break;
        }
        if (way < WAYS)
            add(&f, kinds[way], chunks[way], since / PIECES);
        else
            add_weights(&f);
    }
    while (f.late_from < f.late_to) add_weights(&f);
    *count = f.count;
}
