/* Fitting one cell: the world's constants and each GPU's expert.
 *
 * What a GPU's expert learns is tried on rows of groups it did not see (folds over hashed shape groups): those errors
 * become its interval. Nothing that such an error is made of has seen its row: constants, trees and the scale of errors
 * are found again without each fold (cross-conformal prediction: Vovk 2015; Barber et al. 2021). What kinship is worth
 * is found in kin.c. */
#include "fit/cell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/in_model.h"
#include "fit/learning_constants.h"

enum { WORLD_ROWS = 1200, WORLD_STEPS = 20, GPU_ROWS = 3000, GPU_STEPS = 12, ENOUGH_TABLED = 100 };
enum { FEW_FOLDS = 4, MANY_FOLDS = 10 };

/* A forest of few rows would miss a quarter of them: it would be further off than the one that is kept. */
static uint8_t folds_of(const ft_cell_gpu *g) { return g->forest < GPU_ROWS ? MANY_FOLDS : FEW_FOLDS; }

/* Shapes of a group are held out together. */
static uint8_t fold_of(const ft_row *row, uint8_t folds) { return (uint8_t)((row->group >> 8) % folds); }

size_t ft__cell_sample(const ft_rows *rows, const ft_cell_gpu *g, size_t wanted, uint32_t *out)
{
    size_t n = 0;
    if (g->count <= wanted) {
        memcpy(out, g->index, g->count * sizeof *out);
        return g->count;
    }
    uint64_t threshold = (uint64_t)wanted * 4294967296u / g->count;
    for (size_t i = 0; i < g->count && n < 2 * wanted; i++) {
        uint32_t h = rows->at[g->index[i]].number * 2654435761u;
        h ^= h >> 15;
        h *= 2246822519u;
        h ^= h >> 13;
        if (h < threshold) out[n++] = g->index[i];
    }
    return n;
}

static void expert_init(const ft_cell *cell, const char *gpu, const char *generation, ft_expert *e)
{
    memset(e, 0, sizeof *e);
    strncpy(e->family, cell->family->name, sizeof e->family - 1);
    strncpy(e->variant, cell->family->variant_name(cell->variant), sizeof e->variant - 1);
    strncpy(e->gpu, gpu, sizeof e->gpu - 1);
    strncpy(e->generation, generation, sizeof e->generation - 1);
    for (int k = 0; k < FT_KIN_LEVELS; k++) e->mape[k] = -1;
}

/* What constants are fitted to: tables vary one thing at a time, models do not. Without a table, all there is. */
static ft_cell_gpu tabled(const ft_cell_gpu *g)
{
    ft_cell_gpu t = *g;
    if (t.tables >= ENOUGH_TABLED) t.count = t.tables;
    return t;
}

/* Its rows that errors and spreads are told of: those that only teach judge nobody. */
static ft_cell_gpu told_of(const ft_cell_gpu *g) { return g->forest > g->tables ? tabled(g) : *g; }

ft_cell_gpu ft__cell_lent(const ft_cell *cell, const ft_cell_gpu *g)
{
    bool profiled = g->forest > g->tables && cell->rows->at[g->index[g->forest - 1]].source == FT_ROWS_PROFILED;
    return profiled ? *g : told_of(g);
}

ft_status ft__cell_constants(const ft_cell *cell, const bool *use, const double *center, size_t rows_each,
                             int iterations, double *theta, ft_error *err)
{
    uint32_t *index = malloc((size_t)cell->gpu_count * 2 * rows_each * sizeof *index + sizeof *index);
    if (!index) return ft__fail(err, FT_E_MEMORY, "out of memory fitting constants");
    size_t n = 0;
    for (int g = 0; g < cell->gpu_count; g++) {
        ft_cell_gpu t = tabled(&cell->gpus[g]);
        if (use[g]) n += ft__cell_sample(cell->rows, &t, rows_each, index + n);
    }
    ft__fit_constants(cell->family, (ft_subset){cell->rows, index, n}, center, 1, iterations, theta);
    free(index);
    return FT_OK;
}

ft_status ft__cell_fit_world(ft_cell *cell, ft_error *err)
{
    double start[FT_MAX_THETA] = {0};
    bool use[FT_MAX_MEASURED_GPUS];
    for (int j = 0; j < cell->family->parameter_count; j++) start[j] = cell->family->parameters[j].start;
    for (int g = 0; g < cell->gpu_count; g++) use[g] = true;
    expert_init(cell, "*", "", &cell->world);
    for (int g = 0; g < cell->gpu_count; g++) cell->world.rows += (uint32_t)cell->gpus[g].count;
    FT_TRY(ft__cell_constants(cell, use, start, WORLD_ROWS, WORLD_STEPS, cell->world.theta, err));
    return FT_OK;
}

