/* Gradient boosting with oblivious trees (one test per level), by histograms.
 *
 * Features are binned once at quantiles, 64 bins each. A level is chosen by summing, for every feature and cut, the
 * gain G^2 / (W + ridge) over all leaves of the tree so far: one pass over the rows per level fills the histograms leaf
 * x feature x bin. Each tree sees a share of rows and features, drawn by hash. Gradients are residuals clipped at
 * `clip`, so that the trees follow the bulk and not the accidents. Everything is computed in a fixed order in double
 * precision: the result does not depend on machine or thread count. */
#include "fit/boost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 64, LANES = 4 };

typedef struct binned {
    uint8_t *bin;                        /* width x count: column-major, so that a level streams one column at a time */
    uint32_t cut[FT_MAX_FEATURES][BINS]; /* key > cut[b] goes right of bin b */
    int bins[FT_MAX_FEATURES];
} binned;

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool make_bins(const ft_boost_data *d, binned *out)
{
    uint32_t *sorted = malloc(d->count * sizeof *sorted);
    out->bin = malloc(d->count * (size_t)d->width);
    if (!sorted || !out->bin) {
        free(sorted);
        free(out->bin);
        return false;
    }
    for (int f = 0; f < d->width; f++) {
        for (size_t i = 0; i < d->count; i++) sorted[i] = d->key[i * (size_t)d->width + (size_t)f];
        qsort(sorted, d->count, sizeof *sorted, by_value);
        int bins = 0;
        /* Cuts half-way between neighbouring distinct values, spread evenly over the rows. */
        size_t distinct = 1;
        for (size_t i = 1; i < d->count; i++) distinct += sorted[i] > sorted[i - 1];
        size_t next = 0;
        for (size_t i = 1; i < d->count && bins < BINS - 1; i++) {
            if (!(sorted[i] > sorted[i - 1])) continue;
            if (distinct > BINS && i < next) continue;
            out->cut[f][bins++] = sorted[i - 1] + (sorted[i] - sorted[i - 1]) / 2;
            next = i + (d->count - i) / (size_t)(BINS - bins);
        }
        out->bins[f] = bins;
        uint8_t *column = out->bin + (size_t)f * d->count;
        for (size_t i = 0; i < d->count; i++) {
            uint32_t x = d->key[i * (size_t)d->width + (size_t)f];
            int low = 0, high = bins;
            while (low < high) {
                int mid = (low + high) / 2;
                if (x > out->cut[f][mid])
                    low = mid + 1;
                else
                    high = mid;
            }
            column[i] = (uint8_t)low;
        }
    }
    free(sorted);
    return true;
}

typedef struct cell {
    float g, w;
} cell;

/* The rows one tree sees, gathered so that the inner loop reads forward. */
typedef struct drawn {
    uint32_t *row;
    float *gradient, *weight;
    uint8_t *leaf;
    size_t count;
} drawn;

static void add(cell *c, float gradient, float weight)
{
    c->g += gradient;
    c->w += weight;
}

/* Gradients and weights by leaf and bin of up to four features, each in its own histogram. Rows of a table lie in an
 * order, so that neighbours fall into one bin and every sum waits for the last one: four of them wait side by side. */
static void fill(const ft_boost_data *d, const binned *b, const drawn *s, const int *feature, int lanes, int leaves,
                 cell *hist)
{
    const uint8_t *column[LANES];
    cell *into[LANES];
    for (int k = 0; k < lanes; k++) {
        column[k] = b->bin + (size_t)feature[k] * d->count;
        into[k] = memset(hist + (size_t)k * FT_TREE_LEAVES * BINS, 0, (size_t)leaves * BINS * sizeof *hist);
    }
    for (size_t i = 0; lanes == LANES && i < s->count; i++) {
        size_t at = (size_t)s->leaf[i] * BINS, row = s->row[i];
        float g = s->gradient[i], w = s->weight[i];
        add(into[0] + at + column[0][row], g, w);
        add(into[1] + at + column[1][row], g, w);
        add(into[2] + at + column[2][row], g, w);
        add(into[3] + at + column[3][row], g, w);
    }
    for (int k = 0; lanes < LANES && k < lanes; k++)
        for (size_t i = 0; i < s->count; i++)
            add(into[k] + (size_t)s->leaf[i] * BINS + column[k][s->row[i]], s->gradient[i], s->weight[i]);
}

