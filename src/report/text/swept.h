/* The answers of a sweep, point by point. */
#ifndef FT_REPORT_TEXT_SWEPT_H
#define FT_REPORT_TEXT_SWEPT_H
#include <jansson.h>

#include "report/text/style.h"

typedef struct ft_swept {
    const char *task; /* of every point */
    const char *key;  /* that moves */
    const double *x;
    size_t count;
} ft_swept;

/* One answer per point, as a table with a curve, or as comma-separated values. False: out of memory. */
bool ft__screen_swept(ft_text *out, const ft_style *style, const ft_swept *sweep, json_t *const *answers);
bool ft__csv_swept(ft_text *out, const ft_swept *sweep, const char *gpu, bool header, json_t *const *answers);

/* The length that a model has of itself, which stands in no request of a training step; 0: it was asked for. */
double ft__swept_length(const ft_swept *sweep, const json_t *answer);

enum { FT_SWEPT_COLUMNS = 15 };
/* Rows of a page: columns that any answer fills, with their texts, and the figures of the curve. */
typedef struct ft_swept_rows {
    const char *heading, *figure; /* of the curve: "Step", "step ms" */
    const char *head[FT_SWEPT_COLUMNS];
    char align[FT_SWEPT_COLUMNS + 1];
    const char **cells;       /* NULL where one is empty */
    double *figures;          /* y, low and high of every row */
    const double *low, *high; /* of them; NULL where there is no interval */
    size_t columns, rows;
} ft_swept_rows;
/* `rows` answers, GPU after GPU. False: out of memory. Free it either way. */
bool ft__swept_rows(const ft_swept *sweep, size_t rows, json_t *const *answers, ft_swept_rows *out);
void ft__swept_rows_free(ft_swept_rows *rows);
#endif
