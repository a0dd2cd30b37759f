/* The software that runs a model: what it does where a request leaves it open, as named traits.
 *
 * A stack is a file of data/stacks, compiled in by scripts/embed_stacks.py, or a user's own file or object on top of
 * one. What a trait does is said once, here; which software has it, and who says so, in the files. docs/stacks.md shows
 * them side by side. */
#ifndef FT_MODEL_STACK_H
#define FT_MODEL_STACK_H
#include "base/json.h"
#include "model/workload.h"

/* Zero 3: what is gathered at once. */
typedef enum ft_sharding {
    FT_SHARDING_UNITS,     /* a layer, while the one before it runs, by hooks in Python: PyTorch's FSDP */
    FT_SHARDING_BUCKETS,   /* a layer, by the framework itself: Megatron */
    FT_SHARDING_PARAMETERS /* one tensor after the other, and the GPU waits for most: DeepSpeed of 2021 */
} ft_sharding;
/* Whether gradients are exchanged beside the backward pass. */
typedef enum ft_overlap_gradients {
    FT_OVERLAP_GRADIENTS_ALWAYS,
    FT_OVERLAP_GRADIENTS_WITHOUT_PIPELINE,
    FT_OVERLAP_GRADIENTS_NEVER
} ft_overlap_gradients;
/* With sequence parallelism: whether a tensor rank's gathers and scatters run in pieces beside the products that read
 * and make them (user buffers). */
typedef enum ft_tensor_pieces {
    FT_TENSOR_PIECES_NEVER,
    FT_TENSOR_PIECES_LOW_PRECISION, /* in formats below 16 bits */
    FT_TENSOR_PIECES_ALWAYS
} ft_tensor_pieces;
/* What selective recomputation drops. */
typedef enum ft_selective {
    FT_SELECTIVE_POLICY,        /* of a layer all but attention and every other product: PyTorch's policy */
    FT_SELECTIVE_CORE_ATTENTION /* attention's scores, or the modules that are named: Megatron */
} ft_selective;
/* Zero 1: whether every data rank gets the sums of all gradients, and updates its share of the states all the same. */
typedef enum ft_sums_whole { FT_SUMS_WHOLE_NEVER, FT_SUMS_WHOLE_BF16, FT_SUMS_WHOLE_ALWAYS } ft_sums_whole;
/* Adapters, where a request leaves them open (graph/adapter.h). */
typedef enum ft_lora_dtype { FT_LORA_DTYPE_FP32, FT_LORA_DTYPE_MODEL, FT_LORA_DTYPE_AUTOCAST } ft_lora_dtype;
typedef enum ft_lora_targets { FT_LORA_TARGETS_ALL, FT_LORA_TARGETS_QKV, FT_LORA_TARGETS_QV } ft_lora_targets;
/* Whose loss it is (loss_memory.c). */
typedef enum ft_loss_of { FT_LOSS_OF_PYTORCH, FT_LOSS_OF_MEGATRON, FT_LOSS_OF_FLASH_ATTENTION } ft_loss_of;
/* The same over tensor ranks, where parameters are whole. */
typedef enum ft_parallel_loss {
    FT_PARALLEL_LOSS_PYTORCH,
    FT_PARALLEL_LOSS_AFTER_MEGATRON,
    FT_PARALLEL_LOSS_WHOLE
} ft_parallel_loss;

