/* Products that a convolution is made of (conv.c). */
#ifndef FT_KERNEL_CONV_PRODUCT_H
#define FT_KERNEL_CONV_PRODUCT_H
#include "graph/operator.h"
#include "kernel/gemm_tiles.h"

enum { FT_CONV_OLDER_TF32_TILES = 1 << 2 | 1 << 3 | 1 << 5 }; /* 128x128, 256x64, 128x64 of matrix units */

typedef struct ft_conv_product {
    double b, m, n, k, rate; /* rate: share of the device's */
    int split;               /* at most */
    bool point;              /* a plain matrix product */
    bool older;              /* by a kernel of the generation before: no bulk copies, half the operands per clock */
    unsigned allowed;        /* tiles; 0: all */
} ft_conv_product;

ft_gemm_tile ft__conv_tile(bool matrix, int at); /* of matrix units or vector units */
void ft__conv_run(const ft_device *device, const ft_op *op, const double *th, ft_conv_product p, bool matrix, bool want,
                  ft_gemm_pick *out);
/* Images whose rows are not aligned can be turned to NHWC first, which takes `move`: where that is quicker, it is done.
 * Matrix units beyond an A100's are not asked: cuDNN 9's heuristic leaves theirs as they lie. */
void ft__conv_turn(const ft_device *device, const ft_op *op, const double *th, ft_conv_product p, double move,
                   ft_gemm_pick *pick);
#endif
