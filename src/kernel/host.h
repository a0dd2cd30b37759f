/* The host: how long it takes to issue what the GPU runs. */
#ifndef FT_KERNEL_HOST_H
#define FT_KERNEL_HOST_H
#include "base/json.h"
#include "graph/graph.h"

/* What one host takes, as data/hosts/NAME.json has it: microseconds unless a name says otherwise. */
typedef struct ft_host_operator {
    double forward_us, recorded_us; /* without and with autograd */
    double backward_us;             /* and in the update */
} ft_host_operator;
typedef struct ft_host_pass {
    double forward_us, backward_us, update_us;
} ft_host_pass;
typedef struct ft_host {
    char name[48];
    char beside[48]; /* the GPU that it was measured with; empty: none alone */
    char lines[48];  /* "GeForce, TITAN": words in the titles of GPUs that stand in such machines; empty: none */
    ft_host_operator operators[FT_VERB_COUNT];
    struct {
        double module_us, loop_us, walk_us;
    } python; /* entering a module; an operator without a model around it; looking at a module or a parameter */
    struct {
        double launch_us, wait_us;
    } compiled;                                         /* of one kernel by a compiler's wrapper; for the GPU */
    ft_host_pass pass_eager, pass_compiled, pass_graph; /* before a pass's first kernel */
    struct {
        double forward_us, again_us, reentrant_forward_us, reentrant_again_us, policy_us;
    } checkpoints;
    struct {
        double fsdp_forward_us, fsdp_backward_us, fsdp_update_us, ddp_backward_us;
        double module_forward_us, module_again_us, module_backward_us, module_update_us;
    } wrappers; /* per tensor */
    struct {
        double call_us, gather_us, scatter_us, copy_us, spread_us;
    } lists; /* see ft_listing */
    struct {
        double fused_us, foreach_us, clip_us, zero_us; /* per parameter tensor */
        double foreach_call_us, clip_call_us;          /* whatever their number, beyond the pass */
    } update;
    struct {
        double new_shape_us;
    } attention_plan;
    struct {
        double latency_us, gap_us, replay_gap_us, queue;
    } launches; /* the last one in kernels */
    struct {
        double operator_us, views;
    } one_figure; /* what us_per_op multiplies; views as dear as one operator */
    struct {
        double share;
    } adapters; /* operators of a step with adapters by software that nobody named, over those of peft's */
    struct {
        double share;
    } interval; /* how much hosts differ, of the host's time, at the 0.9 level */
} ft_host;

/* Those compiled in from data/hosts by scripts/embed_hosts.py, sorted by name. */
extern const size_t ft__host_count, ft__usual_host;
extern const ft_host ft__hosts[];
const ft_host *ft__host_usual(void);
/* The one that stood beside this GPU where one was measured, else that of its line of products, else the usual one. */
const ft_host *ft__host_of_device(const ft_device *device);
const ft_host *ft__host_find(const char *name); /* NULL: none of that name */
/* A file or an object: what it leaves out is its "base"'s, the usual host's where it names none. `where` as in
 * base/json.h. */
ft_status ft__host_read(const json_t *object, const char *where, ft_host *out, ft_error *err);
/* A name of data/hosts or the path of a file. */
ft_status ft__host_open(const char *name_or_path, ft_host *out, ft_error *err);

/* Who issues the kernels. */
typedef enum ft_dispatch {
    FT_DISPATCH_EAGER,    /* Python and the framework's dispatcher, operator by operator */
    FT_DISPATCH_SCRIPT,   /* an interpreter in C++, operator by operator: no Python between them */
    FT_DISPATCH_COMPILED, /* a compiler's wrapper: one call per kernel */
    FT_DISPATCH_GRAPH,    /* recorded once, replayed with one launch */
    FT_DISPATCH_NONE,     /* costs nothing: the GPU alone */
    FT_DISPATCH_COUNT
} ft_dispatch;

