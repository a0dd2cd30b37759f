/* Reading "lengths": how long the sequences are that a model is trained on. */
#ifndef FT_REQUEST_LENGTHS_H
#define FT_REQUEST_LENGTHS_H
#include "request/keys.h"
#include "request/model.h"

/* Sizes and layout are settled before. Where all sequences come out equally long, `seq` is that length and nothing
 * varies; sequences that are packed set `packed`. */
ft_status ft__lengths_settle(const json_t *object, ft_said *said, ft_model_request *out, ft_error *err);
#endif
