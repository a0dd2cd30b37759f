/* stack.c: what a training stack does where the request leaves it open.
 *
 * Gradients beside fp32 copies. Megatron keeps them in one buffer, adds micro-batches up in it and sums it over the
 * data ranks, all in one format:
 *   bf16       fp32: "bfloat16 requires gradient accumulation and all-reduce to be done in fp32" (Megatron-LM,
 *              arguments.py; Megatron-Bridge's bf16_mixed: grad_reduce_in_fp32)
 *   fp8, fp4   bf16: NVIDIA's performance recipes, from which such runs come, turn fp32 off (Megatron-Bridge,
 *              perf_recipes/_common.py; NeMo's before them)
 *   fp16       fp16: accumulate_allreduce_grads_in_fp32 is for bf16, in 2021 as today (fp16_mixed)
 *
 * Megatron's runs in fp16 without sequence parallelism (which came in March 2022) are those of 2021, and its code was
 * another one then (Megatron-LM before September 2021; its examples/sc21):
 *   - pipelines summed gradients after the backward pass (DDP "local", train_step); without one they were PyTorch's
 *     DDP. --overlap-grad-reduce is of September 2023.
 *   - a stage waited for what it sent in every schedule (p2p_communication.py ends in a synchronize); interleaved ones
 *     overlap since May 2023.
 *   - with as many micro-batches as interleaved stages, all went forward before any went back; until November 2024.
 *   - what goes to the next stage was cut over the tensor ranks and gathered there over NVLink (Narayanan et al. 2021,
 *     section 4.1), on by default since February 2021; today a layout without sequence parallelism sends it whole.
 *   - tensor ranks' sums going back waited for nothing beside them: the weights' gradient runs beside them since
 *     September 2021.
 *   - parameters were sharded by DeepSpeed alone (ZeRO-3, March 2021), which gathered them tensor by tensor
 *     (parameters.c); Megatron's own sharding of them is of 2024.
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

bool ft__ranks_of_2021(const ft_parallel *p, const ft_workload *work)
{
    return work->task == FT_TRAIN && work->execution == FT_RUN_FUSED && work->dtype == FT_FP16 && !work->autocast &&
           !(p->sp && p->tp > 1);
}

static bool fsdp_in_stages(const ft_parallel *p, const ft_workload *work)
{
    return ft__ranks_fsdp(p, work) && p->pp > 1;
}

bool ft__ranks_fsdp(const ft_parallel *p, const ft_workload *work)
{
    return work->task == FT_TRAIN && p->zero >= 3 && p->dp * p->cp > 1 && work->execution != FT_RUN_FUSED &&
           p->gather != FT_GATHER_PARAMETER;
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

bool ft__ranks_reduces_each(const ft_parallel *p, const ft_workload *work)
{
    return p->zero >= 2 && !fsdp_in_stages(p, work);
}

/* Frameworks that keep fp32 copies beside their parameters cut products over ranks by code of their own, written after
 * Megatron's; FSDP, and who has no such copies, has PyTorch's. */
ft_loss_by ft__ranks_loss(const ft_parallel *p, const ft_workload *work)
{
    if (work->task != FT_TRAIN || work->execution == FT_RUN_FUSED || p->tp < 2) return FT_LOSS_PLAIN;
    return work->master_weights && p->zero < 3 ? FT_LOSS_AFTER_MEGATRON : FT_LOSS_PARALLEL;
}

bool ft__ranks_overlaps(const ft_parallel *p, const ft_workload *work)
{
    if (p->no_overlap || p->overlap) return p->overlap;
    return !(p->pp > 1 && ft__ranks_of_2021(p, work)) && !fsdp_in_stages(p, work);
}

bool ft__ranks_by_parameter(const ft_parallel *p, const ft_workload *work)
{
    if (p->zero < 3 || work->task != FT_TRAIN) return false;
    return p->gather == FT_GATHER_AS_STACK ? ft__ranks_of_2021(p, work) : p->gather == FT_GATHER_PARAMETER;
}

bool ft__ranks_waits_for_sends(const ft_parallel *p, const ft_workload *work)
{
    if (p->schedule == FT_1F1B || p->schedule == FT_GPIPE || p->wait_sends) return true;
    return p->schedule == FT_INTERLEAVED && !p->overlap_sends && ft__ranks_of_2021(p, work);
}

double ft__ranks_reduce_bytes(const ft_parallel *p, const ft_workload *work)
{
    if (p->reduce_bytes > 0) return p->reduce_bytes;
    double flowing = fmax(2, ft_dtype_bytes(work->dtype));
    if (work->autocast) return p->zero >= 3 ? flowing : 4;
    return work->master_weights && p->zero < 2 ? ft__main_gradient(work) : flowing;
}

/* Transformer Engine's user buffers need norms that are split over the tensor ranks, and NVIDIA's own recipes in fp8
 * and fp4 turn them on (NeMo and Megatron-Bridge: tp_comm_overlap); in bf16 Megatron does it on request. */
bool ft__ranks_in_pieces(const ft_parallel *p, const ft_workload *work)
{
    if (p->tp < 2 || !p->sp) return false;
    if (p->in_pieces >= 0) return p->in_pieces > 0;
    return work->execution == FT_RUN_FUSED && ft_dtype_bytes(work->dtype) < 2;
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
