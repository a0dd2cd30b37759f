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

static int64_t steps_of(int64_t length, int64_t step) { return (length + step - 1) / step; }

/* Tokens to an edge. A convolution over a whole picture leaves out what fills no patch (SigLIP's 384 pixels are 27
 * patches of 14); models that are given patches bring their pictures to whole tokens first. */
static int64_t to_edge(const ft_arch *a, int64_t pixels)
{
    int64_t merge = a->tower_merge > 1 ? a->tower_merge : 1;
    if (a->tower_pictures && pixels >= a->tower_patch) return steps_of(pixels / a->tower_patch, merge);
    return steps_of(pixels, a->tower_patch * merge);
}

int64_t ft__picture_tokens(const ft_arch *a, int64_t height, int64_t width)
{
    if (a->queries > 0) return a->queries;
    if (a->tower_tokens > 0 || a->tower_patch < 1) return a->tower_tokens;
    return to_edge(a, height) * to_edge(a, width);
}

/* A resampler and a pool to a fixed number leave nothing of how many there were. */
int64_t ft__picture_patches(const ft_arch *a, int64_t height, int64_t width)
{
    int64_t merged = a->tower_merge > 1 ? a->tower_merge * a->tower_merge : 1;
    bool fixed = a->queries > 0 || (a->tower_tokens > 0 && a->step_count > 0);
    if (fixed && a->tower_patch > 0) return steps_of(height, a->tower_patch) * steps_of(width, a->tower_patch);
    return ft__picture_tokens(a, height, width) * merged;
}

bool ft__counts_samples(const ft_arch *arch)
{
    return arch->design == FT_VIT || arch->design == FT_RESNET || arch->design == FT_CONVNEXT ||
           arch->design == FT_DIFFUSION || arch->design == FT_CLIP || arch->design == FT_JOINT ||
           arch->design == FT_VIDEO || arch->design == FT_UNET || arch->samples;
}

static bool mixes_by_attention(ft_mixer mixer)
{
    return mixer == FT_MIX_ATTENTION || mixer == FT_MIX_LATENT || mixer == FT_MIX_COMPRESSED || mixer == FT_MIX_BOTH ||
           mixer == FT_MIX_SHARED;
}

bool ft__attends(const ft_arch *arch)
{
    if (arch->design == FT_RESNET || arch->design == FT_CONVNEXT || arch->design == FT_STATE_SPACE) return false;
    if (arch->design != FT_DECODER_ONLY) return true;
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
