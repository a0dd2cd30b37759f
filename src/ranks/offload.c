/* offload.c: copies to and from the host, and its update.
 *
 * States on the host (ZeRO-Offload, Ren et al. 2021; DeepSpeed's offload_optimizer): gradients go down as the backward
 * pass makes them, of every micro-batch, and hide behind it; the host's cores, each GPU its part of them, update what
 * is their rank's, as fast as they can, or as the memory that all GPUs of a server share lets them; weights come back
 * while the update goes on, so that the longer of the two counts. On drives (ZeRO-Infinity) states are read and written
 * between. A stack that does it in turn (DeepSpeed's own engine) copies gradients and weights in fp32, multiplies the
 * gradients by a pass of its own and sends the weights back when all is updated.
 *
 * Weights (DeepSpeed's offload_param, FSDP's CPUOffload; states go with them): every layer's are copied in before it
 * runs, forward and going back, beside the layer before it, or (FSDP, measured) after it; of shards each rank copies
 * its own and gathers the rest.
 *
 * Activations (torchtune's OffloadActivations, Transformer Engine's cpu_offload): what a layer leaves goes down behind
 * the layers after it and comes back behind those before: two passes over the link, each beside its own pass. PyTorch's
 * save_on_cpu waits for every copy instead (657 ms for a step of 104 on an H200), and moves weights as well.
 *
 * Pages (bitsandbytes' paged optimizers): what found no room goes away and comes back once a step, and nothing hides
 * it: kernels wait for their pages.
 *
 * GPUs of a server that copy at once share the processor's links, as many as its generation puts on one.
 *
 * A process that torchrun starts beside others has one thread unless somebody says otherwise (the trait one_thread).
 *
 * Leaves out: links that other jobs use, host memory that is not there or not pinned, cores that are busy otherwise. */
#include "ranks/offload.h"

#include <math.h>

#include "model/stack.h"
#include "ranks/offload_constants.h"
#include "timeline/states.h"

typedef struct links {
    double host, pages, drives; /* bytes per ms */
    double memory;              /* of the host, for one GPU; 0: its own, and enough */
    double ranks;               /* that share a server */
} links;

static double weight_bytes(const ft_workload *w) { return w->autocast ? 4 : fmax(ft_dtype_bytes(w->dtype), 2); }

/* A rank's part of its server's memory, bytes per ms. A host behind another link than PCIe is its GPU's own (Grace);
 * a card with plain GDDR sits in a desktop. */
static double memory_of(const ft_workload *w, const ft_device *device, double sold, double ranks)
{
    const bool desktop = !device->memory_is_hbm && !device->inline_ecc;
    double channels = sold > 32   ? FT_K_OFFLOAD_CHANNELS_GBPS5
                      : sold > 16 ? FT_K_OFFLOAD_CHANNELS_GBPS4
                                  : FT_K_OFFLOAD_CHANNELS_GBPS3;
    if (w->host_gbps > sold) return 0;
    if (desktop) channels = FT_K_OFFLOAD_DESKTOP_GBPS;
    return channels * FT_K_OFFLOAD_OF_CHANNELS / fmax(fmin(ranks, FT_K_OFFLOAD_SERVER_GPUS), 1) * 1e6;
}

/* GPUs that copy through one link of the processor. NVSwitch says that it is a server's board: cards have slots of
 * their own. */
static double sharing(const ft_workload *w, const ft_device *device, double sold, double ranks)
{
    const double most = sold > 32 ? FT_K_OFFLOAD_UPLINK5 : sold > 16 ? FT_K_OFFLOAD_UPLINK4 : FT_K_OFFLOAD_UPLINK3;
    if (w->host_gbps > 0 || !device->link_switched) return 1;
    return fmax(fmin(ranks, most), 1);
}

