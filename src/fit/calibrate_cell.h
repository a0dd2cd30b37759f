/* One variant of one family on the GPU that is calibrated. */
#ifndef FT_FIT_CALIBRATE_CELL_H
#define FT_FIT_CALIBRATE_CELL_H
#include "fit/cell.h"
#include "kernel/calibration.h"

/* Fewer points than this teach a variant nothing by themselves: it inherits. */
enum { FT_CALIBRATE_LEAST = 4 };

typedef struct ft_calibrate_cell {
    const ft_predictor *base;
    const ft_rows *rows; /* of one GPU */
    const ft_family *family;
    int variant;
    uint32_t *index; /* rows to fit */
    size_t count, room;
    ft_calibrated out; /* its indices are relative to the arrays below */
    ft_tree *trees, *sigma;
    float *values;
    double tried;        /* mean error on points left out */
    bool refitted;       /* constants moved */
    const char *learned; /* "trees", "process", ...: what was added */
    ft_status status;
    ft_error error;
} ft_calibrate_cell;

ft_status ft__calibrate_cell(ft_calibrate_cell *cell, ft_error *err);
void ft__calibrate_cell_free(ft_calibrate_cell *cell);
#endif
