/* largest.c: `foretell largest`: the largest model of a family that trains or serves. */
#include <stdio.h>
#include <stdlib.h>

#include "ask.h"
#include "commands.h"
#include "picture.h"
#include "report/json/largest_answer.h"
#include "report/text/largest_screen.h"
#include "report/text/several_screen.h"
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
    if (!a->json && r->layers) cli_say_warnings(a->args, NULL, r->view.warnings);
    int status = a->json ? cli_print(&out) : cli_show(&out, &style);
    if (!status) status = cli_picture_largest(a->args, r);
    return !status && !r->layers ? 1 : status;
}

static ft_status forecast(cli_asker *a, ft_largest *r, ft_error *err)
{
    ft_largest_request asked = {0};
    ft_status status = ft__largest_request_read(a->object, &asked, err);
    if (status == FT_OK) status = ft__largest_of(a->ft, &a->scratch, &asked, r, err);
    ft__largest_request_free(&asked);
    return status;
}

/* A row per GPU, or an answer. */
static int run_several(cli_asker *a)
{
    ft_style style = cli_style(a->args);
    ft_text out = {0};
    size_t count = 0;
    int status = 0;
    bool any = false;
    ft_largest_row *rows = calloc(a->gpu_count, sizeof *rows);
    if (!rows) return cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < a->gpu_count && !status; i++) {
        ft_largest r;
        ft_error err = {0};
        if (!cli_asker_set(a, FT_KEY_ID_GPU, json_string(a->gpus[i]))) {
            status = cli_ask_unread(a->args);
        } else if (forecast(a, &r, &err) != FT_OK) {
            bool last = i + 1 == a->gpu_count && count == 0;
            if (last || !cli_leave_out(&err, a->gpu_count, a->gpus[i], a->json, &out)) status = cli_asker_fail(a, &err);
        } else {
            rows[count++] = ft__largest_row_of(&r);
            any = any || r.layers > 0;
            if (count == 1 && !a->json) {
                ft_largest all = r;
                snprintf(all.device.title, sizeof all.device.title, "several GPUs");
                ft__largest_title(&out, &style, &all);
                ft__text_add(&out, "\n");
            }
            if (!a->json && r.layers) cli_say_warnings(a->args, a->gpus[i], r.view.warnings);
            json_t *id = a->json ? cli_ask_id(&out, a->gpus[i]) : NULL;
            if (a->json) {
                ft__answer_largest(&out, id, &r);
                ft__text_add(&out, "\n");
            }
            json_decref(id);
        }
    }
    if (!status && !a->json && !ft__screen_largests(&out, &style, rows, count)) out.failed = true;
    if (!status)
        status = a->json ? cli_print(&out) : cli_show(&out, &style);
    else
        ft__text_free(&out);
    free(rows);
    return !status && !any ? 1 : status;
}

int cli_largest(const cli_args *args)
{
    cli_asker a;
    ft_largest r;
    ft_error err = {0};
    if (cli_has(args, OPT_CSV)) return cli_usage(args->command, "--csv prints a --sweep; there is none");
    int status = cli_asker_open(&a, args, "largest");
    if (!status && a.gpu_count > 1 && cli_value(args, OPT_HTML))
        status = cli_usage(args->command, "--html is of one kind of GPU; give --gpu once");
    if (!status && a.gpu_count > 1)
        status = run_several(&a);
    else if (!status)
        status = forecast(&a, &r, &err) == FT_OK ? print(&a, &r) : cli_asker_fail(&a, &err);
    cli_asker_close(&a);
    return status;
}
