/* kernel_name.c: what a kernel's name gives away. */
#include <string.h>

#include "trace/aten.h"

static bool has(const char *kernel, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(kernel, words[i])) return true;
    return false;
}
#define HAS(kernel, words) has(kernel, words, sizeof(words) / sizeof *(words))

/* cuBLAS names the instruction (s1688, s16816, hmma, gmma; s884 of Volta), CUTLASS "tensorop" against "simt", cuDNN
 * "wgmma" or the instruction, rocBLAS and hipBLASLt "MFMA" or "MI" tiles, Triton nothing. FlashAttention has no other
 * form; neither has memory-efficient attention on 16-bit inputs. */
bool ft__kernel_on_tensor_cores(const char *kernel)
{
    static const char *const no[] = {"simt", "ffma", "sgemm_", "dgemm_", "f32f32_f32f32_f32"};
    static const char *const yes[] = {"tensorop",
                                      "nvjet",
                                      "s1688",
                                      "s16816",
                                      "s884",
                                      "hmma",
                                      "imma",
                                      "gmma",
                                      "h884",
                                      "h1688",
                                      "h16816",
                                      "i16832",
                                      "flash",
                                      "tf32f32",
                                      "bf16bf16",
                                      "f16f16",
                                      "e4m3",
                                      "MFMA",
                                      "mfma",
                                      "_MI16x16x",
                                      "_MI32x32x",
                                      "fmha_cutlassF_f16",
                                      "fmha_cutlassF_bf16",
                                      "fmha_cutlassB_f16",
                                      "fmha_cutlassB_bf16",
                                      "_tem_fused",
                                      "FlashAttn",
                                      "fmha_v"};
    if (HAS(kernel, no)) return false;
    return HAS(kernel, yes);
}

bool ft__kernel_is_product(const char *kernel)
{
    static const char *const words[] = {"gemm",   "Gemm",         "GEMM",      "nvjet",     "cutlass", "wgrad",
                                        "dgrad",  "fprop",        "flash",     "fmha",      "Cijk_",   "igemm",
                                        "conv2d", "implicit_con", "attention", "_tem_fused"};
    static const char *const no[] = {"splitKreduce", "nchwToNhwc", "nhwcToNchw", "reduce_kernel"};
    return HAS(kernel, words) && !HAS(kernel, no);
}

ft_dtype ft__kernel_dtype(const char *kernel, ft_dtype otherwise)
{
    /* Behind the functor's name stands the format of the list: FusedAdamMathFunctor<c10::BFloat16, 4, ...> */
    static const char *const functors[] = {"MathFunctor<",
                                           "OpFunctor<",
                                           "OpScalarFunctor<",
                                           "OpListFunctor<",
                                           "OpListAlphaFunctor<",
                                           "OpScalarTensorFunctor<",
                                           "ScalarFunctor<",
                                           "NormFunctor<",
                                           "ScalarListFunctor<",
                                           "CopyFunctor<",
                                           "Functor<"};
    if (!kernel) return otherwise;
    for (size_t i = 0; i < sizeof functors / sizeof *functors; i++) {
        const char *at = strstr(kernel, functors[i]);
        if (!at) continue;
        at += strlen(functors[i]);
        if (!strncmp(at, "c10::BFloat16", 13)) return FT_BF16;
        if (!strncmp(at, "c10::Half", 9)) return FT_FP16;
        if (!strncmp(at, "float", 5)) return FT_FP32;
        if (!strncmp(at, "double", 6)) return FT_FP64;
    }
    return otherwise;
}
