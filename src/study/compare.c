/* compare.c: gathering what is compared: answers as they are, files that hold some, requests that are answered first.
 *
 * A file holds one answer or request, or one on each line, as `train --gpu X --gpu Y --json`, a sweep and `batch` write
 * them. */
#include "study/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "request/study.h"
#include "request/tasks.h"
#include "study/warned.h"

static const size_t largest_file = (size_t)64 << 20;

typedef struct gatherer {
    ft_comparison *to;
    const json_t *names;
    ft_answerer answer;
    void *user;
    ft_error *err;
} gatherer;

static json_t *keep(ft_comparison *c, json_t *document)
{
    c->documents[c->document_count++] = document;
    return document;
}

/* Every kernel is wanted, whatever the request asked to see. */
static ft_status answer_request(gatherer *g, const char *name, const json_t *request, json_t **out)
{
    const char *task = json_string_value(json_object_get(request, "task"));
    bool step = !task || ft__among("train forward prefill decode", task);
    json_t *asked = ft__study_copy(request);
    bool made = asked && (!step || ft__key_set(asked, FT_KEY_ID_DETAIL, json_string("kernels")));
    ft_status status = made ? g->answer(g->user, asked, out, g->err) : ft__no_memory(g->err);
    json_decref(asked);
    if (status != FT_OK) return status;
    const json_t *error = json_object_get(*out, "error");
    if (!error) return FT_OK;
    const char *where = json_string_value(json_object_get(error, "where"));
    status = ft__fail_at(g->err, FT_E_FORMAT, name, 0, 0, "%s%s%.500s", where ? where : "", where ? ": " : "",
                         json_string_value(json_object_get(error, "message")));
    json_decref(*out);
    *out = NULL;
    return status;
}

static void add_cut(ft_text *out, const char *text, size_t most)
{
    ft__text_add_n(out, text, ft__utf8_cut(text, most));
}

/* As the request calls it; else the file, and what tells its lines apart: the id, or the number. */
static char *name_of(const gatherer *g, const char *path, const json_t *document, size_t line)
{
    ft_text name = {.cap = 512};
    const char *given = json_string_value(json_array_get(g->names, g->to->count));
    const json_t *id = json_object_get(document, "id");
    if (given) {
        add_cut(&name, given, 300);
    } else if (!path) {
        if (json_is_string(id))
            add_cut(&name, json_string_value(id), 100);
        else
            ft__text_addf(&name, "%zu", g->to->count + 1);
    } else {
        add_cut(&name, path, 300);
        if (json_is_string(id)) {
            ft__text_add(&name, ": ");
            add_cut(&name, json_string_value(id), 100);
        } else if (line > 0) {
            ft__text_addf(&name, ": line %zu", line);
        }
    }
    if (!name.at) ft__text_add(&name, "");
    return name.at;
}

/* Takes the document over. */
static ft_status add(gatherer *g, const char *path, json_t *document, size_t line)
{
    ft_comparison *c = g->to;
    if (c->count == FT_MOST_COMPARED) {
        json_decref(document);
        return ft__fail_at(g->err, FT_E_RANGE, path ? path : "answers", 0, 0,
                           "more than %d answers do not fit side by side", FT_MOST_COMPARED);
    }
    char *name = name_of(g, path, document, line);
    keep(c, document);
    if (!name) return ft__no_memory(g->err);
    c->names[c->count] = name;
    ft_compared *out = &c->compared[c->count++];
    if (json_object_get(document, "ok") || !json_object_get(document, "task"))
        return ft__compared_of(name, document, NULL, out, g->err);
    json_t *answer = NULL;
    FT_TRY(answer_request(g, name, document, &answer));
    keep(c, answer);
    FT_TRY(ft__compared_of(name, answer, document, out, g->err));
    if (out->kind == FT_COMPARE_STEP) ft__study_note(FT_ASK_COMPARE, document, &out->idle);
    return FT_OK;
}

static ft_status add_lines(gatherer *g, const char *path, char *text)
{
    size_t line = 0;
    for (char *at = text; *at;) {
        size_t length = strcspn(at, "\n");
        line++;
        if (strspn(at, " \t\r") < length) {
            json_t *document = NULL;
            char where[320];
            snprintf(where, sizeof where, "%.280s: line %zu", path, line);
            FT_TRY(ft__json_parse(at, length, where, &document, g->err));
            FT_TRY(add(g, path, document, line));
        }
        at += length + (at[length] == '\n');
    }
    return FT_OK;
}

static ft_status add_file(gatherer *g, const char *path)
{
    char *text = NULL;
    size_t length;
    json_t *document = NULL;
    ft_error first = {0};
    FT_TRY(ft__file_read(path, largest_file, &text, &length, g->err));
    ft_status status = ft__json_parse(text, length, path, &document, g->err);
    if (status == FT_OK) {
        status = add(g, path, document, 0);
    } else if (status != FT_E_MEMORY) { /* JSON Lines, if the first line is a whole document and others follow */
        json_t *one = NULL;
        size_t end = strcspn(text, "\n");
        if (end < length && ft__json_parse(text, end, path, &one, &first) == FT_OK) status = add_lines(g, path, text);
        json_decref(one);
    }
    free(text);
    return status;
}

ft_status ft__compare_of(const ft_compare_request *r, ft_answerer answer, void *user, ft_comparison *out, ft_error *err)
{
    gatherer g = {.to = out, .names = r->names, .answer = answer, .user = user, .err = err};
    const json_t *each;
    size_t i;
    memset(out, 0, sizeof *out);
    json_array_foreach (r->answers, i, each)
        FT_TRY(json_is_string(each) ? add_file(&g, json_string_value(each))
                                    : add(&g, NULL, json_incref((json_t *)(uintptr_t)each), 0));
    json_array_foreach (r->requests, i, each) {
        if (!json_object_get(each, "task") || json_object_get(each, "ok"))
            return ft__fail_at(err, FT_E_FORMAT, "requests", 0, 0, "element %zu is not a request: it has no \"task\"",
                               i + 1);
        FT_TRY(add(&g, NULL, json_incref((json_t *)(uintptr_t)each), 0));
    }
    if (out->count < 2)
        return ft__fail_at(err, FT_E_MISSING, "answers", 0, 0, "one answer is compared with another; got %zu",
                           out->count);
    if (r->names && json_array_size(r->names) != out->count)
        return ft__fail_at(err, FT_E_RANGE, "names", 0, 0, "%zu names for %zu answers", json_array_size(r->names),
                           out->count);
    ft__warned_by(out->compared, out->count, &out->warnings);
    return out->warnings.failed ? ft__no_memory(err) : ft__compare_check(out->compared, out->count, err);
}

void ft__comparison_free(ft_comparison *c)
{
    for (size_t i = 0; i < c->document_count; i++) json_decref(c->documents[i]);
    for (size_t i = 0; i < c->count; i++) free(c->names[i]);
    ft__text_free(&c->warnings);
    memset(c, 0, sizeof *c);
}
