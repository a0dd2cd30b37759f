/* table.c: CSV, plain or gzipped, a row at a time.
 *
 * Measurements come as CSV of up to a few million rows; only one row is held, and the header beside it. How rows are
 * cut out of bytes is in table_rows.c; here are columns by name and numbers in cells.
 *
 * Refused, each with line and column: a column named twice, a row of another width than the header, a cell that is no
 * number where one is asked for. */
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/table_rows.h"
#include "base/text.h"

/* -- tables ------------------------------------------------------------------------------------ */

static const char *cell_of(const ft_table_row *r, int column) { return r->text + r->starts[column]; }

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Two columns of one name would make the reader pick one in silence. Unnamed ones (a saved index) do no harm. */
static ft_status check_header(const ft_table *t, ft_error *err)
{
    size_t count = (size_t)t->header.count;
    const char **names = malloc(count * sizeof *names);
    if (!names) return ft__table_no_memory(t, err);
    for (size_t i = 0; i < count; i++) names[i] = cell_of(&t->header, (int)i);
    qsort(names, count, sizeof *names, by_text);
    ft_status status = FT_OK;
    for (size_t i = 1; i < count && status == FT_OK; i++)
        if (*names[i] && strcmp(names[i - 1], names[i]) == 0)
            status = ft__fail_at(err, FT_E_SYNTAX, t->path, t->row_line, 0, "two columns are called \"%.*s\"",
                                 (int)ft__utf8_cut(names[i], 100), names[i]);
    free(names);
    return status;
}

static ft_status read_header(ft_table *t, ft_error *err)
{
    FT_TRY(ft__table_skip_mark(t, err));
    bool more;
    FT_TRY(ft__table_read_row(t, &t->header, &more, err));
    if (!more)
        return ft__fail_at(err, FT_E_FORMAT, t->path, 0, 0, "'%s' is empty: a line with column names is expected",
                           t->path);
    return check_header(t, err);
}

ft_status ft__table_open(const char *path, ft_table **out, ft_error *err)
{
    *out = NULL;
    ft_table *t = calloc(1, sizeof *t);
    size_t path_size = strlen(path) + 1;
    if (t) t->path = malloc(path_size);
    if (t) t->buffer = malloc(FT_TABLE_BUFFER);
    if (!t || !t->path || !t->buffer) {
        ft__table_close(t);
        return ft__fail_at(err, FT_E_MEMORY, path, 0, 0, "out of memory while opening '%s'", path);
    }
    memcpy(t->path, path, path_size);
    t->line = t->column = 1;
    ft_status status = ft__unzip_open(path, &t->file, err);
    if (status == FT_OK) status = read_header(t, err);
    if (status != FT_OK) {
        ft__table_close(t);
        return status;
    }
    *out = t;
    return FT_OK;
}

void ft__table_close(ft_table *t)
{
    if (!t) return;
    ft__unzip_close(t->file);
    ft__table_free_row(&t->header);
    ft__table_free_row(&t->row);
    free(t->buffer);
    free(t->path);
    free(t);
}

int ft__table_find(const ft_table *t, const char *name)
{
    for (int i = 0; i < t->header.count; i++)
        if (strcmp(cell_of(&t->header, i), name) == 0) return i;
    return -1;
}

ft_status ft__table_column(const ft_table *t, const char *name, int *out, ft_error *err)
{
    int column = ft__table_find(t, name);
    if (column >= 0) {
        *out = column;
        return FT_OK;
    }
    const char *names[64];
    size_t count = t->header.count < 64 ? (size_t)t->header.count : 64;
    for (size_t i = 0; i < count; i++) names[i] = cell_of(&t->header, (int)i);
    const char *nearest = ft__nearest(name, names, count);
    if (nearest)
        return ft__fail_at(err, FT_E_MISSING, t->path, 1, 0, "column \"%s\" is missing; the nearest is \"%s\"", name,
                           nearest);
    return ft__fail_at(err, FT_E_MISSING, t->path, 1, 0, "column \"%s\" is missing", name);
}

ft_status ft__table_next(ft_table *t, bool *more, ft_error *err)
{
    *more = false;
    bool found;
    ft_status status = ft__table_read_row(t, &t->row, &found, err);
    if (status == FT_OK && found && t->row.count != t->header.count)
        status = ft__fail_at(err, FT_E_SYNTAX, t->path, t->row_line, 0, "%d cells where the header has %d",
                             t->row.count, t->header.count);
    if (status != FT_OK || !found) {
        t->row.count = 0; /* no cells to be seen of a half-read row */
        return status;
    }
    *more = true;
    return FT_OK;
}

const char *ft__table_cell(const ft_table *t, int column)
{
    if (column < 0 || column >= t->row.count) return "";
    return cell_of(&t->row, column);
}

/* -- numbers in cells -------------------------------------------------------------------------- */

/* The cell without blanks around it, in `text`; false when it is longer than any number. */
static bool trimmed(const char *cell, char *text, size_t room)
{
    while (*cell == ' ' || *cell == '\t') cell++;
    size_t length = strlen(cell);
    while (length && (cell[length - 1] == ' ' || cell[length - 1] == '\t')) length--;
    if (length >= room) return false;
    memcpy(text, cell, length);
    text[length] = '\0';
    return true;
}

static ft_status cell_error(const ft_table *t, int column, const char *expected, ft_error *err)
{
    bool real = column >= 0 && column < t->row.count;
    const char *name = real ? cell_of(&t->header, column) : "?", *cell = ft__table_cell(t, column);
    return ft__fail_at(err, FT_E_SYNTAX, t->path, t->row_line, real ? t->row.columns[column] : 0,
                       "column \"%.*s\" must hold %s, got \"%.*s\"", (int)ft__utf8_cut(name, 100), name, expected,
                       (int)ft__utf8_cut(cell, 60), cell);
}

ft_status ft__table_number(const ft_table *t, int column, double *out, ft_error *err)
{
    char text[400];
    if (trimmed(ft__table_cell(t, column), text, sizeof text) && ft__number_parse(text, out)) return FT_OK;
    return cell_error(t, column, "a finite number", err);
}

ft_status ft__table_whole(const ft_table *t, int column, int64_t *out, ft_error *err)
{
    char text[400];
    if (trimmed(ft__table_cell(t, column), text, sizeof text) && ft__whole_parse(text, out)) return FT_OK;
    return cell_error(t, column, "a whole number", err);
}

int ft__table_line(const ft_table *t) { return t->row_line; }

const char *ft__table_path(const ft_table *t) { return t->path; }
