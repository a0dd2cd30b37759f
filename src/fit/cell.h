/* A cell is what is fitted together: one variant of one family, over all its GPUs. */
#ifndef FT_FIT_CELL_H
#define FT_FIT_CELL_H
#include "fit/boost.h"
#include "fit/constants.h"
#include "fit/fit.h"
#include "fit/measurements.h"

/* One GPU inside a cell: its rows, its expert, and what cross-validation showed. */
typedef struct ft_cell_gpu {
    int gpu;         /* index into ft_rows.gpus */
    uint32_t *index; /* rows to fit, in file order, at most FT_CELL_MAX_ROWS */
    size_t count;
    size_t tables;   /* the first of them: rows of tables */
    size_t forest;   /* and those that only teach: what one forest learns; the rest are of models */
    bool bare;       /* has rows whose low-precision operands arrived quantised */
    bool eager;      /* has rows that are eager calls */
    bool older;      /* has rows of kernels that today's software no longer has */
    bool timed;      /* has rows that are device time */
    bool calibrated; /* has points of a calibration */
    bool drawn;      /* has drawn products beside its tables */
    ft_expert expert;
    ft_tree *trees, *sigma; /* expert.tree_count and expert.sigma_count of them */
    ft_accuracy known;
} ft_cell_gpu;

typedef struct ft_cell {
    const ft_family *family;
    int variant;
    const ft_rows *rows;
    ft_cell_gpu *gpus;
    int gpu_count;
    ft_expert world;
    ft_tree *world_trees;
    ft_accuracy *lines; /* sibling and unseen accuracies */
    size_t line_count;
    ft_status status;
    ft_error error;
} ft_cell;

enum { FT_CELL_MAX_ROWS = 40000 };

/* The stages, each independent between cells (and between GPUs for ft__cell_fit_gpu). */
ft_status ft__cell_weigh(ft_cell *cell, ft_rows *rows, ft_error *err);
ft_status ft__cell_fit_world(ft_cell *cell, ft_error *err);
ft_status ft__cell_fit_gpu(ft_cell *cell, ft_cell_gpu *gpu, ft_error *err);
ft_status ft__cell_fit_kin(ft_cell *cell, bool report, ft_error *err);
void ft__cell_free(ft_cell *cell);
/* Those of one shard of several, the first of which is 1; no shards: all stay (shard.c). */
ft_status ft__cells_keep(ft_cell *cells, size_t *count, int64_t shard, int64_t shards, ft_error *err);

/* Its rows that other GPUs learn from, and are tried on: layers that were profiled in networks are among them, points
 * of a calibration and rows that are read twice are not. */
ft_cell_gpu ft__cell_lent(const ft_cell *cell, const ft_cell_gpu *gpu);
/* About `wanted` rows of a GPU, picked by hash so that they do not follow the order of the file; `out` has room for
 * twice as many. */
size_t ft__cell_sample(const ft_rows *rows, const ft_cell_gpu *gpu, size_t wanted, uint32_t *out);
/* Constants over the GPUs in `use`, each counting the same however many rows it has. */
ft_status ft__cell_constants(const ft_cell *cell, const bool *use, const double *center, size_t rows_each,
                             int iterations, double *theta, ft_error *err);

/* Accuracy of forecasts: adds rows, then fills the line. residual = log(measured / forecast). */
typedef struct ft_errors {
    double *residual, *low, *high; /* low, high: log offsets of the interval, both positive */
    size_t count, room;
} ft_errors;
bool ft__errors_add(ft_errors *e, double residual, double low, double high);
bool ft__errors_summary(const ft_errors *e, ft_accuracy *out); /* false: out of memory */
void ft__errors_free(ft_errors *e);

/* Quantiles of normalised residuals, one side each, at ft__quantile_levels; `count` residuals, scaled by `inflate`. */
bool ft__spreads(const double *z, size_t count, double inflate, float *low, float *high);
#endif
