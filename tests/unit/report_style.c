/* Text for people: numbers, bars, aligned columns, curves. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "foretell.h"
#include "report/text/columns.h"
#include "report/text/screen.h"
#include "report/text/style.h"

static const ft_style ascii = {.width = 80}, unicode = {.unicode = true, .width = 80},
                      colour = {.colour = true, .width = 80};

static void same(ft_text *out, const char *expected)
{
    assert_false(out->failed);
    assert_string_equal(expected, out->at ? out->at : "");
    ft__text_free(out);
}

static void figures_keep_their_digits(void **state)
{
    (void)state;
    static const struct {
        double value;
        int digits;
        const char *text;
    } cases[] = {{0.18937, 4, "0.1894"},
                 {12, 4, "12.00"},
                 {725.62, 4, "725.6"},
                 {4800, 4, "4800"},
                 {123456, 4, "123456"},
                 {9.9999, 4, "10.00"},
                 {99.999, 4, "100.0"},
                 {0.99996, 4, "1.000"},
                 {0.0019372, 3, "0.00194"},
                 {0, 4, "0"},
                 {1, 3, "1.00"},
                 {1e-7, 3, "1.00e-07"},
                 {2e12, 3, "2.00e+12"},
                 {-3.14159, 3, "-3.14"},
                 {NAN, 3, "?"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_text out = {0};
        ft__add_figure(&out, cases[i].value, cases[i].digits);
        same(&out, cases[i].text);
    }
}

static void changes_and_points_read_well(void **state)
{
    (void)state;
    static const struct {
        double share;
        const char *percent, *change;
    } shares[] = {{-0.0001, "0.0 %", "0.0 %"}, {0, "0.0 %", "0.0 %"},      {0.0004, "0.0 %", "0.0 %"},
                  {0.0006, "0.1 %", "+0.1 %"}, {-0.5, "-50 %", "-50.0 %"}, {NAN, "?", "?"}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        ft_text out = {0};
        ft__add_percent(&out, shares[i].share);
        same(&out, shares[i].percent);
        ft__add_change(&out, shares[i].share);
        same(&out, shares[i].change);
    }
    static const double tokens[] = {1e9, 1e10, 2.5e12}, sizes[] = {1048576, 134217728}, small[] = {0.25, 100};
    static const char *const said[] = {"1e9", "1e10", "2.5e12"};
    assert_false(ft__points_plain(tokens, 3));
    assert_true(ft__points_plain(sizes, 2) && ft__points_plain(small, 2));
    ft_text out = {0};
    for (int i = 0; i < 3; i++) {
        ft__add_point(&out, tokens[i], false);
        same(&out, said[i]);
    }
    ft__add_point(&out, sizes[1], true);
    same(&out, "134217728");
    ft__add_point(&out, small[0], true);
    same(&out, "0.25");
}

static void prefixes_reach_from_micro_to_quetta(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{137.438953e9, "137.4 GFLOP"}, {1e3, "1.000 kFLOP"},  {999.96, "1.000 kFLOP"}, {1, "1.000 FLOP"},
                 {3.2e24, "3.200 YFLOP"},       {5e30, "5.000 QFLOP"}, {2e27, "2.000 RFLOP"},   {0, "0 FLOP"},
                 {0.005, "5.000 mFLOP"},        {2e-6, "2.000 uFLOP"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_text out = {0};
        ft__add_si(&out, cases[i].value, "FLOP");
        same(&out, cases[i].text);
    }
}

static void times_have_the_unit_that_fits(void **state)
{
    (void)state;
    static const struct {
        double ms;
        const char *text;
    } cases[] = {{26725, "26.7 s"}, {9999, "9999 ms"}, {1e4, "10.0 s"}, {12.34, "12.3 ms"},
                 {1, "1.00 ms"},    {0.65, "650 µs"},  {0, "0 ms"},     {-0.0021, "-2.10 µs"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_text out = {0};
        ft__add_ms(&out, cases[i].ms, 3);
        same(&out, cases[i].text);
    }
}

static void bars_fill_in_eighths(void **state)
{
    (void)state;
    static const struct {
        double share;
        const char *ascii, *unicode;
    } cases[] = {
        /* Laid out by hand: four to a line would be more bytes than the 120 that are counted. */
        /* clang-format off */
        {0, "....", "····"},     {0.5, "##..", "██··"},
        {1, "####", "████"},     {7, "####", "████"},
        {-1, "....", "····"},    {NAN, "....", "····"},
        {0.001, "....", "▏···"}, {0.53125, "##..", "██▏·"},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_text out = {0};
        ft__add_bar(&out, &ascii, cases[i].share, 4);
        same(&out, cases[i].ascii);
        ft__add_bar(&out, &unicode, cases[i].share, 4);
        same(&out, cases[i].unicode);
    }
}

static void ink_takes_no_room_and_can_be_off(void **state)
{
    (void)state;
    ft_text out = {0};
    ft__ink(&out, &colour, FT_INK_BOLD);
    ft__text_add(&out, "é x");
    ft__ink_end(&out, &colour);
    assert_int_equal(3, ft__text_width(out.at));
    same(&out, "\x1b[1mé x\x1b[0m");
    ft__ink(&out, &ascii, FT_INK_BOLD);
    ft__text_add(&out, "x");
    ft__ink_end(&out, &ascii);
    same(&out, "x");
}

