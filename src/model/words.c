/* words.c: what requests and stacks call kinds of attention, execution and loss. */
#include "model/workload.h"

const char *const ft__attention_words[FT_ATTENTION_KINDS] = {
    [FT_FLASH] = "flash",   [FT_EAGER] = "eager",       [FT_SDPA] = "sdpa",
    [FT_FLASH1] = "flash1", [FT_FLASH2] = "flash2",     [FT_FLASH3] = "flash3",
    [FT_CUDNN] = "cudnn",   [FT_XFORMERS] = "xformers", [FT_TRITON] = "triton"};

ft_attention_library ft__attention_library(ft_attention_kind k)
{
    static const ft_attention_library of[FT_ATTENTION_KINDS] = {
        [FT_FLASH] = FT_LIBRARY_FLASH,   [FT_FLASH1] = FT_LIBRARY_FLASH1, [FT_FLASH2] = FT_LIBRARY_FLASH2,
        [FT_FLASH3] = FT_LIBRARY_FLASH3, [FT_CUDNN] = FT_LIBRARY_CUDNN,   [FT_XFORMERS] = FT_LIBRARY_XFORMERS,
        [FT_TRITON] = FT_LIBRARY_TRITON};
    return (unsigned)k < FT_ATTENTION_KINDS ? of[k] : FT_LIBRARY_OPEN;
}
const char *const ft__execution_words[FT_RUN_COUNT] = {
    [FT_RUN_EAGER] = "eager",           [FT_RUN_FUSED] = "fused", [FT_RUN_COMPILE] = "compile",
    [FT_RUN_CUDA_GRAPH] = "cuda_graph", [FT_RUN_IDEAL] = "ideal", [FT_RUN_TORCHSCRIPT] = "torchscript"};
const char *const ft__entropy_words[FT_ENTROPY_COUNT] = {
    [FT_ENTROPY_OF_MODEL] = "model",  [FT_ENTROPY_UPCAST] = "upcast", [FT_ENTROPY_NARROW] = "narrow",
    [FT_ENTROPY_CHUNKED] = "chunked", [FT_ENTROPY_FUSED] = "fused",   [FT_ENTROPY_FUSED_LINEAR] = "fused_linear"};