/* What each cut of a feature lowers the squared error by, over all current leaves. */
static void gains(const cell *hist, int leaves, int bins, double ridge, double *gain)
{
    memset(gain, 0, BINS * sizeof *gain);
    for (int l = 0; l < leaves; l++) {
        const cell *h = hist + (size_t)l * BINS;
        double total_g = 0, total_w = 0, g = 0, w = 0;
        for (int k = 0; k <= bins; k++) total_g += (double)h[k].g, total_w += (double)h[k].w;
        if (total_w <= 0) continue;
        double whole = total_g * total_g / (total_w + ridge);
        for (int k = 0; k < bins; k++) {
            g += (double)h[k].g;
            w += (double)h[k].w;
            double rest = total_g - g;
            gain[k] += g * g / (w + ridge) + rest * rest / (fmax(total_w - w, 0) + ridge) - whole;
        }
    }
}

/* The cut that lowers it most. */
static bool best_cut(const ft_boost_data *d, const binned *b, const drawn *s, const bool *use, int leaves, double ridge,
                     cell *hist, int *feature, int *cut)
{
    double best = 1e-12, gain[BINS];
    bool found = false;
    int some[FT_MAX_FEATURES], count = 0;
    for (int f = 0; f < d->width; f++)
        if (b->bins[f] > 0 && use[f]) some[count++] = f;
    for (int at = 0; at < count; at += LANES) {
        int lanes = count - at < LANES ? count - at : LANES;
        fill(d, b, s, some + at, lanes, leaves, hist);
        for (int n = 0; n < lanes; n++) {
            int f = some[at + n];
            gains(hist + (size_t)n * FT_TREE_LEAVES * BINS, leaves, b->bins[f], ridge, gain);
            for (int k = 0; k < b->bins[f]; k++)
                if (gain[k] > best) best = gain[k], *feature = f, *cut = k, found = true;
        }
    }
    return found;
}

/* A small counter-based generator: draws depend on tree and row alone, never on the order of execution. */
static uint32_t draw(uint32_t a, uint32_t b)
{
    uint32_t h = a * 0x9e3779b9u ^ b * 0x85ebca6bu;
    h = (h ^ (h >> 16)) * 0x7feb352du;
    h = (h ^ (h >> 15)) * 0x846ca68bu;
    return h ^ (h >> 16);
}

static void settle_leaves(const ft_boost_data *d, const uint8_t *leaf, const float *residual, const ft_boost_options *o,
                          ft_tree *t)
{
    double g[FT_TREE_LEAVES] = {0}, w[FT_TREE_LEAVES] = {0};
    for (size_t i = 0; i < d->count; i++) {
        float r = residual[i], c = (float)o->clip;
        g[leaf[i]] += (double)(d->weight[i] * (r > c ? c : r < -c ? -c : r));
        w[leaf[i]] += (double)d->weight[i];
    }
    double largest = 0;
    for (int l = 0; l < FT_TREE_LEAVES; l++) {
        const double held = w[l] + o->ridge; /* 0 of a leaf without rows, which says nothing */
        g[l] = held > 0 ? o->rate * g[l] / held / FT_LEAF_UNIT : 0;
        largest = fmax(largest, fabs(g[l]));
    }
    /* One byte a leaf, in steps of a power of two; what rounding takes, later trees give back. */
    const double most = o->steps > 0 ? o->steps : 127;
    for (t->shift = 0; t->shift < FT_LEAF_SHIFT_MAX && largest > most * (double)(1u << t->shift);) t->shift++;
    for (int l = 0; l < FT_TREE_LEAVES; l++)
        t->leaf[l] = (int8_t)lrint(fmax(-most, fmin(most, g[l] / (double)(1u << t->shift))));
}