/* A spec file may hold any name; it must not reach the terminal as a command. */
static void hostile_names_are_made_harmless(void **state)
{
    (void)state;
    ft_text out = {0};
    ft__text_add_plain(&out, "a\x1b[31mb\x07\nc\x7f\xc2\x9b"
                             "d é");
    same(&out, "a?[31mb??c??d é");
}

static void values_are_quoted_where_they_must_be(void **state)
{
    (void)state;
    ft_text out = {0};
    ft__text_add_csv(&out, "last");
    same(&out, "last");
    ft__text_add_csv(&out, "x,\"y\"");
    same(&out, "\"x,\"\"y\"\"\"");
}

static void columns_align(void **state)
{
    (void)state;
    ft_columns c;
    ft_text out = {0};
    ft__columns_init(&c, "lrl");
    const char *const cells[] = {"name", "ms", "", "é", "1.25", "last", "longer", "", "x,\"y\""};
    for (int i = 0; i < 9; i++) ft__cell_add(&c, cells[i]);
    assert_true(ft__columns_print(&c, &out, &ascii, 1, true));
    same(&out, " name      ms  \n é       1.25  last\n longer        x,\"y\"\n");
    /* On a narrow terminal the columns named go first, and no more of them than must. */
    static const ft_style narrow = {.width = 12, .terminal = true};
    c.drop = "cb";
    assert_true(ft__columns_print(&c, &out, &narrow, 1, true));
    same(&out, " name\n é\n longer\n");
    static const ft_style wider = {.width = 14, .terminal = true};
    assert_true(ft__columns_print(&c, &out, &wider, 1, true));
    same(&out, " name      ms\n é       1.25\n longer      \n");
    ft__columns_free(&c);
}

static void a_staircase_looks_like_one(void **state)
{
    (void)state;
    const double x[] = {0, 1, 2, 3}, y[] = {1, 1, 3, 3};
    ft_text out = {0};
    ft__plot(&out, &ascii, &(ft_plot){x, y, 4, 8, 4, "n", "ms"});
    same(&out, "   3.00 ms +  ******\n"
               "      2.00 +  *\n"
               "           |***\n"
               "         0 +\n"
               "           +--------\n"
               "            0    n 3\n");
    /* One point and a flat line divide by nothing. */
    const double zero[] = {5}, flat[] = {0};
    ft__plot(&out, &unicode, &(ft_plot){zero, flat, 1, 8, 4, "n", "ms"});
    assert_false(out.failed);
    ft__text_free(&out);
}

static ft_status attempt(void *context)
{
    (void)context;
    ft_text out = {0};
    ft_columns c;
    ft_device device = {.name = "g", .sms = 1, .memory_gbps = 1, .peak_tflops = {[FT_BF16] = 1}};
    ft_screen_point points[3] = {0};
    for (int i = 0; i < 3; i++) {
        points[i].x = i;
        points[i].forecast = (ft_forecast){
            .ms = i + 1, .low_ms = 1, .high_ms = 9, .kin = "", .family = "", .bytes = 5, .tile_m = 1, .tile_n = 1};
    }
    ft_op op = {.kind = FT_OP_GEMM, .name = "gemm", .dtype = FT_BF16};
    ft__columns_init(&c, "ll");
    ft__cell_addf(&c, "%0*d", 200, 1);
    ft__cell_addf(&c, "%0*d", 200, 1);
    bool done = ft__columns_print(&c, &out, &ascii, 0, true);
    ft__columns_free(&c);
    done = ft__screen_sweep(&out, &unicode, "n", points, 3) && done;
    done = ft__csv_sweep(&out, "n", true, &device, points, 3) && done;
    ft__screen_kernel(&out, &colour, &op, &device, &points[0].forecast, 0.9);
    ft_screen_case cases[2] = {{.device = &device, .op = op, .forecast = points[0].forecast},
                               {.device = &device, .op = op, .forecast = points[1].forecast}};
    done = ft__screen_compare(&out, &unicode, cases, 2, 0.8) && done;
    ft_status status = out.failed || !done ? FT_E_MEMORY : FT_OK;
    ft__text_free(&out);
    return status;
}

static void running_out_of_memory_is_noticed(void **state)
{
    (void)state;
    assert_true(failing_alloc_sweep(attempt, NULL) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_keep_their_digits),
        cmocka_unit_test(changes_and_points_read_well),
        cmocka_unit_test(prefixes_reach_from_micro_to_quetta),
        cmocka_unit_test(times_have_the_unit_that_fits),
        cmocka_unit_test(bars_fill_in_eighths),
        cmocka_unit_test(ink_takes_no_room_and_can_be_off),
        cmocka_unit_test(hostile_names_are_made_harmless),
        cmocka_unit_test(values_are_quoted_where_they_must_be),
        cmocka_unit_test(columns_align),
        cmocka_unit_test(a_staircase_looks_like_one),
        cmocka_unit_test(running_out_of_memory_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
