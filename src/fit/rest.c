/* rest.c: trees and Gaussian processes on what physics leaves.
 *
 * Trees find where a library changes its kernel, a process follows what drifts. Which serves better depends on the
 * family and on how many points there are (forty row operators: the process; a thousand products: trees), so that
 * calibrate_cell.c tries all kinds on points they did not see. */
#include "fit/rest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/learning_constants.h"

/* Residuals beyond this pull no harder: a kernel that takes twice as long as its neighbours is an accident. */
#define CLIP 1.0
enum { TUNED_ON = 128, TRIED_POINTS = 256, FEW_FOR_PROCESS = 6, MANY_FOR_PROCESS = 1500 };

ft_status ft__frame_new(size_t count, int width, ft_frame *out, ft_error *err)
{
    size_t cells = count * (size_t)width + 1;
    *out = (ft_frame){.x = malloc(cells * sizeof *out->x),
                      .key = malloc(cells * sizeof *out->key),
                      .left = malloc((count + 1) * sizeof *out->left),
                      .weight = malloc((count + 1) * sizeof *out->weight),
                      .count = count,
                      .width = width};
    if (out->x && out->key && out->left && out->weight) return FT_OK;
    ft__frame_free(out);
    return ft__fail(err, FT_E_MEMORY, "out of memory for %zu points", count);
}

void ft__frame_free(ft_frame *f)
{
    free(f->x);
    free(f->key);
    free(f->left);
    free(f->weight);
    memset(f, 0, sizeof *f);
}

void ft__rest_free(ft_rest *r)
{
    free(r->trees);
    free(r->values);
    memset(r, 0, sizeof *r);
}

void ft__tree_scale(ft_tree *tree, double share)
{
    double leaf[FT_TREE_LEAVES], largest = 0;
    for (unsigned l = 0; l < FT_TREE_LEAVES; l++) {
        leaf[l] = share * ft__leaf_value(tree, l);
        if (fabs(leaf[l]) > largest) largest = fabs(leaf[l]); /* fmax here breaks GCC 12 for aarch64 */
    }
    for (tree->shift = 0; tree->shift < FT_LEAF_SHIFT_MAX && largest > INT8_MAX * (double)(1u << tree->shift);)
        tree->shift++;
    for (unsigned l = 0; l < FT_TREE_LEAVES; l++)
        tree->leaf[l] = (int8_t)lrint(fmax(-127, fmin(127, leaf[l] / (double)(1u << tree->shift))));
}

/* By how many points there are. */
static ft_boost_options boost_for(size_t rows)
{
    int at = 0;
    while (at < FT_K_LEARNING_CALIBRATION_TREES_COUNT - 1 &&
           !((double)rows < ft__k_learning_calibration_trees[at].below))
        at++;
    const struct ft__k_learning_calibration_trees *k = &ft__k_learning_calibration_trees[at];
    return (ft_boost_options){.trees = k->trees,
                              .depth = k->depth,
                              .rate = k->rate,
                              .clip = k->clip,
                              .ridge = ft__k_learning_calibration_boost.ridge,
                              .rows = ft__k_learning_calibration_boost.rows,
                              .features = ft__k_learning_calibration_boost.features};
}

static double clipped(double x) { return fmax(-CLIP, fmin(CLIP, x)); }

/* The points of other folds, gathered. */
typedef struct part {
    ft_frame f;
    double *y, *w; /* clipped, for the process */
    float *target; /* for the trees */
} part;

static void part_free(part *p)
{
    ft__frame_free(&p->f);
    free(p->y);
    free(p->target);
}

static ft_status gather(const ft_frame *f, const uint8_t *fold, int without, part *p, ft_error *err)
{
    memset(p, 0, sizeof *p);
    FT_TRY(ft__frame_new(f->count, f->width, &p->f, err));
    p->y = malloc((2 * f->count + 1) * sizeof *p->y);
    p->target = malloc((f->count + 1) * sizeof *p->target);
    if (!p->y || !p->target) {
        part_free(p);
        return ft__fail(err, FT_E_MEMORY, "out of memory for %zu points", f->count);
    }
    size_t n = 0, width = (size_t)f->width;
    p->w = p->y + f->count;
    for (size_t i = 0; i < f->count; i++) {
        if (without >= 0 && fold[i] == without) continue;
        memcpy(p->f.x + n * width, f->x + i * width, width * sizeof *f->x);
        memcpy(p->f.key + n * width, f->key + i * width, width * sizeof *f->key);
        p->f.left[n] = f->left[i];
        p->f.weight[n] = f->weight[i];
        p->y[n] = clipped(f->left[i]);
        p->w[n] = (double)f->weight[i];
        p->target[n++] = (float)f->left[i];
    }
    p->f.count = n;
    return FT_OK;
}

