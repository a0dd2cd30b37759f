/* validate.c: `foretell validate`: real against forecast, and a budget that errors may not exceed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_write.h"
#include "commands.h"
#include "fit/fit.h"
#include "paths.h"
#include "progress.h"
#include "report/text/accuracy_screen.h"
#include "report/text/columns.h"
#include "report/text/describe.h"
#include "terminal.h"
#include "validate_models.h"

/* -- cases ------------------------------------------------------------------------------------- */

typedef struct one_case {
    double miss; /* |log(forecast / measured)|: twice too long and twice too short are equally wrong */
    char *text;  /* its cells, as a row of a table or as an object of JSON */
} one_case;

typedef struct cases {
    bool json, every;
    size_t worst, kept;
    one_case *list; /* the worst so far, by falling miss */
    ft_columns table;
    ft_text objects;
    size_t object_count;
    bool failed;
} cases;

static const char cases_align[] = "llllrrrrrl";
static const char *const cases_head[] = {"family",   "variant", "gpu",  "case",  "measured ms",
                                         "forecast", "low",     "high", "error", ""};

static void add_object(ft_text *out, const char *family, const char *variant, const char *gpu, const char *description,
                       double measured_ms, const ft_forecast *f)
{
    const char *const words[] = {"family", family, "variant", variant, "gpu", gpu, "case", description};
    ft__json_open(out);
    for (int i = 0; i < 8; i += 2) ft__json_member_text(out, words[i], words[i + 1]);
    const double times[] = {measured_ms, f->ms, f->low_ms, f->high_ms, f->ms / measured_ms - 1};
    static const char *const names[] = {"measured_ms", "ms", "low_ms", "high_ms", "error"};
    for (int i = 0; i < 5; i++) ft__json_member_number(out, names[i], times[i], 6);
    ft__json_close(out);
}

static void add_cells(ft_columns *c, const char *family, const char *variant, const char *gpu, const char *description,
                      double measured_ms, const ft_forecast *f)
{
    ft__cell_add(c, family);
    ft__cell_add(c, variant);
    ft__cell_add(c, gpu);
    ft__cell_add(c, description);
    ft__add_figure(ft__cell(c), measured_ms, 4);
    ft__add_figure(ft__cell(c), f->ms, 4);
    ft__add_figure(ft__cell(c), f->low_ms, 4);
    ft__add_figure(ft__cell(c), f->high_ms, 4);
    ft__text_addf(ft__cell(c), "%+.1f %%", 100 * (f->ms / measured_ms - 1));
    ft__cell_add(c, measured_ms < f->low_ms || measured_ms > f->high_ms ? "outside" : "");
}

static void keep_worst(cases *c, double miss, char *text)
{
    size_t at = c->kept;
    while (at > 0 && c->list[at - 1].miss < miss) at--;
    if (at == c->worst) {
        free(text);
        return;
    }
    if (c->kept == c->worst) free(c->list[--c->kept].text);
    memmove(&c->list[at + 1], &c->list[at], (c->kept - at) * sizeof *c->list);
    c->list[at] = (one_case){miss, text};
    c->kept++;
}

/* Cells travel through the list of the worst as one text with tabs: descriptions hold none. */
static void add_case(cases *c, const char *family, const char *variant, const char *gpu, const char *text,
                     double measured_ms, const ft_forecast *f)
{
    if (c->every && c->json) {
        if (c->object_count++) ft__text_add(&c->objects, ",\n");
        add_object(&c->objects, family, variant, gpu, text, measured_ms, f);
    } else if (c->every) {
        add_cells(&c->table, family, variant, gpu, text, measured_ms, f);
    } else if (c->worst) {
        double miss = fabs(log(f->ms / measured_ms));
        if (c->kept < c->worst || miss > c->list[c->kept - 1].miss) {
            ft_text row = {0};
            ft_columns cells;
            ft__columns_init(&cells, cases_align);
            if (c->json)
                add_object(&row, family, variant, gpu, text, measured_ms, f);
            else
                add_cells(&cells, family, variant, gpu, text, measured_ms, f);
            if (!c->json) {
                for (size_t i = 0; i < cells.text.length; i++)
                    if (cells.text.at[i] == '\0') cells.text.at[i] = '\t';
                ft__text_add(&row, cells.text.at ? cells.text.at : "");
            }
            ft__columns_free(&cells);
            if (row.at && !row.failed)
                keep_worst(c, miss, row.at);
            else
                c->failed = true;
        }
    }
    c->failed = c->failed || c->objects.failed || c->table.text.failed;
}

