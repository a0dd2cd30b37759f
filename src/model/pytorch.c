/* pytorch.c: which version it is, and what scaled_dot_product_attention picks in it.
 *
 * The choice is that of aten/src/ATen/native/transformers/cuda/sdp_utils: with FlashAttention's first generation (2.0,
 * 2.1) the memory-efficient kernels come first where they have more blocks to fill a GPU with; the second (2.2) comes
 * before them whatever the shape. Neither takes a mask, which is left to the memory-efficient ones, and in 2.0 to plain
 * operators. On AMD's GPUs its kernels are AOTriton's since 2.3, memory-efficient ones among them since 2.5.
 *
 * Leaves out: FlashAttention's first generation on Turing, where it ran in fp16; Windows, which had none until 2.2;
 * that AMD's cards for desktops had AOTriton's kernels off by default before 2.6, and convolve channels first today. */
#include "model/pytorch.h"

#include "base/text.h"
#include "graph/operator.h"
#include "model/stack.h"

enum { LAST_PATCH = 99 };

/* major, minor and patch of "2.5.1+cu124"; a patch that is not said is the last one. */
static bool parse(const char *text, int *major, int *minor, int *patch)
{
    if (*text == 'v') text++;
    *major = ft__two_digits(&text);
    if (*major < 0 || *text++ != '.') return false;
    *minor = ft__two_digits(&text);
    *patch = LAST_PATCH;
    if (*minor < 0) return false;
    if (*text == '.' && text[1] >= '0' && text[1] <= '9') {
        text++;
        *patch = ft__two_digits(&text);
        if (*patch < 0) return false;
    }
    return !*text || *text == '+' || *text == '.' || *text == 'a' || *text == 'r' || *text == '-';
}

static int minor_order(const char *release)
{
    int major = 0, minor = 0, patch = 0;
    parse(release, &major, &minor, &patch);
    return 100 * major + minor;
}

/* The release that comes nearest, by its number. */
static const char *nearest(int wanted)
{
    const char *best = ft__pytorch_releases[0];
    for (size_t i = 0; i < ft__pytorch_release_count; i++)
        if (minor_order(ft__pytorch_releases[i]) <= wanted) best = ft__pytorch_releases[i];
    return best;
}

static ft_status unknown(const char *version, const char *meant, ft_error *err)
{
    return ft__fail_at(err, FT_E_NAME, "pytorch", 0, 0,
                       "unknown PyTorch \"%.40s\"%s%s%s \"%s\" to \"%s\" are known, with or without a patch "
                       "(\"2.5.1\")",
                       version, meant ? "; did you mean \"" : ":", meant ? meant : "", meant ? "\"?" : "",
                       ft__pytorch_releases[0], ft__pytorch_releases[ft__pytorch_release_count - 1]);
}

ft_status ft__pytorch_find(const char *version, const ft_pytorch **out, bool *newer, ft_error *err)
{
    int major, minor, patch;
    if (!parse(version, &major, &minor, &patch))
        return unknown(version, ft__nearest(version, ft__pytorch_releases, ft__pytorch_release_count), err);
    const int wanted = 100 * major + minor;
    const int last = minor_order(ft__pytorch_releases[ft__pytorch_release_count - 1]);
    *newer = wanted > last;
    if (!*newer && minor_order(nearest(wanted)) != wanted) return unknown(version, nearest(wanted), err);
    *out = &ft__pytorches[0];
    for (size_t i = 1; i < ft__pytorch_count; i++)
        if (ft__pytorches[i].since <= 100 * wanted + patch) *out = &ft__pytorches[i];
    return FT_OK;
}

bool ft__pytorch_decides(const ft_workload *w)
{
    return w->execution != FT_RUN_FUSED && !ft__by_engine(w) && ft__stack(w)->by_pytorch;
}

const ft_pytorch *ft__pytorch(const ft_workload *w) { return w->pytorch && ft__pytorch_decides(w) ? w->pytorch : NULL; }

bool ft__keeps_gradients(const ft_workload *w)
{
    const ft_pytorch *p = ft__pytorch(w);
    return p && !p->drops_gradients && w->task == FT_TRAIN && w->optimizer != FT_NO_OPTIMIZER &&
           !w->updates_in_backward;
}

/* The memory-efficient kernels have a block for every 64 queries too, FlashAttention's first generation one for a head
 * of a sequence. */
