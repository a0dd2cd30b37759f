/* calibrate_inherit.c: constants that belong to the GPU and not to the variant.
 *
 * What a launch costs and which share of the bandwidth is reached move together in all variants of a family: where the
 * measured ones moved, the others follow by the same factor. The eager gap is the host's: the median over the calls
 * that were timed, of the same family where there are any. A variant that the predictor knows from this very GPU keeps
 * its constants. */
#include "fit/calibrate_inherit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "kernel/kernel.h"

typedef struct gaps {
    double *at;                          /* by family, then all */
    double family[FT_MAX_FAMILIES], all; /* medians; 0: none */
} gaps;

static double median(double *at, size_t n)
{
    if (n) qsort(at, n, sizeof *at, ft__ascending);
    return ft__median(at, n);
}

static const double *theta_for(const ft_predictor *base, const ft_rows *rows, const ft_calibrate_cell *cells,
                               size_t cell_count, const ft_family *family, int variant)
{
    for (size_t i = 0; i < cell_count; i++)
        if (cells[i].family == family && cells[i].variant == variant) return cells[i].out.expert.theta;
    ft_kinship kinship;
    const ft_expert *e = ft__predictor_expert(base, family, variant, &rows->gpus[0], &kinship);
    return e ? e->theta : NULL;
}

/* The gap behind which the kernel gives the measured call; false: the call is no longer than its kernel. */
static bool solve_gap(const ft_rows *rows, const ft_row *row, const ft_family *family, const double *theta, double *out)
{
    const ft_parameter *p = &family->parameters[FT_THETA_GAP_US];
    double low = log(p->low), high = log(p->high);
    ft_row kernel = *row;
    ft_physics ph;
    kernel.op.timing = FT_TIMING_DEVICE;
    double ms = ft__row_model_ms(family, rows, &kernel, theta, false, &ph);
    if (ft__op_time(ms, p->low * 1e-3) >= row->ms) return false;
    for (int i = 0; i < 40; i++) {
        double middle = 0.5 * (low + high);
        if (ft__op_time(ms, exp(middle) * 1e-3) < row->ms)
            low = middle;
        else
            high = middle;
    }
    *out = exp(low);
    return true;
}

static void find_gaps(const ft_predictor *base, const ft_rows *rows, const ft_calibrate_cell *cells, size_t cell_count,
                      gaps *g)
{
    size_t all = 0;
    for (int f = 0; f < ft__family_count; f++) {
        size_t n = 0;
        for (size_t i = 0; i < rows->count; i++) {
            int variant;
            const ft_row *row = &rows->at[i];
            if (row->held_out || row->op.timing != FT_TIMING_OP || ft__family_of(&row->op, &variant) != ft__families[f])
                continue;
            const double *theta = theta_for(base, rows, cells, cell_count, ft__families[f], variant);
            if (theta && solve_gap(rows, row, ft__families[f], theta, &g->at[n])) n++;
        }
        for (size_t i = 0; i < n; i++) g->at[rows->count + all++] = g->at[i];
        g->family[f] = median(g->at, n);
    }
    g->all = median(g->at + rows->count, all);
}

static double gap_of(const gaps *g, int family)
{
    const ft_parameter *p = &ft__families[family]->parameters[FT_THETA_GAP_US];
    double us = g->family[family] > 0 ? g->family[family] : g->all;
    return us > 0 ? fmin(fmax(us, p->low), p->high) : 0;
}

/* By which factor the measured variants of a family moved a constant; 1 where none did. */
static double moved(const ft_predictor *base, const ft_rows *rows, const ft_calibrate_cell *cells, size_t cell_count,
                    const ft_family *family, int constant)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < cell_count; i++) {
        ft_kinship kinship;
        if (cells[i].family != family || !cells[i].refitted) continue;
        const ft_expert *e = ft__predictor_expert(base, family, cells[i].variant, &rows->gpus[0], &kinship);
        if (!e || kinship == FT_KIN_SELF || !(e->theta[constant] > 0)) continue;
        sum += log(cells[i].out.expert.theta[constant] / e->theta[constant]);
        n++;
    }
    return n > 0 ? exp(sum / n) : 1;
}

static bool follow(const ft_predictor *base, const ft_rows *rows, const ft_calibrate_cell *cells, size_t cell_count,
                   const ft_family *family, double *theta)
{
    bool any = false;
    for (int j = 0; j < family->parameter_count; j++) {
        const ft_parameter *p = &family->parameters[j];
        if (j != FT_THETA_LAUNCH_US && strcmp(p->name, "bandwidth_efficiency")) continue;
        double factor = moved(base, rows, cells, cell_count, family, j);
        any = any || fabs(log(factor)) > 1e-6;
        theta[j] = fmin(fmax(theta[j] * factor, p->low), p->high);
    }
    return any;
}

size_t ft__inherit_most(void) { return (size_t)ft__family_count * FT_MAX_VARIANTS; }

ft_status ft__inherit(const ft_predictor *base, const ft_rows *rows, ft_calibrate_cell *cells, size_t cell_count,
                      ft_calibrated *out, size_t *count, ft_error *err)
{
    gaps g = {.at = malloc((2 * rows->count + 1) * sizeof *g.at)};
    if (!g.at) return ft__no_memory(err);
    find_gaps(base, rows, cells, cell_count, &g);
    free(g.at);
    for (size_t i = 0; i < cell_count; i++) {
        double gap = gap_of(&g, ft__family_find(cells[i].family->name));
        if (gap > 0) cells[i].out.expert.theta[FT_THETA_GAP_US] = gap;
    }
    const ft_device *device = &rows->gpus[0];
    for (int f = 0; f < ft__family_count; f++)
        for (int v = 0; v < ft__families[f]->variant_count; v++) {
            const ft_family *family = ft__families[f];
            bool own = false;
            for (size_t i = 0; i < cell_count; i++) own = own || (cells[i].family == family && cells[i].variant == v);
            ft_kinship kinship;
            const ft_expert *e = own ? NULL : ft__predictor_expert(base, family, v, device, &kinship);
            if (!e || strcmp(e->variant, family->variant_name(v))) continue;
            ft_calibrated c = {.expert = *e};
            bool changed = kinship != FT_KIN_SELF && follow(base, rows, cells, cell_count, family, c.expert.theta);
            double gap = gap_of(&g, f);
            if (gap > 0) c.expert.theta[FT_THETA_GAP_US] = gap, changed = true;
            if (!changed) continue;
            memset(c.expert.gpu, 0, sizeof c.expert.gpu);
            strncpy(c.expert.gpu, device->name, sizeof c.expert.gpu - 1);
            c.expert.flags |= FT_EXPERT_INHERITED | (uint32_t)kinship << FT_EXPERT_KIN_SHIFT;
            out[(*count)++] = c;
        }
    return FT_OK;
}
