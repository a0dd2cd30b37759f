/* foreign_words.c: what other software calls our words, key by key.
 *
 * From the public code of those who say them: transformers' OptimizerNames, attn_implementation and torch_dtype,
 * Megatron-LM's --recompute-method, torchtitan's pipeline schedules, TRL's trainers, Liger's and Apple's losses. */
#include <string.h>

#include "base/text.h"
#include "request/foreign.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char paged[] = " and \"offload\": [\"paged_optimizer\"]";

static const struct {
    const char *key, *theirs, *ours;
    const char *beside; /* what else to say; NULL: nothing */
} words[] = {
    {"optimizer", "adamw_torch", "adamw_foreach", NULL},
    {"optimizer", "adamw_hf", "adamw_foreach", NULL},
    {"optimizer", "adamw_torch_fused", "adamw", NULL},
    {"optimizer", "adamw_apex_fused", "adamw", NULL},
    {"optimizer", "adamw_fused", "adamw", NULL},
    {"optimizer", "fused_adam", "adamw", NULL},
    {"optimizer", "distributed_adam", "adamw", NULL},
    {"optimizer", "adam8bit", "adamw_8bit", NULL},
    {"optimizer", "adamw8bit", "adamw_8bit", NULL},
    {"optimizer", "adamw_bnb_8bit", "adamw_8bit", NULL},
    {"optimizer", "paged_adamw", "adamw", paged},
    {"optimizer", "paged_adamw_32bit", "adamw", paged},
    {"optimizer", "paged_adamw_8bit", "adamw_8bit", paged},
    {"optimizer", "momentum", "sgd_momentum", NULL},
    {"attention", "flash_attention_2", "flash2", NULL},
    {"attention", "flash_attn_2", "flash2", NULL},
    {"attention", "fa2", "flash2", NULL},
    {"attention", "flash_attention_3", "flash3", NULL},
    {"attention", "flash_attn_3", "flash3", NULL},
    {"attention", "fa3", "flash3", NULL},
    {"attention", "flash_attention", "flash", NULL},
    {"attention", "flash_attn", "flash", NULL},
    {"attention", "fa", "flash", NULL},
    {"attention", "scaled_dot_product_attention", "sdpa", NULL},
    {"attention", "math", "eager", NULL},
    {"attention", "memory_efficient", "xformers", NULL},
    {"attention", "mem_efficient", "xformers", NULL},
    {"dtype", "float16", "fp16", NULL},
    {"dtype", "half", "fp16", NULL},
    {"dtype", "bfloat16", "bf16", NULL},
    {"dtype", "float32", "fp32", NULL},
    {"dtype", "float", "fp32", NULL},
    {"dtype", "float64", "fp64", NULL},
    {"dtype", "double", "fp64", NULL},
    {"dtype", "float8", "fp8", NULL},
    {"dtype", "fp8_e4m3", "fp8", NULL},
    {"dtype", "float8_e4m3fn", "fp8", NULL},
    {"dtype", "mixed", "amp_bf16", NULL},
    {"dtype", "amp", "amp_bf16", NULL},
    {"recompute", "uniform", "full", NULL},
    {"recompute", "block", "full", " and \"recompute_layers\""},
    {"recompute", "checkpoint", "full", NULL},
    {"recompute", "all", "full", NULL},
    {"execution", "torch.compile", "compile", NULL},
    {"execution", "torch_compile", "compile", NULL},
    {"execution", "inductor", "compile", NULL},
    {"execution", "jit", "compile", NULL},
    {"execution", "cudagraphs", "cuda_graph", NULL},
    {"execution", "transformer_engine", "fused", NULL},
    {"execution", "pytorch", "eager", NULL},
    {"trainer", "rlhf", "ppo", NULL},
    {"trainer", "rloo", "grpo", NULL},
    {"trainer", "simpo", "orpo", NULL},
    {"trainer", "pretrain", "sft", NULL},
    {"loss", "liger", "fused_linear", NULL},
    {"loss", "cut_cross_entropy", "fused_linear", NULL},
    {"schedule", "zb_h1", "zero_bubble", NULL},
    {"schedule", "zbh1", "zero_bubble", NULL},
    {"schedule", "interleaved1f1b", "interleaved", NULL},
    {"schedule", "zbvzerobubble", "v_zero_bubble", NULL},
    {"task", "inference", "infer", NULL},
    {"task", "generate", "decode", NULL},
    {"task", "training", "train", NULL},
    {"task", "serving", "serve", NULL},
};

static bool is_among(const char *ours, const char *const *candidates, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(candidates[i], ours)) return true;
    return false;
}

const char *ft__foreign_word(const char *key, const char *said, const char *const *candidates, size_t count,
                             const char **beside)
{
    for (size_t i = 0; i < COUNT(words); i++) {
        if (strcmp(key, words[i].key) || !ft__within(said, strlen(said), words[i].theirs, 0)) continue;
        if (!is_among(words[i].ours, candidates, count)) continue;
        *beside = words[i].beside ? words[i].beside : "";
        return words[i].ours;
    }
    return NULL;
}
