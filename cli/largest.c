/* largest.c: `foretell largest`: the largest model of a family that trains or serves. */
#include "ask.h"
#include "commands.h"
#include "picture.h"
#include "report/json/largest_answer.h"
#include "report/text/largest_screen.h"
#include "terminal.h"

static int print(const cli_asker *a, const ft_largest *r)
{
    ft_text out = {0};
    ft_style style = cli_style(a->args);
    if (a->json) {
        ft__answer_largest(&out, NULL, r);
        ft__text_add(&out, "\n");
    } else if (!ft__screen_largest(&out, &style, r)) {
        out.failed = true;
    }
    int status = a->json ? cli_print(&out) : cli_show(&out, &style);
    if (!status) status = cli_picture_largest(a->args, r);
    return !status && !r->layers ? 1 : status;
}

static int make_request(cli_asker *a)
{
    const cli_args *args = a->args;
    double tokens = 0;
    int status = cli_ask_whole(args, OPT_GPUS_USED, 1, 1 << 20, a->object);
    if (!status) status = cli_real(args, OPT_TRAIN_TOKENS, 1, 1e18, &tokens);
    if (status) return status;
    const char *use = cli_value(args, OPT_USE); /* "task" is the request's own */
    bool fine = cli_ask_option(args, OPT_TRAIN_TOKENS, a->object) && cli_ask_option(args, OPT_SHAPES, a->object) &&
                (!use || cli_asker_set(a, "use", json_string(use)));
    return fine ? 0 : cli_complain(FT_E_MEMORY, "out of memory");
}

int cli_largest(const cli_args *args)
{
    cli_asker a;
    ft_largest_request asked = {0};
    ft_largest r;
    ft_error err = {0};
    int status = cli_asker_open(&a, args, "largest");
    if (!status && a.gpu_count > 1) status = cli_usage(args->command, "\"largest\" looks at one kind of GPU");
    if (!status) status = make_request(&a);
    if (!status && (ft__largest_request_read(a.object, &asked, &err) != FT_OK ||
                    ft__largest_of(a.ft, &a.scratch, &asked, &r, &err) != FT_OK))
        status = cli_asker_fail(&a, &err);
    if (!status) status = print(&a, &r);
    ft__largest_request_free(&asked);
    cli_asker_close(&a);
    return status;
}
