/* The input pipeline: samples are read, prepared by workers, copied to the GPU, while the step before them computes.
 *
 * With workers the stages overlap and the slowest sets the pace: step = max(compute, read, prepare). Without (PyTorch's
 * num_workers = 0) the training process does it all itself, one after the other. A copy from pageable memory holds the
 * process up; one from pinned memory runs beside the kernels. */
#ifndef FT_EXPLAIN_LOADER_H
#define FT_EXPLAIN_LOADER_H
#include "timeline/step.h"

typedef struct ft_loader {
    bool given;                /* else nothing below counts: samples are there when they are needed */
    double samples_per_s_disk; /* what storage delivers to one GPU, as it is laid out now; 0: more than enough */
    double disk_gbps;          /* what it would deliver read in a row, as packed shards are; 0: unknown */
    double sample_bytes;       /* one sample on its way to the GPU; 0: unknown, the copy is free */
    double worker_ms;          /* a worker's time for one sample: decoding, augmentation, tokens */
    int64_t workers;           /* processes beside the training one */
    bool pageable;             /* the batch is not pinned */
} ft_loader;

typedef enum ft_loading_stage { FT_LOADS_IN_TIME, FT_LOADS_DISK, FT_LOADS_WORKERS, FT_LOADS_COPY } ft_loading_stage;

typedef struct ft_loading {
    double read_ms, prepare_ms, copy_ms; /* of one step's samples */
    double compute_ms;                   /* the step if samples were there */
    double wait_ms;                      /* what loading adds to it */
    ft_loading_stage stage;              /* that sets the pace, or adds most */
} ft_loading;

/* `samples`: of one step on one GPU. The copy goes over the device's PCIe. */
ft_loading ft__loader_time(const ft_loader *l, const ft_device *device, double samples, double compute_ms);
/* Makes the step as long as its input takes: times, interval, rates and shares. */
void ft__loader_apply(const ft_loader *l, const ft_device *device, double samples, ft_step *step, ft_loading *out);
/* The fewest workers that keep up with `compute_ms`; at least 1. */
int64_t ft__loader_workers(const ft_loader *l, double samples, double compute_ms);
#endif
