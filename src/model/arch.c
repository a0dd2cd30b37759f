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

bool ft__counts_samples(const ft_arch *arch)
{
    return arch->design == FT_VIT || arch->design == FT_RESNET || arch->design == FT_CONVNEXT ||
           arch->design == FT_DIFFUSION || arch->design == FT_CLIP || arch->design == FT_JOINT ||
           arch->design == FT_VIDEO || arch->design == FT_UNET || arch->design == FT_AUTOENCODER || arch->samples;
}

static bool mixes_by_attention(ft_mixer mixer)
{
    return mixer == FT_MIX_ATTENTION || mixer == FT_MIX_LATENT || mixer == FT_MIX_COMPRESSED || mixer == FT_MIX_BOTH ||
           mixer == FT_MIX_SHARED;
}

bool ft__attends(const ft_arch *arch)
{
    if (arch->design == FT_RESNET || arch->design == FT_CONVNEXT || arch->design == FT_STATE_SPACE) return false;
    if (arch->design != FT_DECODER_ONLY) return !arch->never_attends;
    bool found = arch->kind_count < 1 && mixes_by_attention(arch->mixer);
    for (int32_t i = 0; i < arch->kind_count && !found; i++) found = mixes_by_attention(arch->kinds[i].mixer);
    return found;
}

bool ft__own_scores(const ft_arch *arch) { return arch->disentangled || arch->shifted; }

const char *ft__rate_unit(const ft_arch *arch)
{
    if (!ft__counts_samples(arch)) return "tokens/s";
    return arch->design == FT_CUSTOM ? "samples/s" : "images/s";
}
