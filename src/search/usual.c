/* usual.c: whose layouts are searched where nobody says.
 *
 * A stack that is named is some framework's own. Otherwise models whose products are marked for tensor ranks (decoders,
 * BERT) are trained by one framework, and what is left, pictures above all, by another: data/frameworks says which. */
#include <string.h>

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

ft_status ft__framework_usual(const ft_context *ft, ft_scratch *scratch, const json_t *base, const ft_framework **out,
                              ft_error *err)
{
    ft_model_request read;
    const char *stack = json_string_value(ft__key_get(base, FT_KEY_ID_STACK));
    *out = stack ? ft__framework_of_stack(stack) : NULL;
    if (*out) return FT_OK;
    FT_TRY(ft__model_request_of(ft, scratch, base, &read, err));
    bool language = ft__ranks_model(read.arch, &read.work).cuttable;
    *out = usual_for(language ? FT_USUAL_FOR_LANGUAGE_MODELS : FT_USUAL_FOR_OTHERS);
    return FT_OK;
}