/* Every trait once: X(name, what it says). */
#define FT_STACK_FLAGS(X)                                                                                          \
    X(fused_norms, "a norm is one kernel")                                                                         \
    X(wide_norms, "RMSNorm written out applies its weight in fp32, before the cast back to its input's format")    \
    X(fused_rotary, "rotary embedding is one kernel")                                                              \
    X(fused_activations, "an activation, gated or not, is one kernel")                                             \
    X(fused_projections, "queries, keys and values come from one GEMM; so do gate and up")                         \
    X(fused_softmax, "attention that writes its scores runs scale, mask and softmax as one kernel")                \
    X(fused_latent_rotary, "latent attention's rotary embedding, splits and concatenations are two kernels")       \
    X(fused_router, "a router's scores and top-k are one kernel")                                                  \
    X(grouped_experts, "tokens are sorted by expert, whose products are grouped")                                  \
    X(separate_experts, "every expert's weights are parameters of their own")                                      \
    X(gradient_hooks, "a Python hook runs after every parameter's gradient, for every micro-batch")                \
    X(fused_scan, "a state space layer's convolution and scan are kernels of their own")                           \
    X(own_gelu, "layers of its own: gelu is one kernel whatever the config calls it")                              \
    X(triton_flash1, "`flash1` is the Triton kernel that came with the first generation, not the one in CUDA")     \
    X(engine_attention, "attention is Transformer Engine's: on AMD GPUs its own kernels, in assembly")             \
    X(ported_engine, "on AMD GPUs Transformer Engine is its first port: slow casts and gradient GEMMs")            \
    X(passes_masks, "a model that is compiled as a whole makes its causal mask and passes it to attention")        \
    X(repeats_keys, "grouped keys and values are copied for every query head before attention")                    \
    X(shifts_logits, "language models: the loss copies the logits to drop every sequence's last token")            \
    X(softcaps_in_loss, "training: the loss's own kernel bounds logits (softcap)")                                 \
    X(own_head, "the head has weights of its own, though the config ties them to the embedding")                   \
    X(packs_head, "with 4-bit weights the head is packed too")                                                     \
    X(no_dropout, "large language models train without dropout, whatever the config says")                         \
    X(sums_in_products, "weight-gradient GEMMs accumulate over micro-batches themselves")                          \
    X(widens_gradients, "a separate kernel casts a micro-batch's gradients to fp32 before they are accumulated")   \
    X(gradient_stand_ins, "autograd gets a tensor of every weight's shape in place of its gradient")               \
    X(one_gradient_buffer, "gradients are reduced in place; otherwise buckets hold a second copy")                 \
    X(copies_buckets, "replicas: gradients are copied into the buckets that are exchanged, and back")              \
    X(flattens_gradients, "the update concatenates 16-bit gradients, then copies them to fp32")                    \
    X(tensor_sums_beside, "in the backward pass, weight gradients overlap with all-reduces over tensor ranks")     \
    X(exchanges_apart, "tensor ranks: every GEMM cut by columns exchanges its own input and its gradient")         \
    X(waits_for_sends, "an interleaved pipeline's stages wait for what they send")                                 \
    X(all_forward_first, "as many micro-batches as interleaved stages: all run forward before any runs backward")  \
    X(cuts_sends, "what is sent to the next stage is split over the tensor ranks and gathered there")              \
    X(reads_received, "a stage's host reads how its input is split over tensor ranks: it waits for it every time") \
    X(casts_apart, "operands of GEMMs below 16 bits are cast by separate kernels")                                 \
    X(keeps_low_operands, "operands of GEMMs below 16 bits are saved for the backward pass in that format")        \
    X(lora_scale_in_product, "an adapter's scale is folded into its second GEMM, not a separate kernel")           \
    X(prepares_kbit, "with 4-bit weights all others are fp32, and so are activations between layers")              \
    X(lowers_packed, "with weights below 16 bits, adapters are in the model's format")                             \
    X(raises_unpacked, "adapters under autocast cast inputs to fp32 where plain operators unpack the weights")     \
    X(lora_casts_model, "adapters under autocast: so is the whole model, norms and powers in fp32")                \
    X(raises_outputs, "training under autocast: the logits that a model returns are copied to fp32")               \
    X(narrow_words, "under autocast the embedding table, and so what layers pass on, is in the low format")        \
    X(copies_packed, "with 4-bit weights a GEMM's result is copied before its adapter's is added")                 \
    X(lean_hooks, "checkpoints re-enter autograd, and replicas are kept together without Python's hooks")          \
    X(keeps_checkpoints, "zero 2 and 3, adapters: checkpoints and their gradients stay until backward ends")       \
    X(reduces_last, "zero 3 by FSDP: micro-batches add up in whole gradients, reduced with the last (no_sync)")    \
    X(module_hooks, "zero 3: Python hooks around every module, even on one GPU")                                   \
    X(host_in_turn, "states on the host: fp32 is sent, a separate pass scales it, weights return afterwards")      \
    X(one_thread, "states on the host: processes that share a server have one thread each for the update")         \
    X(waits_for_weights, "weights on the host: a layer waits for its copy, which nothing hides")                   \
    X(broadcasts_updates, "zero 1: ranks broadcast what they updated in turn; otherwise it is gathered at once")   \
    X(tuned_vectors, "decoding, compiled: one-row GEMMs are the compiler's own kernels, not a library's")          \
    X(replays_tokens, "decoding, compiled: a recorded graph is replayed, the next one issued while it runs")       \
    X(launches_block, "the host waits for every kernel before it issues the next (CUDA_LAUNCH_BLOCKING)")          \
    X(reads_loss, "training: the host reads every micro-batch's loss: it waits for the backward pass to end")      \
    X(native_host, "kernels are issued without Python: the host costs nothing")                                    \
    X(reductions_end, "compiled: a reduction ends its kernel; its consumers read the rows again")                  \
    X(keeps_functions, "compiled: results of costly functions with several readers are stored, not recomputed")    \
    X(infers_only, "it builds engines for inference, and trains nothing")                                          \
    X(issued_ahead, "inference, replayed: a pass is issued while the one before it runs")                          \
    X(products_take_in, "inference, compiled: GEMMs fuse what follows them, concatenations cost nothing")          \
    X(by_pytorch, "operators are PyTorch's, whose version may be named; otherwise it has no effect")               \
    X(nvfuser, "TorchScript joins reductions too, whatever its version: nvFuser is turned on")                     \
    X(wide_nchw, "images in formats above 16 bits lie in NCHW, whatever the model says")                           \
    X(uneven_chunks, "chunks of an interleaved pipeline may differ by a layer")                                    \
    X(sequence_parallel, "norms can be split over the tensor ranks")                                               \
    X(model_parallel, "a model can be cut over ranks: tensor, pipeline, context, experts")
