/* What kinship is worth: forecasts for GPUs that were left out.
 *
 * A sibling's expert is tried on the GPUs of its generation that it never saw. The world's constants are refitted with
 * each generation left out: those errors become the interval of a GPU nobody measured, and they decide how much of the
 * learned correction such a GPU gets (usually half or nothing: trees that help at home hurt abroad). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/learning_constants.h"
#include "fit/matrix.h"

enum { WORLD_ROWS = 600, POOL_ROWS = 3000 };

static ft_status add_line(ft_cell *cell, const ft_accuracy *line, ft_error *err)
{
    ft_accuracy *more = realloc(cell->lines, (cell->line_count + 1) * sizeof *more);
    if (!more) return ft__no_memory(err);
    cell->lines = more;
    cell->lines[cell->line_count++] = *line;
    return FT_OK;
}

static void name_line(const ft_cell *cell, const char *kind, const char *gpu, ft_accuracy *line)
{
    strncpy(line->family, cell->family->name, sizeof line->family - 1);
    strncpy(line->variant, cell->family->variant_name(cell->variant), sizeof line->variant - 1);
    strncpy(line->gpu, gpu, sizeof line->gpu - 1);
    strncpy(line->kind, kind, sizeof line->kind - 1);
}

/* Of another's trees: none, quarters, all. */
enum { WEIGHTS = 5 };
static float weight_of(int w) { return (float)w / (WEIGHTS - 1); }

/* Tries of another's model on rows it never saw: physics residual and what the trees would add, per row. */
typedef struct trial {
    double *residual, *trees, *scale;
    int *gpu;
    size_t count, room;
} trial;

static bool trial_add(trial *t, double residual, double trees, double scale, int gpu)
{
    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 4096;
        double *r = realloc(t->residual, room * sizeof *r);
        if (r) t->residual = r;
        double *a = realloc(t->trees, room * sizeof *a);
        if (a) t->trees = a;
        double *c = realloc(t->scale, room * sizeof *c);
        if (c) t->scale = c;
        int *g = realloc(t->gpu, room * sizeof *g);
        if (g) t->gpu = g;
        if (!r || !a || !c || !g) return false;
        t->room = room;
    }
    t->residual[t->count] = residual;
    t->trees[t->count] = trees;
    t->scale[t->count] = scale;
    t->gpu[t->count++] = gpu;
    return true;
}

static void trial_free(trial *t) { free(t->residual), free(t->trees), free(t->scale), free(t->gpu); }

/* The weight of the learned part that would have served best, counting each GPU the same. */
static float best_weight(const trial *t, int gpu_count)
{
    float best = 0;
    double best_error = INFINITY;
    for (int w = 0; w < WEIGHTS; w++) {
        double sum[FT_MAX_MEASURED_GPUS] = {0}, n[FT_MAX_MEASURED_GPUS] = {0}, error = 0;
        for (size_t i = 0; i < t->count; i++) {
            sum[t->gpu[i]] += fabs(expm1(-(t->residual[i] - (double)weight_of(w) * t->trees[i])));
            n[t->gpu[i]]++;
        }
        for (int g = 0; g < gpu_count; g++)
            if (n[g] > 0) error += sum[g] / n[g];
        if (error < best_error - 1e-9) best_error = error, best = weight_of(w);
    }
    return best;
}

/* Spreads from a trial at a weight, and a line per GPU when asked. */
static ft_status settle_trial(ft_cell *cell, const trial *t, float weight, double inflate, const char *kind,
                              bool report, float *low, float *high, ft_error *err)
{
    double *z = malloc((t->count + 1) * sizeof *z);
    if (!z) return ft__no_memory(err);
    for (size_t i = 0; i < t->count; i++) z[i] = (t->residual[i] - (double)weight * t->trees[i]) / t->scale[i];
    ft_status s = ft__spreads(z, t->count, inflate, low, high) ? FT_OK : ft__no_memory(err);
    for (int g = 0; g < cell->gpu_count && report && s == FT_OK; g++) {
        ft_errors e = {0};
        bool ok = true;
        for (size_t i = 0; i < t->count && ok; i++)
            if (t->gpu[i] == g)
                ok = ft__errors_add(&e, z[i] * t->scale[i], t->scale[i] * (double)low[4],
                                    t->scale[i] * (double)high[4]);
        if (!ok) s = ft__no_memory(err);
        if (ok && e.count) {
            ft_accuracy line = {0};
            name_line(cell, kind, cell->rows->gpus[cell->gpus[g].gpu].name, &line);
            s = ft__errors_summary(&e, &line) ? add_line(cell, &line, err) : ft__no_memory(err);
        }
        ft__errors_free(&e);
    }
    free(z);
    return s;
}

