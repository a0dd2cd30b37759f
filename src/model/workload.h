/* What is done with a model: one step of training, a forward pass, a prefill, a decode step, on so many tokens, in this
 * precision, executed in that way. */
#ifndef FT_MODEL_WORKLOAD_H
#define FT_MODEL_WORKLOAD_H
#include "graph/adapter.h"
#include "graph/graph.h"
#include "model/arch.h"

typedef enum ft_task { FT_TRAIN, FT_FORWARD_PASS, FT_PREFILL, FT_DECODE, FT_TASK_COUNT } ft_task;
/* flash1 to flash3: the FlashAttention package's generations; cudnn, xformers, triton: fused kernels of others. */
typedef enum ft_attention_kind {
    FT_FLASH,
    FT_EAGER,
    FT_SDPA,
    FT_FLASH1,
    FT_FLASH2,
    FT_FLASH3,
    FT_CUDNN,
    FT_XFORMERS,
    FT_TRITON,
    FT_ATTENTION_KINDS
} ft_attention_kind;
/* One kernel that keeps no scores, by name. */
static inline bool ft__flashes(ft_attention_kind k) { return k != FT_EAGER && k != FT_SDPA; }
/* Whose; sdpa's is open. */
ft_attention_library ft__attention_library(ft_attention_kind k);
typedef enum ft_execution {
    FT_RUN_EAGER,
    FT_RUN_FUSED,
    FT_RUN_COMPILE,
    FT_RUN_CUDA_GRAPH,
    FT_RUN_IDEAL,
    FT_RUN_TORCHSCRIPT,
    FT_RUN_COUNT
} ft_execution;
extern const char *const ft__attention_words[FT_ATTENTION_KINDS];
extern const char *const ft__execution_words[FT_RUN_COUNT];
/* What torch.compile is given: the whole model with its loss, or every layer by itself, so that what is no layer
 * (embedding, head, loss) runs as written. Open: as FSDP is used, which is by layers; the whole model elsewhere. */
typedef enum ft_compile_scope {
    FT_SCOPE_OPEN,
    FT_SCOPE_MODEL,  /* with its loss; both are handed out */
    FT_SCOPE_LAYERS, /* each by itself */
    FT_SCOPE_LOSS    /* the model with its loss, which alone is handed out */
} ft_compile_scope;
/* Kernels that NVIDIA's recipes turn on beyond Megatron-Core's defaults: as the stack has them, with, or without. */
typedef enum ft_fusions { FT_FUSIONS_OF_STACK, FT_FUSIONS_RECIPE, FT_FUSIONS_PLAIN } ft_fusions;
typedef enum ft_cache_kind { FT_CACHE_PAGED, FT_CACHE_STATIC, FT_CACHE_DYNAMIC } ft_cache_kind;
typedef enum ft_optimizer {
    FT_ADAMW,
    FT_ADAMW_FOREACH,
    FT_ADAMW_8BIT,
    FT_ADAFACTOR,
    FT_SGD,
    FT_SGD_MOMENTUM,
    FT_MUON,
    FT_LAMB,
    FT_ADAMW_LOOP,
    FT_BERT_ADAM,
    FT_NO_OPTIMIZER,
    FT_OPTIMIZER_COUNT
} ft_optimizer;

/* Two moments of every parameter, in a format that can be said. */
static inline bool ft__keeps_moments(ft_optimizer o)
{
    return o == FT_ADAMW || o == FT_ADAMW_FOREACH || o == FT_LAMB || o == FT_ADAMW_LOOP || o == FT_BERT_ADAM;
}

/* What is done with the logits. upcast: copied to fp32 first, as transformers does; narrow: in their own format; fused:
 * one kernel each way, the gradient over the logits (Liger's, Apex', FlashAttention's); fused_linear: head and loss in
 * chunks, so that the logits are never there as a whole (Liger); chunked: logits as a whole, copied to fp32 a part at a
 * time (torchtune's, Axolotl's). */
typedef enum ft_entropy {
    FT_ENTROPY_OF_MODEL,
    FT_ENTROPY_UPCAST,
    FT_ENTROPY_NARROW,
    FT_ENTROPY_CHUNKED,
    FT_ENTROPY_FUSED,
    FT_ENTROPY_FUSED_LINEAR,
    FT_ENTROPY_COUNT
} ft_entropy;
extern const char *const ft__entropy_words[FT_ENTROPY_COUNT];

