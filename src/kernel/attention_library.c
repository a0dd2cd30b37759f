/* attention_library.c: attention by the name of its library.
 *
 * What was measured are the kernels that a framework takes today, made for each GPU's own matrix units. Others reach a
 * share of their rate that depends on those units, on the pass and on the width of a head
 * (data/constants/kernel/attention.json): FlashAttention-2 multiplies by mma on Hopper too, the first generation leaves
 * half of an A100 unused. A share holds for long sequences. What short ones take beyond that, tiles that are cut off by
 * the mask and the start and end of a kernel, is the same time whosoever's kernel it is: at 512 tokens on an H100
 * FlashAttention-2 loses to its own long sequences 3.6 ns per Mflop with a mask and 1.3 without, the open kernel 3.8
 * and 1.4. So
 *
 *   T = T_open + flops pad / R_open (1 / share - 1)    R_open: the open kernel's rate over 16k tokens
 *
 * pad: pairs of queries and keys that tiles of 128 by 128 hold, over those that are asked for. CUTLASS's
 * memory-efficient kernels have smaller blocks and nothing of the open kernel's:
 *
 *   T = launch + flops pad / (share R_open) + starts
 *
 * Units that are capped hide part of a slower kernel, as they do of products.
 *
 * Kernels that take a part of the exponentials from polynomials (FlashAttention-4, cuDNN of its year) gain less from
 * special-function units with a higher rate than the open kernel, which waits for them; less so with wide heads.
 *
 * On matrix units for which no kernel was measured, the open kernel is what the physics would allow, and PyTorch's own
 * choice is a library like the others: on AMD's it is compiled ahead of time from Triton (AOTriton), and was slower in
 * earlier versions, most of all going back and under a mask. Transformer Engine takes others there, whatever is asked
 * for (a stack's engine_attention).
 *
 * FlashAttention's kernels, and cuDNN's, copy to shared memory past the registers. A GPU that cannot has CUTLASS's
 * memory-efficient kernels alone, xformers' (PyTorch's sdp_utils.cpp: flash from sm_80, memory-efficient from sm_50):
 * what PyTorch picks there, and what a name that does not run there is forecast as.
 *
 * Leaves out: versions of one library (cuDNN before 9.14 or so on Blackwell: a fifth slower); which head widths each
 * supports. */
#include "kernel/attention_library.h"

#include <math.h>
#include <string.h>

#include "device/traits.h"
#include "graph/operator.h"
#include "kernel/attention_constants.h"
#include "kernel/kernel.h"

/* Tokens of the longest sequences that the libraries' authors publish. */
enum { LONG = 16384, ROWS = 128, STEP = 128 };

static const char *const names[FT__LIBRARY_COUNT] = {[FT_LIBRARY_OPEN] = "sdpa",
                                                     [FT_LIBRARY_FLASH] = "flash",
                                                     [FT_LIBRARY_FLASH1] = "flash1",
                                                     [FT_LIBRARY_FLASH2] = "flash2",
                                                     [FT_LIBRARY_FLASH3] = "flash3",
                                                     [FT_LIBRARY_CUDNN] = "cudnn",
                                                     [FT_LIBRARY_XFORMERS] = "xformers",
                                                     [FT_LIBRARY_TRITON] = "triton",
                                                     [FT__LIBRARY_FLASH1_TRITON] = "flash1_triton",
                                                     [FT__LIBRARY_ENGINE_OPEN] = "engine",
                                                     [FT__LIBRARY_ENGINE_FLASH] = "engine",
                                                     [FT__LIBRARY_AOTRITON_FIRST] = "aotriton_first",
                                                     [FT__LIBRARY_AOTRITON_SECOND] = "aotriton_second"};

static bool earlier_aotriton(ft_attention_library library)
{
    return (int)library == FT__LIBRARY_AOTRITON_FIRST || (int)library == FT__LIBRARY_AOTRITON_SECOND;
}

ft_attention_library ft__library_asked_for(ft_attention_library library)
{
    return (int)library == FT__LIBRARY_ENGINE_OPEN    ? FT_LIBRARY_OPEN
           : earlier_aotriton(library)                ? FT_LIBRARY_OPEN
           : (int)library == FT__LIBRARY_ENGINE_FLASH ? FT_LIBRARY_FLASH
                                                      : library;
}

bool ft__library_longer(const ft_op *op, ft_op *longer)
{
    *longer = *op;
    int64_t q = op->u.attention.q_len;
    bool across = q != op->u.attention.kv_len;
    if (q >= LONG || (across && op->u.attention.causal) || op->u.attention.window > 0) return false;
    longer->timing = FT_TIMING_DEVICE;
    longer->u.attention.library = FT_LIBRARY_OPEN;
    longer->u.attention.q_len = longer->u.attention.kv_len = LONG;
    longer->u.attention.batch = 1 + op->u.attention.batch / (LONG / q);
    return true;
}

