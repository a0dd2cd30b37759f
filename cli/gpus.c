/* gpus.c: `foretell gpus`: the catalogue, or the sheets of some GPUs. */
#include "ask.h"
#include "commands.h"
#include "report/json/catalogue_answer.h"
#include "report/text/gpu_screen.h"
#include "terminal.h"

/* The list alone, without "ok" around it: a sheet is a spec file that can be given as --gpu again. */
static void add_json(ft_text *out, const ft_gpu_list *list)
{
    if (!list->named) ft__text_add(out, "[");
    for (size_t i = 0; i < list->count; i++) {
        if (!list->named) ft__text_add(out, i ? ",\n" : "\n");
        ft__answer_gpu(out, &list->sheets[i].device);
        if (list->named) ft__text_add(out, "\n");
    }
    if (!list->named) ft__text_add(out, "\n]\n");
}

static int print(const cli_args *args, const ft_gpu_list *list)
{
    ft_text out = {0};
    ft_style style = cli_style(args);
    bool json = cli_has(args, OPT_JSON), printed = true;
    if (json)
        add_json(&out, list);
    else if (!list->named)
        printed = ft__screen_gpus(&out, &style, list->sheets, list->count);
    for (size_t i = 0; !json && list->named && printed && i < list->count; i++) {
        if (i) ft__text_add(&out, "\n");
        printed = ft__screen_gpu(&out, &style, &list->sheets[i]);
    }
    if (!printed) out.failed = true;
    int status = json ? cli_print(&out) : cli_show(&out, &style);
    return !status && list->count == 0 ? 1 : status; /* answered, and the answer is: none */
}

int cli_gpus(const cli_args *args)
{
    ft_error err = {0};
    ft_gpus_request r;
    ft_gpu_list list = {0};
    int status;
    json_t *object = json_object();
    if (!cli_ask_flags(args, object) || (args->operand_count && !cli_ask_operands(args, FT_KEY_ID_GPUS_NAME, object)))
        status = cli_ask_unread(args);
    else if (ft__gpus_request_read(object, &r, &err) != FT_OK || ft__gpus_of(&r, &list, &err) != FT_OK)
        status = cli_ask_fail(args, "name", &err);
    else
        status = print(args, &list);
    ft__gpu_list_free(&list);
    json_decref(object);
    return status;
}
