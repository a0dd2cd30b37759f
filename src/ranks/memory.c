/* memory.c: what one rank holds.
 *
 * Weights, gradients and optimizer states are sharded over the ranks that hold the same parameters (experts: fewer of
 * them); activations live as often as the schedule has micro-batches in flight. Beside them: parameters gathered for
 * the layer that runs and the next one, gradients on their way, communicators. PyTorch's sharding and Megatron's keep
 * different things. */
#include <math.h>

#include "memory/verdict.h"
#include "ranks/many_constants.h"
#include "ranks/pipeline_lists.h"
#include "ranks/ranks.h"

/* NCCL's buffers and proxies, beside the allocator, per kind of group in use. */
static const double communicator_bytes = FT_K_MANY_COMMUNICATOR_GIB * 0x1p30;

/* PyTorch's fully_shard (torch/distributed/fsdp/_fully_shard, 2.11). The root's parameters stay; of layers the one that
 * runs and the next are there, that one in the buffer of its gathering. A layer's gradients are copied into one buffer
 * in the format in which they are reduced, which stays until the next layer's; the root's wait for the embedding's,
 * which come last. Gathering has a stream of its own, and what it allocates stays cached for it: copied out, the root's
 * buffer is free and still reserved. Peaks of 4 and 8 layers of Llama 3 8B in a world of one come out within 0.2 %
 * (data/measurements/h200/checkpointing.jsonl).
 *
 * Where gradients wait whole for the last micro-batch, of a stage or under no_sync, a layer's are added to them and
 * gone. With that one they are reduced, unit by unit: what is sent is a copy of the kernels' stream, which has room by
 * then, but the shards that come back are memory of the stream that reduces (foreach_reduce in _fsdp_collectives.py),
 * and nobody else gets it. */
static void moving_sharded(const ft_ranks *r, const ft_stage *s, ft_memory_share *share)
{
    const double root = s->root_bytes, layers = 2 * s->layer_bytes;
    const bool each = ft__ranks_reduces_each(r->parallel, r->work),
               keeps = ft__ranks_keeps_gathered(r->parallel, r->work);
    const double gathered = keeps ? s->gathered_bytes : root + layers;
    const double gradients = s->layer_flowing_bytes + s->head_gradient_bytes + (each ? s->layer_gradient_bytes : 0);
    share->fsdp = true;
    share->apart_bytes = fmax(root, layers) - s->layer_bytes;
    share->moving_bytes[FT_FORWARD] = gathered;
    share->moving_bytes[FT_BACKWARD] = share->moving_bytes[FT_RECOMPUTE] = gathered + gradients;
    /* At the loss no layer is there: the last one is asked for after it. */
    share->head_moving_bytes = keeps ? gathered : root;
    share->embed_moving_bytes = s->head_gradient_bytes;
    share->embed_moving_bytes += each ? root + s->root_gradient_bytes : gathered;
    if (each) return;
    share->gradients[0] = share->gradients[1] = s->open_gradients;
    share->gradient_bytes = ft__ranks_reduce_bytes(r->parallel, r->work);
    const double shards = ft__ranks_kept(r->parallel, s->dense, s->expert) * (s->dense + s->expert);
    share->apart_bytes += shards * share->gradient_bytes;
}

/* Parameters gathered for the layer that runs and the next one, gradients on their way to their shards. */
static void moving(const ft_ranks *r, const ft_stage *s, double bytes[FT_PHASE_COUNT])
{
    const ft_parallel *p = r->parallel;
    double gathered = 0, passing;
    if (p->zero >= 3) gathered = ft__ranks_keeps_gathered(p, r->work) ? s->gathered_bytes : s->live_bytes;
    if (p->zero >= 2) {
        passing = s->live_gradient_bytes; /* before they are sharded */
    } else {
        /* Megatron's buckets are parts of the gradients' own buffer. DDP's stay beside them, a second copy of all in
         * the parameters' own format, also where a hook sums them in another one (torch/csrc/distributed/c10d,
         * reducer.cpp: a bucket has the options of its first parameter; nanotron's get_fp32_accum_hook). GPT-2 of 355 M
         * parameters on an H200: 710 MB in bf16, with views of the buckets as without. */
        bool own = ft__ranks_stack(p, r->work)->one_gradient_buffer;
        passing = own ? 0 : s->gradient_bytes;
        bytes[FT_UPDATE] = passing;
    }
    bytes[FT_FORWARD] = gathered + (p->zero >= 2 ? 0 : passing);
    bytes[FT_BACKWARD] = bytes[FT_RECOMPUTE] = gathered + passing;
}

/* DeepSpeed copies gradients into buffers of reduce_bucket_size, whatever the model's own size: zero 3 has them from
 * the start (stage3.py, _setup_for_real_optimizer), zero 1 and 2 while gradients are made (stage_1_and_2.py). */
