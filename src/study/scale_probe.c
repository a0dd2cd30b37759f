/* scale_probe.c: what scaling asks of the timeline.
 *
 * Every figure is a request for a training step like any other, asked with other degrees and sizes:
 *   data     tokens per GPU at which exchanging takes as long as the kernels beside it, by repeated proportion: what is
 *            exchanged does not depend on the tokens, and kernels take about as long as there are tokens
 *   tensor   exchange over arithmetic by degree; so too for experts
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ranks/ranks.h"
#include "study/scale_probe.h"

enum {
    FEWEST_TOKENS = 64, /* of a sequence in the search for a knee; sequences are multiples of it */
    MOST_TOKENS = 1 << 20,
    ROUNDS = 12
};

/* -- asking ------------------------------------------------------------------------------------ */

ft_status ft__scale_ask(ft_scaler *s, const ft_parallel *p, int64_t batch, int64_t seq, int64_t global, ft_step_view *v)
{
    json_t *parallel = s->asked->parallel ? ft__study_copy(s->asked->parallel) : json_object();
    const struct {
        ft_key_id key;
        int64_t value;
    } degrees[] = {{FT_KEY_ID_DP, p->dp}, {FT_KEY_ID_TP, p->tp}, {FT_KEY_ID_PP, p->pp},    {FT_KEY_ID_VPP, p->vpp},
                   {FT_KEY_ID_CP, p->cp}, {FT_KEY_ID_EP, p->ep}, {FT_KEY_ID_ZERO, p->zero}};
    bool fine = parallel != NULL;
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees && fine; i++)
        fine = ft__key_set(parallel, degrees[i].key, json_integer(degrees[i].value));
    if (parallel) ft__key_drop(parallel, FT_KEY_ID_GPUS); /* degrees are said one by one */
    if (parallel && (p->pp < 2 || p->schedule != s->p.schedule)) ft__key_drop(parallel, FT_KEY_ID_SCHEDULE);
    if (parallel && p->tp < 2) ft__key_drop(parallel, FT_KEY_ID_SP);
    if (parallel && p->cp < 2) ft__key_drop(parallel, FT_KEY_ID_ULYSSES);
    if (parallel && p->cp < 2) ft__key_drop(parallel, FT_KEY_ID_CP_KIND);
    /* Of a schedule that is not asked for here, or of one micro-batch, there is none to hide exchanges behind. */
    bool alone = p->ep < 2 || global < 2 * batch * p->dp || (p->pp > 1 && p->schedule != s->p.schedule);
    if (parallel && alone && json_is_true(ft__key_get(parallel, FT_KEY_ID_EXPERT_OVERLAP)))
        ft__key_drop(parallel, FT_KEY_ID_EXPERT_OVERLAP);
    int64_t shard = ft__json_whole_of(ft__key_get(parallel, FT_KEY_ID_SHARD));
    if (shard > 0 && p->dp * p->cp % shard) ft__key_drop(parallel, FT_KEY_ID_SHARD); /* more than these ranks are */
    FT_TRY(ft__ask_set(&s->ask, FT_KEY_ID_PARALLEL, parallel, s->err));              /* takes it, fine or not */
    if (!fine) return ft__no_memory(s->err);
    FT_TRY(ft__ask_task(&s->ask, "train", s->err));
    FT_TRY(ft__ask_set(&s->ask, FT_KEY_ID_MICRO_BATCH, json_integer(batch), s->err));
    FT_TRY(ft__ask_set(&s->ask, FT_KEY_ID_GLOBAL_BATCH, json_integer(global), s->err));
    if (seq > 0) FT_TRY(ft__ask_set(&s->ask, FT_KEY_ID_SEQ, json_integer(seq), s->err));
    return ft__ask_step(&s->ask, v, s->err);
}

static double kernels_ms(const ft_step *t)
{
    return t->phase_ms[FT_FORWARD] + t->phase_ms[FT_BACKWARD] + t->phase_ms[FT_RECOMPUTE];
}

ft_status ft__scale_closed(const ft_scaler *s, const ft_parallel *p, const ft_workload *work, ft_scaling *out,
                           ft_error *err)
{
    ft_scaling_case c = {.arch = s->arch,
                         .device = &s->r->device,
                         .cluster = &s->r->cluster,
                         .work = work,
                         .parallel = p,
                         .parameters = s->r->parameters,
                         .active_parameters = s->r->active_parameters};
    return ft__scaling_of(&c, out, err);
}

/* -- knees ------------------------------------------------------------------------------------- */

