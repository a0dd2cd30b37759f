/* Keys of a request for a whole model, one row each. How a row reads is said in keys_list.h. */
#ifndef FT_REQUEST_KEYS_MODEL_H
#define FT_REQUEST_KEYS_MODEL_H
#include "request/keys_step.h"

#define FT_COMMON_KEYS(FLAG, PLAIN)                                                                                    \
    PLAIN(ID, "id", ANY, 0, 0, NO_WORDS, DEPENDS, "any scalar, returned unchanged")                                    \
    PLAIN(TASK, "task", WORD, 0, 0, WORDS(ask), 0,                                                                     \
      "`train`: one step; `forward`: all logits, no cache, no loss; `prefill`: writes the cache, the last token's "    \
      "logits; `decode`: one token for every sequence of the batch; `memory`: the memory of a training step, or of "   \
      "decoding where `cache` or `kv_dtype` is given; `kernel`, `collective`: [a kernel](#a-kernel-request), [an "     \
      "exchange](#a-collective-request); `serve`: [requests over time](serving.md); `infer`, `largest`, `scale`, "     \
      "`sweep`, `compare`, `models`, `gpus`, `plan`, `choose`, `plan_serve`, `choose_serve`: "                         \
      "[studies](#studies); `draw`: [pictures](#pictures)")                                                            \
    FLAG(GPU, "gpu", GPU, 0, 0, NO_WORDS, DEPENDS, "gpu", 'g', "GPU",                                                  \
      KERNEL | VALIDATE | TRAIN | TRACE | CHOOSE | EXCHANGE,                                                           \
      "catalogue name or spec file; give it again for several GPUs",                                                   \
      "catalogue name, path of a spec file, or a spec object ([devices](devices.md))")                                 \
    FLAG(QUANTILE, "quantile", REAL, 0.5, 0.99, NO_WORDS, 0.9, "quantile", 'q', "X",                                   \
      KERNEL | VALIDATE | BATCH | STEPS | INFER | TRACE | SERVE | EXCHANGE,                                            \
      "share of cases that the interval should cover, 0.5 to 0.99",                                                    \
      "0.9: the share of cases that `low_ms`–`high_ms` should cover, 0.5 to 0.99")

