/* Building a graph: one call per operator that a framework would issue, in order.
 *
 *     ft_ref h = ft__linear(b, FT_AT(MLP_UP_PROJ), x, inter, FT_NO_BIAS, FT_CUT_COLUMNS);
 *     h = ft__pointwise(b, FT_AT(MLP_ACT), "gelu", h);
 *
 * The builder keeps the first error and does nothing after it (`b->status`), so that models read as their layers do.
 * Mixed precision is the builder's: under autocast a product casts its operands (weights once per forward pass), a
 * norm, softmax, power or loss runs in fp32, and a sum of two formats takes the wider one. */
#ifndef FT_GRAPH_BUILD_H
#define FT_GRAPH_BUILD_H
#include "graph/adapter.h"
#include "graph/format.h"
#include "graph/graph.h"

typedef struct ft_build {
    ft_graph *g;
    ft_status status;
    ft_error *err;
    ft_phase phase;
    ft_dtype math;               /* of matrix products */
    ft_dtype stored;             /* of parameters and of what enters: fp32 under autocast */
    double weight_bytes;         /* per element of linear weights; below the dtype's when quantised */
    const ft_formats *formats;   /* of weights by kind of module; NULL: one for all, weight_bytes */
    ft_weight_kernel weights_by; /* whose kernels widen weights of few bits */
    bool shared;                 /* the open module is an expert that every token passes */
    bool autocast;
    bool loss_of_its_own; /* a kernel that no operator of PyTorch's is in: autocast finds nothing to raise to fp32 */
    bool training;        /* gradients flow: dropout runs, autograd keeps what it needs */
    bool frozen;          /* parameters made while this is set are not trained */
    bool untracked;       /* what runs while this is set leaves no gradients; its parameters are made elsewhere */
    int64_t copies;       /* > 0: of parameters of the open block, whatever it repeats */
    bool once;            /* parameters made while this is set serve every iteration of the open block */
    int64_t runs_each;    /* and while this is more than 1 so many iterations each */
    bool conv1d;          /* weights stand [in, out]: gpt2 */
    bool channels_last;   /* images as NHWC */
    bool turned_norms;    /* batch norms of a sequence whose channels lie next to each other, in three axes */
    int64_t lora_rank;    /* > 0: linears inside blocks get a trained adapter */
    ft_adapters adapters; /* which, and how; nothing left to a stack */
    bool quantises_apart; /* attention writes 16 bits: a kernel narrows them for the product behind it */
    bool unpacks_openly;  /* packed weights are unpacked by plain operators that autograd sees (build_adapter.c) */
    int64_t repeat;       /* of the open block; 1 outside */
    int32_t block;        /* number of the open block; -1 before the first */
    int32_t modules;
    ft_ref *casts; /* autocast's cache: parameter -> its low-precision copy, for the open block */
    int32_t cast_count, cast_room;
} ft_build;

ft_build ft__build_begin(ft_graph *g, ft_dtype math, bool autocast, bool training, ft_error *err);

/* Blocks. What `carry` names at the end becomes the next iteration's carry_in, and the next block's input. */
ft_ref ft__block_open(ft_build *b, const ft_block_info *at, int64_t repeat, ft_ref carry);
ft_ref ft__block_close(ft_build *b, ft_ref carry); /* the carry as later blocks see it */
void ft__module(ft_build *b, int count);           /* Python modules entered: host time */

/* Tensors from outside. */
ft_ref ft__input(ft_build *b, int64_t rows, int64_t cols, double element_bytes);
ft_ref ft__activation(ft_build *b, int64_t rows, int64_t cols, ft_dtype dtype);
ft_ref ft__parameter(ft_build *b, const char *name, int64_t rows, int64_t cols);
/* A product's weight: a parameter in the format that weights are stored in, fewer bits when they are quantised. */
ft_ref ft__weight(ft_build *b, const char *name, int64_t out, int64_t in);
/* Until ft__format_close, weights are stored and products computed as the site's kind of module says. */
typedef struct ft_format_was {
    double weight_bytes;
    ft_dtype math;
} ft_format_was;
ft_format_was ft__format_open(ft_build *b, ft_at at);
void ft__format_close(ft_build *b, ft_format_was was);
/* How a product at the site is stored, where a kernel of its own widens it; FT_STORED_AS_COMPUTED otherwise. */
ft_storage ft__format_stored(const ft_build *b, ft_at at);
/* A parameter turns out to be all experts' of its layer. */
void ft__of_experts(ft_build *b, ft_ref parameter, ft_expert_part what);
ft_ref ft__buffer(ft_build *b, int64_t rows, int64_t cols, double element_bytes);
ft_ref ft__cache(ft_build *b, int64_t rows, int64_t cols, double element_bytes);

