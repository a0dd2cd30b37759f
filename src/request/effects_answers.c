/* effects_answers.c: where keys of answers that a step generates itself have no effect. */
#include "request/effects_rules.h"

const char *ft__answers_rule(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    return ft__generates(c->w->trainer) ? ft__timed_rule(c)
                                        : "\"trainer\" is neither \"grpo\" nor \"ppo\": nothing is generated";
}

const char *ft__ahead_rule(const ft_effect_case *c)
{
    const char *why = ft__answers_rule(c);
    return why || c->w->answers.gpus > 0 ? why : "the GPUs that train also generate: \"rollout_gpus\" is not given";
}

const char *ft__age_rule(const ft_effect_case *c)
{
    const char *why = ft__ahead_rule(c);
    return why || c->w->answers.ahead ? why : "\"rollout_async\" is false: a step trains on its own answers";
}

const char *ft__filled_rule(const ft_effect_case *c)
{
    const char *why = ft__answers_rule(c);
    if (why || c->w->answers.pack < 1) return why ? why : "nothing is padded: \"rollout_pack\" is not given";
    return ft__frozen_passes(c->w) > 0 ? NULL : "there is no forward-only pass";
}

const char *ft__own_pass_rule(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    if (ft__has_critic(c->w)) return "\"trainer\" is \"ppo\", which recomputes log-probabilities anyway";
    return ft__answers_rule(c);
}
