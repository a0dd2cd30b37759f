/* words.c: the words of requests. */
#include "request/words.h"

#include <string.h>

const char *const ft__ask_words[FT_ASK_COUNT] = {
    [FT_ASK_TRAIN] = "train",
    [FT_ASK_FORWARD] = "forward",
    [FT_ASK_PREFILL] = "prefill",
    [FT_ASK_DECODE] = "decode",
    [FT_ASK_SERVE] = "serve",
    [FT_ASK_KERNEL] = "kernel",
    [FT_ASK_COLLECTIVE] = "collective",
    [FT_ASK_MEMORY] = "memory",
    [FT_ASK_TRACE] = "trace",
    [FT_ASK_MODELS] = "models",
    [FT_ASK_GPUS] = "gpus",
    [FT_ASK_INFER] = "infer",
    [FT_ASK_LARGEST] = "largest",
    [FT_ASK_SCALE] = "scale",
    [FT_ASK_SWEEP] = "sweep",
    [FT_ASK_COMPARE] = "compare",
    [FT_ASK_PLAN] = "plan",
    [FT_ASK_CHOOSE] = "choose",
    [FT_ASK_PLAN_SERVE] = "plan_serve",
    [FT_ASK_CHOOSE_SERVE] = "choose_serve",
    [FT_ASK_DRAW] = "draw",
};
const char *const ft__task_words[FT_TASK_COUNT] = {
    [FT_TRAIN] = "train", [FT_FORWARD_PASS] = "forward", [FT_PREFILL] = "prefill", [FT_DECODE] = "decode"};
const char *const ft__scope_words[4] = {
    [FT_SCOPE_OPEN] = "auto", [FT_SCOPE_MODEL] = "model", [FT_SCOPE_LAYERS] = "layers", [FT_SCOPE_LOSS] = "loss"};
const char *const ft__fusion_words[2] = {"recipe", "plain"};
const char *const ft__cache_words[3] = {
    [FT_CACHE_PAGED] = "paged", [FT_CACHE_STATIC] = "static", [FT_CACHE_DYNAMIC] = "dynamic"};
const char *const ft__optimizer_words[FT_OPTIMIZER_COUNT] = {[FT_ADAMW] = "adamw",
                                                             [FT_ADAMW_FOREACH] = "adamw_foreach",
                                                             [FT_ADAMW_8BIT] = "adamw_8bit",
                                                             [FT_ADAFACTOR] = "adafactor",
                                                             [FT_SGD] = "sgd",
                                                             [FT_SGD_MOMENTUM] = "sgd_momentum",
                                                             [FT_MUON] = "muon",
                                                             [FT_LAMB] = "lamb",
                                                             [FT_ADAMW_LOOP] = "adamw_loop",
                                                             [FT_BERT_ADAM] = "bert_adam",
                                                             [FT_NO_OPTIMIZER] = "none"};
const char *const ft__recompute_words[3] = {
    [FT_RECOMPUTE_NONE] = "none", [FT_RECOMPUTE_SELECTIVE] = "selective", [FT_RECOMPUTE_FULL] = "full"};
const char *const ft__module_words[FT_MODULE_COUNT] = {[FT_MODULE_CORE_ATTN] = "core_attn",
                                                       [FT_MODULE_LAYERNORM] = "layernorm",
                                                       [FT_MODULE_MOE_ACT] = "moe_act",
                                                       [FT_MODULE_MLA_UP_PROJ] = "mla_up_proj",
                                                       [FT_MODULE_MLP] = "mlp",
                                                       [FT_MODULE_MOE] = "moe",
                                                       [FT_MODULE_SHARED_EXPERTS] = "shared_experts"};
const char *const ft__graphed_words[FT_GRAPHED_COUNT] = {[FT_GRAPHED_ATTN] = "attn",
                                                         [FT_GRAPHED_MLP] = "mlp",
                                                         [FT_GRAPHED_MOE] = "moe",
                                                         [FT_GRAPHED_MOE_ROUTER] = "moe_router",
                                                         [FT_GRAPHED_MOE_PREPROCESS] = "moe_preprocess",
                                                         [FT_GRAPHED_MAMBA] = "mamba",
                                                         [FT_GRAPHED_LAYER] = "layer",
                                                         [FT_GRAPHED_FULL_ITERATION] = "full_iteration"};