/* What Megatron-Core's selective recomputation drops (recompute_modules): bits of ft_workload.again. */
typedef enum ft_module {
    FT_MODULE_CORE_ATTN, /* attention's score matrix: what it drops where none is named */
    FT_MODULE_LAYERNORM,
    FT_MODULE_MOE_ACT,     /* the experts' activation */
    FT_MODULE_MLA_UP_PROJ, /* latents to queries, keys and values */
    FT_MODULE_MLP,         /* of layers without experts */
    FT_MODULE_MOE,         /* router, exchanges, experts, shared ones */
    FT_MODULE_SHARED_EXPERTS,
    FT_MODULE_COUNT
} ft_module;

/* What Megatron-Core replays from CUDA graphs (cuda_graph_modules): bits of ft_workload.graphed. */
typedef enum ft_graphed {
    FT_GRAPHED_ATTN,
    FT_GRAPHED_MLP, /* of layers without experts */
    FT_GRAPHED_MOE, /* all of a layer's experts: with a capacity, as rows must be as many every time */
    FT_GRAPHED_MOE_ROUTER,
    FT_GRAPHED_MOE_PREPROCESS, /* where tokens go */
    FT_GRAPHED_MAMBA,
    FT_GRAPHED_LAYER,          /* whole layers, one graph each: Megatron's empty list */
    FT_GRAPHED_FULL_ITERATION, /* both passes of every micro-batch */
    FT_GRAPHED_COUNT
} ft_graphed;

/* What MaxText's policies keep of a layer that runs again (remat_policy), by the names that its layers give to results:
 * bits of ft_workload.spared. */
typedef enum ft_remat_name {
    FT_REMAT_QUERY_PROJ,
    FT_REMAT_KEY_PROJ,
    FT_REMAT_VALUE_PROJ,
    FT_REMAT_CONTEXT, /* attention's result */
    FT_REMAT_OUT_PROJ,
    FT_REMAT_MLPWI, /* the products before an activation, of experts too */
    FT_REMAT_MLPWO, /* the one behind it */
    FT_REMAT_NAME_COUNT
} ft_remat_name;

/* What of a training step lies in the host's memory, or beyond it: bits of ft_workload.offload. */
typedef enum ft_offload {
    FT_OFFLOAD_OPTIMIZER,       /* states and fp32 copies, updated by the host's cores */
    FT_OFFLOAD_OPTIMIZER_NVME,  /* the same, on drives between updates */
    FT_OFFLOAD_PAGED_OPTIMIZER, /* in unified memory: what finds no room on the GPU is moved away until the update */
    FT_OFFLOAD_ACTIVATIONS,     /* what layers leave for the backward pass */
    FT_OFFLOAD_PARAMETERS,      /* weights, copied in layer by layer as they are read; states with them */
    FT_OFFLOAD_COUNT
} ft_offload;
/* What is trained towards: tokens; pairs of answers against a frozen copy of the model (DPO); pairs without one;
 * answers that the model has just generated (GRPO), with a model that values them (PPO). */
typedef enum ft_trainer {
    FT_TRAINER_SFT,
    FT_TRAINER_DPO,
    FT_TRAINER_ORPO,
    FT_TRAINER_GRPO,
    FT_TRAINER_PPO,
    FT_TRAINER_COUNT
} ft_trainer;
/* What generates: an engine whose host works beside the GPU, or between its steps. */
typedef enum ft_rollout_engine { FT_ROLLOUT_SERVER, FT_ROLLOUT_INLINE, FT_ROLLOUT_COUNT } ft_rollout_engine;
/* What leaves for the host while others use the GPU: states and weights while engines generate; the frozen copy, which
 * takes the place of the weights for its pass. */
typedef enum ft_away { FT_AWAY_OPTIMIZER, FT_AWAY_WEIGHTS, FT_AWAY_REFERENCE, FT_AWAY_COUNT } ft_away;
/* New weights reach engines one matrix at a time, or many. */
typedef enum ft_refit { FT_REFIT_TENSORS, FT_REFIT_BUCKETS, FT_REFIT_COUNT } ft_refit;

