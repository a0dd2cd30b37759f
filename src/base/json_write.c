/* json_write.c: JSON text out of figures, words and trees.
 *
 * Answers are written value by value because `batch` writes one per line: building a document in memory first would
 * cost more than the forecast. What came in as JSON and goes out again (ids, requests, a machine's description)
 * is a Jansson tree and takes the same way.
 */
#include "base/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LONGEST_KEY = 64, NUMBER_DIGITS = 15, ALL_DIGITS = 17 };

/* -- structure --------------------------------------------------------------------------------- */

/* A value ends with a bracket, a quote, a digit or a letter; before the first one of its list or object stands none of
 * them. */
static bool comma_due(const ft_text *t)
{
    if (t->length == 0) return false;
    char last = t->at[t->length - 1];
    return last != '{' && last != '[' && last != ':' && last != ',' && last != ' ' && last != '\n';
}

static void begin_value(ft_text *t)
{
    if (comma_due(t)) ft__text_add_n(t, ",", 1);
}

static void bracket(ft_text *t, const char *one)
{
    begin_value(t);
    ft__text_add_n(t, one, 1);
}

void ft__json_open(ft_text *t) { bracket(t, "{"); }

void ft__json_open_list(ft_text *t) { bracket(t, "["); }

void ft__json_close(ft_text *t) { ft__text_add_n(t, "}", 1); }

void ft__json_close_list(ft_text *t) { ft__text_add_n(t, "]", 1); }

void ft__json_line(ft_text *t)
{
    begin_value(t);
    ft__text_add_n(t, "\n", 1);
}

/* Keys are ours, of letters and underscores, and short: one copy. Others take the way of every text. */
void ft__json_key(ft_text *t, const char *key)
{
    char text[LONGEST_KEY + 4];
    size_t length = strlen(key), at = 0;
    bool plain = length <= LONGEST_KEY;
    for (size_t i = 0; plain && i < length; i++)
        plain = (unsigned char)key[i] >= ' ' && (unsigned char)key[i] < 0x7F && key[i] != '"' && key[i] != '\\';
    if (!plain) {
        ft__json_add_text(t, key);
        ft__text_add_n(t, ":", 1);
        return;
    }
    if (comma_due(t)) text[at++] = ',';
    text[at++] = '"';
    memcpy(text + at, key, length);
    at += length;
    text[at++] = '"';
    text[at++] = ':';
    ft__text_add_n(t, text, at);
}

/* -- values ------------------------------------------------------------------------------------ */

static void add_word(ft_text *t, const char *word)
{
    begin_value(t);
    ft__text_add(t, word);
}

void ft__json_add_text(ft_text *t, const char *s)
{
    if (!s) {
        add_word(t, "null");
        return;
    }
    begin_value(t);
    ft__text_add_json(t, s);
}

void ft__json_add_number(ft_text *t, double value, int digits)
{
    begin_value(t);
    ft__text_add_number(t, value, digits);
}

/* A real as short as brings the same one back: 0.1, 1.0. */
static void add_exact(ft_text *t, double value)
{
    begin_value(t);
    size_t start = t->length;
    for (int digits = NUMBER_DIGITS; digits <= ALL_DIGITS; digits++) {
        double back = 0;
        if (t->length > start) t->length = start;
        ft__text_add_number(t, value, digits);
        if (t->failed || (ft__number_parse(t->at + start, &back) && back == value)) break;
    }
    /* 1.0 stays a real: whoever compares may tell it from 1. */
    if (!t->failed && isfinite(value) && !strpbrk(t->at + start, ".e")) ft__text_add_n(t, ".0", 2);
}

void ft__json_add_whole(ft_text *t, int64_t value)
{
    begin_value(t);
    ft__text_addf(t, "%" PRId64, value);
}

static void add_flag(ft_text *t, bool value) { add_word(t, value ? "true" : "false"); }

