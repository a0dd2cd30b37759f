/* serve.c: `foretell serve MODEL`: what clients of a serving engine see under load. */
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/file.h"
#include "commands.h"
#include "picture.h"
#include "progress.h"
#include "report/json/serve_answer.h"
#include "report/text/serve_screen.h"
#include "report/trace/serve_trace.h"
#include "serve_side.h"
#include "terminal.h"

enum { MOST_DRAWN = 20000, MOST_LISTED = 1 << 24 };

typedef struct server {
    cli_asker ask;
    ft_serve_request asked;
    ft_serving found;
    ft_roll record;
    ft_error err;
} server;

/* Runs of up to two seconds are over before a bar could be read. */
static void tell(void *progress, double share)
{
    if (cli_progress_seconds(progress) > 2) cli_progress_report(progress, "requests", share);
}

static int write_trace(server *s)
{
    const char *path = cli_value(s->ask.args, OPT_PERFETTO);
    ft_text out = {0};
    if (!path) return 0;
    ft__perfetto_serve(&out, &s->record);
    ft_status status = out.failed ? ft__no_memory(&s->err) : ft__file_write(path, out.at, out.length, &s->err);
    ft__text_free(&out);
    return status == FT_OK ? 0 : cli_fail(&s->err);
}

static int print(server *s)
{
    const cli_args *args = s->ask.args;
    ft_style style = cli_style(args);
    ft_text out = {0};
    bool csv = cli_has(args, OPT_SERVE_CSV);
    int status = cli_picture_serve(args, &s->found);
    if (!status) status = write_trace(s);
    if (status) return status;
    if (s->ask.json) {
        ft__answer_serve(&out, NULL, &s->found, NULL, false);
        cli_ask_answered(&out, s->ask.object);
        ft__text_add(&out, "\n");
    } else if (csv) {
        ft__csv_serve(&out, &s->record);
    } else {
        cli_say_warnings(args, args->operands[0], s->found.warnings.at ? s->found.warnings.at : "");
        if (!ft__screen_serve(&out, &style, &s->found)) out.failed = true;
    }
    status = s->ask.json || csv ? cli_print(&out) : cli_show(&out, &style);
    bool no = !s->found.stable || (s->found.slo_share > 0 && !s->found.slo_met);
    return !status && no ? 1 : status;
}

int cli_serve(const cli_args *args)
{
    server s = {0};
    int status = cli_picture_check(args);
    if (!status && cli_has(args, OPT_SERVE_CSV) && cli_has(args, OPT_JSON))
        status = cli_usage(args->command, "--csv or --json, not both");
    if (status) return status;
    status = cli_asker_open(&s.ask, args, "serve");
    const char **engines = NULL;
    size_t engine_count = 0;
    if (!status && !cli_values(args, OPT_SERVING_ENGINE, &engines, &engine_count))
        status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status && (s.ask.gpu_count > 1 || engine_count > 1)) {
        status = cli_has(args, OPT_SERVE_CSV) || cli_has(args, OPT_PERFETTO) || cli_value(args, OPT_HTML)
                     ? cli_usage(args->command,
                                 "several GPUs or engines stand side by side in a table, or with --json; "
                                 "--csv, --perfetto and --html are of one")
                     : cli_serve_side(&s.ask, engines, engine_count);
        free(engines);
        cli_asker_close(&s.ask);
        return status;
    }
    free(engines);
    if (!status && ft__serve_request_read(s.ask.object, &s.asked, &s.err) != FT_OK)
        status = cli_asker_fail(&s.ask, &s.err);
    bool drawn = cli_has(args, OPT_PERFETTO);
    cli_progress progress;
    ft_serving_sink sink = ft__roll_sink(&s.record,
                                         cli_has(args, OPT_SERVE_CSV) ? MOST_LISTED
                                         : drawn                      ? MOST_DRAWN
                                                                      : 0,
                                         drawn ? MOST_DRAWN : 0);
    bool watched = cli_stderr_is_terminal(); /* nobody reads a bar in a file */
    cli_progress_begin(&progress, "serving");
    sink.watcher = &progress;
    if (watched) sink.progress = tell;
    if (!status && ft__serve_of(s.ask.ft, &s.ask.scratch, &s.asked, &sink, &s.found, &s.err) != FT_OK)
        status = cli_asker_fail(&s.ask, &s.err);
    cli_progress_end(&progress);
    const char *advice = cli_value(args, OPT_ADVICE);
    bool advises = advice ? strcmp(advice, "none") != 0 : !s.ask.json && !cli_has(args, OPT_SERVE_CSV);
    if (!status && advises && s.found.find == FT_FIND_NOTHING &&
        ft__serving_advise(s.ask.ft, &s.ask.scratch, &s.asked, &s.found, &s.err) != FT_OK)
        status = cli_asker_fail(&s.ask, &s.err);
    if (!status && s.record.failed) status = cli_complain(FT_E_MEMORY, "out of memory");
    if (!status) status = print(&s);
    ft__roll_free(&s.record);
    ft__serving_free(&s.found);
    ft__serve_request_free(&s.asked);
    cli_asker_close(&s.ask);
    return status;
}