/* Answers that are generated before a step trains on them. */
typedef struct ft_answers {
    int64_t tokens;  /* of one, the mean; 0: none are generated */
    int64_t longest; /* of the longest; 0: all are equally long */
    int64_t samples; /* per prompt */
    int64_t tp;      /* tensor ranks of an engine; 0: those that train */
    int64_t at_once; /* that an engine decodes beside each other; 0: as usual */
    ft_rollout_engine engine;
    bool graphs;     /* its steps are replayed from CUDA graphs */
    double memory;   /* share of a GPU's that an engine takes; 0: the usual one */
    int64_t gpus;    /* of their own that generate; 0: those that train */
    bool ahead;      /* they generate for the next step while this one trains */
    int64_t age;     /* and so many steps old answers may be; at least 1 */
    int64_t updates; /* on what was generated once; at least 1 */
    int64_t pack;    /* tokens that packs of answers are filled up to; 0: nothing is */
    int64_t forward; /* the same where passes only go forward; 0: as the others */
    unsigned away;   /* ft_away, a bit each */
    ft_refit refit;
} ft_answers;

typedef struct ft_workload {
    ft_task task;
    ft_dtype dtype;      /* of the mathematics */
    bool autocast;       /* amp_*: parameters and their states in fp32 */
    bool master_weights; /* low-precision parameters beside fp32 copies in the optimizer */
    double weight_bits;  /* 0: the dtype's; 8 or 4 when weights are quantised */
    bool by_module;      /* weights are stored by kind of module, as `formats` says */
    ft_formats formats;
    ft_dtype kv_dtype;
    bool flows_fp16; /* what lies between products of 8 bits: fp16, where a GPU has no bf16 */
    int64_t batch, seq;
    int64_t images, image_height, image_width; /* images beside each sequence, of a model that sees; 0: none */
    int64_t
        source;  /* tokens of what is read beside each sequence, of a model that looks at such (a protein); 0: usual */
    int64_t mtp; /* modules behind the model that predict further tokens, and are trained; 0: none */
    ft_attention_kind attention;
    ft_execution execution;
    const struct ft_stack *stack;     /* the software that was named (stack.h); NULL: what follows from the rest */
    const struct ft_pytorch *pytorch; /* the version of PyTorch that was named (pytorch.h); NULL: today's */
    unsigned sdpa_gpu;                /* what the GPU lets sdpa do, bits of pytorch.h; asked where a version is named */
    bool ported;                      /* none was, and the GPU's first software was carried over from another maker's */
    bool before_fp8;                  /* the GPU has no fp8: what was published on it is older than NVIDIA's recipes */
    bool causal_by_name;              /* none was, and compiled layers are taken to call themselves causal: no mask */
    ft_compile_scope scope;           /* of compile */
    ft_fusions fusions;               /* of fused: two kernels that NVIDIA's recipes turn on */
    ft_cache_kind cache;
    ft_optimizer optimizer;
    ft_recompute recompute;
    unsigned again;     /* fused, selective: which modules run again, a bit each; 0: attention's scores */
    unsigned graphed;   /* fused: which modules are replayed from CUDA graphs, a bit each */
    unsigned spared;    /* full recomputation: what is kept all the same, a bit each; 0: a layer's input alone */
    bool nchw;          /* convolutional models: images as NCHW, not channels-last */
    int64_t lora_rank;  /* 0: all weights are trained */
    ft_adapters lora;   /* how adapters run; what is left open is the stack's */
    bool unpack_openly; /* weights of few bits are unpacked by plain operators: GPTQ's in training */
    ft_entropy loss;
    int64_t packed;           /* tokens of the documents that sequences are packed from; 0: a sequence is one */
    bool one_document;        /* and that whatever the stack makes of examples */
    bool padded;              /* sequences of a batch end before it does: a mask hides what is behind them */
    bool ema;                 /* a moving average of the weights is kept */
    double moment_bytes;      /* of AdamW's moments; 0: as the weights, or fp32 beside fp32 copies */
    bool updates_in_backward; /* a weight is updated as soon as its gradient is there, which is dropped then */
    unsigned offload;         /* what lies in the host's memory, a bit each; 0: nothing */
    double host_gbps;         /* between the GPU and it, each way; 0: what PCIe reaches */
    bool splits_layers;       /* llama.cpp's: of the layers, the head counted, so many are the GPU's */
    int64_t gpu_layers, cpu_experts, split_layers; /* of so many the experts are the host's; of how many layers */
    double host_memory_gbps;                       /* what the host's memory is sold with; 0: a usual one's */
    double nvme_gbps;                              /* of the drives of one GPU; 0: usual ones */
    ft_trainer trainer;
    bool reference;    /* a frozen copy of the model runs forward over the same sequences */
    bool old_logprobs; /* the model itself runs forward over its answers before it is trained on them */
    ft_answers answers;
    int64_t offload_layers;     /* whose activations leave for the host, where that is said; 0: all but four */
    int64_t loss_positions;     /* of a sequence, that go through head and loss; 0: all */
    int64_t recompute_layers;   /* with full recomputation: so many layers run again, the others keep all; 0: all */
    int64_t accumulate;         /* micro-batches per step; at least 1 */
    bool clip;                  /* gradient clipping */
    double host_us_per_op;      /* 0: modelled */
    const struct ft_host *host; /* who issues it (kernel/host.h); NULL: the usual one */
    int64_t unpaused;           /* steps follow each other for hours, the board never rests between them: so many
                               * micro-batches to an update; 0: it does */
    int64_t head_ranks;         /* tensor ranks that heads are dealt over, where a layout is known; 0: one */
    int64_t company;            /* processes that wait for each other in every micro-batch; 0 or 1: nobody waits */
    int64_t fleet;              /* GPUs that wait for each other in every step; 0 or 1: nobody waits */
    bool expandable_segments;   /* of PyTorch's allocator */
    bool peak_alone;            /* nobody asks what the allocator reserves: a stage by itself */
    bool verdict_alone;         /* only whether it fits is asked, not what would be reserved or help if it does not */
    bool time_alone;            /* nobody asks how far its time may err: a stage that bounds follow from */
    bool layers_apart;          /* who counts layers one by one: of a pattern each run of equal ones is a block */
} ft_workload;

