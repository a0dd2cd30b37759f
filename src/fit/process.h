/* A Gaussian process on the features of a family: what physics and shared trees leave of one GPU's measurements. */
#ifndef FT_FIT_PROCESS_H
#define FT_FIT_PROCESS_H
#include "base/error.h"
#include "kernel/calibration.h"

/* Measured cases: features row by row, what is left of each (log), how much each counts. */
typedef struct ft_process_data {
    const float *x; /* count x width */
    const double *target, *weight;
    size_t count;
    int width;
} ft_process_data;

/* What is fitted before the weights: which features matter and how much, how large strength and noise are. */
typedef struct ft_process_shape {
    int used;
    uint8_t feature[FT_PROCESS_WIDTH];
    double center[FT_PROCESS_WIDTH], scale[FT_PROCESS_WIDTH]; /* of x: (x - center) * scale */
    double strength, noise;                                   /* variances */
} ft_process_shape;

/* Length scales, strength and noise by maximum marginal likelihood on at most `most` of the cases. */
ft_status ft__process_tune(const ft_process_data *data, size_t most, ft_process_shape *out, ft_error *err);

/* The mean of the process: at most `most` of the cases become its points, all of them are fitted. `values` receives
 * ft__process_values() figures, free(); a process of no block where nothing can be learned. */
ft_status ft__process_fit(const ft_process_data *data, const ft_process_shape *shape, size_t most, ft_process *out,
                          float **values, ft_error *err);
#endif
