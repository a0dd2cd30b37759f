/* Number formats of a request for a whole model, settled in this order while it is read. */
#ifndef FT_REQUEST_FORMATS_H
#define FT_REQUEST_FORMATS_H
#include "request/keys.h"
#include "request/model.h"

/* "dtype" and "weights_dtype"; the task is known. */
ft_status ft__settle_dtypes(const ft_said *said, ft_model_request *out, ft_error *err);
/* Adapters over a checkpoint of four bits; the model is known, and what adapters are comes next. */
void ft__settle_loaded(const ft_said *said, ft_model_request *out);
/* As the checkpoint stores its weights; the model is known. */
void ft__settle_quantized(const ft_said *said, ft_model_request *out);
/* "kv_dtype"; the device is known. */
void ft__settle_kv(const ft_said *said, ft_model_request *out);
/* "gpu_layers", "cpu_experts"; formats are settled (split.c). */
ft_status ft__split_settle(const ft_said *said, ft_model_request *out, ft_error *err);
/* A device without the format is refused once, here, and not by whichever kernel comes first. */
ft_status ft__check_dtype(const ft_model_request *r, ft_error *err);
/* Words that say how weights are stored, given where a request says what it computes in or stores them in: refused with
 * the keys that say it. FT_OK: none of those. */
ft_status ft__stored_not_computed(const char *word, const char *where, const char *key, ft_error *err);
#endif
