/* Keys of a training step that most requests leave out, one row each; they stand at the top of a request beside those
 * of keys_model.h. How a row reads is said in keys_list.h. */
#ifndef FT_REQUEST_KEYS_STEP_H
#define FT_REQUEST_KEYS_STEP_H

#define FT_STEP_KEYS(FLAG, PLAIN)                                                                                      \
    FLAG(LOSS, "loss", WORD, 0, 0, WORDS(entropy), 0, "loss", 0, NULL, TRAIN | PLANS | CHOOSE,                         \
      "how the loss treats logits: the model's own way, in fp32, in their own format, in chunks, in one kernel, with " \
      "the head",                                                                                                      \
      "`model` (its own code's), `upcast` (copied to fp32), `narrow` (in their own format), `chunked` (copied to fp32 "\
      "an eighth at a time: torchtune's, Axolotl's), `fused` (one kernel each way, the gradient over the logits: "     \
      "Liger's, Apex', FlashAttention's), `fused_linear` (head and loss in chunks, so that the full logits never "     \
      "exist; Liger's)")                                                                                               \
    FLAG(LOSS_POSITIONS, "loss_positions", WHOLE, 1, LARGEST_SIZE, NO_WORDS, DEPENDS, "loss-positions", 0, "N", TRAIN, \
      "positions of each sequence that go through head and loss [all]",                                                \
      "all; number of positions of each sequence that go through head and loss: masked ones (BERT's "                  \
      "`max_predictions_per_seq`), or answers without their prompts, where prompts are dropped before the head")       \
    FLAG(PACKING, "packing", ANY, 0, 0, NO_WORDS, DEPENDS, "packing", 0, "N", TRAIN | PLANS | CHOOSE,                  \
      "tokens of the documents that sequences are packed from: each attends only to itself",                           \
      "left out: a sequence is one document, or what the stack packs when it trains adapters; the tokens of the "      \
      "documents that are packed into it, a number or a list of lengths: each attends only to itself (variable-length "\
      "flash attention)")                                                                                              \
    FLAG(SAMPLE_LENGTHS, "lengths", ANY, 0, 0, NO_WORDS, DEPENDS, "lengths", 0, "NAME|MEAN:SPREAD|N,...", TRAIN,       \
      "lengths of the sequences that are trained on: of a public data set, a mean and a spread, or a list [all --seq]",\
      "left out: all sequences have `seq` tokens; otherwise `seq` is the most: the name of a public data set "         \
      "(`\"sharegpt\"`, [list](#lengths-that-vary)), an object with a mean and a spread, a list of lengths, equally "  \
      "often or with shares (`[[512, 0.7], [2048, 0.3]]`)")                                                            \
    FLAG(BATCHING, "batching", WORD, 0, 0, WORDS(batching), 0, "batching", 0, NULL, TRAIN,                             \
      "with --lengths: how sequences are batched",                                                                     \
      "`pad`; with `lengths`: batches are padded to their longest sequence; `bucket`: likewise, after sequences are "  \
      "sorted by length in groups of 50 batches (`group_by_length`); `pack`: sequences are concatenated up to `seq` "  \
      "tokens, and each attends only to itself, as with `packing`")                                                    \
    FLAG(LONGER, "longer", WORD, 0, 0, WORDS(longer), 0, "longer", 0, NULL, TRAIN,                                     \
      "with --lengths: what happens to sequences longer than --seq",                                                   \
      "`cut`; with `lengths`: sequences of more than `seq` tokens are truncated; `drop`: they are left out")           \
    FLAG(PAD_MULTIPLE, "pad_multiple", WHOLE, 1, 65536, NO_WORDS, 1, "pad-multiple", 0, "N", TRAIN,                    \
      "with --lengths: batches are padded to a multiple of this (pad_to_multiple_of)",                                 \
      "1; with `lengths`: batches are padded to a multiple of this (`pad_to_multiple_of`)")                            \
    FLAG(POWER_CAP, "power_cap_w", REAL, 1, 1e5, NO_WORDS, DEPENDS, "power-cap", 0, "X", STEPS | INFER,                \
      "the board's power limit, W [the GPU's own]",                                                                    \
      "the GPU's own limit; W: a lower power limit (`nvidia-smi -pl`)")                                                \
    FLAG(EMA, "ema", SWITCH, 0, 0, NO_WORDS, 0, "ema", 0, NULL, TRAIN, "keep a moving average of the weights",         \
      "false; true: a moving average of the weights (EMA) is kept and updated with them")                              \
    FLAG(MOMENTS, "moments_dtype", WORD, 0, 0, WORDS(moment), DEPENDS, "moments-dtype", 0, NULL,                       \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "number format of AdamW's moments [the weights', fp32 with fp32 master weights]",                                \
      "`fp32`, `bf16`, `fp16`, `fp8`: of AdamW's and LAMB's moments; left out: the weights' format, fp32 with fp32 "   \
      "master weights (DeepSeek-V3 keeps them in bf16)")                                                               \
    FLAG(IN_BACKWARD, "optimizer_in_backward", SWITCH, 0, 0, NO_WORDS, 0, "optimizer-in-backward", 0, NULL, TRAIN,     \
      "update each weight as soon as its gradient exists, and drop the gradient",                                      \
      "false; true: a weight is updated as soon as its gradient exists, and the gradient is dropped (torchtune's "     \
      "`optimizer_in_bwd`); not with accumulation or clipping")                                                        \
    FLAG(EXPANDABLE, "expandable_segments", SWITCH, 0, 0, NO_WORDS, 0, "expandable-segments", 0, NULL, STEPS | INFER,  \
      "PyTorch's allocator grows one segment instead of adding new ones (PYTORCH_CUDA_ALLOC_CONF)",                    \
      "false; true: PyTorch's allocator grows one segment instead of adding new ones (`expandable_segments:True` in "  \
      "`PYTORCH_CUDA_ALLOC_CONF`): less is reserved beyond the peak ([how](models/memory.md#the-allocator))")          \
    FLAG(RECOMPUTE_LAYERS, "recompute_layers", WHOLE, 1, 100000, NO_WORDS, DEPENDS, "recompute-layers", 0, "N", TRAIN, \
      "with --recompute full: number of layers to recompute [all]",                                                    \
      "all; with `recompute` `full`: number of layers that are recomputed, the others keep everything (Megatron's "    \
      "`recompute_num_layers` with method `block`); without `pp`")                                                     \
    FLAG(GRAPHED, "cuda_graph_modules", NAMES, 0, 0, WORDS(graphed), DEPENDS, "cuda-graph-modules", 0, "NAME,...",     \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "with fused: what is replayed from CUDA graphs, by Megatron-Core's names: attn, moe_router, full_iteration, ...",\
      "left out: nothing; with `fused`, an array of the parts of a layer that are captured in CUDA graphs, by "        \
      "Megatron-Core's names: `attn`, `mlp`, `moe`, `moe_router`, `moe_preprocess` (with the router), `mamba`; "       \
      "`layer`: whole layers; `full_iteration`: both passes of all micro-batches. The host then launches one graph "   \
      "instead of its kernels ([what that takes](models/host.md#modules-in-cuda-graphs)); `execution` `cuda_graph` "   \
      "replays all of a step")                                                                                         \
    FLAG(REMAT, "remat_policy", NAMES, 0, 0, WORDS(remat), DEPENDS, "remat-policy", 0, "NAME,...", TRAIN,              \
      "what a recomputed layer keeps, by MaxText's names: save_qkv_proj, minimal, or query_proj,context,...",          \
      "left out: `recompute` `full` keeps only a layer's input; an array of MaxText's policies or of the names in "    \
      "them, which implies `full` and keeps their results: `full` (nothing), `save_out_proj`, `save_qkv_proj`, "       \
      "`save_dot_except_mlp`, `save_dot_except_mlpwi`, `save_dot_with_context_except_mlp`, `minimal`, "                \
      "`minimal_with_context`; `query_proj`, `key_proj`, `value_proj`, `context`, `out_proj`, `mlpwi`, `mlpwo`. Not "  \
      "with `fused`, whose `recompute_modules` say what is recomputed")                                                \
    FLAG(OFFLOAD, "offload", NAMES, 0, 0, WORDS(offload), DEPENDS, "offload", 0, "NAME,...", TRAIN | PLANS | CHOOSE,   \
      "what is offloaded to the host's memory: optimizer, optimizer_nvme, paged_optimizer, activations, parameters",   \
      "left out: nothing; an array of what is offloaded to the host's memory: `optimizer` (states and fp32 copies, "   \
      "updated by the host: ZeRO-Offload), `optimizer_nvme` (the same on drives: ZeRO-Infinity), `paged_optimizer` "   \
      "(states in unified memory, which are evicted when the GPU is full: bitsandbytes'), `activations` (what layers " \
      "save for the backward pass), `parameters` (weights and their states: ZeRO-3's and FSDP's); "                    \
      "[below](#offloading-to-the-host)")                                                                              \
    FLAG(OFFLOAD_LAYERS, "offload_layers", WHOLE, 1, 100000, NO_WORDS, DEPENDS, "offload-layers", 0, "N",              \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "with --offload activations: number of layers [all but four]",                                                   \
      "all but two at either end; with `offload` `activations`: number of layers whose activations are offloaded "     \
      "(Megatron's `cpu_offloading_num_layers`); without `pp`")                                                        \
    FLAG(HOST_GBPS, "host_gbps", REAL, 0.1, 10000, NO_WORDS, DEPENDS, "host-gbps", 0, "X", TRAIN | PLANS | CHOOSE,     \
      "GB/s between a GPU and its host's memory, each way [what PCIe reaches]",                                        \
      "what a copy over the GPU's PCIe reaches; GB/s each way, for `offload`: other links (NVLink-C2C), or your own "  \
      "measurement")                                                                                                   \
    FLAG(NVME_GBPS, "nvme_gbps", REAL, 0.01, 1000, NO_WORDS, DEPENDS, "nvme-gbps", 0, "X", TRAIN | PLANS | CHOOSE,     \
      "GB/s of the drives of one GPU, reading and writing [one of PCIe 4.0]",                                          \
      "one PCIe 4.0 drive; GB/s of one GPU's drives, for `optimizer_nvme`")                                            \
    FLAG(TRAINER, "trainer", WORD, 0, 0, WORDS(trainer), 0, "trainer", 0, NULL, TRAIN | PLANS | CHOOSE,                \
      "training objective: supervised, preference pairs (with a frozen reference or without), reinforcement learning", \
      "`sft`: tokens; `dpo`: `batch` counts pairs of answers, two sequences each, and a frozen reference model also "  \
      "runs forward over them (with adapters, the model itself without them); `orpo`: pairs without a reference; "     \
      "`grpo`: `batch` counts answers, which the model generates before it is trained on them; `ppo`: likewise, with " \
      "a reward model and a value model that is trained too ([below](#offloading-to-the-host))")                       \
    FLAG(REFERENCE, "reference", SWITCH, 0, 0, NO_WORDS, DEPENDS, "reference", 0, NULL, TRAIN | PLANS | CHOOSE,        \
      "a frozen reference model runs forward over the same sequences [with dpo, ppo]",                                 \
      "true with `dpo` and `ppo`, else false; true: a frozen reference model runs forward over the same sequences "    \
      "(GRPO with a KL penalty, self-distillation)")                                                                   \
    FLAG(ROLLOUT, "rollout_tokens", WHOLE, 1, LARGEST_SIZE, NO_WORDS, DEPENDS, "rollout-tokens", 0, "N",               \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "with grpo, ppo: tokens per sequence that are generated before the step [half of seq]",                          \
      "half of `seq`; with `grpo` and `ppo`: tokens of every sequence that the model generates before the step, the "  \
      "others are the prompt; their mean, where `rollout_longest` says that answers vary")                             \
    FLAG(ROLLOUT_LONGEST, "rollout_longest", WHOLE, 1, LARGEST_SIZE, NO_WORDS, DEPENDS, "rollout-longest", 0, "N",     \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "with grpo, ppo: tokens of the longest answer, or where answers are cut off [rollout-tokens]",                   \
      "`rollout_tokens`: all answers are equally long; with `grpo` and `ppo`: tokens of the longest answer, or where " \
      "answers are cut off (`max_response_length`), for which the step waits ([below](#offloading-to-the-host))")      \
    FLAG(ROLLOUT_SAMPLES, "rollout_samples", WHOLE, 1, LARGEST_SIZE, NO_WORDS, 1, "rollout-samples", 0, "N",           \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "with grpo, ppo: answers per prompt, which is prefilled once",                                                   \
      "1; with `grpo` and `ppo`: answers per prompt (`rollout.n`, `num_generations`): an engine prefills it once for " \
      "all")                                                                                                           \
    FLAG(ROLLOUT_SEQUENCES, "rollout_sequences", WHOLE, 1, LARGEST_SIZE, NO_WORDS, DEPENDS, "rollout-sequences", 0,    \
      "N", TRAIN | PLANS | CHOOSE,                                                                                     \
      "with grpo, ppo: answers that an engine decodes at the same time [256]",                                         \
      "256; with `grpo` and `ppo`: answers that an engine decodes at the same time (`max_num_seqs`)")                  \
    FLAG(ROLLOUT_MEMORY, "rollout_memory", REAL, 0.01, 1, NO_WORDS, DEPENDS, "rollout-memory", 0, "X",                 \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "with grpo, ppo: share of a GPU's memory that an engine takes [0.6, on its own GPUs 0.9]",                       \
      "0.6, with `rollout_gpus` 0.9; with `grpo` and `ppo`: share of a GPU's memory that an engine takes for weights " \
      "and cache (`gpu_memory_utilization`), which limits what it decodes at once")                                    \
    FLAG(ROLLOUT_ENGINE, "rollout_engine", WORD, 0, 0, WORDS(rollout), 0, "rollout-engine", 0, NULL,                   \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "with grpo, ppo: an engine whose host works while the GPU does, or one in the trainer's process",                \
      "`server`: its host works while the GPU does; `inline`: in the trainer's process, whose host schedules, samples "\
      "and passes answers on between two steps (vLLM's `LLM` in NeMo RL, in verl's mode `sync`, in TRL's `colocate`)") \
    FLAG(ROLLOUT_GRAPHS, "rollout_graphs", SWITCH, 0, 0, NO_WORDS, 1, "rollout-graphs", 0, NULL,                       \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "with grpo, ppo: engines replay CUDA graphs",                                                                    \
      "true; with `grpo` and `ppo`: engines replay CUDA graphs; false: `enforce_eager`, verl's default until 0.5")     \
    FLAG(ROLLOUT_TP, "rollout_tp", WHOLE, 1, LARGEST_SIZE, NO_WORDS, DEPENDS, "rollout-tp", 0, "N",                    \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "with grpo, ppo: tensor ranks of a generating engine [tp; a plan takes the fastest]",                            \
      "`tp`; with `grpo` and `ppo`: tensor ranks of each engine that generates, on the same GPUs; `plan` and `choose` "\
      "take the fastest power of two that holds the model")                                                            \
    FLAG(ROLLOUT_GPUS, "rollout_gpus", WHOLE, 1, LARGEST_SIZE, NO_WORDS, DEPENDS, "rollout-gpus", 0, "N", TRAIN,       \
      "with grpo, ppo: separate GPUs that generate [those that train]",                                                \
      "those that train; with `grpo` and `ppo`: this many separate GPUs generate, in addition to those of `parallel`, "\
      "which wait for them (TRL's `server`); not in `plan` and `choose`")                                              \
    FLAG(ROLLOUT_ASYNC, "rollout_async", SWITCH, 0, 0, NO_WORDS, 0, "rollout-async", 0, NULL, TRAIN,                   \
      "with rollout-gpus: the answers of the next step are generated while this one trains",                           \
      "false; true, with `rollout_gpus`: the answers of the next step are generated while this one trains (one step "  \
      "off policy), and whichever finishes first waits")                                                               \
    FLAG(ROLLOUT_AGE, "rollout_age", WHOLE, 1, 100000, NO_WORDS, 1, "rollout-age", 0,                                  \
      "N", TRAIN,                                                                                                      \
      "with rollout-async: how many steps old answers may be",                                                         \
      "1; with `rollout_async`: how many steps old answers may be (`max_trajectory_age_steps`): that many steps "      \
      "generate at the same time, and the wait for the longest answer is spread over them")                            \
    FLAG(ROLLOUT_UPDATES, "rollout_updates", WHOLE, 1, 100000, NO_WORDS, 1, "rollout-updates", 0,                      \
      "N", TRAIN,                                                                                                      \
      "with grpo, ppo: updates per generated batch",                                                                   \
      "1; with `grpo` and `ppo`: updates on what was generated once, each on its part of `global_batch` with its own " \
      "optimizer step, gradient exchange and pipeline (NeMo RL: prompts x answers / `train_global_batch_size`; verl: " \
      "`train_batch_size` / `ppo_mini_batch_size`; slime: `num_steps_per_rollout`)")                                   \
    FLAG(ROLLOUT_PACK, "rollout_pack", WHOLE, 1, LARGEST_SIZE, NO_WORDS, DEPENDS, "rollout-pack", 0,                   \
      "N", TRAIN,                                                                                                      \
      "with grpo, ppo: tokens that packed answers are padded to",                                                      \
      "left out: no padding; with `grpo` and `ppo`: answers are packed, longest first, into packs of this many "       \
      "tokens, which are padded to it (NeMo RL with `pp`: `train_mb_tokens`; static shapes): passes run over the "     \
      "padding too")                                                                                                   \
    FLAG(ROLLOUT_PACK_LOGPROBS, "rollout_pack_logprobs", WHOLE, 1, LARGEST_SIZE, NO_WORDS, DEPENDS,                    \
      "rollout-pack-logprobs", 0, "N", TRAIN,                                                                          \
      "with rollout-pack: the same for forward-only passes [rollout-pack]",                                            \
      "`rollout_pack`; with `rollout_pack`: tokens that packs are padded to in forward-only passes (NeMo RL's "        \
      "`logprob_mb_tokens`): larger packs waste less")                                                                 \
    FLAG(ROLLOUT_OFFLOAD, "rollout_offload", NAMES, 0, 0, WORDS(away), DEPENDS, "rollout-offload", 0,                  \
      "NAME,...", TRAIN,                                                                                               \
      "with grpo, ppo: what is offloaded to the host while others use the GPU: optimizer, weights, reference",         \
      "left out: nothing; with `grpo` and `ppo`, an array of what is offloaded to unpinned memory of the host, and "   \
      "comes back: `optimizer` (its states, while engines generate; with `rollout_gpus`, during forward-only passes), "\
      "`weights` (while engines generate; both NeMo RL's `offload_before_refit` and `offload_after_refit`), "          \
      "`reference` (the frozen copy stays there and replaces the weights for its pass: NeMo RL on Megatron)")          \
    FLAG(ROLLOUT_REFIT, "rollout_refit", WORD, 0, 0, WORDS(refit), 0, "rollout-refit", 0,                              \
      NULL, TRAIN,                                                                                                     \
      "with grpo, ppo: new weights are sent to engines one by one, or many at a time",                                 \
      "`tensors`: new weights are sent to engines one matrix at a time; `buckets`: many at a time (NeMo RL's packed "  \
      "transfers, verl's checkpoint engine, slime's buckets)")                                                         \
    FLAG(OLD_LOGPROBS, "old_logprobs", SWITCH, 0, 0, NO_WORDS, DEPENDS, "old-logprobs", 0, NULL,                       \
      TRAIN | PLANS | CHOOSE,                                                                                          \
      "the model recomputes the log-probabilities of its answers before training [with grpo, ppo]",                    \
      "true with `grpo` and `ppo`, else false; with `grpo`: the model runs forward over the answers before training, " \
      "for their log-probabilities (verl, NeMo RL, OpenRLHF, slime; TRL where vLLM generates); false: they come from " \
      "the training pass itself (NeMo RL's `force_on_policy_ratio`)")
#endif
