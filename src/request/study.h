/* What requests of study/ share: a base request of a whole model, which is asked several times, with keys of their own
 * beside it. */
#ifndef FT_REQUEST_STUDY_H
#define FT_REQUEST_STUDY_H
#include "request/request.h"

/* A copy that shares its values; NULL: out of memory. Jansson's own leaves keys out where memory runs out. */
json_t *ft__study_copy(const json_t *object);
/* The request without "id" and the keys in `own`: what is left is the base's to read. NULL: out of memory. */
json_t *ft__study_base(const json_t *object, const char *const *own, size_t count);
/* The base's reader knows its own keys alone; of an unknown one that is near to one of `own` it is told here. Returns
 * `status`. */
ft_status ft__study_nearest(ft_status status, const char *const *own, size_t count, ft_error *err);
/* One whole number or a list of them; *count is left alone where the key is missing. */
ft_status ft__study_wholes(const json_t *object, const char *key, int64_t low, int64_t high, int64_t *out, size_t most,
                           size_t *count, ft_error *err);
#endif
