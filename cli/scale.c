/* scale.c: `foretell scale MODEL`: the scaling rooflines with the numbers put in, beside what the timeline says
 * (scale_probe.c), and two curves: the layout asked for on ever more GPUs, the global batch kept (strong) or the tokens
 * per GPU (weak). */
#include "scale.h"

#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "picture.h"
#include "terminal.h"

enum { USUAL_GPUS = 512, MOST_GPUS = 1000000 };

/* -- curves ------------------------------------------------------------------------------------ */

static ft_status add_point(scaler *s, int64_t gpus, int64_t global, ft_scale_point *curve, size_t *count)
{
    ft_parallel p = s->p;
    ft_step_view v;
    p.dp = gpus / (p.tp * p.pp * p.cp);
    FT_TRY(cli_scale_ask(s, &p, s->batch, s->seq, global, &v));
    ft__scale_add(curve, count, gpus, p.dp, s->batch, global, v.step);
    return FT_OK;
}

static bool divides(const scaler *s, int64_t gpus, int64_t global)
{
    int64_t once = s->batch * (gpus / (s->p.tp * s->p.pp * s->p.cp));
    if (once < 1 || global % once) return false;
    return s->p.schedule != FT_INTERLEAVED || global / once % s->p.pp == 0;
}

static ft_status draw_curves(scaler *s)
{
    int64_t replica = s->p.tp * s->p.pp * s->p.cp, domain = s->r.closed.tensor.domain;
    int64_t most = s->r.gpus, each = s->global / (most / replica); /* sequences of one replica */
    int64_t first = domain > s->unit && domain % s->unit == 0 ? domain : s->unit;
    if (first < 2) first = 2;
    while (most / first > (int64_t)1 << (FT_SCALE_POINTS - 3)) first *= 2;
    for (int64_t gpus = first;; gpus = 2 * gpus < most ? 2 * gpus : most) {
        if (gpus > most) gpus = most;
        if (divides(s, gpus, s->global)) FT_TRY(add_point(s, gpus, s->global, s->r.strong, &s->r.strong_count));
        FT_TRY(add_point(s, gpus, each * (gpus / replica), s->r.weak, &s->r.weak_count));
        if (gpus == most) return FT_OK;
    }
}

/* -- the whole --------------------------------------------------------------------------------- */

/* One send between stages, as the collective door forecasts it, over a stage's forward pass. */
static ft_status ask_pipeline(scaler *s, const ft_step_view *v)
{
    const ft_parallel *p = v->parallel;
    const ft_ranked *r = v->ranked;
    double part = p->sp ? (double)p->tp : 1, forward = r->stages[r->stage_count / 2].forward_ms;
    double bytes = (double)s->batch * (double)s->seq * (double)s->arch->hidden * 2 / ((double)p->cp * part);
    s->r.pipeline_bubble = v->step->bubble_ms / (v->step->step_ms - v->step->bubble_ms);
    json_t *request = json_pack("{s:s,s:s,s:f,s:i,s:I,s:O?,s:O?}", "task", "collective", "op", "send_recv", "bytes",
                                bytes, "ranks", 2, "stride", (json_int_t)p->tp * p->cp * p->dp, "gpu",
                                json_object_get(s->ask.object, "gpu"), "cluster",
                                json_object_get(s->ask.object, "cluster"));
    if (request && !json_object_get(s->ask.object, "cluster")) json_object_del(request, "cluster");
    char *text = request ? json_dumps(request, JSON_COMPACT) : NULL, *answer = text ? ft_answer(s->ask.ft, text) : NULL;
    json_t *read = answer ? json_loads(answer, 0, NULL) : NULL;
    double ms = json_number_value(json_object_get(read, "ms"));
    json_decref(read);
    free(answer);
    free(text);
    json_decref(request);
    if (!(ms > 0)) return ft__fail(&s->err, FT_E_BUG, "no time for a send of %g bytes", bytes);
    s->r.pipeline_hop = ms / forward;
    return FT_OK;
}

