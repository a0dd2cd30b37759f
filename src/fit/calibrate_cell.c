/* calibrate_cell.c: one variant from a few points of one GPU.
 *
 *   body   the predictor's constants as they are, or fitted again to the points with priors around them; its learned
 *          correction with the weight that the points give it
 *   rest   what the body leaves, by trees, a Gaussian process, both or neither (rest.h)
 *
 * Every combination is tried on points it did not see (folds of whole shape groups) and the best is fitted to all. The
 * errors on the points left out become the interval, wider the fewer there were. A predictor that knows the GPU from
 * thousands of rows is so never made worse by forty: keeping it is one of the combinations. */
#include "fit/calibrate_cell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/learning_constants.h"
#include "fit/matrix.h"
#include "fit/rest.h"

enum { BODIES = 2, MOST_CONSTANT_ROWS = 800, ITERATIONS = 14, MIRRORED = 60 };

typedef struct body {
    double theta[FT_MAX_THETA];
    double weight, bias; /* of the predictor's trees; in front */
} body;

typedef struct work {
    ft_calibrate_cell *cell;
    const ft_expert *base; /* NULL: the predictor has none for this variant */
    ft_kinship kinship;
    double center[FT_MAX_THETA];
    uint8_t *fold;
    int folds;
    double *residual; /* BODIES x kinds x count: what is left of points by models that did not see them */
    double *learned;  /* kinds x count */
    double *shared;   /* what the predictor's trees say about each point */
} work;

/* How far constants may go, in spreads of the family's own priors. */
static double prior_of(const work *w)
{
    const struct ft__k_learning_calibration_priors *k = &ft__k_learning_calibration_priors;
    return !w->base || w->kinship == FT_KIN_WORLD ? k->stranger : w->kinship == FT_KIN_SIBLING ? k->sibling : k->own;
}

/* Points of one shape group share a fold; groups take turns, so that no fold is empty. */
static void deal_folds(work *w)
{
    const ft_calibrate_cell *c = w->cell;
    w->folds = c->count < 8 ? (int)c->count : c->count < 60 ? 8 : 4;
    int next = 0;
    for (size_t i = 0; i < c->count; i++) {
        uint32_t group = c->rows->at[c->index[i]].group;
        size_t k = 0;
        while (k < i && c->rows->at[c->index[k]].group != group) k++;
        w->fold[i] = k < i ? w->fold[k] : (uint8_t)(next++ % w->folds);
    }
    if (next < w->folds) w->folds = next; /* fewer groups than folds */
}

static ft_status fit_theta(const work *w, int without, double *theta, ft_error *err)
{
    const ft_calibrate_cell *c = w->cell;
    uint32_t *some = malloc((c->count + 1) * sizeof *some);
    if (!some) return ft__no_memory(err);
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < c->count; i++)
        if (w->fold[i] != without) some[n++] = c->index[i];
    for (size_t i = 0; i < n; i++)
        if (n <= MOST_CONSTANT_ROWS || (i * MOST_CONSTANT_ROWS) / n != ((i + 1) * MOST_CONSTANT_ROWS) / n)
            some[kept++] = some[i];
    ft__fit_constants(c->family, (ft_subset){c->rows, some, kept}, w->center, prior_of(w), ITERATIONS, theta);
    free(some);
    return FT_OK;
}

/* Least squares for the weight of the shared trees, pulled towards 0 by about one point's worth, and the mean of what
 * is left, pulled towards the predictor's own where points are few. */
static void weigh(const work *w, int without, bool refit, const ft_frame *f, body *b)
{
    double n = 0, mean_x = 0, mean_y = 0, xy = 0, xx = ft__k_learning_calibration_shared.ridge, sum = 0;
    const double clip = ft__k_learning_calibration_shared.clip;
    b->weight = w->base ? (double)w->base->weight[w->kinship] : 0;
    b->bias = w->base && !refit ? (double)w->base->bias[w->kinship] : 0;
    for (size_t i = 0; i < f->count; i++)
        if (w->fold[i] != without) mean_x += w->shared[i], mean_y += f->left[i], n++;
    if (n < 1) return;
    mean_x /= n, mean_y /= n;
    for (size_t i = 0; i < f->count && refit; i++) {
        if (w->fold[i] == without) continue;
        double x = w->shared[i] - mean_x, y = fmax(-clip, fmin(clip, f->left[i] - mean_y));
        xy += x * y, xx += x * x;
    }
    if (refit) b->weight = fmax(0, fmin(1, xy / xx));
    for (size_t i = 0; i < f->count; i++)
        if (w->fold[i] != without) sum += fmax(-0.5, fmin(0.5, f->left[i] - b->weight * w->shared[i] - b->bias));
    b->bias += sum / (n + 2);
}

/* What the predictor's trees say. */
static double shared_sum(const ft_predictor *p, const ft_expert *e, const uint32_t *keys, size_t width)
{
    uint32_t key[FT_MAX_FEATURES] = {0};
    uint8_t rank[FT_MAX_FEATURES];
    if (!e->tree_count) return 0;
    memcpy(key, keys, width * sizeof *key);
    ft__forest_ranks(&p->trees, e->tree_first, key, rank);
    return ft__forest_sum(&p->trees, e->tree_first, e->tree_count, rank);
}

