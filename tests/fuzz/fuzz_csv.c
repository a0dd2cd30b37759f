/* Tables: any bytes as a file, and one input in four gzipped too. Both readings must agree cell by cell; every error
 * must have a message and name the file; no cell may be read as a number that is not finite. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/table.h"
#include "fuzz.h"

enum { CELLS = 8 };

typedef struct reading {
    ft_status status;
    int line, column;
    size_t rows;
    uint64_t digest;
} reading;

/* Half of the time went into sentences about cells that are no numbers: a row has one cell, another one each time, of
 * which the sentence is asked for. */
static void check_numbers(const ft_table *t, size_t row)
{
    for (int i = 0; i < CELLS; i++) {
        double x = 0;
        int64_t n = 0;
        ft_error wrong = {0}, *said = row % CELLS == (size_t)i ? &wrong : NULL;
        ft_status real = ft__table_number(t, i, &x, said);
        if (real == FT_OK) FUZZ_CHECK(isfinite(x));
        if (said && real != FT_OK) FUZZ_CHECK(wrong.code == real && wrong.message[0]);
        if (ft__table_whole(t, i, &n, NULL) == FT_OK) FUZZ_CHECK(fabs(x - (double)n) <= fabs(x) * 1e-15);
    }
}

static reading read_table(const char *path, bool numbers)
{
    reading r = {.digest = 1};
    ft_error err = {0};
    ft_table *t;
    r.status = ft__table_open(path, &t, &err);
    if (r.status == FT_OK) {
        bool more;
        while ((r.status = ft__table_next(t, &more, &err)) == FT_OK && more) {
            r.rows++;
            FUZZ_CHECK(ft__table_line(t) > 0);
            for (int i = 0; i < CELLS; i++) {
                const char *cell = ft__table_cell(t, i);
                r.digest = ft__hash(cell, strlen(cell) + 1, r.digest);
            }
            if (numbers) check_numbers(t, r.rows);
        }
        ft__table_close(t);
    }
    if (r.status != FT_OK) {
        FUZZ_CHECK(err.code == r.status);
        FUZZ_CHECK(err.message[0] && strcmp(err.where, path) == 0);
        r.line = err.line;
        r.column = err.column;
    }
    return r;
}

/* Stored rather than squeezed, with the smallest window: the fuzzer's time belongs to our code. */
static uint8_t *gzipped(const uint8_t *data, size_t size, size_t *packed)
{
    z_stream z = {0};
    FUZZ_CHECK(deflateInit2(&z, Z_NO_COMPRESSION, Z_DEFLATED, 9 + 16, 1, Z_DEFAULT_STRATEGY) == Z_OK);
    size_t room = deflateBound(&z, (uLong)size);
    uint8_t *out = malloc(room);
    FUZZ_CHECK(out);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)room;
    FUZZ_CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    *packed = z.total_out;
    deflateEnd(&z);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reading plain = read_table(fuzz_file(0, data, size), true);
    if (size >= 2 && data[0] == 0x1F && data[1] == 0x8B) return 0; /* that was a gzip file of the fuzzer's making */
    if (ft__hash(data, size, 1) % 4) return 0;
    size_t packed;
    uint8_t *bytes = gzipped(data, size, &packed);
    reading unpacked = read_table(fuzz_file(1, bytes, packed), false);
    free(bytes);
    FUZZ_CHECK(plain.status == unpacked.status && plain.rows == unpacked.rows && plain.digest == unpacked.digest);
    FUZZ_CHECK(plain.line == unpacked.line && plain.column == unpacked.column);
    return 0;
}
