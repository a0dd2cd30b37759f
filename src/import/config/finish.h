/* What a table cannot say of an architecture: functions that its file names ("finish": "falcon"), called once the keys
 * are read and before what all share is derived. Private to config/. */
#ifndef FT_IMPORT_CONFIG_FINISH_H
#define FT_IMPORT_CONFIG_FINISH_H
#include "import/config/type.h"

#define FT_FINISHES(X) \
    X(falcon)          \
    X(mpt)             \
    X(gemma)           \
    X(smollm3)         \
    X(exaone4)         \
    X(qwen_moe)        \
    X(qwen3_moe)       \
    X(deepseek)        \
    X(ernie_moe)       \
    X(shared_each)     \
    X(hunyuan_moe)     \
    X(llama4)          \
    X(t5)              \
    X(switch)          \
    X(whisper)         \
    X(vit)             \
    X(clip)            \
    X(resnet)          \
    X(convnext)        \
    X(dit)             \
    X(mamba2)          \
    X(joint)           \
    X(wan)             \
    X(unet)            \
    X(autoencoder)     \
    X(sound)           \
    X(deberta)         \
    X(recurrent_gemma) \
    X(mllama)          \
    X(zamba2)          \
    X(hrm)             \
    X(quadrupled)      \
    X(captions)        \
    X(same_width)      \
    X(equal_stacks)    \
    X(davit)           \
    X(drafts)          \
    X(canvas)          \
    X(bytes)           \
    X(reformer)        \
    X(evolla)          \
    X(pi0)             \
    X(udop)            \
    X(xlstm)           \
    X(codebooks)       \
    X(qwen4)           \
    X(moshi)           \
    X(fast_vlm)        \
    X(second_tower)

typedef ft_status ft_config_finish(const ft_reading *r, ft_arch *a);
#define X(name) ft_config_finish ft__finish_##name;
FT_FINISHES(X)
#undef X

/* Widths given as multiples of the model's: too large a one would be a width of nothing. */
ft_status ft__config_ratio(const ft_reading *r, const ft_arch *a);

/* By name; NULL: there is none, and `*nearest` is the one that may be meant. */
ft_config_finish *ft__finish_find(const char *name, const char **nearest);
#endif
