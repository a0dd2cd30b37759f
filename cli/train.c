/* train.c: `foretell train MODEL`: one training step on one GPU, on several side by side, or laid out over many.
 *
 * --gpus (or --nodes) says how many GPUs there are in all; the request's reader makes --dp of what the other degrees
 * leave. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "commands.h"
#include "many.h"
#include "picture.h"
#include "report/json/answer_step.h"
#include "report/json/plan_answer.h"
#include "report/text/advice_screen.h"
#include "report/text/plan_screen.h"
#include "report/text/step_screen.h"
#include "request/keys.h"
#include "terminal.h"

typedef struct trainer {
    cli_asker ask;
    bool all_fit;
    bool for_page; /* advice was asked for the page alone */
    ft_planned planned;
} trainer;

static int fail(const trainer *t, ft_error *err)
{
    if (!strcmp(err->where, "parallel.gpus") && !cli_has(t->ask.args, OPT_GPUS))
        snprintf(err->where, sizeof err->where, "--nodes");
    return cli_asker_fail(&t->ask, err);
}

/* Nodes are filled, unless something else says how many GPUs there are. */
static bool fill_nodes(cli_asker *a)
{
    if (!cli_has(a->args, OPT_NODES) || cli_has(a->args, OPT_GPUS) || cli_has(a->args, OPT_DP)) return true;
    return ft__key_put(a->object, FT_KEY_ID_GPUS, json_string("all"));
}

/* -- printing ---------------------------------------------------------------------------------- */

enum { SHOWN_ADVICE = 5 };

static bool add_screen(const cli_args *args, ft_text *out, const ft_style *style, const ft_step_view *v)
{
    const char *advice = cli_value(args, OPT_ADVICE);
    bool all = advice && !strcmp(advice, "all"), table = cli_has(args, OPT_TECHNIQUES);
    if (all || table) {
        ft__screen_step_title(out, style, v);
        ft__text_add(out, "\n");
        return all ? ft__screen_advice_all(out, style, v) : ft__screen_techniques(out, style, v);
    }
    if (v->detail == FT_SUMMARY)
        return ft__screen_step(out, style, v) && ft__screen_advice(out, style, v, SHOWN_ADVICE);
    ft__screen_step_title(out, style, v);
    ft__text_add(out, "\n");
    bool printed = true;
    if (v->ranked && v->parallel->pp > 1) {
        printed = ft__screen_stages(out, style, v);
        ft__text_add(out, "\n");
    }
    printed = printed &&
              (v->detail == FT_LAYERS ? ft__screen_layers(out, style, v) : ft__screen_kernels(out, style, v, SIZE_MAX));
    ft__text_add(out, "\n");
    ft__screen_fits(out, style, &v->step->memory);
    return printed;
}

/* A layout that was left open is planned first; the answer still says what was asked. */
static ft_status forecast(trainer *t, ft_step_view *view, ft_error *err)
{
    cli_asker *a = &t->ask;
    ft_model_request request;
    ft__planned_free(&t->planned);
    FT_TRY(ft__plan_first(a->ft, &a->scratch, a->object, &t->planned, err));
    FT_TRY(
        ft__model_request_of(a->ft, &a->scratch, t->planned.request ? t->planned.request : a->object, &request, err));
    return ft__step_of(a->ft, &a->scratch, &request, view, err);
}

static void add_answer(trainer *t, ft_text *out, const json_t *id, const ft_step_view *v)
{
    ft_step_view said = *v;
    json_t *request = cli_ask_copy(t->ask.object);
    if (t->for_page) { /* a page beside it changes nothing in the answer */
        said.advised = NULL;
        said.asked = t->ask.object && ft__key_get(t->ask.object, FT_KEY_ID_LOADER) ? v->asked : NULL;
        ft__key_drop(request, FT_KEY_ID_ADVICE);
    }
    ft__answer_step(out, id, &said);
    if (t->planned.tried) ft__answer_planned(out, &t->planned);
    cli_many_answer(t->ask.args, out, v);
    cli_ask_answered(out, request);
    json_decref(request);
    ft__text_add(out, "\n");
}

