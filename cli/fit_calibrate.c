/* fit_calibrate.c: `foretell fit --calibrate`: measurements of one GPU in, a calibration out, with what it gained. */
#include <stdio.h>
#include <stdlib.h>

#include "ask.h"
#include "base/file.h"
#include "base/json_write.h"
#include "commands.h"
#include "progress.h"
#include "report/text/calibration_screen.h"
#include "request/calibration_points.h"
#include "terminal.h"

static int print_gain(const cli_args *args, const ft_points *points, const ft_calibration_table *table)
{
    ft_text out = {0};
    ft_style style = cli_style(args);
    size_t held = 0;
    for (size_t i = 0; i < points->rows.count; i++) held += points->rows.at[i].held_out;
    if (cli_has(args, OPT_JSON)) {
        ft__json_open(&out);
        ft__json_member_flag(&out, "ok", true);
        ft__json_member_text(&out, "gpu", points->rows.gpus[0].name);
        ft__json_member_whole(&out, "points", (int64_t)(points->rows.count - held));
        ft__json_member_whole(&out, "held_out", (int64_t)held);
        ft__json_member_number(&out, "minutes", points->minutes, 4);
        ft__json_key(&out, "errors");
        ft__answer_calibration(&out, table);
        ft__json_close(&out);
        ft__text_add(&out, "\n");
    } else {
        ft__text_addf(&out, "%s: %zu points in %.1f minutes, %zu held out\n\n", points->rows.gpus[0].title,
                      points->rows.count - held, points->minutes, held);
        if (!ft__screen_calibration(&out, &style, table)) out.failed = true;
        ft__text_add(&out, "\nbefore, after: mean errors of the points held out. inside: share of their times in the "
                           "interval.\ntried: mean error of the other points, each by models that had not seen it.\n");
    }
    return cli_has(args, OPT_JSON) ? cli_print(&out) : cli_show(&out, &style);
}

static int calibrate(const cli_args *args, const ft_points *points, const ft_predictor *base, int threads)
{
    const char *output = cli_value(args, OPT_OUTPUT);
    cli_progress progress;
    ft_calibration_table table = {0};
    ft_error err = {0};
    void *file = NULL;
    size_t length = 0;
    ft_calibrate_options options = {.base = base,
                                    .rows = &points->rows,
                                    .machine = points->machine.at,
                                    .minutes = points->minutes,
                                    .threads = threads,
                                    .progress = cli_progress_report,
                                    .progress_context = &progress};
    cli_progress_begin(&progress, "calibrating");
    ft_status fitted = ft__calibrate(&options, &file, &length, &table, &err);
    cli_progress_end(&progress);
    if (fitted == FT_OK && output) fitted = ft__file_write(output, file, length, &err);
    int status = fitted == FT_OK ? print_gain(args, points, &table) : cli_fail(&err);
    if (!status && output) fprintf(stderr, "foretell: wrote %s, %zu bytes\n", output, length);
    if (!status && !output) fputs("foretell: nothing was written; -o FILE keeps the calibration\n", stderr);
    free(file);
    ft__calibration_table_free(&table);
    return status;
}

int cli_fit_calibrate(const cli_args *args, int threads)
{
    static const cli_option_id whole[] = {OPT_DATA, OPT_EXCLUDE_GPU, OPT_FAMILY, OPT_CROSS_VALIDATE};
    char flag[48];
    double minutes = 0;
    ft_points points;
    ft_predictor *base;
    ft_error err = {0};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (cli_has(args, whole[i]))
            return cli_usage(args->command, "%s is for fitting a whole predictor; it has no effect with --calibrate",
                             cli_flag(whole[i], flag));
    int status = cli_real(args, OPT_FIT_MINUTES, 0.001, 1e6, &minutes);
    if (status) return status;
    if (ft__points_read(cli_value(args, OPT_CALIBRATE_FROM), minutes, &points, &err) != FT_OK) return cli_fail(&err);
    cli_say_warnings(NULL, NULL, points.warnings.length ? points.warnings.at : "");
    if (ft__predictor_open(cli_value(args, OPT_PREDICTOR), &base, &err) != FT_OK) {
        ft__points_free(&points);
        return cli_fail(&err);
    }
    status = calibrate(args, &points, base, threads);
    ft__predictor_close(base);
    ft__points_free(&points);
    return status;
}
