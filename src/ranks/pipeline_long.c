/* pipeline_long.c: very many micro-batches.
 *
 * A pipeline that is full does the same over and over: from one micro-batch to the next (interleaved: from one group to
 * the next) every piece is later by the same time. So a long step is run with enough micro-batches to fill, settle and
 * drain it, and what is left out is put in where the run is half over: the pieces behind are that much later. */
#include "ranks/pipeline_long.h"

#include <math.h>

/* GPipe has no such middle: all forwards, then all backwards. One stage alone runs both in turn, whatever the name. */
static bool repeats(const ft_pipe *p) { return p->schedule != FT_GPIPE || p->stages == 1; }

int64_t ft__pipeline_listed(const ft_pipe *p)
{
    int64_t group = 2 * p->stages, enough = (4 * p->stages + 1024 + group - 1) / group * group;
    return repeats(p) && p->micros > enough ? enough : p->micros;
}

/* Time per micro-batch between a quarter of the list and three quarters, over whole groups. */
static double pace(const ft_pipe *p, const ft_pipe_op *ops, int64_t count)
{
    int64_t group = p->schedule == FT_INTERLEAVED ? p->stages : p->schedule == FT_DUALPIPE ? 2 : 1;
    int64_t each = p->schedule == FT_INTERLEAVED ? 2 * p->chunks : p->schedule == FT_ZERO_BUBBLE ? 3 : 2;
    if (ft__schedule_folds(p->schedule)) each = 6;
    int64_t from = count / 4, groups = count / 2 / (each * group);
    return (ops[from + groups * group * each].start - ops[from].start) / (double)(groups * group);
}

/* Dualpipe numbers those that enter at the far end after all others. */
static void renumber(const ft_pipe *p, ft_pipe_op *op, int64_t skipped, bool behind)
{
    if (p->schedule == FT_DUALPIPE)
        op->micro += (skipped / 2) * ((op->chunk == 1) + behind);
    else if (behind)
        op->micro += skipped;
}

ft_status ft__pipeline_lengthen(const ft_pipe *p, int64_t skipped, double *busy, ft_arena *arena, ft_piped *out,
                                ft_error *err)
{
    int64_t busiest = 0, listed = p->micros - skipped;
    double middle = 0;
    out->skipped = skipped;
    out->gap = ft__arena_array(arena, (size_t)p->stages, sizeof *out->gap);
    if (!out->gap) return ft__fail(err, FT_E_MEMORY, "out of memory for a pipeline");
    for (int64_t s = 0; s < p->stages; s++) {
        busy[s] *= (double)p->micros / (double)listed;
        out->hidden_ms[s] *= (double)p->micros / (double)listed;
        double more = out->sent_ms[s] * (double)skipped / (double)listed;
        out->sent_ms[s] += more;
        out->lost_ms[s] += more * p->send_share; /* the pipeline is full there */
        if (busy[s] > busy[busiest]) busiest = s;
        middle = fmax(middle, out->finish[s] / 2);
    }
    double later = (double)skipped * pace(p, out->ops[busiest], out->op_count[busiest]);
    for (int64_t s = 0; s < p->stages; s++) {
        int32_t gap = 0;
        while (gap < out->op_count[s] && out->ops[s][gap].start < middle) gap++;
        out->gap[s] = gap;
        for (int32_t i = 0; i < out->op_count[s]; i++) {
            ft_pipe_op *op = &out->ops[s][i];
            renumber(p, op, skipped, i >= gap);
            if (i < gap) continue;
            op->start += later;
            op->end += later;
        }
        out->finish[s] += later;
        out->last_backward[s] += later;
    }
    return FT_OK;
}
