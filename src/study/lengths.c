/* lengths.c: the mean of steps whose lengths vary.
 *
 * Steps of a few lengths are forecast, times in between are on straight lines, and the mean is taken over the
 * distribution of what batches are filled up to. The answer is a step of the length that takes as long as that mean:
 * its kernels, phases and advice are those of a real step. Where data ranks wait for each other the slowest counts: of
 * every micro-batch where layers exchange weights (ZeRO's third stage, stages of a pipeline), else of their sums.
 *
 * Memory is that of the longest batch of a run. What the allocator reserves grows with every batch that is longer
 * than all before: a few runs' records are put through it, and the mean is taken. Batches in between find blocks
 * that are large enough and change next to nothing: over 1,500 batches of five requests the records alone reserve
 * the same within a hundredth, where all weights are trained a tenth less. */
#include "study/lengths.h"

#include <math.h>
#include <stdio.h>

#include "memory/varied.h"
#include "memory/verdict.h"
#include "study/lengths_runs_constants.h"

enum { TEN = 10, GRID = 6, REFINED = 5, NODES = 64, RUNS = 4, RECORDS = 24 };

typedef struct sums {
    double at[GRID + REFINED], ms[GRID + REFINED], flops[GRID + REFINED], executed[GRID + REFINED];
    int count;
} sums;

/* -- what is asked at one length --------------------------------------------------------------- */

static ft_status ask(const ft_context *ft, ft_scratch *s, const ft_model_request *of, int64_t seq, double quantile,
                     ft_step *step, ft_error *err)
{
    ft_model_request r = *of;
    ft_step_view view = {.quantile = quantile};
    ft_graph *g = NULL;
    r.work.seq = seq;
    r.lengths.given = false;
    FT_TRY(ft__model_request_check(&r, err));
    FT_TRY(ft__scratch_empty(s, err));
    return ft__request_forecast(ft, s, &r, &view, step, &g, err);
}

/* On straight lines through the lengths that were asked, also beyond the last. */
static double on_lines(const sums *g, const double *y, double x)
{
    if (g->count == 1) return y[0];
    int i = 1;
    while (i < g->count - 1 && g->at[i] < x) i++;
    return y[i - 1] + (y[i] - y[i - 1]) * (x - g->at[i - 1]) / (g->at[i] - g->at[i - 1]);
}

/* The length at which a time is reached. */
static double length_of(const sums *g, double ms)
{
    int i = 1;
    while (i < g->count - 1 && g->ms[i] < ms) i++;
    const double rise = g->ms[i] - g->ms[i - 1];
    if (!(rise > 0)) return g->at[i];
    return g->at[i - 1] + (g->at[i] - g->at[i - 1]) * (ms - g->ms[i - 1]) / rise;
}

/* -- time -------------------------------------------------------------------------------------- */

/* Ranks that wait for each other's micro-batches: the longest of all of theirs is what a batch is filled up to. */
static int64_t together(const ft_model_request *r)
{
    const ft_parallel *p = &r->parallel;
    const bool always = p->zero >= 3 || p->pp > 1 || r->work.accumulate <= 1;
    return always ? p->dp : 1;
}

/* One more length, in its place. */
static ft_status add_length(const ft_context *ft, ft_scratch *s, const ft_model_request *r, double quantile, double at,
                            sums *g, ft_error *err)
{
    ft_step step;
    int i = g->count;
    FT_TRY(ask(ft, s, r, (int64_t)at, quantile, &step, err));
    for (; i > 0 && g->at[i - 1] > at; i--) {
        g->at[i] = g->at[i - 1];
        g->ms[i] = g->ms[i - 1];
        g->flops[i] = g->flops[i - 1];
        g->executed[i] = g->executed[i - 1];
    }
    g->at[i] = at;
    g->ms[i] = step.step_ms;
    g->flops[i] = step.model_flops;
    g->executed[i] = step.executed_flops;
    g->count++;
    return FT_OK;
}

static ft_status lay_grid(const ft_context *ft, ft_scratch *s, const ft_model_request *r, double quantile, sums *g,
                          ft_error *err)
{
    const ft_workload *w = &r->work;
    for (int i = 0; i < GRID; i++) { /* closer towards the ends */
        const double place = (1 - cos(acos(-1) * (i + 0.5) / GRID)) / 2;
        const double at = ft__mix_padded(&r->lengths, w->seq, w->batch, place);
        if (g->count > 0 && at <= g->at[g->count - 1]) continue;
        FT_TRY(add_length(ft, s, r, quantile, at, g, err));
    }
    return FT_OK;
}