/* Optimizer states are the host's: it updates the weights. */
static inline bool ft__updates_on_host(const ft_workload *w)
{
    const unsigned states = 1u << FT_OFFLOAD_OPTIMIZER | 1u << FT_OFFLOAD_OPTIMIZER_NVME | 1u << FT_OFFLOAD_PARAMETERS;
    return w->task == FT_TRAIN && w->optimizer != FT_NO_OPTIMIZER && (w->offload & states) != 0;
}
/* A compiler makes the kernels; a recorded graph replays what it made. */
static inline bool ft__compiles(const ft_workload *w)
{
    return w->execution == FT_RUN_COMPILE || w->execution == FT_RUN_CUDA_GRAPH;
}
static inline bool ft__offloads(const ft_workload *w, ft_offload what)
{
    return w->task == FT_TRAIN && (w->offload & 1u << what) != 0;
}
/* PPO trains a second model, which values what the first has said. */
static inline bool ft__has_critic(const ft_workload *w) { return w->task == FT_TRAIN && w->trainer == FT_TRAINER_PPO; }
/* Forward passes beside those that are trained: of the frozen copy; of the model over its own answers; of PPO's reward
 * model, and of both models that it trains, before it does. */
static inline int ft__frozen_passes(const ft_workload *w)
{
    return w->task == FT_TRAIN ? (w->reference ? 1 : 0) + (ft__has_critic(w) ? 3 : w->old_logprobs ? 1 : 0) : 0;
}
/* Models that lie there frozen. Adapters need no reference: without them the model is its own; one that lies on the
 * host is not there. */
static inline int ft__frozen_copies(const ft_workload *w)
{
    const bool copy = w->reference && w->lora_rank == 0 && !(w->answers.away & 1u << FT_AWAY_REFERENCE);
    return w->task == FT_TRAIN ? (copy ? 1 : 0) + (ft__has_critic(w) ? 1 : 0) : 0;
}
/* What "batch" counts is so many sequences: pairs of answers are two. */
static inline int64_t ft__sequences_each(ft_trainer trainer)
{
    return trainer == FT_TRAINER_DPO || trainer == FT_TRAINER_ORPO ? 2 : 1;
}
/* Answers are generated before a step trains on them. */
static inline bool ft__generates(ft_trainer trainer) { return trainer == FT_TRAINER_GRPO || trainer == FT_TRAINER_PPO; }

/* Of a model that generates: its prompt, or one token. */
static inline bool ft__generates_tokens(const ft_workload *w) { return w->task == FT_PREFILL || w->task == FT_DECODE; }

/* The kernels are a serving engine's: paged cache, fused norms, rotary and experts. */
static inline bool ft__by_engine(const ft_workload *w)
{
    return w->cache == FT_CACHE_PAGED && ft__generates_tokens(w) &&
           (w->execution == FT_RUN_FUSED || w->execution == FT_RUN_CUDA_GRAPH);
}

/* The cache's format where nobody names one: that of the activations; serving engines keep 16 bits beside fp8 and fp4
 * products. */
