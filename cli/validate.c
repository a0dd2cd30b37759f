/* validate.c: `foretell validate`: real against forecast, and a budget that errors may not exceed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "base/file.h"
#include "base/json_write.h"
#include "commands.h"
#include "fit/fit.h"
#include "paths.h"
#include "progress.h"
#include "report/text/accuracy_screen.h"
#include "report/text/measured_cases.h"
#include "study/measured.h"
#include "terminal.h"

/* -- the tables -------------------------------------------------------------------------------- */

enum { BASELINES = 3 };

typedef struct outcome {
    ft_accuracy_table table, baseline[BASELINES];
    ft_baseline_table beside[BASELINES];
    size_t beside_count;
    char scaling[96];
} outcome;

/* "models" beside the families of kernels: whole models. */
typedef struct wanted {
    bool kernels, models;
} wanted;

static ft_status measure_models(const char *predictor, const char *calibration, const ft_validate_options *options,
                                ft_accuracy_table *out, ft_error *err)
{
    ft_options open = {.predictor = predictor, .calibration = calibration, .quantile = options->quantile};
    ft_context *ft = NULL;
    size_t failed = 0;
    ft_error reason = {0};
    ft_asking asking = {.scratch = calloc(1, sizeof *asking.scratch)};
    ft_status status = asking.scratch ? ft_open(&ft, &open, &reason) : ft__no_memory(&reason);
    asking.ft = ft;
    if (status == FT_OK)
        status = ft__validate_models(options->data, ft__answer_asking, &asking,
                                     options->each ? ft__measured_model : NULL, options->each_context, out, &failed,
                                     &reason);
    if (status != FT_OK) *err = reason;
    if (status == FT_OK && failed && options->progress_context)
        fprintf(stderr, "foretell: %zu measured models could not be forecast; the last: %s\n", failed, reason.message);
    if (asking.scratch) ft__scratch_free(asking.scratch);
    free(asking.scratch);
    ft_close(ft);
    return status;
}

static ft_status measure(const char *predictor, const char *calibration, ft_validate_options *options, wanted which,
                         ft_accuracy_table *out, ft_error *err)
{
    ft_predictor *p;
    FT_TRY(ft__predictor_open(predictor, &p, err));
    ft_status status = calibration ? ft__predictor_calibrate(p, calibration, err) : FT_OK;
    if (status == FT_OK && which.kernels) status = ft__validate(p, options, out, err);
    ft__predictor_close(p);
    if (status != FT_OK || !which.models) return status;
    return measure_models(predictor, calibration, options, out, err);
}

static ft_status measure_baselines(const cli_args *args, ft_validate_options *options, wanted which, outcome *o,
                                   ft_error *err)
{
    const char *from = cli_value(args, OPT_SCALING_FROM);
    snprintf(o->scaling, sizeof o->scaling, "scaling:%.60s", from ? from : cli_options[OPT_SCALING_FROM].standard);
    const char *const names[BASELINES] = {"roofline", "linear", o->scaling};
    options->each = NULL;
    for (int i = 0; i < BASELINES; i++) {
        FT_TRY(measure(names[i], NULL, options, which, &o->baseline[i], err));
        o->beside[o->beside_count++] = (ft_baseline_table){names[i], &o->baseline[i]};
    }
    return FT_OK;
}

/* The budget that was named; else the one beside the measurements, for the predictor it was made for. */
static const char *budget_path(const cli_args *args, const char *folder, char *room, size_t length)
{
    const char *given = cli_value(args, OPT_BUDGET);
    if (given || cli_has(args, OPT_PREDICTOR) || cli_has(args, OPT_CALIBRATION) || cli_has(args, OPT_QUANTILE))
        return given;
    snprintf(room, length, "%s/budget.json", folder);
    return ft__file_exists(room) ? room : NULL;
}

static void add_complaints(ft_text *out, const ft_text *complaints)
{
    const char *at = complaints->at ? complaints->at : "";
    ft__json_member_list(out, "over_budget");
    while (*at) {
        size_t length = strcspn(at, "\n");
        char line[256];
        snprintf(line, sizeof line, "%.*s", (int)(length < 255 ? length : 255), at);
        ft__json_add_text(out, line);
        at += length;
        if (*at) at++;
    }
    ft__json_close_list(out);
}

static int print_outcome(const cli_args *args, const outcome *o, ft_measured_cases *c, const char *budget,
                         const ft_text *complaints, size_t checked)
{
    ft_text out = {0};
    ft_style style = cli_style(args);
    if (c->json) {
        ft_text unused = {0};
        ft__measured_print(c, &unused, &style);
        ft__json_open(&out);
        ft__json_member_flag(&out, "ok", !complaints->length);
        ft__json_key(&out, "accuracy");
        ft__answer_accuracy(&out, &o->table);
        for (size_t i = 0; i < o->beside_count; i++) {
            ft__json_line(&out);
            ft__json_key(&out, o->beside[i].name);
            ft__answer_accuracy(&out, o->beside[i].table);
        }
        if (c->object_count) {
            ft__json_line(&out);
            ft__json_member_list(&out, "cases");
            ft__text_addf(&out, "\n%s\n", c->objects.at ? c->objects.at : "");
            ft__json_close_list(&out);
        }
        if (budget) add_complaints(&out, complaints);
        ft__json_close(&out);
        ft__text_add(&out, "\n");
    } else {
        ft__measured_print(c, &out, &style);
        if (out.length) ft__text_add(&out, "\n");
        if (!ft__screen_accuracy(&out, &style, &o->table, o->beside, o->beside_count)) out.failed = true;
        if (budget && !complaints->length)
            ft__text_addf(&out, "\nwithin the budget of %s (%zu lines)\n", budget, checked);
    }
    if (c->failed) out.failed = true;
    return c->json ? cli_print(&out) : cli_show(&out, &style);
}

