/* Fitting a Gaussian process (Rasmussen and Williams 2006, chapters 2, 5 and 8).
 *
 * Kernel: rational quadratic with exponent 1, k = s / (1 + d^2 / 2), d^2 the squared distance in scaled features. It is
 * a mixture of Gaussians of all widths: a nearby case speaks up, a region as a whole drifts; and unlike an exponential
 * it costs one division a point when a forecast is made.
 *
 * Length scales, one per feature, maximise the marginal likelihood (5.9) of a few hundred cases by Adam on the logs,
 * with a prior that lets features fade that explain nothing. The weights then come from all cases by the subset of
 * regressors (8.3.1), the points picked by pivoted Cholesky: each is the case that the points so far explain least. */
#include "fit/process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/learning_constants.h"

enum { STEPS = 45 };

static double kernel(const float *a, const float *b, int width)
{
    float d = 0;
    for (int j = 0; j < width; j++) d += (a[j] - b[j]) * (a[j] - b[j]);
    return 1 / (1 + 0.5 * (double)d);
}

/* In four lanes, so that the compiler may use vectors without reordering anything by itself. */
static double dot(const double *a, const double *b, size_t n)
{
    double lane[4] = {0};
    size_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int l = 0; l < 4; l++) lane[l] += a[k + (size_t)l] * b[k + (size_t)l];
    for (; k < n; k++) lane[0] += a[k] * b[k];
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

/* In place, lower triangle; false: not positive definite. */
static bool cholesky(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double *ai = a + i * n;
        for (size_t j = 0; j < i; j++) ai[j] = (ai[j] - dot(ai, a + j * n, j)) / a[j * n + j];
        double d = ai[i] - dot(ai, ai, i);
        if (!(d > 0)) return false;
        ai[i] = sqrt(d);
    }
    return true;
}

static void forward(const double *l, size_t n, double *b)
{
    for (size_t i = 0; i < n; i++) b[i] = (b[i] - dot(l + i * n, b, i)) / l[i * n + i];
}

static void backward(const double *l, size_t n, double *b)
{
    for (size_t i = n; i-- > 0;) {
        b[i] /= l[i * n + i];
        for (size_t k = 0; k < i; k++) b[k] -= l[i * n + k] * b[i];
    }
}

/* Every feature that varies, on the scale of its spread. */
static void standardise(const ft_process_data *d, ft_process_shape *out)
{
    memset(out, 0, sizeof *out);
    for (int f = 0; f < d->width && out->used < FT_PROCESS_WIDTH; f++) {
        double sum = 0, square = 0, n = (double)d->count;
        for (size_t i = 0; i < d->count; i++) sum += (double)d->x[i * (size_t)d->width + (size_t)f];
        for (size_t i = 0; i < d->count; i++) {
            double c = (double)d->x[i * (size_t)d->width + (size_t)f] - sum / n;
            square += c * c;
        }
        double spread = sqrt(square / n);
        if (!(spread > 1e-6) || !isfinite(spread)) continue;
        out->feature[out->used] = (uint8_t)f;
        out->center[out->used] = sum / n;
        out->scale[out->used++] = 1 / spread;
    }
}

static void scaled(const ft_process_data *d, const ft_process_shape *s, size_t row, float *out)
{
    for (int j = 0; j < s->used; j++)
        out[j] = (float)(((double)d->x[row * (size_t)d->width + s->feature[j]] - s->center[j]) * s->scale[j]);
}

/* The gradient of the log marginal likelihood in the logs of scales, strength and noise. */
typedef struct tuning {
    size_t n;
    int width;
    float *z;              /* n x width, standardised */
    double *y, *w;         /* targets, noise multipliers */
    double *k, *l, *u, *a; /* n x n: kernel, factor, its inverse transposed; n */
} tuning;

static double likelihood(tuning *t, const double *x, double *gradient)
{
    size_t n = t->n, m = (size_t)t->width;
    double rate[FT_PROCESS_WIDTH], strength = exp(x[m]), noise = exp(x[m + 1]), fit = 0, logdet = 0;
    for (size_t j = 0; j < m; j++) rate[j] = exp(2 * x[j]);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            double d = 0;
            for (size_t j = 0; j < m; j++) {
                double c = (double)(t->z[i * m + j] - t->z[k * m + j]);
                d += rate[j] * c * c;
            }
            t->k[i * n + k] = t->l[i * n + k] = strength / (1 + 0.5 * d);
        }
        t->k[i * n + i] = strength;
        t->l[i * n + i] = strength + noise * t->w[i];
    }
    if (!cholesky(t->l, n)) return -INFINITY;
    memcpy(t->a, t->y, n * sizeof *t->a);
    forward(t->l, n, t->a);
    fit = dot(t->a, t->a, n);
    backward(t->l, n, t->a);
    for (size_t j = 0; j < n; j++) {
        logdet += log(t->l[j * n + j]);
        t->u[j * n + j] = 1 / t->l[j * n + j];
        for (size_t i = j + 1; i < n; i++)
            t->u[j * n + i] = -dot(t->l + i * n + j, t->u + j * n + j, i - j) / t->l[i * n + i];
    }
    memset(gradient, 0, (m + 2) * sizeof *gradient);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++) {
            double s = dot(t->u + i * n + i, t->u + k * n + i, n - i); /* of the inverse */
            double g = (i == k ? 0.5 : 1) * (t->a[i] * t->a[k] - s), share = t->k[i * n + k] / strength;
            gradient[m] += g * t->k[i * n + k];
            if (i == k) {
                gradient[m + 1] += g * noise * t->w[i];
                continue;
            }
            double slope = -g * strength * share * share; /* of 1 / (1 + d / 2), times 2 for the log of a scale */
            for (size_t j = 0; j < m; j++) {
                double c = (double)(t->z[i * m + j] - t->z[k * m + j]);
                gradient[j] += slope * rate[j] * c * c;
            }
        }
    return -0.5 * fit - logdet;
}