static links links_of(const ft_workload *w, const ft_device *device, double ranks)
{
    const double sold = device->pcie_gbps > 0 ? device->pcie_gbps : FT_K_OFFLOAD_USUAL_GBPS;
    const double alone = w->host_gbps > 0 ? w->host_gbps : sold * FT_K_OFFLOAD_OF_LINK;
    const double host = alone / sharing(w, device, sold, ranks);
    return (links){.ranks = ranks,
                   .host = host * 1e6,
                   .memory = memory_of(w, device, sold, ranks),
                   .pages = (w->host_gbps > 0 ? w->host_gbps : sold) * FT_K_OFFLOAD_OF_PAGES * 1e6,
                   .drives = (w->nvme_gbps > 0 ? w->nvme_gbps : FT_K_OFFLOAD_NVME_GBPS) * 1e6};
}

/* Of the model whose step it is: PPO's other one has a step of its own (complete.c). */
static double of_one(const ft_workload *w, double bytes) { return ft__has_critic(w) ? bytes / 2 : bytes; }

/* Parameters that one rank updates: what it keeps of states, over the states of one. */
static double updated_here(const ft_workload *w, double on_host)
{
    const ft_tensor some = {.rows = 4096, .cols = 4096, .trained = true, .element_bytes = (float)weight_bytes(w)};
    double parts[FT_STATE_PARTS] = {0}, bytes = 0;
    const int count = ft__optimizer_states(w, &some, parts);
    for (int i = 0; i < count; i++) bytes += parts[i];
    return bytes > 0 ? on_host / bytes * ft__tensor_numel(&some) : 0;
}

/* Of `own` parameters on the host's cores, and what DeepSpeed's engine does to their gradients before. */
static double updated_ms(const ft_workload *w, const links *l, double own, double on_host, double *scaled)
{
    const bool in_turn = ft__stack(w)->host_in_turn, alone = ft__stack(w)->one_thread && l->ranks > 1;
    const bool narrow = on_host <= own * FT_K_OFFLOAD_NARROW_BYTES;
    const double cores = own * (narrow ? FT_K_OFFLOAD_UPDATE_NARROW_NS : FT_K_OFFLOAD_UPDATE_NS) * 1e-6;
    /* States are read and written, gradients read, the weights that go back written. */
    const double moves = l->memory > 0 ? 2 * (on_host + own * weight_bytes(w)) / l->memory : 0;
    const double fused = fmax(cores * (alone ? FT_K_OFFLOAD_THREAD : 1), moves);
    *scaled = in_turn ? fused * FT_K_OFFLOAD_SCALE_SHARE : 0;
    /* DeepSpeed's Adam is its own, unless a script hands it PyTorch's, tensor by tensor. */
    if (w->optimizer != FT_ADAMW_LOOP && (w->optimizer != FT_ADAMW_FOREACH || in_turn)) return fused;
    return fmax(cores * (alone ? FT_K_OFFLOAD_THREAD_APART : 1), moves) * FT_K_OFFLOAD_APART;
}

static void states(const ft_workload *w, const links *l, const ft_step *s, ft_offload_cost *out)
{
    const bool in_turn = ft__stack(w)->host_in_turn;
    const double on_host = of_one(w, s->memory.host_bytes), own = updated_here(w, on_host);
    const double micros = fmax((double)w->accumulate, 1);
    const double moved = own * (in_turn ? 4 : weight_bytes(w)), each = moved / l->host;
    const double backward = (s->phase_ms[FT_BACKWARD] + s->phase_ms[FT_RECOMPUTE]) / micros;
    double scaled, update = updated_ms(w, l, own, on_host, &scaled);
    if (ft__offloads(w, FT_OFFLOAD_OPTIMIZER_NVME)) update = fmax(update, 2 * on_host / l->drives);
    out->update_ms += update;
    out->copies_ms += each * (micros + 1);
    out->copied_bytes += moved * (micros + 1);
    out->exposed_ms += micros * fmax(each - backward, 0);
    out->exposed_ms += in_turn ? scaled + update + each : fmax(update, each);
    /* No kernel of an update is launched, so no timeline has what comes before it: the optimizer's Python and the
     * wrapper's hooks run all the same, and nothing hides them. */
    out->exposed_ms += s->update_pass_ms;
}