/* X(name, enum, words, what it says) */
#define FT_STACK_WORDS(X)                                                                                              \
    X(sharding, ft_sharding, "units", "buckets", "parameters", "zero 3: what is gathered at once")                     \
    X(overlap_gradients, ft_overlap_gradients, "always", "without_pipeline", "never",                                  \
      "gradients are exchanged during the backward pass")                                                              \
    X(sums_whole, ft_sums_whole, "never", "bf16", "always", "zero 1: gradients are all-reduced, not reduce-scattered") \
    X(tensor_pieces, ft_tensor_pieces, "never", "low_precision", "always",                                             \
      "with sequence parallelism, tensor ranks exchange in pieces during their GEMMs")                                 \
    X(selective, ft_selective, "policy", "core_attention", NULL, "what selective recomputation drops")                 \
    X(lora_dtype, ft_lora_dtype, "fp32", "model", "autocast",                                                          \
      "adapters: in fp32, in the model's format, or fp32 weights whose products autocast lowers")                      \
    X(lora_targets, ft_lora_targets, "all", "qkv", "qv",                                                               \
      "products with adapters where none are named: all of a layer, queries, keys and values, or without keys")        \
    X(loss_of, ft_loss_of, "pytorch", "megatron", "flash_attention", "whose cross-entropy")                            \
    X(parallel_loss, ft_parallel_loss, "pytorch", "after_megatron", "whole",                                           \
      "cross-entropy over tensor ranks: PyTorch's of parts, Megatron's (zero below 3), or of gathered logits")
/* X(name, least, most, what it says) */
#define FT_STACK_NUMBERS(X)                                                                                           \
    X(gradient_bytes_bf16, 2, 4, "bytes of a gradient beside fp32 copies, in bf16")                                   \
    X(gradient_bytes_fp16, 2, 4, "the same in fp16")                                                                  \
    X(gradient_bytes_low, 2, 4, "the same in fp8 and fp4")                                                            \
    X(sharded_reduce_bytes, 0, 4, "bytes of a sharded gradient on the wire; 0: as the backward pass makes it")        \
    X(softmax_heads, 0, 64,                                                                                           \
      "heads times micro-batch on a rank must be a multiple of this for the fused softmax kernel")                    \
    X(order_copies, 0, 4,                                                                                             \
      "fused attention needs another order of tokens: copies of its inputs, and one of its output")                   \
    X(bucket_mib, 0, 1e6, "MiB of gradients exchanged at once; 0: by elements")                                       \
    X(bucket_elements, 0, 1e12, "elements of gradients exchanged at once")                                            \
    X(bucket_elements_per_rank, 0, 1e9, "and at least so many for every data rank")                                   \
    X(hooks_between, 0, 1, "zero 3: where its hooks' cost lies between FSDP's and that of hooks around every module") \
    X(gathers_hold, 0, 1, "zero 3, eager: share of a gather during which kernels stall")                              \
    X(update_elements, 0, 1e12, "zero 3: elements that an update takes at a time; 0: all")                            \
    X(bucket_buffers, 0, 2, "whole-bucket buffers in addition to the gradients, from zero 1 on, even on one GPU")     \
    X(lora_dropout, 0, 1, "dropout before an adapter where none is named")                                            \
    X(packed_dropout, 0, 1, "the same beside weights of fewer than 16 bits, unless lora_dropout is larger")           \
    X(packed_inputs, 0, 2, "inputs of 4-bit GEMMs kept in the backward pass; 2: the last micro-batch's too")          \
    X(lora_documents, 0, 1e6, "adapters: tokens of the examples that sequences are packed from; 0: each is one")      \
    X(lora_documents_to, 0, 1e9, "the same, for sequences of at most this many tokens: longer ones are one example")  \
    X(loss_tokens, 0, 1e6, "adapters: tokens of a sequence that head and loss take at a time; 0: all")                \
    X(loss_rows, 0, 1e6, "eager sft: tokens that head and loss take at a time, and again in backward; 0: all")        \
    X(loss_chunk_gib, 0, 1e3, "`fused_linear`: GiB of fp32 logits that a chunk has at most; 0: Liger's own rows")     \
    X(loss_figures, 0, 8, "extra losses computed from every micro-batch's logits, for logging")                       \
    X(module_walks, 0, 10, "training: loops in Python over all modules and parameters before every forward pass")     \
    X(vocab_multiple, 0, 1e6, "the vocabulary is padded to a multiple of this; 0: as in the config")                  \
    X(grouped_product_calls, 1, 100, "host cost of a grouped GEMM over experts, in plain GEMMs")                      \
    X(routing_kernels, 0, 1000,                                                                                       \
      "small kernels besides a router's scores and top-k: token counts, balance, destinations")                       \
    X(routing_spared, 0, 1000, "how many fewer of them where a token is sent once")                                   \
    X(low_product_calls, 1, 100, "host cost of a GEMM below 16 bits, in 16-bit GEMMs")                                \
    X(most_zero, 0, 3, "how far it shards: 0 nothing, 1 states, 2 gradients, 3 parameters")

