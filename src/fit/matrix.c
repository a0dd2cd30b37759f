/* The matrix of features and residuals. */
#include "fit/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    *out = (ft_matrix){0}; /* nothing to free a second time */
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

void ft__matrix_without(const ft_matrix *m, const float *target, const uint8_t *fold, int without, ft_matrix *part)
{
    size_t width = (size_t)m->width;
    part->count = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (without >= 0 && fold[i] == without) continue;
        size_t at = part->count++;
        memcpy(part->key + at * width, m->key + i * width, width * sizeof *m->key);
        part->target[at] = target[i];
        part->weight[at] = m->weight[i];
    }
}