/* -- the command ------------------------------------------------------------------------------- */

static int finish(const cli_args *args, const char *folder, const outcome *o, ft_measured_cases *c)
{
    char room[4200];
    ft_error err = {0};
    ft_text complaints = {0};
    size_t checked = 0;
    bool everything = !cli_has(args, OPT_FAMILY) && !cli_has(args, OPT_GPU);
    const char *budget = budget_path(args, folder, room, sizeof room);
    if (budget && ft__budget_check(budget, &o->table, everything, &complaints, &checked, &err) != FT_OK) {
        ft__text_free(&complaints);
        return cli_fail(&err);
    }
    int status = print_outcome(args, o, c, budget, &complaints, checked);
    if (!status && complaints.length) {
        fprintf(stderr, "foretell: over the budget of %s:\n%s", budget, complaints.at);
        status = 1;
    }
    ft__text_free(&complaints);
    return status;
}

/* Takes "models" out of the list, as the rest are families of kernels; without a list both are wanted. */
static wanted what_is_wanted(ft_validate_options *options, const char **families)
{
    wanted which = {options->family_count == 0, options->family_count == 0};
    size_t kept = 0;
    for (size_t i = 0; i < options->family_count; i++) {
        if (!strcmp(families[i], "models")) {
            which.models = true;
            continue;
        }
        which.kernels = true;
        families[kept++] = families[i];
    }
    options->family_count = kept;
    bool theirs = options->gpu_count == 0; /* whole models were measured on one GPU */
    for (size_t i = 0; i < options->gpu_count; i++) theirs = theirs || !strcmp(options->gpus[i], ft__measured_gpu());
    which.models = which.models && theirs;
    return which;
}

static int validate(const cli_args *args, ft_validate_options *options, wanted which)
{
    char folder[4096];
    int64_t threads = 0, worst = 0;
    options->quantile = 0.9;
    int status = cli_whole(args, OPT_THREADS, 0, 256, &threads);
    if (!status) status = cli_whole(args, OPT_WORST, 1, 100000, &worst);
    if (!status) status = cli_real(args, OPT_QUANTILE, 0.5, 0.99, &options->quantile);
    if (!status) status = cli_check_families(options->families, options->family_count);
    if (!status) status = cli_data_folder(args, folder, sizeof folder);
    if (status) return status;

    ft_measured_cases c;
    outcome o = {0};
    cli_progress progress;
    ft_error err = {0};
    if (!ft__measured_begin(&c, cli_has(args, OPT_JSON), cli_has(args, OPT_ROWS_TABLE), (size_t)worst))
        return cli_complain(FT_E_MEMORY, "out of memory");
    options->data = folder;
    options->threads = (int)threads;
    options->held_out_only = cli_has(args, OPT_HELD_OUT);
    options->each = c.every || worst ? ft__measured_kernel : NULL;
    options->each_context = &c;
    options->progress = cli_progress_report;
    options->progress_context = &progress;
    cli_progress_begin(&progress, "validating");
    if (!cli_stderr_is_terminal()) options->progress = NULL; /* seconds, not minutes: no lines in logs */
    ft_status measured = measure(cli_value(args, OPT_PREDICTOR), cli_value(args, OPT_CALIBRATION), options, which,
                                 &o.table, &err);
    if (measured == FT_OK && cli_has(args, OPT_BASELINES)) measured = measure_baselines(args, options, which, &o, &err);
    cli_progress_end(&progress);
    status = measured == FT_OK ? finish(args, folder, &o, &c) : cli_fail(&err);
    ft__measured_end(&c);
    ft__accuracy_free(&o.table);
    for (int i = 0; i < BASELINES; i++) ft__accuracy_free(&o.baseline[i]);
    return status;
}

int cli_validate(const cli_args *args)
{
    ft_validate_options options = {0};
    const char **gpus = NULL, **families = NULL;
    int status = 0;
    if (!cli_values(args, OPT_GPU, &gpus, &options.gpu_count) ||
        !cli_values(args, OPT_FAMILY, &families, &options.family_count))
        status = cli_complain(FT_E_MEMORY, "out of memory");
    options.gpus = gpus;
    options.families = families;
    const char *from = cli_value(args, OPT_SCALING_FROM);
    if (!status) status = cli_check_gpus(gpus, options.gpu_count);
    if (!status && from) status = cli_check_gpus(&from, 1);
    if (!status) status = validate(args, &options, what_is_wanted(&options, families));
    free(gpus);
    free(families);
    return status;
}
