/* CSV tables: RFC 4180, gzip, places in errors, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/table.h"
#include "base/text.h"
#include "failing_alloc.h"
#include "scratch.h"

/* All rows as "cell|cell;cell|cell", or the error as "!name line:column message". */
static const char *shown(const char *path)
{
    static char out[4096];
    ft_text t = {0};
    ft_table *table;
    ft_error err = {0};
    ft_status status = ft__table_open(path, &table, &err);
    if (status == FT_OK) {
        bool more = false;
        while ((status = ft__table_next(table, &more, &err)) == FT_OK && more) {
            if (t.length) ft__text_add(&t, ";");
            for (int i = 0; i < 3; i++) {
                if (i) ft__text_add(&t, "|");
                ft__text_add(&t, ft__table_cell(table, i));
            }
        }
        assert_false(more);
        ft__table_close(table);
    } else {
        assert_null(table);
    }
    if (status != FT_OK) {
        ft__text_clear(&t);
        ft__text_addf(&t, "!%s %d:%d %s", ft_status_name(status), err.line, err.column, err.message);
        assert_int_equal(err.code, status);
        assert_string_equal(err.where, path);
    }
    snprintf(out, sizeof out, "%s", t.at ? t.at : "");
    ft__text_free(&t);
    return out;
}

static void rows_are_read_whatever_the_line_ends_and_quotes(void **state)
{
    (void)state;
    static const struct {
        const char *csv, *rows;
    } cases[] = {
        {"a,b,c\n1,2,3\n4,5,6\n", "1|2|3;4|5|6"},
        {"a,b,c\n1,2,3\n4,5,6", "1|2|3;4|5|6"},
        {"a,b,c\r\n1,2,3\r\n4,5,6\r\n", "1|2|3;4|5|6"},
        {"a,b,c\r1,2,3\r4,5,6", "1|2|3;4|5|6"},
        {"\xEF\xBB\xBF"
         "a,b,c\n1,2,3\n",
         "1|2|3"},
        {"a,b,c\n1,2,3\n\n\n", "1|2|3"},
        {"a,b,c\n\n1,2,3\n\r\n4,5,6\n", "1|2|3;4|5|6"},
        {"\n\na,b,c\n1,2,3\n", "1|2|3"},
        {"a,b,c\n,,\n", "||"},
        {"a,b,c\n\"x,y\",\"\",\"say \"\"hi\"\"\"\n", "x,y||say \"hi\""},
        {"a,b,c\n\"two\nlines\",\"cr\r\nlf\",3\n", "two\nlines|cr\r\nlf|3"},
        {"\"a\",\"b\",c\n\"1\",2,\"3\"", "1|2|3"},
        {"a,b,c\n 1 , 2,3 \n", " 1 | 2|3 "},
        {"a,b,c\n", ""},
        {"a,b,c", ""},
        {"a\n1\n2\n", "1||;2||"},
        {"a\n\"\"\n2\n", "||;2||"},
        {",,c\n1,2,3\n", "1|2|3"},
        {"a,b,c\n\xC3\xA9,\xFF,3\n", "\xC3\xA9|\xFF|3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *rows = shown(scratch_text("t.csv", cases[i].csv));
        if (strcmp(rows, cases[i].rows) != 0) fail_msg("case %zu gives \"%s\"", i, rows);
        rows = shown(scratch_gzip("t.csv.gz", cases[i].csv, strlen(cases[i].csv)));
        if (strcmp(rows, cases[i].rows) != 0) fail_msg("case %zu gzipped gives \"%s\"", i, rows);
    }
}

static void malformed_rows_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *csv, *verdict;
    } cases[] = {
        {"a,b,c\n1,2\n", "!syntax 2:0 2 cells where the header has 3"},
        {"a,b,c\n1,2,3\n\n1,2,3,4\n", "!syntax 4:0 4 cells where the header has 3"},
        {"a,b,c\r\n1,2,3\r\n1,2,3,4\r\n", "!syntax 3:0 4 cells where the header has 3"},
        {"a,b,c\n\"x\ny\",2,3\n1,2\n", "!syntax 4:0 2 cells where the header has 3"},
        {"a,b,c\n1,2\",3\n", "!syntax 2:4 a quote inside a cell that does not begin with one"},
        {"a,b,c\n1,\"2\"x,3\n", "!syntax 2:6 a comma or the end of the line is expected after the closing quote"},
        {"a,b,c\n1,\"2,3\n4,5,6\n", "!syntax 2:3 the quote opened here is never closed"},
        {"a,b,c\n1,2,\"", "!syntax 2:5 the quote opened here is never closed"},
        {"a,b,a\n1,2,3\n", "!syntax 1:0 two columns are called \"a\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *verdict = shown(scratch_text("bad.csv", cases[i].csv));
        if (strcmp(verdict, cases[i].verdict) != 0) fail_msg("case %zu gives \"%s\"", i, verdict);
    }
    const char *verdict = shown(scratch_file("nul.csv", "a,b,c\n1,\0,3\n", 12));
    assert_ptr_equal(strstr(verdict, "!syntax 2:3 a NUL byte"), verdict);
}

