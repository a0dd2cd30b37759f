/* updates.c: several updates on what was generated once, and packs that are filled up.
 *
 * NeMo RL (train_global_batch_size), verl (ppo_mini_batch_size) and slime (num_steps_per_rollout) update more than once
 * on the answers of one generation: each update has its part of them, and a pipeline, an exchange of gradients and an
 * optimizer step of its own.
 *
 * Where tensors must have one shape, as between the stages of a pipeline, packs of answers are filled up: NeMo RL pads
 * them to train_mb_tokens (get_microbatch_iterator_for_packable_sequences_len, pad_full_seq_to). Passes run over the
 * filling; answers are what is counted. It makes more micro-batches of the request's size here.
 *
 * Forward passes beside those that are trained go once over all answers, in as many pipelines as there are updates, and
 * over packs of their own where those are said (NeMo RL's logprob_mb_tokens). */
#include "study/updates.h"

#include <math.h>

#include "study/answer_lengths.h"

static double updates_of(const ft_workload *w) { return w->answers.updates > 1 ? (double)w->answers.updates : 1; }

static double micros_of(const ft_workload *w) { return w->accumulate > 1 ? (double)w->accumulate : 1; }

/* Micro-batches of one update; nothing is filled up. */
static double even(const ft_model_request *r) { return micros_of(&r->work) / updates_of(&r->work); }

/* The share of packs of so many tokens that answers have. */
static double filling(const ft_model_request *r, int64_t pack)
{
    const ft_workload *w = &r->work;
    const ft_answers *a = &w->answers;
    if (pack < 1 || a->tokens < 1) return 1;
    const double mean = (double)a->tokens, longest = fmax((double)a->longest, mean);
    const double all = (double)w->batch * even(r) * (double)r->parallel.dp;
    return ft__answer_filling((double)(w->seq - a->tokens), mean, longest, all, (double)pack);
}

ft_status ft__updates_one(const ft_model_request *r, ft_model_request *one, ft_error *err)
{
    *one = *r;
    if (r->work.answers.tokens < 1) return FT_OK;
    if (even(r) < 1)
        return ft__fail_at(err, FT_E_RANGE, "rollout_updates", 0, 0,
                           "\"rollout_updates\" %.0f are more than the %.0f micro-batches of a step",
                           updates_of(&r->work), micros_of(&r->work));
    one->work.accumulate = (int64_t)ceil(even(r) / filling(r, r->work.answers.pack));
    return FT_OK;
}

static void more(ft_step *s, double times)
{
    double *const sums[] = {&s->step_ms,
                            &s->low_ms,
                            &s->high_ms,
                            &s->busy_ms,
                            &s->idle_ms,
                            &s->host_ms,
                            &s->update_pass_ms,
                            &s->model_flops,
                            &s->executed_flops,
                            &s->launches,
                            &s->comm_ms,
                            &s->comm_exposed_ms,
                            &s->bubble_ms,
                            &s->offload.update_ms,
                            &s->offload.copies_ms,
                            &s->offload.exposed_ms,
                            &s->reference_ms,
                            &s->critic_ms,
                            &s->offload.copied_bytes};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) *sums[i] *= times;
    for (int i = 0; i < FT_PHASE_COUNT; i++) s->phase_ms[i] *= times;
    for (int i = 0; i < FT_AXIS_COUNT; i++) s->axis_ms[i] *= times;
    for (int i = 0; i < FT_CLASS_COUNT; i++) {
        s->class_ms[i] *= times;
        s->class_flops[i] *= times;
    }
    for (int32_t i = 0; i < s->kernel_count; i++) s->kernels[i].times *= times;
}

/* Passes that only go forward, over packs of their own instead of those that are trained on. */
static void repack(const ft_model_request *r, ft_step *s)
{
    const ft_answers *a = &r->work.answers;
    if (a->pack < 1 || a->forward < 1 || !(s->reference_ms > 0)) return;
    const double part = filling(r, a->pack) / filling(r, a->forward), ms = s->reference_ms * (part - 1);
    const double longer = (s->step_ms + ms) / s->step_ms;
    s->reference_ms += ms;
    s->busy_ms += ms;
    s->step_ms += ms;
    s->low_ms *= longer;
    s->high_ms *= longer;
    s->tokens_per_s /= longer;
    s->model_tflops /= longer;
    s->mfu /= longer;
    s->hfu /= longer;
}

void ft__updates_apply(const ft_model_request *r, const ft_model_request *one, ft_step *step)
{
    const double times = updates_of(&r->work);
    if (r->work.answers.tokens < 1 || !(step->step_ms > 0)) return;
    const double answers = even(r) / micros_of(&one->work); /* of the tokens that passes run over */
    repack(r, step);
    if (times > 1) more(step, times);
    step->model_flops *= answers;
    step->model_tflops *= answers;
    step->mfu *= answers;
    step->tokens_per_s *= answers;
}