static int64_t common(int64_t a, int64_t b) /* the least common multiple */
{
    int64_t x = a, y = b;
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* How many GPUs there are, and what joins them. */
static int measure_cluster(scaler *s)
{
    const cli_args *args = s->ask.args;
    ft_step_view v;
    ft_parallel p = s->p;
    int64_t nodes = 0, replica = p.tp * p.pp * p.cp;
    p.dp = s->unit / replica > 1 || replica > 1 ? s->unit / replica : 2;
    s->batch = 1;
    if (cli_whole(args, OPT_MICRO_BATCH, 1, 1 << 20, &s->batch) ||
        cli_whole(args, OPT_MODEL_BATCH, 1, 1 << 20, &s->batch))
        return 2;
    if (cli_scale_ask(s, &p, s->batch, 0, s->batch * p.dp * p.pp, &v) != FT_OK) return cli_asker_fail(&s->ask, &s->err);
    s->seq = v.work->seq;
    int64_t domain = 1, node = v.cluster->gpus_per_node;
    for (int i = 0; i < v.cluster->tiers; i++)
        if (v.cluster->tier[i].fabric < FT_INFINIBAND) domain = v.cluster->tier[i].gpus;
    int status = cli_whole(args, OPT_SCALE_GPUS, 2, MOST_GPUS, &s->r.gpus);
    if (!status) status = cli_whole(args, OPT_NODES, 1, MOST_GPUS, &nodes);
    if (status) return status;
    int64_t multiple = common(domain, s->unit);
    if (!s->r.gpus && nodes) s->r.gpus = nodes * node;
    if (!s->r.gpus) s->r.gpus = (USUAL_GPUS + multiple - 1) / multiple * multiple;
    if (s->r.gpus > MOST_GPUS) return cli_usage(args->command, "more than %d GPUs are no cluster yet", MOST_GPUS);
    if (s->r.gpus % s->unit || s->r.gpus < s->unit)
        return cli_usage(args->command, "%lld GPUs cannot hold replicas of %lld each; %lld or %lld could",
                         (long long)s->r.gpus, (long long)s->unit,
                         (long long)(s->r.gpus > s->unit ? s->r.gpus / s->unit * s->unit : s->unit),
                         ((long long)s->r.gpus / s->unit + 1) * s->unit);
    if (s->r.gpus < 2) return cli_usage(args->command, "scaling begins with two GPUs: --gpus 16");
    return 0;
}

static ft_status fill(scaler *s)
{
    ft_scale *r = &s->r;
    ft_step_view v;
    ft_model_sheet sheet;
    ft_parallel p = s->p;
    int64_t replica = p.tp * p.pp * p.cp;
    p.dp = r->gpus / replica;
    FT_TRY(ft__model_sheet_of(&s->ask.scratch, json_object_get(s->ask.object, "model"),
                              cli_value(s->ask.args, OPT_READ_AS), &sheet, NULL, NULL, &s->err));
    r->parameters = sheet.parameters;
    r->active_parameters = sheet.active_parameters > 0 ? sheet.active_parameters : sheet.parameters;
    if (!s->global) s->global = p.dp * s->batch * (p.pp > 1 ? 4 * p.pp : 1);
    FT_TRY(cli_scale_ask(s, &p, s->batch, s->seq, s->global, &v));
    s->arch = v.arch;
    s->p.schedule = v.parallel->schedule;
    s->p.sp = v.parallel->sp;
    s->p.vpp = v.parallel->vpp;
    s->p.reduce_bytes = v.parallel->reduce_bytes;
    s->p.gather_bytes = v.parallel->gather_bytes;
    s->cluster = *v.cluster;
    r->model = v.model;
    r->dtype_name = v.dtype_name;
    r->device = *v.device;
    r->work = *v.work;
    r->parallel = *v.parallel;
    r->experts = v.arch->experts;
    r->topk = v.arch->topk;
    snprintf(r->understood, sizeof r->understood, "%s", v.cluster->understood);
    cli_say_warnings(s->ask.args->operands[0], v.warnings);
    FT_TRY(cli_scale_closed(s, &r->parallel, &r->work, &r->closed, &s->err));
    if (p.pp > 1) FT_TRY(ask_pipeline(s, &v));
    FT_TRY(cli_scale_knees(s));
    FT_TRY(cli_scale_degrees(s, false, r->tensor, &r->tensor_count));
    if (r->experts > 1) FT_TRY(cli_scale_degrees(s, true, r->expert, &r->expert_count));
    return draw_curves(s);
}

static int read_degrees(scaler *s)
{
    const cli_args *args = s->ask.args;
    int64_t zero = -1;
    s->p = (ft_parallel){
        .dp = 1, .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1, .schedule = FT_SCHEDULE_COUNT}; /* as it is read */
    const struct {
        cli_option_id option;
        int64_t *at;
    } degrees[] = {
        {OPT_TP, &s->p.tp}, {OPT_PP, &s->p.pp}, {OPT_VPP, &s->p.vpp}, {OPT_CP, &s->p.cp}, {OPT_EP, &s->p.ep}};
    int status = 0;
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees && !status; i++)
        status = cli_whole(args, degrees[i].option, 1, 65536, degrees[i].at);
    if (!status) status = cli_whole(args, OPT_SCALE_ZERO, 0, 3, &zero);
    if (!status) status = cli_whole(args, OPT_GLOBAL_BATCH, 1, (int64_t)1 << 40, &s->global);
    if (status) return status;
    s->p.zero = zero >= 0 ? (int)zero : s->p.pp > 1 ? 1 : 3; /* a pipeline would gather for every micro-batch */
    s->unit = s->p.tp * s->p.pp * s->p.cp;
    if (s->unit > MOST_GPUS) return cli_usage(args->command, "more than %d GPUs are no cluster yet", MOST_GPUS);
    if (s->p.ep > s->p.cp) s->unit = s->p.tp * s->p.pp * common(s->p.cp, s->p.ep);
    return 0;
}