static void average(const ft_model_request *r, const sums *g, ft_lengths_view *v)
{
    const ft_workload *w = &r->work;
    const int64_t waiting = together(r);
    const double micros = fmax((double)w->accumulate, 1), ranks = (double)r->parallel.dp;
    double ms = 0, squares = 0, slowest = 0, flops = 0, executed = 0;
    v->padded = 0;
    for (int i = 0; i < NODES; i++) {
        const double p = (i + 0.5) / NODES, x = ft__mix_padded(&r->lengths, w->seq, w->batch, p);
        const double own = on_lines(g, g->ms, x);
        ms += own / NODES;
        squares += own * own / NODES;
        flops += on_lines(g, g->flops, x) / NODES;
        executed += on_lines(g, g->executed, x) / NODES;
        v->padded += x / NODES;
        slowest += on_lines(g, g->ms, ft__mix_padded(&r->lengths, w->seq, w->batch * waiting, p)) / NODES;
    }
    const double sd = sqrt(fmax(squares - ms * ms, 0) / micros);
    double mean = slowest;
    if (waiting == 1 && ranks > 1) /* the largest of so many normal sums, by Blom's places */
        mean += sd * ft__normal_quantile((ranks - FT_K_LENGTHS_RUNS_BLOM) / (ranks + 1 - 2 * FT_K_LENGTHS_RUNS_BLOM));
    mean = fmax(mean, ms);
    v->waits_ms = mean - ms;
    v->sd_ms = sd;
    const double decile = ft__normal_quantile(1 - 1.0 / TEN), one = micros * ranks <= 1;
    v->p10_ms = one ? on_lines(g, g->ms, ft__mix_padded(&r->lengths, w->seq, w->batch, 1.0 / TEN)) : mean - decile * sd;
    v->p90_ms = one ? on_lines(g, g->ms, ft__mix_padded(&r->lengths, w->seq, w->batch, 1 - 1.0 / TEN))
                    : mean + decile * sd;
    v->p10_ms = fmax(v->p10_ms, g->ms[0]);
    /* Where time hardly depends on length, the mean length is the step's. */
    const bool flat = fabs(on_lines(g, g->ms, v->padded) / mean - 1) < FT_K_LENGTHS_RUNS_FLAT;
    const double step = (double)r->lengths.multiple, x = fmax(flat ? v->padded : length_of(g, mean), 1);
    v->typical = (int64_t)(step > 1 ? floor(x / step + 0.5) * step : floor(x + 0.5));
    if (v->typical < 1) v->typical = 1;
    v->flops = flops / on_lines(g, g->flops, (double)v->typical);
    v->executed = executed / on_lines(g, g->executed, (double)v->typical);
}

static bool was_asked(const sums *g, double at)
{
    for (int i = 0; i < g->count; i++)
        if (g->at[i] == at) return true;
    return false;
}

/* Lines between two lengths miss where a step begins to wait for its kernels, not for the host: the length that was
 * found is asked, too, until it takes as long as the mean. */
static ft_status settle(const ft_context *ft, ft_scratch *s, const ft_model_request *r, double quantile, sums *g,
                        ft_lengths_view *v, ft_error *err)
{
    FT_TRY(lay_grid(ft, s, r, quantile, g, err));
    average(r, g, v);
    for (int i = 0; i < REFINED && !was_asked(g, (double)v->typical); i++) {
        FT_TRY(add_length(ft, s, r, quantile, (double)v->typical, g, err));
        average(r, g, v);
    }
    return FT_OK;
}

/* -- memory ------------------------------------------------------------------------------------ */

/* Evenly spread over runs and draws (Roberts' sequence in two dimensions): equal requests have equal runs. */
static double draw(int run, int n, double step)
{
    const double x = (run + 0.5) / RUNS + (n + 1) * step;
    return x - floor(x);
}

/* Lengths of the batches of one run that are longer than all before, the first one twice: states are made at the end of
 * the first step. Of sequences that were sorted the longest batch is the first. */
static int records(const ft_model_request *r, double batches, int run, double *out)
{
    const ft_workload *w = &r->work;
    double level = draw(run, 0, FT_K_LENGTHS_RUNS_STEP_FIRST), seen = 1;
    int count = 0;
    if (r->lengths.batching == FT_BATCH_BUCKET && w->batch > 1) level = 1;
    out[count++] = ft__mix_padded(&r->lengths, w->seq, w->batch, level);
    for (int n = 1; count < RECORDS && seen <= batches; n++) {
        out[count++] = ft__mix_padded(&r->lengths, w->seq, w->batch, level);
        if (level >= 1) break;
        seen += ceil(log(1 - draw(run, n, FT_K_LENGTHS_RUNS_STEP_SECOND)) / log(level)); /* until one is longer */
        level += (1 - level) * draw(run, n, FT_K_LENGTHS_RUNS_STEP_FIRST);
    }
    return count;
}

