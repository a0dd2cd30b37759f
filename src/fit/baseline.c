/* The linear-regression baseline ("Li et al." in NeuSight's paper): latency against the two roofline times, per GPU.
 *
 * Non-negative coefficients by projected coordinate descent on the normal equations of the relative error
 * sum ((a + b x + c y) / t - 1)^2: three unknowns, so a few hundred sweeps are exact enough and cost nothing. */
#include "fit/baseline.h"

#include <math.h>
#include <string.h>

#include "fit/learning_constants.h"
#include "graph/operator.h"
#include "kernel/kernel.h"

static void add_rows(const ft_cell *cell, const ft_cell_gpu *g, double weight, double a[3][3], double b[3])
{
    const ft_device *device = &cell->rows->gpus[g->gpu];
    size_t step = g->count / 4000 + 1;
    for (size_t i = 0; i < g->count; i += step) {
        const ft_row *row = &cell->rows->at[g->index[i]];
        double x[3] = {1e-3 / row->ms,
                       ft__op_flops(&row->op) / (ft__peak_tflops(device, row->op.dtype) * 1e9) / row->ms,
                       ft__op_bytes(&row->op) / (device->memory_gbps * 1e6) / row->ms};
        for (int j = 0; j < 3; j++) {
            b[j] += weight * x[j];
            for (int k = 0; k < 3; k++) a[j][k] += weight * x[j] * x[k];
        }
    }
}

void ft__baseline_linear(const ft_cell *cell, const ft_cell_gpu *gpu, ft_expert *out)
{
    double a[3][3] = {{0}}, b[3] = {0}, x[3];
    memcpy(x, ft__k_learning_linear_start, sizeof x);
    *out = gpu ? gpu->expert : cell->world;
    memset(out->theta, 0, sizeof out->theta);
    out->family[0] = '~';
    strncpy(out->family + 1, cell->family->name, sizeof out->family - 2);
    out->tree_count = out->sigma_count = 0;
    out->tree_first = out->sigma_first = 0;
    for (int g = 0; g < cell->gpu_count; g++)
        if (!gpu || gpu == &cell->gpus[g])
            add_rows(cell, &cell->gpus[g], 1.0 / (double)(cell->gpus[g].count + 1), a, b);
    for (int sweep = 0; sweep < 500; sweep++)
        for (int j = 0; j < 3; j++) {
            double rest = b[j];
            for (int k = 0; k < 3; k++)
                if (k != j) rest -= a[j][k] * x[k];
            x[j] = a[j][j] > 0 ? fmax(0, rest / a[j][j]) : 0;
        }
    for (int j = 0; j < 3; j++) out->theta[j] = x[j];
}