static inline ft_dtype ft__usual_kv_dtype(ft_dtype dtype, bool gpu_has_bf16)
{
    if (dtype == FT_TF32) return FT_FP32;
    if (ft_dtype_bytes(dtype) >= 2) return dtype;
    return gpu_has_bf16 ? FT_BF16 : FT_FP16;
}

/* Weights in one format of few bits (weights.c); what computes in few bits already, trains, or keeps fp32 weights is
 * left as it is. Who widens them: whom the request names, an engine's kernels (Marlin and its kin), what a compiler is
 * given (torchao), or the library that loads them. */
void ft__store_uniformly(ft_workload *w, ft_storage stored);
ft_weight_kernel ft__widened_by(const ft_workload *w);
/* Whose weights llama.cpp's kernels widen: in the formats of its files, kind by kind (gguf.c). */
void ft__store_as_gguf(ft_workload *w, const ft_arch *a);

/* The forward graph of the whole model, and what follows from it: backward, recomputation, the optimizer, fusion. A
 * layout cuts the graph in between. */
ft_status ft__model_forward(const ft_arch *arch, const ft_workload *work, ft_arena *arena, ft_graph **out,
                            ft_error *err);
/* Marks what the workload's modules run again (recompute_mask.c). */
void ft__mark_recomputed(ft_graph *g, const ft_workload *work);
/* What is captured in CUDA graphs (captured.c): the modules that the workload's are, of them what can be; what else
 * stands in a block's layer; whether a node is among it. */
typedef struct ft_captor {
    bool sparse, delta; /* the layer has experts; a delta net in place of attention */
} ft_captor;
unsigned ft__graphed(const ft_workload *work);
ft_captor ft__captor(const ft_graph *g, const ft_block *block);
bool ft__captured(unsigned graphed, ft_captor in, const ft_node *n);
/* Marks what a policy by names keeps. */
void ft__mark_spared(ft_graph *g, const ft_workload *work);
ft_status ft__model_complete(const ft_arch *arch, const ft_workload *work, ft_graph *g, ft_error *err);
/* Whose loss it is, in what it holds of the logits (loss_memory.c). `fused` is Megatron's, otherwise a finished graph
 * has PyTorch's own; a layout that cuts the vocabulary says whose it is then. */
typedef enum ft_loss_by {
    FT_LOSS_PLAIN,         /* torch.nn.functional.cross_entropy */
    FT_LOSS_PARALLEL,      /* the same over tensor ranks, by PyTorch's loss_parallel */
    FT_LOSS_MEGATRON,      /* in place */
    FT_LOSS_KEPT,          /* the logits are what is saved, and their gradient is a tensor of its own */
    FT_LOSS_AFTER_MEGATRON /* in place but for one copy */
} ft_loss_by;
void ft__loss_memory(ft_graph *g, ft_loss_by by);
bool ft__is_log_softmax(const ft_node *n); /* the loss' own, either way */
/* One kernel each way (loss_fused.c). */
void ft__loss_fused(ft_graph *g);
/* Losses of the logits that nothing goes back from, for the log; false: no memory. */
bool ft__loss_figures(ft_graph *g, int figures);
/* Logits are copied to fp32 behind the loss, for who called the model. False: out of memory. */
bool ft__loss_returns_wide(ft_graph *g);
/* Head and loss in chunks of rows: logits and what is made of them are there a chunk at a time, of fp32 logits of `gib`
 * at most (0: Liger's rows). */
bool ft__loss_in_chunks(ft_graph *g, double gib); /* false: no memory */
/* A product over all rows becomes as many as there are pieces of them. */
void ft__part_product(ft_node *n, int64_t rows, int64_t piece);
/* The same in pieces of so many rows whose logits are kept going forward (a stack's loss_tokens). */
void ft__loss_in_pieces(ft_graph *g, int64_t piece);
/* Logits as a whole, and what the loss makes of them a part at a time. `saves`: but for the log-softmax, which
 * waits. */
void ft__loss_in_parts(ft_graph *g, bool saves);
/* The same in pieces of so many rows that are made again going back (a stack's loss_rows); false: no memory. */
bool ft__loss_chunked(ft_graph *g, int64_t piece);
/* Forward graph, then the passes that the workload asks for: backward, recomputation, fusion, the optimizer. */
ft_status ft__model_graph(const ft_arch *arch, const ft_workload *work, ft_arena *arena, ft_graph **out, ft_error *err);
#endif
