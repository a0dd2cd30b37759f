/* Answers as text for people. Every function appends to `out`; nothing is printed here. */
#ifndef FT_REPORT_TEXT_SCREEN_H
#define FT_REPORT_TEXT_SCREEN_H
#include "foretell.h"
#include "report/text/style.h"

/* One kernel on one GPU: a calm screen. `quantile` is the one the interval was made with. */
void ft__screen_kernel(ft_text *out, const ft_style *style, const ft_op *op, const ft_device *device,
                       const ft_forecast *f, double quantile);

/* The same kernel on several GPUs, one row each. */
typedef struct ft_screen_case {
    const ft_device *device;
    ft_op op;
    ft_forecast forecast;
    ft_text warnings; /* one per line; of who made the case */
} ft_screen_case;
bool ft__screen_compare(ft_text *out, const ft_style *style, const ft_screen_case *cases, size_t count,
                        double quantile);

/* A kernel over a range of one size: a table, or CSV, and the curve. */
typedef struct ft_screen_point {
    double x;
    ft_forecast forecast;
} ft_screen_point;
bool ft__screen_sweep(ft_text *out, const ft_style *style, const char *key, const ft_screen_point *points,
                      size_t count);
bool ft__csv_sweep(ft_text *out, const char *key, bool header, const ft_device *device, const ft_screen_point *points,
                   size_t count);
/* A curve as dots, `columns` wide and `rows` high with its axes. */
typedef struct ft_plot {
    const double *x, *y;
    size_t count;
    int columns, rows;
    const char *x_name, *y_name;
} ft_plot;
void ft__plot(ft_text *out, const ft_style *style, const ft_plot *p);
#endif