/* About so many tokens as whole sequences: one shorter than asked, or several. */
static void shape_of(const ft_scaler *s, double tokens, int64_t *batch, int64_t *seq)
{
    *batch = tokens > (double)s->seq ? (int64_t)ceil(tokens / (double)s->seq) : 1;
    *seq = (int64_t)lround(tokens / (double)*batch / FEWEST_TOKENS) * FEWEST_TOKENS;
    if (*seq < FEWEST_TOKENS) *seq = FEWEST_TOKENS;
}

static ft_status find_knee(ft_scaler *s, const char *key, const ft_parallel *p)
{
    if (s->r->knee_count >= FT_SCALE_KNEES || p->dp < 2) return FT_OK;
    ft_scale_knee *k = &s->r->knees[s->r->knee_count++];
    ft_scaling closed;
    double parts = (double)(p->tp * p->pp), weights = s->r->parameters / parts, ratio = 0, tokens, before = 0;
    *k = (ft_scale_knee){.key = key, .parallel = *p};
    snprintf(k->name, sizeof k->name, "%s",
             p->zero == 3   ? "FSDP"
             : p->zero == 2 ? "ZeRO-2"
             : p->zero      ? "ZeRO-1"
                            : "DP");
    size_t used = strlen(k->name);
    if (!strcmp(key, "fsdp_inside") && s->r->gpus > p->dp) /* there is another that is not */
        used += (size_t)snprintf(k->name + used, sizeof k->name - used, ", one domain");
    if (p->tp > 1) used += (size_t)snprintf(k->name + used, sizeof k->name - used, ", tp %lld", (long long)p->tp);
    if (p->pp > 1 && used < sizeof k->name)
        snprintf(k->name + used, sizeof k->name - used, ", pp %lld", (long long)p->pp);
    FT_TRY(ft__scale_closed(s, p, &s->r->work, &closed, s->err));
    const ft_scaling_data *d = &closed.data;
    k->closed = p->zero == 3 ? d->fsdp : p->zero ? d->zero1 : d->ddp;
    tokens = k->closed * parts;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t batch, seq;
        ft_step_view v;
        shape_of(s, tokens, &batch, &seq);
        FT_TRY(ft__scale_ask(s, p, batch, seq, batch * p->dp, &v));
        const ft_step *t = v.step;
        /* Plain data parallel has nothing to exchange before the backward pass. */
        double beside = kernels_ms(t) - (p->zero == 3 ? 0 : t->phase_ms[FT_FORWARD]);
        double sent = t->axis_ms[FT_AXIS_DATA];
        tokens = (double)batch * (double)seq;
        ratio = sent / beside;
        double again = s->r->work.recompute == FT_RECOMPUTE_FULL ? 2 : 0, flops = (p->zero == 3 ? 6 : 4) + again;
        double weight = ft__ranks_gather_bytes(p, &s->r->work), gradient = ft__ranks_reduce_bytes(p, &s->r->work);
        double bytes = p->zero == 3 ? 2 * weight + gradient : p->zero ? weight + gradient : 2 * gradient;
        k->math = flops * s->r->active_parameters / parts * tokens / (beside * 1e-3) / closed.flops;
        k->wire = bytes * weights / (sent * 1e-3) / ft__scaling_rate(&closed, p->dp * p->cp, p->tp);
        k->exposed = t->comm_exposed_ms / t->step_ms;
        k->timeline = tokens / parts;
        double next = tokens * ratio;
        if (fabs(ratio - 1) < 0.01 || next > MOST_TOKENS) break;
        if (next < FEWEST_TOKENS / 2.0 && tokens <= FEWEST_TOKENS) break;
        if (before > 0 && fabs(next - before) < FEWEST_TOKENS / 2.0) break; /* between two lengths that can be asked */
        before = tokens;
        tokens = next;
    }
    if (ratio < 0.5 || ratio > 2) k->timeline = 0;
    return FT_OK;
}

/* The largest power of two within the limits of tensor parallel, that divides the heads and what there is. */
static int64_t usual_tp(const ft_scaler *s)
{
    int64_t tp = 1, domain = s->r->closed.tensor.domain;
    while (2 * tp <= domain && s->arch->heads % (2 * tp) == 0 && s->r->gpus % (2 * tp) == 0 &&
           2.0 * (double)tp <= fmax(s->r->closed.tensor.inside, 2) && s->r->gpus / (2 * tp) > 1)
        tp *= 2;
    return tp;
}

