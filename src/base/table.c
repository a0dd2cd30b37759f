/* table.c: CSV, plain or gzipped, a row at a time.
 *
 * Measurements come as CSV of up to a few million rows; only one row is held. zlib's gzread passes plain files
 * through, so both kinds take the same way. What RFC 4180 says holds: cells in quotes may hold commas, line ends and
 * doubled quotes. Beyond it: rows end with LF, CRLF or CR; a byte-order mark and blank lines are skipped.
 *
 * Refused, each with line and column: a quote inside or after a cell where none may be, a cell over 1 MiB, a row over
 * 16 MiB, a NUL byte, a column named twice, a row of another width than the header, and a gzip file that stops early
 * or fails its checksum. The limits are there because a megabyte of gzip may unfold into a gigabyte.
 *
 * Over 400 lines: one state machine, whose states are read together. */
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/text.h"

enum { BUFFER_BYTES = 128 * 1024, MOST_COLUMNS = 4096 };
static const size_t cell_cap = (size_t)1 << 20, row_cap = (size_t)16 << 20;

/* One row: cells one after another, each NUL-terminated. Offsets, as the text moves when it grows. */
typedef struct row {
    char *text;
    size_t used, room;
    size_t *starts;
    int *columns; /* 1-based column of the line where the cell begins, for messages */
    int count, cells_room;
} row;

struct ft_table {
    char *path;
    gzFile file;
    unsigned char *buffer;
    unsigned buffer_at, buffer_end;
    bool ended, after_cr;
    int line, column; /* of the next byte, 1-based */
    int row_line;     /* where the row began */
    row header, row;
};

/* -- bytes ------------------------------------------------------------------------------------- */

static ft_status no_memory(const ft_table *t, ft_error *err)
{
    return ft__fail_at(err, FT_E_MEMORY, t->path, 0, 0, "out of memory while reading '%s'", t->path);
}

static ft_status read_error(const ft_table *t, ft_error *err)
{
    int code;
    const char *reason = gzerror(t->file, &code);
    switch (code) {
    case Z_MEM_ERROR: return no_memory(t, err);
    case Z_ERRNO: return ft__fail_at(err, FT_E_FILE, t->path, 0, 0, "cannot read '%s': %s", t->path, strerror(errno));
    case Z_BUF_ERROR:
        return ft__fail_at(err, FT_E_FORMAT, t->path, 0, 0, "'%s' is a truncated gzip file: it stops after line %d",
                           t->path, t->line);
    default: {
        /* zlib puts the path in front of its own reason. */
        const char *colon = reason ? strstr(reason, ": ") : NULL;
        return ft__fail_at(err, FT_E_FORMAT, t->path, 0, 0, "'%s' is a damaged gzip file: %s", t->path,
                           colon ? colon + 2 : "it cannot be unpacked");
    }
    }
}

/* Fills the buffer; at the end of the file `ended` is set. */
static ft_status refill(ft_table *t, ft_error *err)
{
    t->buffer_at = t->buffer_end = 0;
    if (t->ended) return FT_OK;
    errno = 0;
    int got = gzread(t->file, t->buffer, BUFFER_BYTES);
    if (got < 0) return read_error(t, err);
    t->buffer_end = (unsigned)got;
    if (got < BUFFER_BYTES) {
        /* A file cut short reads like one that ended; only gzerror tells. What came before the cut is not trusted. */
        int code = Z_OK;
        gzerror(t->file, &code);
        if (code != Z_OK && code != Z_STREAM_END) return read_error(t, err);
        if (got == 0) t->ended = true;
    }
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

static bool row_put(row *r, int c)
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

static bool row_begin_cell(row *r, int column)
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

static void row_free(row *r)
{
    free(r->text);
    free(r->starts);
    free(r->columns);
}

/* One byte into the cell that began at r->starts[count - 1], within the limits. */
static ft_status put(ft_table *t, row *r, int c, ft_error *err)
{
    if (c == 0)
        return ft__fail_at(err, FT_E_SYNTAX, t->path, t->line, t->column, "a NUL byte: '%s' is not a text file",
                           t->path);
    if (r->used - r->starts[r->count - 1] >= cell_cap)
        return ft__fail_at(err, FT_E_RANGE, t->path, t->line, t->column,
                           "a cell over 1 MiB; is a quote left open before it?");
    if (r->used >= row_cap) return ft__fail_at(err, FT_E_RANGE, t->path, t->row_line, 0, "a row over 16 MiB");
    return row_put(r, c) ? FT_OK : no_memory(t, err);
}

/* The inside of a quoted cell up to and with its closing quote. */
static ft_status read_quoted(ft_table *t, row *r, ft_error *err)
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
static ft_status read_cell(ft_table *t, row *r, int *end, ft_error *err)
{
    ft_status status = FT_OK;
    if (r->count == MOST_COLUMNS)
        return ft__fail_at(err, FT_E_RANGE, t->path, t->line, t->column, "more than %d columns", MOST_COLUMNS);
    if (!row_begin_cell(r, t->column)) return no_memory(t, err);
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
    if (!row_put(r, '\0')) return no_memory(t, err);
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

static ft_status read_row(ft_table *t, row *r, bool *more, ft_error *err)
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

/* -- tables ------------------------------------------------------------------------------------ */

static const char *cell_of(const row *r, int column) { return r->text + r->starts[column]; }

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Two columns of one name would make the reader pick one in silence. Unnamed ones (a saved index) do no harm. */
static ft_status check_header(const ft_table *t, ft_error *err)
{
    size_t count = (size_t)t->header.count;
    const char **names = malloc(count * sizeof *names);
    if (!names) return no_memory(t, err);
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
    ft_status status = FT_OK;
    static const unsigned char mark[3] = {0xEF, 0xBB, 0xBF};
    int c = peek(t, &status, err);
    if (status != FT_OK) return status;
    if (c == mark[0] && t->buffer_end >= 3 && memcmp(t->buffer, mark, 3) == 0) t->buffer_at = 3;
    bool more;
    FT_TRY(read_row(t, &t->header, &more, err));
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
    if (t) t->buffer = malloc(BUFFER_BYTES);
    if (!t || !t->path || !t->buffer) {
        ft__table_close(t);
        return ft__fail_at(err, FT_E_MEMORY, path, 0, 0, "out of memory while opening '%s'", path);
    }
    memcpy(t->path, path, path_size);
    t->line = t->column = 1;
    errno = 0;
    t->file = gzopen(path, "rbe"); /* e: close on exec */
    ft_status status = FT_OK;
    if (!t->file)
        status = errno && errno != ENOMEM
                     ? ft__fail_at(err, FT_E_FILE, path, 0, 0, "cannot open '%s': %s", path, strerror(errno))
                     : no_memory(t, err);
    if (status == FT_OK) {
        gzbuffer(t->file, BUFFER_BYTES);
        status = read_header(t, err);
    }
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
    if (t->file) gzclose(t->file);
    row_free(&t->header);
    row_free(&t->row);
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
    ft_status status = read_row(t, &t->row, &found, err);
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
