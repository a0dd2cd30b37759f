/* host.c: microseconds of the host per operator.
 *
 * Python and the framework's dispatcher issue operators one after the other, and a model's own Python stands between
 * them. PyTorch 2.11 under transformers 5 on a virtual machine's server CPU. The table began as a fit: the measured
 * kernels of 76 models behind a host of so many microseconds per operator, against their measured wall time. It was
 * then rounded by hand and raised by about 1.3, because the same kind of host was up to 1.8 times as slow in other
 * runs; it stands between the two, and either is some 30 % away. What autograd adds was set anew from the host's
 * own time in the forward and backward passes of 30 models on two more machines (data/measurements/h200/pairs.csv):
 * pointwise operators cost less than the first fit had them, products and norms more. In a model an operator costs
 * about three times what it does in a loop of its own (add 8, linear 16, layer norm 15, attention 19 to 26, a view 1.3
 * to 2.5 us).
 * Operators that hold up no measured model (sync, experts, scan, collectives) are set by analogy.
 * No other host was measured: `us_per_op` is for those. */
#include "kernel/host.h"

#include <string.h>

typedef struct verb_cost {
    float forward, recorded; /* without and with autograd */
    float backward;
} verb_cost;

static const verb_cost eager[FT_VERB_COUNT] = {
    [FT_DO_LINEAR] = {40, 56, 54},    [FT_DO_MATMUL] = {34, 44, 48}, [FT_DO_ATTENTION] = {60, 80, 56},
    [FT_DO_POINTWISE] = {27, 32, 28}, [FT_DO_ROW] = {34, 54, 42},    [FT_DO_EMBEDDING] = {42, 52, 46},
    [FT_DO_COPY] = {26, 32, 28},      [FT_DO_CAT] = {30, 38, 32},    [FT_DO_FILL] = {18, 22, 18},
    [FT_DO_VIEW] = {1.5f, 3, 1.5f},   [FT_DO_SLICE] = {3, 5, 4},     [FT_DO_SPLIT] = {3, 5, 4},
    [FT_DO_EXPAND] = {1.5f, 3, 1.5f}, [FT_DO_LOSS] = {45, 58, 50},   [FT_DO_CONV] = {54, 62, 66},
    [FT_DO_BATCHNORM] = {54, 62, 58}, [FT_DO_POOL] = {36, 44, 38},   [FT_DO_EXPERTS] = {65, 78, 78},
    [FT_DO_SCAN] = {34, 46, 46},      [FT_DO_GATHER] = {36, 46, 42}, [FT_DO_OPTIMIZER] = {30, 30, 30},
    [FT_DO_OTHER] = {27, 40, 38},     [FT_DO_SYNC] = {60, 60, 60},   [FT_DO_COMM] = {45, 50, 50},
    [FT_DO_PERMUTE] = {36, 46, 42},   [FT_DO_ROTATE] = {36, 46, 42},
};

static bool is_view(ft_verb v) { return v == FT_DO_VIEW || v == FT_DO_SLICE || v == FT_DO_SPLIT || v == FT_DO_EXPAND; }

double ft__host_node_us(const ft_host *host, const ft_node *n)
{
    if (host->dispatch == FT_DISPATCH_NONE || host->dispatch == FT_DISPATCH_GRAPH) return 0;
    bool runs = ft__node_runs(n), waits = n->verb == FT_DO_SYNC || n->synced;
    if (host->dispatch == FT_DISPATCH_COMPILED && n->phase != FT_UPDATE)
        return runs ? (host->us_per_op > 0 ? host->us_per_op : 6) : waits ? 10 : 0;
    if ((unsigned)n->verb >= FT_VERB_COUNT) return 0;
    const verb_cost *c = &eager[n->verb];
    double once = n->phase == FT_BACKWARD || n->phase == FT_UPDATE ? (double)c->backward
                  : host->gradients                                ? (double)c->recorded
                                                                   : (double)c->forward;
    double views = is_view(n->verb) || !runs ? 0 : (double)n->host_ops;
    if (host->us_per_op > 0) {
        double view = host->us_per_op / 6; /* the measured ratio of a view to an operator that launches */
        return (runs ? host->us_per_op : view) + view * (views > 1 ? views - 1 : 0);
    }
    return once + (views > 1 ? (views - 1) * (double)eager[FT_DO_VIEW].recorded : 0);
}

double ft__host_module_us(const ft_host *host, double modules)
{
    return host->dispatch == FT_DISPATCH_EAGER && host->us_per_op <= 0 ? 5 * modules : 0;
}

/* What a pass costs before its first kernel: Python of the call, for compiled code the guards that look at every
 * input, for a recorded graph the guards, the inputs copied to where the graph reads them, and its launch.
 * Compiled Qwen2 and Gemma2 of four layers: 1.2 ms from call to end beyond 5 and 12 ms of kernels; a recorded
 * decode step of llama 1B: 2.56 ms, of which kernels 1.50, and 0.3 between its 327 nodes. */
double ft__host_pass_us(const ft_host *host, ft_phase phase)
{
    static const double pass[FT_DISPATCH_COUNT][FT_PHASE_COUNT] = {
        [FT_DISPATCH_EAGER] = {[FT_FORWARD] = 150, [FT_BACKWARD] = 150, [FT_UPDATE] = 150},
        [FT_DISPATCH_COMPILED] = {[FT_FORWARD] = 800, [FT_BACKWARD] = 400, [FT_UPDATE] = 150},
        [FT_DISPATCH_GRAPH] = {[FT_FORWARD] = 650, [FT_BACKWARD] = 300, [FT_UPDATE] = 150},
        [FT_DISPATCH_NONE] = {0},
    };
    return (unsigned)phase < FT_PHASE_COUNT ? pass[host->dispatch][phase] : 0;
}