ft_status ft__scale_knees(ft_scaler *s)
{
    int64_t domain = s->r->closed.tensor.domain, tp = usual_tp(s);
    ft_parallel one = s->p;
    one.tp = one.pp = one.cp = one.vpp = one.ep = 1;
    one.schedule = FT_1F1B;
    ft_parallel inside = one, all = one, plain = one, mixed = one, asked = s->p;
    inside.dp = domain < s->r->gpus ? domain : s->r->gpus;
    all.dp = plain.dp = s->r->gpus;
    inside.zero = all.zero = mixed.zero = 3;
    plain.zero = 0;
    mixed.tp = tp;
    mixed.dp = s->r->gpus / tp;
    asked.dp = s->r->gpus / (s->p.tp * s->p.pp * s->p.cp);
    asked.vpp = 1; /* one micro-batch cannot be interleaved, nor does it change what is exchanged */
    asked.schedule = FT_1F1B;
    FT_TRY(find_knee(s, "fsdp_inside", &inside));
    if (s->r->gpus > domain) {
        FT_TRY(find_knee(s, "fsdp", &all));
        FT_TRY(find_knee(s, "ddp", &plain));
        if (tp > 1) FT_TRY(find_knee(s, "fsdp_tp", &mixed));
    }
    bool known = asked.tp == tp && asked.pp == 1 && asked.zero == 3;
    bool alone = asked.tp == 1 && asked.pp == 1 && (asked.zero == 3 || asked.zero == 0);
    if (!known && !alone && asked.cp == 1 && asked.ep <= 1) FT_TRY(find_knee(s, "asked", &asked));
    return FT_OK;
}

/* -- degrees ----------------------------------------------------------------------------------- */

/* What the closed form takes for the experts' products of so many tokens, times two: there is as much to exchange going
 * back. */
static double expert_ms(const ft_scaler *s, double tokens)
{
    const ft_arch *a = s->arch;
    double layers = (double)(a->layers - a->first_dense) / (double)(a->moe_every > 1 ? a->moe_every : 1);
    double flops = 4 * tokens * (double)a->topk * (double)a->hidden * s->r->closed.ffn * layers;
    return 2 * flops / s->r->closed.flops * 1e3;
}

ft_status ft__scale_degrees(ft_scaler *s, bool experts, ft_scale_degree *out, size_t *count)
{
    double alone = 0;
    int64_t divided = experts ? s->arch->experts : s->arch->heads;
    int64_t most = experts ? divided : 4 * s->r->closed.tensor.domain;
    *count = 0;
    for (int64_t degree = 1; degree <= most && degree <= s->r->gpus && *count < FT_SCALE_DEGREES; degree *= 2) {
        if (divided < 1 || divided % degree) break;
        ft_parallel p = s->p;
        ft_step_view v;
        p.tp = p.pp = p.cp = p.vpp = p.ep = p.dp = 1;
        p.zero = 0;
        p.schedule = FT_1F1B;
        if (experts)
            p.ep = p.dp = degree;
        else
            p.tp = degree;
        FT_TRY(ft__scale_ask(s, &p, s->batch, s->seq, s->batch * p.dp, &v));
        const ft_step *t = v.step;
        double sent = t->axis_ms[experts ? FT_AXIS_EXPERT : FT_AXIS_TENSOR], kernels = kernels_ms(t);
        double rate = t->tokens_per_s * t->step_ms / (t->step_ms - t->phase_ms[FT_UPDATE]);
        if (degree == 1) alone = rate;
        if (degree == 1 || !(sent > 0)) continue;
        ft_scale_degree *d = &out[(*count)++];
        *d = (ft_scale_degree){
            .degree = degree, .timeline = sent / kernels, .tokens_per_s = rate, .efficiency = rate / alone};
        double again = s->r->work.recompute == FT_RECOMPUTE_FULL ? 2 : 0, tokens = (double)s->batch * (double)s->seq;
        /* Cut by tensor, ranks share their tokens; by experts each has its own. */
        double flops = (6 + again) * s->r->active_parameters * tokens / (experts ? 1 : (double)degree);
        d->math = flops / s->r->closed.flops / (kernels * 1e-3);
        if (experts) {
            d->closed = ft__scaling_expert_ratio(&s->r->closed, s->arch, degree);
            d->wire = d->closed * expert_ms(s, tokens) / sent;
        } else {
            d->closed = ft__scaling_tensor_ratio(&s->r->closed, degree, false);
            d->layer = ft__scaling_tensor_ratio(&s->r->closed, degree, true);
            d->wire = d->layer * d->math / d->timeline;
        }
    }
    return FT_OK;
}
