/* arch.c: what follows from what a model is; giving back what it owns. */
#include "model/arch.h"

#include <stddef.h>

void ft__arch_release(ft_arch *arch)
{
    if (arch->importer) arch->importer->release(arch->file);
    arch->importer = NULL;
    arch->file = NULL;
    arch->warnings = NULL;
}

int64_t ft__picture_tokens(const ft_arch *a, int64_t height, int64_t width)
{
    int64_t step = a->tower_patch * (a->tower_merge > 1 ? a->tower_merge : 1);
    if (a->tower_tokens > 0 || step < 1) return a->tower_tokens;
    return ((height + step - 1) / step) * ((width + step - 1) / step);
}

bool ft__counts_samples(const ft_arch *arch)
{
    return arch->design == FT_VIT || arch->design == FT_RESNET || arch->design == FT_CONVNEXT ||
           arch->design == FT_DIFFUSION || arch->design == FT_CLIP || arch->samples;
}

const char *ft__rate_unit(const ft_arch *arch)
{
    if (!ft__counts_samples(arch)) return "tokens/s";
    return arch->design == FT_CUSTOM ? "samples/s" : "images/s";
}
