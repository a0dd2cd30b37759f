/* A graph: the operators of one step in the order in which a framework issues them, and the tensors between them.
 *
 * Blocks. A model of 126 equal layers is one block with `repeat` 126. A block's nodes are one iteration; the value that
 * walks from one iteration to the next is its carry (`carry_in`, `carry_out`). Tensors of an earlier block may be read
 * by any later one (a rotary table, an encoder's output). Time and memory of the step follow from one iteration of each
 * block and its repeat.
 *
 * Tensors are sizes, not shapes: `cols` is the last axis, `rows` everything before it. What matters beside the size is
 * where the memory is (`storage`: a view has none of its own) and whether a reader has to jump (`strided`).
 *
 * Passes turn graphs into graphs: backward.c appends the gradient of every node, recompute.c repeats forward nodes
 * inside the backward blocks, fusion.c merges nodes as a compiler would. Nothing in here knows a GPU. */
#ifndef FT_GRAPH_GRAPH_H
#define FT_GRAPH_GRAPH_H
#include "base/arena.h"
#include "graph/manner.h"
#include "graph/operator.h"
#include "graph/site.h"

typedef int32_t ft_ref; /* a tensor's number; FT_NONE for none */
#define FT_NONE ((ft_ref)-1)

typedef enum ft_role {
    FT_ACTIVATION, /* made and consumed by the step */
    FT_PARAMETER,  /* lives always; has a gradient and optimizer states when it is trained */
    FT_BUFFER,     /* lives always, never trained: masks, rotary frequencies, batch-norm statistics */
    FT_INPUT,      /* given from outside: tokens, images, labels */
    FT_CACHE,      /* keys and values of earlier tokens */
    FT_GRADIENT    /* of a parameter: lives from the backward pass to the end of the step */
} ft_role;

/* Parameters of a mixture of experts, and their gradients, are spread over ranks in their own way. */
typedef enum ft_expert_part { FT_NO_EXPERT, FT_EXPERT_WEIGHT, FT_EXPERT_BIAS } ft_expert_part;

typedef struct ft_tensor {
    int64_t rows, cols;
    double element_bytes; /* 8 for indices, 1 for masks, 0.5 for packed 4-bit weights */
    ft_dtype dtype;       /* of the mathematics on it; masks and indices keep the graph's */
    ft_role role;
    bool trained;          /* a gradient flows to it */
    bool strided;          /* a transposed or sliced view: not contiguous */
    bool permuted;         /* its axes stand in another order: pointwise results keep it */
    bool across;           /* permuted: neighbours along its last axis lie a sector of memory or more apart */
    bool gaps;             /* strided: other elements lie between its rows (a slice), or none at all (an expansion) */
    ft_ref storage;        /* the tensor whose memory this one views; its own number when it has memory */
    int32_t block;         /* that made it; -1 for parameters and inputs */
    const char *name;      /* parameters: "layers.mlp.down_proj.weight"; otherwise "". For reports */
    ft_expert_part expert; /* all experts' of a layer */
    int64_t copies;        /* parameters of a repeated block: one per iteration; otherwise 1 */
    double idle;           /* parameters: share of its elements that no checkpoint holds (experts that do nothing) */
    int64_t turns;         /* steps of a loop make it part by part, and each lets go of its own; 0, 1: it is whole */
} ft_tensor;

/* What a node is to autograd and to a compiler. The op says what it is to the GPU. */
typedef enum ft_verb {
    FT_DO_LINEAR,    /* y = x W (+ bias): in x, weight, bias */
    FT_DO_MATMUL,    /* batched product of two activations */
    FT_DO_ATTENTION, /* fused: in q, k, v (, mask); out y, statistics */
    FT_DO_POINTWISE, /* one of pointwise.h's names */
    FT_DO_ROW,       /* softmax, norms, reductions along the last axis: one of ft__row_ops */
    FT_DO_EMBEDDING, /* in indices, table */
    FT_DO_COPY,      /* makes a strided tensor contiguous, repeats keys for grouped queries */
    FT_DO_CAT,
    FT_DO_FILL,
    FT_DO_VIEW,   /* no kernel: reshape, transpose, chunk, expand */
    FT_DO_SLICE,  /* a view whose gradient is a zeroed tensor with one part filled */
    FT_DO_SPLIT,  /* views whose gradients are concatenated */
    FT_DO_EXPAND, /* a broadcast view: its gradient is summed */
    FT_DO_LOSS,   /* cross-entropy: log_softmax and negative log likelihood */
    FT_DO_CONV,
    FT_DO_BATCHNORM,
    FT_DO_POOL,
    FT_DO_EXPERTS, /* a serving engine's fused experts: in x, weights */
    FT_DO_SCAN,    /* state-space recurrence */
    FT_DO_RECUR,   /* steps of a recurrent layer, launched one after the other: in gates, weights, biases */
    FT_DO_GATHER,  /* rows picked by index (routing); its gradient scatters */
    FT_DO_PERMUTE, /* rows copied to their experts, or summed back from them, in one pass; undone by the other */
    FT_DO_ROTATE,  /* a rotary embedding that moves what it rotates: undone by one like it, nothing is saved */
    FT_DO_OPTIMIZER,
    FT_DO_OTHER, /* memory-bound by its bytes */
    FT_DO_SYNC,  /* the host waits for the GPU */
    FT_DO_COMM,  /* a collective among ranks: see ft_exchange */
    FT_VERB_COUNT
} ft_verb;

