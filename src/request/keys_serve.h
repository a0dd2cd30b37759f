/* Keys of a request for serving under load, one row each. How a row reads is said in keys_list.h. */
#ifndef FT_REQUEST_KEYS_SERVE_H
#define FT_REQUEST_KEYS_SERVE_H

#define FT_SERVE_KEYS(FLAG, PLAIN)                                                                                     \
    FLAG(SERVING_ENGINE, "engine", NAMED, 0, 0, NO_WORDS, DEPENDS, "engine", 0, "NAME", SERVE | PLANS | CHOOSE,        \
      "the serving engine: vllm, sglang, trtllm, or a file on top of one [vllm]",                                      \
      "`vllm`, `sglang`, `trtllm` ([engines](engines.md)), the path of a file, or its object "                         \
      "`{\"base\": \"vllm\", \"traits\": {…}}`; left out: `vllm`")                                                     \
    FLAG(SETTINGS, "settings", WORD, 0, 0, WORDS(settings), 0, "settings", 0, NULL, SERVE | PLANS | CHOOSE,            \
      "how the engine is started: as in a public recipe for the model, or with its defaults",                          \
      "`recipe`: the engine is started as in [a public recipe](engines.md) for the model, where there is one; "        \
      "`defaults`: with its defaults")                                                                                 \
    FLAG(SERVE_ISL, "isl", REAL, 1, 1e9, NO_WORDS, 1024, "isl", 0, "N", SERVE | PLANS | CHOOSE, "tokens of a prompt",  \
      "1024: tokens of a prompt; the mean, or the maximum where `length_range` ends at 1")                             \
    FLAG(SERVE_OSL, "osl", REAL, 1, 1e9, NO_WORDS, 256, "osl", 0, "N", SERVE | PLANS | CHOOSE, "tokens of an answer",  \
      "256: tokens of an answer, likewise")                                                                            \
    FLAG(LENGTH_RANGE, "length_range", PAIR, 0, 1000, NO_WORDS, DEPENDS, "length-range", 0, "A:B",                     \
      SERVE | PLANS | CHOOSE,                                                                                          \
      "lengths are uniform between these shares of --isl and --osl [all equal]",                                       \
      "`[0.8, 1.0]`: lengths are uniform between these shares of `isl` and `osl`; left out: all are equal. With "      \
      "`length_sigma`, lengths outside are drawn again, and the mean is kept")                                         \
    FLAG(LENGTH_SIGMA, "length_sigma", REAL, 0, 5, NO_WORDS, 0, "length-sigma", 0, "X", SERVE | PLANS | CHOOSE,        \
      "lengths are lognormal around --isl and --osl with this standard deviation",                                     \
      "0: none; otherwise lengths are lognormal around `isl` and `osl` with this standard deviation of the logarithm") \
    FLAG(LENGTHS, "lengths", TEXT, 0, 0, NO_WORDS, DEPENDS, "lengths", 0, "FILE", SERVE,                               \
      "a file of prompt and answer lengths to draw from: CSV or JSONL with input and output",                          \
      "path of a file with `input` and `output`, [CSV or JSONL](serving.md#logs): requests draw their lengths from "   \
      "its lines")                                                                                                     \
    FLAG(CONCURRENCY, "concurrency", WHOLE, 1, 10000000, NO_WORDS, DEPENDS, "concurrency", 'c', "N", SERVE,            \
      "concurrent clients, each of which waits for its answer before it sends its next request",                       \
      "concurrent clients over all ranks, each of which sends its next request when the last is answered. Exactly one "\
      "of this, `rate` and `trace`")                                                                                   \
    FLAG(RATE, "rate", REAL, 1e-9, 1e9, NO_WORDS, DEPENDS, "rate", 'r', "X", SERVE | PLANS | CHOOSE,                   \
      "requests that arrive per second",                                                                               \
      "requests that arrive per second; the last one arrives after `requests` / `rate` seconds")                       \
    FLAG(BURSTINESS, "burstiness", REAL, 1e-3, 1e3, NO_WORDS, 1, "burstiness", 0, "X", SERVE | PLANS | CHOOSE,         \
      "shape of the gamma distribution of the time between arrivals: 1 is Poisson, less is bursty",                    \
      "1: shape of the gamma distribution of the time between arrivals at `rate`; 1 is Poisson, less is bursty")       \
    FLAG(REQUEST_LOG, "trace", TEXT, 0, 0, NO_WORDS, DEPENDS, "trace", 0, "FILE", SERVE,                               \
      "a log of requests: CSV or JSONL; the Azure and Mooncake layouts too",                                           \
      "path of a log of requests: [CSV or JSONL](serving.md#logs); the Azure and Mooncake layouts are read as they "   \
      "are")                                                                                                           \
    FLAG(REQUESTS, "requests", WHOLE, 1, 1000000000, NO_WORDS, DEPENDS, "requests", 'n', "N", SERVE | CHOOSE,          \
      "how many [10 per client; 1000 at a rate, or more if that is only a burst; all of a log]",                       \
      "how many, at most ten million in a simulation; left out: ten per client, all of a log; at a `rate` 1000 or, "   \
      "where those are only a burst, six times as many as are in flight, the first sixth not counted")                 \
    FLAG(WARMUP, "warmup", WHOLE, 0, 1000000000, NO_WORDS, 0, "warmup", 0, "N", SERVE,                                 \
      "number of requests that finish first and are not counted",                                                      \
      "0: number of requests that finish first and are not counted")                                                   \
    FLAG(SERVE_START, "start", WORD, 0, 0, WORDS(start), 0, "start", 0, NULL, SERVE,                                   \
      "clients start together, or spread over the duration of a request",                                              \
      "`together`: all clients start at once; `steady`: spread over the duration of a request")                        \
    FLAG(TURNS, "turns", WHOLE, 1, 100000, NO_WORDS, 1, "turns", 0, "N", SERVE,                                        \
      "requests per session: each has all earlier ones as its prefix, in the cache",                                   \
      "1; more: requests per session of a client, each with the whole conversation so far as its prefix, which is in " \
      "the cache")                                                                                                     \
    FLAG(THINK_MS, "think_ms", REAL, 0, 1e9, NO_WORDS, 0, "think-ms", 0, "X", SERVE,                                   \
      "a client's pause between an answer and its next request", "0: a client's pause before its next request")        \
    FLAG(MAX_NUM_SEQS, "max_num_seqs", WHOLE, 1, 10000000, NO_WORDS, DEPENDS, "max-num-seqs", 0, "N",                  \
      SERVE | PLANS | CHOOSE,                                                                                          \
      "most sequences that run at once [the engine's]", "the most sequences that run at once; left out: the engine's " \
                                                        "own")                                                         \
    FLAG(MAX_NUM_BATCHED_TOKENS, "max_num_batched_tokens", WHOLE, 1, 100000000, NO_WORDS, DEPENDS,                     \
      "max-num-batched-tokens", 0, "N", SERVE | PLANS | CHOOSE, "most tokens per iteration [the engine's]",            \
      "the most tokens per iteration; left out: the engine's own")                                                     \
    FLAG(CHUNKED_PREFILL, "chunked_prefill", SWITCH, 0, 0, NO_WORDS, DEPENDS, "chunked-prefill", 0, NULL,              \
      SERVE | PLANS | CHOOSE,                                                                                          \
      "chunked prefill: prompts are split at the token budget [as the engine does]",                                   \
      "chunked prefill: whether prompts are split at the token budget; left out: as the engine does")                  \
    FLAG(GPU_MEMORY_UTILIZATION, "gpu_memory_utilization", REAL, 0.05, 1, NO_WORDS, DEPENDS,                           \
      "gpu-memory-utilization", 0, "X", SERVE | PLANS | CHOOSE,                                                        \
      "share of the memory for weights and cache [the engine's]",                                                      \
      "share of the memory for weights, activations and cache; for `trtllm`, the cache's share of what weights leave " \
      "(`free_gpu_memory_fraction`); left out: the engine's own, raised with a warning if no request would fit")       \
    FLAG(PREFIX_HIT, "prefix_hit", REAL, 0, 1, NO_WORDS, 0, "prefix-hit", 0, "X", SERVE | PLANS | CHOOSE,              \
      "share of every prompt that is in the cache", "0: share of every prompt that is in the cache already")           \
    FLAG(PROMPTS, "prompts", WHOLE, 0, 10000000, NO_WORDS, DEPENDS, "prompts", 0, "N", SERVE,                          \
      "distinct prompts to draw from, so that the engine's prefix cache finds repeated ones; 0: all differ",           \
      "number of distinct prompts that requests draw from at random, so that the engine's prefix cache finds repeated "\
      "ones; 0: all differ; left out: 0, or what a recipe for such a load says")                                       \
    FLAG(SPECULATIVE, "speculative", SECTION, 0, 0, NO_WORDS, DEPENDS, "speculative", 0, "TOKENS:ACCEPTED",            \
      SERVE | PLANS | CHOOSE,                                                                                          \
      "draft tokens per step, and tokens that a step then yields",                                                     \
      "`{\"tokens\": 3, \"accepted\": 2.3}`: draft tokens per step, and tokens that a step then yields; left out: "    \
      "none")                                                                                                          \
    FLAG(SERVED_MTP, "mtp", WHOLE, 0, 16, NO_WORDS, 0, "mtp", 0, "N", SERVE,                                           \
      "draft tokens per step from a prediction layer of the model itself",                                             \
      "0; more: draft tokens per step from a prediction layer of the model itself (multi-token prediction), one after "\
      "another")                                                                                                       \
    FLAG(DRAFT, "draft", NAMED, 0, 0, NO_WORDS, DEPENDS, "draft", 0, "MODEL", SERVE,                                   \
      "a smaller model that makes the draft tokens [none]",                                                            \
      "a smaller model, named like `model`, that makes the draft tokens on the same GPUs; left out: none")             \
    FLAG(DRAFT_TOKENS, "draft_tokens", WHOLE, 1, 64, NO_WORDS, 3, "draft-tokens", 0, "N", SERVE,                       \
      "draft tokens per step from --draft", "3: draft tokens per step from `draft`")                                   \
    FLAG(ACCEPTANCE, "acceptance", REAL, 0, 1, NO_WORDS, DEPENDS, "acceptance", 0, "X", SERVE,                         \
      "chance that a draft token of --mtp or --draft is accepted, if all before it were",                              \
      "chance that a draft token of `mtp` or `draft` is accepted, if all before it were; left out: what public "       \
      "benchmarks measured")                                                                                           \
    FLAG(ADAPTERS, "adapters", WHOLE, 0, 100000, NO_WORDS, 0, "adapters", 0, "N", SERVE,                               \
      "LoRA adapters served together, used evenly by the requests",                                                    \
      "0; more: LoRA adapters on all linear layers but experts, used evenly by the requests")                          \
    FLAG(SERVED_RANK, "adapter_rank", WHOLE, 1, 4096, NO_WORDS, 16, "adapter-rank", 0, "N", SERVE,                     \
      "rank of each adapter", "16: rank of each adapter")                                                              \
    FLAG(SCHEDULING, "scheduling", WORD, 0, 0, WORDS(scheduling), 0, "scheduling", 0, NULL, SERVE,                     \
      "which waiting request is next",                                                                                 \
      "`fcfs`, `priority` (the log's, the lowest number first), `shortest` (prompt), `fair` (the client served least " \
      "so far), `max_min` (the client with the smallest share of the engine now): which waiting request is next")      \
    FLAG(REPLICAS, "replicas", WHOLE, 1, 10000, NO_WORDS, 1, "replicas", 0, "N", SERVE,                                \
      "engines behind a router", "1: engines behind a router")                                                         \
    FLAG(ROUTING, "routing", WORD, 0, 0, WORDS(routing), 0, "routing", 0, NULL, SERVE,                                 \
      "how the router chooses", "`round_robin`, `least_loaded`, `prefix_aware`: how the router chooses")               \
    PLAIN(DISAGGREGATED, "disaggregated", SECTION, 0, 0, NO_WORDS, DEPENDS,                                            \
      "`{\"prefill\": {\"workers\": 1, \"tp\": 4}, \"decode\": {\"workers\": 2, \"tp\": 8}}`: separate prefill and "   \
      "decode engines, and the `parallel` of each; caches are transferred between them")                               \
    FLAG(SLO, "slo", SECTION, 0, 0, NO_WORDS, DEPENDS, "slo", 0, "ttft=MS,tpot=MS", SERVE | PLANS | CHOOSE,            \
      "what a request must meet to count as good: ttft=500ms,tpot=30ms,e2e=20s",                                       \
      "`{\"ttft_ms\": 500, \"tpot_ms\": 30, \"e2e_ms\": 20000, \"share\": 0.9}`: what a request must meet to count as "\
      "good, and the share of requests that must (0.9)")                                                               \
    FLAG(FIND, "find", WORD, 0, 0, WORDS(find), DEPENDS, "find", 0, NULL, SERVE,                                       \
      "the highest rate, or the most clients, that meet --slo",                                                        \
      "`rate`, `concurrency`: the highest that meets `slo`")                                                           \
    PLAIN(PER_REQUEST, "per_request", SWITCH, 0, 0, NO_WORDS, 0,                                                       \
      "false; true: the answer lists every request, `per_request`, up to a million")                                   \
    FLAG(SERVE_SEED, "seed", WHOLE, 0, 1000000000000, NO_WORDS, 1, "seed", 0, "N", SERVE | PLANS | CHOOSE,             \
      "of the random numbers",                                                                                         \
      "1: seed of the random numbers; equal seeds give equal answers")
#endif
