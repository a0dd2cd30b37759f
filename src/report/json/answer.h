/* Answers as JSON: one object, one line, keys with their units. */
#ifndef FT_REPORT_JSON_ANSWER_H
#define FT_REPORT_JSON_ANSWER_H
#include <jansson.h>

#include "base/error.h"
#include "base/json_write.h"
#include "kernel/energy.h"

/* `id` is what the request called itself; NULL leaves it out. */
/* `warnings`: of the device's spec, one per line; "" for none. */
/* `energy`: of one launch among its like; NULL leaves it out. */
void ft__answer_kernel(ft_text *out, const json_t *id, const ft_forecast *f, const ft_energy *energy,
                       const char *warnings);
/* `line` is the request's number in a stream, 0 for none. An error without an id answers "id":null in a stream, where
 * every line has an answer. */
void ft__answer_error(ft_text *out, const json_t *id, const ft_error *err, int64_t line);

/* The pieces, for answers written elsewhere. A figure that is not finite or is negative, and an empty word, are left
 * out. */
void ft__answer_begin(ft_text *out, const json_t *id); /* opens the object: its id where there is one, "ok":true */
void ft__answer_figure(ft_text *out, const char *key, double value);
void ft__answer_bytes(ft_text *out, const char *key, double bytes); /* whole, to the byte; negative is none */
void ft__answer_word(ft_text *out, const char *key, const char *word);
void ft__answer_lines(ft_text *out, const char *key, const char *lines); /* an array of a text's lines; "" for none */
#endif
