/* compare.c: `foretell compare A B [C ...]`: saved answers, or requests that are answered first, side by side.
 *
 * A file holds one answer or request, or one on each line, as `train --gpu X --gpu Y --json`, a sweep and `batch` write
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "base/file.h"
#include "base/json.h"
#include "commands.h"
#include "picture.h"
#include "report/json/answer.h"
#include "report/text/compare_screen.h"
#include "simulator.h"
#include "terminal.h"

static const size_t largest_file = (size_t)64 << 20;

typedef struct comparer {
    const cli_args *args;
    ft_context *ft; /* opened when the first request is met */
    ft_scratch scratch;
    ft_compared compared[FT_MOST_COMPARED];
    json_t *documents[2 * FT_MOST_COMPARED]; /* answers and requests that are kept */
    char *names[FT_MOST_COMPARED];
    size_t count, document_count;
    ft_error err;
} comparer;

static json_t *keep(comparer *c, json_t *document)
{
    c->documents[c->document_count++] = document;
    return document;
}

/* Every kernel is wanted, whatever the request asked to see. */
static ft_status answer_request(comparer *c, const char *name, json_t *request, json_t **out)
{
    const char *task = json_string_value(json_object_get(request, "task"));
    bool whole = !task || (strcmp(task, "kernel") != 0 && strcmp(task, "collective") != 0);
    ft_options options = {.predictor = cli_value(c->args, OPT_PREDICTOR),
                          .calibration = cli_value(c->args, OPT_CALIBRATION)};
    if (!c->ft) FT_TRY(ft_open(&c->ft, &options, &c->err));
    if (whole && json_object_set_new(request, "detail", json_string("kernels")) != 0)
        return ft__fail(&c->err, FT_E_MEMORY, "out of memory");
    char *text = json_dumps(request, JSON_COMPACT);
    ft_text answer = {0};
    c->scratch.simulator = &cli_simulator;
    if (text) ft__answer(c->ft, &c->scratch, text, strlen(text), 0, &answer);
    ft_status status = text && answer.at && !answer.failed
                           ? ft__json_parse(answer.at, answer.length, name, out, &c->err)
                           : ft__fail(&c->err, FT_E_MEMORY, "out of memory");
    free(text);
    ft__text_free(&answer);
    if (status != FT_OK) return status;
    const json_t *error = json_object_get(*out, "error");
    if (!error) return FT_OK;
    const char *where = json_string_value(json_object_get(error, "where"));
    status = ft__fail_at(&c->err, FT_E_FORMAT, name, 0, 0, "%s%s%.500s", where ? where : "", where ? ": " : "",
                         json_string_value(json_object_get(error, "message")));
    json_decref(*out);
    return status;
}

/* The file, and what tells its lines apart: the id, or the number. */
static char *name_of(const char *path, const json_t *document, size_t line)
{
    ft_text name = {.cap = 512};
    const json_t *id = json_object_get(document, "id");
    ft__text_add_n(&name, path, ft__utf8_cut(path, 300));
    if (json_is_string(id))
        ft__text_addf(&name, ": %.100s", json_string_value(id));
    else if (line > 0)
        ft__text_addf(&name, ": line %zu", line);
    return name.at;
}

/* Takes the document over. */
static ft_status add(comparer *c, const char *path, json_t *document, size_t line)
{
    if (c->count == FT_MOST_COMPARED) {
        json_decref(document);
        return ft__fail_at(&c->err, FT_E_RANGE, path, 0, 0, "more than %d answers do not fit side by side",
                           FT_MOST_COMPARED);
    }
    char *name = name_of(path, document, line);
    keep(c, document);
    if (!name) return ft__fail(&c->err, FT_E_MEMORY, "out of memory");
    c->names[c->count] = name;
    ft_compared *out = &c->compared[c->count++];
    if (json_object_get(document, "ok") || !json_object_get(document, "task"))
        return ft__compared_of(name, document, NULL, out, &c->err);
    json_t *answer = NULL;
    FT_TRY(answer_request(c, name, document, &answer));
    keep(c, answer);
    return ft__compared_of(name, answer, document, out, &c->err);
}

static ft_status add_lines(comparer *c, const char *path, char *text)
{
    size_t line = 0;
    for (char *at = text; *at;) {
        size_t length = strcspn(at, "\n");
        line++;
        if (strspn(at, " \t\r") < length) {
            json_t *document = NULL;
            char where[320];
            snprintf(where, sizeof where, "%.280s: line %zu", path, line);
            FT_TRY(ft__json_parse(at, length, where, &document, &c->err));
            FT_TRY(add(c, path, document, line));
        }
        at += length + (at[length] == '\n');
    }
    return FT_OK;
}

static ft_status add_file(comparer *c, const char *path)
{
    char *text = NULL;
    size_t length;
    json_t *document = NULL;
    ft_error first = {0};
    FT_TRY(ft__file_read(path, largest_file, &text, &length, &c->err));
    ft_status status = ft__json_parse(text, length, path, &document, &c->err);
    if (status == FT_OK) {
        status = add(c, path, document, 0);
    } else { /* JSON Lines, if the first line is a whole document and others follow */
        json_t *one = NULL;
        size_t end = strcspn(text, "\n");
        if (end < length && ft__json_parse(text, end, path, &one, &first) == FT_OK) status = add_lines(c, path, text);
        json_decref(one);
    }
    free(text);
    return status;
}

static int run(comparer *c)
{
    for (int i = 0; i < c->args->operand_count; i++)
        if (add_file(c, c->args->operands[i]) != FT_OK) return cli_fail(&c->err);
    if (c->count < 2)
        return cli_usage(c->args->command, "one answer is compared with another; %s holds only one",
                         c->args->operands[0]);
    if (ft__compare_check(c->compared, c->count, &c->err) != FT_OK) return cli_fail(&c->err);
    ft_style style = cli_style(c->args);
    const char *detail = cli_value(c->args, OPT_COMPARE_DETAIL);
    bool all = detail && !strcmp(detail, "kernels");
    ft_text out = {0};
    if (cli_has(c->args, OPT_JSON)) {
        if (!ft__answer_compared(&out, c->compared, c->count)) out.failed = true;
        ft__text_add(&out, "\n");
    } else if (!ft__screen_compared(&out, &style, c->compared, c->count, all)) {
        out.failed = true;
    }
    int status = cli_has(c->args, OPT_JSON) ? cli_print(&out) : cli_show(&out, &style);
    return status ? status : cli_picture_compared(c->args, c->compared, c->count);
}

int cli_compare(const cli_args *args)
{
    comparer *c = calloc(1, sizeof *c); /* some KiB */
    if (!c) return cli_complain(FT_E_MEMORY, "out of memory");
    c->args = args;
    int status = run(c);
    if (status > 1 && cli_has(args, OPT_JSON) && c->err.code != FT_OK) {
        ft_text out = {0};
        ft__answer_error(&out, NULL, &c->err, 0);
        ft__text_add(&out, "\n");
        cli_print(&out);
    }
    for (size_t i = 0; i < c->document_count; i++) json_decref(c->documents[i]);
    for (size_t i = 0; i < c->count; i++) free(c->names[i]);
    ft__scratch_free(&c->scratch);
    ft_close(c->ft);
    free(c);
    return status;
}
