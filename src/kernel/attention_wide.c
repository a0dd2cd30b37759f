/* attention_wide.c: attention with heads of more than 256 elements.
 *
 * Neither cuDNN nor FlashAttention takes them: PyTorch falls back to CUTLASS's memory-efficient kernels, which keep
 * their sums in memory and were made for warp-level instructions. A block of threads has one tile and walks all rows of
 * the other side. With few heads that walk is the time, as long with one head as with eight; with many, the SMs' rate
 * decides:
 *
 *   forward   T = W + F / R
 *   backward  T = (sqrt W + sqrt(F / R))^2       walks wait for each other's sums
 *   W = clocks x rows x width / clock            F: of all pairs, hidden ones too; R: FLOP per clock and SM
 *
 * The same code runs everywhere, so that R belongs to an SM and its clock; units that cannot feed it give less.
 *
 * Leaves out: what dropout adds; widths that are no multiple of 8. */
#include "kernel/attention_wide.h"

#include <math.h>

#include "device/traits.h"
#include "graph/operator.h"
#include "kernel/attention_constants.h"
#include "kernel/attention_library.h"
#include "kernel/kernel.h"

/* The widest head that the other kernels keep in registers; products of a pass, forward and back. */
enum { WIDEST = 256, FORWARD = 2, BACK = 5 };

bool ft__attention_wide(const ft_device *device, const ft_op *op)
{
    const bool half = ft_dtype_bytes(op->dtype) == 2;
    if (op->kind != FT_OP_ATTENTION || device->vendor != FT_VENDOR_NVIDIA || !half || op->u.attention.q_len <= 1)
        return false;
    ft_attention_library library = ft__library_asked_for(op->u.attention.library);
    bool served = op->engine != FT_ENGINE_ANY && op->engine != FT_ENGINE_BARE; /* engines have kernels of their own */
    bool open = library == FT_LIBRARY_OPEN && !served;
    return op->u.attention.head_dim > WIDEST && (open || library == FT_LIBRARY_XFORMERS);
}

/* One pass, in ms. */
static double walked(const ft_device *device, const ft_op *op, bool back)
{
    double rows = (double)(back ? op->u.attention.q_len : op->u.attention.kv_len);
    double width = (double)op->u.attention.head_dim, mhz = ft__running_mhz(device), sms = (double)device->sms;
    double pairs = (double)op->u.attention.q_len * (double)op->u.attention.kv_len;
    double heads = (double)op->u.attention.batch * (double)op->u.attention.heads;
    double most = FT_K_ATTENTION_WIDE_UNITS * ft__peak_tflops(device, op->dtype) * 1e6 / (sms * mhz);
    double rate = fmin(back ? FT_K_ATTENTION_WIDE_BACK : FT_K_ATTENTION_WIDE_FORWARD, most);
    double walk = (back ? FT_K_ATTENTION_WIDE_WALK_BACK : FT_K_ATTENTION_WIDE_WALK) * rows * width / (mhz * 1e3);
    double work = (back ? BACK : FORWARD) * 2 * heads * pairs * width / (rate * sms * mhz * 1e3);
    return back ? pow(sqrt(walk) + sqrt(work), 2) : walk + work;
}

void ft__attention_wide_apply(const ft_device *device, const ft_op *op, ft_forecast *f)
{
    double ms = 0;
    if (op->pass != FT_PASS_BWD) ms += walked(device, op, false);
    if (op->pass != FT_PASS_FWD) ms += walked(device, op, true);
    double by = fmax(ms, ft__floor_ms(device, op)) / f->ms;
    f->ms *= by;
    f->low_ms *= by;
    f->high_ms *= by;
    f->sustained_ms = fmax(f->sustained_ms * by, f->ms);
}
