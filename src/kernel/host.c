/* host.c: microseconds of the host per operator.
 *
 * Python and the framework's dispatcher issue operators one after the other, and a model's own Python stands between
 * them. What each takes is a host's own figure (data/hosts; how it was measured stands beside it there); which of them
 * a step pays is decided here. A host that is given by one figure (`us_per_op`) pays that for every operator, a part
 * of it for a view, and everything else as multiples of an operator. */
#include "kernel/host.h"

#include <math.h>
#include <string.h>

#include "kernel/host_constants.h"
#include "kernel/optimizer_constants.h"

const ft_host *ft__host_usual(void) { return &ft__hosts[ft__usual_host]; }

/* Whether one of the words of "GeForce, Radeon RX" is part of a title. */
static bool of_a_line(const char *lines, const char *title)
{
    for (const char *at = lines; *at;) {
        char word[sizeof((ft_host *)0)->lines];
        size_t length = strcspn(at, ",");
        memcpy(word, at, length);
        word[length] = 0;
        if (strstr(title, word)) return true;
        at += length;
        at += strspn(at, ", ");
    }
    return false;
}

const ft_host *ft__host_of_device(const ft_device *device)
{
    for (size_t i = 0; i < ft__host_count; i++)
        if (ft__hosts[i].beside[0] && !strcmp(ft__hosts[i].beside, device->name)) return &ft__hosts[i];
    for (size_t i = 0; i < ft__host_count; i++)
        if (of_a_line(ft__hosts[i].lines, device->title)) return &ft__hosts[i];
    return ft__host_usual();
}

static const ft_host *of(const ft_issuer *by) { return by->host ? by->host : ft__host_usual(); }

/* The host's own figure, or as many operators of the one that was given. */
static double as_operators(const ft_issuer *by, double us)
{
    return by->us_per_op > 0 ? us * by->us_per_op / of(by)->one_figure.operator_us : us;
}

/* TorchScript's interpreter calls operators from C++ going forward; autograd does so in any case going back. */
static double by_interpreter(const ft_issuer *by, const ft_node *n, double us)
{
    const bool forward = n->phase == FT_FORWARD || n->phase == FT_RECOMPUTE;
    return by->dispatch == FT_DISPATCH_SCRIPT && forward ? us * FT_K_HOST_SCRIPT_SHARE : us;
}

/* Of software that may have fewer operators than the graph: an update has the same tensors by any. */
static double by_share(const ft_issuer *by, double us) { return by->share > 0 ? us * by->share : us; }

static bool is_view(ft_verb v) { return v == FT_DO_VIEW || v == FT_DO_SLICE || v == FT_DO_SPLIT || v == FT_DO_EXPAND; }

/* A node that only says how long Python's variables keep a tensor: nobody issues it. */
static bool only_holds(const ft_node *n) { return n->verb == FT_DO_OTHER && !n->synced && !ft__node_runs(n); }

/* What no Python asks for: a library's kernels within one call, and casts: autocast's own, within the call of the
 * operator that wants it, and going back those that undo casts. It costs what an operator costs in a loop. */
static bool within_a_call(const ft_issuer *by, const ft_node *n)
{
    if (n->inside) return true;
    if (!by->lowers || n->op.kind != FT_OP_ELEMENTWISE || !n->op.name || strncmp(n->op.name, "cast_", 5) != 0)
        return false;
    return n->phase == FT_BACKWARD || strcmp(n->op.name, "cast_fp32") != 0;
}

/* A module that quantises asks its recipe, its scales and its copies of the weight in Python before it multiplies, and
 * its gradient's function does so again: so many products of 16 bits. One of many experts splits its rows, lists their
 * weights and their gradients and makes room for each, whatever the format. */
