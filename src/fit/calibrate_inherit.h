/* What unmeasured variants of a calibrated GPU take over. */
#ifndef FT_FIT_CALIBRATE_INHERIT_H
#define FT_FIT_CALIBRATE_INHERIT_H
#include "fit/calibrate_cell.h"

/* Sets the eager gap of every cell from points that are eager calls, and appends experts for variants that were not
 * measured. `out` has room for ft__inherit_most() records; *count grows. */
size_t ft__inherit_most(void);
ft_status ft__inherit(const ft_predictor *base, const ft_rows *rows, ft_calibrate_cell *cells, size_t cell_count,
                      ft_calibrated *out, size_t *count, ft_error *err);
#endif
