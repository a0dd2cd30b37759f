/* Tracks of the timeline and the slabs on them: for svg_timeline.c. */
#ifndef FT_REPORT_HTML_SVG_SLABS_H
#define FT_REPORT_HTML_SVG_SLABS_H
#include "report/html/svg_pictures.h"
#include "report/trace/step_events.h"

enum {
    FT_ROW_PASSES,
    FT_ROW_BLOCKS,
    FT_ROW_KERNELS,
    FT_ROW_AXIS,
    FT_ROW_HOST = FT_ROW_AXIS + FT_AXIS_COUNT,
    FT_ROW_COUNT
};

/* Short events that wait for a pixel of their own. */
typedef struct ft_band_bin {
    double from, to, ms[4];
    double events;
} ft_band_bin;

typedef struct ft_band {
    double y, height;
    bool used;
    ft_band_bin pending;
} ft_band;

typedef struct ft_timeline {
    ft_text *out;
    const ft_step_view *v;
    ft_rank_events rank;
    ft_ruler x;
    ft_band row[FT_ROW_COUNT];
    int32_t *block_of;   /* node -> block */
    double (*shares)[4]; /* block -> its kernels' ms by bound */
    int32_t span_block;  /* the block whose span is open */
    double span_from, span_to;
    bool dry;        /* only finds out which rows there are */
    bool plain;      /* slabs without words, those of one colour as one path */
    ft_text path[4]; /* by bound, of a plain picture */
    double walked;
} ft_timeline;

/* A slab of one colour, and, behind the last, those of a plain picture. */
void ft__timeline_box(ft_timeline *t, double x, double y, double width, double height, int bound, const char *title);
void ft__timeline_paths(ft_timeline *t);
/* One event; `ms` says what it is made of. */
void ft__timeline_slab(ft_timeline *t, int row, double start, double end, const double ms[4], const char *title);
/* What of it lies in the part that is drawn; false: nothing. */
bool ft__timeline_clip(const ft_timeline *t, double *start, double *end);
void ft__timeline_flush(ft_timeline *t, int row); /* draws what waits for a pixel */
/* The name of the layers that run, over their kernels: it grows until another block follows. */
void ft__timeline_extend_span(ft_timeline *t, int32_t block, double start, double end);
void ft__timeline_close_span(ft_timeline *t);
#endif