/* The body fitted without one fold, and all points under it. */
static ft_status stand(const work *w, int without, bool refit, body *b, ft_frame *f, ft_error *err)
{
    const ft_calibrate_cell *c = w->cell;
    memcpy(b->theta, w->center, sizeof b->theta);
    if (refit) FT_TRY(fit_theta(w, without, b->theta, err));
    size_t width = (size_t)f->width;
    for (size_t i = 0; i < f->count; i++) {
        const ft_row *row = &c->rows->at[c->index[i]];
        ft_physics ph;
        double ms = ft__row_model_ms(c->family, c->rows, row, b->theta, true, &ph);
        memcpy(f->x + i * width, ph.feature, width * sizeof *f->x);
        for (size_t k = 0; k < width; k++) f->key[i * width + k] = ft__feature_key(ph.feature[k]);
        f->left[i] = log(row->ms / ms);
        f->weight[i] = row->weight;
        w->shared[i] = w->base ? shared_sum(c->base, w->base, f->key + i * width, width) : 0;
    }
    weigh(w, without, refit, f, b);
    for (size_t i = 0; i < f->count; i++) f->left[i] -= b->bias + b->weight * w->shared[i];
    return FT_OK;
}

static double mean_error(const work *w, const double *residual)
{
    double sum = 0, total = 1e-30;
    for (size_t i = 0; i < w->cell->count; i++) {
        double weight = (double)w->cell->rows->at[w->cell->index[i]].weight;
        sum += weight * fmin(fabs(expm1(-residual[i])), 1);
        total += weight;
    }
    return sum / total;
}

/* Every body and rest on the points of each fold in turn. */
static ft_status try_all(work *w, ft_frame *f, ft_error *err)
{
    size_t n = w->cell->count;
    for (int refit = 0; refit < BODIES; refit++) {
        body b;
        for (int fold = 0; fold < w->folds; fold++) {
            FT_TRY(stand(w, fold, refit, &b, f, err));
            FT_TRY(ft__rest_try(f, w->fold, fold, w->learned, err));
            for (int kind = 0; kind < FT_REST_KINDS; kind++)
                for (size_t i = 0; i < n; i++)
                    if (w->fold[i] == fold)
                        w->residual[((size_t)refit * FT_REST_KINDS + (size_t)kind) * n + i] =
                            f->left[i] - w->learned[(size_t)kind * n + i];
        }
    }
    return FT_OK;
}

/* The least error; what is more complicated must earn its place. */
static void choose(const work *w, int *refit, ft_rest_kind *kind, double *error)
{
    double least = INFINITY;
    for (int r = 0; r < BODIES; r++)
        for (int k = 0; k < FT_REST_KINDS; k++) {
            double e = mean_error(w, w->residual + ((size_t)r * FT_REST_KINDS + (size_t)k) * w->cell->count);
            if (e >= FT_K_LEARNING_CALIBRATION_EARNS * least) continue;
            least = *error = e;
            *refit = r;
            *kind = (ft_rest_kind)k;
        }
}

/* Quantiles of few errors say little about their tails: both sides share them, and they are taken wider. */
static ft_status set_spreads(const ft_calibrate_cell *c, const double *residual, const double *scale, ft_expert *e,
                             ft_error *err)
{
    size_t n = c->count;
    bool mirror = n < MIRRORED;
    double *z = malloc((2 * n + 1) * sizeof *z);
    if (!z) return ft__no_memory(err);
    for (size_t i = 0; i < n; i++) {
        z[i] = residual[i] / scale[i];
        z[n + i] = -z[i];
    }
    const struct ft__k_learning_calibration_inflate *k = &ft__k_learning_calibration_inflate;
    double inflate = k->always + k->few / ((double)n + k->more);
    bool ok = ft__spreads(z, mirror ? 2 * n : n, inflate, e->spread_low[FT_KIN_SELF], e->spread_high[FT_KIN_SELF]);
    free(z);
    if (!ok) return ft__no_memory(err);
    /* Asked for a variant that stands in for another: wider, as kin.c guesses where nobody else was measured. */
    for (int kin = FT_KIN_SIBLING; kin < FT_KIN_LEVELS; kin++)
        for (int q = 0; q < FT_QUANTILES; q++) {
            float wider = (float)(kin == FT_KIN_SIBLING ? ft__k_learning_siblings.factor
                                                        : ft__k_learning_strangers.factor);
            e->spread_low[kin][q] = wider * e->spread_low[FT_KIN_SELF][q];
            e->spread_high[kin][q] = wider * e->spread_high[FT_KIN_SELF][q];
        }
    return FT_OK;
}

