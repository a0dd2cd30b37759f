/* scale.c: the scaling rooflines with the numbers put in, beside what the timeline says (scale_probe.c), and two
 * curves: the layout asked for on ever more GPUs, the global batch kept (strong) or the tokens per GPU (weak). */
#include "study/scale.h"

#include <stdio.h>
#include <string.h>

#include "base/multiple.h"
#include "request/keys.h"
#include "study/scale_probe.h"

enum { USUAL_GPUS = 512 };

/* -- curves ------------------------------------------------------------------------------------ */

double ft__scale_crossing(const ft_scale_degree *d, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (d[i - 1].timeline < 1 && d[i].timeline >= 1) {
            double along = (1 - d[i - 1].timeline) / (d[i].timeline - d[i - 1].timeline);
            return (double)d[i - 1].degree + along * (double)(d[i].degree - d[i - 1].degree);
        }
    return 0;
}

void ft__scale_add(ft_scale_point *curve, size_t *count, int64_t gpus, int64_t dp, int64_t batch, int64_t global,
                   const ft_step *step)
{
    ft_scale_point *point = &curve[*count];
    *point = (ft_scale_point){.gpus = gpus,
                              .dp = dp,
                              .micros = global / (batch * dp),
                              .global_batch = global,
                              .step_ms = step->step_ms,
                              .low_ms = step->low_ms,
                              .high_ms = step->high_ms,
                              .tokens_per_s = step->tokens_per_s,
                              .mfu = step->mfu,
                              .comm_ms = step->comm_ms,
                              .exposed_ms = step->comm_exposed_ms,
                              .bubble_ms = step->bubble_ms,
                              .peak_bytes = step->memory.peak_bytes,
                              .verdict = step->memory.verdict,
                              .fits = step->memory.fits};
    point->efficiency = point->tokens_per_s / curve[0].tokens_per_s;
    ++*count;
}

static ft_status add_point(ft_scaler *s, int64_t gpus, int64_t global, ft_scale_point *curve, size_t *count)
{
    ft_parallel p = s->p;
    ft_step_view v;
    p.dp = gpus / (p.tp * p.pp * p.cp);
    FT_TRY(ft__scale_ask(s, &p, s->batch, s->seq, global, &v));
    ft__scale_add(curve, count, gpus, p.dp, s->batch, global, v.step);
    return FT_OK;
}

static bool divides(const ft_scaler *s, int64_t gpus, int64_t global)
{
    int64_t once = s->batch * (gpus / (s->p.tp * s->p.pp * s->p.cp));
    if (once < 1 || global % once) return false;
    return s->p.schedule != FT_INTERLEAVED || global / once % s->p.pp == 0;
}

static ft_status draw_curves(ft_scaler *s)
{
    int64_t replica = s->p.tp * s->p.pp * s->p.cp, domain = s->r->closed.tensor.domain;
    int64_t most = s->r->gpus, each = s->global / (most / replica); /* sequences of one replica */
    int64_t first = domain > s->unit && domain % s->unit == 0 ? domain : s->unit;
    if (first < 2) first = 2;
    while (most / first > (int64_t)1 << (FT_SCALE_POINTS - 3)) first *= 2;
    for (int64_t gpus = first;; gpus = 2 * gpus < most ? 2 * gpus : most) {
        if (gpus > most) gpus = most;
        if (divides(s, gpus, s->global)) FT_TRY(add_point(s, gpus, s->global, s->r->strong, &s->r->strong_count));
        FT_TRY(add_point(s, gpus, each * (gpus / replica), s->r->weak, &s->r->weak_count));
        if (gpus == most) return FT_OK;
    }
}

/* -- the whole --------------------------------------------------------------------------------- */