typedef struct ft_stack {
    char name[48], title[96];
    const struct ft_stack *base; /* that it stands on; NULL: none */
    const char *models;          /* types of those that it has kernels for; "": nobody asks */
    char default_gpus[64];       /* names of those on which a request that names none means it; "": all */
    /* What a request that names it means by keys it leaves out. */
    unsigned executions; /* those it has, a bit each */
    ft_execution execution;
    ft_attention_kind attention;
    ft_compile_scope compile_scope;
    ft_entropy loss;
    char cp_kind[16]; /* how context ranks exchange keys: a word of layout.h */
    bool master_weights;
    bool clip_grad;
    int zero;           /* over more than one data rank */
    char pytorch[16];   /* the version it runs on; "": today's */
    bool dispatch_once; /* a token travels once to a rank and a node with several of its experts */
#define X_FLAG(name, help) bool name;
#define X_WORD(name, type, a, b, c, help) type name;
#define X_NUMBER(name, low, high, help) double name;
    FT_STACK_FLAGS(X_FLAG)
    FT_STACK_WORDS(X_WORD)
    FT_STACK_NUMBERS(X_NUMBER)
#undef X_FLAG
#undef X_WORD
#undef X_NUMBER
} ft_stack;

/* A trait, for whoever reads, prints or tests all of them. */
typedef enum ft_trait_type { FT_TRAIT_FLAG, FT_TRAIT_WORD, FT_TRAIT_NUMBER } ft_trait_type;
typedef struct ft_trait {
    const char *name, *help;
    ft_trait_type type;
    size_t offset;        /* in ft_stack */
    const char *words[3]; /* NULL behind the last */
    double low, high;
} ft_trait;
const ft_trait *ft__stack_traits(size_t *count);

/* What a request that names no stack is answered with, by what it says: the first of these that holds. */
typedef enum ft_stack_role {
    FT_STACK_FOR_TOKENS,               /* decode, execution compile */
    FT_STACK_FOR_WRITTEN_OUT_SHARDED,  /* execution fused around attention that is written out, without sp, zero 1 */
    FT_STACK_FOR_WRITTEN_OUT,          /* the same without zero 1 */
    FT_STACK_FOR_PORTED,               /* execution fused below 16 bits, on a GPU that this stack's file names */
    FT_STACK_FOR_FUSED_BEFORE_FP8,     /* execution fused, training on a GPU without fp8 */
    FT_STACK_FOR_FUSED,                /* execution fused */
    FT_STACK_FOR_FUSED_LINEAR,         /* loss fused_linear, execution eager */
    FT_STACK_FOR_TRAINER_FUSED_LINEAR, /* advice to the stack that the one before stands on */
    FT_STACK_FOR_FIRST_FLASH,          /* master_weights, and attention is said to be flash1 */
    FT_STACK_FOR_MASTERS,              /* master_weights */
    FT_STACK_FOR_EAGER_SHARDS,         /* zero 3, execution eager */
    FT_STACK_FOR_SHARDS,               /* zero 2 or 3 */
    FT_STACK_FOR_REPLICAS,             /* several data ranks */
    FT_STACK_FOR_ONE,
    FT_STACK_ROLES
} ft_stack_role;

