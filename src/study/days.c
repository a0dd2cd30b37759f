/* days.c: how long training takes. */
#include "study/days.h"

#include "study/lengths.h"

/* Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters" (SC21), section 5.1: 8TP/(nX) with
 * X the achieved FLOP/s per GPU, the forward pass run twice. Without recomputation the same count gives 6TP/(nX). */
ft_days ft__days_of(const ft_step_view *v, double tokens, double gpus)
{
    ft_days d = {.tokens = tokens, .gpus = gpus, .laid_out = v->ranked != NULL, .fits = v->step->memory.fits};
    const double day_s = 86400;
    double per_step = ft__view_tokens_per_s(v) * v->step->step_ms * 1e-3, parameters, active;
    double x = v->step->executed_flops / v->step->step_ms * 1e3;
    if (v->lengths) per_step *= v->lengths->useful; /* padding is not of the data */
    if (!d.laid_out) per_step *= gpus;              /* one GPU's step, as many times */
    if (!ft__view_parameters(v, &parameters, &active)) parameters = v->graph->parameters;
    d.steps = tokens / per_step;
    d.days = d.steps * v->step->step_ms / 1e3 / day_s;
    d.achieved_tflops = x / 1e12;
    d.closed_8 = 8 * tokens * parameters / (gpus * x) / day_s;
    d.closed_6 = d.closed_8 * 6 / 8;
    return d;
}
