/* model.c: a model and what is done with it -> the graph of one step.
 *
 * The builder of the model's design makes the forward pass; backward, recomputation, fusion and the optimizer are
 * passes over what it made. */
#include <string.h>

#include "graph/emit.h"
#include "graph/operator.h"
#include "model/parts.h"
#include "model/pytorch.h"

void ft__make_design(ft_maker *m)
{
    static void (*const builders[FT_DESIGN_COUNT])(ft_maker *) = {
        [FT_DECODER_ONLY] = ft__make_transformer,
        [FT_ENCODER_ONLY] = ft__make_encoder,
        [FT_ENCODER_DECODER] = ft__make_encoder_decoder,
        [FT_SPEECH] = ft__make_speech,
        [FT_VIT] = ft__make_vit,
        [FT_CLIP] = ft__make_clip,
        [FT_RESNET] = ft__make_resnet,
        [FT_CONVNEXT] = ft__make_convnext,
        [FT_STATE_SPACE] = ft__make_state_space,
        [FT_DIFFUSION] = ft__make_diffusion,
        [FT_SOUND] = ft__make_sound,
        [FT_JOINT] = ft__make_joint,
        [FT_VIDEO] = ft__make_video,
        [FT_UNET] = ft__make_unet,
        [FT_AUTOENCODER] = ft__make_autoencoder,
    };
    builders[m->arch->design](m);
}

/* -- the optimizer ----------------------------------------------------------------------------- */

static void update(ft_build *b, ft_at at, const char *op, double times)
{
    const ft_graph *g = b->g;
    ft_node n = ft__node_of(FT_DO_OPTIMIZER, at);
    n.op = (ft_op){.kind = FT_OP_OPTIMIZER, .name = op, .dtype = b->stored, .kv_dtype = b->stored};
    n.op.u.optimizer.params = (int64_t)g->trained_parameters;
    n.op.u.optimizer.tensors = g->trained_tensors > 0 ? g->trained_tensors : 1;
    n.count = (float)times;
    ft__emit(b, &n);
}

static void optimizer(ft_maker *m)
{
    static const char *const names[FT_OPTIMIZER_COUNT] = {
        [FT_ADAMW] = "adamw_fused",
        [FT_ADAMW_FOREACH] = "adamw_foreach",
        [FT_ADAMW_8BIT] = "adamw_8bit",
        [FT_ADAFACTOR] = "adafactor",
        [FT_SGD] = "sgd",
        [FT_SGD_MOMENTUM] = "sgd_momentum",
        [FT_MUON] = "muon",
        [FT_LAMB] = "lamb",
        [FT_ADAMW_LOOP] = "adamw_loop",
        [FT_BERT_ADAM] = "bert_adam",
    };
    ft_build *b = &m->b;
    const ft_workload *w = m->work;
    if (w->optimizer == FT_NO_OPTIMIZER || ft__updates_on_host(w) || b->g->trained_parameters < 1) return;
    b->phase = FT_UPDATE;
    ft__block_open(b, FT_BLOCK(UPDATE), 1, FT_NONE);
    if (b->status == FT_OK) b->g->blocks[b->block].phase = FT_UPDATE;
    /* States and copies in fp32; adapters mostly are. */
    if (w->master_weights || (w->lora_rank > 0 && m->b.adapters.form != FT_ADAPTER_MODEL)) b->stored = FT_FP32;
    /* Before updates went over lists: the same arithmetic, a tensor at a time. */
    const bool lists = !ft__pytorch(w) || ft__pytorch(w)->lists;
    static const char *const looped[FT_OPTIMIZER_COUNT] = {
        [FT_ADAMW_FOREACH] = "adamw_loop", [FT_SGD] = "sgd_loop", [FT_SGD_MOMENTUM] = "sgd_momentum_loop"};
    const char *name = !lists && looped[w->optimizer] ? looped[w->optimizer] : names[w->optimizer];
    if (ft__keeps_gradients(w)) update(b, FT_AT(OPTIMIZER), "zero_grad_loop", 1);
    if (w->clip) update(b, FT_AT(CLIP_GRAD_NORM), lists ? "clip_grad_norm" : "clip_grad_norm_loop", 1);
    update(b, FT_AT(OPTIMIZER), name, 1);
    bool adam = ft__keeps_moments(w->optimizer);
    double wide = ft_dtype_bytes(b->stored);
    if (adam && w->moment_bytes > 0 && b->status == FT_OK) /* of seven passes four are the moments' */
        b->g->nodes[b->g->node_count - 1].traffic = (float)((3 * wide + 4 * w->moment_bytes) / (7 * wide));
    if (w->ema) update(b, FT_AT(OPTIMIZER), "sgd_foreach", 1); /* reads weights and average, writes the average */
    ft__block_close(b, FT_NONE);
}