#define KEEPS(name) (1u << FT_REMAT_##name)
#define KEEPS_QKV (KEEPS(QUERY_PROJ) | KEEPS(KEY_PROJ) | KEEPS(VALUE_PROJ))
#define KEEPS_MLP (KEEPS(MLPWI) | KEEPS(MLPWO))
const char *const ft__remat_words[15] = {"query_proj",
                                         "key_proj",
                                         "value_proj",
                                         "context",
                                         "out_proj",
                                         "mlpwi",
                                         "mlpwo",
                                         "full",
                                         "minimal",
                                         "minimal_with_context",
                                         "save_dot_with_context_except_mlp",
                                         "save_dot_except_mlpwi",
                                         "save_dot_except_mlp",
                                         "save_qkv_proj",
                                         "save_out_proj"};
const unsigned ft__remat_masks[15] = {KEEPS(QUERY_PROJ),
                                      KEEPS(KEY_PROJ),
                                      KEEPS(VALUE_PROJ),
                                      KEEPS(CONTEXT),
                                      KEEPS(OUT_PROJ),
                                      KEEPS(MLPWI),
                                      KEEPS(MLPWO),
                                      0,
                                      KEEPS_QKV | KEEPS(OUT_PROJ) | KEEPS_MLP,
                                      KEEPS_QKV | KEEPS(OUT_PROJ) | KEEPS_MLP | KEEPS(CONTEXT),
                                      KEEPS_QKV | KEEPS(OUT_PROJ) | KEEPS(CONTEXT),
                                      KEEPS_QKV | KEEPS(OUT_PROJ) | KEEPS(MLPWO),
                                      KEEPS_QKV | KEEPS(OUT_PROJ),
                                      KEEPS_QKV,
                                      KEEPS(OUT_PROJ)};
#undef KEEPS
#undef KEEPS_QKV
#undef KEEPS_MLP
const char *const ft__batching_words[FT_BATCHING_COUNT] = {
    [FT_BATCH_PAD] = "pad", [FT_BATCH_BUCKET] = "bucket", [FT_BATCH_PACK] = "pack"};
const char *const ft__longer_words[FT_LONGER_COUNT] = {[FT_LONGER_CUT] = "cut", [FT_LONGER_DROP] = "drop"};
const char *const ft__offload_words[FT_OFFLOAD_COUNT] = {[FT_OFFLOAD_OPTIMIZER] = "optimizer",
                                                         [FT_OFFLOAD_OPTIMIZER_NVME] = "optimizer_nvme",
                                                         [FT_OFFLOAD_PAGED_OPTIMIZER] = "paged_optimizer",
                                                         [FT_OFFLOAD_ACTIVATIONS] = "activations",
                                                         [FT_OFFLOAD_PARAMETERS] = "parameters"};
const char *const ft__rollout_words[FT_ROLLOUT_COUNT] = {
    [FT_ROLLOUT_SERVER] = "server", [FT_ROLLOUT_INLINE] = "inline"};
const char *const ft__away_words[FT_AWAY_COUNT] = {
    [FT_AWAY_OPTIMIZER] = "optimizer", [FT_AWAY_WEIGHTS] = "weights", [FT_AWAY_REFERENCE] = "reference"};
const char *const ft__refit_words[FT_REFIT_COUNT] = {[FT_REFIT_TENSORS] = "tensors", [FT_REFIT_BUCKETS] = "buckets"};
const char *const ft__trainer_words[FT_TRAINER_COUNT] = {[FT_TRAINER_SFT] = "sft",
                                                         [FT_TRAINER_DPO] = "dpo",
                                                         [FT_TRAINER_ORPO] = "orpo",
                                                         [FT_TRAINER_GRPO] = "grpo",
                                                         [FT_TRAINER_PPO] = "ppo"};