static void climb(tuning *t, double *x)
{
    const double mean_kept = ft__k_learning_process_climb.mean_kept, mean_new = ft__k_learning_process_climb.mean_new;
    const double square_kept = ft__k_learning_process_climb.square_kept,
                 square_new = ft__k_learning_process_climb.square_new;
    size_t m = (size_t)t->width;
    double g[FT_PROCESS_WIDTH + 2], mean[FT_PROCESS_WIDTH + 2] = {0}, square[FT_PROCESS_WIDTH + 2] = {0};
    double best[FT_PROCESS_WIDTH + 2], most = -INFINITY, b1 = 1, b2 = 1;
    memcpy(best, x, (m + 2) * sizeof *x);
    for (int step = 0; step < STEPS; step++) {
        double value = likelihood(t, x, g);
        if (!isfinite(value)) break;
        for (size_t j = 0; j < m;
             j++) { /* scales fade unless they explain something: the prior of exp(x) is exponential */
            value -= FT_K_LEARNING_PROCESS_PRIOR * exp(x[j]);
            g[j] -= FT_K_LEARNING_PROCESS_PRIOR * exp(x[j]);
        }
        if (value > most) {
            most = value;
            memcpy(best, x, (m + 2) * sizeof *x);
        }
        b1 *= mean_kept, b2 *= square_kept;
        double rate = ft__k_learning_process_climb.rate *
                      (1 - ft__k_learning_process_climb.slows * (double)step / STEPS);
        for (size_t j = 0; j < m + 2; j++) {
            mean[j] = mean_kept * mean[j] + mean_new * g[j];
            square[j] = square_kept * square[j] + square_new * g[j] * g[j];
            x[j] += rate * mean[j] / (1 - b1) / (sqrt(square[j] / (1 - b2)) + 1e-3);
            x[j] = fmin(fmax(x[j], j < m ? -7 : -16), 3);
        }
    }
    memcpy(x, best, (m + 2) * sizeof *x);
}

ft_status ft__process_tune(const ft_process_data *d, size_t most, ft_process_shape *out, ft_error *err)
{
    standardise(d, out);
    size_t n = d->count < most ? d->count : most, m = (size_t)out->used;
    double variance = 0, x[FT_PROCESS_WIDTH + 2];
    tuning t = {.n = n, .width = out->used};
    t.z = malloc((n * m + 1) * sizeof *t.z);
    t.y = malloc((2 * n + 1) * sizeof *t.y);
    t.k = malloc((3 * n * n + n + 1) * sizeof *t.k);
    bool ok = t.z && t.y && t.k;
    if (ok && n > 4 && m) {
        t.w = t.y + n;
        t.l = t.k + n * n;
        t.u = t.l + n * n;
        t.a = t.u + n * n;
        for (size_t i = 0; i < n; i++) {
            size_t row = i * d->count / n;
            scaled(d, out, row, t.z + i * m);
            t.y[i] = d->target[row];
            t.w[i] = 1 / fmax(d->weight[row], 1e-3);
            variance += t.y[i] * t.y[i] / (double)n;
        }
        variance = fmax(variance, 1e-8);
        for (size_t j = 0; j < m; j++) x[j] = log(ft__k_learning_process_start.scale / sqrt((double)m));
        x[m] = log(ft__k_learning_process_start.signal * variance);
        x[m + 1] = log(ft__k_learning_process_start.noise * variance);
        climb(&t, x);
        out->strength = exp(x[m]);
        out->noise = exp(x[m + 1]);
        int kept = 0;
        for (size_t j = 0; j < m; j++) {
            if (x[j] < log(FT_K_LEARNING_PROCESS_FADED)) continue;
            out->feature[kept] = out->feature[j];
            out->center[kept] = out->center[j];
            out->scale[kept++] = out->scale[j] * exp(x[j]);
        }
        out->used = kept;
    } else {
        out->used = 0;
    }
    free(t.k);
    free(t.y);
    free(t.z);
    return ok ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory for a process of %zu cases", n);
}