static double product_calls(const ft_issuer *by, const ft_node *n)
{
    if (n->op.kind != FT_OP_GEMM) return 1;
    const bool grouped = n->verb == FT_DO_MATMUL && ft__node_within(n, FT_SITE_MOE);
    double calls = grouped && by->grouped_product_calls > 1 ? by->grouped_product_calls : 1;
    const bool asks = by->dispatch != FT_DISPATCH_SCRIPT && ft_dtype_bytes(n->op.dtype) < 2; /* a trace has no recipe */
    if (asks && by->low_product_calls > calls) calls = by->low_product_calls;
    return calls;
}

static bool is_listed(const ft_node *n)
{
    return n->op.kind == FT_OP_OPTIMIZER && n->op.name && strstr(n->op.name, "foreach") != NULL;
}

/* Kernels of a tensor where the update is a loop over them; 0: it is none. */
static double looped(const ft_node *n)
{
    if (n->op.kind != FT_OP_OPTIMIZER || !n->op.name) return 0;
    for (int i = 0; i < FT_K_OPTIMIZER_KINDS_COUNT; i++)
        if (ft__k_optimizer_kinds[i].loops && !strcmp(ft__k_optimizer_kinds[i].name, n->op.name))
            return ft__k_optimizer_kinds[i].kernels;
    return 0;
}

/* AdamW's lists (torch/optim/adam.py, _multi_tensor_adam): step, decay, two moments of two calls each, two corrections,
 * root, quotient, epsilon, update. The GPU has done the first while the host still makes up the others. */
double ft__host_calls(const ft_node *n)
{
    enum { OF_LISTS = 12 };
    if (looped(n) > 0) return looped(n) * (double)n->op.u.optimizer.tensors;
    return is_listed(n) ? OF_LISTS : 1;
}

/* An optimizer looks up every tensor's gradient and states in Python before its first kernel, clipping every gradient;
 * the one that updates is followed by a loop that drops gradients. Lists are sorted by device and format and go through
 * a dozen calls, a norm through half as many, whatever their length. */
static double tensors_us(const ft_issuer *by, const ft_node *n)
{
    const ft_host *host = of(by);
    if (n->op.kind != FT_OP_OPTIMIZER) return 0;
    const bool clips = ft__node_site(n) == FT_SITE_CLIP_GRAD_NORM;
    const bool listed = is_listed(n);
    const double kernels = looped(n), loops = kernels * host->python.loop_us;
    const double step = kernels > 0 ? loops : listed ? host->update.foreach_us : host->update.fused_us;
    const double each = clips ? host->update.clip_us + loops : host->update.zero_us + step;
    const double call = kernels > 0 ? 0 : clips ? host->update.clip_call_us : listed ? host->update.foreach_call_us : 0;
    return as_operators(by, call + each * (double)n->op.u.optimizer.tensors);
}

/* A compiler's wrapper launches its own kernels and calls products with a place for their results; gradients of
 * convolutions and of attention it leaves to the framework's dispatcher, where they cost what they cost an eager pass
 * (torch/_inductor/lowering.py, make_fallback). */
static double compiled_us(const ft_issuer *by, const ft_node *n)
{
    const ft_host *host = of(by);
    if (by->us_per_op > 0) return by->us_per_op;
    const bool left = n->verb == FT_DO_CONV || n->verb == FT_DO_ATTENTION;
    const double launch = host->compiled.launch_us;
    return left && n->phase == FT_BACKWARD ? fmax(launch, host->operators[n->verb].backward_us) : launch;
}

