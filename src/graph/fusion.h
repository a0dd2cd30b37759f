/* Fusion's own books: what fusion*.c share. Private to them.
 *
 * fusion.c walks, fusion_member.c knows the operators, fusion_group.c decides who runs with whom, fusion_keep.c what
 * the backward pass computes again instead of reading it, fusion_kernel.c what a fused kernel moves, fusion_library.c
 * what a compiler does around library calls, fusion_joined.c what it copies together, fusion_moments.c what runs before
 * a norm, fusion_over.c what is written over, fusion_picture.c what it makes of windows, fusion_vector.c which of the
 * library's kernels it does not call. */
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

enum { FT_USERS = 4, FT_HELD = 8, FT_FUSION_OPERANDS = FT_NODE_INPUTS + FT_NODE_OUTPUTS };
/* Without a backward pass nobody asks for the residual stream itself. Inductor writes a sum that several kernels read
 * only when it has more than four operands (realize_reads_threshold); until then each of them adds the operands up
 * again. Of four norms in a row the first reads the stream and one summand, the second two, the third three, and the
 * fourth, with four, writes the stream: 5 streams and 10 summands, where always writing it moves 8 and 4. Where both
 * have one format that is 19 passes with the norms' results instead of 16; under autocast, whose summands are half as
 * wide as the stream, it is nothing. */
#define FT_RUNNING_SUM_BYTES(stream, summand) ((6 * (summand)-3 * (stream)) / 4)

enum {                               /* of a storage */
       FT_FAR = 1,                   /* somebody in another block reads it, or it outlives the block */
       FT_ASKED = 2,                 /* a node of another block names it */
       FT_WHOLE_COPY = 4,            /* a library call of another block reads it, so that it must exist as a whole */
       FT_RECOMPUTED_BY_READERS = 8, /* readers in other blocks compute it again */
       FT_REWRITTEN = 16             /* in place: has several values */
};

typedef struct ft_group {
    int32_t into;           /* merged into that one; its own number otherwise */
    int32_t place;          /* it runs where this node stood */
    int32_t user[FT_USERS]; /* groups that read from it */
    int32_t users;
    int32_t first_use;        /* the earliest place of other readers: library calls, and more groups than fit above */
    int32_t head, tail, size; /* members */
    double space;             /* elements that it walks over */
    int64_t rows;             /* reductions along rows: how many; 0: it has none */
    float count;
    bool closed; /* a sum down the columns: nothing joins it */
    bool window; /* the gradient of a pool is in it */
} ft_group;

/* One fused kernel before it becomes a node. */
typedef struct ft_fused {
    ft_ref *in, *out;
    double *in_bytes;
    int32_t in_count, out_count;
    double bytes, work; /* moved; instructions per element */
    double read;        /* of those bytes: read */
    double summand;     /* bytes of what its last sum adds to a running one; 0: it has none */
    double space;
    int64_t rows;
    bool outside_only; /* reads nothing that this block made */
} ft_fused;

typedef struct ft_fusion {
    ft_graph *g;
    int32_t tensors; /* before the pass: books below are that long */
    /* by tensor */
    ft_ref *root; /* the tensor that owns the memory */
    /* by root */
    int32_t *maker, *home; /* node that makes it and its block; -1: it was there */
    int32_t *uses;         /* nodes that read it */
    uint8_t *flags;
    float *cost; /* bytes to keep if it has to be there later */
    ft_ref *leaves;
    int32_t *stamp, *slot; /* marks of the kernel at work */
    int32_t *out_stamp;
    int32_t *writer;     /* node of this block that wrote it last; -1 */
    int32_t *reader;     /* group of this block that read it last; -1 */
    int32_t *written_in; /* the block for which `writer`, `reader` and `outside` stand */
    bool *outside;       /* read in this block by another kernel than the one that makes it */
    ft_ref *padded;      /* an aligned copy made in this block, or FT_NONE */
    /* by node of the widest block */
    int32_t *group_of, *next;
    int32_t (*from)[FT_NODE_INPUTS]; /* who wrote an input; -1: another block */
    ft_group *groups;
    int32_t group_count;
    uint8_t *part; /* by node of the graph */
    /* what comes out */
    ft_node *nodes;
    int32_t count, room;
    int32_t mark;
    ft_ref held[FT_HELD]; /* what lives to the end of the block for other reasons than its readers */
    int held_count;
    unsigned how;     /* FT_FUSE_… */
    bool inference;   /* no backward pass */
    bool layers_only; /* what is no layer stays as it was written */
    bool failed;
} ft_fusion;

