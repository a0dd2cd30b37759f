/* stack.c: what a training stack does where the request leaves it open.
 *
 * Its traits are data (model/stack.h, data/stacks); here stands what follows from them in a layout, and what a request
 * says instead of them.
 *
 * PyTorch's FSDP in a pipeline (torch/distributed/pipelining/stage.py): every backward pass runs with reduction and
 * resharding off (backward_maybe_with_nosync). Micro-batches add up in whole gradients, in the format in which they
 * are reduced (FSDPParam.to_accumulated_grad_if_needed), and a stage reduces them after its last one, with nothing
 * beside it (perform_reduce_grad), a chunk by itself (schedules.py, _add_reduce_grad). Parameters are gathered once
 * for all micro-batches: torchtitan does not reshard after a forward pass where there are stages ("to avoid
 * per-microbatch all-gathers", apply_fsdp). */
#include <math.h>

#include "ranks/ranks.h"
#include "timeline/states.h"

const ft_stack *ft__ranks_stack(const ft_parallel *p, const ft_workload *work)
{
    return ft__stack_of(work, p->zero, p->dp * p->cp);
}

static bool fsdp_in_stages(const ft_parallel *p, const ft_workload *work)
{
    return ft__ranks_fsdp(p, work) && p->pp > 1;
}

bool ft__ranks_fsdp(const ft_parallel *p, const ft_workload *work)
{
    return work->task == FT_TRAIN && p->zero >= 3 && p->dp * p->cp > 1 && p->gather != FT_GATHER_PARAMETER &&
           ft__ranks_stack(p, work)->sharding == FT_SHARDING_UNITS;
}

bool ft__ranks_keeps_gathered(const ft_parallel *p, const ft_workload *work)
{
    if (p->keep_gathered || p->drop_gathered) return p->keep_gathered;
    return fsdp_in_stages(p, work);
}

bool ft__ranks_gathers_each(const ft_parallel *p, const ft_workload *work)
{
    return p->zero >= 3 && !(fsdp_in_stages(p, work) && ft__ranks_keeps_gathered(p, work));
}

/* Around every backward pass but the last stands no_sync, or set_requires_gradient_sync(False): micro-batches add up in
 * whole gradients, which the last pass reduces layer by layer. */
static bool reduces_last(const ft_parallel *p, const ft_workload *work)
{
    return work->accumulate > 1 && ft__ranks_fsdp(p, work) && ft__ranks_stack(p, work)->reduces_last;
}

bool ft__ranks_reduces_each(const ft_parallel *p, const ft_workload *work)
{
    return p->zero >= 2 && !fsdp_in_stages(p, work) && !reduces_last(p, work);
}

/* Frameworks with layers of their own cut products over ranks by code of their own, written after Megatron's; where
 * parameters are sharded it is PyTorch's. */
ft_loss_by ft__ranks_loss(const ft_parallel *p, const ft_workload *work)
{
    const ft_stack *stack = ft__ranks_stack(p, work);
    if (work->task != FT_TRAIN || stack->loss_of != FT_LOSS_OF_PYTORCH || p->tp < 2) return FT_LOSS_PLAIN;
    if (stack->parallel_loss == FT_PARALLEL_LOSS_WHOLE) return FT_LOSS_PLAIN;
    bool own = stack->parallel_loss == FT_PARALLEL_LOSS_AFTER_MEGATRON && p->zero < 3;
    return own ? FT_LOSS_AFTER_MEGATRON : FT_LOSS_PARALLEL;
}

bool ft__ranks_overlaps(const ft_parallel *p, const ft_workload *work)
{
    if (p->no_overlap || p->overlap) return p->overlap;
    if (work->task != FT_TRAIN) return true; /* no gradients are exchanged */
    switch (ft__ranks_stack(p, work)->overlap_gradients) {
    case FT_OVERLAP_GRADIENTS_NEVER: return false;
    case FT_OVERLAP_GRADIENTS_WITHOUT_PIPELINE: return p->pp == 1;
    default: return !fsdp_in_stages(p, work);
    }
}

