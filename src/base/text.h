/* Growable text with a hard cap, and the nearest of a list of names. */
#ifndef FT_BASE_TEXT_H
#define FT_BASE_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ft_text {
    char *at;                 /* NUL-terminated once anything was added */
    size_t length, room, cap; /* cap 0 means 1 GiB */
    bool failed;              /* out of memory or over the cap: further adds do nothing */
} ft_text;

void ft__text_free(ft_text *t);
/* Frees a text that was made for `whole`: what it could not hold, `whole` lacks, so a failure goes on to it. */
void ft__text_drop(ft_text *part, ft_text *whole);
void ft__text_clear(ft_text *t);
/* The same of a part that is filled again: that it failed once stays, until ft__text_drop says so to the whole. */
void ft__text_empty(ft_text *part);
void ft__text_add(ft_text *t, const char *s);
void ft__text_add_n(ft_text *t, const char *s, size_t n);
void ft__text_addf(ft_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The shortest decimal that gives `digits` significant ones back, without trailing zeros: 0.2125, 1.2e-05.
 * Fast: it runs a dozen times per answer. Non-finite values write null. */
void ft__text_add_number(ft_text *t, double value, int digits);
void ft__text_add_json(ft_text *t, const char *s); /* quoted and escaped */

/* Bytes of the UTF-8 character at `text`; 0 when it is malformed, overlong, a surrogate or longer than `room`. */
size_t ft__utf8_length(const char *text, size_t room);
/* How many bytes of `text` to show when at most `most` are wanted and no character may be cut. */
size_t ft__utf8_cut(const char *text, size_t most);

bool ft__text_blank(const char *line, size_t length); /* nothing but blanks, tabs and carriage returns */
/* Up to two digits, behind which `at` then stands; -1: none, or more. */
int ft__two_digits(const char **at);

/* The whole of `s` as a finite decimal number, or as a whole one ("4096", "4096.0", "1e3"; not "2.5"). False and
 * *out left alone for anything else: blanks, hexadecimal, inf, nan, beyond the type's range. No locale. */
bool ft__number_parse(const char *s, double *out);
bool ft__whole_parse(const char *s, int64_t *out);

/* At most so many letters to insert, drop, replace or swap with their neighbour from one to the other; case and
 * separators (- _ . and blank) aside. Never where either is longer than 64. */
bool ft__within(const char *a, size_t length, const char *b, int edits);
/* The candidate with the smallest edit distance, or NULL when none is close enough to be meant. */
const char *ft__nearest(const char *wanted, const char *const *names, size_t count);
#endif
