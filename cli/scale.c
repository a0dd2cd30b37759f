/* scale.c: `foretell scale MODEL`: scaling rooflines, and curves over ever more GPUs. */
#include <stdlib.h>

#include "ask.h"
#include "commands.h"
#include "picture.h"
#include "report/text/scale_screen.h"
#include "terminal.h"

static int print(const cli_asker *a, const ft_scale *r)
{
    ft_text out = {0};
    ft_style style = cli_style(a->args);
    bool printed = true, csv = cli_has(a->args, OPT_SCALE_CSV);
    if (r->warnings.length) cli_say_warnings(a->args->operands[0], r->warnings.at);
    int status = cli_picture_scale(a->args, r);
    if (status) return status;
    if (a->json) {
        ft__answer_scale(&out, NULL, r);
        ft__text_add(&out, "\n");
    } else {
        printed = csv ? ft__csv_scale(&out, r) : ft__screen_scale(&out, &style, r);
    }
    if (!printed) out.failed = true;
    return a->json || csv ? cli_print(&out) : cli_show(&out, &style);
}

int cli_scale(const cli_args *args)
{
    cli_asker a;
    ft_scale_request asked = {0};
    ft_error err = {0};
    int status = cli_picture_check(args);
    if (status) return status;
    ft_scale *r = calloc(1, sizeof *r); /* some KiB: curves and a cluster */
    if (!r) return cli_complain(FT_E_MEMORY, "out of memory");
    status = cli_asker_open(&a, args, "scale");
    if (!status && a.gpu_count > 1) status = cli_usage(args->command, "\"scale\" looks at one kind of GPU");
    if (!status && a.json && cli_has(args, OPT_SCALE_CSV))
        status = cli_usage(args->command, "--json or --csv, not both");
    if (!status && (ft__scale_request_read(a.object, &asked, &err) != FT_OK ||
                    ft__scale_of(a.ft, &a.scratch, &asked, r, &err) != FT_OK))
        status = cli_asker_fail(&a, &err);
    if (!status) status = print(&a, r);
    ft__scale_free(r);
    free(r);
    ft__scale_request_free(&asked);
    cli_asker_close(&a);
    return status;
}
