/* Keys of the questions that ask several times, of what is known and of what is searched, one row each: beside them
 * stand those of a model (keys_model.h), but where tasks.c says otherwise. How a row reads is said in keys_list.h. */
#ifndef FT_REQUEST_KEYS_STUDY_H
#define FT_REQUEST_KEYS_STUDY_H

#define FT_INFER_KEYS(FLAG, PLAIN)                                                                                     \
    FLAG(INFER_BATCHES, "batch", WHOLES, 1, LARGEST_SIZE, NO_WORDS, DEPENDS, "batch", 'b', "N", INFER,                 \
      "only this batch; give it again for several",                                                                    \
      "a number or a list of up to 8; left out: 1, 4, 16, 64, 256")                                                    \
    FLAG(INFER_SEQS, "seq", WHOLES, 1, LARGEST_SIZE, NO_WORDS, DEPENDS, "seq", 's', "N", INFER,                        \
      "only this context length; give it again for several",                                                           \
      "a number or a list of up to 8; left out: 512, 2048, 8192, 32768, up to the model's context length")             \
    FLAG(INFER_ENGINE, "engine", NAMED, 0, 0, NO_WORDS, DEPENDS, "engine", 0, "NAME", INFER,                           \
      "steps of a serving engine (vllm, sglang or trtllm) instead of the framework's",                                 \
      "left out: the framework's own steps; `vllm`, `sglang`, `trtllm` ([engines](engines.md)), a file or an object: " \
      "that engine's iterations, as in [serving](#serving-under-load)")                                                \
    FLAG(ISL, "isl", WHOLE, 1, 1 << 30, NO_WORDS, DEPENDS, "isl", 0, "N", INFER,                                       \
      "offline throughput: tokens of a prompt [1024 with --osl]",                                                      \
      "left out: no `offline`; tokens of a prompt (1024 where only `osl` is given)")                                   \
    FLAG(OSL, "osl", WHOLE, 1, 1 << 30, NO_WORDS, DEPENDS, "osl", 0, "N", INFER,                                       \
      "offline throughput: tokens generated [128 with --isl]",                                                         \
      "tokens of its answer (128 where only `isl` is given)")                                                          \
    FLAG(DENOISING_STEPS, "denoising_steps", WHOLE, 1, 100000, NO_WORDS, DEPENDS, "steps", 0, "N", INFER,              \
      "an image or video from its prompt: denoising steps [the pipeline's]",                                           \
      "for a denoiser whose pipeline is known: denoising steps for one image or video, `generation` in the answer; "   \
      "left out: the pipeline's own number ([data/generators](models/pictures.md))")                                   \
    FLAG(GUIDANCE, "guidance", WORD, 0, 0, WORDS(guidance), DEPENDS, "guidance", 0, NULL, INFER,                       \
      "classifier-free guidance: none, in a doubled batch, or in a second pass [the pipeline's]",                      \
      "for the same: `none` (or distilled into the model), `batch` (both halves in a doubled batch), `twice` (a "      \
      "second pass); left out: what the pipeline does")                                                                \
    FLAG(TILING, "tiling", SWITCH, 0, 0, NO_WORDS, 0, "tiling", 0, NULL, INFER,                                        \
      "decode the image tile by tile, to save memory",                                                                 \
      "false; true: the decoder makes its image tile by tile (`enable_vae_tiling`)")                                   \
    PLAIN(INFER_ADVICE, "advice", SWITCH, 0, 0, NO_WORDS, 0,                                                           \
      "false; true: `steps`, the answers to the first cell's prefill and decode step, with advice")                    \
    PLAIN(INFER_TECHNIQUES, "techniques", SWITCH, 0, 0, NO_WORDS, 0,                                                   \
      "false; true: `steps` with what each technique does to their time and memory")

