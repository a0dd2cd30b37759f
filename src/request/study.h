/* What requests of study/ share: a base request of a whole model, which is asked several times, with keys of their own
 * beside it. */
#ifndef FT_REQUEST_STUDY_H
#define FT_REQUEST_STUDY_H
#include "request/keys.h"
#include "request/request.h"

/* A copy that shares its values; NULL: out of memory. Jansson's own leaves keys out where memory runs out. */
json_t *ft__study_copy(const json_t *object);
/* A request of `task`: its keys are known, those of the task's own section, its last, are read into `said`, and what is
 * left is the base. Free *base either way. */
ft_status ft__study_read(const json_t *object, ft_ask task, json_t **base, ft_said *said, ft_error *err);
#endif
