/* rollout.c: answers that are generated before every layout's step (GRPO, PPO).
 *
 * Engines stand on the GPUs that train, in ranks of their own: how the step is laid out decides nothing of them. So the
 * fastest engines are the same for all layouts: of those that hold the model the number of tensor ranks with which all
 * answers are there first. More tensor ranks shorten each step of decoding, and leave every engine more answers. A
 * rollout stands before the step whatever the layout: added to a bound of the step it makes a bound of both. */
#include "search/plan.h"

/* Whoever holds the model before who does not; then the faster. */
static bool better(const ft_rollout *a, const ft_rollout *b) { return a->fits != b->fits ? a->fits : a->ms < b->ms; }

ft_status ft__plan_rollout(ft_search *s, ft_scratch *scratch, ft_error *err)
{
    const int64_t asked = s->request.work.answers.tp, node = s->cluster.gpus_per_node;
    ft_engines by = {.tp = asked > 0 ? asked : 1, .gpus = s->asked->gpus, .answers = (double)s->asked->global};
    const int64_t most = asked > 0 ? asked : node > 0 && node < by.gpus ? node : by.gpus;
    ft_status status = FT_OK;
    bool found = false;
    if (s->request.work.answers.tokens <= 0) return FT_OK;
    for (; by.tp <= most; by.tp *= 2) {
        ft_rollout now = {0};
        status = ft__rollout_by(s->ft, scratch, &s->request, &by, s->quantile, &now, err);
        if (status == FT_E_MEMORY) return status;
        if (status == FT_OK && (!found || better(&now, &s->rollout))) s->rollout = now;
        found = found || status == FT_OK;
    }
    return found ? FT_OK : status;
}