const char *const ft__moment_words[4] = {"fp32", "bf16", "fp16", "fp8"};
const double ft__moment_bytes[4] = {4, 2, 2, 1};
const char *const ft__adapter_words[4] = {"fp32", "bf16", "fp16", "autocast"};
const char *const ft__detail_words[3] = {[FT_SUMMARY] = "summary", [FT_LAYERS] = "layers", [FT_KERNELS] = "kernels"};
const char *const ft__picture_words[FT_PICTURE_COUNT] = {
    [FT_PICTURE_ROOFLINE] = "roofline", [FT_PICTURE_TIMELINE] = "timeline", [FT_PICTURE_MEMORY] = "memory",
    [FT_PICTURE_LAYERS] = "layers",     [FT_PICTURE_CLASSES] = "classes",   [FT_PICTURE_INTERVALS] = "intervals",
    [FT_PICTURE_PIPELINE] = "pipeline",
};
const char *const ft__drawn_words[FT_DRAWN_COUNT] = {
    [FT_DRAWN_AS_ROOFLINE] = "roofline", [FT_DRAWN_AS_TIMELINE] = "timeline", [FT_DRAWN_AS_MEMORY] = "memory",
    [FT_DRAWN_AS_LAYERS] = "layers",     [FT_DRAWN_AS_CLASSES] = "classes",   [FT_DRAWN_AS_INTERVALS] = "intervals",
    [FT_DRAWN_AS_PIPELINE] = "pipeline", [FT_DRAWN_AS_PHASES] = "phases",     [FT_DRAWN_AS_PEAK] = "peak",
    [FT_DRAWN_AS_WAITS] = "waits",       [FT_DRAWN_AS_TOKENS] = "tokens",     [FT_DRAWN_AS_QUEUE] = "queue",
    [FT_DRAWN_AS_CACHE] = "cache",       [FT_DRAWN_AS_CURVES] = "curves",     [FT_DRAWN_AS_BARS] = "bars",
};
const char *const ft__look_words[FT_LOOK_COUNT] = {"compute", "memory",   "overhead", "communication",
                                                   "forward", "backward", "update",   "again",
                                                   "f0",      "f1",       "f2",       "f3",
                                                   "f4",      "f5",       "f6",       "f7"};

/* -- number formats ---------------------------------------------------------------------------- */

const char *const ft__dtype_words[FT_DTYPE_COUNT] = {
#define X(code, name, bytes) [code] = name,
    FT_DTYPE_LIST(X)
#undef X
};
const char *const ft__recipe_words[10] = {"bf16", "fp16", "fp32",     "tf32",     "fp8",
                                          "int8", "fp4",  "amp_bf16", "amp_fp16", "fp64"};
/* Weights may be stored in formats that nobody computes in. */
const char *const ft__stored_words[25] = {"bf16", "fp16",   "fp32",   "fp8",    "int8",   "fp4",    "int4",
                                          "nf4",  "mxfp4",  "q2_k",   "q3_k_s", "q3_k_m", "q3_k_l", "q4_0",
                                          "q4_1", "q4_k_s", "q4_k_m", "q5_0",   "q5_1",   "q5_k_s", "q5_k_m",
                                          "q6_k", "q8_0",   "iq4_xs", "iq4_nl"};
const double ft__stored_bits[25] = {16, 16, 32, 8, 8, 4, 4, 4, 4, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 8, 4, 4};
const char *const ft__kv_words[6] = {"bf16", "fp16", "fp32", "fp8", "int8", "fp4"};
const ft_dtype ft__kv_dtypes[6] = {FT_BF16, FT_FP16, FT_FP32, FT_FP8, FT_INT8, FT_FP4};
const char *const ft__wire_words[4] = {"fp32", "bf16", "fp16", "fp8"};
const double ft__wire_bytes[4] = {4, 2, 2, 1};

ft_dtype ft__recipe_of(int word, bool *autocast)
{
    const char *name = ft__recipe_words[word];
    ft_dtype dtype = FT_BF16;
    *autocast = !strncmp(name, "amp_", 4);
    ft_dtype_parse(*autocast ? name + 4 : name, &dtype);
    return dtype;
}

/* -- layouts over GPUs, kernels ---------------------------------------------------------------- */