static void buffered(const ft_ranks *r, ft_memory_share *share)
{
    const ft_stack *stack = ft__ranks_stack(r->parallel, r->work);
    if (r->parallel->zero < 1 || r->work->task != FT_TRAIN) return;
    const double said = r->parallel->bucket_bytes;
    const double bucket = said > 0 ? said : stack->bucket_elements * ft__ranks_reduce_bytes(r->parallel, r->work);
    const double bytes = stack->bucket_buffers * bucket;
    share->moving_bytes[FT_BACKWARD] += bytes;
    share->moving_bytes[FT_RECOMPUTE] += bytes;
    share->head_moving_bytes += bytes;
    share->embed_moving_bytes += bytes;
    if (stack->flattens_gradients) share->flat_bucket_bytes = bytes;
    share->flat_third = r->parallel->zero >= 3;
    if (r->parallel->zero < 3) return;
    share->update_elements = stack->update_elements;
    share->moving_bytes[FT_FORWARD] += bytes;
    share->moving_bytes[FT_UPDATE] += bytes;
}

/* PyTorch's stages have a buffer for every micro-batch that they receive, activations and gradients, from the first
 * step on (torch/distributed/pipelining/stage.py, args_recv_info, grad_recv_info), and hold what they sent until its
 * gradient is back (fwd_cache). Of what they received, micro-batches in flight count already: it is their first
 * layer's input. The last stage's results, which a schedule collects unless told not to, are dropped by torchtitan
 * since October 2025. */
static double boundaries(const ft_ranks *r, const ft_stage *s, double in_flight)
{
    double micros = fmax((double)r->work->accumulate, 1), flying = fmin(in_flight, micros);
    return s->boundary_bytes * ((double)s->receives * (micros - flying) + (double)s->hands_on * (micros + flying));
}

static ft_memory_share share_of(const ft_ranks *r, const ft_stage *s, double in_flight)
{
    const ft_parallel *p = r->parallel;
    ft_memory_share share = {.weights = {1, 1}, .gradients = {1, 1}, .optimizer = {1, 1}};
    share.waiting_bytes = s->saved_bytes * fmax(in_flight - 1, 0);
    if (ft__offloads(r->work, FT_OFFLOAD_ACTIVATIONS)) share.waiting_bytes = 0; /* they wait on the host: all of them */
    /* Megatron's gradients are kept as they are summed. */
    bool one_buffer = ft__ranks_stack(p, r->work)->one_gradient_buffer && r->work->master_weights && p->zero < 2;
    if (one_buffer && p->reduce_bytes > 0) share.gradient_bytes = p->reduce_bytes;
    if (p->dp * p->cp < 2 || r->work->task != FT_TRAIN) {
        buffered(r, &share);
        return share;
    }
    for (int expert = 0; expert < 2; expert++) {
        double kept = 1 / (double)ft__ranks_sharers(p, expert).size;
        if (p->zero >= 1) share.optimizer[expert] = kept;
        if (p->zero >= 2) share.gradients[expert] = kept;
        if (p->zero >= 3) share.weights[expert] = kept;
    }
    share.keeps_checkpoints = p->zero >= 2 && ft__ranks_stack(p, r->work)->keeps_checkpoints &&
                              r->work->lora_rank > 0 && r->work->recompute == FT_RECOMPUTE_FULL &&
                              r->work->execution == FT_RUN_EAGER;
    if (ft__ranks_fsdp(r->parallel, r->work)) {
        if (p->pp > 1) share.waiting_bytes += boundaries(r, s, in_flight);
        moving_sharded(r, s, &share);
        /* DeepSpeed gathers ahead and on a stream of its own as FSDP does, but keeps 16-bit shards beside the fp32 ones
         * and gradients of 16 bits, which an update joins. */
        if (ft__ranks_stack(p, r->work)->flattens_gradients) share.fsdp = false;
        buffered(r, &share);
        return share;
    }
    moving(r, s, share.moving_bytes);
    share.head_moving_bytes = share.embed_moving_bytes = share.moving_bytes[FT_BACKWARD];
    buffered(r, &share);
    return share;
}

