/* Rows of a CSV file as table.c holds them. */
#ifndef FT_BASE_TABLE_ROWS_H
#define FT_BASE_TABLE_ROWS_H
#include "base/table.h"
#include "base/unzip.h"

enum { FT_TABLE_BUFFER = 32 * 1024 };

/* One row: cells one after another, each NUL-terminated. Offsets, as the text moves when it grows. */
typedef struct ft_table_row {
    char *text;
    size_t used, room;
    size_t *starts;
    int *columns; /* 1-based column of the line where the cell begins, for messages */
    int count, cells_room;
} ft_table_row;

struct ft_table {
    char *path;
    ft_unzip *file;
    unsigned char *buffer;
    unsigned buffer_at, buffer_end;
    bool ended, after_cr;
    int line, column; /* of the next byte, 1-based */
    int row_line;     /* where the row began */
    ft_table_row header, row;
};

ft_status ft__table_read_row(ft_table *t, ft_table_row *r, bool *more, ft_error *err); /* *more false: the file's end */
ft_status ft__table_skip_mark(ft_table *t, ft_error *err); /* the byte-order mark, where there is one */
void ft__table_free_row(ft_table_row *r);
ft_status ft__table_no_memory(const ft_table *t, ft_error *err);
#endif
