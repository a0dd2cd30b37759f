/* What the builder's files share: checked access to tensors, and appending a node with its results. */
#ifndef FT_GRAPH_EMIT_H
#define FT_GRAPH_EMIT_H
#include "graph/build.h"

/* A node of this verb with nothing in it; the builder's phase is forward. */
ft_node ft__node_of(ft_verb verb, ft_at at);
/* A kernel that is as much longer than its operator as another one is. */
void ft__same_manner(ft_node *n, const ft_node *as);
void ft__node_in(ft_node *n, ft_ref x); /* FT_NONE adds nothing */
/* The result of a node: a fresh tensor; trained when one of the node's inputs is. */
ft_ref ft__node_out(ft_build *b, ft_node *n, int64_t rows, int64_t cols, ft_dtype dtype, double element_bytes);
/* A view of x in other clothes as the node's result. */
ft_ref ft__node_view(ft_build *b, ft_node *n, ft_ref x, int64_t rows, int64_t cols, bool strided);
void ft__emit(ft_build *b, const ft_node *n);

/* Reading a tensor; a zero tensor once the builder has failed, so that callers need no check. */
const ft_tensor *ft__tensor_of(const ft_build *b, ft_ref x);
/* Keeps the first error. */
void ft__build_fail(ft_build *b, ft_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The op of a pointwise kernel over `rows` x `cols` elements of these inputs. */
ft_op ft__pointwise_kernel(const ft_graph *g, const char *op, const ft_ref *in, int count, const ft_tensor *out);
ft_op ft__row_kernel(const char *op, ft_pass pass, int64_t rows, int64_t cols, ft_dtype dtype);
ft_op ft__gemm_kernel(ft_dtype dtype, int64_t b, int64_t m, int64_t n, int64_t k, const char *layout, bool bias);
ft_op ft__bytes_kernel(const char *op, ft_dtype dtype, double bytes, double flops);
/* One of `shares` equal parts of the work: an iteration of a loop over experts. Of a product, a share of its rows. */
void ft__op_share(ft_op *op, double shares);
/* Autocast runs norms, softmax and reductions of low-precision inputs in fp32. */
ft_ref ft__autocast_to_fp32(ft_build *b, ft_at at, ft_ref x);
/* The format in which values flow where products are done in `math`. */
ft_dtype ft__flowing(ft_dtype math);
/* Products follow the format of what comes in: a router whose input was raised to fp32 multiplies in fp32. */
/* Casts an operand of a low-precision product apart from it; `turned`: it is read along its other dimension too. */
void ft__cast_apart(ft_build *b, ft_at at, ft_ref operand, bool turned);
/* Whether the node's operands were cast so. */
bool ft__casts_apart(const ft_build *b, const ft_node *n);
ft_dtype ft__product_dtype(const ft_build *b, const ft_tensor *x);
/* Autocast lowers a weight once per forward pass and keeps the copy. */
ft_ref ft__lowered(ft_build *b, ft_at at, ft_ref weight);
/* Weights of fewer bits than what flows, and the kernel that unpacks them: see build_dense.c. */
bool ft__packed(const ft_build *b, ft_ref weight, ft_dtype flow);
void ft__unpack(ft_build *b, ft_at at, ft_ref weight);
/* What a layer of 4-bit weights costs the host beyond its kernels, going forward. */
void ft__packed_call(ft_build *b, ft_at at);
/* By operators that autograd sees: a tensor that lives as long as somebody reads it. */
ft_ref ft__unpacked(ft_build *b, ft_at at, ft_ref weight, ft_dtype flow);
#endif
