/* format.c: which kind of module a product belongs to, by its site. */
#include "graph/format.h"

#include <string.h>

#include "graph/operator.h"

ft_weight_class ft__weight_class(ft_at at, bool shared)
{
    switch (at ? at->site : FT_SITE_NONE) {
    case FT_SITE_ATTN_O:
    case FT_SITE_ATTN_O_PROJ:
    case FT_SITE_CROSS_O:
    case FT_SITE_CROSS_O_PROJ:
    case FT_SITE_MIXER_OUT_PROJ: return FT_OF_OUTPUT;
    case FT_SITE_MOE_ROUTER:
    case FT_SITE_MOE_SHARED_GATE:
    case FT_SITE_ROUTER: return FT_OF_OTHER;
    case FT_SITE_LM_HEAD: return FT_OF_HEAD;
    case FT_SITE_NONE: return FT_OF_OTHER;
    default: break;
    }
    switch (at->of ? at->of->site : FT_SITE_NONE) {
    case FT_SITE_ATTN:
    case FT_SITE_CROSS:
    case FT_SITE_MIXER: return FT_OF_ATTENTION;
    case FT_SITE_MLP: return shared ? FT_OF_SHARED : FT_OF_MLP;
    case FT_SITE_MOE:
    case FT_SITE_EXPERTS: return FT_OF_EXPERTS;
    default: return FT_OF_OTHER;
    }
}

double ft__format_bytes(const ft_weight_format *format)
{
    return ft__stored_bytes(&(ft_op){.weights = format->stored, .dtype = format->math});
}

bool ft__gguf_stores(ft_storage stored) { return stored >= FT_STORED_Q4_K_M && stored < FT_STORAGE_COUNT; }

ft_storage ft__gguf_named(const char *word)
{
    for (int s = FT_STORED_Q4_K_M; s < FT_STORAGE_COUNT; s++)
        if (!strcmp(ft__storage_name((ft_storage)s), word)) return (ft_storage)s;
    return FT_STORED_AS_COMPUTED;
}

double ft__gguf_bits(ft_storage stored)
{
    const char *name = ft__storage_name(stored);
    return name[strcspn(name, "23456789")] - '0';
}
