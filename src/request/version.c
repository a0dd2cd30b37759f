/* version.c: what a named version of PyTorch turns of a request. */
#include "request/version.h"

#include <stdio.h>

#include "model/pytorch.h"
#include "model/stack.h"
#include "request/effects_rules.h"

/* FlashAttention's kernels copy past the registers, and going back over wide heads its first generation wants more
 * shared memory than GPUs of 100 KiB have; cuDNN is preferred where its kernels were made for the GPU's own matrix
 * instructions. AMD's matrix instructions have AOTriton's kernels. */
static unsigned sdpa_gpu(const ft_device *d)
{
    enum { ROOM_KIB = 128 };
    if (d->matrix_issue == FT_ISSUE_MFMA) return FT_SDPA_GPU_ROCM;
    if (d->vendor != FT_VENDOR_NVIDIA) return 0;
    const bool own = d->matrix_issue == FT_ISSUE_WGMMA || d->matrix_issue == FT_ISSUE_TCGEN05;
    return (d->async_copy != FT_COPY_NONE ? FT_SDPA_GPU_FLASH : 0u) |
           (d->smem_kib_per_sm > ROOM_KIB ? FT_SDPA_GPU_ROOM : 0u) | (own ? FT_SDPA_GPU_CUDNN : 0u);
}

static ft_status check_execution(const ft_workload *w, const char *version, ft_error *err)
{
    const bool compiles = ft__compiles(w);
    if (!compiles || w->pytorch->compiles) return FT_OK;
    return ft__fail_at(err, FT_E_RANGE, "execution", 0, 0,
                       "PyTorch %.20s has no torch.compile, which came with 2.0: \"%s\" is not forecast for it; it has "
                       "\"eager\" and \"torchscript\"",
                       version, ft__execution_words[w->execution]);
}

/* Attention that was not there yet is written out, segments that could not grow do not. "fp32" means TF32 off, as it
 * always does: where the version has it on, the answer says so. */
static void turn(const ft_said *said, ft_model_request *out)
{
    ft_workload *w = &out->work;
    const ft_pytorch *p = w->pytorch;
    const bool tf32 = p->tf32_products && w->dtype == FT_FP32 && out->device->peak_tflops[FT_TF32] > 0;
    const bool absent = p->sdpa == FT_SDPA_NONE && w->attention == FT_SDPA && ft__attends(out->arch);
    const bool fixed = w->expandable_segments && !p->expands_segments;
    const bool left_out = !ft__given(said, FT_KEY_ID_ATTENTION) && !w->stack && w->attention == FT_SDPA;
    const bool by_hand = left_out && out->arch->relative_buckets > 0 && !p->library_biases;
    out->version_turns = absent || fixed || by_hand;
    if (absent || by_hand) w->attention = FT_EAGER;
    if (fixed) w->expandable_segments = false;
    if (*out->remark || !(tf32 || absent)) return;
    snprintf(out->remark, sizeof out->remark, "in that version of PyTorch %s%s%s",
             absent ? "scaled_dot_product_attention does not exist: attention is forecast as \"eager\"" : "",
             tf32 && absent ? "; " : "",
             tf32 ? "fp32 matrix products use TF32 by default: \"tf32\" forecasts that" : "");
}

ft_status ft__settle_pytorch(const ft_said *said, ft_model_request *out, ft_error *err)
{
    ft_workload *w = &out->work;
    const char *version = ft__given(said, FT_KEY_ID_PYTORCH) ? said->at[FT_KEY_ID_PYTORCH].text
                          : w->stack && w->stack->pytorch[0] ? w->stack->pytorch
                                                             : NULL;
    bool newer = false;
    if (!version) return FT_OK;
    FT_TRY(ft__pytorch_find(version, &w->pytorch, &newer, err));
    w->sdpa_gpu = sdpa_gpu(out->device);
    if (!ft__pytorch(w)) return FT_OK;
    FT_TRY(check_execution(w, version, err));
    turn(said, out);
    if (newer && !*out->remark)
        snprintf(out->remark, sizeof out->remark, "PyTorch %.20s is newer than the versions known: forecast as %s",
                 version, ft__pytorch_releases[ft__pytorch_release_count - 1]);
    return FT_OK;
}

static bool attends_otherwise(const ft_model_request *r, const ft_pytorch *p)
{
    const ft_workload *w = &r->work;
    const bool half = ft_dtype_bytes(w->dtype) == 2;
    if ((w->attention != FT_SDPA && !r->arch->says_attention) || !ft__attends(r->arch)) return false;
    if (!p->sdpa_groups && r->arch->kv_heads > 0 && r->arch->kv_heads < r->arch->heads) return true;
    if (w->task == FT_DECODE) return false;
    if (w->sdpa_gpu & FT_SDPA_GPU_ROCM) return p->sdpa_rocm != FT_SDPA_ROCM_TODAY;
    if (half && !p->sdpa_wide && r->arch->relative_buckets > 0) return true;
    if (p->sdpa == FT_SDPA_FIRST) return !p->sdpa_masks || (half && w->sdpa_gpu & FT_SDPA_GPU_FLASH);
    return half && w->sdpa_gpu & FT_SDPA_GPU_CUDNN && p->sdpa_cudnn != FT_SDPA_CUDNN_TODAY;
}

static bool differs(const ft_model_request *r)
{
    const ft_workload *w = &r->work;
    const ft_pytorch *p = ft__pytorch(w), *today = &ft__pytorches[ft__pytorch_count - 1];
    if (!p) return false;
    if (r->device->vendor == FT_VENDOR_AMD) return true; /* how far it may be off: ft__step_interval */
    const ft_arch *a = r->arch;
    const bool sparse = a->design == FT_DECODER_ONLY && a->experts > 0 && !a->all_experts && !a->attn_experts;
    if (sparse && !a->expert_loop && ft__experts_by_hand(w)) return true;
    const bool lists = w->clip || w->optimizer == FT_ADAMW_FOREACH || w->optimizer == FT_SGD ||
                       w->optimizer == FT_SGD_MOMENTUM;
    if (r->version_turns || attends_otherwise(r, p) || ft__keeps_gradients(w)) return true;
    if (w->task == FT_TRAIN && !p->lists && lists) return true;
    return w->execution == FT_RUN_TORCHSCRIPT && !ft__stack(w)->nvfuser && p->script_joins != today->script_joins;
}

const char *ft__versioned(const ft_effect_case *c)
{
    if (c->w->execution == FT_RUN_FUSED) return "hand-fused layers have kernels of their own";
    if (ft__by_engine(c->w)) return "a serving engine has kernels of its own";
    if (!ft__pytorch(c->w)) return "the stack is not PyTorch";
    return differs(c->r) ? NULL : "nothing in this step differs in that version";
}
