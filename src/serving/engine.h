/* A serving engine: whose kernels it runs, how it schedules, what its host and its front end cost, as named traits.
 *
 * An engine is a file of data/engines, compiled in by scripts/embed_engines.py, or a user's own file or object on top
 * of one. What a trait says stands here, once; which engine has it, and who says so, in the files. */
#ifndef FT_SERVING_ENGINE_H
#define FT_SERVING_ENGINE_H
#include "base/json.h"
#include "base/text.h"
#include "foretell.h"

/* What an iteration is made of. */
typedef enum ft_order {
    FT_ORDER_DECODE_FIRST,  /* every decoding sequence, then prompts while the token budget lasts: vLLM */
    FT_ORDER_PROMPTS_ALONE, /* prompts by themselves while there are any, then decoding: SGLang */
    FT_ORDER_MIXED          /* both, prompts whole: TensorRT-LLM */
} ft_order;
/* When a request may start. */
typedef enum ft_admission {
    FT_ADMISSION_PROMPT, /* as soon as its prompt fits; when the cache is full the newest starts over */
    FT_ADMISSION_RESERVE /* once its prompt and a share of its answer fit */
} ft_admission;
/* What becomes of the cache of a request that is preempted. */
typedef enum ft_preemption {
    FT_PREEMPTION_RECOMPUTE, /* it is computed again */
    FT_PREEMPTION_SWAP,      /* it goes to the host and comes back */
    FT_PREEMPTION_REUSE      /* what others have not overwritten is found again, with a prefix cache and no states */
} ft_preemption;
/* Whose fused experts; in the order of ft_moe_backend. */
typedef enum ft_experts {
    FT_EXPERTS_USUAL,
    FT_EXPERTS_CUTLASS,
    FT_EXPERTS_TRTLLM_GEN,
    FT_EXPERTS_TRITON,
    FT_EXPERTS_MARLIN,
    FT_EXPERTS_DEEPGEMM
} ft_experts;

/* X(name, what it says) */
#define FT_SERVING_FLAGS(X)                                                                                   \
    X(chunked_prefill, "prompts are cut where the token budget ends")                                         \
    X(fp8_cache, "the cache is fp8 beside fp8 and fp4 weights, on GPUs whose kernels issue tcgen05")          \
    X(fp8_cache_everywhere, "the same on every GPU with fp8")                                                 \
    X(budget_of_rank, "token_budget and max_sequences are those of one attention-data-parallel rank")         \
    X(sized_to_load, "in a closed loop: max_sequences is the number of clients")                              \
    X(fp8_blocks, "fp8 checkpoints of the model have a scale for every block")                                \
    X(window_cache, "layers with a sliding window cache no more than the window")                             \
    X(prefix_cache, "a prefix that prompts share with earlier ones is not computed again")                    \
    X(prefix_at_once, "others find a prompt's blocks already in the step that computes them")                 \
    X(budget_of_load, "in a closed loop: token_budget is one prompt plus what clients decode plus 64")        \
    X(library_sums, "all-reduces over tensor ranks are NCCL's, not its own kernels")                          \
    X(fused_sums, "an all-reduce of products without latent attention norms what it has added")               \
    X(launched_tokens, "decoding runs without a graph too: its launches are a floor")                         \
    X(prompt_graphs, "prompts are replayed too, in pieces between their attention, whose launches are left")  \
    X(launched_ahead, "an iteration is issued while the last one runs: who comes meanwhile waits for both")   \
    X(padded_graphs, "a batch without a graph of its size is padded to one; if not, only powers of two have") \
    X(narrows_attended, "a separate kernel quantises attention's output for an 8-bit GEMM")                   \
    X(writes_out, "prefill attention is two batched GEMMs with a softmax between them")                       \
    X(walks_heads, "in decoding, query heads read keys one by one on vector units, except shared_group")
/* X(name, enum, words, what it says) */
#define FT_SERVING_WORDS(X)                                                                        \
    X(order, ft_order, ("decode_first", "prompts_alone", "mixed"), "what an iteration is made of") \
    X(admission, ft_admission, ("prompt", "reserve"), "when a request may start")                  \
    X(preemption, ft_preemption, ("recompute", "swap", "reuse"),                                   \
      "what happens to a preempted request's cache: recomputed, swapped to the host, or reused")   \
    X(experts, ft_experts, ("usual", "cutlass", "trtllm_gen", "triton", "marlin", "deepgemm"),     \
      "whose fused experts: the engine's usual choice for the GPU and the format, or these")