double ft__host_node_us(const ft_issuer *by, const ft_node *n)
{
    const ft_host *host = of(by);
    if (by->dispatch == FT_DISPATCH_NONE || by->dispatch == FT_DISPATCH_GRAPH) return 0;
    bool runs = ft__node_runs(n), waits = n->verb == FT_DO_SYNC || n->synced;
    if (by->dispatch == FT_DISPATCH_COMPILED && n->phase != FT_UPDATE)
        return runs ? compiled_us(by, n) : waits ? host->compiled.wait_us : 0;
    if ((unsigned)n->verb >= FT_VERB_COUNT || only_holds(n)) return 0;
    const ft_host_operator *c = &host->operators[n->verb];
    double once = n->phase == FT_BACKWARD || n->phase == FT_UPDATE ? c->backward_us
                  : by->gradients                                  ? c->recorded_us
                                                                   : c->forward_us;
    double views = is_view(n->verb) || !runs ? 0 : (double)n->host_ops;
    if (by->us_per_op > 0) {
        double view = by->us_per_op / host->one_figure.views;
        const double operators = (runs ? by->us_per_op : view) * product_calls(by, n);
        return by_interpreter(by, n, operators + view * (views > 1 ? views - 1 : 0)) + tensors_us(by, n);
    }
    once = within_a_call(by, n) ? host->python.loop_us : once * product_calls(by, n);
    const double all = once + (views > 1 ? (views - 1) * host->operators[FT_DO_VIEW].recorded_us : 0);
    return (n->phase == FT_UPDATE ? all : by_interpreter(by, n, by_share(by, all))) + tensors_us(by, n);
}

double ft__host_graph_us(const ft_issuer *by, ft_phase phase)
{
    const ft_host_operator *c = &of(by)->operators[FT_DO_LINEAR];
    if (by->us_per_op > 0) return by->us_per_op;
    return of(by)->python.module_us + (phase == FT_BACKWARD ? c->backward_us : c->recorded_us);
}

double ft__host_replayed_us(const ft_issuer *by) { return of(by)->launches.gap_us - of(by)->launches.replay_gap_us; }

double ft__host_loop_us(const ft_issuer *by) { return of(by)->python.loop_us; }

double ft__host_module_us(const ft_issuer *by, double modules)
{
    return by->dispatch == FT_DISPATCH_EAGER && by->us_per_op <= 0 ? by_share(by, of(by)->python.module_us * modules)
                                                                   : 0;
}

double ft__host_walk_us(const ft_issuer *by, double things)
{
    return by->dispatch == FT_DISPATCH_NONE ? 0 : as_operators(by, of(by)->python.walk_us * things);
}

/* Behind its last kernels a pass makes its results up; a framework of its own layers hands tensors on. */
double ft__host_results_us(const ft_issuer *by)
{
    return by->lean_hooks || by->ahead ? 0 : ft__host_module_us(by, FT_K_HOST_RESULTS);
}

double ft__host_pass_us(const ft_issuer *by, ft_phase phase)
{
    const ft_host *host = of(by);
    const bool eager = by->dispatch == FT_DISPATCH_EAGER || by->dispatch == FT_DISPATCH_SCRIPT;
    const ft_host_pass *pass = eager                                  ? &host->pass_eager
                               : by->dispatch == FT_DISPATCH_COMPILED ? &host->pass_compiled
                               : by->dispatch == FT_DISPATCH_GRAPH    ? &host->pass_graph
                                                                      : NULL;
    if (!pass || by->ahead) return 0;
    switch (phase) {
    case FT_FORWARD: return pass->forward_us;
    case FT_BACKWARD: return pass->backward_us;
    case FT_UPDATE: return pass->update_us;
    default: return 0;
    }
}

double ft__host_checkpoint_us(const ft_issuer *by, ft_phase phase)
{
    const ft_host *host = of(by);
    if (by->dispatch != FT_DISPATCH_EAGER || (phase != FT_FORWARD && phase != FT_RECOMPUTE)) return 0;
    double hooks = phase == FT_FORWARD ? host->checkpoints.forward_us : host->checkpoints.again_us;
    double reentrant = phase == FT_FORWARD ? host->checkpoints.reentrant_forward_us
                                           : host->checkpoints.reentrant_again_us;
    return as_operators(by, by->lean_hooks ? reentrant : hooks);
}

/* A host whose checkpoints cost no more than those that re-enter has no others: software from before the hooks. */
bool ft__host_reenters(const ft_issuer *by)
{
    const ft_host *host = of(by);
    if (by->dispatch != FT_DISPATCH_EAGER) return false;
    return by->lean_hooks || host->checkpoints.again_us <= host->checkpoints.reentrant_again_us;
}