/* One send between stages, as the collective door forecasts it, over a stage's forward pass. */
static ft_status ask_pipeline(ft_scaler *s, const ft_step_view *v)
{
    const ft_parallel *p = v->parallel;
    const ft_ranked *r = v->ranked;
    ft_collective_request request;
    ft_comm sent;
    double part = p->sp ? (double)p->tp : 1, forward = r->stages[r->stage_count / 2].forward_ms;
    double bytes = (double)s->batch * (double)s->seq * (double)s->arch->hidden * 2 / ((double)p->cp * part);
    s->r->pipeline_bubble = v->step->bubble_ms / (v->step->step_ms - v->step->bubble_ms);
    json_t *object = json_object(), *cluster = ft__key_get(s->ask.object, FT_KEY_ID_CLUSTER);
    bool made = object && ft__key_set(object, FT_KEY_ID_TASK, json_string("collective")) &&
                ft__key_set(object, FT_KEY_ID_EXCHANGE, json_string("send_recv")) &&
                ft__key_set(object, FT_KEY_ID_EXCHANGE_BYTES, json_real(bytes)) &&
                ft__key_set(object, FT_KEY_ID_EXCHANGE_RANKS, json_integer(2)) &&
                ft__key_set(object, FT_KEY_ID_EXCHANGE_STRIDE, json_integer(p->tp * p->cp * p->dp)) &&
                ft__key_set(object, FT_KEY_ID_GPU, json_incref(ft__key_get(s->ask.object, FT_KEY_ID_GPU))) &&
                (!cluster || ft__key_set(object, FT_KEY_ID_EXCHANGE_CLUSTER, json_incref(cluster)));
    ft_status status = made ? ft__collective_request_of(s->ask.ft, s->ask.scratch, object, &request, s->err)
                            : ft__no_memory(s->err);
    if (status == FT_OK) status = ft__exchange_of(s->ask.ft, s->ask.scratch, &request, &sent, s->err);
    json_decref(object);
    if (status == FT_OK) s->r->pipeline_hop = sent.ms / forward;
    return status;
}

static ft_status too_many(ft_error *err)
{
    return ft__fail_at(err, FT_E_RANGE, "gpus", 0, 0, "a cluster has at most %d GPUs", FT_SCALE_MOST_GPUS);
}

/* How many GPUs there are, and what joins them. */
static ft_status measure_cluster(ft_scaler *s)
{
    ft_scale *r = s->r;
    ft_step_view v;
    ft_parallel p = s->p;
    int64_t replica = p.tp * p.pp * p.cp;
    p.dp = s->unit / replica > 1 || replica > 1 ? s->unit / replica : 2;
    FT_TRY(ft__scale_ask(s, &p, s->batch, 0, s->batch * p.dp * p.pp, &v));
    s->seq = v.work->seq;
    int64_t domain = 1, node = v.cluster->gpus_per_node;
    for (int i = 0; i < v.cluster->tiers; i++)
        if (v.cluster->tier[i].fabric < FT_INFINIBAND) domain = v.cluster->tier[i].gpus;
    int64_t multiple = ft__common_multiple(domain, s->unit);
    r->gpus = s->asked->gpus;
    if (!r->gpus && s->asked->nodes) r->gpus = s->asked->nodes * node;
    if (!r->gpus) r->gpus = (USUAL_GPUS + multiple - 1) / multiple * multiple;
    if (r->gpus > FT_SCALE_MOST_GPUS) return too_many(s->err);
    if (r->gpus % s->unit || r->gpus < s->unit)
        return ft__fail_at(s->err, FT_E_RANGE, "gpus", 0, 0,
                           "%lld GPUs cannot hold replicas of %lld each; %lld or %lld could", (long long)r->gpus,
                           (long long)s->unit, (long long)(r->gpus > s->unit ? r->gpus / s->unit * s->unit : s->unit),
                           ((long long)r->gpus / s->unit + 1) * s->unit);
    if (r->gpus < 2) return ft__fail_at(s->err, FT_E_RANGE, "gpus", 0, 0, "scaling begins with two GPUs");
    return FT_OK;
}

/* What was made of the request, from a step of the curves' last point. */
static ft_status take_over(ft_scaler *s, const ft_step_view *v)
{
    ft_scale *r = s->r;
    s->arch = v->arch;
    s->p.schedule = v->parallel->schedule;
    s->p.sp = v->parallel->sp;
    s->p.vpp = v->parallel->vpp;
    s->p.reduce_bytes = v->parallel->reduce_bytes;
    s->p.gather_bytes = v->parallel->gather_bytes;
    r->cluster = *v->cluster;
    r->model = v->model;
    r->dtype_name = v->dtype_name;
    r->device = *v->device;
    r->work = *v->work;
    r->parallel = *v->parallel;
    r->experts = v->arch->experts;
    r->topk = v->arch->topk;
    snprintf(r->understood, sizeof r->understood, "%s", v->cluster->understood);
    ft__text_add(&r->warnings, v->warnings);
    return r->warnings.failed ? ft__no_memory(s->err) : FT_OK;
}