/* Which kernel runs on AMD's units: of FlashAttention's first generation and of xformers Composable Kernel's, as of the
 * second; cuDNN is none there, and leaves what PyTorch picks. */
static ft_attention_library running_on_mfma(ft_attention_library library)
{
    if ((int)library == FT__LIBRARY_FLASH1_TRITON) return FT_LIBRARY_TRITON;
    if (library == FT_LIBRARY_FLASH1 || library == FT_LIBRARY_XFORMERS) return FT_LIBRARY_FLASH2;
    return library == FT_LIBRARY_CUDNN ? FT_LIBRARY_OPEN : library;
}

/* Which kernel runs where a GPU has not what a library needs, or cannot copy past the registers. */
static ft_attention_library running(const ft_device *device, ft_attention_library library)
{
    if (device->matrix_issue == FT_ISSUE_MFMA) return running_on_mfma(library);
    if (device->matrix_issue != FT_ISSUE_MMA || device->async_copy != FT_COPY_NONE) return library;
    bool needs_copies = library == FT_LIBRARY_OPEN || library == FT_LIBRARY_FLASH || library == FT_LIBRARY_FLASH2 ||
                        library == FT_LIBRARY_FLASH3 || library == FT_LIBRARY_CUDNN;
    return needs_copies ? FT_LIBRARY_XFORMERS : library;
}

/* FlashAttention takes no mask, and PyTorch prefers cuDNN on Hopper and data-centre Blackwell alone (sdp_utils.cpp:
 * check_for_attn_mask, check_prefer_cudnn_attention): elsewhere its choice are the memory-efficient kernels. */
ft_attention_library ft__library_of_mask(const ft_device *device, const ft_op *op)
{
    bool picks = op->u.attention.library == FT_LIBRARY_OPEN && op->u.attention.q_len > 1;
    bool efficient = device->vendor == FT_VENDOR_NVIDIA && device->matrix_issue == FT_ISSUE_MMA;
    return picks && efficient ? FT_LIBRARY_XFORMERS : op->u.attention.library;
}

static const struct ft__k_attention_libraries *row_of(const ft_device *device, ft_attention_library asked)
{
    const char *units = ft__matrix_issue_name(device->matrix_issue);
    ft_attention_library library = running(device, asked);
    for (int i = 0; i < FT_K_ATTENTION_LIBRARIES_COUNT; i++)
        if (!strcmp(ft__k_attention_libraries[i].library, names[library]) &&
            !strcmp(ft__k_attention_libraries[i].units, units))
            return &ft__k_attention_libraries[i];
    return ft__library_asked_for(library) != library ? row_of(device, ft__library_asked_for(library)) : NULL;
}

/* Of AMD's kernels AOTriton's alone are compiled for fp32. */
static ft_attention_library asked_of(const ft_device *device, const ft_op *op)
{
    const ft_attention_library library = op->u.attention.library;
    const bool wide = device->matrix_issue == FT_ISSUE_MFMA && ft_dtype_bytes(op->dtype) > 2;
    return wide && ft__library_asked_for(library) != FT_LIBRARY_OPEN ? FT_LIBRARY_OPEN : library;
}

bool ft__library_named(const ft_device *device, const ft_op *op)
{
    const ft_attention_library library = asked_of(device, op);
    const bool wide = ft_dtype_bytes(op->dtype) > 2 && device->matrix_issue != FT_ISSUE_MFMA;
    if (op->kind != FT_OP_ATTENTION || op->u.attention.q_len <= 1 || wide) return false;
    if (ft__library_asked_for(library) == FT_LIBRARY_OPEN)
        return (op->engine == FT_ENGINE_BARE || op->engine == FT_ENGINE_ANY) && row_of(device, library);
    return library > FT_LIBRARY_OPEN && (int)library < FT__LIBRARY_COUNT;
}

/* A slower kernel on units that are capped: what it takes beyond the multiplications hides behind them. */
static double of_capped(double share, double cap)
{
    double open = FT_K_ATTENTION_OPEN_SHARE;
    if (!(cap < 1)) return share;
    return ft__capped_efficiency(fmin(share * open, 1), cap) / ft__capped_efficiency(open, cap);
}

static double share_of(const ft_device *device, const ft_op *op)
{
    const struct ft__k_attention_libraries *k = row_of(device, asked_of(device, op));
    if (!k) return 1;
    double wider = fmin(fmax(log2((double)op->u.attention.head_dim / 64), -1), 2);
    double spared = pow(ft__exp_per_clk(device) / k->exps, -k->spared * exp2(1 - wider));
    double forward = (k->forward + k->forward_wider * wider) * spared,
           back = (k->back + k->back_wider * wider) * spared;
    double cap = ft__matrix_cap(device, op->dtype);
    if (earlier_aotriton(op->u.attention.library) && op->u.attention.causal) back *= FT_K_ATTENTION_AOTRITON_MASKED;
    forward = of_capped(fmax(forward, k->least), cap), back = of_capped(fmax(back, k->least), cap);
    if (op->pass != FT_PASS_FWD_BWD) return op->pass == FT_PASS_FWD ? forward : back;
    return 1 / (FT_K_ATTENTION_FORWARD_SHARE / forward + FT_K_ATTENTION_BACK_SHARE / back);
}