static const char *generation_of(const ft_cell *cell, int g) { return cell->rows->gpus[cell->gpus[g].gpu].generation; }

/* Every GPU's rows through the expert of the sibling with most rows. */
static ft_status try_siblings(const ft_cell *cell, trial *t, ft_error *err)
{
    uint32_t *index = malloc(2 * POOL_ROWS * sizeof *index);
    if (!index) return ft__no_memory(err);
    bool ok = true;
    for (int g = 0; g < cell->gpu_count && ok; g++) {
        const ft_cell_gpu *from = NULL;
        for (int h = 0; h < cell->gpu_count; h++)
            if (h != g && !strcmp(generation_of(cell, h), generation_of(cell, g)) &&
                (!from || cell->gpus[h].count > from->count))
                from = &cell->gpus[h];
        if (!from) continue;
        ft_cell_gpu lent = ft__cell_lent(cell, &cell->gpus[g]);
        size_t n = ft__cell_sample(cell->rows, &lent, POOL_ROWS, index);
        for (size_t i = 0; i < n && ok; i++) {
            const ft_row *row = &cell->rows->at[index[i]];
            ft_physics ph;
            double ms = ft__row_model_ms(cell->family, cell->rows, row, from->expert.theta, true, &ph);
            uint32_t key[FT_MAX_FEATURES];
            ft__matrix_keys(cell, &ph, key);
            double trees = (double)from->expert.bias[FT_KIN_SELF] +
                           ft__trees_sum(from->trees, from->expert.tree_count, key);
            double scale =
                exp((double)from->expert.sigma_base + ft__trees_sum(from->sigma, from->expert.sigma_count, key));
            ok = trial_add(t, log(row->ms / ms), trees, scale, g);
        }
    }
    free(index);
    return ok ? FT_OK : ft__no_memory(err);
}

static ft_boost_options world_boost(void)
{
    const struct ft__k_learning_world_boost *k = &ft__k_learning_world_boost;
    return (ft_boost_options){.trees = k->trees,
                              .depth = k->depth,
                              .rate = k->rate,
                              .ridge = k->ridge,
                              .clip = k->clip,
                              .rows = k->rows,
                              .features = k->features};
}

/* Trees over the pooled residuals of the GPUs in `use`, each GPU's own mean taken out. */
static ft_status pooled_trees(const ft_cell *cell, const bool *use, const double *theta, ft_tree *trees,
                              ft_expert *ranges, ft_error *err)
{
    ft_matrix m;
    uint32_t *index = malloc(2 * POOL_ROWS * sizeof *index);
    if (!index) return ft__no_memory(err);
    ft_status s = ft__matrix_new((size_t)cell->gpu_count * 2 * POOL_ROWS, cell->family->feature_count, &m, err);
    if (s != FT_OK) {
        free(index);
        return s;
    }
    m.count = 0;
    for (int g = 0; g < cell->gpu_count; g++) {
        if (!use[g]) continue;
        ft_cell_gpu lent = ft__cell_lent(cell, &cell->gpus[g]);
        size_t n = ft__cell_sample(cell->rows, &lent, POOL_ROWS, index), first = m.count;
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            ft__matrix_set(cell, theta, index[i], &m, m.count);
            m.weight[m.count] = (float)(FT_K_LEARNING_WORLD_ROW_WEIGHT / (double)n);
            sum += (double)m.target[m.count++];
        }
        for (size_t i = first; i < m.count; i++) m.target[i] -= (float)(sum / (double)n);
    }
    double base;
    if (ranges) ft__matrix_ranges(&m, ranges);
    ft_boost_options o = world_boost();
    s = ft__boost(&(ft_boost_data){m.key, m.count, m.width, m.target, m.weight}, &o, &base, trees, err);
    ft__matrix_free(&m);
    free(index);
    return s;
}

