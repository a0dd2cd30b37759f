/* What rows from inside models teach beyond tables of single operators. */
#ifndef FT_FIT_IN_MODEL_H
#define FT_FIT_IN_MODEL_H
#include "fit/matrix.h"

enum { FT_MODEL_TREES = 81 };

/* Lines `first` and on of `m` are rows of models, judged by `base` and the g->expert.tree_count trees of `g` that were
 * fitted to the lines before. Appends trees to g->trees (which has room for FT_MODEL_TREES more) that speak to device
 * time alone, and leaves in residual[first...] what such trees leave of rows whose fold they did not see. */
ft_status ft__in_model(const ft_cell *cell, ft_cell_gpu *g, const ft_matrix *m, size_t first, double base,
                       const uint8_t *fold, uint8_t folds, double *residual, ft_error *err);
/* The position of the feature that tells device time from an eager call; -1: the family has none. */
int ft__in_model_feature(const ft_family *family);
#endif