/* Graphs of the shortest batch, of the longest, and of one in between. False: there is none. */
static bool three_lengths(const ft_model_request *r, double shortest, double longest, ft_varied *v)
{
    const double step = (double)r->lengths.multiple;
    v->at[0] = shortest;
    v->at[1] = floor((shortest + longest) / 2 / step) * step;
    v->at[2] = longest;
    return v->at[0] < v->at[1] && v->at[1] < v->at[2];
}

/* Reserved beyond the peak, in the mean over some runs; negative: not known. */
static ft_status pile_up(ft_scratch *s, const ft_model_request *r, int64_t longest, double batches, double *beyond,
                         ft_error *err)
{
    double lengths[RUNS][RECORDS], shortest = (double)longest, sum = 0;
    int counts[RUNS];
    ft_varied v = {0};
    *beyond = -1;
    for (int run = 0; run < RUNS; run++) {
        counts[run] = records(r, batches, run, lengths[run]);
        for (int i = 0; i < counts[run]; i++) {
            lengths[run][i] = fmin(lengths[run][i], (double)longest);
            shortest = fmin(shortest, lengths[run][i]);
        }
    }
    if (!three_lengths(r, shortest, (double)longest, &v)) return FT_OK;
    FT_TRY(ft__scratch_empty(s, err));
    for (int i = 0; i < FT_VARIED_GRAPHS; i++) {
        ft_graph *g = NULL;
        v.work[i] = r->work;
        v.work[i].seq = (int64_t)v.at[i];
        FT_TRY(ft__model_graph(r->arch, &v.work[i], s->arena, &g, err));
        v.graph[i] = g;
    }
    for (int run = 0; run < RUNS; run++) {
        double more;
        v.lengths = lengths[run];
        v.steps = counts[run];
        FT_TRY(ft__varied_beyond(&v, r->device, &more, err));
        if (more < 0) return FT_OK;
        sum += more;
    }
    *beyond = sum / RUNS;
    return FT_OK;
}

static ft_status hold(const ft_context *ft, ft_scratch *s, const ft_model_request *r, double quantile,
                      ft_lengths_view *v, ft_error *err)
{
    const ft_workload *w = &r->work;
    const ft_parallel *p = &r->parallel;
    const double batches = fmax(r->lengths.samples * v->kept / ((double)w->batch * (double)p->dp), 1);
    ft_step step;
    v->longest = (int64_t)ft__mix_padded(&r->lengths, w->seq, w->batch, pow(0.5, 1 / batches));
    FT_TRY(ask(ft, s, r, v->longest, quantile, &step, err));
    v->memory = step.memory;
    v->memory.remedy = "";
    snprintf(v->peak_block, sizeof v->peak_block, "%s", step.memory.peak_block);
    snprintf(v->peak_node, sizeof v->peak_node, "%s", step.memory.peak_node);
    double beyond = -1;
    const bool whole = p->tp == 1 && p->pp == 1 && p->zero < 3 && p->ep == 1; /* a rank's tensors are a GPU's alone */
    if (whole && v->memory.peak_bytes < v->memory.capacity_bytes)
        FT_TRY(pile_up(s, r, v->longest, batches, &beyond, err));
    const double alone = v->memory.reserved_bytes - v->memory.peak_bytes;
    if (beyond > alone) v->memory.reserved_bytes = v->memory.peak_bytes + beyond;
    ft__judge(&v->memory, w);
    return FT_OK;
}

ft_status ft__lengths_of(const ft_context *ft, ft_scratch *s, const ft_model_request *r, double quantile,
                         ft_lengths_view *out, ft_error *err)
{
    *out = (ft_lengths_view){0};
    if (!r->lengths.given) return FT_OK;
    const int64_t seq = r->work.seq;
    sums grid = {0};
    out->mean = ft__mix_mean(&r->lengths, seq);
    out->kept = ft__mix_kept(&r->lengths, seq);
    if (r->ask != FT_ASK_MEMORY) {
        FT_TRY(settle(ft, s, r, quantile, &grid, out, err));
        out->fresh = ft__new_lengths(r, out->kept);
    } else {
        for (int i = 0; i < NODES; i++)
            out->padded += ft__mix_padded(&r->lengths, seq, r->work.batch, (i + 0.5) / NODES) / NODES;
        out->typical = (int64_t)floor(out->padded + 0.5);
    }
    out->useful = fmin(out->mean / out->padded, 1);
    return hold(ft, s, r, quantile, out, err);
}

void ft__lengths_apply(const ft_lengths_view *v, ft_step *step)
{
    if (v->typical < 1) return;
    step->memory = v->memory;
    step->memory.peak_block = v->peak_block;
    step->memory.peak_node = v->peak_node;
    if (!(step->step_ms > 0)) return;
    step->tokens_per_s *= v->padded / (double)v->typical;
    step->model_flops *= v->flops;
    step->model_tflops *= v->flops;
    step->mfu *= v->flops;
    step->executed_flops *= v->executed;
    step->hfu *= v->executed;
}
