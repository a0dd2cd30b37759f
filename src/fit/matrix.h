/* Rows as trees see them: keys of features, what the physics left, weights. */
#ifndef FT_FIT_MATRIX_H
#define FT_FIT_MATRIX_H
#include "fit/cell.h"

typedef struct ft_matrix {
    uint32_t *key;          /* count x width, row-major */
    float *target, *weight; /* target: log(measured / modelled) */
    size_t count;
    int width;
} ft_matrix;

ft_status ft__matrix_new(size_t count, int width, ft_matrix *out, ft_error *err);
void ft__matrix_free(ft_matrix *m);
/* Fills line `at` from a measured row under constants `theta`. */
void ft__matrix_set(const ft_cell *cell, const double *theta, uint32_t row_index, ft_matrix *m, size_t at);
void ft__matrix_keys(const ft_cell *cell, const ft_physics *ph, uint32_t *key);
/* Lines of `m` whose fold is not `without` (< 0: all) into `part`, which has room for them; their targets are taken
 * from `target`. */
void ft__matrix_without(const ft_matrix *m, const float *target, const uint8_t *fold, int without, ft_matrix *part);
/* The range of every feature, into the expert. */
void ft__matrix_ranges(const ft_matrix *m, ft_expert *e);

/* Trees for the log of the local error, so that intervals are wide where the expert is unsure (sigma.c): into the
 * expert and *trees (free()). scale[] of every row is by trees that did not see its fold. */
ft_status ft__sigma_fit(const ft_matrix *m, const double *residual, const uint8_t *fold, uint8_t folds, ft_expert *e,
                        ft_tree **trees, double *scale, ft_error *err);
#endif