/* Whether a compiler sees this block at all. */
static inline bool ft__fusion_compiles(const ft_fusion *f, int32_t block)
{
    const ft_block *b = &f->g->blocks[block];
    return !f->layers_only || ft__block_is_layer(b->mirror >= 0 ? &f->g->blocks[b->mirror] : b);
}

ft_part ft__fusion_part(const ft_node *n);
double ft__fusion_space(const ft_graph *g, const ft_node *n);
/* Instructions per element inside a fused kernel. */
double ft__fusion_work(const ft_fusion *f, const ft_node *n);

/* What a node's first result is computed from. */
int ft__fusion_operands(const ft_node *n, ft_ref out[FT_FUSION_OPERANDS]);
/* Decides FT_RECOMPUTED_BY_READERS and FT_FAR for every storage. */
void ft__fusion_keep(ft_fusion *f);
/* Groups the nodes of a block. */
void ft__fusion_group(ft_fusion *f, int32_t block);
static inline int32_t ft__group_find(const ft_fusion *f, int32_t at)
{
    while (f->groups[at].into != at) at = f->groups[at].into;
    return at;
}

/* Whether a storage of this block is more than a value inside its kernel. */
static inline bool ft__fusion_written(const ft_fusion *f, ft_ref root)
{
    return (f->flags[root] & FT_FAR) || f->outside[root] || f->g->tensors[root].role == FT_GRADIENT;
}

void ft__fusion_emit(ft_fusion *f, const ft_node *n);
void ft__fusion_hold(ft_fusion *f, ft_ref x); /* nothing runs, but x is still there */
/* The kernel of a group, and the small ones beside it; returns the number of its node or -1 when nobody needs it. */
int32_t ft__fusion_kernel(ft_fusion *f, int32_t block, int32_t group, ft_fused *out);
/* The gradient of elements that were picked one by one (torch.gather): added to their places atomically. */
static inline bool ft__fusion_puts_back(const ft_node *n)
{
    return n->verb == FT_DO_COPY && n->in_place && n->phase == FT_BACKWARD && n->in_count == 3 && n->out_count &&
           n->walk == FT_WALK_ATOMIC;
}
/* An interpolation of what a product with a bias made: Inductor adds the bias at every read, which makes eight of four,
 * more than it computes inside of others (realize_reads_threshold: 4). Two partial sums of it are written, in fp32. */
enum { FT_PARTIAL_SUMS = 2 };
bool ft__fusion_partial_sums(const ft_fusion *f, const ft_node *n);
/* The operand with the most bytes. */
int32_t ft__fusion_widest(const ft_fused *k);
/* Lets a group's results take the memory of operands that die with it, and the logits' gradient that of the logits. */
void ft__fusion_over(ft_fusion *f, const ft_fused *k, int32_t block, int32_t group);
void ft__fusion_over_logits(const ft_fusion *f, const ft_fused *k);
/* Moments of the norm at `at` of the block, whose group's kernel is `k`. */
void ft__fusion_moments(ft_fusion *f, const ft_fused *k, int32_t block, int32_t group, int32_t at);
/* What a group's kernel moves more, and the kernels before it, where a compiler cannot do all of it in one. */
void ft__fusion_apart(ft_fusion *f, int32_t block, int32_t group, ft_fused *k, const ft_node *kernel, int sums);
/* Whether the node at `at` of the graph belongs to a concatenation that a compiler copies together; the copies. */
bool ft__fusion_joins_many(const ft_fusion *f, int32_t block, int32_t at);
void ft__fusion_join(ft_fusion *f, int32_t block, int32_t at);
/* The kernels of a window or an interpolation that is computed by itself; false: it is none. */
bool ft__fusion_picture(ft_fusion *f, const ft_node *n);
/* A node that stays as it is, or nearly. */
void ft__fusion_library(ft_fusion *f, int32_t block, const ft_node *n);
/* A generated kernel over `space` elements. */
ft_node ft__fusion_node(ft_verb verb, ft_phase phase, ft_at at, ft_dtype dtype, double space, double bytes,
                        double work);
/* The site of a kernel that a compiler made, by the name that it gave it; NULL when memory is exhausted. */
ft_at ft__fusion_site(ft_fusion *f, const char *name);
/* Names what it reads and makes; further nodes without a kernel hold what one node cannot. */
void ft__fusion_emit_wide(ft_fusion *f, ft_node *n, const ft_ref *in, int32_t ins, const ft_ref *out, int32_t outs);
#endif
