/* 2-D convolutions as implicit matrix products, the way cuDNN computes them.
 *
 *   forward   Y[n oh ow, k] = X[n oh ow, c r s] W[c r s, k]           M = n oh ow, N = k,     K = c r s
 *   data      dX[n h w, c]  = dY[n h w, k r s / stride^2] W           M = n h w,   N = c,     K = k r s / stride^2
 *   weights   dW[k, c r s]  = dY[k, n oh ow] X                        M = k,       N = c r s, K = n oh ow
 *
 * Each goes through the same choice of tiles as a matrix product (conv_product.c). The backward pass is data plus
 * weights, two kernels or more. What cuDNN launches was read off the kernels' names and grids of 4,831 H200 rows
 * (cuDNN 9.19, heuristic choice, no benchmark mode):
 *
 *   half, tf32  want NHWC. NCHW operands are transposed before and after, a kernel each, except for 1x1 filters with
 *               stride 1 (a product per image) and an image's three channels (fp32 kernels on the vector units).
 *   7x7         forward and weights run on kernels of the generation before: half the rate, half the feed, and in tf32
 *               operands rounded by a pass of their own. In half precision some shapes fall to fp32 kernels (holes).
 *   fp32        wants NCHW: NHWC is transposed unless K is short. Filters of 3x3 and more with stride 1 may go through
 *               Winograd or Fourier transforms, forward and for the weights.
 *
 * Depthwise filters and narrow groups in 16 bits have files (depthwise.c, grouped.c). Other narrow groups are direct
 * kernels: bytes, or a multiply-add per lane.
 *
 * Leaves out: dilation, 1-D and 3-D, the autotuner (cudnn.benchmark) that would pick better, and when exactly the
 * heuristic takes a transform: on the same sizes it does so in one case of five, without a pattern we could find. */
#include "graph/operator.h"
#include "kernel/conv_physics.h"
#include "kernel/conv_theta.h"
#include "kernel/depthwise.h"
#include "kernel/families.h"
#include "kernel/grouped.h"
#include "kernel/kernel.h"
#include "kernel/priors_constants.h"

_Static_assert((int)THETA_COUNT <= (int)FT_MAX_THETA, "a predictor file has no room for more constants");
static const ft_parameter parameters[THETA_COUNT] = {
    [LAUNCH] = FT_K_PRIORS_CONV_LAUNCH_US,
    [GAP] = FT_K_PRIORS_CONV_GAP_US,
    [EC] = FT_K_PRIORS_CONV_EFFICIENCY,
    [EB] = FT_K_PRIORS_CONV_BANDWIDTH_EFFICIENCY,
    [WAVE_US] = FT_K_PRIORS_CONV_WAVE_US,
    [POINT_WAVE_US] = FT_K_PRIORS_CONV_POINT_WAVE_US,
    [POINT_PROLOGUE] = FT_K_PRIORS_CONV_POINT_PROLOGUE_K,
    [FEED] = FT_K_PRIORS_CONV_FEED_BYTES_PER_FLOP,
    [PROLOGUE] = FT_K_PRIORS_CONV_PROLOGUE_K,
    [SPLIT_US] = FT_K_PRIORS_CONV_SPLIT_US,
    [SMOOTH] = FT_K_PRIORS_CONV_SMOOTH,
    [TAPS9] = FT_K_PRIORS_CONV_TAPS_9,
    [TAPS49] = FT_K_PRIORS_CONV_TAPS_49,
    [HABIT] = FT_K_PRIORS_CONV_HABIT,
    [HOLES] = FT_K_PRIORS_CONV_STRIDED,
    [NARROW] = FT_K_PRIORS_CONV_NARROW,
    [SKEW] = FT_K_PRIORS_CONV_SKEW,
    [DATA] = FT_K_PRIORS_CONV_DATA_GRADIENT,
    [WEIGHTS] = FT_K_PRIORS_CONV_WEIGHT_GRADIENT,
    [STRIDED] = FT_K_PRIORS_CONV_STRIDED_DATA,
    [DIRECT] = FT_K_PRIORS_CONV_DIRECT,
    [PAD_EB] = FT_K_PRIORS_CONV_PAD_BANDWIDTH,
    [TRANSPOSE_US] = FT_K_PRIORS_CONV_TRANSPOSE_US,
    [TRANSPOSE_EB] = FT_K_PRIORS_CONV_TRANSPOSE_BANDWIDTH,
    [WINOGRAD] = FT_K_PRIORS_CONV_WINOGRAD,
    [SECOND_US] = FT_K_PRIORS_CONV_SECOND_US,
    [LEAD_US] = FT_K_PRIORS_CONV_LEAD_US,
    [FOURIER] = FT_K_PRIORS_CONV_FOURIER,
};

