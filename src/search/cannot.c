/* cannot.c: degrees that cannot be met: which, by which rule, and the nearest that works.
 *
 * Each degree that was asked for is left open in turn. Where layouts appear then, it was that one; the nearest of its
 * values is what works. Where no single one is to blame, all are left open and taken back one after the other, each
 * that cannot stay replaced by the nearest that can. The rule is what the checks of a layout say of the values as they
 * were asked for. Where no degree was asked for, the nearest global batch and the nearest number of GPUs are looked
 * for. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "search/plan.h"

typedef struct degree {
    const char *name;
    size_t of_request, of_layout; /* offsets */
} degree;

static const degree degrees[] = {
    {"tp", offsetof(ft_plan_request, tp), offsetof(ft_layout, parallel.tp)},
    {"pp", offsetof(ft_plan_request, pp), offsetof(ft_layout, parallel.pp)},
    {"vpp", offsetof(ft_plan_request, vpp), offsetof(ft_layout, parallel.vpp)},
    {"cp", offsetof(ft_plan_request, cp), offsetof(ft_layout, parallel.cp)},
    {"ep", offsetof(ft_plan_request, ep), offsetof(ft_layout, parallel.ep)},
    {"batch", offsetof(ft_plan_request, batch), offsetof(ft_layout, batch)},
};

enum { DEGREES = sizeof degrees / sizeof *degrees, FARTHEST = 64 };

static int64_t value_of(const ft_layout *l, const degree *d)
{
    return *(const int64_t *)(const void *)((const char *)l + d->of_layout);
}

static int64_t first_of(const ft_plan_set *set) { return set->count ? set->at[0] : 1; }

/* What a check advises is of its own degree alone: the nearest that works is looked for here. */
static const char *without_advice(char *rule)
{
    char *near = strstr(rule, ", for which"), *last = strstr(rule, "; ");
    if (near) *near = '\0';
    if (last && strstr(last, " would")) *last = '\0';
    return rule;
}

/* The rule that a layout with this one value, and nothing else cut, breaks, or breaks with the
 * others that were asked for; "" where it breaks none of these. */
static const char *rule_of(const ft_search *s, const degree *d, int64_t value, ft_error *said)
{
    ft_layout l = {.parallel = s->request.parallel, .batch = 1, .micros = 1};
    l.parallel.tp = l.parallel.pp = l.parallel.cp = l.parallel.vpp = l.parallel.ep = l.parallel.dp = 1;
    *(int64_t *)(void *)((char *)&l + d->of_layout) = value;
    l.parallel.sp = s->framework->sp_with_tp && l.parallel.tp > 1;
    if (l.parallel.vpp > 1) return "no pipeline divides the layers into that many chunks";
    int64_t ranks = l.parallel.tp * l.parallel.pp * l.parallel.cp;
    if (s->asked->gpus % ranks) return "it does not divide the GPUs";
    l.parallel.dp = s->asked->gpus / ranks;
    if (s->asked->global % (l.batch * l.parallel.dp))
        return "the data ranks, times a micro-batch, do not divide the global batch";
    l.micros = s->asked->global / (l.batch * l.parallel.dp);
    ft_model_request r = ft__plan_request_of(s, &l);
    if (ft__model_request_check(&r, said) != FT_OK) return without_advice(said->message);
    if (s->framework->tp_divides_kv_heads && r.arch->kv_heads % l.parallel.tp)
        return "its framework has tensor ranks that divide the key-value heads";
    ranks = first_of(&s->asked->tp) * first_of(&s->asked->pp) * first_of(&s->asked->cp);
    return s->asked->gpus % ranks ? "with the other degrees it does not divide the GPUs" : "";
}

/* The values of a request's degree, and what is nearest to the first of them among layouts with `open` as they are
 * asked for; 0: none. */
static ft_plan_set *set_of(ft_plan_request *r, const degree *d)
{
    return (ft_plan_set *)(void *)((char *)r + d->of_request);
}

static ft_status nearest_of(const ft_search *s, const ft_plan_request *open, const degree *d, int64_t asked,
                            int64_t *nearest, ft_error *err)
{
    ft_search other = *s;
    other.asked = open;
    other.candidates = NULL;
    other.candidate_count = other.candidate_room = 0;
    *nearest = 0;
    ft_status status = ft__plan_layouts(&other, err);
    for (size_t k = 0; status == FT_OK && k < other.candidate_count; k++) {
        int64_t value = value_of(&other.candidates[k].layout, d);
        double far = fabs(log((double)value / (double)asked)), best = fabs(log((double)*nearest / (double)asked));
        if (!*nearest || far < best || (far == best && value < *nearest)) *nearest = value;
    }
    free(other.candidates);
    return status;
}

/* Several that cannot be: each is settled in turn, what follows left open, on the nearest that works with those before
 * it. `said`: one sentence for each. */
