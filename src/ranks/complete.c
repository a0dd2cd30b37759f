/* complete.c: other models that a training step runs, and what lies on the host (offload.c).
 *
 * A frozen copy (DPO's reference) runs the model's own forward pass once more, without a loss; adapters are switched
 * off for it instead. Its time is the forward pass's share of the step.
 *
 * PPO, as TRL (trainer/ppo_trainer.py), verl (trainer/ppo/ray_trainer.py) and DeepSpeed-Chat (rlhf/ppo_trainer.py) run
 * it: over answers that have been generated go the reference, the reward model, the value model and the model itself,
 * all forward, for scores, values and log-probabilities from before the update; then the model and the value model are
 * trained, one after the other. All four are taken for the same shape.
 *
 * Leaves out: heads of one score instead of a vocabulary, several passes over the same answers, other models on GPUs of
 * their own. */
#include "ranks/complete.h"

#include <math.h>

#include "ranks/offload.h"

/* The forward pass as it stands in the step, with its part of what is waited for. */
static double forward_of(const ft_step *s)
{
    const double passes = s->busy_ms - s->phase_ms[FT_UPDATE];
    if (!(passes > 0)) return 0;
    return s->phase_ms[FT_FORWARD] * fmax(s->step_ms - s->phase_ms[FT_UPDATE], passes) / passes;
}

/* So much more of what the step does anyway: shares of its parts stay. */
static void lengthen(ft_step *s, double ms)
{
    const double longer = (s->step_ms + ms) / s->step_ms;
    s->low_ms *= longer;
    s->high_ms *= longer;
    s->step_ms += ms;
    s->tokens_per_s /= longer;
    s->model_tflops /= longer;
    s->mfu /= longer;
    s->hfu /= longer;
}

/* What it takes, and of that what its kernels do, as phases have it: they add up to busy_ms. */
static double add_frozen(const ft_workload *w, ft_step *s)
{
    const double ms = ft__frozen_passes(w) * forward_of(s), busy = fmin(s->busy_ms / s->step_ms, 1);
    s->frozen_passes = ft__frozen_passes(w);
    s->reference_ms = ms * busy;
    lengthen(s, ms);
    s->busy_ms += s->reference_ms;
    return ms;
}

/* The step once more, its exchanges, its waits and what the host does for it. */
static void add_critic(ft_step *s, double frozen_ms, double busy_ms)
{
    lengthen(s, s->step_ms - frozen_ms);
    s->critic_ms = busy_ms;
    s->busy_ms += busy_ms;
    s->idle_ms *= 2;
    s->comm_ms *= 2;
    s->comm_exposed_ms *= 2;
    for (int i = 0; i < FT_AXIS_COUNT; i++) s->axis_ms[i] *= 2;
    s->bubble_ms *= 2;
    s->offload.exposed_ms *= 2;
    s->offload.copies_ms *= 2;
    s->offload.copied_bytes *= 2;
    s->offload.update_ms *= 2;
}

void ft__step_complete(const ft_workload *w, const ft_device *device, ft_step *step)
{
    if (w->task != FT_TRAIN || !(step->step_ms > 0)) return;
    const double busy_ms = step->busy_ms;
    const double frozen_ms = add_frozen(w, step);
    ft__offload_apply(w, device, step);
    if (ft__has_critic(w)) add_critic(step, frozen_ms, busy_ms);
}