static void empty_missing_and_wrong_files(void **state)
{
    (void)state;
    assert_non_null(strstr(shown(scratch_text("e.csv", "")), "is empty: a line with column names is expected"));
    assert_non_null(strstr(shown(scratch_text("e.csv", "\n\r\n")), "!bad_format"));
    assert_non_null(strstr(shown(scratch_text("e.csv", "\xEF\xBB\xBF")), "!bad_format"));
    assert_non_null(strstr(shown(scratch_gzip("e.csv.gz", "", 0)), "!bad_format"));
    assert_non_null(strstr(shown(scratch_path("none.csv")), "!file 0:0 cannot open"));
    assert_non_null(strstr(shown(scratch_path("")), "!file 0:0 cannot read"));
}

/* Rows that gzip cannot shrink much, so that every cut falls into data. */
static char *noise(size_t rows, size_t *length)
{
    char *text = malloc(rows * 40 + 10);
    size_t n = (size_t)sprintf(text, "a,b,c\n");
    uint64_t x = 1;
    for (size_t i = 0; i < rows; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        n += (size_t)sprintf(text + n, "%u,%u,%u\n", (unsigned)(x >> 33), (unsigned)(x >> 45), (unsigned)(x >> 50));
    }
    *length = n;
    return text;
}

static char *file_bytes(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(1 << 22);
    *length = fread(bytes, 1, 1 << 22, file);
    fclose(file);
    return bytes;
}

static void a_gzip_file_cut_anywhere_is_truncated(void **state)
{
    (void)state;
    size_t length, packed;
    char *text = noise(20000, &length);
    char *bytes = file_bytes(scratch_gzip("whole.csv.gz", text, length), &packed);
    assert_true(packed > 150000);
    /* Within the header, the data, the checksum. (The very first bytes alone look like plain text.) */
    const size_t cuts[] = {11, 12, 20, 100, 1000, packed / 2, packed - 9, packed - 8, packed - 4, packed - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        const char *verdict = shown(scratch_file("cut.csv.gz", bytes, cuts[i]));
        if (!strstr(verdict, "!bad_format") || !strstr(verdict, "cut.csv.gz' is a truncated gzip file"))
            fail_msg("cut at %zu of %zu gives \"%.200s\"", cuts[i], packed, verdict);
    }
    free(bytes);
    free(text);
}

static void a_gzip_file_with_a_flipped_byte_is_damaged(void **state)
{
    (void)state;
    size_t length, packed;
    char *text = noise(2000, &length);
    char *bytes = file_bytes(scratch_gzip("whole.csv.gz", text, length), &packed);
    for (size_t at = 10; at < packed; at += at < 100 ? 1 : packed / 50) {
        bytes[at] ^= 0x10;
        const char *verdict = shown(scratch_file("flip.csv.gz", bytes, packed));
        bytes[at] ^= 0x10;
        /* Mostly zlib notices at once, sometimes only at the checksum, after rows that read as nonsense. */
        if (verdict[0] != '!') fail_msg("a flip at %zu of %zu goes unnoticed", at, packed);
    }
    free(bytes);
    free(text);
}