typedef enum ft_bias { FT_NO_BIAS, FT_BIAS } ft_bias;
ft_ref ft__linear(ft_build *b, ft_at at, ft_ref x, int64_t out, ft_bias bias, ft_cut cut);
/* The same product with a weight that exists already (a tied head), [cols of x, out] elements. */
ft_ref ft__linear_with(ft_build *b, ft_at at, ft_ref x, ft_ref weight, int64_t out, ft_ref bias, ft_cut cut);
/* What linear layers inside blocks get beside their product when adapters are trained; y itself otherwise. */
ft_ref ft__adapted(ft_build *b, ft_at at, ft_ref x, ft_ref y, int64_t out, ft_cut cut);
/* A parameter turns out to be a product's weight: it takes the format that those are stored in. */
void ft__as_weight(ft_build *b, ft_ref parameter);
/* batch products [m,k] x [k,n]; `layout` of ft_op. */
ft_ref ft__matmul(ft_build *b, ft_at at, ft_ref x, ft_ref y, int64_t batch, int64_t m, int64_t n, int64_t k,
                  const char *layout);

/* Pointwise: the operator's name as pointwise.c lists it. `with`: the second operand, of any smaller shape (broadcast)
 * or FT_NONE for a scalar. */
ft_ref ft__pointwise(ft_build *b, ft_at at, const char *op, ft_ref x);
ft_ref ft__pointwise2(ft_build *b, ft_at at, const char *op, ft_ref x, ft_ref with);
ft_ref ft__pointwise_in_place(ft_build *b, ft_at at, const char *op, ft_ref x, ft_ref with);
/* Any shapes that broadcast to rows x cols, up to three operands. */
ft_ref ft__pointwise_over(ft_build *b, ft_at at, const char *op, int count, const ft_ref *x, int64_t rows,
                          int64_t cols);
/* The last node's result x is of another format than its operands': a comparison's byte, an index' eight. What is not
 * a number with a fraction has no gradient. */
void ft__retype(ft_build *b, ft_ref x, ft_dtype dtype, double element_bytes, bool trained);
ft_ref ft__cast(ft_build *b, ft_at at, ft_ref x, ft_dtype to);           /* x itself when it is that already */
ft_ref ft__dropout(ft_build *b, ft_at at, ft_ref x, double probability); /* x when not training or p 0 */
/* act(first half) * second half of x's columns in one kernel, and one for its gradient. */
ft_ref ft__swiglu(ft_build *b, ft_at at, ft_ref both, ft_ref weights);
/* act(gate) * up in one kernel; its gradient is one, too, which writes over both (gate.c). */
ft_ref ft__gate(ft_build *b, ft_at at, ft_ref gate, ft_ref up);
/* relu(x)^2 times a weight per row, in one kernel; one more for its gradient. */
ft_ref ft__relu2_weighed(ft_build *b, ft_at at, ft_ref x, ft_ref weights);
ft_ref ft__add(ft_build *b, ft_at at, ft_ref x, ft_ref y);
ft_ref ft__mul(ft_build *b, ft_at at, ft_ref x, ft_ref y);

/* Row operators. layernorm and rmsnorm make their own weights of the given width. */
ft_ref ft__row(ft_build *b, ft_at at, const char *op, ft_ref x);
/* The last axis' sum, mean ...: [rows, 1]. */
ft_ref ft__reduce(ft_build *b, ft_at at, const char *op, ft_ref x);
/* Along other axes: the result's size, the kernel ("sum_rows", "sum_cols", "mean_all", "argmax") and what it walks
 * over. `what`: "sum", "mean", "amax", "prod", "norm", "var", "logsumexp"; anything else has no gradient. */
typedef struct ft_reduction {
    const char *what, *kernel;
    int64_t rows, cols;               /* of the result */
    int64_t kernel_rows, kernel_cols; /* of what is read, as the kernel sees it */
} ft_reduction;
ft_ref ft__reduce_over(ft_build *b, ft_at at, ft_ref x, const ft_reduction *how);
/* Norms with weights that exist, FT_NONE for none: op "layernorm" or "rmsnorm" over rows of `cols` elements. */
ft_ref ft__norm_with(ft_build *b, ft_at at, const char *op, ft_ref x, ft_ref weight, ft_ref bias);
/* Of `groups` groups of channels each, rows = images * groups. */
ft_ref ft__groupnorm(ft_build *b, ft_at at, ft_ref x, int64_t rows, ft_ref weight, ft_ref bias);
ft_ref ft__layernorm(ft_build *b, ft_at at, ft_ref x, ft_bias bias);
ft_ref ft__rmsnorm_fused(ft_build *b, ft_at at, ft_ref x);
ft_ref ft__softmax(ft_build *b, ft_at at, ft_ref x, bool in_fp32); /* in_fp32: result cast back */

