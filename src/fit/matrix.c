/* The matrix of features and residuals. */
#include "fit/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/learning_constants.h"

void ft__matrix_free(ft_matrix *m) { free(m->key), free(m->target), free(m->weight); }

ft_status ft__matrix_new(size_t count, int width, ft_matrix *out, ft_error *err)
{
    out->key = malloc((count + 1) * (size_t)width * sizeof(uint32_t));
    out->target = malloc((count + 1) * sizeof(float));
    out->weight = malloc((count + 1) * sizeof(float));
    out->count = count;
    out->width = width;
    if (out->key && out->target && out->weight) return FT_OK;
    ft__matrix_free(out);
    return ft__fail(err, FT_E_MEMORY, "out of memory for %zu rows of features", count);
}

void ft__matrix_keys(const ft_cell *cell, const ft_physics *ph, uint32_t *key)
{
    for (int f = 0; f < cell->family->feature_count; f++) key[f] = ft__feature_key(ph->feature[f]);
}

static float from_key(uint32_t key)
{
    uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void ft__matrix_ranges(const ft_matrix *m, ft_expert *e)
{
    for (int f = 0; f < m->width; f++) {
        uint32_t low = UINT32_MAX, high = 0;
        for (size_t i = 0; i < m->count; i++) {
            uint32_t key = m->key[i * (size_t)m->width + (size_t)f];
            low = key < low ? key : low;
            high = key > high ? key : high;
        }
        e->feature_low[f] = m->count ? from_key(low) : 0;
        e->feature_high[f] = m->count ? from_key(high) : 0;
    }
}

void ft__matrix_set(const ft_cell *cell, const double *theta, uint32_t row_index, ft_matrix *m, size_t at)
{
    const ft_row *row = &cell->rows->at[row_index];
    ft_physics ph;
    double ms = ft__row_model_ms(cell->family, cell->rows, row, theta, true, &ph);
    ft__matrix_keys(cell, &ph, m->key + at * (size_t)m->width);
    m->target[at] = (float)log(row->ms / ms);
    m->weight[at] = row->weight;
}

ft_status ft__sigma_fit(const ft_matrix *m, const double *residual, ft_expert *e, ft_tree **trees, double *scale,
                        ft_error *err)
{
    const struct ft__k_learning_sigma_boost *k = &ft__k_learning_sigma_boost;
    ft_boost_options o = {.trees = m->count < FT_K_LEARNING_SIGMA_ROWS ? 0 : k->trees,
                          .depth = k->depth,
                          .rate = k->rate,
                          .ridge = k->ridge,
                          .clip = k->clip,
                          .rows = k->rows,
                          .features = k->features};
    float *target = malloc((m->count + 1) * sizeof *target);
    *trees = malloc((size_t)(o.trees + 1) * sizeof **trees);
    if (!target || !*trees) {
        free(target);
        return ft__no_memory(err);
    }
    for (size_t i = 0; i < m->count; i++) target[i] = (float)log(fabs(residual[i]) + FT_K_LEARNING_SIGMA_FLOOR);
    double base;
    ft_status s = ft__boost(&(ft_boost_data){m->key, m->count, m->width, target, m->weight}, &o, &base, *trees, err);
    free(target);
    FT_TRY(s);
    e->sigma_count = ft__boost_used(*trees, o.trees);
    e->sigma_base = (float)base;
    for (size_t i = 0; i < m->count; i++)
        scale[i] = exp(base + ft__trees_sum(*trees, (size_t)o.trees, m->key + i * (size_t)m->width));
    return FT_OK;
}
