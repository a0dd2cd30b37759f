/* Scaling rooflines of training in closed form: where arithmetic and exchanges take equally long.
 *
 * The forms are those of Austin et al., "How to Scale Your Model" (2025), the chapter on GPUs. C is the arithmetic of
 * one GPU, W what one collective gets through: inside a domain (NVLink, xGMI, PCIe) the rate of one GPU's links;
 * between domains what the NICs of the members that sit in one domain carry together, and never more than the links. */
#ifndef FT_EXPLAIN_SCALING_H
#define FT_EXPLAIN_SCALING_H
#include "comm/cluster.h"
#include "layout/layout.h"
#include "model/workload.h"

typedef struct ft_scaling_case {
    const ft_arch *arch;
    const ft_device *device;
    const ft_cluster *cluster;
    const ft_workload *work;
    const ft_parallel *parallel;          /* reduce_bytes and gather_bytes are read too */
    double parameters, active_parameters; /* of the whole model; active: that one token passes through */
} ft_scaling_case;

/* What the exchange of gradients and parameters needs in tokens on each GPU. */
typedef struct ft_scaling_data {
    double inside;         /* C/W within one domain */
    double outside;        /* C/W over many domains: data parallel and FSDP alike */
    double reduced_inside; /* data parallel where switches add up: an all-reduce sends half; FSDP gains nothing */
    double reduced_outside;
    double sparsity;         /* E/k: parameters are sent whole, tokens use a part; 1 for a dense model */
    double sparse_outside;   /* C/W E/k */
    double whole_sparsity;   /* parameters / active_parameters: attention and embeddings are dense */
    double ddp, zero1, fsdp; /* as asked: its number formats, recomputation, degrees and the whole model's sparsity */
} ft_scaling_data;

typedef struct ft_scaling_tensor {
    double ffn;     /* F: what of the MLP a token passes through, k experts and the shared ones together */
    double inside;  /* Y < F W/C within a domain */
    double outside; /* Y < domain + F W/C over several */
    double layer;   /* as inside, a whole layer and both passes counted: attention, the gate of a gated MLP,
                              twice the arithmetic going back for as many exchanges */
    int64_t domain; /* GPUs of one domain: past it W falls from links to NICs */
    double limit;   /* the least of domain and inside */
} ft_scaling_tensor;

typedef struct ft_scaling_expert {
    bool any;          /* the model has experts */
    double few;        /* first domain: Z below this, as long as Z < domain * k */
    double wide_ffn;   /* second: F must exceed domain * C/W; then Z is free */
    bool wide;         /* it does */
    double wide_limit; /* Z below this where it does not; infinite where it does */
} ft_scaling_expert;

typedef struct ft_scaling_pipeline {
    double hop;    /* sending one micro-batch on, over computing it forward in a stage */
    double share;  /* the same for the whole batch: (M + S - 2) / M hops */
    double bubble; /* (S - 1) / M, over the work: 1F1B and GPipe */
} ft_scaling_pipeline;

typedef struct ft_scaling {
    double flops;        /* C, FLOP/s: the dense peak of the math's number format */
    double inside_rate;  /* W within a domain, bytes/s */
    double nic_rate;     /* of one GPU between domains, oversubscription taken off; 0: there is one domain */
    double outside_rate; /* W of whole domains: min(domain * nic, inside) */
    const char *inside_name, *outside_name;
    bool inside_reduces, outside_reduces;
    double ffn; /* F: of one expert where there are experts */
    ft_scaling_data data;
    ft_scaling_tensor tensor;
    ft_scaling_expert expert;
    ft_scaling_pipeline pipeline;
} ft_scaling;

/* `err`: the GPU has no peak in the format, the model is no transformer. */
ft_status ft__scaling_of(const ft_scaling_case *c, ft_scaling *out, ft_error *err);

/* W, bytes/s, of a group of `size` members `stride` apart. */
double ft__scaling_rate(const ft_scaling *s, int64_t size, int64_t stride);
/* Exchange over arithmetic of tensor parallel `y` ways: 1 where both take as long. `layer`: as in the struct. */
double ft__scaling_tensor_ratio(const ft_scaling *s, int64_t y, bool layer);
/* The same for experts over `z` ways. */
double ft__scaling_expert_ratio(const ft_scaling *s, const ft_arch *arch, int64_t z);
#endif
