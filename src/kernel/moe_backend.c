/* moe_backend.c: what an engine runs for a mixture of experts where nobody says it.
 *
 * Engines choose by GPU and number format; the choices are data (data/constants/kernel/moe_backend.json), the first row
 * that holds decides. Rows ask for the matrix units (how programs reach them), for formats, and whether experts are
 * dealt out over ranks. */
#include "kernel/moe_backend.h"

#include <string.h>

#include "device/traits.h"
#include "graph/operator.h"
#include "kernel/moe_backend_constants.h"

static const char *const names[FT_MOE_BACKEND_COUNT] = {
    [FT_MOE_ANY] = "any",       [FT_MOE_CUTLASS] = "cutlass", [FT_MOE_TRTLLM_GEN] = "trtllm_gen",
    [FT_MOE_TRITON] = "triton", [FT_MOE_MARLIN] = "marlin",   [FT_MOE_DEEPGEMM] = "deepgemm"};

const char *ft__moe_backend_name(ft_moe_backend backend) { return names[backend]; }

bool ft__moe_backend_runs(const ft_device *device, ft_moe_backend backend)
{
    switch (backend) {
    case FT_MOE_TRTLLM_GEN: return device->matrix_issue == FT_ISSUE_TCGEN05;
    case FT_MOE_DEEPGEMM: return ft__matrix_async(device);
    case FT_MOE_CUTLASS:
    case FT_MOE_MARLIN: return device->vendor == FT_VENDOR_NVIDIA;
    default: return true;
    }
}

static bool listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ' ')) return true;
    return !*list;
}

/* What is multiplied, in one word: the format of both sides, or of the activations over that of the weights. */
static const char *format_of(const ft_op *op)
{
    double e = ft_dtype_bytes(op->dtype);
    if (op->weights == FT_STORED_AS_COMPUTED) return e >= 2 ? "half" : e >= 1 ? "fp8" : "fp4";
    if (e >= 2) return op->weights == FT_STORED_MXFP4 ? "mxfp4" : "four";
    return op->weights == FT_STORED_FP8_BLOCK ? "fp8_block" : op->weights == FT_STORED_MXFP4 ? "mxfp4_fp8" : "four_fp8";
}

ft_moe_backend ft__moe_backend(const ft_device *device, const ft_op *op)
{
    static const char *const engines[FT_ENGINE_COUNT] = {"any", "bare", "trtllm", "vllm", "sglang"};
    static const char *const issues[FT_ISSUE_COUNT] = {"none", "mma", "wgmma", "tcgen05", "mfma", "xmx"};
    if (op->u.moe.backend != FT_MOE_ANY || op->engine == FT_ENGINE_BARE) return (ft_moe_backend)op->u.moe.backend;
    const char *format = format_of(op);
    for (int i = 0; i < FT_K_MOE_BACKEND_CHOICES_COUNT; i++) {
        const struct ft__k_moe_backend_choices *c = &ft__k_moe_backend_choices[i];
        if (!listed(c->engines, engines[op->engine]) || !listed(c->issue, issues[device->matrix_issue])) continue;
        if (!listed(c->formats, format) || (c->dealt && op->u.moe.ep <= 1)) continue;
        for (int b = 0; b < FT_MOE_BACKEND_COUNT; b++)
            if (!strcmp(names[b], c->backend)) return (ft_moe_backend)b;
    }
    return FT_MOE_ANY;
}
