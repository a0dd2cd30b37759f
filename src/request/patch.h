/* What a change of a step is in its request. */
#ifndef FT_REQUEST_PATCH_H
#define FT_REQUEST_PATCH_H
#include <jansson.h>

#include "explain/change.h"

/* The keys that differ, as a request has them, {"batch": 4, "parallel": {"tp": 2}}: merged into the request of `now`
 * they make that of `after`. Sizes of the model stand under "model", by the names of its config. NULL: out of
 * memory. */
json_t *ft__change_patch(const ft_change *now, const ft_change *after);
/* The word for its number format: "amp_bf16" under autocast. */
const char *ft__change_dtype(const ft_workload *work);
#endif