/* Fused attention over q [batch*q_len, heads*dim]. window 0: none. masked: an explicit mask is passed. */
typedef struct ft_attention_shape {
    int64_t batch, heads, kv_heads, q_len, kv_len, head_dim, v_dim, window;
    bool causal, masked;
    ft_attention_library library;
    int64_t packed; /* tokens of a document that attends to itself alone; 0: the sequence does */
} ft_attention_shape;
ft_ref ft__attention(ft_build *b, ft_at at, ft_ref q, ft_ref k, ft_ref v, const ft_attention_shape *shape,
                     double dropout);

/* Memory. */
ft_ref ft__view(ft_build *b, ft_ref x, int64_t rows, int64_t cols, bool strided);
/* The same by how its elements then lie: in order, axes permuted, with other elements in between, or both. */
typedef enum ft_order { FT_IN_ORDER, FT_PERMUTED, FT_GAPS, FT_PERMUTED_GAPS } ft_order;
ft_ref ft__view_as(ft_build *b, ft_ref x, int64_t rows, int64_t cols, ft_order order);
ft_ref ft__detach(ft_build *b, ft_ref x); /* a view that no gradient passes */
ft_ref ft__slice(ft_build *b, ft_ref x, int64_t rows, int64_t cols);
void ft__split(ft_build *b, ft_ref x, int count, const int64_t *cols, ft_ref *out);
/* Two streams under one name, as what a block hands on has to be, and apart again: nothing is copied, either way. */
ft_ref ft__both(ft_build *b, ft_ref x, ft_ref y);
void ft__apart(ft_build *b, ft_ref both, const int64_t rows[2], const int64_t cols[2], ft_ref out[2]);
ft_ref ft__expand(ft_build *b, ft_ref x, int64_t rows, int64_t cols);
ft_ref ft__contiguous(ft_build *b, ft_at at, ft_ref x); /* a copy where x is strided, x otherwise */
ft_ref ft__copy(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols);      /* repeats when larger than x */
ft_ref ft__transpose(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols); /* the last axes swapped */
/* The same for a kernel that reads no other order; going back the gradient is turned too. */
ft_ref ft__turned(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols);
/* The same of what lies across: neighbours of the result lie far apart, a sector of memory is fetched for each. */
ft_ref ft__across(ft_build *b, ft_at at, ft_ref x);
void ft__walks_steps(ft_build *b, int64_t steps, int64_t columns); /* the last kernel sums up columns step by step */
void ft__walks_across(ft_build *b, double elements);               /* the last kernel does so, over so many elements */
ft_ref ft__cat(ft_build *b, ft_at at, int count, const ft_ref *x, int64_t rows, int64_t cols);
/* Joined along an axis further out: so many elements of the result lie in one run of all parts. */
ft_ref ft__cat_runs(ft_build *b, ft_at at, int count, const ft_ref *x, int64_t rows, int64_t cols, double run);
ft_ref ft__assemble(ft_build *b, ft_at at, int count, const ft_ref *x, int64_t rows, int64_t cols); /* x[0..] */
ft_ref ft__append(ft_build *b, ft_at at, ft_ref past, ft_ref x, int64_t rows, int64_t cols);        /* more rows */
ft_ref ft__gather(ft_build *b, ft_at at, ft_ref x, int64_t rows); /* rows of x by an index */
/* One pass over both: every row of x copied to several of `rows`, or several of x summed in one of `rows`. */
ft_ref ft__permute(ft_build *b, ft_at at, ft_ref x, int64_t rows);

/* Latent attention's rotary embeddings (build_rotary.c). The last `cols` columns of x are rotated where they stand. */
ft_ref ft__rotate_tail(ft_build *b, ft_at at, ft_ref x, int64_t cols);
/* kv, a row per head: its first columns and `shared`, a row per token that all heads rotate alike, become *k, the
 * others, `v_cols` of them, *v. */
void ft__rotate_split(ft_build *b, ft_at at, ft_ref kv, ft_ref shared, int64_t v_cols, ft_ref *k, ft_ref *v);

/* Elements of x by an index each (torch.gather), or rows where `by_rows` (index_select): the gradient adds them up by
 * atomics; ft__gather's (x[i]) sorts its indices first. */