/* -- the step ---------------------------------------------------------------------------------- */

/* Eager PyTorch reads activations for their largest magnitude and again to scale them, two kernels before every
 * product in 8 or 4 bits; that is how such products were measured, one at a time. Serving engines and compilers scale
 * in the kernel that makes the activations: TensorRT-LLM and vLLM fuse it with norms and SwiGLU, Inductor with
 * whatever is pointwise. Their products find them quantised. What attention makes is quantised apart: to a compiler
 * it is a library's kernel, TensorRT-LLM's plugin writes 16 bits unless use_fp8_context_fmha is said, vLLM's fusion
 * is off by itself. */
static bool quantises_before(const ft_workload *w)
{
    bool fused = w->execution == FT_RUN_FUSED || w->execution == FT_RUN_COMPILE || w->execution == FT_RUN_CUDA_GRAPH;
    return w->task != FT_TRAIN && fused && ft_dtype_bytes(w->dtype) < 2;
}

/* FlashAttention's cross-entropy, where a stack computes its models' loss by it. */
static bool keeps_logits(const ft_workload *w, const ft_stack *stack)
{
    return w->loss == FT_ENTROPY_OF_MODEL && stack->loss_of == FT_LOSS_OF_FLASH_ATTENTION;
}

static ft_maker begin(const ft_arch *arch, const ft_workload *w, ft_graph *g, ft_error *err)
{
    bool training = w->task == FT_TRAIN;
    ft_maker m = {.b = ft__build_begin(g, w->dtype, w->autocast, training, err),
                  .arch = arch,
                  .work = w,
                  .stack = ft__stack(w),
                  .batch = w->batch,
                  .q_len = w->task == FT_DECODE ? 1 : w->seq,
                  .kv_len = w->task == FT_DECODE ? w->seq + 1 : w->seq,
                  .cos = FT_NONE,
                  .sin = FT_NONE,
                  .per_layer = FT_NONE,
                  .places = FT_NONE,
                  .source = FT_NONE,
                  .keys = FT_NONE,
                  .values = FT_NONE,
                  .beside_keys = FT_NONE,
                  .beside_values = FT_NONE,
                  .mask = FT_NONE};
    m.engine = ft__by_engine(w);
    m.b.loss_of_its_own = training && (w->loss == FT_ENTROPY_FUSED || keeps_logits(w, m.stack));
    m.b.lora_rank = training ? w->lora_rank : 0;
    m.b.frozen = m.b.lora_rank > 0;
    m.b.adapters = ft__adapters_of(w);
    if (m.b.frozen && m.stack->lora_casts_model && m.b.adapters.form == FT_ADAPTER_AUTOCAST &&
        ft_dtype_bytes(w->dtype) == 2)
        m.b.autocast = true; /* around the whole model, whose weights stay as they are */
    m.b.unpacks_openly = w->unpack_openly;
    m.b.quantises_apart = quantises_before(w);
    g->keeps_inputs = training && m.stack->packed_inputs > 0;
    if (w->weight_bits > 0) m.b.weight_bytes = w->weight_bits / 8;
    if (training && w->weight_bits > 0 && w->weight_bits < 8) /* with their scales */
        m.b.weight_bytes = ft__storage_bytes(w->unpack_openly ? FT_STORED_INT4 : FT_STORED_NF4);
    m.b.weights_by = ft__widened_by(w);
    if (training && m.stack->casts_apart)
        g->casts = w->execution == FT_RUN_COMPILE ? FT_CASTS_COMPILED : FT_CASTS_PLAIN;
    m.b.formats = training || !w->by_module ? NULL : &w->formats;
    if (training && w->dtype == FT_FP8)
        m.b.weight_bytes = ft_dtype_bytes(m.b.stored);
    else if (!training && ft_dtype_bytes(w->dtype) < 2 && !w->autocast && w->weight_bits <= 0)
        m.b.weight_bytes = ft_dtype_bytes(w->dtype);
    return m;
}

/* Training frameworks have layers of their own: the activation is one kernel, large language models are trained without
 * dropout, the head is not tied, rows of words that nobody says keep products aligned. Plain transformers writes
 * gelu_new out, and drops out and ties where the config says so. */
