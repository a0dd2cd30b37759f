/* Points measured on one GPU in, a calibration of a predictor out. */
#ifndef FT_FIT_CALIBRATE_H
#define FT_FIT_CALIBRATE_H
#include "fit/fit.h"
#include "fit/measurements.h"

typedef struct ft_calibrate_options {
    const ft_predictor *base; /* without a calibration of its own */
    const ft_rows *rows;      /* of one GPU; those held out judge, the others are fitted */
    const char *machine;      /* a JSON object: what the measuring side said about it; NULL: nothing */
    double minutes;           /* how long was measured, for the record */
    int threads;
    ft_progress progress;
    void *progress_context;
} ft_calibrate_options;

/* Errors of points held out, before and after, of a variant, or of a family as a whole (variant ""). Fractions; NaN
 * where nothing was held out. */
typedef struct ft_calibration_line {
    char family[24], variant[24];
    size_t points, held_out;
    double before, after; /* mean error */
    double inside;        /* share of the truth in low..high, after */
    double tried;         /* mean error of fitted points, each by models that had not seen it; NaN: not fitted */
    bool refitted;        /* constants moved */
    const char *learned;  /* what was added: "trees", "process", ...; "" */
} ft_calibration_line;

typedef struct ft_calibration_table {
    ft_calibration_line *lines;
    size_t count;
} ft_calibration_table;
void ft__calibration_table_free(ft_calibration_table *t);

/* The file's bytes (free()) and the table. Same points, same bytes, on any number of threads. */
ft_status ft__calibrate(const ft_calibrate_options *options, void **file, size_t *length, ft_calibration_table *table,
                        ft_error *err);
#endif
