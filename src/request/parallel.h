/* The request's `parallel`: a layout over several GPUs. */
#ifndef FT_REQUEST_PARALLEL_H
#define FT_REQUEST_PARALLEL_H
#include "base/json.h"
#include "layout/layout.h"
#include "model/workload.h"
#include "request/keys.h"

/* Reads the object's `parallel`, where it has one. */
ft_status ft__parallel_read(const json_t *object, ft_said *said, ft_error *err);
/* What was said as a layout: degrees as they stand, everything 1 where nothing was said. */
ft_status ft__parallel_settle(const ft_said *said, ft_parallel *out, ft_error *err);
/* The key of `parallel` that is meant by this word, ours or other software's; NULL: none. */
const char *ft__parallel_key(const char *said);
/* What the model and the workload say about them. */
ft_status ft__parallel_fits_model(const ft_parallel *p, const ft_arch *arch, const ft_workload *work, ft_error *err);
#endif
