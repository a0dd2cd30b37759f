/* scale.c: `foretell scale MODEL`: scaling rooflines, and curves over ever more GPUs. */
#include <stdlib.h>

#include "ask.h"
#include "commands.h"
#include "picture.h"
#include "report/text/scale_screen.h"
#include "report/text/several_screen.h"
#include "terminal.h"

static int print(const cli_asker *a, const ft_scale *r)
{
    ft_text out = {0};
    ft_style style = cli_style(a->args);
    bool printed = true, csv = cli_has(a->args, OPT_SCALE_CSV);
    if (r->warnings.length) cli_say_warnings(a->args, a->args->operands[0], r->warnings.at);
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

static ft_status forecast(cli_asker *a, ft_scale_request *asked, ft_scale *r, ft_error *err)
{
    ft_status status = ft__scale_request_read(a->object, asked, err);
    return status == FT_OK ? ft__scale_of(a->ft, &a->scratch, asked, r, err) : status;
}

typedef struct scaled {
    ft_scale_request asked; /* names live as long as it */
    ft_scale r;             /* some KiB: curves and a cluster */
} scaled;

static int run_several(cli_asker *a)
{
    ft_style style = cli_style(a->args);
    ft_text out = {0};
    size_t count = 0;
    int status = 0;
    scaled *all = calloc(a->gpu_count, sizeof *all);
    const ft_scale **cases = calloc(a->gpu_count, sizeof *cases);
    if (!all || !cases) status = cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < a->gpu_count && !status; i++) {
        ft_error err = {0};
        if (!cli_asker_set(a, FT_KEY_ID_GPU, json_string(a->gpus[i]))) {
            status = cli_ask_unread(a->args);
        } else if (forecast(a, &all[i].asked, &all[i].r, &err) != FT_OK) {
            bool last = i + 1 == a->gpu_count && count == 0;
            if (last || !cli_leave_out(&err, a->gpu_count, a->gpus[i], a->json, &out)) status = cli_asker_fail(a, &err);
        } else {
            cases[count++] = &all[i].r;
            if (all[i].r.warnings.length) cli_say_warnings(a->args, a->args->operands[0], all[i].r.warnings.at);
            json_t *id = a->json ? cli_ask_id(&out, a->gpus[i]) : NULL;
            if (a->json) {
                ft__answer_scale(&out, id, &all[i].r);
                ft__text_add(&out, "\n");
            }
            json_decref(id);
        }
    }
    if (!status && !a->json && !ft__screen_scales(&out, &style, cases, count)) out.failed = true;
    if (!status)
        status = a->json ? cli_print(&out) : cli_show(&out, &style);
    else
        ft__text_free(&out);
    for (size_t i = 0; all && i < a->gpu_count; i++) {
        ft__scale_free(&all[i].r);
        ft__scale_request_free(&all[i].asked);
    }
    free(cases);
    free(all);
    return status;
}

static int run_one(cli_asker *a)
{
    ft_error err = {0};
    scaled *one = calloc(1, sizeof *one);
    if (!one) return cli_complain(FT_E_MEMORY, "out of memory");
    int status = forecast(a, &one->asked, &one->r, &err) == FT_OK ? print(a, &one->r) : cli_asker_fail(a, &err);
    ft__scale_free(&one->r);
    ft__scale_request_free(&one->asked);
    free(one);
    return status;
}

int cli_scale(const cli_args *args)
{
    cli_asker a;
    int status = cli_picture_check(args);
    if (status) return status;
    status = cli_asker_open(&a, args, "scale");
    bool csv = cli_has(args, OPT_SCALE_CSV), several = !status && a.gpu_count > 1;
    if (!status && a.json && csv) status = cli_usage(args->command, "--json or --csv, not both");
    if (!status && several && (csv || cli_picture_wanted(args)))
        status = cli_usage(args->command, "--csv, --html and --svg are of one kind of GPU; give --gpu once");
    if (!status) status = several ? run_several(&a) : run_one(&a);
    cli_asker_close(&a);
    return status;
}
