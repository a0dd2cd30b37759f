/* Points that `foretell calibrate` measured on one GPU: JSON Lines in, rows to fit out (docs/calibrate.md). */
#ifndef FT_REQUEST_CALIBRATION_POINTS_H
#define FT_REQUEST_CALIBRATION_POINTS_H
#include "base/arena.h"
#include "base/text.h"
#include "fit/calibrate.h"

typedef struct ft_points {
    ft_rows rows; /* of one GPU; names of operators live in the arena */
    ft_arena *arena;
    ft_text machine;  /* JSON object: what the header said beside the GPU */
    ft_text warnings; /* one per line */
    double minutes;   /* of measuring in the points that were taken */
    size_t left_out;  /* points behind the last minute asked for */
} ft_points;

/* `minutes`: only points that were there by then; 0: all. Plain or gzipped. A last line that was cut off is dropped
 * with a warning. */
ft_status ft__points_read(const char *path, double minutes, ft_points *out, ft_error *err);
void ft__points_free(ft_points *p);
#endif