#define FT_LARGEST_KEYS(FLAG, PLAIN)                                                                                   \
    FLAG(SHAPES, "family", WORD, 0, 0, WORDS(shape), 0, "family", 0, NULL, LARGEST, "family of shapes that models "    \
                                                                                    "grow along",                      \
      "`llama`, `gpt`: family of shapes that models grow along")                                                       \
    FLAG(USE, "use", WORD, 0, 0, WORDS(use), 0, "task", 0, NULL, LARGEST, "what the model must fit for",               \
      "`train`, `infer`: what the model must fit for (`--task` on the command line)")                                  \
    FLAG(LARGEST_GPUS, "gpus", WHOLE, 1, 1 << 20, NO_WORDS, 1, "gpus", 0, "N", LARGEST,                                \
      "GPUs that share the work",                                                                                      \
      "1; more train as with FSDP, `{\"dp\": gpus, \"zero\": 3}`, and serve with tensor parallelism, `{\"tp\": gpus}`")\
    FLAG(LARGEST_TOKENS, "tokens", REAL, 1, 1e18, NO_WORDS, DEPENDS, "tokens", 0, "N", LARGEST,                        \
      "print the days to train on this many tokens [20 per parameter]", "20 per parameter: tokens to train on")

#define FT_SCALE_KEYS(FLAG, PLAIN)                                                                                     \
    FLAG(SCALE_GPUS, "gpus", WHOLE, 2, 1000000, NO_WORDS, DEPENDS, "gpus", 0, "N", SCALE,                              \
      "GPUs at the end of the curves [those of --nodes, or about 512]",                                                \
      "GPUs at the end of the curves, 2 to 1000000; left out: those of `nodes`, or about 512")

#define FT_SWEEP_KEYS(FLAG, PLAIN)                                                                                     \
    PLAIN(SWEEP_OF, "of", WORD, 0, 0, WORDS(swept), 0,                                                                 \
      "`train`, `forward`, `prefill`, `decode`, `memory`, `kernel`, `collective`, `infer`, `largest`, `scale`, "       \
      "`serve`: the task of every point; all other keys are those of the task")                                        \
    PLAIN(SWEEP_RANGE, "sweep", TEXT, 0, 0, NO_WORDS, DEPENDS,                                                         \
      "`KEY=FROM:TO[:STEP]`, where STEP adds and xSTEP multiplies; left out: at most 64 pieces at multiples of a "     \
      "power of two")                                                                                                  \
    PLAIN(SWEEP_OVER, "over", ANY, 0, 0, NO_WORDS, DEPENDS,                                                            \
      "instead of `sweep`: `{\"seq\": \"512:8192:x2\"}` or `{\"seq\": [512, 777, 1024]}`")                             \
    PLAIN(SWEEP_GPU, "gpu", GPUS, 0, 0, NO_WORDS, DEPENDS, "one, or a list")

#define FT_COMPARE_KEYS(FLAG, PLAIN)                                                                                   \
    PLAIN(COMPARED_ANSWERS, "answers", OBJECTS, 0, 0, NO_WORDS, DEPENDS,                                               \
      "a list of answers, or of files that hold one or, on each line, one of several")                                 \
    PLAIN(COMPARED_REQUESTS, "requests", OBJECTS, 0, 0, NO_WORDS, DEPENDS,                                             \
      "a list of requests, which are answered first; at most 8 together with `answers`")                               \
    PLAIN(COMPARED_NAMES, "names", TEXTS, 0, 0, NO_WORDS, DEPENDS,                                                     \
      "names for them; left out: the file with the answer's `id` or line, else the `id` or the number")

#define FT_MODELS_KEYS(FLAG, PLAIN)                                                                                    \
    PLAIN(MODELS_NAME, "name", TEXT, 0, 0, NO_WORDS, DEPENDS,                                                          \
      "left out: the catalogue. A model, the path of a `config.json` or of its folder: its sheet; another word: the "  \
      "models whose name contains it")                                                                                 \
    PLAIN(MODELS_READ_AS, "read_as", TEXT, 0, 0, NO_WORDS, DEPENDS, "as [of a model](#a-model-request)")               \
    FLAG(TYPES, "types", SWITCH, 0, 0, NO_WORDS, 0, "types", 0, NULL, MODELS,                                          \
      "the model_types whose configs are read, one per line",                                                          \
      "false; true: the `model_type`s whose config.json is read, in `types`")