/* A page shows what more GPUs would do. */
static int write_pictures(const trainer *t, ft_step_view *v, ft_error *err)
{
    const cli_args *args = t->ask.args;
    const char *picture = cli_value(args, OPT_PICTURE);
    bool wanted = cli_value(args, OPT_HTML) || (picture && !strcmp(picture, "scaling"));
    ft_scale *scale = wanted ? malloc(sizeof *scale) : NULL; /* some KiB */
    int status = 0;
    if (wanted && !scale) return cli_complain(FT_E_MEMORY, "out of memory");
    if (wanted && ft__scale_of_step(t->ask.ft, t->ask.object, v, scale, err) != FT_OK) status = cli_fail(err);
    v->scale = scale;
    if (!status) status = cli_picture_step(args, v);
    v->scale = NULL;
    free(scale);
    return status;
}

/* Of one GPU: the step, its network, how long a training takes. */
static void add_whole(const trainer *t, ft_text *out, const ft_style *style, const ft_step_view *v)
{
    if (!add_screen(t->ask.args, out, style, v)) out->failed = true;
    if (!cli_many_screen(t->ask.args, out, style, v)) out->failed = true;
    if (!(v->tokens > 0)) return;
    ft_days days = ft__days_of(v, v->tokens, (double)ft__view_gpus(v));
    ft__screen_days(out, style, &days);
    if (t->planned.tried) ft__screen_planned(out, style, &t->planned);
}

/* Of several GPUs: what they have in common. */
static void add_title(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    ft_step_view all = *v;
    all.device = NULL;
    ft__screen_step_title(out, style, &all);
}

/* What was asked of GPUs so far. */
typedef struct asked_gpus {
    ft_text out, heading; /* heading: of a page of several */
    ft_step_case *cases;
    size_t count; /* those that answered */
    double quantile;
} asked_gpus;

/* Whether a GPU before the last was warned of this line, too. */
static bool said_before(const asked_gpus *all, const char *line, size_t length)
{
    for (size_t i = 0; i + 1 < all->count; i++) {
        const char *at = all->cases[i].warnings.at;
        for (; at && *at; at += strcspn(at, "\n"), at += *at == '\n')
            if (strcspn(at, "\n") == length && !memcmp(at, line, length)) return true;
    }
    return false;
}

/* Once, however many GPUs are warned of it. */
static void say_warnings(const asked_gpus *all, const cli_args *args, const char *lines)
{
    ft_text fresh = {.cap = 1 << 16};
    for (; *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n') {
        size_t length = strcspn(lines, "\n");
        if (said_before(all, lines, length)) continue;
        ft__text_add_n(&fresh, lines, length);
        ft__text_add(&fresh, "\n");
    }
    cli_say_warnings(args, args->operands[0], fresh.length ? fresh.at : "");
    ft__text_free(&fresh);
}

static void print_gpu(trainer *t, const ft_style *style, const char *gpu, const ft_step_view *v, asked_gpus *all)
{
    const cli_asker *a = &t->ask;
    const bool several = a->gpu_count > 1;
    if (several && all->count == 1 && cli_picture_wanted(a->args)) {
        static const ft_style page = {.unicode = true, .width = 100000};
        add_title(&all->heading, &page, v);
    }
    if (a->json) {
        json_t *id = several ? cli_ask_id(&all->out, gpu) : NULL;
        add_answer(t, &all->out, id, v);
        json_decref(id);
        return;
    }
    say_warnings(all, a->args, v->warnings);
    if (cli_has(a->args, OPT_STEP_CSV)) {
        if (!ft__csv_step(&all->out, v)) all->out.failed = true;
    } else if (!several) {
        add_whole(t, &all->out, style, v);
    } else if (all->count == 1) {
        add_title(&all->out, style, v);
        ft__text_add(&all->out, "\n");
    }
}

