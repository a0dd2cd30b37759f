/* in_model.c: trees for device time on GPUs whose tables hold eager calls.
 *
 * Tables of thousands of single calls and some sixty rows from inside models disagree: clocks, the state of the cache,
 * sizes. Trees fitted to both would bend the forecasts of calls towards the models. So the models' rows get trees of
 * their own on what the others leave, with the last of a tree's six tests asking whether device time is wanted. */
#include "fit/in_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/learning_constants.h"

int ft__in_model_feature(const ft_family *family)
{
    for (int f = 0; f < family->feature_count; f++)
        if (!strcmp(family->feature_names[f], "device_timed")) return f;
    return -1;
}

static ft_boost_options options(void)
{
    const struct ft__k_learning_model_boost *k = &ft__k_learning_model_boost;
    return (ft_boost_options){.trees = FT_MODEL_TREES - 1,
                              .depth = k->depth,
                              .rate = k->rate,
                              .ridge = k->ridge,
                              .clip = k->clip,
                              .rows = k->rows,
                              .features = k->features};
}

/* `trees` count only where the feature is set; the constant in front becomes a tree of its own. */
static void only_where(int feature, double base, ft_tree *trees)
{
    uint32_t half = ft__feature_key(0.5f);
    ft_tree *front = &trees[FT_MODEL_TREES - 1];
    memset(front, 0, sizeof *front);
    for (int l = 0; l < FT_TREE_DEPTH; l++) front->threshold[l] = UINT32_MAX;
    double units = base / FT_LEAF_UNIT;
    while (front->shift < FT_LEAF_SHIFT_MAX && fabs(units) > INT8_MAX * (double)(1u << front->shift)) front->shift++;
    front->leaf[0] = (int8_t)lrint(fmax(-127, fmin(127, units / (double)(1u << front->shift))));
    for (int t = 0; t < FT_MODEL_TREES; t++) {
        trees[t].feature[FT_TREE_DEPTH - 1] = (uint8_t)feature;
        trees[t].threshold[FT_TREE_DEPTH - 1] = half;
        for (int l = 0; l < FT_TREE_LEAVES; l += 2) {
            trees[t].leaf[l + 1] = trees[t].leaf[l];
            trees[t].leaf[l] = 0;
        }
    }
}

/* Boosting on the lines whose fold is another (`without` < 0: on all). */
static ft_status boost(const ft_matrix *part, const float *target, const uint8_t *fold, int without, int feature,
                       ft_tree *trees, ft_error *err)
{
    ft_matrix some;
    ft_boost_options o = options();
    FT_TRY(ft__matrix_new(part->count, part->width, &some, err));
    ft__matrix_without(part, target, fold, without, &some);
    double base;
    ft_status s = ft__boost(&(ft_boost_data){some.key, some.count, some.width, some.target, some.weight}, &o, &base,
                            trees, err);
    ft__matrix_free(&some);
    if (s == FT_OK) only_where(feature, base, trees);
    return s;
}

ft_status ft__in_model(const ft_cell *cell, ft_cell_gpu *g, const ft_matrix *m, size_t first, double base,
                       const uint8_t *fold, uint8_t folds, double *residual, ft_error *err)
{
    int feature = ft__in_model_feature(cell->family);
    size_t width = (size_t)m->width;
    ft_matrix part = {m->key + first * width, m->target + first, m->weight + first, m->count - first, m->width};
    ft_tree *trees = g->trees + g->expert.tree_count;
    float *target = malloc((part.count + 1) * sizeof *target);
    if (!target) return ft__no_memory(err);
    for (size_t i = 0; i < part.count; i++)
        target[i] = (float)((double)part.target[i] - base -
                            ft__trees_sum(g->trees, g->expert.tree_count, part.key + i * width));
    ft_status s = FT_OK;
    for (uint8_t k = 0; k < folds && s == FT_OK; k++) {
        s = boost(&part, target, fold + first, k, feature, trees, err);
        for (size_t i = 0; s == FT_OK && i < part.count; i++)
            if (fold[first + i] == k)
                residual[first + i] = (double)target[i] - ft__trees_sum(trees, FT_MODEL_TREES, part.key + i * width);
    }
    if (s == FT_OK) s = boost(&part, target, fold + first, -1, feature, trees, err);
    if (s == FT_OK) g->expert.tree_count += FT_MODEL_TREES;
    free(target);
    return s;
}
