/* warned.c: what several answers warn of.
 *
 * A key that has no effect has none in a sweep where it has none at any of its points, and one that acts at some of
 * them was worth giving. Why it has none may differ from point to point: the last reason is said. */
#include "study/warned.h"

#include <string.h>

enum { MOST_LINES = 64 }; /* of one answer that is compared: files may hold anything */

static const char idle[] = "\" has no effect: ";

/* What a line is about: the key, where it says that one has no effect; else all of it. */
static size_t subject_of(const char *line, size_t length)
{
    for (size_t i = 1; *line == '"' && i + sizeof idle - 1 <= length; i++)
        if (!memcmp(line + i, idle, sizeof idle - 1)) return i + sizeof idle - 1;
    return length;
}

static bool is_about(const char *lines, const char *subject, size_t length, const char **found, size_t *found_length)
{
    for (const char *at = lines; *at;) {
        size_t n = strcspn(at, "\n");
        if (subject_of(at, n) == length && !memcmp(at, subject, length)) {
            if (found) *found = at, *found_length = n;
            return true;
        }
        at += n + (at[n] == '\n');
    }
    return false;
}

static void add_line(ft_text *out, const char *line, size_t length)
{
    if (out->length > 0) ft__text_add(out, "\n");
    ft__text_add_n(out, line, length);
}

static const char *text_of(const ft_text *t) { return t->length > 0 ? t->at : ""; }

/* Of `lines` those that `also` is about as well. */
static void keep_common(const char *lines, const char *also, ft_text *out)
{
    for (const char *at = lines; *at;) {
        size_t n = strcspn(at, "\n");
        if (is_about(also, at, subject_of(at, n), NULL, NULL)) add_line(out, at, n);
        at += n + (at[n] == '\n');
    }
}

static void add_moved(ft_warned *w, const char *lines, double x)
{
    const ft_key_row *key = &ft__keys[w->moving];
    char subject[80] = "\"";
    strncat(subject, key->key, 40);
    strcat(subject, idle);
    const char *line;
    size_t length;
    if (is_about(lines, subject, strlen(subject), &line, &length)) {
        ft__text_empty(&w->moved);
        ft__text_add_n(&w->moved, line, length);
    } else if (x != key->standard) {
        w->acts = true;
    }
}

void ft__warned_add(ft_warned *w, const char *lines, double x)
{
    ft_text common = {0};
    keep_common(lines, w->begun ? text_of(&w->all) : lines, &common);
    common.failed = common.failed || w->all.failed;
    ft__text_free(&w->all);
    w->all = common;
    w->begun = true;
    if (w->moving == FT_KEY_COUNT) w->acts = true;
    if (!w->acts) add_moved(w, lines, x);
}

bool ft__warned_settled(const ft_warned *w) { return w->begun && w->acts && w->all.length == 0; }

void ft__warned_lines(const ft_warned *w, ft_text *out)
{
    ft__text_add(out, text_of(&w->all));
    const char *moved = text_of(&w->moved);
    size_t length = strlen(moved);
    if (!w->acts && *moved && !is_about(text_of(&w->all), moved, subject_of(moved, length), NULL, NULL))
        add_line(out, moved, length);
    if (w->all.failed || w->moved.failed) out->failed = true;
}

void ft__warned_free(ft_warned *w)
{
    ft__text_free(&w->all);
    ft__text_free(&w->moved);
}

void ft__warnings_of(const json_t *answer, ft_text *out)
{
    const json_t *line;
    size_t i;
    json_array_foreach (json_object_get(answer, "warnings"), i, line)
        if (json_is_string(line) && i < MOST_LINES) add_line(out, json_string_value(line), json_string_length(line));
}

void ft__warned_over(json_t *const *answers, size_t count, const double *x, size_t points, ft_key_id moving,
                     ft_text *out)
{
    ft_warned warned = {.moving = moving};
    ft_text lines = {0};
    for (size_t i = 0; i < count && !ft__warned_settled(&warned); i++) {
        ft__text_empty(&lines);
        ft__warnings_of(answers[i], &lines);
        ft__warned_add(&warned, text_of(&lines), x[i % points]);
    }
    ft__warned_lines(&warned, out);
    ft__text_drop(&lines, out);
    ft__warned_free(&warned);
}

static bool all_have(ft_warned_at *at, const void *cases, size_t count, const char *line, size_t length)
{
    const char *name;
    for (size_t i = 0; i < count; i++)
        if (!is_about(text_of(at(cases, i, &name)), line, subject_of(line, length), NULL, NULL)) return false;
    return true;
}

void ft__warned_among(ft_warned_at *at, const void *cases, size_t count, ft_text *out)
{
    for (size_t i = 0; i < count; i++) {
        const char *name;
        const ft_text *lines = at(cases, i, &name);
        if (lines->failed) out->failed = true;
        for (const char *line = text_of(lines); *line;) {
            size_t n = strcspn(line, "\n");
            bool shared = all_have(at, cases, count, line, n);
            if (shared && i == 0) add_line(out, line, n);
            if (!shared) {
                ft__text_addf(out, "%s%s: ", out->length > 0 ? "\n" : "", name);
                ft__text_add_n(out, line, n);
            }
            line += n + (line[n] == '\n');
        }
    }
}

typedef struct compared_lines {
    const ft_compared *compared;
    ft_text lines[FT_MOST_COMPARED];
} compared_lines;

static const ft_text *of_compared(const void *cases, size_t i, const char **name)
{
    const compared_lines *all = cases;
    *name = all->compared[i].name;
    return &all->lines[i];
}

void ft__warned_by(const ft_compared *c, size_t count, ft_text *out)
{
    compared_lines all = {.compared = c};
    for (size_t i = 0; i < count; i++) {
        ft__warnings_of(c[i].answer, &all.lines[i]);
        ft__idle_say(c[i].idle.at, c[i].idle.count, &all.lines[i]);
    }
    ft__warned_among(of_compared, &all, count, out);
    for (size_t i = 0; i < count; i++) ft__text_drop(&all.lines[i], out);
}
