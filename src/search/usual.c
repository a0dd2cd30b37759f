/* usual.c: whose layouts are searched where nobody says.
 *
 * A stack that is named is some framework's own. Otherwise models whose products are marked for tensor ranks (decoders,
 * BERT) are trained by one framework, adapters beside weights of few bits by another, which has them, and what is left,
 * images above all, by a third: data/frameworks says which. */
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "request/keys.h"
#include "search/plan.h"

static const ft_framework *usual_for(ft_usual_for models)
{
    for (size_t i = 0; i < ft__framework_count; i++)
        if (ft__frameworks[i].usual_for == models) return &ft__frameworks[i];
    return &ft__frameworks[0]; /* the build asks for one of each */
}

const ft_framework *ft__framework_of_stack(const char *stack)
{
    for (size_t i = 0; i < ft__framework_count; i++)
        if (!strcmp(ft__frameworks[i].name, stack) ||
            (ft__frameworks[i].stack && !strcmp(ft__frameworks[i].stack, stack)))
            return &ft__frameworks[i];
    return NULL;
}

static bool takes(const ft_framework *a, const ft_framework *b) { return a->like && !strcmp(a->like, b->name); }

ft_status ft__framework_agrees(const ft_framework *f, const json_t *base, ft_error *err)
{
    const char *stack = json_string_value(ft__key_get(base, FT_KEY_ID_STACK));
    const ft_framework *other = stack ? ft__framework_of_stack(stack) : NULL;
    if (!other || other == f || takes(f, other) || takes(other, f)) return FT_OK;
    return ft__fail_at(err, FT_E_RANGE, "stack", 0, 0,
                       "the stack \"%s\" is that of \"%s\", and layouts are asked of \"%s\": name one of them", stack,
                       other->name, f->name);
}

static bool packed(const ft_model_request *r)
{
    return r->work.task == FT_TRAIN && r->work.weight_bits > 0 && r->work.weight_bits < CHAR_BIT;
}

/* Weights of few bits are some frameworks' alone. */
ft_status ft__framework_holds(const ft_framework *f, const ft_model_request *r, ft_error *err)
{
    ft_text all = {0};
    if (f->packed_weights || !packed(r)) return FT_OK;
    for (size_t i = 0; i < ft__framework_count; i++)
        if (ft__frameworks[i].packed_weights)
            ft__text_addf(&all, "%s%s", all.length ? ", " : "", ft__frameworks[i].name);
    ft_status status = ft__fail_at(err, FT_E_RANGE, "framework", 0, 0,
                                   "\"%s\" trains no adapters beside weights of %g bits; %s do", f->name,
                                   r->work.weight_bits, all.at ? all.at : "");
    ft__text_free(&all);
    return status;
}

ft_status ft__plan_model(const ft_context *ft, ft_scratch *scratch, const json_t *base, ft_model_request *out,
                         ft_error *err)
{
    json_t *plain = ft__study_copy(base);
    if (!plain) return ft__no_memory(err);
    ft__key_drop(plain, FT_KEY_ID_RECOMPUTE_MODULES);
    ft__key_drop(plain, FT_KEY_ID_GRAPHED);
    ft_status status = ft__model_request_of(ft, scratch, plain, out, err);
    json_decref(plain);
    return status;
}

ft_status ft__framework_usual(const ft_context *ft, ft_scratch *scratch, const json_t *base, const ft_framework **out,
                              ft_error *err)
{
    ft_model_request read;
    const char *stack = json_string_value(ft__key_get(base, FT_KEY_ID_STACK));
    *out = stack ? ft__framework_of_stack(stack) : NULL;
    if (*out) return FT_OK;
    FT_TRY(ft__plan_model(ft, scratch, base, &read, err));
    bool language = ft__ranks_model(read.arch, &read.work).cuttable;
    *out = usual_for(packed(&read) ? FT_USUAL_FOR_PACKED_WEIGHTS
                     : language    ? FT_USUAL_FOR_LANGUAGE_MODELS
                                   : FT_USUAL_FOR_OTHERS);
    return FT_OK;
}
