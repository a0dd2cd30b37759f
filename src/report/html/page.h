/* Forecasts as one HTML page that needs nothing else: text, tables, and the pictures of svg_pictures.h drawn into it.
 * There is no script; what a hover shows stands in a table too. Every function appends to `out`; false: out of
 * memory. */
#ifndef FT_REPORT_HTML_PAGE_H
#define FT_REPORT_HTML_PAGE_H
#include "report/html/svg_pictures.h"
#include "report/text/infer_screen.h"
#include "report/text/scale_screen.h"
#include "report/text/screen.h"
#include "report/text/step_screen.h"
#include "study/warned.h"

bool ft__page_step(ft_text *out, const ft_step_view *v);
bool ft__page_infer(ft_text *out, const ft_infer *r);
bool ft__page_scale(ft_text *out, const ft_scale *s);
/* One kernel on one GPU or on several. */
bool ft__page_kernel(ft_text *out, const ft_screen_case *cases, size_t count, double quantile);
/* A kernel over a range of one size: points of GPU g are points[g * count .. ]. */
typedef struct ft_page_sweep {
    const char *op, *key, *fixed; /* fixed: the sizes that stay, in words */
    const ft_device *devices;     /* one per GPU */
    size_t gpus, count;
    const ft_screen_point *points;
    const char *warnings; /* of the whole range, one per line */
} ft_page_sweep_case;
bool ft__page_sweep(ft_text *out, const ft_page_sweep_case *s);

/* Serving over its load: figures of every point, GPU after GPU; objectives of 0 are none. */
typedef struct ft_page_loads {
    const double *ttft_ms, *per_user, *per_gpu; /* NAN or 0: none */
    double slo_ttft_ms, slo_tpot_ms;
} ft_page_loads;
/* Figures of `rows` answers of serving, into three times as many at `room`; objectives as their request has them. */
ft_page_loads ft__loads_of(json_t *const *answers, size_t rows, double *room);
/* Any command over a range of one number, as its answers say it. Figures of GPU g are y[g * count ..]; NAN: none. */
typedef struct ft_page_range {
    const char *title, *fixed, *key;
    const char *heading, *figure; /* what the curve shows: "Step", "step ms" */
    const char *const *gpus;
    size_t gpu_count, count, columns;
    const double *x, *y, *low, *high; /* low, high: NULL where there is no interval */
    const char *const *head;          /* of the table, after the GPU and the key */
    const char *align;                /* a letter per column: l or r */
    const char *const *cells;         /* rows of `columns` texts */
    const ft_page_loads *loads;       /* NULL: not of serving */
    const char *warnings;             /* of the whole range, one per line */
} ft_page_range;
/* What stands at the line of an objective. */
void ft__page_objective(double ms, char out[48]);
bool ft__page_loads(ft_text *out, const ft_page_range *r); /* page_load.c: its sections */
bool ft__page_range(ft_text *out, const ft_page_range *r);
bool ft__picture_range(ft_text *out, const ft_frame *f, const ft_page_range *r);
/* The same step on several GPUs. `title`: as the screen prints it. */
bool ft__page_steps(ft_text *out, const char *title, const ft_step_case *cases, size_t count, double quantile);
bool ft__picture_steps(ft_text *out, const ft_frame *f, const ft_step_case *cases, size_t count);
/* Opens a page with a screen's title: its first line is the heading, the rest describes the request. */
void ft__page_open_as(ft_text *out, const char *title);

/* Single pictures, each a file: of a step by name, of the others the one they are known by. */
/* FT_E_NAME: no such picture of this step. */
ft_status ft__picture_step(ft_text *out, const ft_frame *f, const ft_step_view *v, const char *name, ft_error *err);
bool ft__picture_infer(ft_text *out, const ft_frame *f, const ft_infer *r, bool rate);
bool ft__picture_scale(ft_text *out, const ft_frame *f, const ft_scale *s);
bool ft__picture_kernel(ft_text *out, const ft_frame *f, const ft_screen_case *cases, size_t count);
bool ft__picture_sweep(ft_text *out, const ft_frame *f, const ft_page_sweep_case *s);

/* Figures as comma-separated values: a row per kernel of a step; a row per batch and length. */
bool ft__csv_step(ft_text *out, const ft_step_view *v);
bool ft__csv_infer(ft_text *out, const ft_infer *r);

/* -- what pages are made of (page.c) ----------------------------------------------------------- */

void ft__page_open(ft_text *out, const char *title, const char *subtitle);
void ft__page_close(ft_text *out);
void ft__page_section(ft_text *out, const char *id, const char *title, const char *words);
void ft__page_section_end(ft_text *out);
/* Figures in a row: what it is, the figure, a remark. Open and close with these. */
void ft__page_figures(ft_text *out);
void ft__page_figure(ft_text *out, const char *class, const char *label, const char *figure, const char *remark);
void ft__page_figures_end(ft_text *out);
/* What the screen says on stderr: a list of `lines`, nothing where there are none. */
void ft__page_warnings(ft_text *out, const char *lines);
/* The same of several cases: those that only some have, with their names. */
void ft__page_warned(ft_text *out, ft_warned_at *at, const void *cases, size_t count);
/* Details that open on demand. */
void ft__page_details(ft_text *out, const char *summary);
void ft__page_details_end(ft_text *out);

/* A table; `columns` has a letter per column: l, r (figures), w (words that wrap). */
typedef struct ft_page_table {
    ft_text *out, cell;
    const char *columns;
    const char *const *head;
    bool stacked; /* has words that wrap: on a phone a row is a paragraph, the words under its figures */
    size_t at;
} ft_page_table;
void ft__page_table_open(ft_page_table *t, ft_text *out, const char *label, const char *columns,
                         const char *const *head);
void ft__page_table_cell(ft_page_table *t, const char *text);
void ft__page_table_figure(ft_page_table *t, double value, int digits); /* empty where it is nought */
void ft__page_table_close(ft_page_table *t);
#endif
