/* style.c: ink, bars and numbers for people. */
#include "report/text/style.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void ft__ink(ft_text *out, const ft_style *style, ft_ink ink)
{
    /* Of the sixteen colours every terminal has; which shade they are is the user's own choice. */
    static const char *const codes[] = {
        [FT_INK_BOLD] = "\x1b[1m",    [FT_INK_DIM] = "\x1b[2m",  [FT_INK_GREEN] = "\x1b[32m",
        [FT_INK_YELLOW] = "\x1b[33m", [FT_INK_RED] = "\x1b[31m", [FT_INK_BLUE] = "\x1b[34m"};
    if (style->colour) ft__text_add(out, codes[ink]);
}

void ft__ink_end(ft_text *out, const ft_style *style)
{
    if (style->colour) ft__text_add(out, "\x1b[0m");
}

int ft__text_width(const char *text)
{
    int width = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == 0x1b && at[1] == '[') { /* our own escapes end in 'm' */
            while (*at && *at != 'm') at++;
            if (!*at) break;
            continue;
        }
        width += (*at & 0xC0) != 0x80; /* bytes that continue a character take no column */
    }
    return width;
}

void ft__text_pad(ft_text *out, int columns)
{
    for (; columns > 0; columns--) ft__text_add_n(out, " ", 1);
}

void ft__text_add_plain(ft_text *out, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        bool second_set = at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0; /* U+0080 to U+009F, escape's eight-bit kin */
        if (*at < 0x20 || *at == 0x7f || second_set) {
            ft__text_add_n(out, "?", 1);
            at += second_set;
        } else {
            ft__text_add_n(out, (const char *)at, 1);
        }
    }
}

void ft__add_bar(ft_text *out, const ft_style *style, double share, int cells)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (!(share > 0)) share = 0;
    if (share > 1) share = 1;
    int filled = (int)lround(share * cells * 8);
    if (filled == 0 && share > 0) filled = 1; /* a little is not nothing */
    if (!style->unicode) filled = (filled + 4) / 8 * 8;
    int drawn = 0;
    for (; drawn < filled / 8; drawn++) ft__text_add(out, style->unicode ? "█" : "#");
    if (filled % 8) {
        ft__text_add(out, eighths[filled % 8]);
        drawn++;
    }
    if (drawn == cells) return;
    ft__ink(out, style, FT_INK_DIM);
    for (; drawn < cells; drawn++) ft__text_add(out, style->unicode ? "·" : ".");
    ft__ink_end(out, style);
}

void ft__add_figure(ft_text *out, double value, int digits)
{
    if (!isfinite(value)) {
        ft__text_add(out, "?");
        return;
    }
    double size = fabs(value);
    if (size == 0) {
        ft__text_add(out, "0");
        return;
    }
    if (size < 1e-5 || size >= 1e9) {
        ft__text_addf(out, "%.*e", digits - 1, value);
        return;
    }
    int before = (int)floor(log10(size)) + 1; /* digits before the point; 0 and below for fractions */
    int after = digits - before;
    if (after > 0 && size >= pow(10, before) - 0.5 * pow(10, -after)) after--; /* rounds up into one more digit */
    ft__text_addf(out, "%.*f", after > 0 ? after : 0, value);
}

void ft__add_si(ft_text *out, double value, const char *unit)
{
    static const struct {
        double size;
        const char *prefix;
    } prefixes[] = {{1e30, "Q"}, {1e27, "R"}, {1e24, "Y"}, {1e21, "Z"}, {1e18, "E"}, {1e15, "P"}, {1e12, "T"},
                    {1e9, "G"},  {1e6, "M"},  {1e3, "k"},  {1, ""},     {1e-3, "m"}, {0, "u"}};
    if (value == 0) {
        ft__text_addf(out, "0 %s", unit);
        return;
    }
    int i = 0;
    while (prefixes[i].size > 0 && fabs(value) < prefixes[i].size * 0.99995) i++;
    ft__add_figure(out, value / (prefixes[i].size > 0 ? prefixes[i].size : 1e-6), 4);
    ft__text_addf(out, " %s%s", prefixes[i].prefix, unit);
}

void ft__add_ms(ft_text *out, double ms, int digits)
{
    double size = fabs(ms);
    bool seconds = size >= 1e4, micro = size > 0 && size < 1;
    ft__add_figure(out, seconds ? ms / 1e3 : micro ? ms * 1e3 : ms, digits);
    ft__text_add(out, seconds ? " s" : micro ? " µs" : " ms");
}

ft_time_unit ft__time_unit(double longest_ms)
{
    return fabs(longest_ms) >= 1e4 ? (ft_time_unit){1e3, "s"} : (ft_time_unit){1, "ms"};
}

void ft__add_percent(ft_text *out, double share)
{
    if (!isfinite(share))
        ft__text_add(out, "?");
    else if (fabs(share) < 0.0005)
        ft__text_add(out, "0.0 %");
    else
        ft__text_addf(out, fabs(share) < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * share);
}

void ft__add_change(ft_text *out, double share)
{
    if (!isfinite(share))
        ft__text_add(out, "?");
    else if (fabs(share) < 0.0005)
        ft__text_add(out, "0.0 %");
    else
        ft__text_addf(out, "%+.1f %%", 100 * share);
}

/* Digits before the zeros at the end of a whole number: 4 of 123400000. */
static int digits_of(double x)
{
    char text[40];
    snprintf(text, sizeof text, "%.0f", x);
    int digits = (int)strlen(text);
    while (digits > 1 && text[digits - 1] == '0') digits--;
    return digits;
}

bool ft__points_plain(const double *x, size_t count)
{
    bool large = false;
    for (size_t i = 0; i < count; i++) {
        if (x[i] != floor(x[i]) || digits_of(x[i]) > 4) return true;
        large = large || x[i] >= 1e7;
    }
    return !large;
}

void ft__add_point(ft_text *out, double x, bool plain)
{
    if (plain || !(x >= 1)) {
        ft__text_addf(out, x == floor(x) && fabs(x) < 1e16 ? "%.0f" : "%.10g", x);
        return;
    }
    int exponent = (int)floor(log10(x) + 1e-12);
    ft__text_addf(out, "%.4ge%d", x / pow(10, exponent), exponent);
}

const char *ft__dash(const ft_style *style) { return style->unicode ? "–" : "to"; }

const char *ft__times(const ft_style *style) { return style->unicode ? "×" : "x"; }