/* Settings by how much there is to learn from. */
static ft_boost_options boost_for(const ft_family *family, size_t rows, const ft_cell_gpu *g)
{
    int at = 0, again = 0;
    while (at < FT_K_LEARNING_TREES_COUNT - 1 && !((double)rows < ft__k_learning_trees[at].below)) at++;
    ft_boost_options o = {.trees = ft__k_learning_trees[at].trees,
                          .depth = ft__k_learning_trees[at].depth,
                          .rate = ft__k_learning_trees[at].rate,
                          .ridge = ft__k_learning_boost.ridge,
                          .clip = ft__k_learning_boost.clip,
                          .rows = ft__k_learning_boost.rows,
                          .features = ft__k_learning_boost.features,
                          .enough = ft__k_learning_boost.enough};
    while (again < FT_K_LEARNING_REPEATED_TREES_COUNT && !((double)rows < ft__k_learning_repeated_trees[again].below))
        again++;
    if (family->repeated && again < FT_K_LEARNING_REPEATED_TREES_COUNT) {
        o.trees = ft__k_learning_repeated_trees[again].trees;
        o.depth = ft__k_learning_repeated_trees[again].depth;
    }
    const struct ft__k_learning_falling_boost *falling = &ft__k_learning_falling_boost;
    for (int i = 0; family->falls && i < FT_K_LEARNING_FALLING_TREES_COUNT; i++) {
        if (rows < (size_t)ft__k_learning_falling_trees[i].from) break;
        o.trees = ft__k_learning_falling_trees[i].trees, o.rate = ft__k_learning_falling_trees[i].rate,
        o.depth = FT_TREE_DEPTH;
        o.ridge = falling->ridge, o.clip = falling->clip, o.enough = falling->enough, o.steps = falling->steps;
    }
    const struct ft__k_learning_calibrated_trees *k = &ft__k_learning_calibrated_trees;
    if (!family->falls && (g->calibrated || g->drawn) && rows >= (size_t)k->from)
        o.trees = k->trees, o.rate = k->rate, o.clip = k->clip, o.enough = k->enough, o.steps = k->steps;
    for (int i = 0; g->drawn && i < FT_K_LEARNING_DRAWN_TREES_COUNT; i++) {
        if (rows < (size_t)ft__k_learning_drawn_trees[i].from) break;
        o.trees = ft__k_learning_drawn_trees[i].trees, o.rate = ft__k_learning_drawn_trees[i].rate,
        o.ridge = ft__k_learning_drawn_trees[i].ridge, o.depth = FT_TREE_DEPTH;
    }
    return o;
}

/* Of `count` rows in `index`, those outside of a fold stay. */
static size_t drop_fold(const ft_rows *rows, uint32_t *index, size_t count, uint8_t folds, int without)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (fold_of(&rows->at[index[i]], folds) != without) index[kept++] = index[i];
    return kept;
}

/* A GPU's constants from its rows outside of one fold (< 0: from all), near the world's: one GPU of many moves those
 * little. The only one of its cell makes them, and then they too are found without the fold. */
static ft_status gpu_constants(const ft_cell *cell, const ft_cell_gpu *g, int without, double *theta, ft_error *err)
{
    uint32_t *index = malloc((2 * GPU_ROWS + 1) * sizeof *index);
    if (!index) return ft__no_memory(err);
    ft_cell_gpu t = tabled(g);
    double center[FT_MAX_THETA];
    memcpy(center, cell->world.theta, sizeof center);
    if (without >= 0 && cell->gpu_count == 1) {
        size_t n = drop_fold(cell->rows, index, ft__cell_sample(cell->rows, &t, WORLD_ROWS, index), folds_of(g),
                             without);
        for (int j = 0; j < cell->family->parameter_count; j++) center[j] = cell->family->parameters[j].start;
        ft__fit_constants(cell->family, (ft_subset){cell->rows, index, n}, center, 1, WORLD_STEPS, center);
    }
    size_t n = drop_fold(cell->rows, index, ft__cell_sample(cell->rows, &t, GPU_ROWS, index), folds_of(g), without);
    ft__fit_constants(cell->family, (ft_subset){cell->rows, index, n}, center, FT_K_LEARNING_GPU_PRIOR, GPU_STEPS,
                      theta);
    free(index);
    return FT_OK;
}

