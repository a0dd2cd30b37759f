/* gaps.c: what the host did while the GPU had nothing to do. */
#include <stdio.h>
#include <string.h>

#include "trace/gaps_constants.h"
#include "trace/scan.h"

const char *ft__gap_cause_words(ft_gap_cause c)
{
    static const char *const words[FT_GAP_CAUSES] = {[FT_GAP_BETWEEN] = "between kernels of a full queue",
                                                     [FT_GAP_LAUNCH] = "operators take the host longer than the GPU",
                                                     [FT_GAP_PYTHON] = "Python between operators",
                                                     [FT_GAP_LOADER] = "the input pipeline",
                                                     [FT_GAP_SYNC] = "the host had waited for the GPU",
                                                     [FT_GAP_COPY] = "copies between host and GPU"};
    return (unsigned)c < FT_GAP_CAUSES ? words[c] : "";
}

const char *ft__gap_cause_name(ft_gap_cause c)
{
    static const char *const names[FT_GAP_CAUSES] = {"between", "launch", "python", "loader", "sync", "copy"};
    return (unsigned)c < FT_GAP_CAUSES ? names[c] : "";
}

/* -- gaps -------------------------------------------------------------------------------------- */

static bool is_loader(const char *name)
{
    return strstr(name, "DataLoader") != NULL || strstr(name, "dataloader") != NULL;
}

static bool is_step(const char *name) { return !strncmp(name, "ProfilerStep#", 13); }

/* A wait that ended inside the gap, or shortly before it: the GPU had run dry meanwhile. */
static const ft_trace_call *wait_before(const ft_trace_scan *l, int64_t from, int64_t to)
{
    size_t low = 0, high = l->wait_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (l->waits[mid]->start <= to)
            low = mid + 1;
        else
            high = mid;
    }
    for (size_t i = low; i > 0 && i + 4 > low; i--) {
        const ft_trace_call *w = l->waits[i - 1];
        if (w->end >= from - 20000 && w->end <= to) return w;
    }
    return NULL;
}

static double overlap(int64_t a, int64_t b, int64_t from, int64_t to)
{
    int64_t lo = a > from ? a : from, hi = b < to ? b : to;
    return hi > lo ? (double)(hi - lo) : 0;
}

/* What the host did from `from` to `to`: the longest operator or annotation in it. */
static ft_gap_cause explain(const ft_trace_scan *l, int64_t from, int64_t to, const ft_trace_work *next, char *words,
                            size_t room)
{
    const ft_record *r = l->r;
    double span = (double)(to - from), longest = 0;
    uint64_t thread = next->call >= 0 ? r->calls[next->call].thread : next->op >= 0 ? r->ops[next->op].thread : 0;
    const ft_trace_op *best = NULL;
    int32_t at = ft__record_op_begun(r, thread, to);
    bool loader = false;
    /* Backwards from the launch; operators that ended before the gap are followed by others that did too, but one
     * around them all may reach into it. */
    for (int looked = 0; at >= 0 && r->ops[at].thread == thread && looked < 400; at--, looked++) {
        const ft_trace_op *op = &r->ops[at];
        double inside = overlap(op->start, op->end, from, to);
        const char *name = r->names[op->name];
        if (inside <= 0 || is_step(name)) continue;
        if (is_loader(name) && inside > FT_K_GAPS_LOADER_SHARE * span) loader = true;
        bool top = op->parent < 0 || is_step(r->names[r->ops[op->parent].name]) || op->start >= from;
        if (top && (inside > longest || (loader && is_loader(name)))) longest = inside, best = op;
    }
    const ft_trace_call *wait = wait_before(l, from, to);
    const char *name = best ? r->names[best->name] : "";
    if (words) {
        if (best && longest > FT_K_GAPS_NAMED_SHARE * span)
            snprintf(words, room, "%.120s", name);
        else if (best)
            snprintf(words, room, "Python, and %.100s", name);
        else
            snprintf(words, room, "Python");
    }
    if (loader) return FT_GAP_LOADER;
    if (wait && span > FT_K_GAPS_WAIT_NS) {
        if (words) {
            const char *op = wait->op >= 0 ? r->names[r->ops[wait->op].name] : "";
            snprintf(words, room, "after %.40s%s%.60s", r->names[wait->name], *op ? " of " : "", op);
        }
        return FT_GAP_SYNC;
    }
    if (next->kind == FT_EVENT_MEMCPY) return FT_GAP_COPY;
    return longest > FT_K_GAPS_NAMED_SHARE * span || span < FT_K_GAPS_PYTHON_NS ? FT_GAP_LAUNCH : FT_GAP_PYTHON;
}

void ft__trace_scan_gap(ft_trace_scan *l, int64_t from, int64_t to, const ft_trace_work *next)
{
    ft_busy *b = l->out;
    double ms = (double)(to - from) * 1e-6;
    if (!(ms > 0)) return;
    int at = b->gap_count;
    while (at > 0 && b->gaps[at - 1].ms < ms) at--;
    bool kept = at < FT_TRACE_GAPS && ms > FT_K_GAPS_SHOWN_MS;
    char words[160] = "";
    /* Short ones are too many to be looked into one by one, and have one cause. */
    bool queued = next->call >= 0 && l->r->calls[next->call].end <= from && ms < FT_K_GAPS_QUEUED_MS;
    ft_gap_cause cause = queued                    ? FT_GAP_BETWEEN
                         : ms < FT_K_GAPS_SHOWN_MS ? FT_GAP_LAUNCH
                                                   : explain(l, from, to, next, kept ? words : NULL, sizeof words);
    b->cause_ms[cause] += ms;
    if (!kept) return;
    if (b->gap_count < FT_TRACE_GAPS) b->gap_count++;
    for (int i = b->gap_count - 1; i > at; i--) b->gaps[i] = b->gaps[i - 1];
    ft_gap *g = &b->gaps[at];
    g->ms = ms;
    g->at_ms = (double)(from - l->r->steps[0].start) * 1e-6;
    g->step = next->step;
    g->cause = cause;
    snprintf(g->host, sizeof g->host, "%s", words);
    const char *name = next->op >= 0 ? l->r->names[l->r->ops[next->op].name] : ft__record_name(l->r, next->name);
    snprintf(g->next, sizeof g->next, "%.90s", name);
}
