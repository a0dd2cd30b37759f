/* Reading "images", "image_size" and "frames". */
#ifndef FT_REQUEST_PICTURES_H
#define FT_REQUEST_PICTURES_H
#include "request/keys.h"
#include "request/model.h"

/* What "image_size" and "frames" say; 0 where they say nothing. */
ft_status ft__picture_size_read(const ft_said *said, ft_picture_size *out, ft_error *err);
/* Pictures beside each sequence and their sizes; their tokens are added to the sequence. After the sizes are settled.
 * */
void ft__pictures_settle(const ft_said *said, ft_model_request *out);
#endif