#define FT_GPUS_KEYS(FLAG, PLAIN)                                                                                      \
    PLAIN(GPUS_NAME, "name", GPUS, 0, 0, NO_WORDS, DEPENDS,                                                            \
      "left out: the catalogue. A name, a spec file, a spec object, or a list of them: their sheets")                  \
    FLAG(VENDOR, "vendor", WORD, 0, 0, WORDS(vendor), DEPENDS, "vendor", 0, NULL, GPUS, "only this vendor's",          \
      "`nvidia`, `amd`, `intel`: only this vendor's")                                                                  \
    FLAG(GENERATION, "generation", TEXT, 0, 0, NO_WORDS, DEPENDS, "generation", 0, "NAME", GPUS,                       \
      "only this generation: hopper, cdna3, ...", "`hopper`, `cdna3`, …: only this generation")                        \
    FLAG(MIN_MEMORY, "min_memory_gib", REAL, 0, 1e6, NO_WORDS, DEPENDS, "min-memory-gib", 0, "N", GPUS,                \
      "only with at least this much memory", "only with at least this much memory")                                    \
    FLAG(HAS_DTYPE, "dtype", DTYPE, 0, 0, NO_WORDS, DEPENDS, "dtype", 'd', "DTYPE", GPUS,                              \
      "only with arithmetic in this number format", "only with arithmetic in this number format")

#define FT_PLAN_KEYS(FLAG, PLAIN)                                                                                      \
    FLAG(PLAN_GPUS, "gpus", WHOLE, 1, 1 << 20, NO_WORDS, DEPENDS, "gpus", 0, "N", PLANS,                               \
      "GPUs to lay the job out over", "required: GPUs to lay the job out over; `dp` follows from it")                  \
    PLAIN(PLAN_GLOBAL, "global_batch", WHOLE, 1, LARGEST_SIZE, NO_WORDS, DEPENDS, "required: sequences per step")      \
    FLAG(FRAMEWORK, "framework", TEXT, 0, 0, NO_WORDS, DEPENDS, "framework", 0, "NAME", PLANS | CHOOSE,                \
      "whose layouts: megatron, nemo, torchtitan, fsdp, deepspeed, ddp [the stack's; megatron, for image models ddp]", \
      "`megatron`, `nemo`, `torchtitan`, `fsdp`, `deepspeed`, `ddp`: whose layouts are searched ([plans](plan.md)); "  \
      "left out: the stack's, or `megatron`, for image models and the like `ddp`")                                     \
    FLAG(SEARCH, "search", SECTION, 0, 0, NO_WORDS, DEPENDS, "fix", 0, "KEY=N[,...]", PLANS | CHOOSE,                  \
      "fix these: tp=4,zero=1,recompute=full; tp=4|8 allows several values",                                           \
      "left out: everything is `auto`. `{\"tp\": [4, 8], \"recompute\": \"auto\"}`: what is tried, [below](#a-plan)")  \
    FLAG(ALLOW, "allow", TRIED_WORDS, 0, 0, WORDS(allowed), DEPENDS, "allow", 0, "LIST", PLANS | CHOOSE,               \
      "search these too: cp, ep, zero3, offload, cp_kinds, fp8, fp4",                                                  \
      "a list of `cp`, `ep`, `zero3`, `offload`, `cp_kinds`: searched too where the framework supports them; `fp8`, "  \
      "`fp4`: also the job in these formats")                                                                          \
    FLAG(OBJECTIVE, "objective", WORD, 0, 0, WORDS(goal), 0, "objective", 0, NULL, PLANS,                              \
      "what the best plan minimises; as GPUs are paid by the hour, cost is the same as time",                          \
      "`step_ms` (or `time`; also `cost`, as GPUs are paid by the hour), `memory`, `energy`: what the best plan "      \
      "minimises")                                                                                                     \
    PLAIN(CONSTRAINTS, "constraints", SECTION, 0, 0, NO_WORDS, DEPENDS,                                                \
      "left out: none. `{\"memory_margin\": 0.04}`, [below](#a-plan)")                                                 \
    FLAG(PLAN_TOP, "top", WHOLE, 1, 100, NO_WORDS, 5, "top", 'n', "N", PLANS, "plans to show",                         \
      "5: plans to show, up to 100")                                                                                   \
    FLAG(EMIT, "emit", TEXTS, 0, 0, NO_WORDS, DEPENDS, "emit", 0, "LIST", PLANS,                                       \
      "print the file that starts the best plan: megatron, bridge, nemo, torchtitan, deepspeed, accelerate, torchrun, "\
      "srun, mpirun, or all; for serving vllm, sglang, trtllm",                                                        \
      "a list of `megatron`, `bridge`, `nemo`, `torchtitan`, `deepspeed`, `accelerate`, `torchrun`, `srun`, `mpirun` " \
      "(for serving `vllm`, `sglang`, `trtllm`): launch files of each plan, as text under its `launch`; `all`: every " \
      "one that can start such a plan")                                                                                \
    FLAG(EXHAUSTIVE, "exhaustive", SWITCH, 0, 0, NO_WORDS, 0, "exhaustive", 0, NULL, PLANS,                            \
      "forecast every layout that may fit; for serving, simulate every one",                                           \
      "false; true: every layout that may fit is forecast; for serving, every layout, setting and number of engines "  \
      "is simulated")                                                                                                  \
    FLAG(BY_GPUS, "by_gpus", SWITCH, 0, 0, NO_WORDS, 0, "by-gpus", 0, NULL, PLANS,                                     \
      "also the best plans of fewer and of more GPUs: time against GPUs",                                              \
      "false; true: also the best plans for an eighth to twice as many GPUs")                                          \
    PLAIN(PLAN_BATCH, "batch", TRIED, 1, 1 << 20, NO_WORDS, DEPENDS, "as in `search`")                                 \
    PLAIN(PLAN_RECOMPUTE, "recompute", TRIED_WORDS, 0, 0, WORDS(recompute), DEPENDS,                                   \
      "as in `search`: `none`, `selective`, `full`")