const char *const ft__deal_words[2] = {"even", "rest"};
const char *const ft__gather_words[2] = {"layer", "parameter"};
const char *const ft__dispatch_words[2] = {"copies", "once"};
const char *const ft__network_words[2] = {"closed", "simgrid"};
const char *const ft__count_words[1] = {"all"};
const char *const ft__kernel_layout_words[6] = {"nn", "nt", "tn", "tt", "nhwc", "nchw"};
const char *const ft__image_words[2] = {"nhwc", "nchw"};
const char *const ft__pass_words[3] = {[FT_PASS_FWD] = "fwd", [FT_PASS_BWD] = "bwd", [FT_PASS_FWD_BWD] = "fwd_bwd"};
const char *const ft__library_words[FT_LIBRARY_COUNT] = {
    [FT_LIBRARY_OPEN] = "sdpa",         [FT_LIBRARY_FLASH] = "flash",   [FT_LIBRARY_FLASH1] = "flash1",
    [FT_LIBRARY_FLASH2] = "flash2",     [FT_LIBRARY_FLASH3] = "flash3", [FT_LIBRARY_CUDNN] = "cudnn",
    [FT_LIBRARY_XFORMERS] = "xformers", [FT_LIBRARY_TRITON] = "triton"};
const char *const ft__engine_words[5] = {[FT_ENGINE_ANY] = "any",
                                         [FT_ENGINE_BARE] = "bare",
                                         [FT_ENGINE_TRTLLM] = "trtllm",
                                         [FT_ENGINE_VLLM] = "vllm",
                                         [FT_ENGINE_SGLANG] = "sglang"};
const char *const ft__storage_words[FT_STORAGE_COUNT] = {
#define X(code, name, bytes) [code] = name,
    FT_STORAGE_LIST(X)
#undef X
};
const char *const ft__moe_backend_words[FT_MOE_BACKEND_COUNT] = {
    [FT_MOE_ANY] = "any",       [FT_MOE_CUTLASS] = "cutlass", [FT_MOE_TRTLLM_GEN] = "trtllm_gen",
    [FT_MOE_TRITON] = "triton", [FT_MOE_MARLIN] = "marlin",   [FT_MOE_DEEPGEMM] = "deepgemm"};
const char *const ft__weight_kernel_words[FT_WEIGHT_KERNEL_COUNT] = {
    [FT_WEIGHTS_ANY] = "any",         [FT_WEIGHTS_MARLIN] = "marlin", [FT_WEIGHTS_CUTLASS] = "cutlass",
    [FT_WEIGHTS_AWQ] = "awq",         [FT_WEIGHTS_GPTQ] = "gptq",     [FT_WEIGHTS_BITSANDBYTES] = "bitsandbytes",
    [FT_WEIGHTS_TORCHAO] = "torchao", [FT_WEIGHTS_GGUF] = "gguf"};
const char *const ft__moe_routing_words[2] = {"even", "random"};
const char *const ft__timing_words[2] = {[FT_TIMING_DEVICE] = "device", [FT_TIMING_OP] = "op"};

/* -- serving under load, in the order of serving's enums ----------------------------------------- */

const char *const ft__settings_words[2] = {"recipe", "defaults"};
const char *const ft__start_words[2] = {"together", "steady"};
const char *const ft__scheduling_words[5] = {"fcfs", "priority", "shortest", "fair", "max_min"};
const char *const ft__routing_words[3] = {"round_robin", "least_loaded", "prefix_aware"};
const char *const ft__find_words[2] = {"rate", "concurrency"};

/* -- studies, searches, catalogues --------------------------------------------------------------- */

const char *const ft__shape_words[2] = {"llama", "gpt"};
const char *const ft__use_words[2] = {"train", "infer"};
const char *const ft__swept_words[11] = {"train",      "forward", "prefill", "decode", "memory", "kernel",
                                         "collective", "infer",   "largest", "scale",  "serve"};
const char *const ft__guidance_words[3] = {"none", "batch", "twice"};
const char *const ft__vendor_words[3] = {"nvidia", "amd", "intel"};
const char *const ft__allowed_words[7] = {"cp", "ep", "zero3", "offload", "cp_kinds", "fp8", "fp4"};
const char *const ft__choice_words[5] = {"cost", "time", "energy", "carbon", "knee"};
const char *const ft__goal_words[5] = {"step_ms", "memory", "energy", "cost", "time"};
