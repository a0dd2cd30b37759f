/* text.c: growable text, JSON strings, and the nearest of a list of names. Numbers stand in number.c. */
#define _GNU_SOURCE /* strnlen under -std=c17 */
#include "base/text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/untraced.h"

static const size_t default_cap = (size_t)1 << 30;

void ft__text_free(ft_text *t)
{
    free(t->at);
    t->at = NULL;
    t->length = t->room = 0;
    t->failed = false;
}

void ft__text_drop(ft_text *part, ft_text *whole)
{
    if (part->failed) whole->failed = true;
    ft__text_free(part);
}

void ft__text_clear(ft_text *t)
{
    t->length = 0;
    t->failed = false;
    if (t->at) t->at[0] = '\0';
}

void ft__text_empty(ft_text *part)
{
    bool failed = part->failed;
    ft__text_clear(part);
    part->failed = failed;
}

/* Makes place for `more` bytes and the NUL. The cap counts neither the NUL nor unused room. */
static bool grow(ft_text *t, size_t more)
{
    if (t->failed) return false;
    size_t cap = t->cap ? t->cap : default_cap;
    if (t->length > cap || more > cap - t->length) {
        t->failed = true;
        return false;
    }
    size_t needed = t->length + more + 1;
    if (needed <= t->room) return true;
    size_t room = t->room ? t->room : 256;
    while (room < needed) room = room > SIZE_MAX / 2 ? needed : room * 2;
    char *at = realloc(t->at, room);
    if (!at) {
        t->failed = true;
        return false;
    }
    t->at = at;
    t->room = room;
    return true;
}

void ft__text_add_n(ft_text *t, const char *s, size_t n)
{
    if (!grow(t, n)) return;
    if (n) memcpy(t->at + t->length, s, n);
    t->length += n;
    t->at[t->length] = '\0';
}

void ft__text_add(ft_text *t, const char *s) { ft__text_add_n(t, s, strlen(s)); }

