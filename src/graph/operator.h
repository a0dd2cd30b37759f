/* Operators: their names, which kind each name is, what they compute and what they must move.
 *
 * Knows nothing of GPUs. "Compulsory" bytes are what any implementation reads and writes at least once; a family
 * in kernel/ may know that real kernels move more. */
#ifndef FT_GRAPH_OPERATOR_H
#define FT_GRAPH_OPERATOR_H
#include "base/error.h"
#include "foretell.h"

/* Libraries that graphs can name and requests cannot: the Triton kernel that came with FlashAttention's first
 * generation, which a stack may mean by it; what Transformer Engine takes where `sdpa` and `flash` are asked for, which
 * are the same kernels but on GPUs for which it brings its own; and what `sdpa` was on AMD's GPUs in earlier versions
 * of PyTorch. */
enum {
    FT__LIBRARY_FLASH1_TRITON = FT_LIBRARY_COUNT,
    FT__LIBRARY_ENGINE_OPEN,
    FT__LIBRARY_ENGINE_FLASH,
    FT__LIBRARY_AOTRITON_FIRST,
    FT__LIBRARY_AOTRITON_SECOND,
    FT__LIBRARY_COUNT
};

/* Row operators on [rows, cols]: how often an element of the matrix is read and written, and arithmetic per element.
 * `index` numbers them; predictors are fitted per operator and pass. */
typedef struct ft_row_op {
    const char *name, *backward;    /* the operator's name, its gradient's */
    double reads, writes;           /* forward: matrix-sized passes over device memory */
    double back_reads, back_writes; /* backward; 0,0 where there is none */
    double flops_per_element;
} ft_row_op;
extern const ft_row_op ft__row_ops[];
enum { FT_ROW_OPS = 14 };
extern const int ft__row_op_count;
int ft__row_op_find(const char *name); /* -1 when unknown */
/* Rows of an embedding's table: as the operator says, or a vocabulary of usual size where it does not. */
int64_t ft__row_vocab(const ft_op *op);

/* Elementwise operators. Unknown names are taken as one unit of arithmetic per element. */
typedef struct ft_pointwise_op {
    const char *name;
    int inputs;
    double flops_per_element;
    double in_bytes, out_bytes; /* of one element where they differ from the dtype's (casts, masks); 0: the dtype's */
} ft_pointwise_op;
extern const ft_pointwise_op ft__pointwise_ops[];
extern const int ft__pointwise_op_count;
int ft__pointwise_op_find(const char *name);

/* "all_reduce" ...; the find gives -1 when unknown. */
extern const char *const ft__collective_names[FT_COLLECTIVE_COUNT];
int ft__collective_find(const char *name);

/* JSON `op` -> kind and the op with every size at its default. Unknown names give FT_OP_OTHER. */
void ft__op_init(const char *op_name, ft_op *out);

/* Bytes of a weight as it lies in memory, its share of the scales counted. */
double ft__stored_bytes(const ft_op *op);
const char *ft__storage_name(ft_storage storage);
double ft__storage_bytes(ft_storage storage); /* of a weight, its scales counted */
/* Experts of one rank that get a token: of the balanced draw, or of tokens that pick at random. */
double ft__experts_awake(const ft_op *op);
double ft__experts_here(const ft_op *op);
/* Of a convolution: bits of ft_conv_part, by its own word or by its pass. */
int ft__conv_parts(const ft_op *op);
double ft__conv_products(const ft_op *op);                                    /* how many of them */
double ft__conv_out(int64_t in, int64_t filter, int64_t stride, int64_t pad); /* pixels of a side */
double ft__op_flops(const ft_op *op);
double ft__op_bytes(const ft_op *op);
/* What it moves however lucky: of a skewed mixture half of the experts may have no token. */
double ft__op_least_bytes(const ft_op *op);
#endif
