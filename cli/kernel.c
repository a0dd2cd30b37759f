/* kernel.c: `foretell kernel OP ...`: one operator on one GPU, on several, or over a range of one size. */
#include <stdio.h>
#include <stdlib.h>

#include "ask.h"
#include "commands.h"
#include "picture.h"
#include "report/json/answer.h"
#include "report/text/lines.h"
#include "report/text/screen.h"
#include "study/warned.h"
#include "sweep.h"
#include "terminal.h"

enum { MOST_POINTS = 100000 };

static ft_status forecast(cli_asker *j, const char *gpu, ft_scratch *scratch, ft_request *request, ft_forecast *f,
                          ft_error *err)
{
    if (!cli_asker_set(j, FT_KEY_ID_GPU, json_string(gpu)))
        return cli_is_utf8(gpu) ? ft__no_memory(err)
                                : ft__fail_at(err, FT_E_NAME, "gpu", 0, 0, "the name of the GPU is not UTF-8");
    FT_TRY(ft__request_of(j->ft, scratch, j->object, request, err));
    return ft__forecast_of(j->ft, request, f, err);
}

static double quantile_of(const ft_request *request) { return request->quantile > 0 ? request->quantile : 0.9; }

/* -- one point, one or more GPUs --------------------------------------------------------------- */

static int run_points(cli_asker *j)
{
    ft_style style = cli_style(j->args);
    ft_text out = {0};
    ft_error err = {0};
    ft_request request = {0};
    int status = 0;
    size_t count = 0; /* those that answered */
    ft_screen_case *cases = calloc(j->gpu_count, sizeof *cases);
    ft_scratch *scratch = calloc(j->gpu_count, sizeof *scratch); /* each case keeps its device */
    if (!cases || !scratch) status = cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; !status && i < j->gpu_count; i++) {
        ft_request asked = {0};
        ft_forecast *f = &cases[count].forecast;
        if (forecast(j, j->gpus[i], &scratch[i], &asked, f, &err) != FT_OK) {
            bool last = i + 1 == j->gpu_count && count == 0;
            if (!last && cli_leave_out(&err, j->gpu_count, j->gpus[i], j->json, &out)) continue;
            status = cli_asker_fail(j, &err);
            break;
        }
        request = asked;
        if (!j->json) cli_say_warnings(j->args, j->gpus[i], request.warnings);
        ft__text_add(&cases[count].warnings, request.warnings);
        cases[count].device = request.device;
        cases[count++].op = request.op;
        if (!j->json) continue;
        json_t *id = j->gpu_count > 1 ? cli_ask_id(&out, j->gpus[i]) : NULL;
        ft_energy energy = ft__energy_of_kernel(j->ft, &request, f);
        ft__answer_kernel(&out, id, f, &energy, request.warnings);
        cli_ask_answered(&out, j->object);
        ft__text_add(&out, "\n");
        json_decref(id);
    }
    if (!status) status = cli_picture_kernel(j->args, cases, count, quantile_of(&request));
    if (!status && !j->json) {
        if (count == 1)
            ft__screen_kernel(&out, &style, &request.op, request.device, &cases[0].forecast, quantile_of(&request));
        else if (!ft__screen_compare(&out, &style, cases, count, quantile_of(&request)))
            out.failed = true;
    }
    if (!status)
        status = j->json ? cli_print(&out) : cli_show(&out, &style);
    else
        ft__text_free(&out);
    for (size_t i = 0; cases && i < count; i++) ft__text_free(&cases[i].warnings);
    for (size_t i = 0; scratch && i < j->gpu_count; i++) ft__scratch_free(&scratch[i]);
    free(scratch);
    free(cases);
    return status;
}

/* -- a sweep ----------------------------------------------------------------------------------- */

static ft_status forecast_at(cli_asker *j, const char *gpu, ft_scratch *scratch, const cli_sweep *sweep, double x,
                             ft_request *request, ft_forecast *f, ft_error *err)
{
    if (json_object_set_new(j->object, sweep->key, sweep->whole ? json_integer((json_int_t)x) : json_real(x)) != 0)
        return ft__no_memory(err);
    return forecast(j, gpu, scratch, request, f, err);
}

static void title(ft_text *out, const ft_style *style, cli_asker *j, const cli_sweep *sweep, const ft_request *r,
                  bool first)
{
    bool plain = ft__points_plain(sweep->x, sweep->count);
    ft_text fixed = {0};
    ft__text_addf(out, "%s", first ? "" : "\n");
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_addf(out, "%s over %s ", j->args->operands[0], sweep->key);
    ft__add_point(out, sweep->x[0], plain);
    ft__text_addf(out, " %s ", ft__dash(style));
    ft__add_point(out, sweep->x[sweep->count - 1], plain);
    ft__ink_end(out, style);
    ft__text_add(out, "  on ");
    ft__text_add_plain(out, r->device->title[0] ? r->device->title : r->device->name);
    ft__text_add(out, "\n");
    cli_sweep_fixed(&fixed, j->args, sweep->option);
    ft__ink(out, style, FT_INK_DIM);
    if (fixed.length) ft__add_wrapped(out, style, fixed.at);
    ft__ink_end(out, style);
    ft__text_add(out, "\n");
    out->failed = out->failed || fixed.failed;
    ft__text_free(&fixed);
}

