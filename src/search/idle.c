/* idle.c: keys of the request that no layout of the search has a use for, and what else `train` would warn of.
 *
 * A key may wait for a degree: how stages are scheduled says nothing of one stage and all of eight. So a key is idle in
 * a plan where it is in every layout that is looked at. */
#include <string.h>

#include "request/effects.h"
#include "search/plan.h"

/* Put there by the framework, not asked for; or told of by a plan beside its layouts: which links they hang on. */
static bool not_idle(const ft_search *s, ft_key_id key)
{
    return (key == FT_KEY_ID_STACK && !s->own_stack) || (key == FT_KEY_ID_EXECUTION && !s->own_execution) ||
           key == FT_KEY_ID_NODES;
}

/* What was allowed that no layout came of, a line each. What it is, its text says: other words of "allow" may do. */
static void allowed_for_nothing(const ft_search *s, ft_idle_list *list)
{
    const ft_plan_request *r = s->asked;
    bool cp = false, ep = false, zero3 = false, offload = false, kinds = false;
    for (size_t i = 0; i < s->candidate_count; i++) {
        const ft_parallel *p = &s->candidates[i].layout.parallel;
        cp = cp || p->cp > 1;
        ep = ep || p->ep > 1;
        zero3 = zero3 || p->zero == 3;
        offload = offload || s->candidates[i].layout.offload;
        kinds = kinds || (p->cp > 1 && p->context != s->request.parallel.context);
    }
    const struct {
        bool asked, came;
        const char *why, *part;
    } all[] = {
        {r->allow_cp, cp, "no layout here has context ranks", "in part: no layout here has context ranks (\"cp\")"},
        {r->allow_ep, ep, "no layout here has expert ranks", "in part: no layout here has expert ranks (\"ep\")"},
        {r->allow_zero3, zero3, "no layout here shards parameters (zero 3)",
         "in part: no layout here shards parameters (\"zero3\")"},
        {r->allow_offload, offload, "no layout here keeps anything on the host",
         "in part: no layout here keeps anything on the host (\"offload\")"},
        {r->allow_cp_kinds, kinds, "no layout here exchanges keys in another way",
         "in part: no layout here exchanges keys in another way (\"cp_kinds\")"},
    };
    size_t asked = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) asked += all[i].asked;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].asked && !all[i].came) ft__idle_put(list, FT_KEY_ID_ALLOW, asked > 1 ? all[i].part : all[i].why);
}

/* Before anything else is read into the scratch. Layouts whose ranks share sequences have whole ones (space.c). */
static ft_status keep_remarks(const ft_search *s, ft_plan *out, ft_error *err)
{
    const ft_model_request *r = &s->request;
    const bool whole = r->packs_examples && r->work.one_document;
    ft_text t = {0};
    if (r->remark[0] && !whole) ft__text_add(&t, r->remark);
    if (r->modules[0]) ft__text_addf(&t, "%s%s", t.length ? "\n" : "", r->modules);
    if (r->beyond[0]) ft__text_addf(&t, "%s%s", t.length ? "\n" : "", r->beyond);
    if (r->quantized[0]) ft__text_addf(&t, "%s%s", t.length ? "\n" : "", r->quantized);
    if (r->arch->nearest)
        ft__text_addf(&t, "%san unknown architecture, read as %s", t.length ? "\n" : "", r->arch->model_type);
    if (r->arch->warnings && *r->arch->warnings) ft__text_addf(&t, "%s%s", t.length ? "\n" : "", r->arch->warnings);
    if (t.length && !t.failed) out->remark = ft__arena_copy(out->arena, t.at, t.length);
    bool lost = t.failed || !out->remark;
    if (lost) out->remark = "";
    ft__text_free(&t);
    return lost ? ft__no_memory(err) : FT_OK;
}

void ft__plan_say(const ft_plan *p, ft_text *out)
{
    if (*p->remark) ft__text_addf(out, "%s%s", out->length ? "\n" : "", p->remark);
    ft__idle_say(p->idle.at, p->idle.count, out);
}

ft_status ft__plan_idle(const ft_search *s, ft_plan *out, ft_error *err)
{
    const ft_idle_list *known = &s->asked->idle;
    ft_said said;
    size_t count = 0;
    ft_idle_key *at = out->idle.at;
    FT_TRY(keep_remarks(s, out, err));
    for (size_t i = 0; i < s->request.idle_count && count < FT_IDLE_MOST; i++)
        if (!not_idle(s, s->request.idle[i].key)) at[count++] = s->request.idle[i];
    if (count) FT_TRY(ft__model_request_said(s->asked->base, &said, err));
    for (size_t i = 0; i < s->candidate_count && count; i++) {
        const ft_model_request r = ft__plan_request_of(s, &s->candidates[i].layout);
        ft__request_still_idle(&said, &r, at, &count);
    }
    out->idle.count = count;
    if (ft__plan_asks_in_vain(s))
        ft__idle_put(&out->idle, FT_KEY_ID_SEARCH, "in part: values that the framework does not have are left out");
    allowed_for_nothing(s, &out->idle);
    for (size_t i = 0; i < known->count; i++) ft__idle_put(&out->idle, known->at[i].key, known->at[i].why);
    return FT_OK;
}
