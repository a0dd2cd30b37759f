/* What to change, by what it does to the same load. */
#ifndef FT_SERVING_ADVISE_H
#define FT_SERVING_ADVISE_H
#include "serving/serve.h"

/* Fills advice and advice_count of `s`, which has been run for `r`. */
ft_status ft__serving_advise(const ft_context *ft, ft_scratch *scratch, const ft_serve_request *r, ft_serving *s,
                             ft_error *err);
#endif
