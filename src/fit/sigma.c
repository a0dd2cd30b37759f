/* The local scale of errors: trees for the log of what the forest left of rows that it had not seen.
 *
 * Quantiles of errors over these scales become intervals (spread.c). Scales are then those of rows to come, so that
 * each row's is by trees that were fitted to the other folds: trees that saw a row's own error call a large one likely,
 * and quantiles of what is left fall short of rows that nobody saw. The expert keeps trees that saw all of them. */
#include <math.h>
#include <stdlib.h>

#include "fit/learning_constants.h"
#include "fit/matrix.h"

static ft_boost_options options(size_t rows)
{
    const struct ft__k_learning_sigma_boost *k = &ft__k_learning_sigma_boost;
    return (ft_boost_options){.trees = rows < FT_K_LEARNING_SIGMA_ROWS ? 0 : k->trees,
                              .depth = k->depth,
                              .rate = k->rate,
                              .ridge = k->ridge,
                              .clip = k->clip,
                              .rows = k->rows,
                              .features = k->features};
}

static ft_status boost(const ft_matrix *m, const ft_boost_options *o, double *base, ft_tree *trees, ft_error *err)
{
    return ft__boost(&(ft_boost_data){m->key, m->count, m->width, m->target, m->weight}, o, base, trees, err);
}

static ft_status scales_apart(const ft_matrix *m, const float *target, const uint8_t *fold, uint8_t folds,
                              const ft_boost_options *o, ft_tree *trees, double *scale, ft_error *err)
{
    ft_matrix part;
    size_t width = (size_t)m->width;
    ft_status s = ft__matrix_new(m->count, m->width, &part, err);
    if (s != FT_OK) return s;
    for (uint8_t k = 0; k < folds && s == FT_OK; k++) {
        double base;
        ft__matrix_without(m, target, fold, k, &part);
        s = boost(&part, o, &base, trees, err);
        for (size_t i = 0; i < m->count && s == FT_OK; i++)
            if (fold[i] == k) scale[i] = exp(base + ft__trees_sum(trees, (size_t)o->trees, m->key + i * width));
    }
    ft__matrix_free(&part);
    return s;
}

ft_status ft__sigma_fit(const ft_matrix *m, const double *residual, const uint8_t *fold, uint8_t folds, ft_expert *e,
                        ft_tree **trees, double *scale, ft_error *err)
{
    ft_boost_options o = options(m->count);
    float *target = malloc((m->count + 1) * sizeof *target);
    *trees = malloc((size_t)(o.trees + 1) * sizeof **trees);
    ft_status s = target && *trees ? FT_OK : ft__no_memory(err);
    double base = 0;
    for (size_t i = 0; i < m->count && s == FT_OK; i++)
        target[i] = (float)log(fabs(residual[i]) + FT_K_LEARNING_SIGMA_FLOOR);
    if (s == FT_OK) s = scales_apart(m, target, fold, folds, &o, *trees, scale, err);
    ft_matrix all = *m;
    all.target = target;
    if (s == FT_OK) s = boost(&all, &o, &base, *trees, err);
    free(target);
    FT_TRY(s);
    e->sigma_count = ft__boost_used(*trees, o.trees);
    e->sigma_base = (float)base;
    return FT_OK;
}