/* X(name, least, most, what it says) */
#define FT_SERVING_NUMBERS(X)                                                                                     \
    X(token_budget, 1, 1e7, "tokens of an iteration")                                                             \
    X(token_budget_small, 1, 1e7, "the same on GPUs with less memory than large_gib")                             \
    X(token_budget_largest, 1, 1e7, "the same on GPUs from largest_gib on")                                       \
    X(largest_gib, 0, 1e6, "GiB from which a GPU counts as one of the largest; 0: none does")                     \
    X(max_sequences, 1, 1e7, "sequences that decode at once")                                                     \
    X(max_sequences_small, 1, 1e7, "the same on GPUs with less memory than large_gib")                            \
    X(graph_sequences, 0, 1e7, "sequences of a rank that decode at once with a graph; more are launched; 0: any") \
    X(graph_sequences_small, 0, 1e7, "the same on GPUs with less memory than large_gib")                          \
    X(graph_sequences_largest, 0, 1e7, "the same on GPUs from largest_gib on")                                    \
    X(graphs_each, 0, 1e7, "without padding, batches up to so many have a graph each; beyond, powers of two")     \
    X(piece_tokens, 0, 1e7, "tokens of an iteration up to which prompt_graphs have pieces; 0: any")               \
    X(piece_kernels, 0, 1e3, "launches of a layer between its pieces; 0: all of attention's kernels")             \
    X(idle_sequences, 0, 1e6, "of max_sequences, that no request gets")                                           \
    X(large_gib, 0, 1e6, "GiB from which a GPU counts as large")                                                  \
    X(small_capability, 0, 1e4, "compute capability, times ten, whose GPUs never count as large: 80; 0: none")    \
    X(block_tokens, 1, 4096, "tokens of a block of the cache")                                                    \
    X(memory_share, 0.05, 1, "share of the memory for weights, activations and cache")                            \
    X(outside_gib, 0, 1e3, "GiB that memory_share excludes where the request gives no share")                     \
    X(outside_rank_gib, 0, 1e3, "the same for every tensor and pipeline rank")                                    \
    X(outside_token_kib, 0, 1e5, "the same, in KiB, for every token of the budget")                               \
    X(workspace_gib, 0, 1e3, "GiB of it for activations, graphs and libraries")                                   \
    X(cache_share, 0.05, 1, "share of the rest that becomes the cache")                                           \
    X(sampler_bytes, 0, 1e3, "kept for sampling, of every token of the vocabulary for each of max_sequences")     \
    X(join_iterations, 0, 1e6, "how long prompts wait until every attention-data-parallel rank has one")          \
    X(wait_iterations, 0, 1e6, "how long prompts wait during decoding until wait_share of the budget is there")   \
    X(wait_share, 0, 1, "of the token budget, that the waiting prompts and the decoders fill together")           \
    X(receive_interval, 1, 1e6, "decode iterations between two checks for new requests")                          \
    X(reserved_output, 0, 1, "share of an answer that is reserved when a request starts")                         \
    X(prompts, 0, 1e7, "distinct prompts that clients draw from, where a request does not say; 0: all differ")    \
    X(drafts, 0, 64, "draft tokens per step from the model's own layer, where a request does not say")            \
    X(step_scale, 0.1, 10, "time of an iteration's kernels over the sum of their forecasts")                      \
    X(experts_scale, 0.1, 10, "time of fused experts in a replayed graph, for few tokens, over their forecast")   \
    X(block_experts_scale, 0.1, 10, "time of trtllm_gen's fp8 experts in blocks, for many tokens, over theirs")   \
    X(scan_bytes, 0, 1e4, "that a chunked scan moves for each element of a token's keys and values")              \
    X(gap_us, 0, 1e3, "between two kernels: of a replayed graph, or issued one by one where none is")             \
    X(eager_us, 0, 1e4, "host time of a launch where prompts run without a graph")                                \
    X(prompt_kernels, 0, 1e3, "small kernels of a layer that prefill has in addition to decoding's")              \
    X(head_norms, 0, 16, "kernels of a layer that norm queries and keys, where the model does")                   \
    X(shared_group, 0, 1e3, "query heads to a key-value head that a kernel of matrix units is for; 0: none")      \
    X(prefill_scale, 0.1, 10, "time of kernels in iterations with prompts over their time in a replayed graph")   \
    X(step_ms, 0, 1e3, "of an iteration: scheduling, sampling, copies")                                           \
    X(sequence_us, 0, 1e4, "and for every sequence in it")                                                        \
    X(request_ms, 0, 1e4, "from the client to the queue: connection, parsing, processes")                         \
    X(prompt_token_us, 0, 1e4, "and for every token of the prompt")                                               \
    X(stream_us, 0, 1e4, "of the front end, for every token that it sends")                                       \
    X(stream_interval, 1, 1e6, "tokens of an answer that it sends together, after the first")                     \
    X(tpot_spread, 0.001, 5, "half width of TPOT's interval at 0.9, as a natural logarithm")                      \
    X(ttft_spread, 0.001, 5, "the same of TTFT")                                                                  \
    X(latent_tpot_spread, 0.001, 5, "of TPOT with latent attention, where nothing says if it speculates")         \
    X(latent_ttft_spread, 0.001, 5, "the same of TTFT")

