/* A serving engine: whose kernels it runs, how it schedules, what its host and its front end cost, as named traits.
 *
 * An engine is a file of data/engines, compiled in by scripts/embed_engines.py, or a user's own file or object on top
 * of one. What a trait says stands here, once; which engine has it, and who says so, in the files. */
#ifndef FT_SERVING_ENGINE_H
#define FT_SERVING_ENGINE_H
#include "base/json.h"
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

/* X(name, what it says) */
#define FT_SERVING_FLAGS(X)                                                                          \
    X(chunked_prefill, "prompts are cut where the token budget ends")                                \
    X(fp8_cache, "the cache is fp8 beside fp8 and fp4 weights, on GPUs whose kernels issue tcgen05") \
    X(fp8_cache_everywhere, "the same on every GPU with fp8")
/* X(name, enum, words, what it says) */
#define FT_SERVING_WORDS(X)                                                                      \
    X(order, ft_order, "decode_first", "prompts_alone", "mixed", "what an iteration is made of") \
    X(admission, ft_admission, "prompt", "reserve", NULL, "when a request may start")
/* X(name, least, most, what it says) */
#define FT_SERVING_NUMBERS(X)                                                                                   \
    X(token_budget, 1, 1e7, "tokens of an iteration")                                                           \
    X(token_budget_small, 1, 1e7, "the same on GPUs with less memory than large_gib")                           \
    X(max_sequences, 1, 1e7, "sequences that decode at once")                                                   \
    X(max_sequences_small, 1, 1e7, "the same on GPUs with less memory than large_gib")                          \
    X(large_gib, 0, 1e6, "GiB from which a GPU counts as large")                                                \
    X(block_tokens, 1, 4096, "tokens of a block of the cache")                                                  \
    X(memory_share, 0.05, 1, "share of the memory for weights, activations and cache")                          \
    X(workspace_gib, 0, 1e3, "GiB of it for activations, graphs and libraries")                                 \
    X(cache_share, 0.05, 1, "share of what then is left that becomes the cache")                                \
    X(join_iterations, 0, 1e6, "how long prompts wait until every attention-data-parallel rank has one")        \
    X(reserved_output, 0, 1, "share of an answer that is reserved when a request starts")                       \
    X(step_scale, 0.1, 10, "time of an iteration's kernels over the sum of their forecasts")                    \
    X(experts_scale, 0.1, 10, "time of fused experts in a replayed graph, for few tokens, over their forecast") \
    X(gap_us, 0, 1e3, "between two kernels of a replayed graph")                                                \
    X(eager_us, 0, 1e4, "host time of a launch where prompts run without a graph")                              \
    X(prefill_scale, 0.1, 10, "time of kernels beside prompts over what they take in a replayed graph")         \
    X(step_ms, 0, 1e3, "of an iteration: scheduling, sampling, copies")                                         \
    X(sequence_us, 0, 1e4, "and for every sequence in it")                                                      \
    X(request_ms, 0, 1e4, "from the client to the queue: connection, parsing, processes")                       \
    X(prompt_token_us, 0, 1e4, "and for every token of the prompt")                                             \
    X(stream_us, 0, 1e4, "of the front end, for every token that it sends")                                     \
    X(tpot_spread, 0.001, 5, "half width of TPOT's interval at 0.9, as a natural logarithm")                    \
    X(ttft_spread, 0.001, 5, "the same of TTFT")                                                                \
    X(latent_tpot_spread, 0.001, 5, "of TPOT with latent attention, where nothing says if it speculates")       \
    X(latent_ttft_spread, 0.001, 5, "the same of TTFT")

typedef struct ft_serving_engine {
    char name[48], title[96];
    ft_engine kernels; /* whose attention, experts and all-reduce */
#define X_FLAG(name, help) bool name;
#define X_WORD(name, type, a, b, c, help) type name;
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

/* A name ("vllm"), a file or an object {"base": "vllm", "traits": {...}}. *own is filled where it is no name. */
ft_status ft__serving_engine_read(const json_t *said, ft_serving_engine *own, const ft_serving_engine **out,
                                  ft_error *err);
#endif
