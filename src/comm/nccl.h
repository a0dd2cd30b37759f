/* Versions of NCCL, as people and tables write them. */
#ifndef FT_COMM_NCCL_H
#define FT_COMM_NCCL_H
#include <jansson.h>

#include "base/error.h"

/* "2.27", "2.27.3", "v2.27.3-1" -> 227, 100 * major + minor; false: no version. */
bool ft__nccl_parse(const char *text, int *out);
/* "nccl" of a cluster's object, which may be NULL; `*out` stays where nothing is said. */
ft_status ft__nccl_read(const json_t *cluster, const char *where, int *out, ft_error *err);
#endif