typedef enum ft_phase { FT_FORWARD, FT_BACKWARD, FT_RECOMPUTE, FT_UPDATE, FT_PHASE_COUNT } ft_phase;

/* Classes in which reports add kernels up (the classes of Ivanov et al., "Data Movement Is All You Need"). */
typedef enum ft_class {
    FT_CONTRACTION,   /* matrix products, convolutions, fused attention */
    FT_NORMALISATION, /* softmax, layer norms, reductions */
    FT_ELEMENTWISE,   /* pointwise, copies, gathers, optimizers */
    FT_CLASS_COUNT
} ft_class;

/* How a product may be cut over tensor-parallel ranks. */
typedef enum ft_cut { FT_WHOLE, FT_CUT_COLUMNS, FT_CUT_ROWS } ft_cut;

/* What ranks exchange at a node, and what its gradient exchanges: tensor parallelism's f is nothing forward and an
 * all-reduce backward, its g the other way round. */
typedef enum ft_exchange_kind {
    FT_EXCHANGE_NONE,
    FT_EXCHANGE_ALL_REDUCE,
    FT_EXCHANGE_ALL_GATHER,
    FT_EXCHANGE_REDUCE_SCATTER,
    FT_EXCHANGE_ALL_TO_ALL,
    FT_EXCHANGE_SEND_RECV
} ft_exchange_kind;
/* Along which axis of the layout the ranks lie. */
typedef enum ft_axis {
    FT_AXIS_TENSOR,
    FT_AXIS_CONTEXT,
    FT_AXIS_EXPERT,
    FT_AXIS_DATA,
    FT_AXIS_PIPELINE,
    FT_AXIS_COUNT
} ft_axis;

typedef struct ft_exchange {
    ft_exchange_kind kind, gradient;
    ft_axis axis;
    double bytes, gradient_bytes; /* the whole buffer, as nccl-tests counts it */
} ft_exchange;

enum { FT_NODE_INPUTS = 8, FT_NODE_OUTPUTS = 4 };

typedef struct ft_node {
    ft_op op; /* kind FT_OP_OTHER with no bytes: nothing runs on the GPU */
    ft_verb verb;
    ft_phase phase;
    ft_cut cut;
    ft_at at;         /* its site, by which passes tell it from others; NULL: none */
    const char *name; /* "attn.q_proj": the site's, for reports */
    ft_ref in[FT_NODE_INPUTS], out[FT_NODE_OUTPUTS];
    uint8_t in_count, out_count;
    bool core;            /* what Megatron's selective recomputation drops: attention's score matrix, or else what
                             * the modules that it is told of make (model/recompute_mask.c) */
    bool spared;          /* what full recomputation keeps all the same: a policy by names (model/recompute_mask.c) */
    bool in_place;        /* out[0] is in[0]'s memory */
    bool keeps;           /* its gradient is handed what it read, though it does not look at it (torch.gather) */
    bool transposes;      /* views: an axis moved, so that rows became strided or back; norms: x is put in rows */
    bool mean;            /* a reduction that divides: its gradient divides too */
    bool synced;          /* the host waits for its result (nonzero, item) */
    bool assigns;         /* copies into parts of one tensor, each of which copies the whole gradient going back */
    bool inside;          /* launched by a library within the call of its neighbour: nothing dispatches it */
    bool streams;         /* split, cat: two streams under one name, nothing is copied */
    bool contracts;       /* pointwise: products that are summed up next, a contraction that is written out */
    bool cast;            /* products in 8 and 4 bits: the gradient was quantised for the one before */
    bool adds;            /* scattered elements are added to what is there; picked ones come back by atomics */
    const char *rule;     /* reductions: words of the gradient (pointwise.h) where the kernel does not say; NULL */
    float count;          /* how often it is launched where it stands (a Python loop over experts) */
    float traffic;        /* bytes it moves over the bytes its op says; 1 unless a fusion or a cast changed it */
    unsigned manner;      /* bits of ft_manner: how the kernel differs from what the op says; 0 */
    double each;          /* rows, of the manners that count them; images that are cut into windows; places of an
                           * average's window, border and all */
    float empty;          /* of a product's rows, the share that only fills up what experts get; 0 */
    double held_bytes;    /* convolutions: what the model's own code holds while it runs, its result counted, where a
                             * run of it was counted (ft_graph.held_bytes); 0: not said */
    float back;           /* FT_DO_OTHER: bytes that its gradient moves over its own; 0: 2 */
    float effort;         /* its time over the op's, for reasons that were asked for (an uneven load of experts); 1 */
    ft_walk walk;         /* of kernels that wait for memory */
    float trips, blocks;  /* of such a walk: dependent trips of a thread block, how many blocks */
    float host_ops;       /* framework operators behind it on the host: views, checks; 0: by verb */
    float workspace;      /* bytes it holds while it runs */
    int32_t members;      /* operators that a fusion merged into it; 0: none, it is itself */
    ft_exchange exchange; /* FT_DO_COMM */
} ft_node;

