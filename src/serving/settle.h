/* What a request leaves open: the model as the engine holds it, the engine's settings, the load. */
#ifndef FT_SERVING_SETTLE_H
#define FT_SERVING_SETTLE_H
#include "serving/serve.h"

/* Model, device, engine, layout, tables of an iteration. */
ft_status ft__settle_model(const ft_context *ft, ft_scratch *scratch, const ft_serve_request *r, ft_serving *out,
                           ft_error *err);
/* draft.c: tokens that a step makes whose drafts are kept with this chance; a model that makes drafts; what drafts add
 * to the model's costs and take of its memory. */
double ft__drafts_accepted(double drafts, double chance);
ft_status ft__settle_draft_model(const ft_context *ft, ft_scratch *scratch, const ft_serve_request *r, ft_dtype asked,
                                 int64_t vocab, ft_serving *out, ft_error *err);
void ft__settle_drafts(const ft_serve_request *r, ft_serving *out);
/* Budgets and cache. */
ft_status ft__settle_policy(const ft_serve_request *r, ft_serving *out, ft_error *err);
/* Lengths, clients, rate or log; opens the log. */
ft_status ft__settle_load(const ft_serve_request *r, ft_serving *out, ft_error *err);
/* Where an iteration of so many milliseconds should lie. */
ft_bounds_ms ft__serving_bounds(const ft_serving *s, double ms);
#endif
