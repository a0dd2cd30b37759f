/* The host: how long it takes to issue what the GPU runs. */
#ifndef FT_KERNEL_HOST_H
#define FT_KERNEL_HOST_H
#include "graph/graph.h"

/* Who issues the kernels. */
typedef enum ft_dispatch {
    FT_DISPATCH_EAGER,    /* Python and the framework's dispatcher, operator by operator */
    FT_DISPATCH_COMPILED, /* a compiler's wrapper: one call per kernel */
    FT_DISPATCH_GRAPH,    /* recorded once, replayed with one launch */
    FT_DISPATCH_NONE,     /* costs nothing: the GPU alone */
    FT_DISPATCH_COUNT
} ft_dispatch;

typedef struct ft_host {
    ft_dispatch dispatch;
    bool gradients;    /* autograd records the forward pass */
    double us_per_op;  /* > 0: what one eager operator costs instead of the table */
    bool hand_fused;   /* Megatron's way of checkpointing instead of the framework's */
} ft_host;

/* Host time of one launch of this node, views and checks behind it included, in us. */
double ft__host_node_us(const ft_host *host, const ft_node *n);
/* Host time of entering `modules` Python modules once, in us. */
double ft__host_module_us(const ft_host *host, double modules);
/* Once per pass over the model: the Python around it, the replay of a recorded graph. */
double ft__host_pass_us(const ft_host *host, ft_phase phase);
/* What checkpointing adds to a layer's pass beyond running its operators: FT_FORWARD once, FT_RECOMPUTE when it runs
 * again. */
double ft__host_checkpoint_us(const ft_host *host, ft_phase phase);
/* What a policy adds to it that is asked of every operator: selective checkpoints, per pass over so many of them. */
double ft__host_policy_us(const ft_host *host, double operators);
/* What a wrapper that keeps replicas together adds to a pass over so many parameter tensors: DDP, or FSDP
 * (`sharded`). */
double ft__host_wrapper_us(const ft_host *host, bool sharded, ft_phase phase, double tensors);
/* Exchanges of lists of tensors, one for every rank: what the call costs, and what one entry. */
typedef enum ft_listing {
    FT_LIST_CALLED,    /* all around the loops */
    FT_LIST_GATHERED,  /* Python makes a view of the buffer for it */
    FT_LIST_SCATTERED, /* of the gradient */
    FT_LIST_COPIED,    /* the framework copies it out of its own buffer, or into it: a view and a launch */
    FT_LIST_SPREAD     /* Python copies a tensor's part out of a buffer of many tensors */
} ft_listing;
double ft__host_list_us(const ft_host *host, ft_listing what);
/* What the attention library needs when it meets a shape for the first time. */
double ft__host_plan_us(const ft_host *host, const ft_device *device);
/* From the host's launch to the kernel's first instruction on an idle GPU. */
double ft__host_latency_us(const ft_host *host);
/* Between two kernels of a stream that is never empty. */
double ft__host_gap_us(const ft_host *host);
/* Kernels that wait in the stream before the host is held up. */
double ft__host_queue(const ft_host *host);
#endif
