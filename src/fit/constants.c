/* Gauss-Newton with damping on log time.
 *
 * The unknowns are the logs of the constants; the residual of a row is log(model / measured), weighted by Huber's rule
 * (rows further off than 20 % count linearly: tables hold autotuner accidents that no physics explains; than 5 % in
 * families whose library falls to slower kernels in one case of five, so that constants are those of the others);
 * priors enter
 * as further residuals (x - x0) / spread. The Jacobian is by forward differences: the model takes a minimum over tiles,
 * so it has kinks but no jumps in its constants. */
#include "fit/constants.h"

#include <math.h>
#include <string.h>

#include "fit/learning_constants.h"
#include "kernel/kernel.h"

double ft__row_model_ms(const ft_family *family, const ft_rows *rows, const ft_row *row, const double *theta, bool want,
                        ft_physics *out)
{
    const ft_device *device = &rows->gpus[row->gpu];
    out->older = row->older;
    family->physics(device, &row->op, theta, want, out);
    double ms = theta[FT_THETA_LAUNCH_US] * 1e-3 * ft__clock_scale(device) + out->body_ms;
    return row->op.timing == FT_TIMING_OP ? ft__op_time(ms, theta[FT_THETA_GAP_US] * 1e-3) : ms;
}

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

typedef struct system_ {
    double a[FT_MAX_THETA][FT_MAX_THETA], g[FT_MAX_THETA];
    double cost;
} system_;

static double row_residual(const ft_family *f, ft_subset s, size_t i, const double *theta)
{
    ft_physics ph;
    const ft_row *row = &s.rows->at[s.index[i]];
    return log(ft__row_model_ms(f, s.rows, row, theta, false, &ph) / row->ms);
}

static double beyond(const ft_family *f)
{
    return (f->falls ? FT_K_LEARNING_HUBER_OF_FALLS : FT_K_LEARNING_HUBER) / 100.0;
}

static double huber(double r, double d) { return fabs(r) <= d ? 0.5 * r * r : d * (fabs(r) - 0.5 * d); }

static double prior_cost(const ft_family *f, const double *x, const double *x0, double prior, double rows)
{
    double sum = 0;
    for (int j = 0; j < f->parameter_count; j++)
        if (f->parameters[j].spread > 0) {
            double d = (x[j] - x0[j]) / (f->parameters[j].spread * prior);
            sum += 0.5 * d * d;
        }
    return sum * FT_K_LEARNING_PRIOR_STRENGTH * (1 + FT_K_LEARNING_PRIOR_ROWS * rows);
}

static double cost_of(const ft_family *f, ft_subset s, const double *x, const double *x0, double prior, double total)
{
    double theta[FT_MAX_THETA] = {0}, sum = 0, d = beyond(f);
    for (int j = 0; j < f->parameter_count; j++) theta[j] = exp(x[j]);
    for (size_t i = 0; i < s.count; i++)
        sum += (double)s.rows->at[s.index[i]].weight * huber(row_residual(f, s, i, theta), d);
    return sum + prior_cost(f, x, x0, prior, total);
}