/* Almost every piece fits the local buffer, so it is formatted once. */
void ft__text_addf(ft_text *t, const char *format, ...)
{
    char local[256];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(local, sizeof local, format, args);
    va_end(args);
    if (length < 0) {
        t->failed = true;
    } else if ((size_t)length < sizeof local) {
        ft__text_add_n(t, local, (size_t)length);
    } else if (grow(t, (size_t)length)) {
        vsnprintf(t->at + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
}

size_t ft__utf8_length(const char *text, size_t room)
{
    const unsigned char *s = (const unsigned char *)text;
    if (room >= 1 && s[0] < 0x80) return 1;
    if (room >= 2 && s[0] >= 0xC2 && s[0] <= 0xDF) return (s[1] & 0xC0) == 0x80 ? 2 : 0;
    if (room >= 3 && s[0] >= 0xE0 && s[0] <= 0xEF) {
        if ((s[1] & 0xC0) != 0x80 || (s[2] & 0xC0) != 0x80) return 0;
        if (s[0] == 0xE0 && s[1] < 0xA0) return 0;
        if (s[0] == 0xED && s[1] > 0x9F) return 0;
        return 3;
    }
    if (room >= 4 && s[0] >= 0xF0 && s[0] <= 0xF4) {
        if ((s[1] & 0xC0) != 0x80 || (s[2] & 0xC0) != 0x80 || (s[3] & 0xC0) != 0x80) return 0;
        if (s[0] == 0xF0 && s[1] < 0x90) return 0;
        if (s[0] == 0xF4 && s[1] > 0x8F) return 0;
        return 4;
    }
    return 0;
}

bool ft__text_blank(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
    return true;
}

int ft__two_digits(const char **at)
{
    int n = 0, digits = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        if (++digits > 2) return -1;
        n = 10 * n + (**at - '0');
    }
    return digits ? n : -1;
}

size_t ft__utf8_cut(const char *text, size_t most)
{
    size_t length = strnlen(text, most + 1);
    if (length <= most) return length;
    length = most;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
    return length;
}

/* Names from outside may hold any byte; what is no UTF-8 becomes U+FFFD so that the answer stays valid JSON. */
void ft__text_add_json(ft_text *t, const char *s)
{
    const char *end = s + strlen(s);
    ft__text_add_n(t, "\"", 1);
    while (s < end) {
        const char *plain = s; /* a run that needs no escape is copied in one piece */
        size_t n;
        while (s < end && (unsigned char)*s >= 0x20 && *s != '"' && *s != '\\' &&
               (n = ft__utf8_length(s, (size_t)(end - s))) != 0)
            s += n;
        ft__text_add_n(t, plain, (size_t)(s - plain));
        if (s == end) break;
        switch (*s) {
        case '"': ft__text_add_n(t, "\\\"", 2); break;
        case '\\': ft__text_add_n(t, "\\\\", 2); break;
        case '\b': ft__text_add_n(t, "\\b", 2); break;
        case '\f': ft__text_add_n(t, "\\f", 2); break;
        case '\n': ft__text_add_n(t, "\\n", 2); break;
        case '\r': ft__text_add_n(t, "\\r", 2); break;
        case '\t': ft__text_add_n(t, "\\t", 2); break;
        default:
            if ((unsigned char)*s < 0x20) {
                ft__text_addf(t, "\\u%04x", (unsigned char)*s);
            } else {
                ft__text_add_n(t, "\\ufffd", 6);
            }
        }
        s++;
    }
    ft__text_add_n(t, "\"", 1);
}

/* -- the nearest name -------------------------------------------------------------------------- */

enum { LONGEST_NAME = 64 }; /* longer ones are not offered; ours have at most 63 characters */

/* H100-SXM, "h100 sxm" and h100_sxm are the same to whoever types them. */
FT_UNTRACED static unsigned char fold(char c)
{
    if (c >= 'A' && c <= 'Z') return (unsigned char)(c - 'A' + 'a');
    if (c == '-' || c == ' ' || c == '.') return '_';
    return (unsigned char)c;
}

FT_UNTRACED static bool separates(char c) { return fold(c) == '_'; }

/* Optimal string alignment in quarters of a step: insertions, deletions, replacements and swaps of two neighbours are
 * one step each, a separator more or less a quarter: gpt-2 is nearly gpt2. */
enum { STEP = 4, SEPARATOR = 1 };

FT_UNTRACED static int cost(char c) { return separates(c) ? SEPARATOR : STEP; }

/* Above `most` it is most + 1: no row grows smaller than the smaller of the two before it, so that names which have
 * nothing in common are left after a few letters. */
FT_UNTRACED static int distance(const char *a, size_t a_length, const char *b, size_t b_length, int most)
{
    int rows[3][LONGEST_NAME + 1], costs[LONGEST_NAME];
    unsigned char folded[LONGEST_NAME];
    int *before = rows[0], *last = rows[1], *row = rows[2], least_before = 0;
    last[0] = 0;
    for (size_t j = 0; j < b_length; j++) {
        folded[j] = fold(b[j]);
        costs[j] = cost(b[j]);
        last[j + 1] = last[j] + costs[j];
    }
    for (size_t i = 1; i <= a_length; i++) {
        unsigned char letter = fold(a[i - 1]), earlier = i > 1 ? fold(a[i - 2]) : 0;
        int removed = cost(a[i - 1]);
        int least = row[0] = last[0] + removed;
        for (size_t j = 1; j <= b_length; j++) {
            int best = last[j - 1] + (letter == folded[j - 1] ? 0 : STEP);
            if (last[j] + removed < best) best = last[j] + removed;
            if (row[j - 1] + costs[j - 1] < best) best = row[j - 1] + costs[j - 1];
            bool swapped = i > 1 && j > 1 && letter == folded[j - 2] && earlier == folded[j - 1];
            if (swapped && before[j - 2] + STEP < best) best = before[j - 2] + STEP;
            row[j] = best;
            if (best < least) least = best;
        }
        if (least > most && least_before > most) return most + 1;
        least_before = least;
        int *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[b_length] > most ? most + 1 : last[b_length];
}

FT_UNTRACED static int letters(const char *text, size_t length)
{
    int count = 0;
    for (size_t i = 0; i < length; i++) count += !separates(text[i]);
    return count;
}

bool ft__within(const char *a, size_t length, const char *b, int edits)
{
    size_t b_length = strlen(b);
    int most = STEP * edits + STEP - 1; /* separators count for nothing */
    if (length > LONGEST_NAME || b_length > LONGEST_NAME) return false;
    if (STEP * abs(letters(a, length) - letters(b, b_length)) > most) return false;
    return distance(a, length, b, b_length, most) <= most;
}

/* The typed word is how the name begins, separators aside: "h100" of h100_sxm, "mi300" of mi300x. */
static bool begins_with(const char *name, const char *start, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (separates(start[i])) continue;
        while (separates(*name)) name++;
        if (!*name || fold(*name++) != fold(start[i])) return false;
    }
    return true;
}

/* A long name of which the beginning was typed with a slip ("micro_bach" for micro_batch_size): the steps to the name
 * cut to the typed length, one letter more or less. */
FT_UNTRACED static int distance_to_beginning(const char *wanted, size_t length, const char *name, size_t name_length,
                                             int most)
{
    int best = INT_MAX;
    for (size_t cut = length - 1; cut <= length + 1 && cut < name_length; cut++) {
        int steps = distance(wanted, length, name, cut, most);
        if (steps < best) best = steps;
    }
    return best;
}

/* A name is meant when at most a third of the letters typed are wrong, when the typed word is its beginning ("h100" for
 * "h100_sxm"), which counts as one step, or when it is nearly its beginning, which counts as one more. Of equals a name
 * that goes on wins over one that differs, the shorter of those, and otherwise the first in the list. */
const char *ft__nearest(const char *wanted, const char *const *names, size_t count)
{
    size_t length = strlen(wanted);
    if (length == 0 || length > LONGEST_NAME) return NULL;
    int limit = STEP * (length < 3 ? 1 : (int)(length + 2) / 3);
    int best = limit + 1, wanted_letters = letters(wanted, length);
    bool best_begins = false;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]);
        if (name_length > LONGEST_NAME) continue;
        /* A letter more or less is a step at the least: most names are out of reach by their length alone. */
        bool near = STEP * abs(wanted_letters - letters(names[i], name_length)) <= limit;
        int steps = near ? distance(wanted, length, names[i], name_length, limit) : limit + 1;
        /* A one-letter name shares nothing with a one-letter wish but its length. */
        if (steps >= STEP * (int)(length > name_length ? length : name_length)) steps = limit + 1;
        bool begins = length >= 2 && steps > SEPARATOR && begins_with(names[i], wanted, length);
        if (begins && steps > STEP) steps = STEP;
        if (!begins && steps > 2 * STEP && length >= 5) {
            int most = STEP * (int)length / 5;
            int slip = distance_to_beginning(wanted, length, names[i], name_length, most);
            if (slip <= most && slip + STEP < steps) steps = slip + STEP, begins = true;
        }
        bool equal = steps == best && nearest;
        bool better = steps < best || (equal && begins && !best_begins) ||
                      (equal && begins && best_begins && name_length < strlen(nearest));
        if (steps > limit || !better) continue;
        best = steps;
        best_begins = begins;
        nearest = names[i];
    }
    return nearest;
}
