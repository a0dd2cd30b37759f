/* How PyTorch's kernel of a row operator is laid out over its matrix. */
#ifndef FT_KERNEL_ROW_LAYOUT_H
#define FT_KERNEL_ROW_LAYOUT_H
#include "foretell.h"

/* Which of an operator's kernels: the usual one; softmax in a warp's registers, in a block's, in shared memory, or from
 * memory at every pass; norms of rows that vectors do not divide, gathers of few rows, by elements. */
typedef enum ft_row_kernel {
    FT_ROW_USUAL,
    FT_ROW_STAGED, /* partial sums are added up in a second stage */
    FT_ROW_WARP,
    FT_ROW_REGISTERS,
    FT_ROW_SHARED,
    FT_ROW_MEMORY,
    FT_ROW_SINGLY,
    FT_ROW_FEW
} ft_row_kernel;

typedef struct ft_row_layout {
    ft_row_kernel kernel;
    double blocks, block;      /* thread blocks, threads in each */
    double rows_each;          /* rows that a block works on side by side */
    double trips;              /* steps of a block along its rows */
    double fill;               /* share of its threads' width that the columns fill */
    double again;              /* passes that read a row a second time */
    double most;               /* blocks that registers leave an SM room for; 0: as many as threads do */
    double launches;           /* kernels, one after the other */
    double start, trip, issue; /* times the operator's constants */
    bool odd;                  /* it loads vectors, and rows do not begin on one */
    bool alone;                /* a block keeps the lanes of its SM busy by itself */
} ft_row_layout;

/* `older`: softmax as PyTorch had it before 2.7. */
ft_row_layout ft__row_layout(const ft_device *device, const ft_op *op, bool older);
#endif
