/* table_rows.c: the bytes of a CSV file, cut into rows and cells.
 *
 * Plain files and gzipped ones take the same way (unzip.h). What RFC 4180 says holds: cells in quotes
 * may hold commas, line ends and doubled quotes. Beyond it: rows end with LF, CRLF or CR; a byte-order mark and blank
 * lines are skipped.
 *
 * Refused, each with line and column: a quote inside or after a cell where none may be, a cell over 1 MiB, a row over
 * 16 MiB, a NUL byte, too many columns, and a gzip file that stops early or fails its checksum. The limits are there
 * because a megabyte of gzip may unfold into a gigabyte. */
#include "base/table_rows.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 4096 };
static const size_t cell_cap = (size_t)1 << 20, row_cap = (size_t)16 << 20;

/* -- bytes ------------------------------------------------------------------------------------- */

ft_status ft__table_no_memory(const ft_table *t, ft_error *err)
{
    return ft__fail_at(err, FT_E_MEMORY, t->path, 0, 0, "out of memory while reading '%s'", t->path);
}

static ft_status read_error(const ft_table *t, ft_error *err)
{
    const char *reason;
    switch (ft__unzip_ended(t->file, &reason)) {
    case FT_UNZIP_UNREADABLE:
        return ft__fail_at(err, FT_E_FILE, t->path, 0, 0, "cannot read '%s': %s", t->path, reason);
    case FT_UNZIP_EARLY:
        return ft__fail_at(err, FT_E_FORMAT, t->path, 0, 0, "'%s' is a truncated gzip file: it stops after line %d",
                           t->path, t->line);
    default: return ft__fail_at(err, FT_E_FORMAT, t->path, 0, 0, "'%s' is a damaged gzip file: %s", t->path, reason);
    }
}

/* Fills the buffer; at the end of the file `ended` is set. What comes before a cut or a damage is not trusted. */
static ft_status refill(ft_table *t, ft_error *err)
{
    t->buffer_at = t->buffer_end = 0;
    if (t->ended) return FT_OK;
    size_t got = ft__unzip_read(t->file, t->buffer, FT_TABLE_BUFFER);
    if (ft__unzip_ended(t->file, NULL) != FT_UNZIP_WHOLE) return read_error(t, err);
    t->buffer_end = (unsigned)got;
    t->ended = got == 0;
    return FT_OK;
}

/* The next byte without taking it: -1 at the end, -2 on error. */
static inline int peek(ft_table *t, ft_status *status, ft_error *err)
{
    if (t->buffer_at == t->buffer_end) {
        *status = refill(t, err);
        if (*status != FT_OK) return -2;
        if (t->buffer_at == t->buffer_end) return -1;
    }
    return t->buffer[t->buffer_at];
}

/* Takes the byte that peek showed, counting lines; CRLF is one line end. */
static inline void take(ft_table *t, int c)
{
    t->buffer_at++;
    if (c == '\n' && t->after_cr) {
        t->after_cr = false;
        return;
    }
    t->after_cr = c == '\r';
    if (c == '\n' || c == '\r') {
        t->line++;
        t->column = 1;
    } else {
        t->column++;
    }
}

/* -- rows -------------------------------------------------------------------------------------- */

static bool row_put(ft_table_row *r, int c)
{
    if (r->used == r->room) {
        size_t room = r->room ? r->room * 2 : 512;
        char *text = realloc(r->text, room);
        if (!text) return false;
        r->text = text;
        r->room = room;
    }
    r->text[r->used++] = (char)c;
    return true;
}

static bool row_begin_cell(ft_table_row *r, int column)
{
    if (r->count == r->cells_room) {
        int room = r->cells_room ? r->cells_room * 2 : 32;
        size_t *starts = realloc(r->starts, (size_t)room * sizeof *starts);
        if (starts) r->starts = starts;
        int *columns = realloc(r->columns, (size_t)room * sizeof *columns);
        if (columns) r->columns = columns;
        if (!starts || !columns) return false;
        r->cells_room = room;
    }
    r->starts[r->count] = r->used;
    r->columns[r->count] = column;
    r->count++;
    return true;
}

void ft__table_free_row(ft_table_row *r)
{
    free(r->text);
    free(r->starts);
    free(r->columns);
}