static void assemble(const ft_family *f, ft_subset s, const double *x, const double *x0, double prior, double total,
                     system_ *sys)
{
    const double step = ft__k_learning_descent.step, d = beyond(f);
    double theta[FT_MAX_THETA] = {0};
    memset(sys, 0, sizeof *sys);
    for (int j = 0; j < f->parameter_count; j++) theta[j] = exp(x[j]);
    for (size_t i = 0; i < s.count; i++) {
        double r = row_residual(f, s, i, theta), grad[FT_MAX_THETA];
        double w = (double)s.rows->at[s.index[i]].weight;
        double irls = fabs(r) <= d ? w : w * d / fabs(r);
        for (int j = 0; j < f->parameter_count; j++) {
            grad[j] = 0;
            if (f->parameters[j].spread <= 0) continue;
            double keep = theta[j];
            theta[j] = keep * exp(step);
            grad[j] = (row_residual(f, s, i, theta) - r) / step;
            theta[j] = keep;
        }
        for (int j = 0; j < f->parameter_count; j++) {
            if (grad[j] == 0) continue;
            sys->g[j] += irls * grad[j] * r;
            for (int k = 0; k <= j; k++) sys->a[j][k] += irls * grad[j] * grad[k];
        }
    }
    double strength = FT_K_LEARNING_PRIOR_STRENGTH * (1 + FT_K_LEARNING_PRIOR_ROWS * total);
    for (int j = 0; j < f->parameter_count; j++) {
        double spread = f->parameters[j].spread * prior;
        if (spread <= 0) continue;
        sys->a[j][j] += strength / (spread * spread);
        sys->g[j] += strength * (x[j] - x0[j]) / (spread * spread);
    }
}

/* Solves (A + damping * diag A) d = -g by Cholesky; frozen unknowns have an empty row and stay. */
static void solve(const system_ *sys, int n, double damping, double *d)
{
    double l[FT_MAX_THETA][FT_MAX_THETA] = {{0}}, y[FT_MAX_THETA];
    for (int j = 0; j < n; j++)
        for (int k = 0; k <= j; k++) {
            double sum = sys->a[j][k];
            if (j == k) sum += damping * sys->a[j][j] + 1e-9;
            for (int i = 0; i < k; i++) sum -= l[j][i] * l[k][i];
            l[j][k] = j == k ? sqrt(fmax(sum, 1e-12)) : sum / l[k][k];
        }
    for (int j = 0; j < n; j++) {
        double sum = -sys->g[j];
        for (int i = 0; i < j; i++) sum -= l[j][i] * y[i];
        y[j] = sum / l[j][j];
    }
    for (int j = n - 1; j >= 0; j--) {
        double sum = y[j];
        for (int i = j + 1; i < n; i++) sum -= l[i][j] * d[i];
        d[j] = sum / l[j][j];
    }
}

void ft__fit_constants(const ft_family *f, ft_subset s, const double *center, double prior, int iterations,
                       double *theta)
{
    double x[FT_MAX_THETA], x0[FT_MAX_THETA], try[FT_MAX_THETA], d[FT_MAX_THETA], total = 0;
    double damping = ft__k_learning_descent.damping;
    const double furthest = ft__k_learning_descent.furthest;
    int n = f->parameter_count;
    for (int j = 0; j < n; j++) x[j] = x0[j] = log(clamp(center[j], f->parameters[j].low, f->parameters[j].high));
    for (size_t i = 0; i < s.count; i++) total += (double)s.rows->at[s.index[i]].weight;
    system_ sys;
    double cost = cost_of(f, s, x, x0, prior, total);
    for (int it = 0; it < iterations; it++) {
        assemble(f, s, x, x0, prior, total, &sys);
        bool better = false;
        double gain = 0;
        for (int attempt = 0; attempt < 6 && !better; attempt++) {
            solve(&sys, n, damping, d);
            for (int j = 0; j < n; j++)
                try[j] = f->parameters[j].spread > 0 ? clamp(x[j] + clamp(d[j], -furthest, furthest),
                                                             log(f->parameters[j].low), log(f->parameters[j].high))
                                                     : x[j];
            double c = cost_of(f, s, try, x0, prior, total);
            better = c < cost;
            if (better) {
                gain = (cost - c) / cost;
                cost = c;
                memcpy(x, try, sizeof x);
                damping = fmax(damping * ft__k_learning_descent.eased, ft__k_learning_descent.least);
            } else {
                damping *= ft__k_learning_descent.harder;
            }
        }
        if (!better || gain < ft__k_learning_descent.enough) break;
    }
    for (int j = 0; j < n; j++) theta[j] = exp(x[j]);
    for (int j = n; j < FT_MAX_THETA; j++) theta[j] = 0;
}