static const ft_arch *in_a_framework(const ft_arch *arch, const ft_workload *w, ft_arena *arena)
{
    const ft_stack *stack = ft__stack(w);
    const int64_t words = (int64_t)stack->vocab_multiple;
    bool others = stack->own_gelu || stack->no_dropout || stack->own_head || words > 1;
    if (w->task != FT_TRAIN || !others || arch->design != FT_DECODER_ONLY) return arch;
    ft_arch *own = ft__arena_alloc(arena, sizeof *own);
    if (!own) return arch;
    *own = *arch;
    bool written_out = !strcmp(own->activation, "gelu_new") || !strcmp(own->activation, "gelu_fast");
    if (stack->own_gelu && written_out) own->activation = "gelu";
    if (stack->own_head) own->tied = false;
    if (words > 1) own->vocab = (own->vocab + words - 1) / words * words;
    if (stack->no_dropout) own->embed_dropout = own->attention_dropout = own->residual_dropout = own->mlp_dropout = 0;
    return own;
}

static unsigned how_fused(const ft_stack *stack, const ft_workload *w)
{
    return (w->scope == FT_SCOPE_LAYERS ? FT_FUSE_LAYERS_ONLY : 0u) |
           (w->scope == FT_SCOPE_LOSS ? FT_FUSE_LOSS_ALONE : 0u) |
           (stack->reductions_end ? FT_FUSE_REDUCTIONS_END : 0u) |
           (stack->keeps_functions ? FT_FUSE_KEEPS_FUNCTIONS : 0u);
}

/* NNC joins pointwise operators alone, nvFuser softmax and norms too. Neither computes again going back. */
static unsigned how_scripted(const ft_workload *w)
{
    return FT_FUSE_LONE_AS_WRITTEN | (ft__script_joins(w) == FT_SCRIPT_JOINS_POINTWISE ? FT_FUSE_POINTWISE : 0u);
}

ft_status ft__model_forward(const ft_arch *arch, const ft_workload *w, ft_arena *arena, ft_graph **out, ft_error *err)
{
    *out = NULL;
    if (w->batch < 1 || w->seq < 1) return ft__fail(err, FT_E_RANGE, "batch and seq must be at least 1");
    if ((arch->fixed_batch > 0 && w->batch != arch->fixed_batch) || (arch->fixed_seq > 0 && w->seq != arch->fixed_seq))
        return ft__fail_at(err, FT_E_RANGE, "model", 0, 0,
                           "the file fixes its sizes: batch %lld and seq %lld are not possible with it",
                           (long long)w->batch, (long long)w->seq);
    ft_graph *g = ft__graph_new(arena, w->dtype);
    if (!g) return ft__no_memory(err);
    ft_maker m = begin(in_a_framework(arch, w, arena), w, g, err);
    (arch->importer ? arch->importer->make : ft__make_design)(&m);
    *out = g;
    if (m.b.status == FT_OK && m.b.lora_rank > 0 && g->trained_tensors == 0)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "lora", 0, 0,
                           "the model has none of the layers that adapters are added to: nothing would be trained");
    return m.b.status;
}

static void quantise_before(ft_graph *g, const ft_workload *w)
{
    if (!quantises_before(w)) return;
    for (int32_t i = 0; i < g->node_count; i++) {
        ft_op *op = &g->nodes[i].op;
        if (op->kind == FT_OP_GEMM && op->u.gemm.quantized == 0) op->u.gemm.quantized = 1;
    }
}

/* Builders let bf16 lie between products of 8 bits. */
static void flow_in_fp16(ft_graph *g)
{
    for (int32_t x = 0; x < g->tensor_count; x++)
        if (g->tensors[x].dtype == FT_BF16) g->tensors[x].dtype = FT_FP16;
    for (int32_t i = 0; i < g->node_count; i++) {
        ft_op *op = &g->nodes[i].op;
        if (op->dtype == FT_BF16) op->dtype = FT_FP16;
        if (op->kv_dtype == FT_BF16) op->kv_dtype = FT_FP16;
    }
}