#define FT_MODEL_KEYS(FLAG, PLAIN)                                                                                     \
    PLAIN(MODEL, "model", NAMED, 0, 0, NO_WORDS, DEPENDS,                                                              \
      "catalogue name (`foretell models`), path of a `config.json`, of its folder or of a [graph file](graph.md), the "\
      "object of either, or `{\"base\": \"gpt2\", \"vocab_size\": 50304}`: a catalogue model with some values of its " \
      "config changed")                                                                                                \
    FLAG(MICRO_BATCH, "batch", WHOLE, 1, LARGEST_SIZE, NO_WORDS, 1, "micro-batch-size", 'b', "N", STEPS | LARGEST,     \
      "sequences (or images) per GPU and micro-batch; also --batch",                                                   \
      "1: sequences or images of one micro-batch")                                                                     \
    FLAG(GLOBAL_BATCH, "global_batch", WHOLE, 1, LARGEST_SIZE, NO_WORDS, DEPENDS, "global-batch-size", 0, "N",         \
      STEPS | LARGEST, "sequences per step over all GPUs; micro-batches add up their gradients",                       \
      "sequences per step over all GPUs, a multiple of `batch` × `dp`: gradients are accumulated")                     \
    FLAG(SEQ, "seq", WHOLE, 0, LARGEST_SIZE, NO_WORDS, DEPENDS, "seq", 's', "N", STEPS | LARGEST,                      \
      "tokens per sequence [the model's own, at most 4096]",                                                           \
      "tokens per sequence; for `decode`, those already in the cache; for an encoder–decoder, on both sides; no "      \
      "effect on images. Left out: the model's own length, at most 4096")                                              \
    FLAG(MODEL_DTYPE, "dtype", WORD, 0, 0, WORDS(recipe), 0, "dtype", 'd', NULL, STEPS | INFER | LARGEST | SERVE,      \
      "number format; amp_*: fp32 weights, low-precision arithmetic",                                                  \
      "`bf16`, `fp16`, `fp32` (TF32 off), `tf32`, `fp8`, `int8`, `fp4`, `fp64`; `amp_bf16`, `amp_fp16`: fp32 "         \
      "weights, low-precision arithmetic")                                                                             \
    FLAG(WEIGHTS_DTYPE, "weights_dtype", WORD, 0, 0, WORDS(stored), DEPENDS, "weights-dtype", 0, NULL,                 \
      STEPS | INFER | LARGEST | SERVE, "weights stored in another format: quantised inference, QLoRA",                 \
      "`bf16`, `fp16`, `fp32`, `fp8`, `int8`, `fp4`, `int4`, `nf4`, `mxfp4`: how weights are stored; left out: as the "\
      "dtype, and for inference as the config's `quantization_config` says. llama.cpp's formats by name: `q2_k`, "     \
      "`q3_k_s`, `q3_k_m`, `q3_k_l`, `q4_0`, `q4_1`, `q4_k_s`, `q4_k_m`, `q5_0`, `q5_1`, `q5_k_s`, `q5_k_m`, `q6_k`, " \
      "`q8_0`, `iq4_xs`, `iq4_nl` ([what each has](architectures.md#files-of-llamacpp)). `fp32` with 16-bit "          \
      "arithmetic is `amp_*`; weights of fewer than 16 bits are trained only with `lora_rank`")                        \
    FLAG(WEIGHTS_BY, "weight_kernel", WORD, 0, 0, WORDS(weight_kernel), DEPENDS, "weight-kernel", 0, NULL,             \
      STEPS | INFER, "whose kernels dequantise low-bit weights",                                                       \
      "`any`, `marlin`, `cutlass`, `awq`, `gptq`, `bitsandbytes`, `torchao`, `gguf`: whose kernels multiply by "       \
      "low-bit weights; left out: an engine's own (Marlin's), torchao's under a compiler, else the library that loads "\
      "them")                                                                                                          \
    FLAG(GPU_LAYERS, "gpu_layers", WHOLE, 0, 100000, NO_WORDS, DEPENDS, "gpu-layers", 0, "N", STEPS | INFER,           \
      "llama.cpp files: layers on the GPU, counting the head; the first ones run on the host [all]",                   \
      "all; llama.cpp's `-ngl`: this many layers are on the GPU, counting the head; the first ones stay on the host, " \
      "with their cache ([below](#models-split-between-card-and-host)). For `prefill` and `decode` with llama.cpp's "  \
      "formats, on one GPU")                                                                                           \
    FLAG(CPU_EXPERTS, "cpu_experts", WHOLE, 1, 100000, NO_WORDS, DEPENDS, "cpu-experts", 0, "N", STEPS | INFER,        \
      "llama.cpp files: layers whose experts stay on the host [none]",                                                 \
      "none; llama.cpp's `--n-cpu-moe`: the experts of this many first layers stay on the host, which computes them; " \
      "the number of the model's layers means all (`--cpu-moe`)")                                                      \
    FLAG(HOST_MEMORY, "host_memory_gbps", REAL, 1, 10000, NO_WORDS, DEPENDS, "host-memory-gbps", 0, "X",               \
      STEPS | INFER,                                                                                                   \
      "rated bandwidth of the host's memory in GB/s, for --gpu-layers and --cpu-experts [two channels of DDR5]",       \
      "two channels of DDR5, a desktop's, with cards that have plain GDDR, else half a server's; rated GB/s of the "   \
      "host's memory, for `gpu_layers` and `cpu_experts`")                                                             \
    FLAG(MODEL_KV_DTYPE, "kv_dtype", WORD, 0, 0, WORDS(kv), DEPENDS, "kv-dtype", 0, NULL, INFER | LARGEST | SERVE,     \
      "number format of the cache",                                                                                    \
      "`bf16`, `fp16`, `fp32`, `fp8`, `int8`, `fp4`: of the cache; left out: as the dtype, but at least 16 bits")      \
    FLAG(CACHE, "cache", WORD, 0, 0, WORDS(cache), 0, "cache", 0, NULL, INFER,                                         \
      "keys and values in pages (as in serving engines), preallocated, or concatenated",                               \
      "`paged`, `static`, `dynamic` (grows by concatenation, as plain `transformers` does)")                           \
    FLAG(ATTENTION, "attention", WORD, 0, 0, WORDS(attention), 0, "attention", 0, NULL, STEPS | INFER | LARGEST,       \
      "one kernel, separate products and softmax, as the framework picks, or one library's by name",                   \
      "`flash` (the FlashAttention package: its second generation up to Hopper, its Blackwell kernels on data-centre " \
      "Blackwell), `flash1` (its first version, of 2022), `flash2` (its second, on every GPU), `flash3` (Hopper's), "  \
      "`cudnn`, `xformers`, `triton` (fused kernels of these), `eager`, `sdpa` (as PyTorch picks). Left out: models "  \
      "that no flash kernel supports (T5, MPNet, BLOOM) run as in transformers, in `train` and `forward` but `fused`") \
    FLAG(EXECUTION, "execution", WORD, 0, 0, WORDS(execution), 0, "execution", 'x', NULL, TRAIN | LARGEST,             \
      "operator by operator, hand-fused (Megatron), compiled, replayed, or without a host",                            \
      "`eager`, `fused`, `compile`, `cuda_graph`, `ideal` (eager kernels, no host), `torchscript` (traced or scripted "\
      "by torch.jit: no Python between operators; what its compiler fuses depends on `pytorch`)")                      \
    FLAG(PYTORCH, "pytorch", TEXT, 0, 0, NO_WORDS, DEPENDS, "pytorch", 0, "VERSION", STEPS | INFER | LARGEST,          \
      "version that runs the operators: 2.1, 1.13, 2.5.1 [today's]",                                                   \
      "today's; a version of PyTorch, `\"2.1\"`, `\"1.13\"`, `\"2.5.1\"`: it decides what `sdpa` picks, whether "      \
      "optimizers update tensors in lists (foreach), whether gradients are set to None between steps, what "           \
      "TorchScript fuses, and more ([what each changes](stacks.md#versions-of-pytorch)). One newer than the last "     \
      "known is treated as that")                                                                                      \
    FLAG(STACK, "stack", NAMED, 0, 0, NO_WORDS, DEPENDS, "stack", 0, "NAME", STEPS | INFER | LARGEST,                  \
      "the software [as the other options imply]: automodel, ddp, deepspeed, framework, fsdp, fsdp2, gpt_fast, "       \
      "gpt_neox, hf_trainer, hf_trainer_2024, hf_trainer_liger, internevo, kempnerforge, liger, litgpt, llm_c, "       \
      "llm_foundry, maxtext, megatron, megatron_2021, megatron_2022, megatron_2023, megatron_deepspeed, "              \
      "megatron_deepspeed_2023, "                                                                                      \
      "megatron_llama, megatron_recipe, nanochat, nanotron, nemo, nemo_rl, nemo_rl_2025, paddle, pax, peft, peft_2024, "\
      "pytorch, qwen_finetune, recipe_2023, sharded, tensorflow, tensorrt, torchtitan, torchtune, "                    \
      "transformer_engine_2024, trl, unsloth, xla, or a file",                                                         \
      "the software that trains it, runs a forward pass (`tensorrt`), or decodes compiled ([stacks](stacks.md)): a "   \
      "name (`megatron`, `torchtitan`, `fsdp2`, `deepspeed`, …), the path of a file, or its object. Left out: what "   \
      "follows from the other keys. A named one has its own defaults for `execution`, `attention`, `compile_scope`, "  \
      "`loss`, `cp_kind`, `master_weights` and `zero`")                                                                \
    FLAG(COMPILE_SCOPE, "compile_scope", WORD, 0, 0, WORDS(scope), 0, "compile-scope", 0, NULL, STEPS | LARGEST,       \
      "with compile: the whole model with its loss, each layer by itself (as with FSDP), or loss: a function that "    \
      "returns only the loss",                                                                                         \
      "with `compile`: `model` (with its loss; logits are returned too, as in transformers, and kept), `loss` (the "   \
      "same in a function that returns only the loss), `layers` (each by itself, the rest eager), `auto`: layers "     \
      "under FSDP (`zero` 3), else the model")                                                                         \
    FLAG(FUSIONS, "fusions", WORD, 0, 0, WORDS(fusion), 0, "fusions", 0, NULL, STEPS | LARGEST,                        \
      "with fused: with or without what NVIDIA's recipes add to Megatron-Core's defaults",                             \
      "with `fused`: `recipe`: also what NVIDIA's recipes turn on beyond Megatron-Core's defaults, the rotary kernels "\
      "of latent attention (`apply_rope_fusion` with `enable_experimental`) and the router's (`moe_router_fusion`); "  \
      "`plain`: without them")                                                                                         \
    FLAG(OPTIMIZER, "optimizer", WORD, 0, 0, WORDS(optimizer), 0, "optimizer", 0, NULL, STEPS | LARGEST,               \
      "none: forward and backward only",                                                                               \
      "`adamw`, `adamw_foreach`, `adamw_8bit`, `adafactor`, `sgd`, `sgd_momentum`, `muon`, `lamb`, `none`; "           \
      "`adamw_loop`: tensor by tensor (`foreach=False`), `bert_adam`: likewise, each tensor clipped by itself")        \
    FLAG(MASTER_WEIGHTS, "master_weights", SWITCH, 0, 0, NO_WORDS, 0, "master-weights", 0, NULL, STEPS | LARGEST,      \
      "fp32 copies of low-precision weights (the Megatron recipe)",                                                    \
      "false; true: fp32 copies of low-precision weights (the Megatron recipe)")                                       \
    FLAG(RECOMPUTE, "recompute", WORD, 0, 0, WORDS(recompute), 0, "recompute", 0, NULL, STEPS | LARGEST,               \
      "activations that the backward pass recomputes",                                                                 \
      "`none`, `selective` (keeps attention and every other matrix product of each layer; with `fused`, everything "   \
      "but attention's scores), `full` ([what runs again](models/graph.md#backward))")                                 \
    FLAG(RECOMPUTE_MODULES, "recompute_modules", NAMES, 0, 0, WORDS(module), DEPENDS, "recompute-modules", 0,          \
      "NAME,...",                                                                                                      \
      STEPS | LARGEST,                                                                                                 \
      "with fused: parts of a layer to recompute, by Megatron-Core's names: core_attn, layernorm, moe_act, mlp, ...",  \
      "left out: what `selective` means; with `fused`, an array of Megatron-Core's names, which implies `selective`: " \
      "`core_attn`, `layernorm`, `moe_act`, `mla_up_proj`, `mlp`, `moe`, `shared_experts` are recomputed, the rest is "\
      "kept. No effect where `recompute` is `none` or `full`")                                                         \
    FLAG(LORA_RANK, "lora_rank", WHOLE, 0, 65536, NO_WORDS, 0, "lora-rank", 0, "N", TRAIN | PLANS | CHOOSE | LARGEST,  \
      "train only adapters of this rank",                                                                              \
      "0; only adapters of this rank are trained, as the [stack](stacks.md) runs them; `lora` has more settings")      \
    PLAIN(LORA, "lora", SECTION, 0, 0, NO_WORDS, DEPENDS,                                                              \
      "left out: `lora_rank` alone. `{\"rank\": 16, \"targets\": [\"q_proj\", \"v_proj\"], \"dtype\": \"bf16\", "      \
      "\"dropout\": 0.05}` and more, [below](#adapters)")                                                              \
    FLAG(CLIP_GRAD, "clip_grad", SWITCH, 0, 0, NO_WORDS, 0, "clip-grad", 0, NULL, STEPS,                               \
      "clip the norm of the gradients", "false; true: the norm of the gradients is clipped")                           \
    FLAG(HOST, "host", NAMED, 0, 0, NO_WORDS, DEPENDS, "host", 0, "NAME|FILE", STEPS | INFER | TRACE,                  \
      "the host that issues the kernels: a name in data/hosts, or a file of that form [typical]",                      \
      "`h200_vm` on `h200_sxm`, `desktop` with a GeForce, else `typical`; a name in `data/hosts`, a file's path or "   \
      "its object: what operators, passes, wrappers and launches cost the host "                                       \
      "([hosts](models/host.md#another-host)); the answer then names it, `\"host\"`")                                  \
    FLAG(HOST_US, "host_us_per_op", REAL, 0, 1e6, NO_WORDS, DEPENDS, "host-us-per-op", 0, "X", STEPS | INFER,          \
      "host cost of one eager operator", "host cost of one eager operator, instead of the modelled one")               \
    FLAG(IMAGE_LAYOUT, "layout", WORD, 0, 0, WORDS(image), 0, "layout", 0, NULL, TRAIN | INFER,                        \
      "memory layout of images: channels last, or first",                                                              \
      "`nhwc` (channels last), `nchw`: memory layout of a ResNet's images; other models have their own")               \
    FLAG(IMAGES, "images", WHOLE, 0, 100000, NO_WORDS, 0, "images", 0, "N", STEPS | INFER | LARGEST,                   \
      "images per sequence, for vision-language models",                                                               \
      "images per sequence, for a model with a vision tower: the tower runs over them, and their tokens are added to " \
      "`seq`. In `decode` they only add tokens to the cache")                                                          \
    FLAG(IMAGE_SIZE, "image_size", EXTENT, 1, 65536, NO_WORDS, DEPENDS, "image-size", 0, "HxW",                        \
      STEPS | INFER | LARGEST,                                                                                         \
      "height and width in pixels of images or videos, one number for squares [1024x1024, or the model's own]",        \
      "height and width of those images in pixels, `\"768x1024\"` or `[768, 1024]`, one number for squares; "          \
      "`1024x1024` when left out. Towers of a fixed size have their own. For an image model, whose images are square, "\
      "and for a denoiser: its input size; left out: its config's")                                                    \
    FLAG(FRAMES, "frames", WHOLE, 0, 100000, NO_WORDS, DEPENDS, "frames", 0, "N", STEPS | INFER | LARGEST,             \
      "frames per video, for video models [the model's own]",                                                          \
      "frames of a video, for a video denoiser: its autoencoder makes one latent frame of the first and one of every " \
      "4 to 8 after it; left out: its authors' default. `image_size` gives their size")                                \
    FLAG(SOURCE, "source_tokens", WHOLE, 0, 10000000, NO_WORDS, DEPENDS, "source-tokens", 0, "N",                      \
      STEPS | INFER | LARGEST,                                                                                         \
      "tokens of a second input of each sequence: what an encoder reads, a protein's residues",                        \
      "tokens of a second input that layers attend to: what the encoder of an encoder–decoder reads (as many as `seq` "\
      "when left out), residues of a protein (`evolla`, 1024 when left out), the text that describes the music "       \
      "(`musicgen`). `seq` does not count them")                                                                       \
    FLAG(MTP, "mtp", WHOLE, 0, 16, NO_WORDS, 0, "mtp", 0, "N", STEPS | INFER | LARGEST,                                \
      "multi-token prediction modules after the last layer (Megatron's --mtp-num-layers)",                             \
      "0; number of modules after the last layer that each predict one more token (DeepSeek-V3's form): a norm and a " \
      "product that joins the embedding of the next token, a layer like the last, the model's own head and, in "       \
      "training, its loss. A config's `num_nextn_predict_layers` says how many its checkpoint has; plain "             \
      "`transformers` leaves them out. In `decode` each runs once over the step's tokens")                             \
    FLAG(READ_AS, "read_as", TEXT, 0, 0, NO_WORDS, DEPENDS, "read-as", 0, "TYPE", STEPS | INFER | MODELS | SERVE,      \
      "read an unknown model_type as this known one",                                                                  \
      "a known `model_type` (`foretell models --types`) to read an unknown one as, or the path of your own "           \
      "[architecture](architectures.md)")                                                                              \
    FT_STEP_KEYS(FLAG, PLAIN)                                                                                          \
    PLAIN(PARALLEL, "parallel", SECTION, 0, 0, NO_WORDS, DEPENDS,                                                      \
      "left out: one GPU. `{\"dp\": 1, \"tp\": 1, \"pp\": 1, \"vpp\": 1, \"cp\": 1, \"ep\": 1, \"zero\": 0, \"sp\": "  \
      "false, \"schedule\": \"1f1b\"}` and more, [below](#many-gpus)")                                                 \
    PLAIN(CLUSTER, "cluster", SECTION, 0, 0, NO_WORDS, DEPENDS,                                                        \
      "left out: the GPU's usual node and network. `{\"nodes\": 8, \"gpus_per_node\": 8, \"interconnect\": "           \
      "\"ib_ndr400\"}` and more, [below](#many-gpus)")                                                                 \
    FLAG(TRAIN_TOKENS, "tokens", REAL, 1, 1e18, NO_WORDS, DEPENDS, "tokens", 0, "N", TRAIN,                            \
      "print the days to train on this many tokens",                                                                   \
      "tokens of a training run: the answer then has its days, `training` ([below](#days-of-training-kept-answers))")  \
    PLAIN(DETAIL, "detail", WORD, 0, 0, WORDS(detail), 0, "`summary`, `layers`, `kernels`")                            \
    PLAIN(ADVICE, "advice", SWITCH, 0, 0, NO_WORDS, 0,                                                                 \
      "false; true: what to change, with verdicts and findings (about thirty more forecasts)")                         \
    PLAIN(TECHNIQUES, "techniques", SWITCH, 0, 0, NO_WORDS, 0,                                                         \
      "false; true: what each technique does to time and memory")                                                      \
    PLAIN(COURSE, "course", SWITCH, 0, 0, NO_WORDS, 0,                                                                 \
      "false; true: the answer has the step over time, `course`: passes and kernels, memory, the pipeline; for "       \
      "`serve`, queue and cache")                                                                                      \
    PLAIN(PICTURES, "pictures", NAMES, 0, 0, WORDS(picture), DEPENDS,                                                  \
      "left out: none. A list of `timeline`, `memory`, `roofline`, `layers`, `classes`, `intervals`, `pipeline`: the " \
      "answer has these pictures of the step as SVG, in `pictures` by name")                                           \
    PLAIN(LOADER, "loader", SECTION, 0, 0, NO_WORDS, DEPENDS,                                                          \
      "left out: samples always arrive in time. `{\"workers\": 4, \"worker_ms\": 8}` and more, [below](#input)")
#endif
