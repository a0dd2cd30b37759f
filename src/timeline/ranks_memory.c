/* ranks_memory.c: what one rank holds, and the nearest layout in which it fits.
 *
 * Weights, gradients and optimizer states are sharded over the ranks that hold the same parameters (experts: fewer of
 * them); activations live as often as the schedule has micro-batches in flight. Beside them: parameters gathered for
 * the layer that runs and the next one, gradients on their way, communicators. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "timeline/ranks.h"

/* NCCL's buffers and proxies, beside the allocator, per kind of group in use. */
static const double communicator_bytes = 0.25 * 1073741824.0;

static void add_parts(ft_memory *to, const ft_memory *from, double times)
{
    to->weights_bytes += times * from->weights_bytes;
    to->gradients_bytes += times * from->gradients_bytes;
    to->optimizer_bytes += times * from->optimizer_bytes;
}

void ft__ranks_share_memory(const ft_ranks *r, const ft_stage *s, const ft_stage *paired, double in_flight,
                            ft_memory *out)
{
    const ft_parallel *p = r->parallel;
    double before = s->step.memory.peak_bytes, parts, dense = s->dense, expert = s->expert;
    *out = s->step.memory;
    parts = out->weights_bytes + out->gradients_bytes + out->optimizer_bytes;
    if (paired) { /* dualpipe: another stage's parameters beside its own */
        add_parts(out, &paired->step.memory, 1);
        dense += paired->dense;
        expert += paired->expert;
    }
    bool several = p->dp * p->cp > 1, training = r->work->task == FT_TRAIN;
    if (several && training) {
        double kept = ft__ranks_kept(p, dense, expert);
        if (p->zero >= 1) out->optimizer_bytes *= kept;
        if (p->zero >= 2) out->gradients_bytes *= kept;
        if (p->zero >= 3) out->weights_bytes *= kept;
        double bucket = p->bucket_bytes > 0 ? p->bucket_bytes : 25.0 * 1048576, gathered = 0;
        if (p->zero >= 3) gathered = (p->keep_gathered ? s->step.memory.weights_bytes : 2 * s->layer_bytes);
        /* The layer whose gradients are complete and the one whose are being made, before they are sharded. */
        double passing = p->zero >= 2 ? 2 * s->layer_gradient_bytes : fmin(2 * bucket, s->step.memory.gradients_bytes);
        /* Megatron's buckets are parts of the gradients' own buffer. */
        if (p->zero < 2 && r->work->execution == FT_RUN_FUSED) passing = 0;
        out->communication_bytes = gathered + passing;
    }
    double more = s->saved_bytes * fmax(in_flight - 1, 0);
    out->activations_bytes += more;
    double change = more + out->communication_bytes - parts + out->weights_bytes + out->gradients_bytes +
                    out->optimizer_bytes;
    out->peak_bytes = fmax(before + change, 1);
    out->reserved_bytes = out->reserved_bytes * out->peak_bytes / fmax(before, 1);
    int groups = (p->tp > 1) + (p->cp > 1) + (p->ep > 1) + several + (p->pp > 1);
    out->context_bytes += groups * communicator_bytes;
    out->fits = out->reserved_bytes + out->context_bytes <= out->capacity_bytes;
}

/* -- memory alone ------------------------------------------------------------------------------ */

/* How many micro-batches each stage holds: from its list, whatever the pieces take. */
static ft_status in_flight(const ft_ranks *r, double *out, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    int64_t chunks = p->schedule == FT_INTERLEAVED ? p->vpp : p->schedule == FT_DUALPIPE ? 2 : 1;
    double *ones = ft__arena_array(r->arena, (size_t)(p->pp * chunks), sizeof *ones);
    if (!ones) return ft__fail(err, FT_E_MEMORY, "out of memory");
    for (int64_t i = 0; i < p->pp * chunks; i++) ones[i] = 1;
    int64_t micros = r->work->accumulate > 0 ? r->work->accumulate : 1, enough = 4 * p->pp; /* no more are held then */
    ft_pipe run = {.schedule = p->schedule,
                   .stages = p->pp,
                   .chunks = chunks,
                   .micros = micros < enough ? micros : enough,
                   .forward = ones,
                   .backward = ones,
                   .weight_share = 0.5};
    ft_piped piped;
    FT_TRY(ft__pipeline_run(&run, r->arena, &piped, err));
    for (int64_t s = 0; s < p->pp; s++)
        out[s] = p->schedule == FT_GPIPE ? (double)micros
                                         : piped.in_flight[s] / (p->schedule == FT_INTERLEAVED ? (double)p->vpp : 1);
    return FT_OK;
}

