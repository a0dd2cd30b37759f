/* Products whose rows are not aligned to 16 bytes: the kernels that a library falls back on. */
#ifndef FT_KERNEL_GEMM_UNALIGNED_H
#define FT_KERNEL_GEMM_UNALIGNED_H
#include "kernel/gemm_tiles.h"

typedef struct ft_gemm_unaligned {
    int align;              /* bytes that divide every row */
    double efficiency;      /* of the arithmetic rate of mma.sync */
    double bytes_per_clock; /* an SM copies, element by element */
    double pairs;           /* so many times more in pieces of four bytes */
    double split_ms;        /* the second kernel of split-K */
} ft_gemm_unaligned;

/* What mma.sync does on an SM, in flop per ms: all of a matrix unit before Hopper's, a part of later ones. */
double ft__mma_sync_rate(const ft_device *device, double element_bytes);

/* Turns the search into one over those kernels. `s` describes the product as if its rows were aligned. */
void ft__gemm_unaligned_search(const ft_device *device, const ft_op *op, ft_gemm_unaligned unaligned,
                               ft_gemm_search *s);

/* What a product of few rows takes without its launch, given what the tiles would take: libraries have kernels of
 * their own for it. */
double ft__gemm_few_rows_ms(const ft_device *device, const ft_op *op, int align, double memory_ms, double tiled_ms);
#endif
