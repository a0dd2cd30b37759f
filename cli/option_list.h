/* Every option of the program, once. The parser, --help, the man page and the shell completions are made from this
 * list; an option that is not here does not exist.
 *
 *   X(id, long name, short or 0, kind, argument, default or NULL, commands, group, help)
 *
 * An option of the groups OPERATOR, WORKLOAD and REQUEST is also a key of the request, under the same name with
 * underscores (ask.c has the exceptions).
 * `argument` of a CHOICE lists the words. A SWITCH of those groups can be turned off with --no-NAME. */
#define CLI_OPTION_LIST(X)                                                                                             \
    /* operator sizes */                                                                                               \
    X(M, "m", 'm', WHOLE, "N", NULL, KERNEL, OPERATOR, "gemm, linear, bmm: rows of A and of C")                        \
    X(N, "n", 'n', WHOLE, "N", NULL, KERNEL, OPERATOR, "gemm, linear, bmm: columns of B and of C; conv2d: images")     \
    X(K, "k", 'k', WHOLE, "N", NULL, KERNEL, OPERATOR, "gemm, linear, bmm: the reduced dimension; conv2d: filters")    \
    X(B, "b", 'b', WHOLE, "N", "1", KERNEL, OPERATOR, "bmm: matrices in the batch")                                    \
    X(LAYOUT, "layout", 0, CHOICE, "nn|nt|tn|tt|nhwc|nchw", NULL, KERNEL, OPERATOR,                                    \
      "how A and B lie in memory (gemm: nt, bmm: nn), or the images of conv2d (nhwc)")                                 \
    X(BIAS, "bias", 0, SWITCH, NULL, NULL, KERNEL, OPERATOR, "gemm: add a bias (on for linear)")                       \
    X(QUANTIZED, "quantized", 0, SWITCH, NULL, NULL, KERNEL, OPERATOR,                                                 \
      "fp8, int8, fp4 gemm: operands arrive quantised; --no-quantized: quantising is part of the time")                \
    X(BATCH, "batch", 0, WHOLE, "N", "1", KERNEL, OPERATOR, "attention, mla: sequences")                               \
    X(HEADS, "heads", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "attention, mla: query heads")                            \
    X(KV_HEADS, "kv-heads", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "attention: key and value heads [--heads]")         \
    X(Q_LEN, "q-len", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "attention, mla: queries per sequence; 1 is decoding")    \
    X(KV_LEN, "kv-len", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "attention, mla: keys per sequence [--q-len]")          \
    X(HEAD_DIM, "head-dim", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "attention: width of a head")                       \
    X(V_DIM, "v-dim", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "attention, mla: width of a value head")                  \
    X(WINDOW, "window", 0, WHOLE, "N", "0", KERNEL, OPERATOR, "attention: sliding window; 0 for none")                 \
    X(CAUSAL, "causal", 0, SWITCH, NULL, NULL, KERNEL, OPERATOR, "attention, mla: a query sees only earlier keys")     \
    X(KV_DTYPE, "kv-dtype", 0, DTYPE, "DTYPE", NULL, KERNEL, OPERATOR, "attention, mla: number format of the cache")   \
    X(KV_LORA, "kv-lora", 0, WHOLE, "N", "512", KERNEL, OPERATOR, "mla: width of the latent")                          \
    X(ROPE_DIM, "rope-dim", 0, WHOLE, "N", "64", KERNEL, OPERATOR, "mla: rotated part of a key")                       \
    X(NOPE_DIM, "nope-dim", 0, WHOLE, "N", "128", KERNEL, OPERATOR, "mla: unrotated part of a key")                    \
    X(NAME, "name", 0, WORD, "NAME", NULL, KERNEL, OPERATOR, "elementwise: add, gelu, ...; optimizer: adamw, ...")     \
    X(INPUTS, "inputs", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "elementwise: tensors read; by the operator's name")    \
    X(NUMEL, "numel", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "elementwise: elements of the output")                    \
    X(OPS_PER_ELEMENT, "ops-per-element", 0, REAL, "X", NULL, KERNEL, OPERATOR, "elementwise: arithmetic per element") \
    X(ROWS, "rows", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "softmax, layernorm, ... (row operators): rows")            \
    X(COLS, "cols", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "row operators: columns")                                   \
    X(VOCAB, "vocab", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "embedding: rows of the table")                           \
    X(C, "c", 'c', WHOLE, "N", NULL, KERNEL, OPERATOR, "conv2d: input channels")                                       \
    X(H, "h", 'h', WHOLE, "N", NULL, KERNEL, OPERATOR, "conv2d: height of the image")                                  \
    X(W, "w", 'w', WHOLE, "N", NULL, KERNEL, OPERATOR, "conv2d: width of the image")                                   \
    X(R, "r", 'r', WHOLE, "N", NULL, KERNEL, OPERATOR, "conv2d: height of the filter")                                 \
    X(S, "s", 's', WHOLE, "N", NULL, KERNEL, OPERATOR, "conv2d: width of the filter; as high as wide")                 \
    X(STRIDE, "stride", 0, WHOLE, "N", "1", KERNEL, OPERATOR, "conv2d: step of the filter")                            \
    X(PAD, "pad", 0, WHOLE, "N", "0", KERNEL, OPERATOR, "conv2d: zeros around the image")                              \
    X(GROUPS, "groups", 0, WHOLE, "N", "1", KERNEL, OPERATOR, "conv2d: groups of channels")                            \
    X(TOKENS, "tokens", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "moe: tokens routed")                                   \
    X(HIDDEN, "hidden", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "moe: width of the model")                              \
    X(INTER, "inter", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "moe: width of an expert")                                \
    X(TOPK, "topk", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "moe: experts per token")                                   \
    X(EXPERTS, "experts", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "moe: experts on this GPU")                           \
    X(SKEW, "skew", 0, REAL, "X", "0", KERNEL, OPERATOR, "moe: how unevenly tokens spread; 0 is evenly")               \
    X(PARAMS, "params", 0, WHOLE, "N", NULL, KERNEL, OPERATOR, "optimizer: parameters")                                \
    X(TENSORS, "tensors", 0, WHOLE, "N", "1", KERNEL, OPERATOR, "optimizer: tensors they lie in")                      \
    X(BYTES, "bytes", 0, REAL, "N", NULL, KERNEL, OPERATOR, "any other operator: memory traffic")                      \
    X(FLOPS, "flops", 0, REAL, "N", "0", KERNEL, OPERATOR, "any other operator: arithmetic")                           \
    X(ENGINE, "engine", 0, CHOICE, "any|bare|trtllm|vllm|sglang", "any", KERNEL, OPERATOR,                             \
      "attention, moe: whose kernel, a framework's (bare) or a serving engine's")                                      \
    X(PASS, "pass", 0, CHOICE, "fwd|bwd|fwd_bwd", "fwd", KERNEL, OPERATOR, "attention, conv2d, gemm, row operators")   \
    /* whole models */                                                                                                 \
    X(MICRO_BATCH, "micro-batch-size", 'b', WHOLE, "N", "1", STEPS | LARGEST, WORKLOAD,                                \
      "sequences (or images) per GPU and micro-batch; also --batch")                                                   \
    X(MODEL_BATCH, "batch", 0, WHOLE, "N", NULL, STEPS | LARGEST, ALIAS, "as --micro-batch-size")                      \
    X(GLOBAL_BATCH, "global-batch-size", 0, WHOLE, "N", NULL, STEPS | LARGEST, WORKLOAD,                               \
      "sequences per step over all GPUs; micro-batches add up their gradients")                                        \
    X(SEQ, "seq", 's', WHOLE, "N", NULL, STEPS | LARGEST, WORKLOAD,                                                    \
      "tokens per sequence [the model's own, at most 4096]")                                                           \
    X(INFER_BATCHES, "batch", 'b', WHOLE, "N", NULL, INFER, GRID, "only this batch; give it again for several")        \
    X(INFER_SEQS, "seq", 's', WHOLE, "N", NULL, INFER, GRID, "only this context length; give it again for several")    \
    X(ISL, "isl", 0, WHOLE, "N", NULL, INFER, GRID, "offline throughput: tokens of a prompt [1024 with --osl]")        \
    X(OSL, "osl", 0, WHOLE, "N", NULL, INFER, GRID, "offline throughput: tokens generated [128 with --isl]")           \
    X(MODEL_DTYPE, "dtype", 'd', CHOICE, "bf16|fp16|fp32|tf32|fp8|int8|fp4|amp_bf16|amp_fp16", "bf16",                 \
      STEPS | INFER | LARGEST, WORKLOAD, "number format; amp_*: fp32 weights, low-precision arithmetic")               \
    X(WEIGHTS_DTYPE, "weights-dtype", 0, CHOICE, "fp8|int8|fp4|int4|nf4|bf16|fp16|fp32", NULL, TRAIN | INFER | LARGEST,\
      WORKLOAD, "weights stored in another format: quantised inference, QLoRA")                                        \
    X(MODEL_KV_DTYPE, "kv-dtype", 0, CHOICE, "bf16|fp16|fp32|fp8|int8|fp4", NULL, INFER | LARGEST, WORKLOAD,           \
      "number format of the cache")                                                                                    \
    X(CACHE, "cache", 0, CHOICE, "paged|static|dynamic", "paged", INFER, WORKLOAD,                                     \
      "keys and values as serving engines keep them, preallocated, or grown by concatenation")                         \
    X(ATTENTION, "attention", 0, CHOICE, "flash|eager|sdpa|flash1|flash2", "flash", STEPS | INFER | LARGEST, WORKLOAD, \
      "one kernel, separate products and softmax, as the framework picks, or FlashAttention's of 2022 or 2023")        \
    X(EXECUTION, "execution", 'x', CHOICE, "eager|fused|compile|cuda_graph|ideal", "eager", STEPS | LARGEST, WORKLOAD, \
      "operator by operator, hand-fused (Megatron), compiled, replayed, or without a host")                            \
    X(COMPILE_SCOPE, "compile-scope", 0, CHOICE, "auto|model|layers", "auto", STEPS | LARGEST, WORKLOAD,               \
      "of compile: the whole model with its loss, or every layer by itself (as with FSDP)")                            \
    X(FUSIONS, "fusions", 0, CHOICE, "recipe|plain", "recipe", STEPS | LARGEST, WORKLOAD,                              \
      "of fused: with what NVIDIA's recipes add to Megatron-Core's defaults, or without")                              \
    X(INFER_EXECUTION, "execution", 'x', CHOICE, "eager|fused|compile|cuda_graph|ideal", "cuda_graph", INFER, WORKLOAD,\
      "replayed as serving engines do, or another way")                                                                \
    X(OPTIMIZER, "optimizer", 0, CHOICE, "adamw|adamw_foreach|adamw_8bit|adafactor|sgd|sgd_momentum|muon|none",        \
      "adamw", STEPS | LARGEST, WORKLOAD, "none: forward and backward alone")                                          \
    X(MASTER_WEIGHTS, "master-weights", 0, SWITCH, NULL, NULL, STEPS | LARGEST, WORKLOAD,                              \
      "fp32 copies of low-precision weights (the Megatron recipe)")                                                    \
    X(RECOMPUTE, "recompute", 0, CHOICE, "none|selective|full", "none", STEPS | LARGEST, WORKLOAD,                     \
      "activations computed again in the backward pass")                                                               \
    X(RECOMPUTE_MODULES, "recompute-modules", 0, WORD, "NAME,...", NULL, STEPS | LARGEST, WORKLOAD,                    \
      "of fused: what of a layer runs again, by Megatron-Core's names: core_attn, layernorm, moe_act, mlp, ...")       \
    X(LORA_RANK, "lora-rank", 0, WHOLE, "N", NULL, TRAIN, WORKLOAD, "train adapters of this rank alone")               \
    X(CLIP_GRAD, "clip-grad", 0, SWITCH, NULL, NULL, STEPS, WORKLOAD, "clip the norm of the gradients")                \
    X(HOST, "host", 0, WORD, "NAME|FILE", "h200_vm", STEPS | INFER, WORKLOAD,                                          \
      "the host that issues the kernels: a name of data/hosts or a file like those")                                   \
    X(HOST_US, "host-us-per-op", 0, REAL, "X", NULL, STEPS | INFER, WORKLOAD, "host cost of one eager operator")       \
    X(IMAGE_LAYOUT, "layout", 0, CHOICE, "nhwc|nchw", "nhwc", TRAIN | INFER, WORKLOAD,                                 \
      "how images lie in memory: channels last, or first")                                                             \
    X(READ_AS, "read-as", 0, WORD, "TYPE", NULL, STEPS | INFER | MODELS, WORKLOAD,                                     \
      "read an unknown model_type as this known one")                                                                  \
    X(TP, "tp", 0, WHOLE, "N", "1", STEPS | INFER, PARALLEL, "tensor parallel: products split over so many GPUs")      \
    X(PP, "pp", 0, WHOLE, "N", "1", STEPS, PARALLEL, "pipeline parallel: stages of layers")                            \
    X(VPP, "vpp", 0, WHOLE, "N", "1", STEPS, PARALLEL, "virtual stages per GPU: an interleaved pipeline")              \
    X(DP, "dp", 0, WHOLE, "N", NULL, TRAIN | INFER, PARALLEL,                                                          \
      "data parallel: copies of the model [what --gpus or --nodes leaves]")                                            \
    X(CP, "cp", 0, WHOLE, "N", "1", STEPS, PARALLEL, "context parallel: sequences split over so many GPUs")            \
    X(EP, "ep", 0, WHOLE, "N", "1", STEPS | INFER, PARALLEL,                                                           \
      "expert parallel: experts spread over data and context ranks")                                                   \
    X(ETP, "etp", 0, WHOLE, "N", NULL, STEPS, PARALLEL,                                                                \
      "tensor ranks that share an expert: all [--tp], or 1: experts spread over tensor ranks too")                     \
    X(ZERO, "zero", 0, WHOLE, "N", "0", TRAIN, PARALLEL,                                                               \
      "sharded over data ranks: 1 optimizer states, 2 and gradients, 3 and parameters (FSDP)")                         \
    X(SCALE_ZERO, "zero", 0, WHOLE, "N", NULL, SCALE, PARALLEL,                                                        \
      "sharded over data ranks: 1 optimizer states, 2 and gradients, 3 and parameters [3; 1 with --pp]")               \
    X(SP, "sp", 0, SWITCH, NULL, NULL, STEPS, PARALLEL,                                                                \
      "sequence parallel: norms and residuals split over the tensor ranks")                                            \
    X(SCHEDULE, "schedule", 0, CHOICE, "1f1b|interleaved|gpipe|zero_bubble|dualpipe", NULL, STEPS, PARALLEL,           \
      "order of micro-batches in the pipeline [1f1b; interleaved with --vpp]")                                         \
    X(OVERLAP, "overlap", 0, SWITCH, NULL, NULL, STEPS, PARALLEL,                                                      \
      "gradients are exchanged beside the backward pass (the default)")                                                \
    X(TP_OVERLAP, "tp-overlap", 0, SWITCH, NULL, NULL, STEPS, PARALLEL,                                                \
      "with --sp, exchanges of tensor ranks run in pieces beside their products [fused in fp8, fp4]")                  \
    X(DEAL, "deal", 0, CHOICE, "even|rest", NULL, STEPS, PARALLEL,                                                     \
      "layers that --pp does not divide: a layer more in some stages (with --vpp refused), or a rest in the last")     \
    X(CP_KIND, "cp-kind", 0, CHOICE, "ring|ulysses|gather|pytorch", NULL, STEPS, PARALLEL,                             \
      "how --cp brings keys and values to the queries [ring]")                                                         \
    X(ULYSSES, "ulysses", 0, SWITCH, NULL, NULL, STEPS, PARALLEL,                                                      \
      "--cp-kind ulysses: all-to-all of heads instead of a ring of keys and values")                                   \
    X(GATHER, "gather", 0, CHOICE, "layer|parameter", NULL, STEPS, PARALLEL,                                           \
      "--zero 3 gathers a layer ahead [FSDP], or tensor by tensor [DeepSpeed of 2021: fused fp16]")                    \
    X(SHARD, "shard", 0, WHOLE, "N", NULL, STEPS, PARALLEL,                                                            \
      "hybrid sharding: data ranks that share one copy of the states [all]")                                           \
    X(RESHARD, "reshard", 0, SWITCH, NULL, NULL, STEPS, PARALLEL,                                                      \
      "--zero 3 drops what it gathered after the forward pass (the default but in FSDP's pipelines)")                  \
    X(GATHER_OVERLAP, "gather-overlap", 0, SWITCH, NULL, NULL, STEPS, PARALLEL,                                        \
      "--zero 1 and 2 gather updated parameters beside the next forward pass")                                         \
    X(OVERLAP_P2P, "overlap-p2p", 0, SWITCH, NULL, NULL, STEPS, PARALLEL,                                              \
      "an interleaved pipeline's transfers run beside compute (the default but in fused fp16)")                        \
    X(EXPERT_DISPATCH, "expert-dispatch", 0, CHOICE, "copies|once", "copies", STEPS, PARALLEL,                         \
      "a token is sent to each of its experts, or once to a rank and a node that has several (DeepEP)")                \
    X(EXPERT_OVERLAP, "expert-overlap", 0, SWITCH, NULL, NULL, STEPS, PARALLEL,                                        \
      "tokens go to experts and back beside another micro-batch's kernels (on with dualpipe)")                         \
    X(EXPERT_SKEW, "expert-skew", 0, REAL, "X", "1", STEPS, PARALLEL,                                                  \
      "tokens of the busiest expert rank over the mean")                                                               \
    X(EXPERT_CAPACITY, "expert-capacity", 0, REAL, "X", NULL, STEPS, PARALLEL,                                         \
      "the most that an expert rank takes over the mean; what is beyond is dropped")                                   \
    X(BUCKET, "bucket-mib", 0, REAL, "X", NULL, STEPS, PARALLEL,                                                       \
      "gradients exchanged at once [25; fused as Megatron's]")                                                         \
    X(REDUCE_DTYPE, "reduce-dtype", 0, CHOICE, "fp32|bf16|fp16|fp8", NULL, STEPS, PARALLEL,                            \
      "gradients on the wire [as they are]")                                                                           \
    X(GATHER_DTYPE, "gather-dtype", 0, CHOICE, "fp32|bf16|fp16|fp8", NULL, STEPS, PARALLEL,                            \
      "parameters on the wire [as they are]")                                                                          \
    X(NODES, "nodes", 0, WHOLE, "N", NULL, STEPS | INFER, CLUSTER, "nodes [as many as the GPUs need]")                 \
    X(GPUS_PER_NODE, "gpus-per-node", 0, WHOLE, "N", NULL, STEPS | INFER, CLUSTER,                                     \
      "GPUs in a node [as is usual for the GPU]")                                                                      \
    X(INTERCONNECT, "interconnect", 0, WORD, "TEXT", NULL, STEPS | INFER, CLUSTER,                                     \
      "a server or fabric by name (ib_ndr400), a file, or as people write it: \"8x200 Gbps HDR/node\"")                \
    X(TOPOLOGY, "topology", 0, WORD, "NAME", NULL, STEPS | INFER, CLUSTER,                                             \
      "of the network: rails, fat_tree, dragonfly; \"fat_tree 2:1\" where it is oversubscribed")                       \
    X(OVERSUBSCRIPTION, "oversubscription", 0, REAL, "X", "1", STEPS | INFER, CLUSTER,                                 \
      "how much less the upper switches carry")                                                                        \
    X(LEAF_NODES, "leaf-nodes", 0, WHOLE, "N", NULL, STEPS | INFER, CLUSTER, "nodes under one leaf switch")            \
    X(NCCL, "nccl", 0, WORD, "VERSION", NULL, STEPS | INFER, CLUSTER,                                                  \
      "the version of NCCL, \"2.23\" [a recent one]")                                                                  \
    X(NETWORK, "network", 0, CHOICE, "closed|simgrid", "closed", TRAIN, CLUSTER,                                       \
      "exchanges between nodes by formula, or as flows in a simulated fat tree")                                       \
    X(TRAIN_TOKENS, "tokens", 0, REAL, "N", NULL, TRAIN | LARGEST, PLAN,                                               \
      "days to train on so many tokens [largest: 20 per parameter]")                                                   \
    X(GPUS_USED, "gpus", 0, WHOLE, "N", "1", TRAIN | LARGEST, PLAN,                                                    \
      "GPUs that share the work: --dp takes what the other degrees leave")                                             \
    X(SCALE_GPUS, "gpus", 0, WHOLE, "N", NULL, SCALE, PLAN,                                                            \
      "GPUs at the end of the curves [those of --nodes, or about 512]")                                                \
    X(SHAPES, "family", 0, CHOICE, "llama|gpt", "llama", LARGEST, PLAN, "shapes that models grow along")               \
    X(USE, "task", 0, CHOICE, "train|infer", "train", LARGEST, PLAN, "what the model must fit for")                    \
    /* the request */                                                                                                  \
    X(GPU, "gpu", 'g', GPU, "GPU", NULL, KERNEL | VALIDATE | STEPS | INFER | LARGEST | TRACE, REQUEST,                 \
      "catalogue name or spec file; give it again for several GPUs")                                                   \
    X(DTYPE, "dtype", 'd', DTYPE, "DTYPE", "bf16", KERNEL, REQUEST, "number format of operands and arithmetic")        \
    X(TIMING, "timing", 0, CHOICE, "device|op", "device", KERNEL, REQUEST,                                             \
      "device time alone, or one eager call with its launch gap")                                                      \
    X(QUANTILE, "quantile", 'q', REAL, "X", "0.9", KERNEL | VALIDATE | BATCH | STEPS | INFER | TRACE, REQUEST,         \
      "share of cases that the interval should cover, 0.5 to 0.99")                                                    \
    X(TRACE_ON, "on", 0, GPU, "GPU", NULL, TRACE, REQUEST, "the GPU that recorded the trace [as the trace says]")      \
    /* gpus */                                                                                                         \
    X(VENDOR, "vendor", 0, CHOICE, "nvidia|amd|intel", NULL, GPUS, FILTER, "only this vendor's")                       \
    X(GENERATION, "generation", 0, WORD, "NAME", NULL, GPUS, FILTER, "only this generation: hopper, cdna3, ...")       \
    X(MIN_MEMORY, "min-memory-gib", 0, REAL, "N", NULL, GPUS, FILTER, "only with at least this much memory")           \
    X(HAS_DTYPE, "dtype", 'd', DTYPE, "DTYPE", NULL, GPUS, FILTER, "only with arithmetic in this number format")       \
    /* input */                                                                                                        \
    X(DISK_RATE, "samples-per-s-disk", 0, REAL, "X", NULL, TRAIN, LOADER, "samples that storage delivers to one GPU")  \
    X(DISK_GBPS, "disk-gbps", 0, REAL, "X", NULL, TRAIN, LOADER, "its bandwidth when it is read in a row, GB/s")       \
    X(SAMPLE_BYTES, "sample-bytes", 0, REAL, "N", NULL, TRAIN, LOADER, "one sample on its way to the GPU")             \
    X(WORKERS, "workers", 0, WHOLE, "N", "0", TRAIN, LOADER, "loader processes; 0: the training process itself")       \
    X(WORKER_MS, "worker-ms", 0, REAL, "X", NULL, TRAIN, LOADER, "a worker's time for one sample")                     \
    X(PINNED, "pinned", 0, SWITCH, NULL, NULL, TRAIN, LOADER,                                                          \
      "batches lie in pinned memory and are copied beside the step")                                                   \
    /* data and predictors */                                                                                          \
    X(DATA, "data", 0, FOLDER, "DIR", NULL, FIT | VALIDATE, DATA, "measurements; fit takes several [those shipped]")   \
    X(PREDICTOR, "predictor", 'p', FILE, "FILE|roofline|linear|scaling:GPU", NULL,                                     \
      KERNEL | VALIDATE | BATCH | STEPS | INFER | LARGEST | COMPARE | CALIBRATE | FIT | TRACE, DATA,                   \
      "another predictor than the one built in")                                                                       \
    X(CALIBRATION, "calibration", 0, FILE, "FILE", NULL, KERNEL | VALIDATE | BATCH | STEPS | INFER | LARGEST |         \
      COMPARE | TRACE, DATA, "what was learned from one GPU's own measurements (fit --calibrate)")                     \
    X(CALIBRATE_FROM, "calibrate", 0, FILE, "FILE", NULL, FIT, DATA,                                                   \
      "adapt a predictor to one GPU instead: measurements that foretell calibrate took")                               \
    X(FIT_MINUTES, "minutes", 0, REAL, "X", NULL, FIT, DATA, "with --calibrate: only points of the first X minutes")   \
    X(OUTPUT, "output", 'o', FILE, "FILE", NULL, FIT, DATA, "where the predictor, or the calibration, goes")          \
    X(EXCLUDE_GPU, "exclude-gpu", 0, GPU, "GPU", NULL, FIT, DATA, "leave this GPU's measurements out; again for more") \
    X(FAMILY, "family", 0, WORD, "NAME", NULL, FIT | VALIDATE, DATA, "only this family of kernels; again for more")    \
    X(CROSS_VALIDATE, "cross-validate", 0, SWITCH, NULL, NULL, FIT, DATA,                                              \
      "also fit without each GPU, and without each generation, and report the errors there")                           \
    X(HELD_OUT, "held-out", 0, SWITCH, NULL, NULL, VALIDATE, DATA, "only rows the predictor was not fitted to")        \
    X(BUDGET, "budget", 0, FILE, "FILE", NULL, VALIDATE, DATA,                                                         \
      "fail where an error exceeds this file's; budget.json beside the measurements is used by itself")                \
    X(THREADS, "threads", 'j', WHOLE, "N", "0", FIT | VALIDATE | BATCH, DATA, "threads; 0 is one per core")            \
    /* calibrate: read by python/foretell/calibrate/options.py */                                                      \
    X(CALIBRATE_MINUTES, "minutes", 0, REAL, "X", "5", CALIBRATE, DATA,                                                \
      "time to measure, earlier runs of --resume counted in")                                                          \
    X(CALIBRATE_OUTPUT, "output", 'o', FILE, "FILE", NULL, CALIBRATE, DATA,                                            \
      "where the measurements go [calibration-GPU.jsonl]; the calibration stands beside them")                         \
    X(RESUME, "resume", 0, FILE, "FILE", NULL, CALIBRATE, DATA, "go on with these measurements")                       \
    X(FAMILIES, "families", 0, WORD, "LIST", NULL, CALIBRATE, DATA, "only these: gemm,attention,... [all]")            \
    X(DTYPES, "dtypes", 0, WORD, "LIST", NULL, CALIBRATE, DATA, "only these number formats: bf16,fp32,... [all]")      \
    X(HELD_OUT_SHARE, "held-out", 0, REAL, "X", "0.15", CALIBRATE, DATA,                                               \
      "share of the points kept from the fit, for the errors before and after")                                        \
    X(SEED, "seed", 0, WHOLE, "N", "0", CALIBRATE, DATA, "another choice of shapes")                                   \
    X(CALIBRATE_GPU, "gpu", 'g', GPU, "GPU", NULL, CALIBRATE, DATA,                                                    \
      "catalogue name or spec file [as the driver names it]")                                                          \
    X(CALIBRATE_RESULT, "calibration", 0, FILE, "FILE", NULL, CALIBRATE, DATA, "where the calibration goes")           \
    X(NO_FIT, "no-fit", 0, SWITCH, NULL, NULL, CALIBRATE, DATA, "only measure")                                        \
    X(ALLOW_BUSY, "allow-busy", 0, SWITCH, NULL, NULL, CALIBRATE, DATA, "measure although somebody else uses the GPU") \
    X(SIMULATE, "simulate", 0, GPU, "GPU", NULL, CALIBRATE, DATA, "a dry run: times are forecasts with noise")         \
    /* output */                                                                                                       \
    X(SWEEP, "sweep", 0, WORD, "KEY=FROM:TO[:STEP]", NULL, KERNEL | STEPS | INFER | LARGEST, OUTPUT,                   \
      "forecast over a range of one number; STEP x2 doubles it each time")                                             \
    X(CSV, "csv", 0, SWITCH, NULL, NULL, KERNEL | LARGEST, OUTPUT, "--sweep as comma-separated values")                \
    X(SCALE_CSV, "csv", 0, SWITCH, NULL, NULL, SCALE, OUTPUT,                                                          \
      "the two curves, or --sweep, as comma-separated values")                                                         \
    X(BASELINES, "baselines", 0, SWITCH, NULL, NULL, VALIDATE, OUTPUT,                                                 \
      "print the errors of roofline, linear and scaling:GPU beside")                                                   \
    X(SCALING_FROM, "scaling-from", 0, GPU, "GPU", "a100_sxm_80gb", VALIDATE, OUTPUT,                                  \
      "the measured GPU that --baselines scales from")                                                                 \
    X(ROWS_TABLE, "rows", 0, SWITCH, NULL, NULL, VALIDATE, OUTPUT, "print every case: measured against forecast")      \
    X(WORST, "worst", 0, WHOLE, "N", NULL, VALIDATE, OUTPUT, "print the N cases with the largest errors")              \
    X(HTML, "html", 0, FILE, "FILE", NULL, KERNEL | STEPS | INFER | COMPARE | LARGEST, OUTPUT,                         \
      "write one page with pictures and tables that needs no network")                                                 \
    X(SVG, "svg", 0, FILE, "FILE", NULL, KERNEL | STEPS | INFER, OUTPUT, "write one picture")                          \
    X(PICTURE, "picture", 0, CHOICE, "roofline|timeline|memory|layers|classes|intervals|pipeline|scaling",             \
      "roofline", TRAIN, OUTPUT, "what --svg draws")                                                                   \
    X(STEP_CSV, "csv", 0, SWITCH, NULL, NULL, TRAIN, OUTPUT,                                                           \
      "print the step's kernels, or --sweep, as comma-separated values")                                               \
    X(INFER_CSV, "csv", 0, SWITCH, NULL, NULL, INFER, OUTPUT,                                                          \
      "print the grid, or --sweep, as comma-separated values")                                                         \
    X(TRACE, "trace", 0, FILE, "FILE", NULL, TRAIN, OUTPUT,                                                            \
      "write the step as a trace for Perfetto or chrome://tracing")                                                    \
    X(CHAKRA, "chakra", 0, FOLDER, "DIR", NULL, TRAIN, OUTPUT,                                                         \
      "write the step as MLCommons Chakra execution traces, a file per rank, for ASTRA-sim")                           \
    X(RANK_GROUPS, "groups", 0, SWITCH, NULL, NULL, TRAIN, OUTPUT, "also print the layout's rank groups (Megatron's)") \
    X(ADVICE, "advice", 0, CHOICE, "few|all|none", "few", TRAIN | INFER, OUTPUT,                                       \
      "what to change, by the time it saves; all: with verdicts, reasons and findings (asked for in JSON)")            \
    X(TECHNIQUES, "techniques", 0, SWITCH, NULL, NULL, TRAIN | INFER, OUTPUT,                                          \
      "instead: what each technique does to the time and the memory of this step")                                     \
    X(DETAIL, "detail", 0, CHOICE, "summary|layers|kernels", "summary", TRAIN, OUTPUT,                                 \
      "how much of the step to print")                                                                                 \
    X(COMPARE_DETAIL, "detail", 0, CHOICE, "summary|kernels", "summary", COMPARE, OUTPUT,                              \
      "the ten kernels that differ most, or all of them")                                                              \
    X(VERBOSE, "verbose", 'v', SWITCH, NULL, NULL, MODELS, OUTPUT, "also where each model's figures come from")        \
    X(TYPES, "types", 0, SWITCH, NULL, NULL, MODELS, OUTPUT, "the model_types whose configs are read, one per line")   \
    X(TRACE_TOP, "top", 'n', WHOLE, "N", "8", TRACE, OUTPUT, "rows of each table")                                     \
    X(JSON, "json", 0, SWITCH, NULL, NULL,                                                                             \
      KERNEL | GPUS | FIT | VALIDATE | STEPS | INFER | MODELS | LARGEST | COMPARE | TRACE, OUTPUT,                     \
      "JSON on stdout and nothing else")                                                                               \
    X(COLOR, "color", 0, CHOICE, "auto|always|never", "auto", EVERY, OUTPUT, "when to colour; auto honours NO_COLOR")  \
    X(HELP, "help", 'h', SWITCH, NULL, NULL, EVERY, OUTPUT, "this text")                                               \
    X(VERSION, "version", 0, SWITCH, NULL, NULL, EVERY, OUTPUT, "the version")