/* Residuals of the lines of one fold by trees that saw the others alone. `part` and `trees` are room to work in. */
static ft_status leave_out(const ft_matrix *m, const uint8_t *fold, uint8_t without, const ft_boost_options *o,
                           ft_matrix *part, ft_tree *trees, double *residual, ft_error *err)
{
    double base;
    size_t width = (size_t)m->width;
    ft__matrix_without(m, m->target, fold, without, part);
    FT_TRY(ft__boost(&(ft_boost_data){part->key, part->count, part->width, part->target, part->weight}, o, &base, trees,
                     err));
    for (size_t i = 0; i < m->count; i++)
        if (fold[i] == without)
            residual[i] = (double)m->target[i] - base - ft__trees_sum(trees, (size_t)o->trees, m->key + i * width);
    return FT_OK;
}

/* Residuals of every row by constants and trees that never saw its fold: as wrong as a forecast is of shapes that
 * nobody measured. */
static ft_status cross_validate(const ft_cell *cell, const ft_cell_gpu *g, const ft_matrix *m, const uint8_t *fold,
                                const ft_boost_options *o, double *residual, ft_error *err)
{
    ft_matrix part = {0}, apart = {0};
    ft_tree *trees = malloc((size_t)o->trees * sizeof *trees);
    ft_status s = trees ? ft__matrix_new(m->count, m->width, &part, err) : ft__no_memory(err);
    if (s == FT_OK) s = ft__matrix_new(m->count, m->width, &apart, err);
    for (uint8_t k = 0; k < folds_of(g) && s == FT_OK; k++) {
        double theta[FT_MAX_THETA];
        s = gpu_constants(cell, g, k, theta, err);
        for (size_t i = 0; i < m->count && s == FT_OK; i++) ft__matrix_set(cell, theta, g->index[i], &apart, i);
        if (s == FT_OK) s = leave_out(&apart, fold, k, o, &part, trees, residual, err);
    }
    ft__matrix_free(&apart);
    ft__matrix_free(&part);
    free(trees);
    return s;
}