static int sweep_gpu(cli_asker *j, const cli_sweep *sweep, size_t gpu, ft_screen_point *points, ft_device *device,
                     ft_warned *warned)
{
    ft_style style = cli_style(j->args);
    ft_scratch scratch = {0};
    ft_request request = {0};
    ft_error err = {0};
    ft_text out = {0};
    int status = 0;
    for (size_t i = 0; i < sweep->count && !status; i++) {
        points[i].x = sweep->x[i];
        ft_status s = forecast_at(j, j->gpus[gpu], &scratch, sweep, sweep->x[i], &request, &points[i].forecast, &err);
        if (s != FT_OK) {
            char message[sizeof err.message];
            snprintf(message, sizeof message, "%s", err.message);
            ft__fail_at(&err, s, err.where, 0, 0, "%s (at %s = %.10g)", message, sweep->key, sweep->x[i]);
            status = cli_asker_fail(j, &err);
            break;
        }
        if (!ft__warned_settled(warned)) ft__warned_add(warned, request.warnings, sweep->x[i]);
        if (j->json) {
            char name[160];
            snprintf(name, sizeof name, "%.64s %s=%.10g", j->gpus[gpu], sweep->key, sweep->x[i]);
            json_t *id = cli_ask_id(&out, name);
            ft_energy energy = ft__energy_of_kernel(j->ft, &request, &points[i].forecast);
            ft__answer_kernel(&out, id, &points[i].forecast, &energy, request.warnings);
            cli_ask_answered(&out, j->object);
            ft__text_add(&out, "\n");
            json_decref(id);
        }
    }
    if (!status) *device = *request.device;
    if (!status && !j->json) {
        bool csv = cli_has(j->args, OPT_CSV);
        if (!csv) title(&out, &style, j, sweep, &request, gpu == 0);
        bool done = csv ? ft__csv_sweep(&out, sweep->key, gpu == 0, request.device, points, sweep->count)
                        : ft__screen_sweep(&out, &style, sweep->key, points, sweep->count);
        if (!done) out.failed = true;
    }
    bool screen = !j->json && !cli_has(j->args, OPT_CSV);
    if (!status)
        status = screen ? cli_show(&out, &style) : cli_print(&out);
    else
        ft__text_free(&out);
    ft__scratch_free(&scratch);
    return status;
}

/* What has no effect at any point; in JSON the answers carry it, on a page the page. */
static int say_warned(const cli_asker *j, const ft_warned *warned, ft_text *lines)
{
    ft__warned_lines(warned, lines);
    if (lines->failed) return cli_complain(FT_E_MEMORY, "out of memory");
    if (lines->length && !j->json) cli_say_warnings(j->args, j->args->operands[0], lines->at);
    return 0;
}

static int run_sweep(cli_asker *j)
{
    cli_sweep sweep;
    int status = cli_sweep_parse(j->args, MOST_POINTS, &sweep);
    if (status) {
        cli_sweep_free(&sweep);
        return status;
    }
    ft_screen_point *points = calloc(j->gpu_count * sweep.count, sizeof *points);
    ft_device *devices = calloc(j->gpu_count, sizeof *devices);
    ft_warned warned = {.moving = cli_sweep_key(&sweep)};
    if (!points || !devices) status = cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < j->gpu_count && !status; i++)
        status = sweep_gpu(j, &sweep, i, points + i * sweep.count, &devices[i], &warned);
    ft_text lines = {0};
    if (!status) status = say_warned(j, &warned, &lines);
    ft__warned_free(&warned);
    if (!status && cli_picture_wanted(j->args)) {
        ft_text fixed = {0};
        cli_sweep_fixed(&fixed, j->args, sweep.option);
        ft_page_sweep_case page = {.op = j->args->operands[0],
                                   .fixed = fixed.at ? fixed.at : "",
                                   .key = sweep.key,
                                   .devices = devices,
                                   .gpus = j->gpu_count,
                                   .count = sweep.count,
                                   .points = points,
                                   .warnings = lines.at};
        status = fixed.failed ? cli_complain(FT_E_MEMORY, "out of memory") : cli_picture_sweep(j->args, &page);
        ft__text_free(&fixed);
    }
    ft__text_free(&lines);
    free(points);
    free(devices);
    cli_sweep_free(&sweep);
    return status;
}

/* -- the command ------------------------------------------------------------------------------- */

int cli_kernel(const cli_args *args)
{
    cli_asker j;
    bool csv = cli_has(args, OPT_CSV), sweep = cli_has(args, OPT_SWEEP);
    if (csv && !sweep) return cli_usage(args->command, "--csv prints a --sweep; there is none");
    if (csv && cli_has(args, OPT_JSON)) return cli_usage(args->command, "--csv or --json, not both");
    int status = cli_picture_check(args);
    if (status) return status;
    status = cli_asker_open(&j, args, "kernel");
    if (!status) status = sweep ? run_sweep(&j) : run_points(&j);
    cli_asker_close(&j);
    return status;
}
