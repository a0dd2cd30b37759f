/* Fusion's own books: what fusion*.c share. Private to them.
 *
 * fusion.c walks, fusion_group.c decides who runs with whom, fusion_keep.c what the backward pass computes again instead
 * of reading it, fusion_kernel.c what a fused kernel costs, fusion_library.c what a compiler does around library calls.
 */
#ifndef FT_GRAPH_FUSION_H
#define FT_GRAPH_FUSION_H
#include "graph/graph.h"

/* What a node is to a code generator. */
typedef enum ft_part {
    FT_LIBRARY, /* a kernel of its own: products, attention, convolutions, what waits for the host */
    FT_GLUE,    /* no kernel: views */
    FT_POINT,   /* every element of its result on its own: arithmetic, copies, lookups */
    FT_ALONG,   /* reduces along the last axis: softmax, norms, row sums */
    FT_DOWN     /* sums down the columns: gradients of biases and of norms' weights */
} ft_part;

enum { FT_LEAVES = 8 };
enum {               /* of a storage */
    FT_FAR = 1,      /* somebody in another block reads it, or it outlives the block */
    FT_ASKED = 2,    /* a node of another block names it */
    FT_WHOLE_COPY = 4, /* a library call of another block reads it, so that it must exist as a whole */
    FT_AGAIN = 8,    /* readers in other blocks compute it again from its leaves */
    FT_REWRITTEN = 16 /* in place: has several values */
};

typedef struct ft_group {
    int32_t into;             /* merged into that one; its own number otherwise */
    int32_t place;            /* it runs where this node stood */
    int32_t user;             /* the one group that reads from it; -1: none, -2: several, or a library call */
    int32_t first_use;        /* several: the earliest place that does */
    int32_t head, tail, size; /* members */
    double space;             /* elements that it walks over */
    int64_t rows;             /* reductions along rows: how many; 0: it has none */
    float count;
    bool closed;              /* a sum down the columns: nothing joins it */
} ft_group;

/* One fused kernel before it becomes a node. */
typedef struct ft_fused {
    ft_ref *in, *out;
    double *in_bytes;
    int32_t in_count, out_count;
    double bytes, work;       /* moved; instructions per element */
    double space;
    int64_t rows;
    bool outside_only;        /* reads nothing that this block made */
} ft_fused;

typedef struct ft_fusion {
    ft_graph *g;
    int32_t tensors;          /* before the pass: books below are that long */
    /* by tensor */
    ft_ref *root;             /* the tensor that owns the memory */
    /* by root */
    int32_t *maker, *home;    /* node that makes it and its block; -1: it was there */
    int32_t *uses;            /* nodes that read it */
    uint8_t *flags;
    int32_t *leaf_first;
    uint8_t *leaf_count;
    float *leaf_work;
    float *cost;              /* bytes to keep if it has to be there later */
    ft_ref *leaves;
    int32_t leaf_total, leaf_room;
    int32_t *stamp, *slot;    /* marks of the kernel at work */
    int32_t *out_stamp;
    int32_t *writer;          /* node of this block that wrote it last; -1 */
    int32_t *reader;          /* group of this block that read it last; -1 */
    int32_t *written_in;      /* the block for which `writer`, `reader` and `outside` stand */
    bool *outside;            /* read in this block by another kernel than the one that makes it */
    ft_ref *padded;           /* an aligned copy made in this block, or FT_NONE */
    /* by node of the widest block */
    int32_t *group_of, *next;
    int32_t (*from)[FT_NODE_INPUTS]; /* who wrote an input; -1: another block */
    ft_group *groups;
    int32_t group_count;
    uint8_t *part;            /* by node of the graph */
    /* what comes out */
    ft_node *nodes;
    int32_t count, room;
    int32_t mark;
    ft_ref held;              /* the logits, which the caller holds until the backward pass is over */
    bool failed;
} ft_fusion;

ft_part ft__fusion_part(const ft_node *n);
double ft__fusion_space(const ft_graph *g, const ft_node *n);
/* Instructions per element inside a fused kernel. */
double ft__fusion_work(const ft_node *n);

/* Decides FT_AGAIN and FT_FAR for every storage. */
void ft__fusion_keep(ft_fusion *f);
/* Groups the nodes of a block. */
void ft__fusion_group(ft_fusion *f, int32_t block);
static inline int32_t ft__group_find(const ft_fusion *f, int32_t at)
{
    while (f->groups[at].into != at) at = f->groups[at].into;
    return at;
}

void ft__fusion_emit(ft_fusion *f, const ft_node *n);
void ft__fusion_hold(ft_fusion *f, ft_ref x); /* nothing runs, but x is still there */
/* The kernel of a group, and the small ones beside it; returns the number of its node or -1 when nobody needs it. */
int32_t ft__fusion_kernel(ft_fusion *f, int32_t block, int32_t group, ft_fused *out);
/* A node that stays as it is, or nearly. */
void ft__fusion_library(ft_fusion *f, int32_t block, const ft_node *n);
/* A generated kernel over `space` elements. */
ft_node ft__fusion_node(ft_verb verb, ft_phase phase, const char *name, ft_dtype dtype, double space, double bytes,
                        double work);
/* Names what it reads and makes; further nodes without a kernel hold what one node cannot. */
void ft__fusion_emit_wide(ft_fusion *f, ft_node *n, const ft_ref *in, int32_t ins, const ft_ref *out, int32_t outs);
#endif
