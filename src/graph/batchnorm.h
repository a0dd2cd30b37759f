/* Batch norm of images: which kernels run, and how their thread blocks walk (graph/manner.h). One place for built
 * graphs, their gradients and recorded calls. */
#ifndef FT_GRAPH_BATCHNORM_H
#define FT_GRAPH_BATCHNORM_H
#include <stdbool.h>

#include "graph/graph.h"

typedef struct ft_pictures {
    double images, channels, pixels; /* pixels of one image */
    bool last;                       /* channels last */
} ft_pictures;

typedef struct ft_walking {
    ft_walk walk;
    double trips, blocks;
} ft_walking;

/* cuDNN computes it, moments and result by one kernel: PyTorch's choice for training in fp32, and in fp16 where weights
 * are fp32 (aten/src/ATen/native/Normalization.cpp, _select_batch_norm_backend). bf16 and weights of 16 bits stay with
 * PyTorch's own kernels, one for the moments and one for the result. */
static inline bool ft__batchnorm_by_library(ft_dtype picture, double weight_bytes)
{
    return picture == FT_FP32 || picture == FT_TF32 || (picture == FT_FP16 && weight_bytes >= 4);
}

/* A group norm's result or gradient (groupnorm.c), which goes by the same verb. */
bool ft__is_groupnorm(const ft_node *n);

/* A tensor of [images * channels, pixels], or of [images * pixels, channels]. */
ft_pictures ft__pictures_of(const ft_tensor *x, int64_t channels);
ft_walking ft__batchnorm_moments(const ft_pictures *x);
ft_walking ft__batchnorm_result(const ft_pictures *x, bool low); /* moments are given */
ft_walking ft__batchnorm_both(const ft_pictures *x, bool low);   /* cuDNN's */
ft_walking ft__batchnorm_gradient(const ft_pictures *x, bool low, bool library);
#endif
