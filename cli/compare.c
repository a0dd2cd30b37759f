/* compare.c: `foretell compare A B [C ...]`: saved answers, or requests that are answered first, side by side. */
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "ask.h"
#include "commands.h"
#include "picture.h"
#include "report/json/answer.h"
#include "report/text/compare_screen.h"
#include "simulator.h"
#include "terminal.h"

static int print(const cli_args *args, const ft_comparison *c)
{
    ft_style style = cli_style(args);
    const char *detail = cli_value(args, OPT_COMPARE_DETAIL);
    bool all = detail && !strcmp(detail, "kernels"), json = cli_has(args, OPT_JSON);
    ft_text out = {0};
    const char *warnings = c->warnings.length ? c->warnings.at : "";
    if (!json) cli_say_warnings(NULL, NULL, warnings);
    bool printed = json ? ft__answer_compared(&out, NULL, c->compared, c->count, warnings)
                        : ft__screen_compared(&out, &style, c->compared, c->count, all);
    if (json) ft__text_add(&out, "\n");
    if (!printed) out.failed = true;
    int status = json ? cli_print(&out) : cli_show(&out, &style);
    return status ? status : cli_picture_compared(args, c);
}

static int fail(const cli_args *args, size_t count, ft_error *err)
{
    bool alone = !strcmp(err->where, "answers") && count < 2;
    return alone ? cli_usage(args->command, "one answer is compared with another; %s holds only one", args->operands[0])
                 : cli_fail(err);
}

int cli_compare(const cli_args *args)
{
    ft_options options = {.predictor = cli_value(args, OPT_PREDICTOR), .calibration = cli_value(args, OPT_CALIBRATION)};
    ft_error err = {0};
    ft_compare_request asked;
    ft_comparison *c = calloc(1, sizeof *c); /* some KiB */
    ft_asking asking = {.scratch = calloc(1, sizeof *asking.scratch)};
    json_t *object = json_object();
    ft_context *ft = NULL;
    int status = c && object && asking.scratch ? 0 : cli_complain(FT_E_MEMORY, "out of memory");
    if (!status && !cli_ask_operands(args, FT_KEY_ID_COMPARED_ANSWERS, object)) status = cli_ask_unread(args);
    if (!status) asking.scratch->simulator = &cli_simulator;
    if (!status && (ft_open(&ft, &options, &err) != FT_OK || ft__compare_request_read(object, &asked, &err) != FT_OK))
        status = fail(args, 2, &err);
    asking.ft = ft;
    if (!status && ft__compare_of(&asked, ft__answer_asking, &asking, c, &err) != FT_OK)
        status = fail(args, c->count, &err);
    if (!status) status = print(args, c);
    if (c) ft__comparison_free(c);
    if (asking.scratch) ft__scratch_free(asking.scratch);
    free(asking.scratch);
    free(c);
    json_decref(object);
    ft_close(ft);
    return status;
}
