/* An ONNX graph being built: what each value has become, and what the files of operators share. */
#ifndef FT_IMPORT_ONNX_RUN_H
#define FT_IMPORT_ONNX_RUN_H
#include "graph/emit.h"
#include "import/onnx/graph.h"

typedef enum ft_onnx_kind {
    FT_ONNX_NOTHING, /* not yet made */
    FT_ONNX_MADE,    /* by a node of the step, or given to it */
    FT_ONNX_FIXED,   /* known before the step: constants, arithmetic on shapes */
    FT_ONNX_WEIGHT   /* a parameter, or one in other clothes */
} ft_onnx_kind;

/* A value with its shape. `order` are its axes as they lie in memory, the outermost first: transpositions cost nothing
 * until somebody needs another order. */
typedef struct ft_onnx_item {
    ft_onnx_kind kind;
    int type, dims;
    int64_t dim[FT_ONNX_DIMS];
    uint8_t order[FT_ONNX_DIMS];
    bool gaps;                   /* other elements lie between, or none at all: a slice, an expansion */
    bool biased;                 /* a product that has added its bias already */
    bool half;                   /* stands for x of silu or rsqrt, whose other half comes next (raised.c) */
    ft_ref raised;               /* one more than the tensor that holds it in fp32; 0: none does */
    bool zero;                   /* fixed: zeros, as many as there may be */
    ft_ref ref;                  /* FT_NONE until somebody needs it */
    int32_t source;              /* weights: the initialiser */
    const ft_onnx_number *known; /* contents; NULL when nobody knows */
} ft_onnx_item;

typedef struct ft_onnx_run {
    ft_maker *m;
    ft_build *b;
    const ft_onnx *o;
    ft_onnx_item *items;
    const ft_onnx_node *at; /* the node being built */
    ft_at label;            /* its place: a name in reports, and a site */
    ft_onnx_item nowhere;   /* for results that nobody takes */
    bool nhwc;              /* images lie channels-last */
    bool raises;            /* a norm that is written out was raised to fp32 */
    bool fuse;              /* written-out attention becomes the request's kind */
    bool deferred;          /* the node's sizes are not known beforehand, but the file declares its results */
} ft_onnx_run;

typedef struct ft_onnx_rule {
    const char *op;
    int least; /* operands */
    void (*build)(ft_onnx_run *r);
    const char *word; /* what `build` makes of it, where several share one */
} ft_onnx_rule;

/* Fails, naming the node. Keeps the first failure. */
void ft__onnx_fail(ft_onnx_run *r, ft_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));
static inline bool ft__onnx_failed(const ft_onnx_run *r) { return r->b->status != FT_OK; }

/* -- raised.c ---- */
/* Whether the node at hand is the first half of silu or rsqrt: nothing runs for it. */
bool ft__onnx_half_of_two(ft_onnx_run *r, const ft_onnx_item *x);
/* Operands of a pointwise operator in fp32 where the model would have raised them; `store` holds what replaces them. */
void ft__onnx_raise(ft_onnx_run *r, int count, ft_onnx_item **x, ft_onnx_item store[2]);
/* Behind the product with the root of a mean: back to the model's format. */
void ft__onnx_lower(ft_onnx_run *r, int count, ft_onnx_item *const *x, const ft_onnx_item store[2], ft_onnx_item *y);

/* -- values ------------------------------------------------------------------------------------ */
ft_onnx_item *ft__onnx_optional(ft_onnx_run *r, int k); /* NULL when it was left out */
ft_onnx_item *ft__onnx_operand(ft_onnx_run *r, int k);  /* NULL after an error */
double ft__onnx_count(const ft_onnx_item *x);           /* elements */
bool ft__onnx_same(const ft_onnx_item *x, int dims, const int64_t *dim);
/* The node's k-th result, of this shape; its memory order is the plain one. NULL after an error. */
ft_onnx_item *ft__onnx_result(ft_onnx_run *r, int k, int type, int dims, const int64_t *dim);
ft_onnx_item *ft__onnx_like(ft_onnx_run *r, int k, const ft_onnx_item *x, int type); /* shape and order of x */
void ft__onnx_pass(ft_onnx_run *r, int k, const ft_onnx_item *x);                    /* x itself */
/* What the file declares of a result; false when it says nothing, or not enough. */
bool ft__onnx_declared(const ft_onnx_run *r, int32_t value, int *dims, int64_t *dim);
bool ft__onnx_has(const ft_onnx_run *r, int k); /* somebody takes the k-th result */
/* "axis" and its like, from the end when negative; -1 after an error. */
int ft__onnx_axis(ft_onnx_run *r, int64_t axis, int dims);
/* Numbers of a known operand; false when they are not known. Then the node is taken as the file declares its results,
 * or fails, with `why` as the subject. */
