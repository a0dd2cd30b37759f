/* Reading "lora" and its short form "lora_rank". */
#ifndef FT_REQUEST_LORA_H
#define FT_REQUEST_LORA_H
#include "request/keys.h"
#include "request/model.h"

/* Reads the section, and makes "lora_rank" of its "rank". */
ft_status ft__lora_read(const json_t *object, ft_said *said, ft_error *err);
/* What was said of adapters; what was not stays the stack's. */
ft_status ft__lora_settle(const json_t *object, const ft_said *said, ft_model_request *out, ft_error *err);
#endif