/* One byte into the cell that began at r->starts[count - 1], within the limits. */
static ft_status put(ft_table *t, ft_table_row *r, int c, ft_error *err)
{
    if (c == 0)
        return ft__fail_at(err, FT_E_SYNTAX, t->path, t->line, t->column, "a NUL byte: '%s' is not a text file",
                           t->path);
    if (r->used - r->starts[r->count - 1] >= cell_cap)
        return ft__fail_at(err, FT_E_RANGE, t->path, t->line, t->column,
                           "a cell over 1 MiB; is a quote left open before it?");
    if (r->used >= row_cap) return ft__fail_at(err, FT_E_RANGE, t->path, t->row_line, 0, "a row over 16 MiB");
    return row_put(r, c) ? FT_OK : ft__table_no_memory(t, err);
}

/* The inside of a quoted cell up to and with its closing quote. */
static ft_status read_quoted(ft_table *t, ft_table_row *r, ft_error *err)
{
    ft_status status = FT_OK;
    int line = t->line, column = t->column;
    take(t, '"');
    for (;;) {
        int c = peek(t, &status, err);
        if (c == -2) return status;
        if (c == -1)
            return ft__fail_at(err, FT_E_SYNTAX, t->path, line, column, "the quote opened here is never closed");
        if (c == '"') {
            take(t, c);
            c = peek(t, &status, err);
            if (c == -2) return status;
            if (c != '"') return FT_OK;
        }
        FT_TRY(put(t, r, c, err));
        take(t, c);
    }
}

/* One cell and what ends it: ',' or '\n' (any line end) or -1. */
static ft_status read_cell(ft_table *t, ft_table_row *r, int *end, ft_error *err)
{
    ft_status status = FT_OK;
    if (r->count == MOST_COLUMNS)
        return ft__fail_at(err, FT_E_RANGE, t->path, t->line, t->column, "more than %d columns", MOST_COLUMNS);
    if (!row_begin_cell(r, t->column)) return ft__table_no_memory(t, err);
    int c = peek(t, &status, err);
    if (c == -2) return status;
    bool quoted = c == '"';
    if (quoted) FT_TRY(read_quoted(t, r, err));
    for (;;) {
        c = peek(t, &status, err);
        if (c == -2) return status;
        if (c == -1 || c == ',' || c == '\n' || c == '\r') break;
        if (c == '"')
            return ft__fail_at(err, FT_E_SYNTAX, t->path, t->line, t->column,
                               "a quote inside a cell that does not begin with one");
        if (quoted)
            return ft__fail_at(err, FT_E_SYNTAX, t->path, t->line, t->column,
                               "a comma or the end of the line is expected after the closing quote");
        FT_TRY(put(t, r, c, err));
        take(t, c);
    }
    if (!row_put(r, '\0')) return ft__table_no_memory(t, err);
    if (c != -1) take(t, c);
    *end = c == '\r' ? '\n' : c;
    return FT_OK;
}

/* Skips line ends; false in *more at the end of the file. The LF of a CRLF is skipped here too. */
static ft_status skip_blank_lines(ft_table *t, bool *more, ft_error *err)
{
    ft_status status = FT_OK;
    int c;
    while ((c = peek(t, &status, err)) == '\n' || c == '\r') take(t, c);
    *more = c >= 0;
    return status;
}

ft_status ft__table_read_row(ft_table *t, ft_table_row *r, bool *more, ft_error *err)
{
    r->used = 0;
    r->count = 0;
    FT_TRY(skip_blank_lines(t, more, err));
    if (!*more) return FT_OK;
    t->after_cr = false;
    t->row_line = t->line;
    int end;
    do {
        FT_TRY(read_cell(t, r, &end, err));
    } while (end == ',');
    return FT_OK;
}

ft_status ft__table_skip_mark(ft_table *t, ft_error *err)
{
    ft_status status = FT_OK;
    static const unsigned char mark[3] = {0xEF, 0xBB, 0xBF};
    int c = peek(t, &status, err);
    if (status != FT_OK) return status;
    if (c == mark[0] && t->buffer_end >= 3 && memcmp(t->buffer, mark, 3) == 0) t->buffer_at = 3;
    return FT_OK;
}
