/* What a request leaves open: the model as the engine holds it, the engine's settings, the load. */
#ifndef FT_SERVING_SETTLE_H
#define FT_SERVING_SETTLE_H
#include "serving/serve.h"

/* Model, device, engine, layout, tables of an iteration. */
ft_status ft__settle_model(const ft_context *ft, ft_scratch *scratch, const ft_serve_request *r, ft_serving *out,
                           ft_error *err);
/* Budgets and cache. */
ft_status ft__settle_policy(const ft_serve_request *r, ft_serving *out, ft_error *err);
/* Lengths, clients, rate or log; opens the log. */
ft_status ft__settle_load(const ft_serve_request *r, ft_serving *out, ft_error *err);
/* Where an iteration of so many milliseconds should lie. */
ft_bounds_ms ft__serving_bounds(const ft_serving *s, double ms);
#endif