bool ft__ranks_by_parameter(const ft_parallel *p, const ft_workload *work)
{
    if (p->zero < 3 || work->task != FT_TRAIN) return false;
    if (p->gather != FT_GATHER_AS_STACK) return p->gather == FT_GATHER_PARAMETER;
    return ft__ranks_stack(p, work)->sharding == FT_SHARDING_PARAMETERS;
}

/* Measured of eager steps alone: hooks around modules break compiled graphs, which then gather otherwise. */
double ft__ranks_holds(const ft_parallel *p, const ft_workload *work)
{
    return work->execution == FT_RUN_EAGER ? ft__ranks_stack(p, work)->gathers_hold : 0;
}

bool ft__ranks_sums_whole(const ft_parallel *p, const ft_workload *work)
{
    if (p->zero != 1 || work->task != FT_TRAIN) return false;
    ft_sums_whole whole = ft__ranks_stack(p, work)->sums_whole;
    return whole == FT_SUMS_WHOLE_ALWAYS || (whole == FT_SUMS_WHOLE_BF16 && work->dtype == FT_BF16);
}

bool ft__ranks_waits_for_sends(const ft_parallel *p, const ft_workload *work)
{
    if (p->schedule == FT_1F1B || p->schedule == FT_GPIPE || p->wait_sends) return true;
    return p->schedule == FT_INTERLEAVED && !p->overlap_sends && ft__ranks_stack(p, work)->waits_for_sends;
}

double ft__ranks_gather_bytes(const ft_parallel *p, const ft_workload *work)
{
    if (p->gather_bytes > 0) return p->gather_bytes;
    double flowing = fmax(2, ft_dtype_bytes(work->dtype));
    return work->autocast && p->zero < 3 ? 4 : flowing;
}

/* Frozen weights of few bits are gathered as they are stored (FSDP-QLoRA packs them into a 16-bit buffer) and unpacked
 * by every rank. */
double ft__ranks_travels(const ft_tensor *t, double element)
{
    return t->trained ? element : fmin(element, t->element_bytes);
}

double ft__ranks_reduce_bytes(const ft_parallel *p, const ft_workload *work)
{
    if (p->reduce_bytes > 0) return p->reduce_bytes;
    double flowing = fmax(2, ft_dtype_bytes(work->dtype));
    if (work->autocast) return p->zero >= 3 ? flowing : 4;
    /* DDP's buckets have the parameters' format. Sums in fp32 are a hook for bf16 (nanotron); fp16 goes as it is (apex
     * O2 with its own DDP, DeepSpeed's communication_data_type), and is widened behind the exchange. */
    bool as_made = work->dtype == FT_FP16 && !ft__ranks_stack(p, work)->one_gradient_buffer;
    if (work->master_weights && p->zero < 2) return as_made ? flowing : ft__main_gradient(work);
    const double sharded = ft__ranks_stack(p, work)->sharded_reduce_bytes;
    return p->zero >= 2 && sharded > 0 ? sharded : flowing;
}

/* User buffers need norms that are split over the tensor ranks. */
bool ft__ranks_in_pieces(const ft_parallel *p, const ft_workload *work)
{
    if (p->tp < 2 || !p->sp) return false;
    if (p->in_pieces >= 0) return p->in_pieces > 0;
    const ft_tensor_pieces pieces = ft__ranks_stack(p, work)->tensor_pieces;
    return pieces == FT_TENSOR_PIECES_ALWAYS ||
           (pieces == FT_TENSOR_PIECES_LOW_PRECISION && ft_dtype_bytes(work->dtype) < 2);
}

/* A ring's last part is used in the last step. What PyTorch gathers is needed after the first of cp steps; but a
 * compiled graph waits where it calls a collective (torch/distributed/_functional_collectives.py: "wait_tensor() op is
 * immediately called"), and Inductor leaves the wait where it is. */
double ft__ranks_attention_left(const ft_parallel *p, const ft_workload *work)
{
    bool compiled = work->execution == FT_RUN_COMPILE || work->execution == FT_RUN_CUDA_GRAPH;
    switch (p->context) {
    case FT_CONTEXT_RING: return 1 / (double)p->cp;
    case FT_CONTEXT_PYTORCH: return compiled ? -1 : 1 - 1 / (double)p->cp;
    default: return 0;
    }
}
