/* formats.c: the same job in number formats that the request allows beside its own. Each is searched by itself, with
 * its own proof; the best of the better one are the plans, and of every format the answer has its best. */
#include <stdio.h>

#include "search/plan.h"

static const ft_dtype formats[FT_PLAN_FORMATS] = {FT_FP8, FT_FP4};

static void note(ft_plan_of_format *at, ft_dtype dtype, const ft_plan *p, const ft_error *said)
{
    *at = (ft_plan_of_format){.dtype = dtype, .fits = p->plan_count > 0};
    if (at->fits) at->best = p->plans[0];
    snprintf(at->why, sizeof at->why, "%.*s", (int)ft__utf8_cut(said->message, sizeof at->why - 1), said->message);
}

static bool set_format(const ft_plan_request *r, ft_dtype dtype)
{
    return ft__key_set(r->base, FT_KEY_ID_DTYPE, json_string(ft_dtype_name(dtype)));
}

ft_status ft__plan_formats(const ft_context *ft, ft_scratch *scratch, const ft_plan_request *r, bool trial,
                           ft_plan *out, ft_error *err)
{
    ft_plan_of_format all[1 + FT_PLAN_FORMATS];
    size_t count = 1;
    note(&all[0], out->search.request.work.dtype, out, &(ft_error){0});
    for (size_t i = 0; i < FT_PLAN_FORMATS; i++) {
        ft_plan other;
        ft_error said = {0};
        if (!(r->formats & 1u << i) || formats[i] == all[0].dtype) continue;
        if (!set_format(r, formats[i])) return ft__no_memory(err);
        ft_status status = ft__plan_in_format(ft, scratch, r, trial, &other, &said);
        note(&all[count++], formats[i], &other, &said);
        bool better = status == FT_OK && other.plan_count &&
                      (!out->plan_count || ft__plan_orders(r->goal)(&other.plans[0], &out->plans[0]) < 0);
        if (better) {
            ft__plan_free(out);
            *out = other;
        } else {
            ft__plan_free(&other);
        }
        if (status == FT_E_MEMORY) return ft__no_memory(err);
    }
    if (count == 1) ft__idle_put(&out->idle, FT_KEY_ID_ALLOW, "the job is in that format already");
    if (!set_format(r, out->search.request.work.dtype)) return ft__no_memory(err);
    for (size_t i = 0; i < count; i++) out->formats[out->format_count++] = all[i];
    return FT_OK;
}
