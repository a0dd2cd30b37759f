/* Reading "images" and "image_size". */
#ifndef FT_REQUEST_PICTURES_H
#define FT_REQUEST_PICTURES_H
#include "request/keys.h"
#include "request/model.h"

/* Pictures beside each sequence and their sizes; their tokens are added to the sequence. After the sizes are settled.
 * */
ft_status ft__pictures_settle(const ft_said *said, ft_model_request *out, ft_error *err);
#endif
