/* The request's "loader", "advice" and "techniques": how samples reach the GPU, and what is explained beside the
 * forecast. */
#ifndef FT_REQUEST_ADVICE_H
#define FT_REQUEST_ADVICE_H
#include "base/json.h"
#include "explain/loader.h"
#include "request/keys.h"

/* Reads the object's `loader`, where it has one. */
ft_status ft__loader_read(const json_t *object, ft_said *said, ft_error *err);
/* Not given: samples are there when they are needed. */
ft_loader ft__loader_settle(const ft_said *said);
#endif
