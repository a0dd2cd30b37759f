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
/* idle.c: of keys that a step without a layout has no use for those that no engine has; and of the load's. */
ft_status ft__settle_idle(const ft_serve_request *r, const ft_model_request *read, ft_serving *out, ft_error *err);
/* Of one token's cache: it goes from every rank to its counterpart, over the outermost links that both hang on. */
double ft__served_transfer_ms(const ft_served *m, const ft_cluster *c);
/* Budgets and cache. */
ft_status ft__settle_policy(const ft_serve_request *r, ft_serving *out, ft_error *err);
/* Lengths, clients, rate or log; opens the log. */
ft_status ft__settle_load(const ft_serve_request *r, ft_serving *out, ft_error *err);
/* Where an iteration of so many milliseconds should lie. */
ft_bounds_ms ft__serving_bounds(const ft_serving *s, double ms);
#endif