ft_status ft__ranks_share_memory(const ft_ranks *r, const ft_stage *s, const ft_stage *paired, double in_flight,
                                 ft_memory *out, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    ft_memory_share share = share_of(r, s, in_flight);
    const struct ft_lifetimes *lives = s->step.lives;
    FT_TRY(ft__step_memory_shared(s->g, r->work, r->device, &share, r->memo, &lives, out, err));
    if (paired) { /* dualpipe: another stage's parameters beside its own */
        ft_memory other;
        lives = paired->step.lives;
        FT_TRY(ft__step_memory_shared(paired->g, r->work, r->device, &share, r->memo, &lives, &other, err));
        out->weights_bytes += other.weights_bytes;
        out->gradients_bytes += other.gradients_bytes;
        out->optimizer_bytes += other.optimizer_bytes;
        double states = other.weights_bytes + other.gradients_bytes + other.optimizer_bytes;
        out->peak_bytes += states;
        out->reserved_bytes += states;
    }
    int groups = (p->tp > 1) + (p->cp > 1) + (p->ep > 1) + (p->dp * p->cp > 1) + (p->pp > 1);
    out->context_bytes += groups * communicator_bytes;
    ft__judge(out, r->work);
    return FT_OK;
}

/* -- memory alone ------------------------------------------------------------------------------ */

/* The lists of a schedule, whatever the pieces take. */
static ft_status lists_of(const ft_ranks *r, ft_piped *out, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    int64_t chunks = p->schedule == FT_DUALPIPE ? 2 : ft__parallel_chunks(p);
    int64_t micros = r->work->accumulate > 0 ? r->work->accumulate : 1, enough = 4 * p->pp; /* no more are held then */
    ft_pipe_join join = {0}; /* that there is one moves a micro-batch ahead */
    ft_pipe run = {.schedule = p->schedule,
                   .stages = p->pp,
                   .chunks = chunks,
                   .micros = micros < enough ? micros : enough,
                   .all_ahead = ft__ranks_stack(p, r->work)->all_forward_first,
                   .join = ft__ranks_joins(r) ? &join : NULL};
    *out = (ft_piped){0};
    FT_TRY(ft__pipeline_check(run.schedule, run.stages, run.chunks, run.micros, err));
    FT_TRY(ft__pipeline_lists(&run, r->arena, out, err));
    for (int64_t s = 0; s < p->pp && p->schedule == FT_GPIPE; s++) out->in_flight[s] = (double)micros;
    return FT_OK;
}

/* Of the stages between the first and the last the first one that has no dense layer of a mixture of experts. */
static int64_t first_of_experts(const ft_ranks *r)
{
    const ft_parallel *p = r->parallel;
    int64_t places = p->pp * ft__parallel_chunks(p), from = 0, to, s = 1;
    for (; s + 2 < p->pp; s++) {
        ft__layout_range(r->arch->layers, places, p->rest, s, &from, &to);
        if (from >= r->arch->first_dense) break;
    }
    return s;
}

ft_status ft__ranks_heavy(const ft_ranks *r, ft_heavy *out, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    FT_TRY(lists_of(r, &out->lists, err));
    /* The first stage holds most micro-batches, the last one the logits; those between hold less than one of them,
     * but perhaps a layer more than the first, or experts where its layers are dense. */
    bool uneven = ft__layout_deal(r->arch->layers, p->pp * ft__parallel_chunks(p), p->rest) == FT_DEAL_ENDS ||
                  r->arch->first_dense > 0;
    const int64_t some[FT_HEAVY_MOST] = {0, p->pp - 1, first_of_experts(r)};
    out->count = p->pp < 2 ? 1 : uneven && p->pp > 2 ? 3 : 2;
    ft_workload alone = *r->work;
    alone.peak_alone = true;
    for (int i = 0; i < out->count; i++) {
        ft_stage *s = &out->stage[i];
        out->at[i] = some[i];
        FT_TRY(ft__ranks_graph(r, some[i], s, err));
        FT_TRY(ft__step_memory_shared(s->g, &alone, r->device, NULL, NULL, &s->step.lives, &s->step.memory, err));
        s->saved_bytes = s->step.memory.saved_bytes;
        FT_TRY(ft__ranks_open_gradients(r, &out->lists, some[i], s, err));
    }
    return FT_OK;
}

ft_status ft__ranks_heaviest(const ft_ranks *r, const ft_heavy *some, ft_memory *out, int64_t *worst, ft_error *err)
{
    const ft_parallel *p = r->parallel;
    double most = -1;
    for (int i = 0; i < some->count; i++) {
        const ft_stage *s = &some->stage[i], *pair = p->schedule == FT_DUALPIPE && p->pp > 1 ? s : NULL;
        ft_memory m;
        FT_TRY(ft__ranks_share_memory(r, s, pair, ft__ranks_held(p, &some->lists, some->at[i], s), &m, err));
        if (m.peak_bytes <= most) continue;
        most = m.peak_bytes;
        *out = m;
        *worst = some->at[i];
    }
    return FT_OK;
}

ft_status ft__ranks_memory(const ft_ranks *r, ft_memory *out, int64_t *worst, ft_error *err)
{
    ft_heavy some;
    FT_TRY(ft__ranks_heavy(r, &some, err));
    return ft__ranks_heaviest(r, &some, out, worst, err);
}
