/* Keys of requests for one kernel, one exchange and a profiler's trace, one row each. How a row reads is said in
 * keys_list.h. Which of the sizes an operator takes, and the least of each, stands in fields.c. */
#ifndef FT_REQUEST_KEYS_KERNEL_H
#define FT_REQUEST_KEYS_KERNEL_H

#define FT_OPERATOR_KEYS(FLAG, PLAIN)                                                                                  \
    FLAG(M, "m", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "m", 'm', "N", KERNEL,                                     \
      "gemm, linear, bmm: rows of A and of C", NULL)                                                                   \
    FLAG(N, "n", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "n", 'n', "N", KERNEL,                                     \
      "gemm, linear, bmm: columns of B and of C; conv2d: images", NULL)                                                \
    FLAG(K, "k", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "k", 'k', "N", KERNEL,                                     \
      "gemm, linear, bmm: the reduced dimension; conv2d: filters", NULL)                                               \
    FLAG(B, "b", WHOLE, 0, LARGEST_SIZE, NO_WORDS, 1, "b", 'b', "N", KERNEL, "bmm: matrices in the batch", NULL)       \
    FLAG(LAYOUT, "layout", WORD, 0, 0, WORDS(kernel_layout), DEPENDS, "layout", 0, NULL, KERNEL,                       \
      "memory layout of A and B (gemm: nt, bmm: nn), or of conv2d's images (nhwc)", NULL)                              \
    FLAG(BIAS, "bias", SWITCH, 0, 0, NO_WORDS, DEPENDS, "bias", 0, NULL, KERNEL,                                       \
      "gemm: add a bias (on for linear)", NULL)                                                                        \
    FLAG(QUANTIZED, "quantized", SWITCH, 0, 0, NO_WORDS, DEPENDS, "quantized", 0, NULL, KERNEL,                        \
      "fp8, int8, fp4 gemm: operands arrive quantised; --no-quantized: quantising is part of the time", NULL)          \
    FLAG(BATCH, "batch", WHOLE, 0, LARGEST_SIZE, NO_WORDS, 1, "batch", 0, "N", KERNEL, "attention, mla: sequences",    \
      NULL)                                                                                                            \
    FLAG(HEADS, "heads", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "heads", 0, "N", KERNEL,                           \
      "attention, mla: query heads", NULL)                                                                             \
    FLAG(KV_HEADS, "kv_heads", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "kv-heads", 0, "N", KERNEL,                  \
      "attention: key and value heads [--heads]", NULL)                                                                \
    FLAG(Q_LEN, "q_len", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "q-len", 0, "N", KERNEL,                           \
      "attention, mla: queries per sequence; 1 is decoding", NULL)                                                     \
    FLAG(KV_LEN, "kv_len", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "kv-len", 0, "N", KERNEL,                        \
      "attention, mla: keys per sequence [--q-len]", NULL)                                                             \
    FLAG(HEAD_DIM, "head_dim", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "head-dim", 0, "N", KERNEL,                  \
      "attention: width of a head", NULL)                                                                              \
    FLAG(V_DIM, "v_dim", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "v-dim", 0, "N", KERNEL,                           \
      "attention, mla: width of a value head", NULL)                                                                   \
    FLAG(WINDOW, "window", WHOLE, 0, LARGEST_SIZE, NO_WORDS, 0, "window", 0, "N", KERNEL,                              \
      "attention: sliding window; 0 for none", NULL)                                                                   \
    FLAG(CAUSAL, "causal", SWITCH, 0, 0, NO_WORDS, DEPENDS, "causal", 0, NULL, KERNEL,                                 \
      "attention, mla: a query sees only earlier keys", NULL)                                                          \
    FLAG(KV_DTYPE, "kv_dtype", DTYPE, 0, 0, NO_WORDS, DEPENDS, "kv-dtype", 0, "DTYPE", KERNEL,                         \
      "attention, mla: number format of the cache", NULL)                                                              \
    FLAG(KV_LORA, "kv_lora", WHOLE, 0, LARGEST_SIZE, NO_WORDS, 512, "kv-lora", 0, "N", KERNEL,                         \
      "mla: width of the latent", NULL)                                                                                \
    FLAG(ROPE_DIM, "rope_dim", WHOLE, 0, LARGEST_SIZE, NO_WORDS, 64, "rope-dim", 0, "N", KERNEL,                       \
      "mla: width of a key's rotary part", NULL)                                                                       \
    FLAG(NOPE_DIM, "nope_dim", WHOLE, 0, LARGEST_SIZE, NO_WORDS, 128, "nope-dim", 0, "N", KERNEL,                      \
      "mla: width of a key's part without rotary embedding", NULL)                                                     \
    FLAG(NAME, "name", TEXT, 0, 0, NO_WORDS, DEPENDS, "name", 0, "NAME", KERNEL,                                       \
      "elementwise: add, gelu, ...; optimizer: adamw, ...", NULL)                                                      \
    FLAG(INPUTS, "inputs", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "inputs", 0, "N", KERNEL,                        \
      "elementwise: tensors read; by the operator's name", NULL)                                                       \
    FLAG(NUMEL, "numel", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "numel", 0, "N", KERNEL,                           \
      "elementwise: elements of the output", NULL)                                                                     \
    FLAG(OPS_PER_ELEMENT, "ops_per_element", REAL, 0, 1e18, NO_WORDS, DEPENDS, "ops-per-element", 0, "X", KERNEL,      \
      "elementwise: arithmetic per element", NULL)                                                                     \
    FLAG(ROWS, "rows", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "rows", 0, "N", KERNEL,                              \
      "softmax, layernorm, ... (row operators): rows", NULL)                                                           \
    FLAG(COLS, "cols", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "cols", 0, "N", KERNEL, "row operators: columns",    \
      NULL)                                                                                                            \
    FLAG(VOCAB, "vocab", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "vocab", 0, "N", KERNEL,                           \
      "embedding: rows of the table", NULL)                                                                            \
    FLAG(C, "c", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "c", 'c', "N", KERNEL, "conv2d: input channels", NULL)     \
    FLAG(H, "h", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "h", 'h', "N", KERNEL, "conv2d: height of the image",      \
      NULL)                                                                                                            \
    FLAG(W, "w", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "w", 'w', "N", KERNEL, "conv2d: width of the image", NULL) \
    FLAG(R, "r", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "r", 'r', "N", KERNEL, "conv2d: height of the filter",     \
      NULL)                                                                                                            \
    FLAG(S, "s", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "s", 's', "N", KERNEL,                                     \
      "conv2d: width of the filter [its height]", NULL)                                                                \
    FLAG(STRIDE, "stride", WHOLE, 0, LARGEST_SIZE, NO_WORDS, 1, "stride", 0, "N", KERNEL,                              \
      "conv2d: stride of the filter", NULL)                                                                            \
    FLAG(PAD, "pad", WHOLE, 0, LARGEST_SIZE, NO_WORDS, 0, "pad", 0, "N", KERNEL, "conv2d: zero padding around the "    \
                                                                                 "image",                              \
      NULL)                                                                                                            \
    FLAG(GROUPS, "groups", WHOLE, 0, LARGEST_SIZE, NO_WORDS, 1, "groups", 0, "N", KERNEL,                              \
      "conv2d: groups of channels", NULL)                                                                              \
    FLAG(TOKENS, "tokens", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "tokens", 0, "N", KERNEL,                        \
      "moe: tokens routed", NULL)                                                                                      \
    FLAG(HIDDEN, "hidden", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "hidden", 0, "N", KERNEL,                        \
      "moe: width of the model", NULL)                                                                                 \
    FLAG(INTER, "inter", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "inter", 0, "N", KERNEL,                           \
      "moe: width of an expert", NULL)                                                                                 \
    FLAG(TOPK, "topk", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "topk", 0, "N", KERNEL, "moe: experts per token",    \
      NULL)                                                                                                            \
    FLAG(EXPERTS, "experts", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "experts", 0, "N", KERNEL,                     \
      "moe: experts over all --ep ranks", NULL)                                                                        \
    FLAG(SKEW, "skew", REAL, 0, 1e18, NO_WORDS, 0, "skew", 0, "X", KERNEL,                                             \
      "moe: how unevenly tokens are routed; 0 is even", NULL)                                                          \
    FLAG(MOE_ROUTING, "routing", WORD, 0, 0, WORDS(moe_routing), 0, "routing", 0, NULL, KERNEL,                        \
      "moe: tokens go to experts in turn, or are routed at random", NULL)                                              \
    FLAG(MOE_EP, "ep", WHOLE, 0, LARGEST_SIZE, NO_WORDS, 1, "ep", 0, "N", KERNEL,                                      \
      "moe: ranks that share the experts; --tokens counts all of them", NULL)                                          \
    FLAG(GATED, "gated", SWITCH, 0, 0, NO_WORDS, DEPENDS, "gated", 0, NULL, KERNEL,                                    \
      "moe: experts have a gate (three matrices); --no-gated: two", NULL)                                              \
    FLAG(MOE_BACKEND, "moe_backend", WORD, 0, 0, WORDS(moe_backend), 0, "moe-backend", 0, NULL, KERNEL,                \
      "moe: whose grouped GEMM kernels [any: what the engine picks]", NULL)                                            \
    FLAG(KERNEL_WEIGHTS, "weights_dtype", WORD, 0, 0, WORDS(storage), 0, "weights-dtype", 0, NULL, KERNEL,             \
      "gemm, moe: weights stored in fewer bits than the arithmetic has", NULL)                                         \
    FLAG(WEIGHT_KERNEL, "weight_kernel", WORD, 0, 0, WORDS(weight_kernel), 0, "weight-kernel", 0, NULL, KERNEL,        \
      "gemm: whose kernel dequantises the weights", NULL)                                                              \
    FLAG(PARAMS, "params", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "params", 0, "N", KERNEL,                        \
      "optimizer: parameters", NULL)                                                                                   \
    FLAG(TENSORS, "tensors", WHOLE, 0, LARGEST_SIZE, NO_WORDS, 1, "tensors", 0, "N", KERNEL,                           \
      "optimizer: number of tensors that hold the parameters", NULL)                                                   \
    FLAG(BYTES, "bytes", REAL, 0, 1e18, NO_WORDS, DEPENDS, "bytes", 0, "N", KERNEL,                                    \
      "any other operator: memory traffic", NULL)                                                                      \
    FLAG(FLOPS, "flops", REAL, 0, 1e18, NO_WORDS, 0, "flops", 0, "N", KERNEL, "any other operator: arithmetic", NULL)  \
    FLAG(ENGINE, "engine", WORD, 0, 0, WORDS(engine), 0, "engine", 0, NULL, KERNEL,                                    \
      "attention, moe: whose kernel, a framework's (bare) or a serving engine's", NULL)                                \
    FLAG(LIBRARY, "attention", WORD, 0, 0, WORDS(library), 0, "attention", 0, NULL, KERNEL,                            \
      "attention: whose fused kernel [sdpa: as PyTorch picks]", NULL)                                                  \
    FLAG(PASS, "pass", WORD, 0, 0, WORDS(pass), 0, "pass", 0, NULL, KERNEL,                                            \
      "attention, conv2d, gemm, row operators", NULL)