static void limits_hold(void **state)
{
    (void)state;
    size_t mib = 1 << 20;
    char *text = malloc(20 * mib);
    memcpy(text, "a,b,c\n\"", 7);
    memset(text + 7, 'x', mib);
    memcpy(text + 7 + mib, "\",2,3\n", 7);
    ft_table *table;
    ft_error err;
    bool more;
    assert_int_equal(ft__table_open(scratch_text("cell.csv", text), &table, &err), FT_OK);
    assert_int_equal(ft__table_next(table, &more, &err), FT_OK);
    assert_int_equal(strlen(ft__table_cell(table, 0)), mib);
    ft__table_close(table);
    memcpy(text + 7 + mib, "y\",2,3\n", 8);
    assert_non_null(strstr(shown(scratch_text("cell.csv", text)), "!out_of_range 2:1048578 a cell over 1 MiB"));

    size_t n = 0;
    for (int i = 0; i < 20; i++) n += (size_t)sprintf(text + n, "%sc%d", i ? "," : "", i);
    text[n++] = '\n';
    for (int i = 0; i < 20; i++) {
        memset(text + n, 'x', 900000);
        n += 900000;
        text[n++] = i < 19 ? ',' : '\n';
    }
    assert_non_null(strstr(shown(scratch_gzip("row.csv.gz", text, n)), "!out_of_range 2:0 a row over 16 MiB"));

    memset(text, ',', 5000);
    text[5000] = '\0';
    assert_non_null(strstr(shown(scratch_text("wide.csv", text)), "!out_of_range 1:4097 more than 4096 columns"));
    free(text);
}

static void rows_survive_the_edges_of_the_buffer(void **state)
{
    (void)state;
    /* Each pad moves the quoted row with its CRLF and doubled quotes over another byte of the 128 KiB edge. */
    char *text = malloc(140000);
    for (size_t pad = 131072 - 40; pad < 131072 + 8; pad++) {
        memcpy(text, "a,b,c\n", 6);
        memset(text + 6, 'p', pad - 6);
        strcpy(text + pad, ",2,3\r\n\"q\"\"q\",\"\r\n\",6\r\n7,8,9");
        const char *rows = shown(scratch_text("edge.csv", text));
        (void)rows;
        ft_table *table;
        bool more;
        ft_error err;
        assert_int_equal(ft__table_open(scratch_path("edge.csv"), &table, &err), FT_OK);
        assert_int_equal(ft__table_next(table, &more, &err), FT_OK);
        assert_int_equal(strlen(ft__table_cell(table, 0)), pad - 6);
        assert_int_equal(ft__table_next(table, &more, &err), FT_OK);
        assert_string_equal(ft__table_cell(table, 0), "q\"q");
        assert_string_equal(ft__table_cell(table, 1), "\r\n");
        assert_int_equal(ft__table_line(table), 3);
        assert_int_equal(ft__table_next(table, &more, &err), FT_OK);
        assert_string_equal(ft__table_cell(table, 2), "9");
        assert_int_equal(ft__table_line(table), 5);
        assert_int_equal(ft__table_next(table, &more, &err), FT_OK);
        assert_false(more);
        ft__table_close(table);
    }
    free(text);
}

static void columns_are_found_by_name(void **state)
{
    (void)state;
    ft_table *t;
    ft_error err;
    int column = -5;
    const char *path = scratch_text("gpu.csv", "gpu,latency_us,m\nh100,1.5,4096\n");
    assert_int_equal(ft__table_open(path, &t, &err), FT_OK);
    assert_string_equal(ft__table_path(t), path);
    assert_int_equal(ft__table_find(t, "m"), 2);
    assert_int_equal(ft__table_find(t, "n"), -1);
    assert_int_equal(ft__table_find(t, ""), -1);
    assert_int_equal(ft__table_column(t, "latency_us", &column, &err), FT_OK);
    assert_int_equal(column, 1);
    assert_int_equal(ft__table_column(t, "latency_ms", &column, &err), FT_E_MISSING);
    assert_string_equal(err.message, "column \"latency_ms\" is missing; the nearest is \"latency_us\"");
    assert_string_equal(err.where, path);
    assert_int_equal(ft__table_column(t, "temperature", &column, &err), FT_E_MISSING);
    assert_string_equal(err.message, "column \"temperature\" is missing");
    assert_int_equal(column, 1);
    assert_string_equal(ft__table_cell(t, 0), ""); /* before the first row */
    bool more;
    assert_int_equal(ft__table_next(t, &more, &err), FT_OK);
    assert_string_equal(ft__table_cell(t, 0), "h100");
    assert_string_equal(ft__table_cell(t, -1), "");
    assert_string_equal(ft__table_cell(t, 3), "");
    assert_int_equal(ft__table_next(t, &more, &err), FT_OK);
    assert_false(more);
    assert_string_equal(ft__table_cell(t, 0), "");
    assert_int_equal(ft__table_next(t, &more, &err), FT_OK);
    assert_false(more);
    ft__table_close(t);
    ft__table_close(NULL);
}