static void activations(const ft_workload *w, const links *l, const ft_step *s, ft_offload_cost *out)
{
    const double micros = fmax((double)w->accumulate, 1), each = s->memory.away_bytes / l->host;
    const double forward = s->phase_ms[FT_FORWARD] / micros,
                 backward = (s->phase_ms[FT_BACKWARD] + s->phase_ms[FT_RECOMPUTE]) / micros;
    out->copies_ms += 2 * each * micros;
    out->copied_bytes += 2 * s->memory.away_bytes * micros;
    out->exposed_ms += micros * (fmax(each - forward, 0) + fmax(each - backward, 0));
}

/* Read in the forward pass and again going back. A stack that waits for them keeps its weights as it updates them: fp32
 * copies are what travels, and the GPU lowers them. */
static void parameters(const ft_workload *w, const links *l, const ft_step *s, ft_offload_cost *out)
{
    const bool waits = ft__stack(w)->waits_for_weights;
    const double wide = waits && w->master_weights ? 4 / fmax(ft_dtype_bytes(w->dtype), 2) : 1;
    const double micros = fmax((double)w->accumulate, 1), bytes = s->memory.streamed_bytes * wide;
    const double each = bytes / l->host, forward = s->phase_ms[FT_FORWARD] / micros,
                 backward = (s->phase_ms[FT_BACKWARD] + s->phase_ms[FT_RECOMPUTE]) / micros;
    out->copies_ms += 2 * each * micros;
    out->copied_bytes += 2 * bytes * micros;
    out->exposed_ms += micros * (waits ? 2 * each : fmax(each - forward, 0) + fmax(each - backward, 0));
}

static void pages(const ft_workload *w, const links *l, const ft_step *s, ft_offload_cost *out)
{
    const double moved = 2 * of_one(w, s->memory.paged_bytes), ms = moved / l->pages;
    out->copies_ms += ms;
    out->copied_bytes += moved;
    out->exposed_ms += ms;
}

void ft__offload_apply(const ft_workload *w, const ft_device *device, ft_step *step)
{
    ft_offload_cost b = {0};
    if (w->task != FT_TRAIN || !(step->step_ms > 0)) return;
    const links l = links_of(w, device, (double)step->ranks);
    if (ft__updates_on_host(w)) states(w, &l, step, &b);
    const double cores_ms = b.exposed_ms;
    if (ft__offloads(w, FT_OFFLOAD_ACTIVATIONS)) activations(w, &l, step, &b);
    if (ft__offloads(w, FT_OFFLOAD_PARAMETERS)) parameters(w, &l, step, &b);
    if (ft__offloads(w, FT_OFFLOAD_PAGED_OPTIMIZER)) pages(w, &l, step, &b);
    step->offload = b;
    if (!(b.exposed_ms > 0)) return;
    /* Copies and cores are known worse than kernels, and nobody says which cores a process has. */
    const double before = step->step_ms, longer = (before + b.exposed_ms) / before;
    step->low_ms += b.exposed_ms * FT_K_OFFLOAD_LEAST;
    step->high_ms += (b.exposed_ms - cores_ms) * FT_K_OFFLOAD_MOST + cores_ms * FT_K_OFFLOAD_MOST_CORES;
    step->step_ms += b.exposed_ms;
    step->idle_ms += b.exposed_ms;
    step->tokens_per_s /= longer;
    step->model_tflops /= longer;
    step->mfu /= longer;
    step->hfu /= longer;
    for (int i = 0; i < 4; i++) step->regime[i] *= before / step->step_ms;
    step->regime[FT_BOUND_OVERHEAD] += b.exposed_ms / step->step_ms;
    for (int i = 0; i < 4; i++)
        if (step->regime[i] > step->regime[step->bound]) step->bound = (ft_bound)i;
}