static void name_expert(const work *w, const body *b, double front, ft_expert *e)
{
    const ft_calibrate_cell *c = w->cell;
    const ft_device *device = &c->rows->gpus[0];
    memset(e, 0, sizeof *e);
    strncpy(e->family, c->family->name, sizeof e->family - 1);
    strncpy(e->variant, c->family->variant_name(c->variant), sizeof e->variant - 1);
    strncpy(e->gpu, device->name, sizeof e->gpu - 1);
    memcpy(e->generation, device->generation, sizeof e->generation);
    e->rows = (uint32_t)c->count;
    e->flags = FT_EXPERT_DEVICE;
    if (w->base && w->kinship == FT_KIN_SELF) e->flags |= w->base->flags & FT_EXPERT_EAGER;
    for (size_t i = 0; i < c->count; i++) {
        const ft_op *op = &c->rows->at[c->index[i]].op;
        if (op->kind == FT_OP_GEMM && op->u.gemm.quantized == 1) e->flags |= FT_EXPERT_BARE_OPERANDS;
    }
    e->balance = (float)ft__device_balance(device);
    memcpy(e->theta, b->theta, sizeof e->theta);
    for (int k = 0; k < FT_KIN_LEVELS; k++) {
        e->weight[k] = 1;
        e->bias[k] = (float)fmax(-5, fmin(5, b->bias + front));
        e->mape[k] = -1;
    }
}

/* The predictor's trees at their weight, then those of the rest. */
static ft_status join_trees(const work *w, const body *b, const ft_rest *r, ft_error *err)
{
    ft_calibrate_cell *c = w->cell;
    size_t shared = w->base && b->weight > ft__k_learning_calibration_shared.least ? w->base->tree_count : 0;
    c->trees = malloc((shared + (size_t)r->tree_count + 1) * sizeof *c->trees);
    if (!c->trees) return ft__no_memory(err);
    for (size_t t = 0; t < shared; t++) {
        ft__forest_tree(&c->base->trees, w->base->tree_first + t, &c->trees[t]);
        ft__tree_scale(&c->trees[t], b->weight);
    }
    if (r->tree_count) memcpy(c->trees + shared, r->trees, (size_t)r->tree_count * sizeof *c->trees);
    c->out.expert.tree_count = (uint32_t)shared + (uint32_t)r->tree_count;
    return FT_OK;
}

static ft_status settle(work *w, ft_frame *f, ft_error *err)
{
    static const char *const words[FT_REST_KINDS] = {"nothing", "trees", "process", "process, trees",
                                                     "trees + process"};
    ft_calibrate_cell *c = w->cell;
    int refit = 0;
    ft_rest_kind kind = FT_REST_NONE;
    body b;
    ft_rest r;
    FT_TRY(try_all(w, f, err));
    choose(w, &refit, &kind, &c->tried);
    FT_TRY(stand(w, -1, refit, &b, f, err));
    FT_TRY(ft__rest_fit(f, w->fold, -1, kind, &r, err));
    name_expert(w, &b, r.front, &c->out.expert);
    ft_status s = join_trees(w, &b, &r, err);
    c->out.process = r.process;
    c->values = r.values;
    r.values = NULL;
    ft__rest_free(&r);
    FT_TRY(s);
    c->refitted = refit;
    c->learned = words[kind];
    c->out.expert.mape[FT_KIN_SELF] = (float)c->tried;
    ft_matrix m = {.key = f->key, .weight = f->weight, .count = f->count, .width = f->width};
    const double *residual = w->residual + ((size_t)refit * FT_REST_KINDS + (size_t)kind) * c->count;
    ft__matrix_ranges(&m, &c->out.expert);
    FT_TRY(ft__sigma_fit(&m, residual, w->fold, (uint8_t)w->folds, &c->out.expert, &c->sigma, w->learned, err));
    return set_spreads(c, residual, w->learned, &c->out.expert, err);
}

ft_status ft__calibrate_cell(ft_calibrate_cell *c, ft_error *err)
{
    work w = {.cell = c};
    w.base = ft__predictor_expert(c->base, c->family, c->variant, &c->rows->gpus[0], &w.kinship);
    for (int j = 0; j < c->family->parameter_count; j++)
        w.center[j] = w.base ? w.base->theta[j] : c->family->parameters[j].start;
    ft_frame f;
    FT_TRY(ft__frame_new(c->count, c->family->feature_count, &f, err));
    w.fold = malloc(c->count + 1);
    w.residual = calloc((size_t)(BODIES * FT_REST_KINDS) * c->count + 1, sizeof *w.residual);
    w.learned = calloc((size_t)FT_REST_KINDS * c->count + 1, sizeof *w.learned);
    w.shared = calloc(c->count + 1, sizeof *w.shared);
    ft_status s = w.fold && w.residual && w.learned && w.shared ? FT_OK : ft__no_memory(err);
    if (s == FT_OK) {
        deal_folds(&w);
        s = settle(&w, &f, err);
    }
    free(w.fold);
    free(w.residual);
    free(w.learned);
    free(w.shared);
    ft__frame_free(&f);
    return s;
}

void ft__calibrate_cell_free(ft_calibrate_cell *c)
{
    free(c->index);
    free(c->trees);
    free(c->sigma);
    free(c->values);
}