/* torch.utils.checkpoint without re-entry (the default of transformers 5) saves and restores the states of the random
 * number generators, enters autocast and hook contexts, and calls Python for every tensor that autograd saves, packs
 * again or asks for. Measured on the H200's host, models of 4 to 48 layers in turn with and without it: 0.2 to 1.1 ms
 * a layer in the forward pass, 0.4 to 1.6 in the backward pass beyond the operators that run again, with no clear
 * dependence on their number. Megatron's own function re-enters autograd and keeps no hooks: use_reentrant=True in the
 * same runs cost 0.03 and 0.26 ms. As operators of 40 us, for hosts that are given by one figure. */
double ft__host_checkpoint_us(const ft_host *host, ft_phase phase)
{
    if (host->dispatch != FT_DISPATCH_EAGER || (phase != FT_FORWARD && phase != FT_RECOMPUTE)) return 0;
    double hooks = phase == FT_FORWARD ? 18 : 24, again = phase == FT_FORWARD ? 1 : 6.5;
    return (host->hand_fused ? again : hooks) * (host->us_per_op > 0 ? host->us_per_op : 40);
}

/* Selective checkpoints are dispatch modes in Python: forward and again, every operator, views included, goes through
 * one that asks the policy. transformers' Llama, Qwen2 and GPT-NeoX layers of 72, 72 and 51 operators on a CPU, least
 * of 150 runs in turn: 27 to 30 us an operator beyond a plain checkpoint going forward, 12 to 38 going back, on a host
 * whose plain checkpoints cost what they do on the H200's. */
double ft__host_policy_us(const ft_host *host, double operators)
{
    if (host->dispatch != FT_DISPATCH_EAGER || host->hand_fused) return 0;
    return 0.7 * operators * (host->us_per_op > 0 ? host->us_per_op : 40);
}

/* FSDP's hooks run in Python before and behind every layer, for every parameter of it: views of the gathered buffer,
 * copies in and out, streams and events, and an update of distributed tensors. DDP's are in C++, a copy into the
 * bucket per parameter. Host clocks on an H200's machine, GPT-2 and Llama of 8 and 24 layers with 12 and 9
 * parameters each, in a world of one: fully_shard 82 to 134 us a parameter going forward, 150 to 172 going back, 16
 * to 34 in the update (the older wrapper, of one flat parameter a layer, comes to the same); DDP 15 to 41 going
 * back. Compiled and recorded layers keep their hooks, between which they are called or replayed. As operators of 40
 * us, for hosts that are given by one figure. */
double ft__host_wrapper_us(const ft_host *host, bool sharded, ft_phase phase, double tensors)
{
    static const double shards[FT_PHASE_COUNT] = {[FT_FORWARD] = 2.5, [FT_BACKWARD] = 4, [FT_UPDATE] = 0.6};
    static const double copies[FT_PHASE_COUNT] = {[FT_BACKWARD] = 0.7};
    if (host->dispatch == FT_DISPATCH_NONE || host->hand_fused || (unsigned)phase >= FT_PHASE_COUNT) return 0;
    return tensors * (sharded ? shards : copies)[phase] * (host->us_per_op > 0 ? host->us_per_op : 40);
}

/* The loops over ranks of DeepSpeed 0.3 (partition_parameters.py), and those of torch.distributed's all_gather and
 * reduce_scatter of lists (ProcessGroupNCCL.cpp). Python's are the same calls over 1536 entries on a server CPU, torch
 * 2.11: 3.3 and 4.0 us, and 8.2 with a copy of 1.1 within the host's memory. A copy that is launched stands for 7 of
 * the 8 us of an addition in a loop of its own, which also makes its result; from C++ with a view before it, for 8.
 * Around a loop stand a fill, a copy, the collective's call, and the same again when the tensor is dropped: four
 * operators. As operators of 40 us, for hosts that are given by one figure. */
double ft__host_list_us(const ft_host *host, ft_listing what)
{
    static const double us[] = {[FT_LIST_CALLED] = 160,
                                [FT_LIST_GATHERED] = 3.3,
                                [FT_LIST_SCATTERED] = 4,
                                [FT_LIST_COPIED] = 8,
                                [FT_LIST_SPREAD] = 14};
    if (host->dispatch == FT_DISPATCH_NONE) return 0;
    return us[what] * (host->us_per_op > 0 ? host->us_per_op / 40 : 1);
}

/* PyTorch's first choice for 16-bit attention on compute capability 9.0 and 10.0 is cuDNN, which compiles a plan
 * for each shape and keeps it. A cache that grows by concatenation is a new shape with every token: the first
 * layer of a decode step spends 34 to 70 ms in _cudnn_attention_forward, whatever the model and the batch; the
 * other layers find the plan, and so did models measured after one with the same heads and lengths. */
double ft__host_plan_us(const ft_host *host, const ft_device *device)
{
    if (host->dispatch != FT_DISPATCH_EAGER) return 0;
    const char *cc = device->compute_capability;
    return !strncmp(cc, "sm_90", 5) || !strncmp(cc, "sm_10", 5) ? 48000 : 0;
}

double ft__host_latency_us(const ft_host *host) { return host->dispatch == FT_DISPATCH_NONE ? 0 : 3; }

double ft__host_gap_us(const ft_host *host)
{
    return host->dispatch == FT_DISPATCH_NONE ? 0 : host->dispatch == FT_DISPATCH_GRAPH ? 0.9 : 2;
}

double ft__host_queue(const ft_host *host)
{
    (void)host;
    return 1024;
}