/* Inside `search`: "auto", one value, or a list of them. */
#define FT_SEARCH_KEYS(FLAG, PLAIN)                                                                                    \
    PLAIN(TRIED_TP, "tp", TRIED, 1, 1 << 20, NO_WORDS, DEPENDS, "`auto`, a number or a list: tensor ranks")            \
    PLAIN(TRIED_PP, "pp", TRIED, 1, 1 << 20, NO_WORDS, DEPENDS, "likewise: stages of a pipeline")                      \
    PLAIN(TRIED_VPP, "vpp", TRIED, 1, 1 << 20, NO_WORDS, DEPENDS, "likewise: virtual stages per GPU")                  \
    PLAIN(TRIED_CP, "cp", TRIED, 1, 1 << 20, NO_WORDS, DEPENDS, "likewise: context ranks, which share a sequence")     \
    PLAIN(TRIED_EP, "ep", TRIED, 1, 1 << 20, NO_WORDS, DEPENDS, "likewise: ranks that share experts")                  \
    PLAIN(TRIED_ETP, "etp", TRIED, 1, 1 << 20, NO_WORDS, DEPENDS, "likewise: tensor ranks of an expert")               \
    PLAIN(TRIED_ZERO, "zero", TRIED, 0, 3, NO_WORDS, DEPENDS, "likewise: what is sharded")                             \
    PLAIN(TRIED_BATCH, "batch", TRIED, 1, 1 << 20, NO_WORDS, DEPENDS, "likewise: sequences per micro-batch")           \
    PLAIN(TRIED_RECOMPUTE, "recompute", TRIED_WORDS, 0, 0, WORDS(recompute), DEPENDS,                                  \
      "`auto`, a word or a list: `none`, `selective`, `full`")                                                         \
    PLAIN(TRIED_SCHEDULE, "schedule", TRIED_WORDS, 0, 0, WORDS(schedule), DEPENDS,                                     \
      "`auto`, a word or a list: `gpipe`, `1f1b`, `interleaved`, `zero_bubble`, `dualpipe`, `v_zero_bubble`, "         \
      "`v_half`, `v_min`; those that the framework supports")

/* Inside `constraints`. */
#define FT_CONSTRAINTS_KEYS(FLAG, PLAIN)                                                                               \
    FLAG(MEMORY_MARGIN, "memory_margin", SHARE, 0, 0.9, NO_WORDS, 0, "memory-margin", 0, "X%", PLANS | CHOOSE,         \
      "memory to leave free", "0: share of the memory to leave free")
#endif