/* One tree on the rows drawn for it; leaf[] receives every row's leaf. */
static void grow(const ft_boost_data *d, const ft_boost_options *o, const binned *b, uint32_t number,
                 const float *residual, drawn *s, cell *hist, uint8_t *leaf, ft_tree *tree)
{
    uint32_t row_share = o->rows >= 1 ? UINT32_MAX : (uint32_t)(o->rows * (double)UINT32_MAX);
    uint32_t feature_share = o->features >= 1 ? UINT32_MAX : (uint32_t)(o->features * (double)UINT32_MAX);
    bool use[FT_MAX_FEATURES];
    s->count = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        if (draw(number, i) > row_share) continue;
        float r = residual[i], c = (float)o->clip;
        s->row[s->count] = i;
        s->weight[s->count] = d->weight[i];
        s->leaf[s->count] = 0;
        s->gradient[s->count++] = d->weight[i] * (r > c ? c : r < -c ? -c : r);
    }
    for (int f = 0; f < d->width; f++) use[f] = draw(number, 0xf0000000u + (uint32_t)f) <= feature_share;
    memset(leaf, 0, d->count);
    for (int level = 0; level < FT_TREE_DEPTH; level++) tree->threshold[level] = UINT32_MAX;
    for (int level = 0; level < o->depth; level++) {
        int f = 0, cut = 0;
        /* Bits are filled from the top; a level's leaves are numbered by the bits so far. */
        if (!best_cut(d, b, s, use, 1 << level, o->ridge, hist, &f, &cut)) break;
        tree->feature[level] = (uint8_t)f;
        tree->threshold[level] = b->cut[f][cut];
        const uint8_t *column = b->bin + (size_t)f * d->count;
        for (size_t i = 0; i < s->count; i++) s->leaf[i] = (uint8_t)(2 * s->leaf[i] + (column[s->row[i]] > cut));
        for (size_t i = 0; i < d->count; i++)
            leaf[i] = (uint8_t)(leaf[i] | (column[i] > cut) << (FT_TREE_DEPTH - 1 - level));
    }
}

/* Mean absolute residual, clipped as the gradients are. */
static double mean_error(const ft_boost_data *d, const float *residual, double clip)
{
    double sum = 0, total = 1e-30;
    for (size_t i = 0; i < d->count; i++) {
        sum += (double)d->weight[i] * fmin(fabs((double)residual[i]), clip);
        total += (double)d->weight[i];
    }
    return sum / total;
}

uint32_t ft__boost_used(const ft_tree *trees, int count)
{
    static const ft_tree empty;
    while (count > 0 && !memcmp(trees[count - 1].leaf, empty.leaf, sizeof empty.leaf)) count--;
    return (uint32_t)count;
}

ft_status ft__boost(const ft_boost_data *d, const ft_boost_options *o, double *base, ft_tree *trees, ft_error *err)
{
    binned b;
    memset(trees, 0, (size_t)o->trees * sizeof *trees);
    double sum = 0, total = 0;
    for (size_t i = 0; i < d->count; i++) sum += (double)(d->target[i] * d->weight[i]), total += (double)d->weight[i];
    *base = total > 0 ? sum / total : 0;
    for (int t = 0; t < o->trees; t++)
        for (int l = 0; l < FT_TREE_DEPTH; l++) trees[t].threshold[l] = UINT32_MAX;
    if (d->count < 8) return FT_OK;
    if (!make_bins(d, &b)) return ft__fail(err, FT_E_MEMORY, "out of memory fitting trees to %zu rows", d->count);
    drawn s = {malloc(d->count * sizeof *s.row), malloc(d->count * sizeof *s.gradient),
               malloc(d->count * sizeof *s.weight), malloc(d->count), 0};
    uint8_t *leaf = malloc(d->count);
    float *residual = malloc(d->count * sizeof *residual);
    cell *hist = malloc((size_t)LANES * FT_TREE_LEAVES * BINS * sizeof *hist);
    bool ok = s.row && s.gradient && s.weight && s.leaf && leaf && residual && hist;
    for (size_t i = 0; ok && i < d->count; i++) residual[i] = d->target[i] - (float)*base;
    double before = INFINITY;
    for (int t = 0; ok && t < o->trees; t++) {
        if (t % 40 == 0) {
            double now = mean_error(d, residual, o->clip);
            if (now > (1 - o->enough) * before) break;
            before = now;
        }
        grow(d, o, &b, (uint32_t)t + 1, residual, &s, hist, leaf, &trees[t]);
        settle_leaves(d, leaf, residual, o, &trees[t]);
        for (size_t i = 0; i < d->count; i++) residual[i] -= (float)(ft__leaf_value(&trees[t], leaf[i]) * FT_LEAF_UNIT);
    }
    free(hist);
    free(residual);
    free(leaf);
    free(s.row);
    free(s.gradient);
    free(s.weight);
    free(s.leaf);
    free(b.bin);
    return ok ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory fitting trees");
}