ft_ref ft__pick(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols, bool by_rows);
/* The same by torch.gather, whose gradient is handed x, though it does not look at it. */
ft_ref ft__take_along(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols);
/* Elements of `from` (FT_NONE: a number for `count` places) go to places in x: over what was there, or added to it. */
ft_ref ft__scatter(ft_build *b, ft_at at, ft_ref x, ft_ref from, double count, bool adds, bool in_place);
/* Of what was scattered last: `from` goes into a slice, no indices say where (x[...] = from). */
void ft__by_slice(ft_build *b, ft_ref from);
/* The best k of each row, or all of them in order (k = cols): values, and *indices where not NULL. */
ft_ref ft__topk(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols, int64_t k, ft_ref *indices);
/* A constant, a range, random numbers: nothing is read. */
ft_ref ft__fill(ft_build *b, ft_at at, int64_t rows, int64_t cols, ft_dtype dtype, double element_bytes);

ft_ref ft__embedding(ft_build *b, ft_at at, ft_ref indices, int64_t vocab, int64_t width, ft_ref *table);
/* table: in, a table that exists (tied), or FT_NONE to make one; out, the table. */
/* Rows of `bag` indices each, summed by the kernel that reads them (nn.EmbeddingBag). */
ft_ref ft__embedding_bag(ft_build *b, ft_at at, ft_ref indices, int64_t vocab, int64_t width, int64_t bag,
                         ft_ref *table);

ft_ref ft__loss(ft_build *b, ft_at at, ft_ref logits, bool to_fp32);
ft_ref ft__likelihood_loss(ft_build *b, ft_at at, ft_ref likelihood); /* its second half: nll_loss */
/* A number for every pair of elements of x and y, then their mean: mse_loss, or bce_with_logits. y: FT_NONE for labels
 * that are not there. */
ft_ref ft__pair_loss(ft_build *b, ft_at at, const char *op, ft_ref x, ft_ref y);

typedef struct ft_conv_shape {
    int parts; /* 0, or what runs instead of the result: FT_CONV_INPUT of a transposed one */
    int64_t n, c, h, w, k, r, s, stride, pad, groups;
    int space, depth; /* of what it stands for (convolution.h): its axes, 0 for two; how often each image is read */
    unsigned char dilated; /* how far its taps lie apart along the axis where that is most; 0: beside each other */
} ft_conv_shape;
ft_ref ft__conv(ft_build *b, ft_at at, ft_ref x, const ft_conv_shape *shape, ft_bias bias);
/* With a weight that exists and a result of rows x cols, where the shape may stand for something else (a dilated,
 * transposed, one- or three-dimensional filter: convolution.h). */
ft_ref ft__conv_with(ft_build *b, ft_at at, ft_ref x, ft_ref weight, const ft_conv_shape *shape, int64_t rows,
                     int64_t cols);
ft_ref ft__batchnorm(ft_build *b, ft_at at, ft_ref x, int64_t channels);
ft_ref ft__batchnorm_with(ft_build *b, ft_at at, ft_ref x, int64_t channels, ft_ref weight, ft_ref bias);
ft_ref ft__pool(ft_build *b, ft_at at, ft_ref x, int64_t rows, int64_t cols, double window);
/* One kernel from an image to one of another size, without indices: an average, an interpolation ("upsample"), a
 * border ("pad"). */
ft_ref ft__resample(ft_build *b, ft_at at, const char *op, ft_ref x, int64_t rows, int64_t cols, double window);
/* The same, with what is known of how its kernel walks (resize.h). */
struct ft_resize;
ft_ref ft__resize(ft_build *b, ft_at at, const char *op, ft_ref x, int64_t rows, int64_t cols,
                  const struct ft_resize *how);

/* Steps of a recurrent layer behind the product of its inputs (build_recurrent.c): one or two ways, each with its gates
 * [steps * batch, blocks * hidden], the state's weight [blocks * hidden, hidden] and perhaps a second bias. */
typedef struct ft_recurrence {
    int ways;
    ft_ref gates[2], weight[2], bias[2];
    int64_t steps, batch, hidden, blocks; /* blocks: 4 of an LSTM, 3 of a GRU, 1 otherwise */
    int64_t layers, inputs;               /* of the call that it is part of; 0: not said, nothing is held beside it */
} ft_recurrence;
ft_ref ft__recurrence(ft_build *b, ft_at at, const ft_recurrence *r);

/* Anything else: bytes and flops. */
ft_ref ft__other(ft_build *b, ft_at at, const char *op, ft_ref x, int64_t rows, int64_t cols, double bytes,
                 double flops);
void ft__sync(ft_build *b, ft_at at);
#endif
