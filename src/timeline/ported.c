/* ported.c: Transformer Engine as AMD first carried it over from NVIDIA's GPUs (a stack's ported_engine), on its units.
 *
 * Two things were below par, both read in the software of the time (data/constants/timeline/ported.json):
 *
 *   casts       NVIDIA's kernels that cast a matrix and write it once more, turned, reach a tenth of the bandwidth:
 *               their instructions hold them, so that the pace is one of CUs and clock
 *   gradients   products of the two 8-bit formats had next to no kernels in the library
 *
 * A forward operand comes cast from the norm or the activation before, and is turned alone: a byte read, one written.
 * A gradient is cast and turned at once, for both of its products: two bytes read, two written.
 *
 * Leaves out: norms and activations of the same origin, for which nobody published a figure; attention, which is a
 * library's (kernel/attention_library.c). */
#include "timeline/ported.h"

#include "device/traits.h"
#include "model/stack.h"
#include "timeline/ported_constants.h"

bool ft__ported(const ft_device *device, const ft_workload *work, const ft_node *n)
{
    if (work->task != FT_TRAIN || device->matrix_issue != FT_ISSUE_MFMA || !ft__stack(work)->ported_engine)
        return false;
    return n->op.kind == FT_OP_GEMM && ft_dtype_bytes(n->op.dtype) < 2 && n->op.u.gemm.quantized == 0;
}

void ft__apply_ported(const ft_device *device, const ft_node *n, ft_forecast *f)
{
    const bool back = n->phase == FT_BACKWARD;
    const double e = ft_dtype_bytes(n->op.dtype), each = back ? 2 + 2 * e : 2 * e;
    if (back) ft__forecast_scale(f, 1 / FT_K_PORTED_GRADIENT_SHARE);
    if (n->cast) return; /* by the product before, of the same gradient */
    double bytes = (double)n->op.u.gemm.b * (double)n->op.u.gemm.m * (double)n->op.u.gemm.k * each,
           ms = bytes / (FT_K_PORTED_CAST_BYTES * device->sms * ft__running_mhz(device) * 1e3);
    ft__forecast_add(f, bytes, ms);
}

double ft__ported_sooner(const ft_workload *work)
{
    return !work->stack && ft__stack(work)->ported_engine ? FT_K_PORTED_SOONER : 0;
}
