/* Reading the keys of keys_step.h. */
#ifndef FT_REQUEST_STEP_KEYS_H
#define FT_REQUEST_STEP_KEYS_H
#include "request/keys.h"
#include "request/model.h"

ft_status ft__step_keys_settle(const json_t *object, const ft_said *said, ft_model_request *out, ft_error *err);
/* `device`, which `gpu` says, with its board held to less: an object on top of it, which the caller owns; NULL: nothing
 * is said, its own limit is not above it, or out of memory (err). */
ft_status ft__capped_gpu(const json_t *gpu, const ft_device *device, const ft_said *said, json_t **out, ft_error *err);
#endif