static void each_case(void *context, const char *family, const char *variant, const ft_device *device, const ft_op *op,
                      double measured_ms, const ft_forecast *f)
{
    cases *c = context;
    ft_text description = {0};
    ft__describe_op(&description, op);
    add_case(c, family, variant, device->name, description.at ? description.at : "", measured_ms, f);
    c->failed = c->failed || description.failed;
    ft__text_free(&description);
}

/* Memory is no time: its cases count in the table of errors alone. */
static void each_model(void *context, const char *variant, const char *gpu, const char *description, double measured,
                       const ft_forecast *f, bool memory)
{
    if (!memory) add_case(context, "models", variant, gpu, description, measured, f);
}

static void add_cases(cases *c, ft_text *out, const ft_style *style)
{
    if (c->every && !c->json && !ft__columns_print(&c->table, out, style, 0, true)) c->failed = true;
    if (c->every || c->kept == 0) return;
    if (c->json) {
        for (size_t i = 0; i < c->kept; i++) {
            if (c->object_count++) ft__text_add(&c->objects, ",\n");
            ft__text_add(&c->objects, c->list[i].text);
        }
        return;
    }
    for (size_t i = 0; i < c->kept; i++)
        for (char *at = c->list[i].text; at;) {
            char *tab = strchr(at, '\t');
            if (tab) *tab++ = '\0';
            ft__cell_add(&c->table, at);
            at = tab;
        }
    if (!ft__columns_print(&c->table, out, style, 0, true)) c->failed = true;
}

static bool begin_cases(const cli_args *args, cases *c, size_t worst)
{
    memset(c, 0, sizeof *c);
    c->json = cli_has(args, OPT_JSON);
    c->every = cli_has(args, OPT_ROWS_TABLE);
    c->worst = worst;
    ft__columns_init(&c->table, cases_align);
    for (int i = 0; i < 10; i++) ft__cell_add(&c->table, cases_head[i]);
    c->list = calloc(worst + 1, sizeof *c->list);
    return c->list != NULL;
}

static void end_cases(cases *c)
{
    for (size_t i = 0; i < c->kept; i++) free(c->list[i].text);
    free(c->list);
    ft__columns_free(&c->table);
    ft__text_free(&c->objects);
}

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

static ft_status measure(const char *predictor, const char *calibration, ft_validate_options *options, wanted which,
                         ft_accuracy_table *out, ft_error *err)
{
    ft_predictor *p;
    FT_TRY(ft__predictor_open(predictor, &p, err));
    ft_status status = calibration ? ft__predictor_calibrate(p, calibration, err) : FT_OK;
    if (status == FT_OK && which.kernels) status = ft__validate(p, options, out, err);
    ft__predictor_close(p);
    if (status != FT_OK || !which.models) return status;
    size_t failed;
    ft_error reason = {0};
    status = cli_validate_models(options->data, predictor, calibration, options->quantile,
                                 options->each ? each_model : NULL, options->each_context, out, &failed, &reason);
    if (status != FT_OK) *err = reason;
    if (status == FT_OK && failed && options->progress_context)
        fprintf(stderr, "foretell: %zu measured models could not be forecast; the last: %s\n", failed, reason.message);
    return status;
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

static int print_outcome(const cli_args *args, const outcome *o, cases *c, const char *budget,
                         const ft_text *complaints, size_t checked)
{
    ft_text out = {0};
    ft_style style = cli_style(args);
    if (c->json) {
        ft_text unused = {0};
        add_cases(c, &unused, &style);
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
        add_cases(c, &out, &style);
        if (out.length) ft__text_add(&out, "\n");
        if (!ft__screen_accuracy(&out, &style, &o->table, o->beside, o->beside_count)) out.failed = true;
        if (budget && !complaints->length)
            ft__text_addf(&out, "\nwithin the budget of %s (%zu lines)\n", budget, checked);
    }
    if (c->failed) out.failed = true;
    return c->json ? cli_print(&out) : cli_show(&out, &style);
}

/* -- the command ------------------------------------------------------------------------------- */

static int finish(const cli_args *args, const char *folder, const outcome *o, cases *c)
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

    cases c;
    outcome o = {0};
    cli_progress progress;
    ft_error err = {0};
    if (!begin_cases(args, &c, (size_t)worst)) return cli_complain(FT_E_MEMORY, "out of memory");
    options->data = folder;
    options->threads = (int)threads;
    options->held_out_only = cli_has(args, OPT_HELD_OUT);
    options->each = c.every || worst ? each_case : NULL;
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
    end_cases(&c);
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