/* Each generation through constants and trees of the others. */
static ft_status try_world(const ft_cell *cell, trial *t, ft_error *err)
{
    ft_boost_options o = world_boost();
    ft_tree *trees = malloc((size_t)o.trees * sizeof *trees);
    uint32_t *index = malloc(2 * POOL_ROWS * sizeof *index);
    ft_status s = trees && index ? FT_OK : ft__no_memory(err);
    for (int g = 0; g < cell->gpu_count && s == FT_OK; g++) {
        bool first = true, use[FT_MAX_MEASURED_GPUS];
        int others = 0;
        for (int h = 0; h < cell->gpu_count; h++) {
            bool same = !strcmp(generation_of(cell, h), generation_of(cell, g));
            first = first && !(same && h < g);
            use[h] = !same;
            others += !same;
        }
        if (!first || !others) continue; /* a generation is left out once, with all its GPUs */
        double theta[FT_MAX_THETA], start[FT_MAX_THETA] = {0};
        for (int j = 0; j < cell->family->parameter_count; j++) start[j] = cell->family->parameters[j].start;
        s = ft__cell_constants(cell, use, start, WORLD_ROWS, 14, theta, err);
        if (s == FT_OK) s = pooled_trees(cell, use, theta, trees, NULL, err);
        for (int h = g; h < cell->gpu_count && s == FT_OK; h++) {
            if (use[h]) continue;
            ft_cell_gpu lent = ft__cell_lent(cell, &cell->gpus[h]);
            size_t n = ft__cell_sample(cell->rows, &lent, POOL_ROWS, index);
            for (size_t i = 0; i < n; i++) {
                const ft_row *row = &cell->rows->at[index[i]];
                ft_physics ph;
                double ms = ft__row_model_ms(cell->family, cell->rows, row, theta, true, &ph);
                uint32_t key[FT_MAX_FEATURES];
                ft__matrix_keys(cell, &ph, key);
                if (!trial_add(t, log(row->ms / ms), ft__trees_sum(trees, (size_t)o.trees, key), 1, h))
                    s = ft__no_memory(err);
            }
        }
    }
    free(index);
    free(trees);
    return s;
}

/* Where nobody else was measured, how much wider an interval gets is a judgement. */
static void guess_spreads(const ft_expert *own, double factor, double least, float *low, float *high)
{
    double scale = exp((double)own->sigma_base);
    for (int q = 0; q < FT_QUANTILES; q++) {
        double share = ft__quantile_levels[q] / ft__quantile_levels[4];
        low[q] = (float)fmax(factor * (double)own->spread_low[FT_KIN_SELF][q], least * share / scale);
        high[q] = (float)fmax(factor * (double)own->spread_high[FT_KIN_SELF][q], least * share / scale);
    }
}

ft_status ft__cell_fit_kin(ft_cell *cell, bool report, ft_error *err)
{
    trial siblings = {0}, world = {0};
    ft_boost_options o = world_boost();
    bool use[FT_MAX_MEASURED_GPUS];
    for (int g = 0; g < cell->gpu_count; g++) use[g] = true;
    ft_status s = try_siblings(cell, &siblings, err);
    if (s == FT_OK) s = try_world(cell, &world, err);
    cell->world_trees = malloc((size_t)o.trees * sizeof *cell->world_trees);
    if (s == FT_OK && !cell->world_trees) s = ft__no_memory(err);
    if (s == FT_OK) s = pooled_trees(cell, use, cell->world.theta, cell->world_trees, &cell->world, err);
    const ft_expert *own = &cell->gpus[0].expert;
    ft_expert *w = &cell->world;
    w->tree_count = s == FT_OK ? ft__boost_used(cell->world_trees, o.trees) : 0;
    w->sigma_base = 0;
    if (s == FT_OK && world.count) {
        w->weight[FT_KIN_WORLD] = best_weight(&world, cell->gpu_count);
        s = settle_trial(cell, &world, w->weight[FT_KIN_WORLD], FT_K_LEARNING_WORLD_INFLATE, "unseen", report,
                         w->spread_low[FT_KIN_WORLD], w->spread_high[FT_KIN_WORLD], err);
    } else if (s == FT_OK) {
        /* where one GPU's library falls to other kernels is nothing that another's does */
        w->weight[FT_KIN_WORLD] = cell->family->falls ? 0 : (float)FT_K_LEARNING_WORLD_WEIGHT;
        w->sigma_base = own->sigma_base;
        guess_spreads(own, ft__k_learning_strangers.factor, ft__k_learning_strangers.least, w->spread_low[FT_KIN_WORLD],
                      w->spread_high[FT_KIN_WORLD]);
    }
    float weight = 1, low[FT_QUANTILES], high[FT_QUANTILES];
    if (s == FT_OK && siblings.count) {
        weight = best_weight(&siblings, cell->gpu_count);
        s = settle_trial(cell, &siblings, weight, FT_K_LEARNING_SIBLING_INFLATE, "sibling", report, low, high, err);
    }
    for (int g = 0; g < cell->gpu_count && s == FT_OK; g++) {
        ft_expert *e = &cell->gpus[g].expert;
        e->weight[FT_KIN_SIBLING] = weight;
        e->bias[FT_KIN_SIBLING] = weight * e->bias[FT_KIN_SELF];
        if (siblings.count) {
            memcpy(e->spread_low[FT_KIN_SIBLING], low, sizeof low);
            memcpy(e->spread_high[FT_KIN_SIBLING], high, sizeof high);
        } else {
            guess_spreads(e, ft__k_learning_siblings.factor, ft__k_learning_siblings.least,
                          e->spread_low[FT_KIN_SIBLING], e->spread_high[FT_KIN_SIBLING]);
        }
    }
    trial_free(&siblings);
    trial_free(&world);
    return s;
}