/* What dropout adds was measured beside kernels of the new units: it takes as long beside slower ones. */
double ft__kernel_effort(const ft_device *device, const ft_op *op, double effort)
{
    if (!ft__library_named(device, op) || device->matrix_issue != FT_ISSUE_TCGEN05 || !(effort > 1)) return effort;
    return 1 + (effort - 1) * fmin(1, share_of(device, op));
}

/* Pairs of queries and keys that a kernel computes, in blocks of `rows` and `step`, over those that are asked for. */
static double padding(const ft_op *op, double rows, double step)
{
    double q = (double)op->u.attention.q_len, kv = (double)op->u.attention.kv_len;
    double tall = rows * ceil(q / rows), wide = step * ceil(kv / step);
    if (op->u.attention.causal && q == kv) return fmin(wide, (tall + step) / 2) * tall / (q * (q + 1) / 2);
    return op->u.attention.causal ? 1 : tall * wide / (q * kv);
}

/* CUTLASS's memory-efficient kernels have blocks of 64 queries and 64 keys, 128 with heads wider than 64, as their
 * names say; going back a block owns the keys. Narrow ones share an SM, where one alone takes longer. */
static double efficient_ms(const ft_device *device, const ft_op *op, double rate, const ft_forecast *f)
{
    enum { SIDE = 64 };
    bool wide = op->u.attention.head_dim > SIDE;
    double step = wide ? 2 * SIDE : SIDE, work = f->flops * padding(op, SIDE, step) / rate, sms = (double)device->sms;
    double heads = (double)op->u.attention.batch * (double)op->u.attention.heads;
    double tiles = heads * ceil((double)op->u.attention.q_len / SIDE),
           back = heads * ceil((double)op->u.attention.kv_len / step), clocks = 0;
    if (op->pass != FT_PASS_BWD) clocks += FT_K_ATTENTION_EFFICIENT_START * tiles;
    if (op->pass != FT_PASS_FWD) clocks += FT_K_ATTENTION_EFFICIENT_START_BACK * back;
    work += clocks / (sms * ft__running_mhz(device) * 1e3);
    double alone = wide ? 1 : FT_K_ATTENTION_EFFICIENT_ALONE;
    return f->launch_ms + work * fmax(1, alone * sms / (op->pass == FT_PASS_FWD ? tiles : back));
}

/* Where FlashAttention-2 is what a framework takes by itself, a name of that line says nothing that was not measured.
 */
static bool same_as_open(const ft_device *device, ft_attention_library asked)
{
    ft_attention_library library = running(device, asked);
    return device->matrix_issue == FT_ISSUE_MMA && (library == FT_LIBRARY_FLASH || library == FT_LIBRARY_FLASH2 ||
                                                    library == FT_LIBRARY_FLASH3 || library == FT_LIBRARY_CUDNN);
}

/* Nothing was fitted to others: they are as wide as they were off, or as the open kernel is. */
static void widen(const ft_device *device, const ft_op *op, double quantile, ft_forecast *f)
{
    const struct ft__k_attention_named *k = &ft__k_attention_named;
    if (same_as_open(device, op->u.attention.library)) return;
    double tokens = fmin((double)op->u.attention.q_len, (double)op->u.attention.kv_len) / k->tokens;
    double wide = exp((k->wide + k->few / (1 + tokens * tokens)) * quantile / k->level);
    f->low_ms = fmax(fmin(f->low_ms, f->ms / wide), fmin(ft__floor_ms(device, op), f->ms));
    f->high_ms = fmax(f->high_ms, f->ms * wide);
}

void ft__library_apply(const ft_device *device, const ft_op *op, const ft_forecast *steady, double quantile,
                       ft_forecast *f)
{
    double share = share_of(device, op);
    if (!(share > 0) || !(steady->flops > 0)) return;
    ft_op longer;
    bool steadier = ft__library_longer(op, &longer); /* else its rate is that of these very tiles */
    double rate = steady->flops / steady->ms, pad = steadier ? padding(op, ROWS, STEP) : 1;
    double at_rate = fmin(f->flops * pad / rate, f->ms) / f->ms; /* starts and ends are no part of it */
    double by = f->bound == FT_BOUND_COMPUTE ? 1 + at_rate * (1 / share - 1) : fmax(1, at_rate / share);
    if (steadier && running(device, op->u.attention.library) == FT_LIBRARY_XFORMERS)
        by = efficient_ms(device, op, share * rate, f) / f->ms;
    by = fmax(by, ft__floor_ms(device, op) / f->ms);
    f->ms *= by;
    f->low_ms *= by;
    f->high_ms *= by;
    f->sustained_ms = by > 1 ? fmax(f->sustained_ms, f->ms) : fmax(f->sustained_ms * by, f->ms);
    widen(device, op, quantile, f);
}
