/* Measured rows: an operator, the GPU it ran on, what it took. */
#ifndef FT_FIT_MEASUREMENTS_H
#define FT_FIT_MEASUREMENTS_H
#include <stdint.h>

#include "base/error.h"
#include "base/table.h"
#include "foretell.h"

enum { FT_MAX_MEASURED_GPUS = 64 };

typedef struct ft_row {
    ft_op op;
    double ms;
    float weight;
    uint16_t gpu;    /* index into ft_rows.gpus */
    uint8_t source;  /* ft_row_source */
    bool held_out;   /* never fitted: kept for validation */
    bool older;      /* taken with kernels that today's software no longer has */
    bool excluded;   /* left out of fits by a rule (fit/exclude.h), judged like any other */
    uint32_t number; /* among its family's rows: what is drawn of them does not depend on what else is read */
    uint32_t group;  /* rows of one group are held out together in cross-validation: (n, k) of a GEMM ... */
} ft_row;

/* Whose times: graphs of our own, other people's calls, engines' tables, operators inside models; and four that
 * teach and judge nobody: kernels that the profiler timed while others ran, points of a calibration, rows of engines
 * once more, for requests that say less than their table, and drawn products that the profiler timed, corrected. */
typedef enum ft_row_source {
    FT_ROWS_OWN,
    FT_ROWS_EAGER,
    FT_ROWS_ENGINE,
    FT_ROWS_MODEL,
    FT_ROWS_PROFILED,
    FT_ROWS_POINTS,
    FT_ROWS_UNSAID,
    FT_ROWS_DRAWN
} ft_row_source;

typedef struct ft_rows {
    ft_row *at;
    size_t count, room;
    ft_device gpus[FT_MAX_MEASURED_GPUS];
    int gpu_count;
} ft_rows;

typedef struct ft_row_filter {
    const char *const *exclude_gpus;
    size_t exclude_count;
    const char *const *only_gpus; /* none: all */
    size_t only_count;
    bool (*wanted)(void *context, const ft_op *op); /* NULL: every family */
    void *wanted_context;
    bool to_fit; /* rows that no fit uses are dropped */
} ft_row_filter;

/* Everything below the folders that has a known form (h200/ neusight/ silicon/); at least one row or an error. Of our
 * own rows, one that stands in several folders is taken once. */
ft_status ft__rows_load(const char *const *folders, size_t count, const ft_row_filter *filter, ft_rows *out,
                        ft_error *err);
void ft__rows_free(ft_rows *rows);

/* For the readers, one per form. An operator or a GPU that cannot be is an error at the table's current line. */
ft_status ft__rows_add(ft_rows *rows, const ft_row_filter *filter, const char *gpu, ft_row *row, const ft_table *table,
                       ft_error *err);
/* A row's GPU, kept in `last`, which begins empty: tables have thousands of rows of one, and reading a sheet takes as
 * long as reading dozens of rows. */
ft_status ft__row_device(const char *gpu, ft_device *last, ft_error *err);
/* A size in the current row: a whole number from 0 to 2^40, so that sums and small multiples never overflow. */
ft_status ft__row_size(const ft_table *table, const char *column, int64_t *out, ft_error *err);
bool ft__rows_gpu_wanted(const ft_row_filter *filter, const char *gpu);
uint32_t ft__group3(int64_t a, int64_t b, int64_t c); /* hash of up to three sizes */
ft_status ft__read_own(const char *folder, const char *gpu, const ft_row_filter *filter, ft_rows *rows, ft_error *err);
ft_status ft__read_neusight(const char *folder, const ft_row_filter *filter, ft_rows *rows, ft_error *err);
/* Operators inside whole models, from the same folder. */
ft_status ft__read_in_models(const char *folder, const ft_row_filter *filter, ft_rows *rows, ft_error *err);
/* Our name for a GPU of other people's tables ("neusight", "silicon"); NULL: they call it something else. */
const char *ft__their_gpu(const char *table, const char *theirs);
/* The folders of our own measurements with their GPUs, in turn; NULL behind the last. */
const char *ft__own_folder(int index, const char **gpu);
ft_status ft__read_silicon(const char *folder, const ft_row_filter *filter, ft_rows *rows, ft_error *err);
ft_status ft__read_collective(const char *folder, const ft_row_filter *filter, ft_rows *rows, ft_error *err);
#endif