ft_status ft__model_complete(const ft_arch *arch, const ft_workload *w, ft_graph *g, ft_error *err)
{
    ft_maker m = begin(arch, w, g, err);
    if (w->flows_fp16) flow_in_fp16(g);
    if (w->task == FT_TRAIN) {
        /* Megatron's products add into the gradients that are there (since 2022); elsewhere that is a kernel of its
         * own, and where one buffer holds the sums every micro-batch is added to it. */
        bool scores = m.stack->selective == FT_SELECTIVE_CORE_ATTENTION;
        ft_accumulation sums = {0};
        if (!m.stack->sums_in_products) {
            bool wide = w->master_weights && ft__stack_gradient_bytes(m.stack, w->dtype) > 2;
            bool widened = wide && m.stack->widens_gradients;
            sums = (ft_accumulation){.micros = (double)w->accumulate,
                                     .buffer = widened || (m.stack->one_gradient_buffer && w->master_weights),
                                     .wide = wide,
                                     .widened = widened};
            sums.kept = ft__keeps_gradients(w);
        }
        sums.wide = sums.wide && sums.buffer;
        if (scores && w->recompute == FT_RECOMPUTE_SELECTIVE && w->again) ft__mark_recomputed(g, w);
        if (w->recompute == FT_RECOMPUTE_FULL && w->spared) ft__mark_spared(g, w);
        const ft_recompute again = arch->reversible ? FT_RECOMPUTE_FULL : w->recompute; /* layers are undone */
        FT_TRY(ft__graph_backward(g, again, !scores, sums, err));
        optimizer(&m);
        if (m.b.status != FT_OK) return m.b.status;
    }
    const bool tuned = w->task == FT_DECODE && w->execution == FT_RUN_COMPILE && m.stack->tuned_vectors;
    if (tuned) ft__graph_gate_vectors(g);
    const bool scripted = w->execution == FT_RUN_TORCHSCRIPT;
    const bool replayed = w->execution == FT_RUN_CUDA_GRAPH && !m.engine;
    if (m.stack->products_take_in && w->task != FT_TRAIN && (replayed || w->execution == FT_RUN_COMPILE))
        FT_TRY(ft__graph_take_in(g, err));
    if (scripted || w->execution == FT_RUN_COMPILE || replayed)
        FT_TRY(ft__graph_fuse(g, scripted ? how_scripted(w) : how_fused(m.stack, w), err));
    if (tuned) ft__graph_stream_vectors(g);
    quantise_before(g, w);
    const bool kept = keeps_logits(w, m.stack);
    if (w->task == FT_TRAIN && (m.stack->loss_of == FT_LOSS_OF_MEGATRON || w->loss >= FT_ENTROPY_FUSED || kept))
        ft__loss_memory(g, kept ? FT_LOSS_KEPT : FT_LOSS_MEGATRON);
    if (w->task == FT_TRAIN && m.stack->loss_figures >= 1 && !ft__loss_figures(g, (int)m.stack->loss_figures))
        ft__build_fail(&m.b, FT_E_MEMORY, "out of memory");
    const bool returned = w->task == FT_TRAIN && w->autocast && m.stack->raises_outputs && w->loss <= FT_ENTROPY_NARROW;
    if (returned && !ft__loss_returns_wide(g)) ft__build_fail(&m.b, FT_E_MEMORY, "out of memory");
    if (w->task == FT_TRAIN && (kept || w->loss == FT_ENTROPY_FUSED)) ft__loss_fused(g);
    const bool by_chunks = w->loss == FT_ENTROPY_FUSED_LINEAR && arch->design != FT_SOUND; /* whose loss is CTC's */
    if (w->task == FT_TRAIN && by_chunks && !ft__loss_in_chunks(g, m.stack->loss_chunk_gib))
        ft__build_fail(&m.b, FT_E_MEMORY, "out of memory");
    if (w->task == FT_TRAIN && w->loss == FT_ENTROPY_CHUNKED) ft__loss_in_parts(g, w->execution == FT_RUN_EAGER);
    const bool whole_logits = w->loss <= FT_ENTROPY_NARROW;
    if (w->task == FT_TRAIN && w->lora_rank > 0 && m.stack->loss_tokens > 0 && whole_logits)
        ft__loss_in_pieces(g, w->batch * (int64_t)m.stack->loss_tokens);
    const bool plain = w->loss == FT_ENTROPY_OF_MODEL && w->execution == FT_RUN_EAGER && w->trainer == FT_TRAINER_SFT;
    if (w->task == FT_TRAIN && m.stack->loss_rows > 0 && plain && !ft__loss_chunked(g, (int64_t)m.stack->loss_rows))
        ft__build_fail(&m.b, FT_E_MEMORY, "out of memory");
    return m.b.status;
}

ft_status ft__model_graph(const ft_arch *arch, const ft_workload *w, ft_arena *arena, ft_graph **out, ft_error *err)
{
    FT_TRY(ft__model_forward(arch, w, arena, out, err));
    return ft__model_complete(arch, w, *out, err);
}
