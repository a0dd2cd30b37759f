/* An engine for tests of the simulator: an iteration takes a millisecond, whatever is in it. */
#ifndef SIMPLE_ENGINE_H
#define SIMPLE_ENGINE_H
#include "serving/simulate.h"

static ft_serving_engine engine = {.step_ms = 1, .step_scale = 1, .prefill_scale = 1};
static ft_costs costs = {.dp = 1, .pp = 1, .engine = &engine};

/* Answers go before prompts, which come in pieces. */
static inline ft_policy decode_first(void)
{
    return (ft_policy){.order = FT_ORDER_DECODE_FIRST,
                       .chunked = true,
                       .budget = 8192,
                       .max_sequences = 256,
                       .capacity = 1e9,
                       .block = 16,
                       .accepted = 1};
}

static inline ft_load poisson(double per_s, int64_t requests, double prompt, double answer)
{
    ft_load l = {.rate_per_s = per_s, .burstiness = 1, .requests = requests, .turns = 1};
    l.prompt = (ft_lengths){.mean = prompt, .low = 1, .high = 1};
    l.answer = (ft_lengths){.mean = answer, .low = 1, .high = 1};
    ft__load_seed(&l, 7);
    return l;
}
#endif