typedef struct ft_serving_engine {
    char name[48], title[96];
    ft_engine kernels;          /* whose attention, experts and all-reduce */
    const char *const *recipes; /* JSON, the last is NULL: how it is started for some models (recipe.c) */
#define X_FLAG(name, help) bool name;
#define X_WORD(name, type, words, help) type name;
#define X_NUMBER(name, low, high, help) double name;
    FT_SERVING_FLAGS(X_FLAG)
    FT_SERVING_WORDS(X_WORD)
    FT_SERVING_NUMBERS(X_NUMBER)
#undef X_FLAG
#undef X_WORD
#undef X_NUMBER
} ft_serving_engine;

/* Compiled in, sorted by name. */
extern const size_t ft__serving_engine_count;
extern const ft_serving_engine ft__serving_engines[];
extern const char ft__serving_usual[]; /* the engine of requests that name none */

/* Whose command line starts such an engine, a name or {"base": name}; NULL (none is said): the usual one's. A name
 * "vllm", "sglang", "trtllm" in FT_ENGINE_...; FT_ENGINE_ANY: a file, of which only its reader knows. */
ft_engine ft__serving_started_as(const json_t *said);

/* What a recipe asks about: the model, its format, the GPU, the layout and the load. */
typedef struct ft_situation {
    const char *model_type; /* of its config; NULL: recipes are not wanted */
    const char *dtype;      /* that was asked for */
    int64_t hidden, vocab, tp, dp, ep;
    bool tcgen05, mfma; /* how its kernels issue products */
    double isl, osl;
    int64_t clients;    /* of one engine; 0: no closed loop */
    bool fixed_lengths; /* an engine by name, and two numbers that every request has, as load generators are given */
} ft_situation;

/* A name ("vllm"), a file or an object {"base": "vllm", "traits": {...}}; recipes for the situation lie between the
 * two. *own is filled where the engine is not as it is compiled in; *sources says whose recipes, one per line. */
ft_status ft__serving_engine_read(const json_t *said, const ft_situation *s, ft_serving_engine *own,
                                  const ft_serving_engine **out, ft_text *sources, ft_error *err);
/* Whether the engine starts with its settings for large GPUs there, or with those for small ones; its budget there. */
bool ft__serving_is_large(const ft_serving_engine *e, const ft_device *d);
double ft__serving_budget(const ft_serving_engine *e, const ft_device *d);
double ft__serving_graphs(const ft_serving_engine *e, const ft_device *d); /* sequences of its largest; 0: any */
/* Puts what an object says over an engine's traits. */
ft_status ft__serving_traits_read(const json_t *object, const char *where, ft_serving_engine *out, ft_error *err);
/* recipe.c: every recipe of the engine that holds, in its order. */
ft_status ft__serving_recipes(const ft_situation *s, ft_serving_engine *e, ft_text *sources, ft_error *err);
#endif
