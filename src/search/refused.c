/* refused.c: what was asked of a plan that its framework, or the model, does not have at all: said before any layout is
 * looked at, with what would do in its place. Degrees that only no layout of so many GPUs has are told in cannot.c. */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "request/words.h"
#include "search/plan.h"

bool ft__plan_cuts_by(const ft_plan_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->at[i] <= 1) return false;
    return set->count > 0;
}

static void joint(ft_text *out, const char *last)
{
    if (out->length) ft__text_add(out, last);
}

/* The words of a set of bits, between commas. */
static void words_of(ft_text *out, unsigned bits, const char *const *words, int count, const char *between)
{
    for (int i = 0; i < count; i++) {
        if (!(bits & 1u << i)) continue;
        joint(out, between);
        ft__text_add(out, words[i]);
    }
}

static ft_status say(ft_text *would, const char *where, const char *what, ft_error *err)
{
    const bool known = !would->failed && would->length;
    ft_status status = ft__fail_at(err, FT_E_RANGE, where, 0, 0, "%s%s%s%s", what, known ? "; " : "",
                                   known ? would->at : "", known ? " would do" : "");
    ft__text_free(would);
    return status;
}

static ft_status no_zero(const ft_framework *f, int64_t asked, ft_error *err)
{
    static const char *const kinds[] = {"0", "1", "2", "3"};
    char what[160];
    ft_text would = {0};
    words_of(&would, f->zero_allowed, kinds, 4, " or ");
    snprintf(what, sizeof what, "%s has no zero %" PRId64, f->title, asked);
    return say(&would, "search.zero", what, err);
}

/* A schedule or a kind of recomputation. */
static ft_status no_word(const ft_framework *f, const char *where, const char *noun, unsigned asked, unsigned has,
                         const char *const *words, int count, ft_error *err)
{
    char what[256];
    ft_text would = {0}, named = {0};
    words_of(&would, has, words, count, " or ");
    words_of(&named, asked, words, count, " or ");
    snprintf(what, sizeof what, "%s has no %s: %s", f->title, noun, named.failed || !named.at ? "like that" : named.at);
    ft__text_free(&named);
    return say(&would, where, what, err);
}

static ft_status not_offloaded(const ft_framework *f, ft_error *err)
{
    char what[160];
    ft_text would = {0};
    for (size_t i = 0; i < f->offload_count; i++) {
        ft_text together = {0};
        words_of(&together, f->offload[i].what, ft__offload_words, FT_OFFLOAD_COUNT, " with ");
        joint(&would, " or ");
        ft__text_add(&would, together.failed || !together.at ? "" : together.at);
        ft__text_free(&together);
    }
    snprintf(what, sizeof what, "plans of %s do not keep that on the host", f->title);
    return say(&would, "offload", what, err);
}

ft_status ft__plan_refused(const ft_search *s, ft_error *err)
{
    const ft_framework *f = s->framework;
    const ft_plan_request *r = s->asked;
    const char *cut = ft__plan_cuts_by(&r->tp)   ? "tp"
                      : ft__plan_cuts_by(&r->pp) ? "pp"
                      : ft__plan_cuts_by(&r->cp) ? "cp"
                                                 : NULL;
    unsigned zero = 0, named = s->request.work.offload;
    bool can = !named;
    for (size_t i = 0; i < r->zero.count; i++) zero |= 1u << r->zero.at[i];
    for (size_t i = 0; i < f->offload_count; i++) can = can || f->offload[i].what == named;
    if (f->only_data && cut)
        return ft__fail_at(err, FT_E_RANGE, "search", 0, 0, "%s has data ranks alone: %s must be 1", f->title, cut);
    if (s->request.work.packed > 0 && ft__plan_cuts_by(&r->cp))
        return ft__fail_at(
            err, FT_E_UNSUPPORTED, "search.cp", 0, 0,
            "\"packing\" is not forecast with \"cp\": ranks that share a sequence share documents unevenly");
    if (s->model.experts == 0 && ft__plan_cuts_by(&r->ep))
        return ft__fail_at(err, FT_E_RANGE, "search.ep", 0, 0, "the model has no experts: \"ep\" must be 1");
    if (s->model.experts == 0 && ft__plan_cuts_by(&r->etp))
        return ft__fail_at(err, FT_E_RANGE, "search.etp", 0, 0, "the model has no experts: \"etp\" must be 1");
    if (zero && !(zero & f->zero_allowed)) return no_zero(f, r->zero.at[0], err);
    if (!can) return not_offloaded(f, err);
    if (r->schedules && !(r->schedules & f->schedules))
        return no_word(f, "search.schedule", "such schedule", r->schedules, f->schedules, ft__schedule_words,
                       FT_SCHEDULE_COUNT, err);
    if (r->recompute && !(r->recompute & f->recompute))
        return no_word(f, "search.recompute", "such recomputation", r->recompute, f->recompute, ft__recompute_words,
                       (int)(sizeof ft__recompute_words / sizeof *ft__recompute_words), err);
    return FT_OK;
}