/* -- members ----------------------------------------------------------------------------------- */

void ft__json_member_open(ft_text *t, const char *key)
{
    ft__json_key(t, key);
    ft__text_add_n(t, "{", 1);
}

void ft__json_member_list(ft_text *t, const char *key)
{
    ft__json_key(t, key);
    ft__text_add_n(t, "[", 1);
}

void ft__json_member_text(ft_text *t, const char *key, const char *s)
{
    ft__json_key(t, key);
    ft__json_add_text(t, s);
}

void ft__json_member_number(ft_text *t, const char *key, double value, int digits)
{
    ft__json_key(t, key);
    ft__text_add_number(t, value, digits);
}

void ft__json_member_whole(ft_text *t, const char *key, int64_t value)
{
    ft__json_key(t, key);
    ft__json_add_whole(t, value);
}

void ft__json_member_flag(ft_text *t, const char *key, bool value)
{
    ft__json_key(t, key);
    add_flag(t, value);
}

void ft__json_member_tree(ft_text *t, const char *key, const json_t *value)
{
    ft__json_key(t, key);
    ft__json_add_tree(t, value);
}

/* -- trees ------------------------------------------------------------------------------------- */

static void add_tree(ft_text *t, const json_t *value, bool sorted);

/* The member whose name comes next after `last` (NULL: the first of all); NULL when there is none. */
static const char *next_name(json_t *object, const char *last)
{
    const char *best = NULL;
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        const char *name = json_object_iter_key(it);
        if ((!last || strcmp(name, last) > 0) && (!best || strcmp(name, best) < 0)) best = name;
    }
    return best;
}

static void add_object(ft_text *t, const json_t *value, bool sorted)
{
    json_t *object = (json_t *)(uintptr_t)value; /* Jansson's iterators take a non-const object but change nothing */
    ft__json_open(t);
    if (sorted) {
        for (const char *name = next_name(object, NULL); name; name = next_name(object, name)) {
            ft__json_key(t, name);
            add_tree(t, json_object_get(object, name), true);
        }
    } else {
        for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
            ft__json_key(t, json_object_iter_key(it));
            add_tree(t, json_object_iter_value(it), false);
        }
    }
    ft__json_close(t);
}

/* As deep as the reader allows: 512 levels. */
static void add_tree(ft_text *t, const json_t *value, bool sorted)
{
    if (!value) {
        add_word(t, "null");
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT: add_object(t, value, sorted); break;
    case JSON_ARRAY:
        ft__json_open_list(t);
        for (size_t i = 0; i < json_array_size(value); i++) add_tree(t, json_array_get(value, i), sorted);
        ft__json_close_list(t);
        break;
    case JSON_STRING: ft__json_add_text(t, json_string_value(value)); break;
    case JSON_INTEGER: ft__json_add_whole(t, json_integer_value(value)); break;
    case JSON_REAL: add_exact(t, json_real_value(value)); break;
    case JSON_TRUE: add_word(t, "true"); break;
    case JSON_FALSE: add_word(t, "false"); break;
    case JSON_NULL: add_word(t, "null"); break;
    }
}

void ft__json_add_tree(ft_text *t, const json_t *value) { add_tree(t, value, false); }

void ft__json_add_sorted(ft_text *t, const json_t *value) { add_tree(t, value, true); }

/* -- what was written already ------------------------------------------------------------------ */

void ft__json_member_written(ft_text *t, const char *key, const char *json)
{
    ft__json_key(t, key);
    ft__text_add(t, json);
}

void ft__json_rest(ft_text *t, const char *object)
{
    if (object[0] != '{') {
        t->failed = true;
        return;
    }
    if (object[1] != '}') begin_value(t);
    ft__text_add(t, object + 1);
}

void ft__json_reopen(ft_text *t)
{
    if (t->failed || t->length == 0) {
        t->failed = true;
        return;
    }
    t->at[--t->length] = '\0';
}