static ft_status settle_all(const ft_search *s, ft_text *said, size_t *wrong, ft_error *err)
{
    ft_plan_request open = *s->asked;
    for (size_t i = 0; i < DEGREES; i++) set_of(&open, &degrees[i])->count = 0;
    for (size_t i = 0; i < DEGREES; i++) {
        const ft_plan_set *asked = (const ft_plan_set *)(const void *)((const char *)s->asked + degrees[i].of_request);
        ft_plan_set *set = set_of(&open, &degrees[i]);
        ft_error rule_said = {0};
        int64_t nearest = 0;
        if (!asked->count) continue;
        *set = *asked;
        FT_TRY(nearest_of(s, &open, &degrees[i], asked->at[0], &nearest, err));
        if (nearest) continue; /* this one can stay */
        set->count = 0;
        FT_TRY(nearest_of(s, &open, &degrees[i], asked->at[0], &nearest, err));
        if (!nearest) return FT_OK; /* something else is in the way */
        *set = (ft_plan_set){.at = {nearest}, .count = 1};
        const char *rule = rule_of(s, &degrees[i], asked->at[0], &rule_said);
        ft__text_addf(said, "%s%s %lld%s%s; %lld would do", *wrong ? ". " : "", degrees[i].name,
                      (long long)asked->at[0], *rule ? ": " : "", rule, (long long)nearest);
        ++*wrong;
    }
    return FT_OK;
}

static ft_status has_layouts(const ft_search *s, const ft_plan_request *r, bool *any, ft_error *err)
{
    ft_search other = *s;
    other.asked = r;
    other.candidates = NULL;
    other.candidate_count = other.candidate_room = 0;
    ft_status status = ft__plan_layouts(&other, err);
    *any = other.candidate_count > 0;
    free(other.candidates);
    return status;
}

/* The nearest to a number of the request (`of`: a member of `tried`) that has layouts, the lower of two; 0: none near.
 */
static ft_status nearest_number(const ft_search *s, ft_plan_request *tried, int64_t *of, int64_t most, int64_t *nearest,
                                ft_error *err)
{
    int64_t asked = *of;
    bool any = false;
    for (int64_t far = 1; far <= FARTHEST && !any; far++)
        for (int side = -1; side <= 1 && !any; side += 2) {
            *of = asked + side * far;
            if (*of < 1 || *of > most) continue;
            FT_TRY(has_layouts(s, tried, &any, err));
            if (any) *nearest = *of;
        }
    *of = asked;
    return FT_OK;
}

/* No degree is to blame: the GPUs and the global batch do not go together. */
static ft_status numbers_cannot(const ft_search *s, ft_error *err)
{
    ft_plan_request tried = *s->asked;
    int64_t global = 0, gpus = 0;
    ft_text near = {0};
    ft_status status = nearest_number(s, &tried, &tried.global, INT32_MAX, &global, err);
    if (status == FT_OK) status = nearest_number(s, &tried, &tried.gpus, FT_MOST_RANKS, &gpus, err);
    if (status != FT_OK) return status;
    if (global) ft__text_addf(&near, "; a global batch of %lld would do", (long long)global);
    if (gpus)
        ft__text_addf(&near, "%s%lld GPUs%s", global ? ", or " : "; ", (long long)gpus, global ? "" : " would do");
    status = ft__fail_at(err, FT_E_RANGE, "global_batch", 0, 0,
                         "no layout of %lld GPUs takes a global batch of %lld as %s needs it: the data ranks, times a "
                         "micro-batch, must divide it, and the degrees the model's heads and layers%s",
                         (long long)s->asked->gpus, (long long)s->asked->global, s->framework->title,
                         near.at && !near.failed ? near.at : "");
    ft__text_free(&near);
    return status;
}

/* How experts are cut over tensor ranks has two values, and no nearest. */
static ft_status experts_cannot(const ft_search *s, bool *told, ft_error *err)
{
    ft_plan_request open = *s->asked;
    bool any = false;
    if (!open.etp.count) return FT_OK;
    open.etp.count = 0;
    FT_TRY(has_layouts(s, &open, &any, err));
    *told = any;
    if (!any) return FT_OK;
    return ft__fail_at(
        err, FT_E_RANGE, "search.etp", 0, 0,
        "no layout of %lld GPUs has etp %lld: experts are cut over all tensor ranks (\"etp\" as \"tp\"), "
        "or lie whole beside several (1), where the model has any",
        (long long)s->asked->gpus, (long long)s->asked->etp.at[0]);
}

ft_status ft__plan_cannot(const ft_search *s, ft_error *err)
{
    bool told = false;
    ft_status experts = experts_cannot(s, &told, err);
    if (experts != FT_OK || told) return experts;
    for (size_t i = 0; i < DEGREES; i++) {
        const degree *d = &degrees[i];
        ft_plan_request open = *s->asked;
        ft_plan_set *set = set_of(&open, d);
        int64_t asked = set->at[0], nearest = 0;
        if (!set->count) continue;
        set->count = 0;
        FT_TRY(nearest_of(s, &open, d, asked, &nearest, err));
        if (!nearest) continue;
        ft_error said = {0};
        const char *rule = rule_of(s, d, asked, &said);
        char where[32];
        snprintf(where, sizeof where, "search.%s", d->name);
        return ft__fail_at(err, FT_E_RANGE, where, 0, 0, "no layout of %lld GPUs has %s %lld%s%s; %lld would do",
                           (long long)s->asked->gpus, d->name, (long long)asked, *rule ? ": " : "", rule,
                           (long long)nearest);
    }
    ft_text said = {0};
    size_t wrong = 0;
    ft_status status = settle_all(s, &said, &wrong, err);
    if (status == FT_OK && wrong && !said.failed)
        status = ft__fail_at(err, FT_E_RANGE, "search", 0, 0, "no layout of %lld GPUs has %s",
                             (long long)s->asked->gpus, said.at);
    else if (status == FT_OK)
        status = numbers_cannot(s, err);
    ft__text_free(&said);
    return status;
}