static int print(scaler *s)
{
    ft_text out = {0};
    ft_style style = cli_style(s->ask.args);
    bool printed = true;
    int status = cli_picture_scale(s->ask.args, &s->r);
    if (status) return status;
    if (s->ask.json)
        ft__answer_scale(&out, &s->r);
    else if (cli_has(s->ask.args, OPT_SCALE_CSV))
        printed = ft__csv_scale(&out, &s->r);
    else
        printed = ft__screen_scale(&out, &style, &s->r);
    if (!printed) out.failed = true;
    bool screen = !s->ask.json && !cli_has(s->ask.args, OPT_SCALE_CSV);
    return screen ? cli_show(&out, &style) : cli_print(&out);
}

/* Before anything is asked of it in a way that such a file would refuse by itself, for reasons of its own. */
static ft_status refuse_files(scaler *s)
{
    ft_model_sheet sheet;
    const json_t *model = json_object_get(s->ask.object, "model");
    FT_TRY(
        ft__model_sheet_of(&s->ask.scratch, model, cli_value(s->ask.args, OPT_READ_AS), &sheet, NULL, NULL, &s->err));
    if (sheet.arch.design != FT_CUSTOM) return FT_OK;
    return ft__fail_at(
        &s->err, FT_E_UNSUPPORTED, "model", 0, 0,
        "\"scale\" reads its limits off the widths of a row of transformer layers, which a graph or ONNX "
        "file does not name: give its config.json, or see it over GPUs with \"train --sweep dp=1:8\"");
}

int cli_scale(const cli_args *args)
{
    int status = cli_picture_check(args);
    if (status) return status;
    scaler *s = calloc(1, sizeof *s); /* some KiB: curves and a cluster */
    if (!s) return cli_complain(FT_E_MEMORY, "out of memory");
    status = cli_asker_open(&s->ask, args, "train");
    /* Who trains on many GPUs fuses norms and activations; left alone they would be most of a layer cut eight ways. */
    if (!status && !cli_has(args, OPT_SCALE_EXECUTION) && !cli_asker_set(&s->ask, "execution", json_string("fused")))
        status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status && s->ask.gpu_count > 1) status = cli_usage(args->command, "\"scale\" looks at one kind of GPU");
    if (!status && s->ask.json && cli_has(args, OPT_SCALE_CSV))
        status = cli_usage(args->command, "--json or --csv, not both");
    if (!status) status = read_degrees(s);
    if (!status && refuse_files(s) != FT_OK) status = cli_asker_fail(&s->ask, &s->err);
    if (!status) {
        s->asked = json_incref(json_object_get(s->ask.object, "parallel"));
        status = measure_cluster(s);
    }
    if (!status && fill(s) != FT_OK) status = cli_asker_fail(&s->ask, &s->err);
    if (!status) status = print(s);
    json_decref(s->asked);
    cli_asker_close(&s->ask);
    free(s);
    return status;
}