void ft__onnx_unknown(ft_onnx_run *r, const char *why);
bool ft__onnx_numbers(ft_onnx_run *r, const ft_onnx_item *x, const char *why, int *count, int64_t *out);
/* Axes from an operand (opset 13 and later) or an attribute; the count, 0 when left out, -1 after an error. */
int ft__onnx_axes(ft_onnx_run *r, int operand, int dims, int *axes);

/* -- memory ------------------------------------------------------------------------------------ */
void ft__onnx_extent(const ft_onnx_item *x, int64_t *rows, int64_t *cols, bool *strided);
bool ft__onnx_plain(const ft_onnx_item *x);                      /* lies in the order of its axes, without gaps */
bool ft__onnx_lies(const ft_onnx_item *x, const uint8_t *order); /* axes of one element aside */
ft_dtype ft__onnx_dtype(const ft_onnx_run *r, int type, double *bytes);
ft_ref ft__onnx_ref(ft_onnx_run *r, ft_onnx_item *x); /* as it lies; constants and weights are made here */
ft_ref ft__onnx_ref_as(ft_onnx_run *r, ft_onnx_item *x, int64_t rows, int64_t cols);
ft_ref ft__onnx_dense(ft_onnx_run *r, ft_onnx_item *x); /* in plain order, copied where it is not */
ft_ref ft__onnx_product_weight(ft_onnx_run *r, ft_onnx_item *x, int64_t out, int64_t in);
/* A result is what this tensor is; turned into its extent where that differs. */
void ft__onnx_set(ft_onnx_run *r, ft_onnx_item *y, ft_ref ref);

/* -- kernels ----------------------------------------------------------------------------------- */
/* One pointwise kernel over the result's elements. */
void ft__onnx_pointwise(ft_onnx_run *r, const char *op, int count, ft_onnx_item *const *x, ft_onnx_item *y);
/* A kernel that no gradient passes, over the result's elements. */
void ft__onnx_filled(ft_onnx_run *r, const char *op, ft_onnx_item *y);
/* Bytes of operands and results, and so much arithmetic. */
void ft__onnx_other(ft_onnx_run *r, const char *op, double flops);
/* Contents of the first result from those of the operands; false when that cannot be. */
bool ft__onnx_fold(ft_onnx_run *r, ft_onnx_item *y);
ft_onnx_number *ft__onnx_room(ft_onnx_run *r, ft_onnx_item *y); /* for contents; NULL when it is too large for them */
/* Which element of x meets element `index` of y, to whose shape x is broadcast. */
size_t ft__onnx_met(const ft_onnx_item *x, const ft_onnx_item *y, size_t index);
int ft__onnx_broadcast(ft_onnx_run *r, int count, ft_onnx_item *const *x, int64_t *dim); /* dims; -1 after an error */

/* -- operators: one list per file -------------------------------------------------------------- */
extern const ft_onnx_rule ft__onnx_pointwise_rules[], ft__onnx_product_rules[], ft__onnx_move_rules[],
    ft__onnx_copy_rules[], ft__onnx_slice_rules[], ft__onnx_pick_rules[], ft__onnx_row_rules[], ft__onnx_norm_rules[],
    ft__onnx_conv_rules[], ft__onnx_vision_rules[], ft__onnx_fused_rules[], ft__onnx_microsoft_rules[],
    ft__onnx_quantised_rules[], ft__onnx_recurrent_rules[], ft__onnx_norm_microsoft_rules[],
    ft__onnx_quantised_microsoft_rules[];
/* x in another shape of as many elements, as the first result; a copy where memory wants one (moves.c). */
void ft__onnx_reshaped(ft_onnx_run *r, ft_onnx_item *x, int dims, const int64_t *dim);
/* y, a part of x with the same axes, as a view; `together`: nothing lies between its elements (slices.c). */
void ft__onnx_part_of(ft_onnx_run *r, ft_onnx_item *x, ft_onnx_item *y, bool together);
bool ft__onnx_outermost(const ft_onnx_item *x, int axis); /* parts along it lie together */
/* conv.c: what quantised convolutions share. */
void ft__onnx_conv_of(ft_onnx_run *r, ft_onnx_item *x, ft_onnx_item *weight, ft_onnx_item *bias, int type);
bool ft__onnx_attend(ft_onnx_run *r, const ft_onnx_core *core);
#endif