typedef struct ft_block {
    const char *name; /* "embed", "layers", "head": for reports */
    ft_block_kind kind;
    int32_t trunk; /* ft_trunk, or a number behind them */
    ft_phase phase;
    int32_t first, count; /* nodes */
    int64_t repeat;
    bool reversible; /* its iterations are undone: going back what they were given is made again, not kept */
    ft_ref carry_in, carry_out;
    ft_ref fed_by;   /* the tensor of an earlier block that the first iteration's carry_in is */
    int32_t mirror;  /* backward blocks: the forward block they undo; otherwise -1 */
    int32_t modules; /* Python modules called in one iteration */
    bool kept;       /* nothing of it runs again, whatever the step recomputes */
} ft_block;

/* Who casts operands of products in fewer than 16 bits: the product's own library, or kernels apart: plain operators,
 * or what a compiler makes of them. */
typedef enum ft_casts { FT_CASTS_INSIDE, FT_CASTS_PLAIN, FT_CASTS_COMPILED } ft_casts;

typedef struct ft_graph {
    ft_casts casts;    /* where gradients flow */
    bool keeps_inputs; /* products of packed weights keep what they read, though no gradient asks for it */
    ft_arena *arena;
    ft_tensor *tensors;
    ft_node *nodes;
    ft_block *blocks;
    ft_at *sites; /* of its own, beside the builders': a table by name */
    uint32_t site_count, site_room;
    int32_t tensor_count, tensor_room, node_count, node_room, block_count, block_room;
    ft_dtype dtype; /* of the mathematics */
    double
        parameters; /* elements, every copy counted; tied weights once, idle ones not: memory has those all the same */
    double trained_parameters;
    double parameter_bytes;
    int64_t parameter_tensors, trained_tensors;
    double buffer_bytes;
    double held_bytes;    /* most that an inference pass's tensors hold at once in 16 bits, where a run of the model's
                             * own code has counted it; 0: not known */
    bool layers_compiled; /* and nothing else: a compiler saw every layer by itself */
    double active_parameters; /* that one token passes through: all but the experts it is not routed to */
} ft_graph;

ft_graph *ft__graph_new(ft_arena *arena, ft_dtype dtype);

/* Appending. They return FT_NONE / NULL when memory is exhausted; the builder turns that into an error once. */
ft_ref ft__graph_tensor(ft_graph *g, const ft_tensor *t);
ft_node *ft__graph_node(ft_graph *g, const ft_node *n); /* the pointer lives until the next append */
/* Nodes before the one at `at`, or at the end of this block; false: no memory. */
bool ft__graph_insert(ft_graph *g, int32_t block, int32_t at, const ft_node *nodes, int count);
ft_block *ft__graph_block(ft_graph *g, const ft_block *b);

/* A site of the graph's own (site.c): that of this name, made as `like` says where there is none; a builder's as it is.
 * `like->of` NULL means that it is a module itself. NULL when memory is exhausted. */
