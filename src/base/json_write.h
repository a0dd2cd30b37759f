/* The one writer of JSON: values appended to a text, commas where they are due.
 *
 * There is no state beside the text: whether a comma is due is read off its last byte (after an opening bracket, a
 * colon, a blank or nothing none is, after a whole value one is), so that pieces of one answer can be written by
 * rooms that know nothing of each other. Memory that runs out is the text's `failed`. Numbers are as short as brings
 * `digits` significant ones back, null where they are not finite; text is quoted and made valid UTF-8, NULL is null. */
#ifndef FT_BASE_JSON_WRITE_H
#define FT_BASE_JSON_WRITE_H
#include <jansson.h>

#include "base/text.h"

void ft__json_open(ft_text *t);  /* an object */
void ft__json_close(ft_text *t); /* its end */
void ft__json_open_list(ft_text *t);
void ft__json_close_list(ft_text *t);
void ft__json_line(ft_text *t); /* what follows, a value or a member, stands on a line of its own */

void ft__json_add_text(ft_text *t, const char *s);
void ft__json_add_number(ft_text *t, double value, int digits);
void ft__json_add_whole(ft_text *t, int64_t value);
void ft__json_add_tree(ft_text *t, const json_t *value);   /* members in the order in which they were set */
void ft__json_add_sorted(ft_text *t, const json_t *value); /* members in the order of their names */

void ft__json_key(ft_text *t, const char *key); /* of the value that follows */
void ft__json_member_open(ft_text *t, const char *key);
void ft__json_member_list(ft_text *t, const char *key);
void ft__json_member_text(ft_text *t, const char *key, const char *s);
void ft__json_member_number(ft_text *t, const char *key, double value, int digits);
void ft__json_member_whole(ft_text *t, const char *key, int64_t value);
void ft__json_member_flag(ft_text *t, const char *key, bool value);
void ft__json_member_tree(ft_text *t, const char *key, const json_t *value);

/* What was written already. */
void ft__json_member_written(ft_text *t, const char *key, const char *json); /* a value, as it is */
void ft__json_rest(ft_text *t, const char *object);                          /* the members of an object, and its end */
void ft__json_reopen(ft_text *t); /* takes the last bracket back: more members follow */
#endif