/* Compiled in, sorted by name. */
extern const size_t ft__stack_count;
extern const ft_stack ft__stacks[];
extern const ft_stack *const ft__default_stacks[FT_STACK_ROLES];

/* The stack that a workload names, or the one that follows from what is said; from a number format only on GPUs whose
 * first software for few bits was another (`ported`). `replicas` are the data ranks. Builders know no layout and need
 * none: those that a layout chooses between build alike. */
const ft_stack *ft__stack_of(const ft_workload *w, int zero, int64_t replicas);
static inline const ft_stack *ft__stack(const ft_workload *w) { return ft__stack_of(w, 0, 1); }
/* Whether a stack is what requests mean on this GPU alone. */
bool ft__stack_of_gpu(const ft_stack *s, const char *gpu);
/* Whether it lists the model's type among those that it was written for. */
bool ft__stack_has_kernels_for(const ft_stack *s, const ft_arch *arch);
/* How far states are sharded over data ranks by a stack that no request names: one whose optimizer is always the
 * distributed one knows no "zero" 0. A stack that is named is asked as it stands. */
static inline int ft__zero_of(const ft_workload *w, int zero, int64_t replicas)
{
    if (w->stack || w->task != FT_TRAIN || replicas < 2 || zero > 0) return zero;
    return ft__stack_of(w, zero, replicas)->zero;
}
/* Whether a training step is of software that a loss which makes no logits can be turned on in, and with it the kernels
 * of the stack for that loss: the one that stack stands on, or none that is named. Weights of few bits are prepared by
 * other software, fp32 copies of weights are another stack's. */
bool ft__stack_takes_fused_linear(const ft_workload *w, const ft_arch *arch);
/* What "zero" changes on one GPU: DeepSpeed's hooks with 3, its buffers from 1 on. */
static inline bool ft__stack_shards_alone(const ft_stack *s, int zero)
{
    return (zero >= 3 && s->module_hooks) || (zero >= 1 && s->bucket_buffers > 0);
}
/* Tokens go to the experts that they were routed to, and to no others: not so in transformers' llama4. */
static inline bool ft__routes_tokens(const ft_arch *a, const ft_workload *w)
{
    return !a->all_experts || ft__stack(w)->grouped_experts || ft__by_engine(w);
}

/* Layers are checkpointed one by one. Selective recomputation is so too (PyTorch's policy per operator) but where it
 * drops attention's scores and nothing else, Megatron's (graph/recompute.c). */
static inline bool ft__recomputes_layers(const ft_workload *w)
{
    return w->recompute == FT_RECOMPUTE_FULL ||
           (w->recompute == FT_RECOMPUTE_SELECTIVE && ft__stack(w)->selective == FT_SELECTIVE_POLICY);
}

/* One of the kernels that "fusions" is about: the stack's trait unless the request says. */
static inline bool ft__fuses(const ft_workload *w, bool trait)
{
    return w->fusions == FT_FUSIONS_OF_STACK ? trait : w->fusions == FT_FUSIONS_RECIPE && w->execution == FT_RUN_FUSED;
}

/* Bytes of a gradient beside fp32 copies. */
static inline double ft__stack_gradient_bytes(const ft_stack *s, ft_dtype dtype)
{
    if (dtype == FT_BF16) return s->gradient_bytes_bf16;
    return dtype == FT_FP16 ? s->gradient_bytes_fp16 : s->gradient_bytes_low;
}

/* Adapters beside bitsandbytes' 4 bits, whose model the stack prepares: to be built as under autocast, with fp32 for
 * all that is not packed. Adapters in another form than its own say that it was not called. */
bool ft__kbit_prepared(const ft_workload *w, const ft_stack *s);
/* What is trained beside frozen weights, nothing left open. */
ft_adapters ft__adapters_of(const ft_workload *w);

/* By name; the error says the nearest. */
ft_status ft__stack_find(const char *name, const ft_stack **out, ft_error *err);
/* A name, or a user's own: the path of a file, or its object, with "base". `where` is what errors call it; *own is
 * filled where it is not a name. */
ft_status ft__stack_read(const json_t *said, const char *where, ft_stack *own, const ft_stack **out, ft_error *err);
/* What a named stack has not: an execution, sharding, ranks that share a model. */
ft_status ft__stack_check(const ft_workload *w, int zero, bool model_parallel, bool sequence_parallel, ft_error *err);
#endif
