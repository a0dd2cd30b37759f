/* CSV tables, plain or gzipped, read a row at a time with their header; RFC 4180 quoting. */
#ifndef FT_BASE_TABLE_H
#define FT_BASE_TABLE_H
#include <stdint.h>

#include "base/error.h"

typedef struct ft_table ft_table;

ft_status ft__table_open(const char *path, ft_table **out, ft_error *err); /* reads the header */
void ft__table_close(ft_table *t);
/* Position of a column, or an error that names the nearest column. */
ft_status ft__table_column(const ft_table *t, const char *name, int *out, ft_error *err);
int ft__table_find(const ft_table *t, const char *name); /* -1 when absent */
/* FT_OK with *more false at the end; a row with too few or too many cells is an error with its line. */
ft_status ft__table_next(ft_table *t, bool *more, ft_error *err);
const char *ft__table_cell(const ft_table *t, int column); /* valid until the next row; "" for column -1 */
/* A finite number, a whole one; otherwise an error with line and column. */
ft_status ft__table_number(const ft_table *t, int column, double *out, ft_error *err);
ft_status ft__table_whole(const ft_table *t, int column, int64_t *out, ft_error *err);
int ft__table_line(const ft_table *t);
const char *ft__table_path(const ft_table *t);
#endif