static ft_status fit_trees(const part *p, ft_rest *out, ft_error *err)
{
    ft_boost_options o = boost_for(p->f.count);
    out->trees = malloc((size_t)o.trees * sizeof *out->trees);
    if (!out->trees) return ft__no_memory(err);
    FT_TRY(ft__boost(&(ft_boost_data){p->f.key, p->f.count, p->f.width, p->target, p->f.weight}, &o, &out->front,
                     out->trees, err));
    out->tree_count = (int)ft__boost_used(out->trees, o.trees);
    return FT_OK;
}

/* Length scales are tuned on the same points: tuned on all of them, a trial would be told what it is tried on. */
static ft_status fit_process(const part *p, size_t most, ft_rest *out, ft_error *err)
{
    ft_process_data d = {p->f.x, p->y, p->w, p->f.count, p->f.width};
    ft_process_shape shape;
    if (d.count < FEW_FOR_PROCESS || d.count > MANY_FOR_PROCESS) return FT_OK;
    FT_TRY(ft__process_tune(&d, TUNED_ON, &shape, err));
    return ft__process_fit(&d, &shape, most, &out->process, &out->values, err);
}

static double process_at(const ft_rest *r, const float *x)
{
    return r->process.blocks ? ft__process_mean(&r->process, r->values, x) : 0;
}

static double trees_at(const ft_rest *r, const uint32_t *key)
{
    return r->front + ft__trees_sum(r->trees, (size_t)r->tree_count, key);
}

static void take_process_out(part *p, const ft_rest *r)
{
    for (size_t i = 0; i < p->f.count; i++)
        p->target[i] = (float)(p->f.left[i] - process_at(r, p->f.x + i * (size_t)p->f.width));
}

ft_status ft__rest_fit(const ft_frame *f, const uint8_t *fold, int without, ft_rest_kind kind, ft_rest *out,
                       ft_error *err)
{
    part p;
    memset(out, 0, sizeof *out);
    if (kind == FT_REST_NONE) return FT_OK;
    FT_TRY(gather(f, fold, without, &p, err));
    ft_status s = FT_OK;
    if (kind != FT_REST_TREES) s = fit_process(&p, FT_PROCESS_POINTS, out, err);
    if (s == FT_OK && kind == FT_REST_BOTH) take_process_out(&p, out);
    if (s == FT_OK && kind != FT_REST_PROCESS) s = fit_trees(&p, out, err);
    if (s == FT_OK && kind == FT_REST_MEAN) {
        out->front *= 0.5;
        for (int t = 0; t < out->tree_count; t++) ft__tree_scale(&out->trees[t], 0.5);
        /* the weights are the last lanes of each block */
        size_t block = FT_PROCESS_LANES * ((size_t)out->process.width + 1);
        for (size_t b = 0; b < out->process.blocks; b++)
            for (size_t l = block - FT_PROCESS_LANES; l < block; l++) out->values[b * block + l] *= 0.5f;
    }
    part_free(&p);
    if (s != FT_OK) ft__rest_free(out);
    return s;
}

ft_status ft__rest_try(const ft_frame *f, const uint8_t *fold, int without, double *learned, ft_error *err)
{
    part p;
    ft_rest alone = {0}, process = {0}, after = {0};
    FT_TRY(gather(f, fold, without, &p, err));
    ft_status s = fit_trees(&p, &alone, err);
    if (s == FT_OK) s = fit_process(&p, TRIED_POINTS, &process, err);
    bool both = process.process.blocks > 0; /* else trees alone are all there is */
    if (s == FT_OK && both) take_process_out(&p, &process);
    if (s == FT_OK && both) s = fit_trees(&p, &after, err);
    size_t width = (size_t)f->width, n = f->count;
    for (size_t i = 0; s == FT_OK && i < n; i++) {
        if (fold[i] != without) continue;
        const uint32_t *key = f->key + i * width;
        double t = trees_at(&alone, key), g = process_at(&process, f->x + i * width);
        learned[FT_REST_NONE * n + i] = 0;
        learned[FT_REST_TREES * n + i] = t;
        learned[FT_REST_PROCESS * n + i] = g;
        learned[FT_REST_BOTH * n + i] = both ? g + trees_at(&after, key) : 0;
        learned[FT_REST_MEAN * n + i] = both ? 0.5 * (t + g) : 0;
    }
    ft__rest_free(&alone);
    ft__rest_free(&process);
    ft__rest_free(&after);
    part_free(&p);
    return s;
}
