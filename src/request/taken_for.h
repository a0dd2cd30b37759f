/* Requests that name no stack and can only mean one: it is taken for named, or found by what follows, with a remark. */
#ifndef FT_REQUEST_TAKEN_FOR_H
#define FT_REQUEST_TAKEN_FOR_H
#include "request/keys.h"
#include "request/model.h"

void ft__take_for_old(const ft_said *said, ft_model_request *out);
void ft__take_for_first_flash(const ft_said *said, ft_model_request *out);
void ft__take_for_liger(ft_model_request *out);
/* Once the model is known. */
void ft__take_for_written_out(const ft_said *said, ft_model_request *out);
/* Once the GPU is known. */
void ft__take_for_ported(ft_model_request *out);
void ft__take_for_earlier(ft_model_request *out);
void ft__take_for_causal(ft_model_request *out);
void ft__take_for_packed(const ft_said *said, ft_model_request *out);
void ft__remark_library(const ft_said *said, ft_model_request *out);
void ft__remark_modules(const ft_said *said, ft_model_request *out);
#endif
