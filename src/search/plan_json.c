/* plan_json.c: a layout as the request that would be answered with its forecast. */
#include "search/plan.h"

static bool set(json_t *object, const char *key, json_t *value)
{
    return value && json_object_set_new(object, key, value) == 0;
}

static json_t *parallel_of(const ft_plan *plan, const ft_parallel *p)
{
    const json_t *given = json_object_get(plan->search.asked->base, "parallel");
    json_t *out = given ? ft__study_copy(given) : json_object();
    bool fine = out && set(out, "dp", json_integer(p->dp)) && set(out, "tp", json_integer(p->tp)) &&
                set(out, "pp", json_integer(p->pp)) && set(out, "cp", json_integer(p->cp)) &&
                set(out, "zero", json_integer(p->zero));
    if (fine && p->ep > 1) fine = set(out, "ep", json_integer(p->ep));
    if (fine && p->etp > 0) fine = set(out, "etp", json_integer(p->etp));
    if (fine && p->vpp > 1) fine = set(out, "vpp", json_integer(p->vpp));
    if (fine && p->sp) fine = set(out, "sp", json_true());
    if (fine && p->pp > 1) fine = set(out, "schedule", json_string(ft__schedule_name(p->schedule)));
    if (fine) return out;
    json_decref(out);
    return NULL;
}

json_t *ft__plan_json(const ft_plan *plan, const ft_layout *l)
{
    json_t *out = ft__study_copy(plan->search.asked->base);
    bool alone = ft__parallel_alone(&l->parallel);
    if (out) json_object_del(out, "parallel");
    bool fine = out && set(out, "batch", json_integer(l->batch)) &&
                set(out, "global_batch", json_integer(plan->search.asked->global)) &&
                set(out, "recompute", json_string(ft__recompute_words[l->recompute]));
    if (fine && !alone) fine = set(out, "parallel", parallel_of(plan, &l->parallel));
    if (fine) return out;
    json_decref(out);
    return NULL;
}