/* One GPU: its files, its case, its part of what is printed. The exit status. */
static int ask_gpu(trainer *t, const ft_style *style, size_t i, asked_gpus *all)
{
    cli_asker *a = &t->ask;
    ft_error err = {0};
    ft_step_view view;
    if (!cli_asker_set(a, FT_KEY_ID_GPU, json_string(a->gpus[i]))) return cli_ask_unread(a->args);
    if (forecast(t, &view, &err) != FT_OK) {
        bool last = i + 1 == a->gpu_count && all->count == 0;
        if (!last && cli_leave_out(&err, a->gpu_count, a->gpus[i], a->json, &all->out)) return 0;
        return fail(t, &err);
    }
    int status = cli_many_files(a->args, &view);
    if (!status && a->gpu_count == 1) status = write_pictures(t, &view, &err);
    if (status) return status;
    t->all_fit = t->all_fit && view.step->memory.fits;
    all->quantile = view.quantile;
    ft_step_case *c = &all->cases[all->count++];
    ft__text_add(&c->warnings, view.warnings);
    c->device = *view.device;
    c->step = *view.step;
    if (view.tokens > 0) c->days = ft__days_of(&view, view.tokens, (double)ft__view_gpus(&view));
    print_gpu(t, style, a->gpus[i], &view, all);
    return 0;
}

static int run_gpus(trainer *t)
{
    cli_asker *a = &t->ask;
    ft_style style = cli_style(a->args);
    asked_gpus all = {.quantile = 0.9, .cases = calloc(a->gpu_count, sizeof *all.cases)};
    const bool several = a->gpu_count > 1, screen = !a->json && !cli_has(a->args, OPT_STEP_CSV);
    int status = 0;
    if (!all.cases) return cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < a->gpu_count && !status; i++) status = ask_gpu(t, &style, i, &all);
    if (!status && !a->json && several && !ft__screen_steps(&all.out, &style, all.cases, all.count, all.quantile))
        all.out.failed = true;
    if (!status)
        status = screen ? cli_show(&all.out, &style) : cli_print(&all.out);
    else
        ft__text_free(&all.out);
    if (!status && several && cli_picture_wanted(a->args))
        status = all.heading.failed ? cli_complain(FT_E_MEMORY, "out of memory")
                                    : cli_picture_steps(a->args, all.heading.at, all.cases, all.count, all.quantile);
    ft__text_free(&all.heading);
    for (size_t i = 0; i < all.count; i++) ft__text_free(&all.cases[i].warnings);
    free(all.cases);
    return status;
}

/* People get advice unless they do without; programs when they say so, because it costs thirty forecasts. */
static bool ask_for_advice(trainer *t)
{
    const cli_args *args = t->ask.args;
    const char *advice = cli_value(args, OPT_ADVICE), *detail = cli_value(args, OPT_DETAIL);
    bool quiet = t->ask.json || t->ask.gpu_count > 1 || (detail && strcmp(detail, "summary") != 0);
    if (cli_has(args, OPT_STEP_CSV)) quiet = true;
    bool wanted = advice ? strcmp(advice, "none") != 0 : !quiet, table = cli_has(args, OPT_TECHNIQUES);
    bool page = cli_value(args, OPT_HTML) && t->ask.gpu_count == 1; /* it says what to change */
    t->for_page = !wanted && !advice && !table && page;
    wanted = wanted || t->for_page;
    return (!wanted || cli_asker_set(&t->ask, FT_KEY_ID_ADVICE, json_true())) &&
           (!table || cli_asker_set(&t->ask, FT_KEY_ID_TECHNIQUES, json_true()));
}

static int check_output(const cli_args *args)
{
    int gpus = 0;
    for (int i = 0; i < args->given_count; i++) gpus += args->given[i].option == OPT_GPU;
    if (gpus > 1 && (cli_has(args, OPT_PICTURE) || cli_has(args, OPT_STEP_CSV)))
        return cli_usage(args->command, "--picture and --csv show one kind of GPU; %d were given", gpus);
    if (cli_has(args, OPT_STEP_CSV) && cli_has(args, OPT_JSON))
        return cli_usage(args->command, "--csv or --json, not both");
    return cli_picture_check(args);
}

int cli_train(const cli_args *args)
{
    trainer t = {.all_fit = true};
    int status = check_output(args);
    if (status) return status;
    const char *detail = cli_value(args, OPT_DETAIL);
    status = cli_asker_open(&t.ask, args, "train");
    if (!status && detail && !cli_asker_set(&t.ask, FT_KEY_ID_DETAIL, json_string(detail)))
        status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status && (!fill_nodes(&t.ask) || !ask_for_advice(&t))) status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status) status = run_gpus(&t);
    ft__planned_free(&t.planned);
    cli_asker_close(&t.ask);
    return !status && !t.all_fit ? 1 : status; /* answered, and the answer is: not like this */
}
