/* Keys of a request that change nothing where they are given: answered, and said. */
#ifndef FT_REQUEST_EFFECTS_H
#define FT_REQUEST_EFFECTS_H
#include "request/model.h"

/* Fills r->idle from what was said; the rest of the request is settled. */
ft_status ft__request_effects(const ft_said *said, ft_model_request *r, ft_error *err);
/* Of keys that are idle in one request those that are in `r` as well, another one that says the same; why is what `r`
 * says. */
void ft__request_still_idle(const ft_said *said, const ft_model_request *r, ft_idle_key *at, size_t *count);
/* Modules that a model has and that keep something for the backward pass: bits as in `again`. */
unsigned ft__modules_of(const ft_arch *arch, const ft_workload *work);
/* Why a key of `cluster` that says what joins nodes has no effect for so many ranks; NULL: it has one. */
const char *ft__network_idle(const json_t *cluster, const ft_device *device, int64_t ranks, const char *key);
#endif
