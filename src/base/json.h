/* Jansson with our errors: documents carry file, line and column; getters say the key's path and what was
 * expected. A getter of a missing key leaves *out alone and returns FT_OK unless `required`. `where` is what the object
 * is called: a key path ("parallel" makes "parallel.tp"), a file ("my_gpu.json: sms"), or "" for the request itself. */
#ifndef FT_BASE_JSON_H
#define FT_BASE_JSON_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

ft_status ft__json_parse(const char *text, size_t length, const char *where, json_t **out, ft_error *err);
ft_status ft__json_load(const char *path, json_t **out, ft_error *err); /* refuses files over 64 MiB */

typedef enum ft_need { FT_OPTIONAL, FT_REQUIRED } ft_need;
ft_status ft__json_number(const json_t *object, const char *key, ft_need need, double low, double high, double *out,
                          const char *where, ft_error *err);
ft_status ft__json_whole(const json_t *object, const char *key, ft_need need, int64_t low, int64_t high, int64_t *out,
                         const char *where, ft_error *err); /* refuses 2.5, takes 2.0 and 1e3 */
bool ft__json_is_whole(const json_t *value, int64_t *out);  /* likewise, of a value; false leaves *out alone */
int64_t ft__json_whole_of(const json_t *value);             /* 0: none, or no whole number */
ft_status ft__json_string(const json_t *object, const char *key, ft_need need, const char **out, const char *where,
                          ft_error *err);
ft_status ft__json_bool(const json_t *object, const char *key, ft_need need, bool *out, const char *where,
                        ft_error *err);
/* Every key of `object` must be in `known`; the nearest known key stands in the message. */
ft_status ft__json_known_keys(const json_t *object, const char *const *known, size_t count, const char *where,
                              ft_error *err);
#endif
