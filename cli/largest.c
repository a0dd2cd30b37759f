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

int cli_largest(const cli_args *args)
{
    cli_asker a;
    ft_largest_request asked = {0};
    ft_largest r;
    ft_error err = {0};
    int status = cli_asker_open(&a, args, "largest");
    if (!status && a.gpu_count > 1) status = cli_usage(args->command, "\"largest\" looks at one kind of GPU");
    if (!status && (ft__largest_request_read(a.object, &asked, &err) != FT_OK ||
                    ft__largest_of(a.ft, &a.scratch, &asked, &r, &err) != FT_OK))
        status = cli_asker_fail(&a, &err);
    if (!status) status = print(&a, &r);
    ft__largest_request_free(&asked);
    cli_asker_close(&a);
    return status;
}
