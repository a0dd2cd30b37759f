/* software.c: what others call it, or what it is built on where we have no file of its own. */
#include "base/software.h"

#include <string.h>

#include "base/text.h"

#define MOST_TYPED 40

/* Of several rows with one name the first whose own is among the candidates counts. */
static const struct {
    const char *typed, *ours;
} names_of[] = {
    {"tensorrt-llm", "trtllm"},
    {"tensorrt", "trtllm"},
    {"trt", "trtllm"},
    {"nim", "trtllm"},
    {"sgl", "sglang"},
    {"nano-vllm", "vllm"},
    {"mini-sglang", "sglang"},
    {"aphrodite", "vllm"},
    {"titan", "torchtitan"},
    {"tune", "torchtune"},
    {"mcore", "megatron"},
    {"megatron-core", "megatron"},
    {"megatron-bridge", "nemo"},
    {"nemotron", "nemo"},
    {"primus", "megatron"},
    {"huggingface", "hf_trainer"},
    {"huggingface", "fsdp"},
    {"hf", "hf_trainer"},
    {"hf", "fsdp"},
    {"transformers", "hf_trainer"},
    {"transformers", "fsdp"},
    {"accelerate", "hf_trainer"},
    {"accelerate", "fsdp"},
    {"axolotl", "hf_trainer"},
    {"llama-factory", "hf_trainer"},
    {"ms-swift", "hf_trainer"},
    {"jax", "maxtext"},
    {"flax", "maxtext"},
    {"tpu", "xla"},
    {"torch", "pytorch"},
    {"torch", "ddp"},
    {"lightning", "pytorch"},
    {"nanogpt", "pytorch"},
    {"eager", "pytorch"},
    {"composer", "llm_foundry"},
    {"mosaicml", "llm_foundry"},
    {"zero", "deepspeed"},
    {"lora", "peft"},
    {"qlora", "peft"},
};
enum { TYPED = sizeof names_of / sizeof *names_of };
_Static_assert(sizeof names_of / sizeof *names_of <= MOST_TYPED, "room for every name");

static const char *among(const char *ours, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], ours)) return names[i];
    return NULL;
}

const char *ft__nearest_software(const char *wanted, const char *const *names, size_t count)
{
    const char *typed[MOST_TYPED], *found;
    size_t usable = 0;
    for (size_t i = 0; i < TYPED; i++) {
        if (!(found = among(names_of[i].ours, names, count))) continue;
        if (ft__within(wanted, strlen(wanted), names_of[i].typed, 0)) return found;
        typed[usable++] = names_of[i].typed;
    }
    const char *nearest = ft__nearest(wanted, names, count);
    const char *other = nearest ? NULL : ft__nearest(wanted, typed, usable);
    for (size_t i = 0; other && i < TYPED; i++)
        if (names_of[i].typed == other && (found = among(names_of[i].ours, names, count))) return found;
    return nearest;
}