/* Selective checkpoints are dispatch modes in Python: forward and again, every operator, views included, goes through
 * one that asks the policy. */
double ft__host_policy_us(const ft_issuer *by, double operators)
{
    if (by->dispatch != FT_DISPATCH_EAGER || by->lean_hooks) return 0;
    return as_operators(by, of(by)->checkpoints.policy_us * operators);
}

double ft__host_wrapper_us(const ft_issuer *by, ft_wrapper wrapper, ft_phase phase, double tensors)
{
    const ft_host *host = of(by);
    const double us[][FT_PHASE_COUNT] = {[FT_WRAPPER_COPIES] = {[FT_BACKWARD] = host->wrappers.ddp_backward_us},
                                         [FT_WRAPPER_UNITS] = {[FT_FORWARD] = host->wrappers.fsdp_forward_us,
                                                               [FT_BACKWARD] = host->wrappers.fsdp_backward_us,
                                                               [FT_UPDATE] = host->wrappers.fsdp_update_us},
                                         [FT_WRAPPER_MODULES] = {[FT_FORWARD] = host->wrappers.module_forward_us,
                                                                 [FT_RECOMPUTE] = host->wrappers.module_again_us,
                                                                 [FT_BACKWARD] = host->wrappers.module_backward_us,
                                                                 [FT_UPDATE] = host->wrappers.module_update_us}};
    if (by->dispatch == FT_DISPATCH_NONE || by->lean_hooks || (unsigned)phase >= FT_PHASE_COUNT) return 0;
    return as_operators(by, tensors * us[wrapper][phase]);
}

double ft__host_hooks_us(const ft_issuer *by, double tensors)
{
    return by->dispatch == FT_DISPATCH_EAGER ? as_operators(by, tensors * of(by)->python.module_us) : 0;
}

double ft__host_list_us(const ft_issuer *by, ft_listing what)
{
    const ft_host *host = of(by);
    const double us[] = {[FT_LIST_CALLED] = host->lists.call_us,
                         [FT_LIST_GATHERED] = host->lists.gather_us,
                         [FT_LIST_SCATTERED] = host->lists.scatter_us,
                         [FT_LIST_COPIED] = host->lists.copy_us,
                         [FT_LIST_SPREAD] = host->lists.spread_us};
    return by->dispatch == FT_DISPATCH_NONE ? 0 : as_operators(by, us[what]);
}

/* PyTorch's first choice for 16-bit attention on compute capability 9.0 and 10.0 is cuDNN, which compiles a plan
 * for each shape and keeps it. */
double ft__host_plan_us(const ft_issuer *by, const ft_device *device)
{
    if (by->dispatch != FT_DISPATCH_EAGER) return 0;
    const char *cc = device->compute_capability;
    return !strncmp(cc, "sm_90", 5) || !strncmp(cc, "sm_10", 5) ? of(by)->attention_plan.new_shape_us : 0;
}

double ft__host_latency_us(const ft_issuer *by)
{
    return by->dispatch == FT_DISPATCH_NONE ? 0 : of(by)->launches.latency_us;
}

double ft__host_gap_us(const ft_issuer *by)
{
    return by->dispatch == FT_DISPATCH_NONE    ? 0
           : by->dispatch == FT_DISPATCH_GRAPH ? of(by)->launches.replay_gap_us
                                               : of(by)->launches.gap_us;
}

double ft__host_queue(const ft_issuer *by) { return of(by)->launches.queue; }

/* Of n draws from a normal distribution the largest lies, on average, that many deviations above the middle (see
 * power.c). */
double ft__host_slowest(const ft_issuer *by, int64_t processes)
{
    if (processes < 2 || by->dispatch == FT_DISPATCH_NONE) return 1;
    return exp(FT_K_HOST_UNLIKE * (sqrt(2 * log((double)processes)) - 0.5));
}

double ft__host_interval(const ft_issuer *by) { return of(by)->interval.share; }
