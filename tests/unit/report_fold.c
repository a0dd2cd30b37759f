/* Folding: nothing is lost, nothing is wider than the terminal, and what fits stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/text/fold.h"

static char *folded(ft_text *text, const char *from, int width)
{
    ft_style style = {.width = width, .terminal = true};
    *text = (ft_text){0};
    ft__text_add(text, from);
    ft__fold(text, &style);
    assert_false(text->failed);
    return text->at;
}

static void columns_break_first(void **state)
{
    (void)state;
    ft_text t;
    assert_string_equal(folded(&t, "  step        49.22 ms          nine times in ten\n", 20),
                        "  step  49.22 ms\n    nine times in\n    ten\n");
    ft__text_free(&t);
    /* Columns that fit stay under each other; what does not goes on below. */
    assert_string_equal(folded(&t, "  a      1  bc\n  long  22  a longer remark\n", 16),
                        "  a      1  bc\n  long  22\n    a longer\n    remark\n");
    ft__text_free(&t);
    assert_string_equal(folded(&t, "head  abcdefghijklmnopqrstuvwxyz\n", 12),
                        "head\n    abcdefgh\n    ijklmnop\n    qrstuvwx\n    yz\n");
    ft__text_free(&t);
}

static void what_fits_stays(void **state)
{
    (void)state;
    static const char *const lines[] = {"", "\n", "  a   b\n\n", "a line of just 20 ch\n", "no end of line"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        ft_text t;
        char *got = folded(&t, lines[i], 20);
        assert_string_equal(got ? got : "", lines[i]);
        ft__text_free(&t);
    }
    ft_text t;
    char wide[200];
    memset(wide, 'x', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    ft_style pipe = {.width = 72};
    t = (ft_text){0};
    ft__text_add(&t, wide);
    ft__fold(&t, &pipe);
    assert_string_equal(t.at, wide); /* what goes to a file stays whole */
    ft__text_free(&t);
}

static int widest(const char *text)
{
    int most = 0, at = 0;
    for (; *text; text++) {
        if (*text == '\x1b') {
            while (*text && *text != 'm') text++;
            continue;
        }
        if (*text == '\n')
            at = 0;
        else if (((unsigned char)*text & 0xC0) != 0x80 && ++at > most)
            most = at;
    }
    return most;
}

static void squeeze(char *text) /* without blanks and line ends */
{
    char *to = text;
    for (; *text; text++)
        if (*text != ' ' && *text != '\n') *to++ = *text;
    *to = 0;
}

static void nothing_is_lost(void **state)
{
    (void)state;
    static const char screen[] =
        "\x1b[1mgpt2\x1b[0m  training step on NVIDIA H200 SXM 141 GB\n"
        "  \x1b[2mforward     \x1b[0m17.14 ms          "
        "\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xc2\xb7\xc2\xb7  35 %\n"
        "  layers.attn.attend  forward   attention batch 8 heads 12 ..        12    0.176     2.118  4.7 %  compute\n"
        "\xff broken \xc3 text that is far too long for a terminal of so few columns\n";
    for (int width = 0; width < 90; width++) {
        ft_text t;
        char before[sizeof screen];
        char *got = folded(&t, screen, width);
        if (width >= 12 && widest(got) > width) fail_msg("%d columns on %d", widest(got), width);
        strcpy(before, screen);
        squeeze(before);
        squeeze(got);
        assert_string_equal(got, before);
        ft__text_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_break_first),
        cmocka_unit_test(what_fits_stays),
        cmocka_unit_test(nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
