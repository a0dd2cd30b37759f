/* The version of PyTorch that a request, or its stack, names. */
#ifndef FT_REQUEST_VERSION_H
#define FT_REQUEST_VERSION_H
#include "request/keys.h"
#include "request/model.h"

/* Looks it up and turns what the version has otherwise; `out` has its stack, its words and its device. */
ft_status ft__settle_pytorch(const ft_said *said, ft_model_request *out, ft_error *err);
#endif
