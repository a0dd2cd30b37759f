/* models.c: `foretell models`: the catalogue, the part of it that a word picks, or one model's sheet. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "commands.h"
#include "report/text/models_screen.h"
#include "study/context.h"
#include "terminal.h"

static bool holds(const char *text, const char *pattern)
{
    size_t length = strlen(pattern);
    for (; text && *text; text++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)text[i]) == tolower((unsigned char)pattern[i])) i++;
        if (i == length) return true;
    }
    return length == 0;
}

static int print_sheet(const cli_args *args, const char *what)
{
    ft_scratch *scratch = calloc(1, sizeof *scratch);
    ft_model_sheet sheet;
    const ft_layer *layers = NULL;
    size_t count = 0;
    ft_error err = {0};
    ft_text out = {0};
    ft_style style = cli_style(args);
    int status = 0;
    if (!scratch) return cli_complain(FT_E_MEMORY, "out of memory");
    if (ft__model_sheet_of(scratch, what, cli_value(args, OPT_READ_AS), &sheet, &layers, &count, &err) != FT_OK) {
        status = cli_fail(&err);
    } else if (cli_has(args, OPT_JSON)) {
        ft__answer_model(&out, &sheet);
        ft__text_add(&out, "\n");
    } else {
        if (!ft__screen_model(&out, &style, &sheet, layers, count)) out.failed = true;
    }
    ft__scratch_free(scratch);
    free(scratch);
    if (!status) return cli_has(args, OPT_JSON) ? cli_print(&out) : cli_show(&out, &style);
    ft__text_free(&out);
    return status;
}

static int print_list(const cli_args *args, const char *pattern)
{
    size_t count = ft__model_count(), kept = 0;
    ft_model_sheet *sheets = calloc(count + 1, sizeof *sheets);
    ft_scratch *scratch = calloc(1, sizeof *scratch);
    ft_error err = {0};
    ft_text out = {0};
    ft_style style = cli_style(args);
    int status = sheets && scratch ? 0 : cli_complain(FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < count && !status; i++) {
        const ft_model_entry *e = ft__model_at(i);
        if (!holds(e->name, pattern) && !holds(e->hub, pattern) && !holds(e->model_type, pattern)) continue;
        if (ft__model_sheet_of(scratch, e->name, NULL, &sheets[kept], NULL, NULL, &err) == FT_OK)
            kept++;
        else
            status = cli_fail(&err);
    }
    if (!status && kept == 0) { /* a slip of the pen: the error knows the nearest name */
        ft_model_sheet unknown;
        status = ft__model_sheet_of(scratch, pattern, NULL, &unknown, NULL, NULL, &err) == FT_OK ? 1 : cli_fail(&err);
    } else if (!status && cli_has(args, OPT_JSON)) {
        for (size_t i = 0; i < kept; i++) {
            ft__text_add(&out, i ? ",\n" : "[\n");
            ft__answer_model(&out, &sheets[i]);
        }
        ft__text_add(&out, "\n]\n");
    } else if (!status) {
        if (!ft__screen_models(&out, &style, sheets, kept, cli_has(args, OPT_VERBOSE))) out.failed = true;
    }
    if (scratch) ft__scratch_free(scratch);
    free(scratch);
    free(sheets);
    if (!status) return cli_has(args, OPT_JSON) ? cli_print(&out) : cli_show(&out, &style);
    ft__text_free(&out);
    return status;
}

static int print_types(const cli_args *args, const char *pattern)
{
    size_t count, kept = 0;
    const char *const *types = ft__config_types(&count);
    bool json = cli_has(args, OPT_JSON);
    ft_text out = {0};
    for (size_t i = 0; i < count; i++) {
        if (!holds(types[i], pattern)) continue;
        if (json)
            ft__text_addf(&out, "%s\"%s\"", kept ? ", " : "[", types[i]);
        else
            ft__text_addf(&out, "%s\n", types[i]);
        kept++;
    }
    if (json) ft__text_add(&out, kept ? "]\n" : "[]\n");
    return cli_print(&out);
}

int cli_models(const cli_args *args)
{
    const char *what = args->operand_count ? args->operands[0] : "";
    if (cli_has(args, OPT_TYPES)) return print_types(args, what);
    bool named = ft__model_find(what) || strchr(what, '/') || ft__file_exists(what);
    return *what && named ? print_sheet(args, what) : print_list(args, what);
}