/* Half precision, tf32 and fp32 are different kernels; so are the passes, and in half precision filters of one channel
 * and of groups. */
enum { FORWARD, BACKWARD, BOTH, PASSES };
enum { HALF, TF32, FP32, DEPTHWISE, GROUPED, KINDS, VARIANTS = KINDS * PASSES };
static const char *const variant_names[VARIANTS] = {
    "half_forward",       "half_backward",  "half_both",       "tf32_forward",     "tf32_backward",
    "tf32_both",          "fp32_forward",   "fp32_backward",   "fp32_both",        "depthwise_forward",
    "depthwise_backward", "depthwise_both", "grouped_forward", "grouped_backward", "grouped_both"};

static int variant_of(const ft_op *op)
{
    if (op->kind != FT_OP_CONV2D) return -1;
    int kind = op->dtype == FT_TF32                           ? TF32
               : op->dtype == FT_FP32 || op->dtype == FT_FP64 ? FP32
               : ft__is_depthwise(op)                         ? DEPTHWISE
               : op->u.conv.groups > 1                        ? GROUPED
                                                              : HALF;
    int parts = ft__conv_parts(op);
    return kind * PASSES + (parts == FT_CONV_RESULT ? FORWARD : parts & FT_CONV_RESULT ? BOTH : BACKWARD);
}
static const char *variant_name(int v) { return variant_names[v]; }
static int variant_fallback(int v)
{
    int pass = v % PASSES, kind = v / PASSES;
    if (pass == BOTH) return v - 1;
    return kind == TF32 || kind == DEPTHWISE || kind == GROUPED ? HALF * PASSES + pass : pass == BACKWARD ? v - 1 : -1;
}

/* Gradients in fp32 were measured on an H200 alone, whose library hides no traffic behind them and sums filters' in a
 * slow kernel. Other generations' own forward kernels say more of theirs. */
static int variant_lent(int v) { return v == FP32 * PASSES + BACKWARD ? v - BACKWARD + FORWARD : -1; }

/* What share of the result's rate gradients reach is nobody's figure there. cuDNN has the result's algorithms for an
 * image's (cudnnConvolutionBwdDataAlgo_t: Winograd and Fourier transforms as in cudnnConvolutionFwdAlgo_t). */
static void lend(double *theta) { theta[DATA] = -theta[DATA]; }

/* Of 16 bits without groups: the cluster in place of the element's bytes, how the kernel is run in place of the vector
 * units, and the second kernel's in place of transforms and groups (conv_physics.c). */
static const char *const feature_names[] = {
    "log_time_over_start",
    "log_compute_over_memory",
    "log_m",
    "log_n",
    "log_k",
    "log_c",
    "log_size",
    "log_batch",
    "taps",
    "stride",
    "nhwc",
    "cluster_or_bytes",
    "run_or_vector_units",
    "wave_fill",
    "log_waves",
    "split",
    "tile_m",
    "tile_n",
    "odd_c",
    "log_bytes_over_cache",
    "second_cluster_or_fast",
    "log_weight_share",
    "weight_waves",
    "weight_split",
    "r0",
    "r2",
    "r5",
    "r7",
    "few_k",
    "log_c_over_k",
    "log_input_bytes",
    "log_flops",
    "log_channel_pairs",
    "lanes",
    "extra_share",
    "axes",
    "depth",
    "dilated",
    "parts",
    "second_run_or_log_groups",
    "log_group_width",
    "filter_height",
    "filter_width",
    "odd_group",
    "even_c",
    "even_k",
    "way",
    "second_way",
};
_Static_assert((int)(sizeof feature_names / sizeof *feature_names) == (int)FT_CONV_FEATURES, "a name for each");

const ft_family ft__conv_family = {
    .name = "conv",
    .parameters = parameters,
    .parameter_count = THETA_COUNT,
    .feature_names = feature_names,
    .feature_count = sizeof feature_names / sizeof *feature_names,
    .falls = true,
    .variant_count = VARIANTS,
    .variant_of = variant_of,
    .variant_name = variant_name,
    .variant_fallback = variant_fallback,
    .variant_lent = variant_lent,
    .lend = lend,
    .physics = ft__conv_physics,
};
