/* plan_json.c: a layout as the request that would be answered with its forecast. */
#include "search/plan.h"

static json_t *parallel_of(const ft_plan *plan, const ft_parallel *p)
{
    const json_t *given = ft__key_get(plan->search.asked->base, FT_KEY_ID_PARALLEL);
    json_t *out = given ? ft__study_copy(given) : json_object();
    bool fine = out && ft__key_set(out, FT_KEY_ID_DP, json_integer(p->dp)) &&
                ft__key_set(out, FT_KEY_ID_TP, json_integer(p->tp)) &&
                ft__key_set(out, FT_KEY_ID_PP, json_integer(p->pp)) &&
                ft__key_set(out, FT_KEY_ID_CP, json_integer(p->cp)) &&
                ft__key_set(out, FT_KEY_ID_ZERO, json_integer(p->zero));
    if (fine && ft__layout_says_context(p))
        fine = ft__key_set(out, FT_KEY_ID_CP_KIND, json_string(ft__context_name(p->context)));
    if (fine && p->ep > 1) fine = ft__key_set(out, FT_KEY_ID_EP, json_integer(p->ep));
    if (fine && p->etp > 0) fine = ft__key_set(out, FT_KEY_ID_ETP, json_integer(p->etp));
    if (fine && p->vpp > 1) fine = ft__key_set(out, FT_KEY_ID_VPP, json_integer(p->vpp));
    if (fine && p->sp) fine = ft__key_set(out, FT_KEY_ID_SP, json_true());
    if (fine && p->pp > 1) fine = ft__key_set(out, FT_KEY_ID_SCHEDULE, json_string(ft__schedule_name(p->schedule)));
    if (fine) return out;
    json_decref(out);
    return NULL;
}

json_t *ft__plan_json(const ft_plan *plan, const ft_layout *l)
{
    json_t *out = ft__study_copy(plan->search.asked->base);
    bool alone = ft__parallel_alone(&l->parallel);
    if (out) ft__key_drop(out, FT_KEY_ID_PARALLEL);
    bool fine = out && ft__key_set(out, FT_KEY_ID_MICRO_BATCH, json_integer(l->batch)) &&
                ft__key_set(out, FT_KEY_ID_GLOBAL_BATCH, json_integer(plan->search.asked->global)) &&
                ft__key_set(out, FT_KEY_ID_RECOMPUTE, json_string(ft__recompute_words[l->recompute]));
    if (fine && l->offload) {
        json_t *words = json_array();
        for (int i = 0; i < FT_OFFLOAD_COUNT; i++)
            if (l->offload & 1u << i) json_array_append_new(words, json_string(ft__offload_words[i]));
        fine = ft__key_set(out, FT_KEY_ID_OFFLOAD, words);
    }
    if (fine && plan->search.rollout.tp > 0)
        fine = ft__key_set(out, FT_KEY_ID_ROLLOUT_TP, json_integer(plan->search.rollout.tp));
    if (fine && !alone) fine = ft__key_set(out, FT_KEY_ID_PARALLEL, parallel_of(plan, &l->parallel));
    if (fine) return out;
    json_decref(out);
    return NULL;
}