static void cells_as_numbers(void **state)
{
    (void)state;
    ft_table *t;
    ft_error err;
    bool more;
    double x = 7;
    int64_t n = 7;
    assert_int_equal(
        ft__table_open(scratch_text("n.csv", "name,x,n\nok, 1.5e-3 ,4096.0\nbad,inf,2.5\nbad,,\n"), &t, &err), FT_OK);
    assert_int_equal(ft__table_next(t, &more, &err), FT_OK);
    assert_int_equal(ft__table_number(t, 1, &x, &err), FT_OK);
    assert_true(x == 1.5e-3);
    assert_int_equal(ft__table_whole(t, 2, &n, &err), FT_OK);
    assert_int_equal(n, 4096);
    assert_int_equal(ft__table_number(t, 2, &x, &err), FT_OK);
    assert_true(x == 4096);
    assert_int_equal(ft__table_number(t, 0, &x, &err), FT_E_SYNTAX);
    assert_string_equal(err.message, "column \"name\" must hold a finite number, got \"ok\"");
    assert_int_equal(err.line, 2);
    assert_int_equal(err.column, 1);
    assert_int_equal(ft__table_next(t, &more, &err), FT_OK);
    assert_int_equal(ft__table_number(t, 1, &x, &err), FT_E_SYNTAX);
    assert_string_equal(err.message, "column \"x\" must hold a finite number, got \"inf\"");
    assert_int_equal(err.line, 3);
    assert_int_equal(err.column, 5);
    assert_int_equal(ft__table_whole(t, 2, &n, &err), FT_E_SYNTAX);
    assert_string_equal(err.message, "column \"n\" must hold a whole number, got \"2.5\"");
    assert_int_equal(ft__table_next(t, &more, &err), FT_OK);
    assert_int_equal(ft__table_number(t, 1, &x, &err), FT_E_SYNTAX);
    assert_int_equal(ft__table_number(t, -1, &x, &err), FT_E_SYNTAX);
    assert_int_equal(ft__table_whole(t, 99, &n, &err), FT_E_SYNTAX);
    assert_true(x == 4096 && n == 4096);
    ft__table_close(t);
}

static ft_status read_all(void *context)
{
    ft_table *t;
    ft_error err;
    ft_status status = ft__table_open(context, &t, &err);
    if (status != FT_OK) return status;
    bool more;
    while ((status = ft__table_next(t, &more, &err)) == FT_OK && more)
        ;
    ft__table_close(t);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    char text[8000] = "c0", path[1024];
    size_t n = 2;
    for (int i = 1; i < 100; i++) n += (size_t)sprintf(text + n, ",c%d", i);
    for (int i = 0; i < 100; i++) n += (size_t)sprintf(text + n, "%scell number %d", i ? "," : "\n", i);
    snprintf(path, sizeof path, "%s", scratch_gzip("alloc.csv.gz", text, n));
    assert_true(failing_alloc_sweep(read_all, path) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_whatever_the_line_ends_and_quotes),
        cmocka_unit_test(malformed_rows_are_refused_with_their_place),
        cmocka_unit_test(empty_missing_and_wrong_files),
        cmocka_unit_test(a_gzip_file_cut_anywhere_is_truncated),
        cmocka_unit_test(a_gzip_file_with_a_flipped_byte_is_damaged),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(rows_survive_the_edges_of_the_buffer),
        cmocka_unit_test(columns_are_found_by_name),
        cmocka_unit_test(cells_as_numbers),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("base_table", tests, scratch_make, scratch_remove);
}
