/* models.c: `foretell models`: the catalogue, the part of it that a word picks, or one model's sheet. */
#include <stdlib.h>

#include "ask.h"
#include "commands.h"
#include "report/json/catalogue_answer.h"
#include "report/text/models_screen.h"
#include "terminal.h"

/* The list alone, or the one sheet, without "ok" around it. */
static void add_json(ft_text *out, const ft_model_list *list)
{
    for (size_t i = 0; i < list->type_count; i++) ft__text_addf(out, "%s\"%s\"", i ? ", " : "[", list->types[i]);
    if (list->types) {
        ft__text_add(out, list->type_count ? "]\n" : "[]\n");
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (!list->named) ft__text_add(out, i ? ",\n" : "[\n");
        ft__answer_model(out, &list->sheets[i]);
    }
    ft__text_add(out, list->named ? "\n" : "\n]\n");
}

static int print(const cli_args *args, const ft_model_list *list)
{
    ft_text out = {0};
    ft_style style = cli_style(args);
    bool json = cli_has(args, OPT_JSON), printed = true;
    if (json)
        add_json(&out, list);
    else if (list->named)
        printed = ft__screen_model(&out, &style, &list->sheets[0], list->layers, list->layer_count);
    else if (!list->types)
        printed = ft__screen_models(&out, &style, list->sheets, list->count, cli_has(args, OPT_VERBOSE));
    for (size_t i = 0; !json && i < list->type_count; i++) ft__text_addf(&out, "%s\n", list->types[i]);
    if (!printed) out.failed = true;
    return json || list->types ? cli_print(&out) : cli_show(&out, &style);
}

int cli_models(const cli_args *args)
{
    ft_scratch *scratch = calloc(1, sizeof *scratch);
    ft_error err = {0};
    ft_models_request r;
    ft_model_list list = {0};
    int status = 0;
    json_t *object = json_object();
    bool fine = scratch && cli_ask_flags(args, object) &&
                (!args->operand_count || cli_ask_operand(args, FT_KEY_ID_MODELS_NAME, object));
    if (!fine)
        status = cli_ask_unread(args);
    else if (ft__models_request_read(object, &r, &err) != FT_OK || ft__models_of(scratch, &r, &list, &err) != FT_OK)
        status = cli_ask_fail(args, "name", &err);
    else
        status = print(args, &list);
    ft__model_list_free(&list);
    if (scratch) ft__scratch_free(scratch);
    free(scratch);
    json_decref(object);
    return status;
}
