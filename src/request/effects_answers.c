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
    return why || c->w->answers.gpus > 0 ? why : "the GPUs that train generate, too: \"rollout_gpus\" names no others";
}

const char *ft__age_rule(const ft_effect_case *c)
{
    const char *why = ft__ahead_rule(c);
    return why || c->w->answers.ahead ? why : "\"rollout_async\" is false: answers are the step's own";
}

const char *ft__filled_rule(const ft_effect_case *c)
{
    const char *why = ft__answers_rule(c);
    if (why || c->w->answers.pack < 1) return why ? why : "nothing is filled up: \"rollout_pack\" says nothing";
    return ft__frozen_passes(c->w) > 0 ? NULL : "no pass only goes forward";
}

const char *ft__own_pass_rule(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    if (ft__has_critic(c->w)) return "\"trainer\" is \"ppo\", of which the model goes over its answers anyway";
    return ft__answers_rule(c);
}