ft_at ft__graph_site(ft_graph *g, const ft_site_info *like);
ft_at ft__graph_site_find(const ft_graph *g, const char *name); /* NULL: none */

static inline double ft__tensor_numel(const ft_tensor *t) { return (double)t->rows * (double)t->cols; }
static inline double ft__tensor_bytes(const ft_tensor *t) { return ft__tensor_numel(t) * t->element_bytes; }
/* What of it is there at once. */
static inline double ft__tensor_held(const ft_tensor *t)
{
    return ft__tensor_bytes(t) / (t->turns > 1 ? (double)t->turns : 1);
}
static inline bool ft__node_runs(const ft_node *n) { return !(n->op.kind == FT_OP_OTHER && n->op.u.other.bytes <= 0); }
static inline ft_site ft__node_site(const ft_node *n) { return n->at ? n->at->site : FT_SITE_NONE; }
/* Part of a module: of FT_SITE_MLP are the network's products and its activation. */
static inline bool ft__node_within(const ft_node *n, ft_site module) { return n->at && n->at->of->site == module; }
ft_class ft__node_class(const ft_node *n);
/* One that others like it precede or follow: what checkpoints wrap and FSDP gathers at once. Embeddings, heads and
 * losses are none. */
bool ft__block_is_layer(const ft_block *b);
const char *ft__verb_name(ft_verb v);
const char *ft__phase_name(ft_phase p);
const char *ft__class_name(ft_class c);

/* Sums parameters and buffers up anew, after a pass changed them. */
void ft__graph_recount(ft_graph *g);

/* Arithmetic of the graph: `model` counts forward and backward, a causal mask by halves; `executed` all that runs. */
double ft__graph_flops(const ft_graph *g, ft_phase phase);

/* Passes. Each leaves the graph as it was when it fails. */
typedef enum ft_recompute { FT_RECOMPUTE_NONE, FT_RECOMPUTE_SELECTIVE, FT_RECOMPUTE_FULL } ft_recompute;
/* Appends the backward blocks: the gradient of every node, in reverse, accumulated where a tensor has several
 * readers. With recomputation the backward block first runs the forward nodes again whose results were dropped, as
 * PyTorch does it (`pytorch`) or Megatron: recompute.c. Over `accumulate` > 1 micro-batches parameter gradients are
 * added to those of the micro-batches before. */
typedef struct ft_accumulation {
    double micros; /* that add up by kernels of their own; 0: products do it, or there is one */
    bool buffer;   /* into memory that is there before (Megatron's main_grad): the first micro-batch's too */
    bool wide;     /* in fp32 beside 16-bit gradients */
    bool kept;     /* gradients of the step before are there, set to zero: every micro-batch is added to them */
    bool widened;  /* those are copied into fp32 first, by a kernel of their own */
} ft_accumulation;
ft_status ft__graph_backward(ft_graph *g, ft_recompute recompute, bool pytorch, ft_accumulation sums, ft_error *err);
/* How a compiler merges. */
enum {
    FT_FUSE_LAYERS_ONLY = 1,      /* in layers, each compiled by itself, and not in what stands around them */
    FT_FUSE_REDUCTIONS_END = 2,   /* a reduction ends its kernel: who wants its result reads the rows again */
    FT_FUSE_POINTWISE = 8,        /* pointwise operators alone: no reduction joins them */
    FT_FUSE_LONE_AS_WRITTEN = 16, /* an operator that joins none stays the framework's kernel, views and copies too;
                                     what is kept going forward is read going back, not computed again */
    FT_FUSE_LOSS_ALONE = 32,      /* the loss alone leaves the compiler, not the logits */
    FT_FUSE_KEEPS_FUNCTIONS = 4,  /* values of costly functions go through memory, where several want them */
};
/* Whether Inductor turns the images of such a net to channels-last (turned.c). */
bool ft__graph_turns_pictures(const ft_graph *g, bool training);
/* Merges pointwise chains and pointwise into reductions, as Inductor does, or otherwise by `how`. */
ft_status ft__graph_fuse(ft_graph *g, unsigned how, ft_error *err);
/* Of an inference pass: products and convolutions take in what follows them element by element, and tensors are joined
 * by being written where they belong (taken_in.c). */
ft_status ft__graph_take_in(ft_graph *g, ft_error *err);
/* Products of one row become kernels that stream their weights; before anything is merged those of 8 bits are marked
 * that stand behind a gate (fusion_vector.c). */
void ft__graph_gate_vectors(ft_graph *g);
void ft__graph_stream_vectors(ft_graph *g);
#endif
