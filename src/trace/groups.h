/* Equal operators of a trace together: what they took, and what they should take on a GPU. */
#ifndef FT_TRACE_GROUPS_H
#define FT_TRACE_GROUPS_H
#include "kernel/kernel.h"
#include "trace/aten.h"
#include "trace/record.h"

typedef enum ft_trace_group_kind {
    FT_GROUP_OP,     /* an operator with its inputs */
    FT_GROUP_KERNEL, /* kernels that no operator owns, or whose inputs were not recorded: by their name */
    FT_GROUP_UP,     /* copies from the host */
    FT_GROUP_DOWN,   /* copies to the host */
    FT_GROUP_AROUND, /* copies and fills inside the GPU that no operator owns */
    FT_GROUP_EXCHANGE
} ft_trace_group_kind;

typedef struct ft_trace_group {
    ft_trace_group_kind kind;
    int32_t name;          /* of the operator or the kernel, in the record */
    int32_t inputs;        /* FT_TRACE_NONE: not recorded */
    int32_t kernel;        /* name of its longest kernel */
    double calls, kernels; /* over all steps */
    double ms;             /* measured, over all steps */
    double tensor_ms;      /* of that on tensor cores, by the kernels' names */
    double product_ms;     /* of that in kernels for matrix units, by name */
    double bytes;          /* of copies and exchanges */
    double blocks;         /* over all calls */
    double longest_ms;     /* of `kernel`, one launch */
    bool unaligned;        /* a kernel's name says that rows are not aligned */
    ft_called called;      /* of FT_GROUP_OP */
} ft_trace_group;

/* Of an operator in a trace without kernels: a group's number, or one of these. */
enum { FT_OP_VIEW = -1 /* costs the host alone */, FT_OP_INSIDE = -2 /* part of another, a mark, or in no step */ };

typedef struct ft_trace_groups {
    ft_trace_group *at;
    size_t count;
    int32_t *of_op; /* one per operator of the record, where there are no kernels; NULL otherwise */
    ft_dtype usual; /* number format of most of the arithmetic */
} ft_trace_groups;

/* All work that belongs to steps; fills the record's `group`. */
ft_status ft__groups_of(ft_record *r, ft_trace_groups *out, ft_error *err);
/* A trace without kernels: operators that would launch some. */
ft_status ft__groups_of_ops(const ft_record *r, ft_trace_groups *out, ft_error *err);
void ft__groups_free(ft_trace_groups *g);

/* What one call of a group takes on a device. */
typedef struct ft_price {
    double ms, low_ms, high_ms; /* 0: nobody knows */
    double flops, bytes, roofline_ms, launch_ms;
    ft_bound bound;
    const char *family; /* "" for none */
    ft_source source;
    char note[160];
    ft_dtype dtype; /* the arithmetic's, where the device lacks the one asked for */
    bool instead;   /* another format runs in its place */
} ft_price;

/* `as`: products in this format instead of their own; FT_DTYPE_COUNT: as they are. */
ft_status ft__price(const ft_predictor *p, const ft_device *device, const ft_trace_group *g, double quantile,
                    ft_dtype as, ft_price *out, ft_error *err);
#endif