/* Cases by how much the ones before leave unexplained; l is n x most. Returns how many are worth it. */
static size_t pick_points(const float *z, int width, size_t n, size_t most, double enough, float *l, double *left,
                          size_t *picked)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) left[i] = 1;
    while (count < most) {
        size_t p = 0;
        for (size_t i = 1; i < n; i++)
            if (left[i] > left[p]) p = i;
        if (left[p] < enough) break;
        double root = sqrt(left[p]);
        for (size_t i = 0; i < n; i++) {
            float s = 0;
            for (size_t k = 0; k < count; k++) s += l[i * most + k] * l[p * most + k];
            double v = (kernel(z + i * (size_t)width, z + p * (size_t)width, width) - (double)s) / root;
            l[i * most + count] = (float)v;
            left[i] -= v * v;
        }
        left[p] = 0;
        picked[count++] = p;
    }
    return count;
}

/* Normal equations of the subset of regressors: (Kpn W Knp + noise Kpp) a = Kpn W y. `k` is n x most, its first m
 * columns K(case, point). */
static void assemble(const ft_process_data *d, const ft_process_shape *s, const float *k, size_t most,
                     const size_t *picked, size_t m, double *a, double *b)
{
    memset(a, 0, m * m * sizeof *a);
    memset(b, 0, m * sizeof *b);
    for (size_t i = 0; i < d->count; i++) {
        const float *row = k + i * most;
        for (size_t j = 0; j < m; j++) {
            double c = d->weight[i] * (double)row[j], *aj = a + j * m;
            b[j] += c * d->target[i];
            for (size_t l = 0; l <= j; l++) aj[l] += c * (double)row[l];
        }
    }
    for (size_t j = 0; j < m; j++)
        for (size_t l = 0; l <= j; l++)
            a[j * m + l] += (s->noise + (j == l ? 1e-6 * s->strength : 0)) * (double)k[picked[j] * most + l];
}

/* Points and weights in blocks of lanes. */
static void lay_out(const float *z, const size_t *picked, size_t m, size_t width, const double *b, double strength,
                    float *out)
{
    for (size_t j = 0; j < m; j++) {
        float *block = out + j / FT_PROCESS_LANES * FT_PROCESS_LANES * (width + 1);
        size_t lane = j % FT_PROCESS_LANES;
        for (size_t f = 0; f < width; f++) block[f * FT_PROCESS_LANES + lane] = z[picked[j] * width + f];
        block[width * FT_PROCESS_LANES + lane] = (float)(b[j] * strength);
    }
}

ft_status ft__process_fit(const ft_process_data *d, const ft_process_shape *s, size_t most, ft_process *out,
                          float **values, ft_error *err)
{
    size_t n = d->count, width = (size_t)s->used, m = 0;
    *values = NULL;
    memset(out, 0, sizeof *out);
    if (!n || !width) return FT_OK;
    if (most > FT_PROCESS_POINTS) most = FT_PROCESS_POINTS;
    if (most > n) most = n;
    float *z = malloc(n * width * sizeof *z), *k = malloc(n * most * sizeof *k), *laid = NULL;
    double *left = malloc(n * sizeof *left), *a = malloc((most * most + most) * sizeof *a);
    size_t *picked = malloc(most * sizeof *picked);
    bool ok = z && k && left && a && picked;
    for (size_t i = 0; ok && i < n; i++) scaled(d, s, i, z + i * width);
    if (ok) m = pick_points(z, s->used, n, most, 1e-4, k, left, picked);
    for (size_t i = 0; ok && i < n; i++)
        for (size_t j = 0; j < m; j++)
            k[i * most + j] = (float)(s->strength * kernel(z + i * width, z + picked[j] * width, s->used));
    ft_process p = {.blocks = (uint32_t)((m + FT_PROCESS_LANES - 1) / FT_PROCESS_LANES), .width = (uint32_t)width};
    if (ok) laid = calloc(ft__process_values(&p) + 1, sizeof *laid);
    ok = ok && laid;
    bool definite = false;
    if (ok && m) {
        double *b = a + m * m;
        assemble(d, s, k, most, picked, m, a, b);
        definite = cholesky(a, m);
        if (definite) {
            forward(a, m, b);
            backward(a, m, b);
            lay_out(z, picked, m, width, b, s->strength, laid);
            for (size_t j = 0; j < width; j++) {
                p.feature[j] = s->feature[j];
                p.center[j] = (float)s->center[j];
                p.scale[j] = (float)s->scale[j];
            }
            *out = p;
            *values = laid;
        }
    }
    if (!definite) free(laid);
    free(z);
    free(k);
    free(left);
    free(a);
    free(picked);
    return ok ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory for a process of %zu cases", n);
}
