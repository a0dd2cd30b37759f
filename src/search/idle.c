/* idle.c: keys of the request that no layout of the search has a use for.
 *
 * A key may wait for a degree: how stages are scheduled says nothing of one stage and all of eight. So a key is idle in
 * a plan where it is in every layout that is looked at. */
#include "request/effects.h"
#include "search/plan.h"

/* Put there by the framework, not asked for; or told of by a plan beside its layouts: which links they hang on. */
static bool not_idle(const ft_search *s, ft_key_id key)
{
    return (key == FT_KEY_ID_STACK && !s->own_stack) || (key == FT_KEY_ID_EXECUTION && !s->own_execution) ||
           key == FT_KEY_ID_NODES;
}

ft_status ft__plan_idle(const ft_search *s, ft_plan *out, ft_error *err)
{
    const ft_idle_list *known = &s->asked->idle;
    ft_said said;
    size_t count = 0;
    ft_idle_key *at = out->idle.at;
    for (size_t i = 0; i < s->request.idle_count && count < FT_IDLE_MOST; i++)
        if (!not_idle(s, s->request.idle[i].key)) at[count++] = s->request.idle[i];
    if (count) FT_TRY(ft__model_request_said(s->asked->base, &said, err));
    for (size_t i = 0; i < s->candidate_count && count; i++) {
        const ft_model_request r = ft__plan_request_of(s, &s->candidates[i].layout);
        ft__request_still_idle(&said, &r, at, &count);
    }
    out->idle.count = count;
    for (size_t i = 0; i < known->count; i++) ft__idle_put(&out->idle, known->at[i].key, known->at[i].why);
    return FT_OK;
}
