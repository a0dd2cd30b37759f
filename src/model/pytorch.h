/* What PyTorch's versions change of a step: traits by the version from which on they hold.
 *
 * The table is data/software/pytorch.json, compiled in by scripts/embed_pytorch.py; every change has its source there.
 * A request that names no version means the one that was measured, today's. */
#ifndef FT_MODEL_PYTORCH_H
#define FT_MODEL_PYTORCH_H
#include "model/parts.h"
#include "model/workload.h"

/* Whose kernels scaled_dot_product_attention has: none before 2.0, FlashAttention's first generation, its second. */
typedef enum ft_sdpa_kernels { FT_SDPA_NONE, FT_SDPA_FIRST, FT_SDPA_SECOND } ft_sdpa_kernels;
/* Whether it asks cuDNN first where that is preferred, and which: of that time, or the one that was measured. */
typedef enum ft_sdpa_cudnn { FT_SDPA_CUDNN_NO, FT_SDPA_CUDNN_EARLIER, FT_SDPA_CUDNN_TODAY } ft_sdpa_cudnn;
/* AOTriton's kernels on AMD's GPUs: none, those without masks, those of 2.5, or what was measured. */
typedef enum ft_sdpa_rocm {
    FT_SDPA_ROCM_NONE,
    FT_SDPA_ROCM_FIRST,
    FT_SDPA_ROCM_SECOND,
    FT_SDPA_ROCM_TODAY
} ft_sdpa_rocm;
/* What TorchScript makes one kernel of: pointwise operators (NNC), reductions too (nvFuser). */
typedef enum ft_script_joins { FT_SCRIPT_JOINS_POINTWISE, FT_SCRIPT_JOINS_REDUCTIONS } ft_script_joins;

typedef struct ft_pytorch {
    int since;            /* 20501: 2.5.1 */
    bool compiles;        /* torch.compile */
    bool tf32_products;   /* fp32 products are TF32's on GPUs that have it */
    ft_sdpa_kernels sdpa; /* scaled_dot_product_attention: whose kernels */
    bool sdpa_masks;      /* its memory-efficient ones take masks */
    bool sdpa_dropout;    /* and dropout */
    bool sdpa_training;   /* in training they come first unless sequences are long */
    bool sdpa_groups;     /* grouped keys and values as they are */
    bool sdpa_wide;       /* its fallback computes in fp32 whatever comes in */
    bool library_experts; /* transformers of its time computes experts together; before, Python ran one by one */
    bool library_biases;  /* transformers of its time leaves T5's attention to it; before, its own code wrote it out */
    ft_sdpa_cudnn sdpa_cudnn;
    ft_sdpa_rocm sdpa_rocm;
    bool rocm_tuned;         /* its own kernels are made for AMD's GPUs too */
    bool rocm_channels_last; /* on AMD's GPUs pictures are convolved as they lie, not channels first */
    bool lists;              /* updates and clipping go over lists of tensors; else one tensor after the other */
    bool drops_gradients;    /* between steps; else they are set to zero, and what comes is added to that */
    bool expands_segments;   /* the allocator can */
    ft_script_joins script_joins;
} ft_pytorch;

extern const size_t ft__pytorch_count, ft__pytorch_release_count;
extern const ft_pytorch ft__pytorches[];
extern const char *const ft__pytorch_releases[]; /* "1.7" to the last one, rising */

/* "2.1", "2.1.2", "2.5.1+cu124", "2.2.0.dev20231010". `newer`: beyond the last known one, which is meant by it. */
ft_status ft__pytorch_find(const char *version, const ft_pytorch **out, bool *newer, ft_error *err);

/* Whether it is PyTorch that issues this step's operators, not hand-fused layers, a serving engine or another
 * framework. */
bool ft__pytorch_decides(const ft_workload *w);
/* The version of it; NULL where none is named, or where it does not decide. */
const ft_pytorch *ft__pytorch(const ft_workload *w);

/* Whether the library of its time runs a decoder's experts in a Python loop, each with tensors of its own. */
bool ft__experts_by_hand(const ft_workload *w);

/* Whether gradients stay from step to step, so that they are set to zero and every one is added to what is there. */
bool ft__keeps_gradients(const ft_workload *w);

/* What a GPU lets scaled_dot_product_attention do: bits of ft_workload.sdpa_gpu. */
enum {
    FT_SDPA_GPU_FLASH = 1, /* FlashAttention runs on it */
    FT_SDPA_GPU_ROOM = 2,  /* with room in shared memory to train wide heads by its first generation */
    FT_SDPA_GPU_CUDNN = 4, /* cuDNN's kernels are preferred on it where the version prefers any */
    FT_SDPA_GPU_ROCM = 8   /* AOTriton's run on it, none of the others */
};
typedef enum ft_sdpa_way { FT_SDPA_AS_TODAY, FT_SDPA_BY_LIBRARY, FT_SDPA_WRITTEN_OUT } ft_sdpa_way;
/* What the named version picks for these scores. */
ft_sdpa_way ft__sdpa_pick(const ft_workload *w, const ft_attention_shape *a, bool masked, double dropout,
                          ft_attention_library *library);
/* Whether grouped keys and values are copied for every query head before attention. */
bool ft__sdpa_copies_groups(const ft_workload *w);
/* Whether pictures channels last lie channels first from their first convolution on. */
bool ft__turns_pictures(const ft_workload *w);
/* What TorchScript joins: by the stack, else by the version, else as today. */
ft_script_joins ft__script_joins(const ft_workload *w);
#endif