static ft_status fill(ft_scaler *s, const ft_model_sheet *sheet)
{
    ft_scale *r = s->r;
    ft_step_view v;
    ft_parallel p = s->p;
    int64_t replica = p.tp * p.pp * p.cp;
    p.dp = r->gpus / replica;
    r->parameters = sheet->parameters;
    r->active_parameters = sheet->active_parameters > 0 ? sheet->active_parameters : sheet->parameters;
    if (!s->global) s->global = p.dp * s->batch * (p.pp > 1 ? 4 * p.pp : 1);
    FT_TRY(ft__scale_ask(s, &p, s->batch, s->seq, s->global, &v));
    FT_TRY(take_over(s, &v));
    FT_TRY(ft__scale_closed(s, &r->parallel, &r->work, &r->closed, s->err));
    if (p.pp > 1) FT_TRY(ask_pipeline(s, &v));
    FT_TRY(ft__scale_knees(s));
    FT_TRY(ft__scale_degrees(s, false, r->tensor, &r->tensor_count));
    if (r->experts > 1) FT_TRY(ft__scale_degrees(s, true, r->expert, &r->expert_count));
    return draw_curves(s);
}

static ft_status set_degrees(ft_scaler *s)
{
    const ft_scale_request *q = s->asked;
    s->p = (ft_parallel){.dp = 1,
                         .tp = q->tp,
                         .pp = q->pp,
                         .vpp = q->vpp,
                         .cp = q->cp,
                         .ep = q->ep,
                         .zero = q->zero,
                         .schedule = FT_SCHEDULE_COUNT}; /* as it is read */
    s->batch = q->batch;
    s->global = q->global;
    s->unit = s->p.tp * s->p.pp * s->p.cp;
    if (s->unit > FT_SCALE_MOST_GPUS) return too_many(s->err);
    if (s->p.ep > s->p.cp) s->unit = s->p.tp * s->p.pp * ft__common_multiple(s->p.cp, s->p.ep);
    return FT_OK;
}

/* Before anything is asked of it in a way that such a file would refuse by itself, for reasons of its own. */
static ft_status look_at_model(ft_scaler *s, ft_model_sheet *sheet)
{
    const json_t *model = ft__key_get(s->ask.object, FT_KEY_ID_MODEL);
    const char *read_as = json_string_value(ft__key_get(s->ask.object, FT_KEY_ID_READ_AS));
    if (!json_is_string(model) && !json_is_object(model)) { /* the request's own reader says what is wrong with it */
        ft_model_request request;
        FT_TRY(ft__ask_task(&s->ask, "train", s->err));
        FT_TRY(ft__model_request_of(s->ask.ft, s->ask.scratch, s->ask.object, &request, s->err));
    }
    FT_TRY(ft__model_sheet_of(s->ask.scratch, model, read_as, sheet, NULL, NULL, s->err));
    if (sheet->arch.design != FT_CUSTOM) return FT_OK;
    return ft__fail_at(
        s->err, FT_E_UNSUPPORTED, "model", 0, 0,
        "\"scale\" takes its limits from the widths of transformer layers, which a graph or ONNX file does not name: "
        "give its config.json, or see it over GPUs with \"train --sweep dp=1:8\"");
}

ft_status ft__scale_of(const ft_context *ft, ft_scratch *scratch, const ft_scale_request *r, ft_scale *out,
                       ft_error *err)
{
    ft_scaler s = {.ask = {.ft = ft,
                           .scratch = scratch,
                           .object = r->base,
                           .idle = &r->idle,
                           .used = "gather_overlap topology oversubscription"},
                   .asked = r,
                   .r = out,
                   .err = err};
    ft_model_sheet sheet;
    memset(out, 0, sizeof *out);
    FT_TRY(set_degrees(&s));
    FT_TRY(look_at_model(&s, &sheet));
    FT_TRY(measure_cluster(&s));
    return fill(&s, &sheet);
}

void ft__scale_free(ft_scale *s) { ft__text_free(&s->warnings); }
