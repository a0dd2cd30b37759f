/* effects.c: which keys of a request have no effect, and why.
 *
 * One rule for all of them: what changes nothing is answered with a warning that says so. A key that repeats its
 * default says nothing and is left in peace. Every key has a row in a table of rules (effects_work.c, effects_ranks.c);
 * a rule looks at the settled request and answers with the reason, or NULL where the key has its effect.
 * tests/unit/request_effects.c gives every key to requests of many kinds and holds the rules against what the answers
 * do.
 *
 * Left out: values that only happen to give the same forecast (fused on a model that nobody fuses by hand); a rule is
 * about what the key is for. */
#include "request/effects.h"

#include <math.h>

#include "request/effects_rules.h"

static bool of_a_model(ft_section section)
{
    return section == FT_SECTION_COMMON || section == FT_SECTION_MODEL || section == FT_SECTION_PARALLEL ||
           section == FT_SECTION_CLUSTER || section == FT_SECTION_LOADER || section == FT_SECTION_LORA;
}

/* The cluster's keys are read elsewhere: what they say is looked up. */
static bool repeats_default(const ft_effect_case *c, ft_key_id id)
{
    const ft_key_row *k = &ft__keys[id];
    const ft_said_value *v = &c->said->at[id];
    if (isnan(k->standard)) return false;
    if (k->section == FT_SECTION_CLUSTER) return ft__repeats_default(id, ft__key_get(c->r->cluster, id));
    return k->type == FT_KEY_REAL ? v->real == k->standard : v->whole == (int64_t)k->standard;
}

static bool given(const ft_effect_case *c, ft_key_id id)
{
    if (ft__keys[id].section != FT_SECTION_CLUSTER) return ft__given(c->said, id);
    return c->r->cluster && json_object_get(c->r->cluster, ft__keys[id].key);
}

static ft_effect_case case_of(const ft_said *said, const ft_model_request *r)
{
    const ft_parallel *p = &r->parallel;
    bool trains = r->work.task == FT_TRAIN;
    return (ft_effect_case){.said = said,
                            .r = r,
                            .p = p,
                            .w = &r->work,
                            .a = r->arch,
                            .ranks = ft__parallel_ranks(p),
                            .trains = trains,
                            .shares = trains && p->dp * p->cp > 1};
}

static ft_rule rule_of(int key) { return ft__work_rules[key] ? ft__work_rules[key] : ft__ranks_rules[key]; }

void ft__request_still_idle(const ft_said *said, const ft_model_request *r, ft_idle_key *at, size_t *count)
{
    const ft_effect_case c = case_of(said, r);
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        const char *why = rule_of((int)at[i].key)(&c);
        if (why) at[kept++] = (ft_idle_key){at[i].key, why};
    }
    *count = kept;
}

ft_status ft__request_effects(const ft_said *said, ft_model_request *r, ft_error *err)
{
    const ft_effect_case c = case_of(said, r);
    r->idle_count = 0;
    for (int i = 0; i < FT_KEY_COUNT; i++) {
        ft_key_id id = (ft_key_id)i;
        if (!of_a_model(ft__keys[i].section)) continue;
        const ft_rule rule = rule_of(i);
        if (!rule) return ft__fail(err, FT_E_BUG, "\"%s\" has no rule in effects.c", ft__keys[i].key);
        if (!given(&c, id) || repeats_default(&c, id)) continue;
        const char *why = rule(&c);
        if (why) r->idle[r->idle_count++] = (ft_idle_key){id, why};
    }
    return FT_OK;
}