#define FT_KERNEL_KEYS(FLAG, PLAIN)                                                                                    \
    PLAIN(OP, "op", TEXT, 0, 0, NO_WORDS, DEPENDS, NULL)                                                               \
    FLAG(DTYPE, "dtype", DTYPE, 0, 0, NO_WORDS, FT_BF16, "dtype", 'd', "DTYPE", KERNEL,                                \
      "number format of operands and arithmetic",                                                                      \
      "`bf16`, `fp16`, `fp32` (TF32 off), `tf32`, `fp8`, `int8`, `fp4`, `fp64`")                                       \
    FLAG(TIMING, "timing", WORD, 0, 0, WORDS(timing), 0, "timing", 0, NULL, KERNEL,                                    \
      "device time alone, or one eager call with its launch gap",                                                      \
      "`device`: kernel time; `op`: one eager call, launch gap included")

#define FT_COLLECTIVE_KEYS(FLAG, PLAIN)                                                                                \
    PLAIN(EXCHANGE, "op", TEXT, 0, 0, NO_WORDS, DEPENDS,                                                               \
      "`all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `broadcast`, `reduce`, `send_recv`")                \
    FLAG(EXCHANGE_BYTES, "bytes", REAL, 1, 1e15, NO_WORDS, DEPENDS, "bytes", 0, "N", EXCHANGE,                         \
      "size as nccl-tests counts it: the whole buffer that is summed or gathered",                                     \
      "what nccl-tests calls the size: of the whole buffer that is summed or gathered, of what one rank sends in an "  \
      "`all_to_all`")                                                                                                  \
    FLAG(EXCHANGE_RANKS, "ranks", WHOLE, 2, MOST_RANKS, NO_WORDS, DEPENDS, "ranks", 0, "N", EXCHANGE,                  \
      "GPUs that take part", "from 2")                                                                                 \
    FLAG(EXCHANGE_STRIDE, "stride", WHOLE, 1, MOST_RANKS, NO_WORDS, 1, "stride", 0, "N", EXCHANGE,                     \
      "distance between ranks; 8 puts each on its own node",                                                           \
      "1: distance between ranks; 8 ranks at a stride of 8 are on a node each, and use other links")                   \
    PLAIN(EXCHANGE_CLUSTER, "cluster", SECTION, 0, 0, NO_WORDS, DEPENDS, "as [of a model](#many-gpus)")                \
    FLAG(EXCHANGE_SKEW, "skew", REAL, 1, 1e9, NO_WORDS, DEPENDS, "skew", 0, "X", EXCHANGE,                             \
      "all_to_all: load of the busiest rank over the mean [1]",                                                        \
      "1: load of the busiest rank of an `all_to_all` over the mean")                                                  \
    FLAG(EXCHANGE_DTYPE, "dtype", DTYPE, 0, 0, NO_WORDS, DEPENDS, "dtype", 'd', "DTYPE", EXCHANGE,                     \
      "number format of what is summed [unknown: the interval covers both widths]",                                    \
      "number format of what is summed: single bytes (`int8`, `fp8`) take longer; if left out, the interval covers "   \
      "both")                                                                                                          \
    FLAG(EXCHANGE_ENGINE, "engine", WORD, 0, 0, WORDS(engine), 0, "engine", 0, NULL, EXCHANGE,                         \
      "whose all-reduce inside a node: NCCL (any, bare) or a serving engine's own",                                    \
      "`any`, `bare`: NCCL; `trtllm`, `vllm`, `sglang`: such an engine's own all-reduce inside a node")

#define FT_TRACE_KEYS(FLAG, PLAIN)                                                                                     \
    PLAIN(TRACE_FILE, "file", TEXT, 0, 0, NO_WORDS, DEPENDS, NULL)                                                     \
    FLAG(TRACE_ON, "on", GPU, 0, 0, NO_WORDS, DEPENDS, "on", 0, "GPU", TRACE,                                          \
      "the GPU that recorded the trace [as the trace says]", NULL)                                                     \
    PLAIN(TRACE_HOST, "host", NAMED, 0, 0, NO_WORDS, DEPENDS,                                                          \
      "as [of a model](#a-model-request), for a trace without kernels: the host that issues its operators")            \
    PLAIN(TRACE_DETAIL, "detail", ANY, 0, 0, NO_WORDS, DEPENDS, NULL)
#endif
