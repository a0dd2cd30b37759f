/* serve.c: `foretell serve MODEL`: what clients of a serving engine see under load. */
#include <string.h>

#include "ask.h"
#include "commands.h"
#include "report/json/serve_answer.h"
#include "report/text/serve_screen.h"
#include "terminal.h"

typedef struct server {
    cli_asker ask;
    ft_serve_request asked;
    ft_serving found;
    ft_error err;
} server;

static int print(server *s)
{
    ft_style style = cli_style(s->ask.args);
    ft_text out = {0};
    if (s->ask.json) {
        ft__answer_serve(&out, NULL, &s->found);
        cli_ask_answered(&out, s->ask.object);
        ft__text_add(&out, "\n");
    } else {
        cli_say_warnings(s->ask.args->operands[0], s->found.warnings.at ? s->found.warnings.at : "");
        if (!ft__screen_serve(&out, &style, &s->found)) out.failed = true;
    }
    int status = s->ask.json ? cli_print(&out) : cli_show(&out, &style);
    bool no = !s->found.stable || (s->found.slo_share > 0 && !s->found.slo_met);
    return !status && no ? 1 : status;
}

int cli_serve(const cli_args *args)
{
    server s = {0};
    int status = cli_asker_open(&s.ask, args, "serve");
    if (!status && s.ask.gpu_count > 1)
        status = cli_usage(args->command, "\"serve\" looks at one GPU; give --gpu once, or several with --sweep");
    if (!status && ft__serve_request_read(s.ask.object, &s.asked, &s.err) != FT_OK)
        status = cli_asker_fail(&s.ask, &s.err);
    if (!status && ft__serve_of(s.ask.ft, &s.ask.scratch, &s.asked, NULL, &s.found, &s.err) != FT_OK)
        status = cli_asker_fail(&s.ask, &s.err);
    if (!status) status = print(&s);
    ft__serving_free(&s.found);
    ft__serve_request_free(&s.asked);
    cli_asker_close(&s.ask);
    return status;
}