/* The same of the slowest quarter by the others, under the constants of all. */
static ft_status leave_slow(const ft_matrix *m, const uint8_t *fold, const ft_boost_options *o, double *residual,
                            ft_error *err)
{
    ft_matrix part;
    ft_tree *trees = malloc((size_t)o->trees * sizeof *trees);
    ft_status s = trees ? ft__matrix_new(m->count, m->width, &part, err) : ft__no_memory(err);
    if (s == FT_OK) {
        s = leave_out(m, fold, 0, o, &part, trees, residual, err);
        ft__matrix_free(&part);
    }
    free(trees);
    return s;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Eager tables are asked for larger operators than they hold (their authors' own test split is): their intervals also
 * cover the slowest quarter of the rows as forecast from the other three. */
static ft_status widen_beyond(const ft_cell *cell, ft_cell_gpu *g, const ft_matrix *m, ft_boost_options o,
                              const double *scale, uint8_t *fold, double *work, ft_error *err)
{
    if (!g->eager || m->count < 100) return FT_OK;
    double *ms = work, *residual = work, *z = work + m->count;
    for (size_t i = 0; i < m->count; i++) ms[i] = cell->rows->at[g->index[i]].ms;
    qsort(ms, m->count, sizeof *ms, by_value);
    double slow = ms[m->count - m->count / 4];
    for (size_t i = 0; i < m->count; i++) fold[i] = cell->rows->at[g->index[i]].ms < slow;
    FT_TRY(leave_slow(m, fold, &o, residual, err));
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++)
        if (fold[i] == 0) z[n++] = residual[i] / scale[i];
    float low[FT_QUANTILES], high[FT_QUANTILES];
    if (!ft__spreads(z, n, 1, low, high)) return ft__no_memory(err);
    for (int q = 0; q < FT_QUANTILES; q++) {
        g->expert.spread_low[FT_KIN_SELF][q] = fmaxf(g->expert.spread_low[FT_KIN_SELF][q], low[q]);
        g->expert.spread_high[FT_KIN_SELF][q] = fmaxf(g->expert.spread_high[FT_KIN_SELF][q], high[q]);
    }
    return FT_OK;
}

static ft_status finish_gpu(ft_cell *cell, ft_cell_gpu *g, const ft_matrix *m, double *work, uint8_t *fold,
                            ft_error *err)
{
    bool apart = g->forest >= ENOUGH_TABLED && g->forest < m->count && ft__in_model_feature(cell->family) >= 0;
    ft_matrix tables = *m;
    if (apart) tables.count = g->forest;
    ft_boost_options o = boost_for(cell->family, tables.count, g);
    double *residual = work, *scale = work + m->count, *z = work + 2 * m->count, base;
    const uint8_t folds = folds_of(g);
    for (size_t i = 0; i < m->count; i++) fold[i] = fold_of(&cell->rows->at[g->index[i]], folds);
    FT_TRY(cross_validate(cell, g, &tables, fold, &o, residual, err));
    g->trees = calloc((size_t)o.trees + FT_MODEL_TREES + 1, sizeof *g->trees);
    if (!g->trees) return ft__no_memory(err);
    FT_TRY(ft__boost(&(ft_boost_data){tables.key, tables.count, tables.width, tables.target, tables.weight}, &o, &base,
                     g->trees, err));
    g->expert.tree_count = ft__boost_used(g->trees, o.trees);
    if (apart) FT_TRY(ft__in_model(cell, g, m, g->forest, base, fold, folds, residual, err));
    FT_TRY(ft__sigma_fit(m, residual, fold, folds, &g->expert, &g->sigma, scale, err));
    size_t told = told_of(g).count;
    for (size_t i = 0; i < told; i++) z[i] = residual[i] / scale[i];
    if (!ft__spreads(z, told, 1, g->expert.spread_low[FT_KIN_SELF], g->expert.spread_high[FT_KIN_SELF]))
        return ft__no_memory(err);
    FT_TRY(widen_beyond(cell, g, &tables, o, scale, fold, work + 2 * m->count, err));
    g->expert.weight[FT_KIN_SELF] = 1;
    g->expert.bias[FT_KIN_SELF] = (float)base;
    ft_errors e = {0};
    bool ok = true;
    for (size_t i = 0; i < told && ok; i++)
        ok = ft__errors_add(&e, residual[i], scale[i] * (double)g->expert.spread_low[FT_KIN_SELF][4],
                            scale[i] * (double)g->expert.spread_high[FT_KIN_SELF][4]);
    ok = ok && ft__errors_summary(&e, &g->known);
    ft__errors_free(&e);
    g->expert.mape[FT_KIN_SELF] = (float)g->known.mean;
    strcpy(g->known.kind, "known");
    memcpy(g->known.family, g->expert.family, sizeof g->known.family);
    memcpy(g->known.variant, g->expert.variant, sizeof g->known.variant);
    memcpy(g->known.gpu, g->expert.gpu, sizeof g->known.gpu);
    return ok ? FT_OK : ft__no_memory(err);
}

ft_status ft__cell_fit_gpu(ft_cell *cell, ft_cell_gpu *g, ft_error *err)
{
    const ft_device *device = &cell->rows->gpus[g->gpu];
    ft_matrix m;
    expert_init(cell, device->name, device->generation, &g->expert);
    g->expert.rows = (uint32_t)g->count;
    g->expert.balance = (float)ft__device_balance(device);
    g->expert.flags = (g->bare ? FT_EXPERT_BARE_OPERANDS : 0u) | (g->eager ? FT_EXPERT_EAGER : 0u) |
                      (g->timed ? FT_EXPERT_DEVICE : 0u) | (g->older ? FT_EXPERT_OLDER : 0u);
    FT_TRY(gpu_constants(cell, g, -1, g->expert.theta, err));
    FT_TRY(ft__matrix_new(g->count, cell->family->feature_count, &m, err));
    for (size_t i = 0; i < g->count; i++) ft__matrix_set(cell, g->expert.theta, g->index[i], &m, i);
    ft__matrix_ranges(&m, &g->expert);
    double *work = malloc((4 * g->count + 1) * sizeof *work);
    uint8_t *fold = malloc(g->count + 1);
    ft_status s = work && fold ? finish_gpu(cell, g, &m, work, fold, err) : ft__no_memory(err);
    free(fold);
    free(work);
    ft__matrix_free(&m);
    return s;
}

void ft__cell_free(ft_cell *cell)
{
    for (int g = 0; g < cell->gpu_count; g++) {
        free(cell->gpus[g].index);
        free(cell->gpus[g].trees);
        free(cell->gpus[g].sigma);
    }
    free(cell->gpus);
    free(cell->world_trees);
    free(cell->lines);
    memset(cell, 0, sizeof *cell);
}
