/* trace.c: `foretell trace FILE`: what a profiler recorded, and the same run on other GPUs. */
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "commands.h"
#include "report/json/answer.h"
#include "report/text/trace_screen.h"
#include "study/context.h"
#include "terminal.h"

static int fail(const cli_args *args, ft_error *err)
{
    if (cli_has(args, OPT_JSON)) cli_answer_error(err);
    bool of_file = !strcmp(err->where, args->operands[0]); /* which may be called as a key is */
    if (!of_file) cli_ask_name_flag(args, "file", err);
    return cli_fail(err);
}

static int show(const cli_args *args, const ft_trace_report *s, size_t rows)
{
    ft_text out = {0};
    ft_style style = cli_style(args);
    if (cli_has(args, OPT_JSON)) {
        ft__answer_trace(&out, NULL, s);
        ft__text_add(&out, "\n");
    } else {
        cli_say_warnings(args, args->operands[0], s->warnings.length ? s->warnings.at : "");
        if (!ft__screen_trace(&out, &style, args->operands[0], s, rows)) out.failed = true;
    }
    return cli_has(args, OPT_JSON) ? cli_print(&out) : cli_show(&out, &style);
}

int cli_trace(const cli_args *args)
{
    ft_error err = {0};
    ft_context *ft = NULL;
    const char **gpus = NULL;
    size_t count = 0;
    double quantile = 0;
    int64_t rows = 8;
    int status = cli_real(args, OPT_QUANTILE, 0.5, 0.99, &quantile);
    if (!status) status = cli_whole(args, OPT_TRACE_TOP, 1, 1000, &rows);
    if (status) return status;
    if (!cli_values(args, OPT_GPU, &gpus, &count)) return cli_complain(FT_E_MEMORY, "out of memory");
    if (count > FT_TRACE_TARGETS)
        status = cli_usage(args->command, "a trace is forecast for at most %d GPUs at once", FT_TRACE_TARGETS);
    ft_options options = {.predictor = cli_value(args, OPT_PREDICTOR), .calibration = cli_value(args, OPT_CALIBRATION)};
    if (!status && ft_open(&ft, &options, &err) != FT_OK) status = cli_fail(&err);
    ft_trace_report *s = status ? NULL : malloc(sizeof *s); /* some KiB */
    if (!status && !s) status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status) {
        ft_trace_request r = {.path = args->operands[0], .on = cli_value(args, OPT_TRACE_ON), .quantile = quantile};
        for (; r.gpu_count < count; r.gpu_count++) r.gpus[r.gpu_count] = gpus[r.gpu_count];
        ft_scratch scratch = {0};
        json_t *host = cli_has(args, OPT_HOST) ? json_string(cli_value(args, OPT_HOST)) : NULL;
        r.host = host;
        ft_status done = ft__trace_of(ft, &scratch, &r, s, &err);
        status = done == FT_OK ? show(args, s, (size_t)rows) : fail(args, &err);
        ft__trace_report_free(s);
        ft__scratch_free(&scratch);
        json_decref(host);
    }
    free(s);
    free(gpus);
    ft_close(ft);
    return status;
}
