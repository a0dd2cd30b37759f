/* waits.c: why requests that have come, and that would fit, do not start yet.
 *
 * Engines trade the first token for the others' pace in three ways. Attention-data-parallel ranks go through the layers
 * together, so that one with a prompt makes all wait: prompts are held back until every rank has one (TensorRT-LLM's
 * attention_dp_config). Beside decoding sequences a small prompt costs an iteration without a graph: prompts are held
 * back until a share of the token budget is there (its batch_wait_timeout_iters). And looking for requests costs host
 * time: engines that decode may look only once in so many iterations (SGLang's scheduler-recv-interval).
 *
 * Others wait because the GPU shall not: while an iteration runs, its successor is chosen and issued (SGLang's overlap
 * schedule, vLLM's asynchronous scheduling, TensorRT-LLM's overlap scheduler). Who comes during an iteration is known
 * when it ends, and is part of the one after next. */
#include <math.h>

#include "serving/replica.h"

/* Steps that were taken at once may have passed looks that found nothing. */
void ft__replica_look(ft_replica *r)
{
    double every = r->policy->receive_interval;
    if (r->decoder_count && every > 1) {
        bool due = r->unseen >= every && fmod(r->unseen, every) <= 0;
        r->unseen = fmod(r->unseen, every);
        if (!due) return;
    }
    r->unseen = 0;
    r->seen_ms = r->policy->launched_ahead && !ft__replica_idle(r) ? r->begun_ms : r->now_ms;
}

bool ft__replica_sees(const ft_replica *r)
{
    bool at_once = r->policy->receive_interval <= 1 && !r->policy->launched_ahead;
    return at_once || !r->queue.count || r->queue.at[0].time_ms <= r->seen_ms;
}

double ft__replica_unnoticed(const ft_replica *r)
{
    if (r->policy->receive_interval > 1) return fmax(1, r->policy->receive_interval - r->unseen);
    return ft__replica_sees(r) ? INFINITY : 1;
}

double ft__replica_waits(const ft_replica *r)
{
    const ft_policy *p = r->policy;
    double dp = (double)r->costs->dp, waits = 0;
    if (r->prompt_count || !r->decoder_count || !r->queue.count || !ft__replica_sees(r)) return 0;
    if (dp > 1 && (double)r->queue.count < dp) waits = p->join_iterations;
    double tokens = r->waiting_tokens + (double)r->decoder_count * (1 + p->drafts);
    if (tokens < p->wait_tokens) waits = fmax(waits, p->wait_iterations);
    return fmax(0, waits - r->waited);
}