ft_status ft__ranks_memory(const ft_ranks *r, ft_memory *out, int64_t *worst, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    double *flight = ft__arena_array(r->arena, (size_t)p->pp, sizeof *flight);
    if (!flight) return ft__fail(err, FT_E_MEMORY, "out of memory");
    FT_TRY(in_flight(r, flight, err));
    /* The first stage holds most micro-batches, the last one the logits; those between hold less than one of them. */
    int64_t ends[2] = {0, p->pp - 1};
    double most = -1;
    for (int i = 0; i < (p->pp > 1 ? 2 : 1); i++) {
        ft_stage s;
        FT_TRY(ft__ranks_graph(r, ends[i], &s, err));
        FT_TRY(ft__step_memory(s.g, r->work, r->device, &s.step.memory, err));
        s.saved_bytes = s.step.memory.activations_bytes;
        for (int32_t b = 0; b < s.g->block_count; b++) {
            double sum = 0;
            for (int32_t k = 0; k < s.g->tensor_count; k++)
                if (s.g->tensors[k].role == FT_PARAMETER && s.g->tensors[k].block == b)
                    sum += ft__tensor_numel(&s.g->tensors[k]);
            s.layer_bytes = fmax(s.layer_bytes, 2 * sum);
            s.layer_gradient_bytes = fmax(s.layer_gradient_bytes, 2 * sum);
        }
        ft_memory m;
        ft__ranks_share_memory(r, &s, p->schedule == FT_DUALPIPE && p->pp > 1 ? &s : NULL, flight[ends[i]], &m);
        if (m.peak_bytes > most) {
            most = m.peak_bytes;
            *out = m;
            *worst = ends[i];
        }
    }
    return FT_OK;
}

/* -- the nearest layout that fits -------------------------------------------------------------- */

typedef struct change {
    int tp, pp;    /* times as many, data ranks fewer */
    int zero;      /* at least; -1: as asked */
    int recompute; /* FT_RECOMPUTE_*; -1: as asked */
    bool smaller;  /* micro-batches of half the size, twice as many */
} change;

/* From what costs least. */
static const change changes[] = {
    {1, 1, 1, -1, false},
    {1, 1, -1, FT_RECOMPUTE_SELECTIVE, false},
    {1, 1, -1, -1, true},
    {2, 1, -1, -1, false},
    {1, 2, -1, -1, false},
    {1, 1, 1, FT_RECOMPUTE_SELECTIVE, false},
    {1, 1, 2, -1, false},
    {1, 1, 3, -1, false},
    {1, 1, -1, FT_RECOMPUTE_FULL, false},
    {2, 1, 1, -1, false},
    {1, 2, 1, -1, false},
    {1, 1, 1, FT_RECOMPUTE_FULL, false},
    {1, 1, 3, FT_RECOMPUTE_FULL, false},
    {2, 2, -1, -1, false},
    {2, 1, -1, FT_RECOMPUTE_FULL, false},
    {2, 2, 1, FT_RECOMPUTE_FULL, false},
    {4, 1, -1, -1, false},
    {1, 4, -1, -1, false},
    {4, 2, 1, -1, false},
    {4, 4, 1, -1, false},
    {4, 4, 1, FT_RECOMPUTE_FULL, false},
    {8, 4, 1, FT_RECOMPUTE_FULL, false},
    {8, 8, 1, FT_RECOMPUTE_FULL, false},
    {8, 16, 1, FT_RECOMPUTE_FULL, false},
};

