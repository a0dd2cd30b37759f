/* skinny.c: fp32 and fp64 products of a few rows, where no expert has seen any.
 *
 * Libraries have kernels of their own for a matrix times a vector and times a few of them: they stream the matrix and
 * keep the few rows in registers. The physics of gemm_vector.c knows tiles of 32 rows and more; what its trees learned
 * of skinny products comes from the one GPU that was measured at them. Elsewhere (H100, A100, T4: rows from some 16 or
 * 512 on; a generation nobody measured) a product of one row was as slow as one of 32.
 *
 * On our H200 the share of the bandwidth at which they stream falls with a small power of the rows
 * (data/constants/kernel/gemm.json). Nothing in it is the H200's but the share of its own bandwidth. */
#include "kernel/skinny.h"

#include <math.h>

#include "graph/operator.h"
#include "kernel/gemm_constants.h"
#include "kernel/kernel.h"

enum { LOG_M = 0, LOG_N = 1 }; /* features of gemm_vector.c */

double ft__skinny_ms(const ft_device *device, const ft_op *op, const ft_expert *expert, ft_kinship kinship)
{
    if (op->kind != FT_OP_GEMM || (op->dtype != FT_FP32 && op->dtype != FT_FP64) || op->u.gemm.b > 1) return INFINITY;
    bool few_rows = op->u.gemm.m <= op->u.gemm.n;
    int64_t rows = few_rows ? op->u.gemm.m : op->u.gemm.n;
    /* Measured at so few; of a sibling as kernels, since eager calls of few rows are all launch gap. */
    bool near = kinship == FT_KIN_SELF || (kinship == FT_KIN_SIBLING && !(expert->flags & FT_EXPERT_EAGER));
    bool seen = near && expert->feature_low[few_rows ? LOG_M : LOG_N] <= log2((double)rows);
    if (rows > FT_K_GEMM_SKINNY_ROWS || seen) return INFINITY;
    const struct ft__k_gemm_skinny *k = &ft__k_gemm_skinny;
    double launch = expert->theta[FT_THETA_LAUNCH_US] * 1e-3 * ft__clock_scale(device);
    double streams = ft__op_bytes(op) / (k->one_row * pow((double)rows, k->more_rows) * device->memory_gbps * 1e6);
    double computes = ft__op_flops(op) / (k->peak_share * ft__peak_tflops(device, op->dtype) * 1e9);
    return launch + fmax(streams, computes) + k->fill_ms * ft__clock_scale(device);
}
