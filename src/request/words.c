/* words.c: the words of requests. */
#include "request/words.h"

const char *const ft__task_words[FT_TASK_COUNT] = {
    [FT_TRAIN] = "train", [FT_FORWARD_PASS] = "forward", [FT_PREFILL] = "prefill", [FT_DECODE] = "decode"};
const char *const ft__attention_words[FT_ATTENTION_KINDS] = {
    [FT_FLASH] = "flash", [FT_EAGER] = "eager", [FT_SDPA] = "sdpa", [FT_FLASH1] = "flash1", [FT_FLASH2] = "flash2"};
const char *const ft__execution_words[5] = {[FT_RUN_EAGER] = "eager",
                                            [FT_RUN_FUSED] = "fused",
                                            [FT_RUN_COMPILE] = "compile",
                                            [FT_RUN_CUDA_GRAPH] = "cuda_graph",
                                            [FT_RUN_IDEAL] = "ideal"};
const char *const ft__scope_words[3] = {
    [FT_SCOPE_OPEN] = "auto", [FT_SCOPE_MODEL] = "model", [FT_SCOPE_LAYERS] = "layers"};
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
const char *const ft__detail_words[3] = {[FT_SUMMARY] = "summary", [FT_LAYERS] = "layers", [FT_KERNELS] = "kernels"};
