/* Measurements in, predictor out; and predictor against measurements. */
#ifndef FT_FIT_FIT_H
#define FT_FIT_FIT_H
#include "base/error.h"
#include "kernel/predictor.h"

typedef void (*ft_progress)(void *context, const char *stage, double done); /* done: 0..1 of the whole */

typedef struct ft_fit_options {
    const char *const *data; /* folders with any of h200/ neusight/ silicon/; a row in two counts once */
    size_t data_count;
    const char *const *exclude_gpus; /* catalogue names */
    size_t exclude_count;
    const char *const *families; /* none: all */
    size_t family_count;
    bool cross_validate;   /* also leave each GPU out, and each generation */
    int64_t shard, shards; /* only every `shards`-th kind of kernel, counted from `shard` - 1; 0 of them: all */
    int threads;           /* 0: one per core; the result does not depend on it */
    ft_progress progress;
    void *progress_context;
} ft_fit_options;

/* One line of an accuracy table. Errors are fractions. */
typedef struct ft_accuracy {
    char family[24], variant[24], gpu[48];
    char kind[16]; /* "known" (rows held out), "sibling", "unseen" (generation left out), "all" */
    size_t rows;
    size_t left_out;                        /* of them: rows that no fit uses (validation alone) */
    double left_out_mean;                   /* absolute error of those alone */
    double mean, median, p90, bias, inside; /* inside: share of the truth in low..high */
} ft_accuracy;

typedef struct ft_accuracy_table {
    ft_accuracy *lines;
    size_t count;
} ft_accuracy_table;
void ft__accuracy_free(ft_accuracy_table *t);

/* Fits everything in `options->data` and hands back the file's bytes (free()). Same data, same bytes. */
ft_status ft__fit(const ft_fit_options *options, void **file, size_t *length, ft_accuracy_table *accuracy,
                  ft_error *err);

typedef struct ft_validate_options {
    const char *data;
    const char *const *gpus; /* none: all */
    size_t gpu_count;
    const char *const *families;
    size_t family_count;
    bool held_out_only; /* rows the shipped predictor was not fitted to */
    double quantile;
    int threads;
    /* called for every measured case, in file order; NULL for none */
    void (*each)(void *context, const char *family, const char *variant, const ft_device *device, const ft_op *op,
                 double measured_ms, const ft_forecast *forecast);
    void *each_context;
    ft_progress progress;
    void *progress_context;
} ft_validate_options;

/* The GPU on which this project measured kernels and whole models. */
const char *ft__measured_gpu(void);

ft_status ft__validate(const ft_predictor *predictor, const ft_validate_options *options, ft_accuracy_table *accuracy,
                       ft_error *err);
#endif
