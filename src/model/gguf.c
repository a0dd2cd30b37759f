/* gguf.c: what a file of llama.cpp's stores each kind of weight in.
 *
 * A file is called after what most of it is in. Which tensors get more bits is read from ggml-org/llama.cpp,
 * src/llama-quant.cpp (August 2026): half of the layers' ways down and values of an _M file, the output of attention in
 * those of two and three bits, the head in all but Q8_0. Blocks of 256 weights go into rows of whole blocks: where a
 * row is none, it is stored in blocks of 32 of the next wider kind.
 *
 * Leaves out: values of two and three bits (a fiftieth of a layer, two to four bits more), the fused query, key and
 * value of some architectures, what eight experts and 70 billion parameters are given beyond others, files that are
 * made with an importance matrix or a recipe of their own (unsloth's UD). */
#include "model/workload.h"

enum { LONG_BLOCK = 256 }; /* of weights: QK_K in ggml-common.h */

/* `q4_k_s` is what its tensors are: Q4_K, but for a few. */
static const struct {
    ft_storage file, attention, output, head;
} files[] = {{FT_STORED_Q2_K, FT_STORED_Q2_K, FT_STORED_Q3_K_S, FT_STORED_Q6_K},
             {FT_STORED_Q3_K_S, FT_STORED_Q3_K_S, FT_STORED_Q3_K_S, FT_STORED_Q6_K},
             {FT_STORED_Q3_K_M, FT_STORED_Q3_K_S, FT_STORED_Q4_K_S, FT_STORED_Q6_K},
             {FT_STORED_Q3_K_L, FT_STORED_Q3_K_S, FT_STORED_Q5_K_S, FT_STORED_Q6_K},
             {FT_STORED_Q4_0, FT_STORED_Q4_0, FT_STORED_Q4_0, FT_STORED_Q6_K},
             {FT_STORED_Q4_1, FT_STORED_Q4_1, FT_STORED_Q4_1, FT_STORED_Q6_K},
             {FT_STORED_Q4_K_S, FT_STORED_Q4_K_S, FT_STORED_Q4_K_S, FT_STORED_Q6_K},
             {FT_STORED_Q4_K_M, FT_STORED_Q4_K_S, FT_STORED_Q4_K_S, FT_STORED_Q6_K},
             {FT_STORED_Q5_0, FT_STORED_Q5_0, FT_STORED_Q5_0, FT_STORED_Q6_K},
             {FT_STORED_Q5_1, FT_STORED_Q5_1, FT_STORED_Q5_1, FT_STORED_Q6_K},
             {FT_STORED_Q5_K_S, FT_STORED_Q5_K_S, FT_STORED_Q5_K_S, FT_STORED_Q6_K},
             {FT_STORED_Q5_K_M, FT_STORED_Q5_K_S, FT_STORED_Q5_K_S, FT_STORED_Q6_K},
             {FT_STORED_Q6_K, FT_STORED_Q6_K, FT_STORED_Q6_K, FT_STORED_Q6_K},
             {FT_STORED_Q8_0, FT_STORED_Q8_0, FT_STORED_Q8_0, FT_STORED_Q8_0},
             {FT_STORED_IQ4_XS, FT_STORED_IQ4_XS, FT_STORED_IQ4_XS, FT_STORED_Q6_K},
             {FT_STORED_IQ4_NL, FT_STORED_IQ4_NL, FT_STORED_IQ4_NL, FT_STORED_Q6_K}};
enum { FILES = sizeof files / sizeof *files };

static int file_of(ft_storage stored)
{
    for (int i = 0; i < FILES; i++)
        if (files[i].file == stored) return i;
    return -1;
}

/* In blocks of 32 weights what has blocks of 256. */
static ft_storage in_short_blocks(ft_storage stored)
{
    switch (stored) {
    case FT_STORED_Q2_K:
    case FT_STORED_Q3_K_S:
    case FT_STORED_Q3_K_M:
    case FT_STORED_Q3_K_L: return FT_STORED_Q4_0;
    case FT_STORED_Q4_K_S:
    case FT_STORED_Q4_K_M: return FT_STORED_Q5_0;
    case FT_STORED_Q5_K_S:
    case FT_STORED_Q5_K_M: return FT_STORED_Q5_1;
    case FT_STORED_Q6_K: return FT_STORED_Q8_0;
    case FT_STORED_IQ4_XS: return FT_STORED_IQ4_NL;
    default: return stored;
    }
}

/* A request says int4 and int8 of a file, too: Q4_K_M and Q8_0. In mxfp4 are experts alone, and all else is Q8_0; who
 * comes so (gpt-oss) keeps it in files of any name, as nobody quantises twice. */
void ft__store_as_gguf(ft_workload *w, const ft_arch *a)
{
    const ft_weight_format *own = &a->formats.of[FT_OF_EXPERTS];
    const bool odd = a->hidden % LONG_BLOCK != 0, keeps = own->given && own->stored == FT_STORED_MXFP4;
    /* Values that are a third of what goes into attention; linear attention's queries, keys and values, one tensor. */
    const bool richer = a->kv_heads >= a->heads || a->delta_value_heads > 0;
    for (int c = 0; c < FT_OF_OTHER; c++) {
        ft_weight_format *f = &w->formats.of[c];
        if (!f->given) continue;
        if (f->stored == FT_STORED_INT8) f->stored = FT_STORED_Q8_0;
        if (f->stored == FT_STORED_INT4) f->stored = FT_STORED_Q4_K_M;
        const int file = file_of(f->stored);
        if (f->stored == FT_STORED_MXFP4 && c != FT_OF_EXPERTS) f->stored = FT_STORED_Q8_0;
        if (file < 0) continue;
        if (c == FT_OF_ATTENTION && !richer) f->stored = files[file].attention;
        if (c == FT_OF_OUTPUT) f->stored = files[file].output;
        if (c == FT_OF_HEAD) f->stored = files[file].head;
        if (odd) f->stored = in_short_blocks(f->stored);
        if (c == FT_OF_EXPERTS && keeps) f->stored = FT_STORED_MXFP4;
    }
}