/* A host at work. */
typedef struct ft_issuer {
    const ft_host *host; /* NULL: the usual one */
    ft_dispatch dispatch;
    bool gradients;               /* autograd records the forward pass */
    double us_per_op;             /* > 0: what one eager operator costs instead of the table */
    bool lowers;                  /* autocast casts operands inside the calls of their operators */
    double share;                 /* > 0: what operators and modules cost of the table's (ft_host.adapters) */
    bool ahead;                   /* a pass is issued while the one before it runs */
    bool lean_hooks;              /* checkpoints re-enter autograd, replicas have no hooks in Python: Megatron */
    double grouped_product_calls; /* > 1: a product of many experts costs the host so many plain ones */
    double low_product_calls;     /* > 1: products in fewer than 16 bits cost the host so many of 16 */
} ft_issuer;

/* Host time of one launch of this node, views and checks behind it included, in us. */
double ft__host_node_us(const ft_issuer *by, const ft_node *n);
/* Of one CUDA graph of a module: Python calls an autograd function of the library's that copies what it is given and
 * launches the graph, which costs about what a linear layer's operator does. */
double ft__host_graph_us(const ft_issuer *by, ft_phase phase);
/* What the pause behind a kernel is shorter by where it is replayed. */
double ft__host_replayed_us(const ft_issuer *by);
/* Calls in a row that this node's time is spread over, the host's and the GPU's. */
double ft__host_calls(const ft_node *n);
/* Of one small operator in a loop with no model's Python around it. */
double ft__host_loop_us(const ft_issuer *by);
/* Host time of entering `modules` Python modules once, in us. */
double ft__host_module_us(const ft_issuer *by, double modules);
/* Of loops in Python that look at `things`, modules and parameters, one after the other. */
double ft__host_walk_us(const ft_issuer *by, double things);
/* Once per pass over the model: the Python around it, the replay of a recorded graph. */
double ft__host_results_us(const ft_issuer *by); /* what a forward pass ends with */
double ft__host_pass_us(const ft_issuer *by, ft_phase phase);
/* What checkpointing adds to a layer's pass beyond running its operators: FT_FORWARD once, FT_RECOMPUTE when it runs
 * again. */
double ft__host_checkpoint_us(const ft_issuer *by, ft_phase phase);
/* Whether checkpointed layers go forward without autograd: those that re-enter it when they run again. */
bool ft__host_reenters(const ft_issuer *by);
/* What a policy adds to it that is asked of every operator: selective checkpoints, per pass over so many of them. */
double ft__host_policy_us(const ft_issuer *by, double operators);
/* What a wrapper that keeps replicas together adds to a pass over so many parameter tensors: DDP's copies, the hooks of
 * FSDP around a layer, DeepSpeed's around every module. */
typedef enum ft_wrapper { FT_WRAPPER_COPIES, FT_WRAPPER_UNITS, FT_WRAPPER_MODULES } ft_wrapper;
double ft__host_wrapper_us(const ft_issuer *by, ft_wrapper wrapper, ft_phase phase, double tensors);
/* What Python takes that autograd calls behind so many parameters' gradients. */
double ft__host_hooks_us(const ft_issuer *by, double tensors);
/* Exchanges of lists of tensors, one for every rank: what the call costs, and what one entry. */
typedef enum ft_listing {
    FT_LIST_CALLED,    /* all around the loops */
    FT_LIST_GATHERED,  /* Python makes a view of the buffer for it */
    FT_LIST_SCATTERED, /* of the gradient */
    FT_LIST_COPIED,    /* the framework copies it out of its own buffer, or into it: a view and a launch */
    FT_LIST_SPREAD     /* Python copies a tensor's part out of a buffer of many tensors */
} ft_listing;
double ft__host_list_us(const ft_issuer *by, ft_listing what);
/* What the attention library needs when it meets a shape for the first time. */
double ft__host_plan_us(const ft_issuer *by, const ft_device *device);
/* From the host's launch to the kernel's first instruction on an idle GPU. */
double ft__host_latency_us(const ft_issuer *by);
/* Between two kernels of a stream that is never empty. */
double ft__host_gap_us(const ft_issuer *by);
/* Kernels that wait in the stream before the host is held up. */
double ft__host_queue(const ft_issuer *by);
/* How much longer than a process takes on average the slowest of so many takes. */
double ft__host_slowest(const ft_issuer *by, int64_t processes);
/* How much hosts differ: a share of the host's time at the 0.9 level. */
double ft__host_interval(const ft_issuer *by);
#endif
