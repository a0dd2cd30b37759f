/* The pictures that forecasts are shown in. Each function appends one <svg>; false: out of memory. */
#ifndef FT_REPORT_HTML_SVG_PICTURES_H
#define FT_REPORT_HTML_SVG_PICTURES_H
#include "report/html/svg.h"
#include "study/step_view.h"

/* -- roofline: every kernel a dot (svg_roofline.c) --------------------------------------------- */

typedef struct ft_roof_dot {
    const char *name;        /* shown on hovering, before the figures */
    int at;                  /* its place among the kernels of the answer, for a live picture; -1: none */
    double flops, bytes, ms; /* of one launch */
    double total_ms;         /* dots are as large as what they take */
    ft_bound bound;
} ft_roof_dot;
typedef struct ft_roof {
    double gbps, tflops, vector_tflops; /* vector 0: the same, or unknown */
    const char *format;                 /* whose peak: "bf16" */
} ft_roof;
ft_roof ft__roof_of(const ft_device *device, ft_dtype dtype);
bool ft__svg_roofline(ft_text *out, const ft_frame *f, const char *title, const ft_roof *roof, const ft_roof_dot *dots,
                      size_t count);

/* -- rows of stacked bars, of intervals, curves (svg_bars.c, svg_curve.c) ---------------------- */

enum { FT_BAR_PARTS = 8, FT_CURVES = 16, FT_CURVE_COLOURS = 8 };
typedef struct ft_bar_row {
    const char *label, *remark; /* remark: at the bar's end */
    double part[FT_BAR_PARTS];
    bool unfit;       /* does not fit: its remark says so, and stands out */
    const char *look; /* class of its one part, in place of the key's; NULL */
} ft_bar_row;
typedef struct ft_bars {
    const char *id, *title, *unit;
    const ft_key *keys; /* those whose parts are nought in all rows, or that have no name, are left out */
    size_t key_count;
    const ft_bar_row *rows;
    size_t count;
    double whole; /* the length of a full bar; 0: the longest one's */
} ft_bars;
bool ft__svg_bars(ft_text *out, const ft_frame *f, const ft_bars *b);

typedef struct ft_range_row {
    const char *label;
    double value, low, high;
} ft_range_row;
/* Each row's interval as a share of its own value. */
bool ft__svg_ranges(ft_text *out, const ft_frame *f, const char *id, const char *title, const ft_range_row *rows,
                    size_t count);

typedef struct ft_curve {
    const char *name;
    const double *x, *y, *low, *high; /* low, high: an interval drawn behind it; NULL */
    size_t count;
    const bool *unfit; /* points that do not fit are rings; NULL: all fit */
    bool steps;        /* up first, then along: what lies between two points costs what the larger costs */
    bool thin, no_line, no_dots;
} ft_curve;
typedef struct ft_curves {
    const char *id, *title, *x_name, *y_name;
    bool log_x, log_y;
    bool near;           /* y begins below the least of its values, not at nought */
    const double *at;    /* where on x a request stands; NULL */
    const char *at_name; /* a limit on x, with its name; NULL: no limit */
    double limit;        /* drawn across; 0: none */
    const char *limit_name;
    const char *rings; /* what rings say; NULL: that it does not fit */
    const char *desc;  /* for who cannot see it; NULL: of how many curves it is */
    ft_curve curve[FT_CURVES];
    size_t count;
} ft_curves;
bool ft__svg_curves(ft_text *out, const ft_frame *f, const ft_curves *c);

/* -- a step ------------------------------------------------------------------------------------ */

/* Where the time goes; memory at its peak, by what it is. */
bool ft__svg_phases(ft_text *out, const ft_frame *f, const ft_step_view *v);
bool ft__svg_peak(ft_text *out, const ft_frame *f, const ft_step_view *v);
bool ft__svg_step_roofline(ft_text *out, const ft_frame *f, const ft_step_view *v);
/* Streams of one GPU, or of the slowest stage's (svg_timeline.c). */
bool ft__svg_timeline(ft_text *out, const ft_frame *f, const ft_step_view *v);
/* Who runs which micro-batch when (svg_stages.c); only of a pipeline. */
bool ft__svg_stages(ft_text *out, const ft_frame *f, const ft_step_view *v);
/* Memory over the step, by what it is (svg_memory.c). */
bool ft__svg_memory(ft_text *out, const ft_frame *f, const ft_step_view *v);
bool ft__svg_layers(ft_text *out, const ft_frame *f, const ft_step_view *v);
bool ft__svg_classes(ft_text *out, const ft_frame *f, const ft_step_view *v);
bool ft__svg_step_ranges(ft_text *out, const ft_frame *f, const ft_step_view *v);
/* What layers are bound by, with or without advice; NULL: out of memory. */
const ft_verdicts *ft__view_verdicts(const ft_step_view *v);
/* A kernel's name for people: "layers mlp.up_proj, backward". */
void ft__add_kernel_name(ft_text *out, const ft_merged *k);

/* Weights, optimizer, gradients, activations, KV cache, communication, temporary. */
extern const ft_key ft__memory_keys[7];
#endif