static bool apply(const change *c, const ft_ranks *r, ft_parallel *p, ft_workload *w)
{
    *p = *r->parallel;
    *w = *r->work;
    int64_t node = r->cluster && r->cluster->gpus_per_node > 0 ? r->cluster->gpus_per_node : 8;
    int64_t times = c->tp * c->pp;
    p->tp *= c->tp;
    p->pp *= c->pp;
    if (p->dp % times || (c->tp > 1 && p->tp > node)) return false;
    p->dp /= times;
    w->accumulate *= times; /* the same batch over fewer data ranks */
    if (c->zero >= 0 && (p->dp * p->cp < 2 || p->zero >= c->zero)) return false;
    if (c->zero >= 0) p->zero = c->zero;
    if (p->zero > 1 && p->pp > 1 && c->zero > 1) return false;
    if (c->recompute >= 0 && (int)w->recompute >= c->recompute) return false;
    if (c->recompute >= 0) w->recompute = (ft_recompute)c->recompute;
    if (c->smaller && (w->batch < 2 || w->batch % 2)) return false;
    if (c->smaller) {
        w->batch /= 2;
        w->accumulate *= 2;
    }
    if (p->shard > p->dp * p->cp) p->shard = 0;
    return !(p->ep > 1 && (p->dp * p->cp) % p->ep);
}

static void describe(const ft_ranks *r, const ft_parallel *p, const ft_workload *w, char *out, size_t room)
{
    size_t at = 0;
    const struct {
        const char *name;
        int64_t was, is;
    } whole[] = {{"tp", r->parallel->tp, p->tp},
                 {"pp", r->parallel->pp, p->pp},
                 {"dp", r->parallel->dp, p->dp},
                 {"zero", r->parallel->zero, p->zero},
                 {"batch", r->work->batch, w->batch}};
    out[0] = 0;
    for (size_t i = 0; i < sizeof whole / sizeof *whole && at < room; i++)
        if (whole[i].was != whole[i].is)
            at += (size_t)snprintf(out + at, room - at, "%s%s %lld", at ? ", " : "", whole[i].name,
                                   (long long)whole[i].is);
    if (w->recompute != r->work->recompute && at < room)
        snprintf(out + at, room - at, "%srecompute %s", at ? ", " : "",
                 w->recompute == FT_RECOMPUTE_FULL ? "full" : "selective");
}

/* Weights, gradients and states of a rank are there in any case: what they exceed cannot hold the rest either, and no
 * graph need be built to see it. `of`: a stage of the layout asked for, whose elements are the model's over tp * pp. */
static bool hopeless(const ft_ranks *r, const ft_stage *of, const ft_parallel *p)
{
    const ft_memory *m = &of->step.memory;
    double part = (double)(r->parallel->tp * r->parallel->pp) / (double)(p->tp * p->pp) * 0.8; /* uneven stages */
    double kept = p->dp * p->cp > 1 ? ft__ranks_kept(p, of->dense, of->expert) : 1;
    double bytes = m->weights_bytes * (p->zero >= 3 ? kept : 1) + m->gradients_bytes * (p->zero >= 2 ? kept : 1) +
                   m->optimizer_bytes * (p->zero >= 1 ? kept : 1);
    return part * bytes > m->capacity_bytes;
}

ft_status ft__ranks_remedy(const ft_ranks *r, const ft_stage *of, const char **out, ft_error *err)
{
    *out = "";
    if (r->work->task != FT_TRAIN) return FT_OK;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        ft_parallel p;
        ft_workload w;
        ft_error ignored;
        ft_memory m;
        int64_t worst;
        if (!apply(&changes[i], r, &p, &w) || hopeless(r, of, &p)) continue;
        ft_divisible model = ft__ranks_model(r->arch, &w);
        int64_t chunks = p.schedule == FT_INTERLEAVED ? p.vpp : 1;
        if (ft__parallel_check(&p, &model, &ignored) != FT_OK) continue;
        if (ft__pipeline_check(p.schedule, p.pp, chunks, w.accumulate, &ignored) != FT_OK) continue;
        ft_ranks other = *r;
        other.parallel = &p;
        other.work = &w;
        ft_status status = ft__ranks_memory(&other, &m, &worst, &ignored);
        if (status == FT_E_MEMORY) return ft__fail(err, FT_E_MEMORY, "out of memory");
        if (status != FT_OK || !m.fits) continue;
        char text[160];
        describe(r, &p, &w, text, sizeof text);
        *out = ft__arena_copy(r->arena, text, strlen(text));
        return *out ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory");
    }
    return FT_OK;
}
