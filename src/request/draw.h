/* Requests for pictures: what is drawn, how large, and of which figures where they stand in the request itself. */
#ifndef FT_REQUEST_DRAW_H
#define FT_REQUEST_DRAW_H
#include "base/arena.h"
#include "base/json.h"
#include "request/words.h"

enum { FT_DRAWN_MOST = 32, FT_DRAWN_CURVES = 16, FT_DRAWN_ROWS = 256, FT_DRAWN_POINTS = 20000 };

typedef struct ft_drawn_curve {
    const char *name;
    const double *x, *y, *low, *high; /* low, high: NULL where there is no interval */
    const bool *hollow;               /* NULL: none is */
    size_t count;
    bool dots, line, steps, thin;
} ft_drawn_curve;

typedef struct ft_drawn_row {
    const char *name, *text, *look;
    double value;
} ft_drawn_row;

typedef struct ft_drawn_picture {
    ft_drawn what;
    const char *name, *title; /* NULL: its own */
    const char *x, *y;        /* "" where they are not said */
    double width, height;     /* height 0: follows from the width */
    bool embed, plain, log_x, log_y, zero;
    bool has_at;
    double at, limit; /* limit 0: none */
    const char *limit_name, *rings;
    double window_ms[2]; /* 0, 0: the whole step */
    ft_drawn_curve *curves;
    size_t curve_count;
    ft_drawn_row *rows;
    size_t row_count;
    double whole;
} ft_drawn_picture;

typedef struct ft_draw_request {
    const json_t *of; /* NULL: figures alone */
    ft_ask ask;       /* its task */
    bool answer;      /* stands beside the pictures */
    ft_drawn_picture *pictures;
    size_t count;
} ft_draw_request;

/* What was read lies in the arena and in the document. */
ft_status ft__draw_request_read(const json_t *object, ft_arena *arena, ft_draw_request *out, ft_error *err);
#endif
