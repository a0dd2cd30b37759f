/* Serving under load as one JSON object. */
#ifndef FT_REPORT_JSON_SERVE_ANSWER_H
#define FT_REPORT_JSON_SERVE_ANSWER_H
#include "serving/roll.h"
#include "serving/serve.h"

/* `record`: every request is listed; NULL: none is. */
void ft__answer_serve(ft_text *out, const json_t *id, const ft_serving *s, const ft_roll *record, bool course);
/* What all GPUs draw for a token of answers; the interval has watts alone in it, as the span of a run is not forecast.
 * Nothing where the GPU's sheet has no limit. */
void ft__answer_served_energy(ft_text *out, const ft_energy *of_a_gpu, double joules_per_token);
#endif
