/* skinny.c: fp32 and fp64 products of a few rows, where no expert has seen any.
 *
 * Libraries have kernels of their own for a matrix times a vector and times a few of them: they stream the matrix and
 * keep the few rows in registers. The physics of gemm_vector.c knows tiles of 32 rows and more; what its trees learned
 * of skinny products comes from the one GPU that was measured at them. Elsewhere (H100, A100, T4: rows from some 16 or
 * 512 on; a generation nobody measured) a product of one row was as slow as one of 32.
 *
 * On our H200 (fp32, matrices of 30 MB and more) one row streams at 0.75 to 0.89 of the bandwidth, two at 0.65, four at
 * 0.52, eight at 0.45, sixteen at 0.36: 0.83 rows^-0.3 within a tenth, after some 3 us to fill the pipes. Nothing in it
 * is the H200's but the share of its own bandwidth. */
#include "kernel/skinny.h"

#include <math.h>

#include "graph/operator.h"
#include "kernel/kernel.h"

enum { MOST_ROWS = 16, LOG_M = 0, LOG_N = 1 }; /* features of gemm_vector.c */

double ft__skinny_ms(const ft_device *device, const ft_op *op, const ft_expert *expert, ft_kinship kinship)
{
    static const double one_row = 0.83, more_rows = -0.3, fill_ms = 3e-3, half = 0.5; /* of the peak, for fp64 */
    if (op->kind != FT_OP_GEMM || (op->dtype != FT_FP32 && op->dtype != FT_FP64) || op->u.gemm.b > 1) return INFINITY;
    bool few_rows = op->u.gemm.m <= op->u.gemm.n;
    int64_t rows = few_rows ? op->u.gemm.m : op->u.gemm.n;
    /* Measured at so few; of a sibling as kernels, since eager calls of few rows are all launch gap. */
    bool near = kinship == FT_KIN_SELF || (kinship == FT_KIN_SIBLING && !(expert->flags & FT_EXPERT_EAGER));
    bool seen = near && expert->feature_low[few_rows ? LOG_M : LOG_N] <= log2((double)rows);
    if (rows > MOST_ROWS || seen) return INFINITY;
    double launch = expert->theta[FT_THETA_LAUNCH_US] * 1e-3 * ft__clock_scale(device);
    double streams = ft__op_bytes(op) / (one_row * pow((double)rows, more_rows) * device->memory_gbps * 1e6);
    double computes = ft__op_flops(op) / (half * ft__peak_tflops(device, op->dtype) * 1e9);
    return launch + fmax(streams, computes) + fill_ms * ft__clock_scale(device);
}