static bool efficient_first(const ft_pytorch *p, const ft_attention_shape *a, bool training)
{
    enum { FEW_HEADS = 60, TWO_BLOCKS = 128, WIDE = 128, LONG = 6 };
    const int64_t heads = a->batch * a->heads;
    if (p->sdpa_training && training) return LONG * heads > a->q_len;
    return (heads < FEW_HEADS && a->q_len >= TWO_BLOCKS) || a->head_dim == WIDE;
}

static bool flash_runs(const ft_workload *w, const ft_attention_shape *a, int64_t widest, bool training)
{
    enum { NARROW = 64 };
    const int64_t v_dim = a->v_dim ? a->v_dim : a->head_dim;
    if (!(w->sdpa_gpu & FT_SDPA_GPU_FLASH) || a->head_dim > widest || a->head_dim % 8 || v_dim != a->head_dim)
        return false;
    return !training || widest > 128 || a->head_dim <= NARROW || w->sdpa_gpu & FT_SDPA_GPU_ROOM;
}

static ft_sdpa_way by(ft_attention_library library, ft_attention_library *out)
{
    *out = library;
    return FT_SDPA_BY_LIBRARY;
}

static ft_sdpa_way pick_on_rocm(const ft_pytorch *p, bool half, bool masked, ft_attention_library *library)
{
    switch (p->sdpa_rocm) {
    case FT_SDPA_ROCM_NONE: return FT_SDPA_WRITTEN_OUT;
    case FT_SDPA_ROCM_FIRST:
        if (!half || masked) return FT_SDPA_WRITTEN_OUT;
        return by((ft_attention_library)FT__LIBRARY_AOTRITON_FIRST, library);
    case FT_SDPA_ROCM_SECOND: return by((ft_attention_library)FT__LIBRARY_AOTRITON_SECOND, library);
    default: return FT_SDPA_AS_TODAY;
    }
}

ft_sdpa_way ft__sdpa_pick(const ft_workload *w, const ft_attention_shape *a, bool masked, double dropout,
                          ft_attention_library *library)
{
    const ft_pytorch *p = ft__pytorch(w);
    const bool training = w->task == FT_TRAIN, half = ft_dtype_bytes(w->dtype) == 2;
    if (!p || w->attention != FT_SDPA || a->q_len <= 1) return FT_SDPA_AS_TODAY;
    if (w->sdpa_gpu & FT_SDPA_GPU_ROCM) return pick_on_rocm(p, half, masked, library);
    if (p->sdpa == FT_SDPA_FIRST) {
        const bool flash = half && !masked && flash_runs(w, a, 128, training);
        const bool efficient = (!masked || p->sdpa_masks) && (!(training && dropout > 0) || p->sdpa_dropout);
        if (!flash && !efficient) return FT_SDPA_WRITTEN_OUT;
        if (!half || !(w->sdpa_gpu & FT_SDPA_GPU_FLASH)) return FT_SDPA_AS_TODAY;
        return by(flash && !(efficient && efficient_first(p, a, training)) ? FT_LIBRARY_FLASH1 : FT_LIBRARY_XFORMERS,
                  library);
    }
    /* Where today's choice is the second generation too nothing is different. */
    if (!half || !(w->sdpa_gpu & FT_SDPA_GPU_CUDNN) || p->sdpa_cudnn == FT_SDPA_CUDNN_TODAY) return FT_SDPA_AS_TODAY;
    if (p->sdpa_cudnn == FT_SDPA_CUDNN_EARLIER) return by(FT_LIBRARY_CUDNN, library);
    return by(!masked && flash_runs(w, a, 256, training) ? FT_LIBRARY_FLASH2 : FT_LIBRARY_XFORMERS, library);
}

bool ft__experts_by_hand(const ft_workload *w)
{
    const ft_pytorch *p = ft__pytorch(w);
    return p && !p->library_experts && !ft__stack(w)->grouped_experts;
}

bool ft__sdpa_copies_groups(const ft_workload *w)
{
    const ft_pytorch *p = ft__pytorch(w);
    return p && w->attention == FT_SDPA && !p->sdpa_groups;
}

bool ft__turns_pictures(const ft_workload *w)
{
    return ft__pytorch(w) && w->sdpa_gpu & FT_SDPA_GPU_ROCM && !ft__pytorch(w)->rocm_channels_last;
}

ft_script_joins ft__script_joins(const ft_workload *w)
{
    if (ft__stack(w)->nvfuser) return FT_SCRIPT_JOINS_REDUCTIONS;
    return ft__pytorch(w) ? ft__pytorch(w)->script_joins : ft__pytorches[ft__pytorch_count - 1].script_joins;
}
