/* Fitting the physical constants of a family to measured rows. */
#ifndef FT_FIT_CONSTANTS_H
#define FT_FIT_CONSTANTS_H
#include "fit/measurements.h"
#include "kernel/family.h"

/* One measured case by index, so that subsets cost nothing. */
typedef struct ft_subset {
    const ft_rows *rows;
    const uint32_t *index;
    size_t count;
} ft_subset;

/* Modelled time of a row under `theta`, timing protocol included. */
double ft__row_model_ms(const ft_family *family, const ft_rows *rows, const ft_row *row, const double *theta, bool want,
                        ft_physics *out);

/* Minimises the robust log error of `subset` with Gaussian priors around `center` (spreads from the family, scaled by
 * `prior`: 1 for the world, less to hold a GPU closer to it). Writes theta; center may be the same array. */
void ft__fit_constants(const ft_family *family, ft_subset subset, const double *center, double prior, int iterations,
                       double *theta);
#endif
