/* lines.c: lines of a screen. */
#include "report/text/lines.h"

#include <math.h>
#include <string.h>

void ft__heading(ft_text *out, const ft_style *style, const char *text)
{
    ft__text_add(out, "\n");
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, text);
    ft__ink_end(out, style);
    ft__text_add(out, "\n");
}

/* A dim label in its column, then the cursor stands where the figure goes. */
static void begin_line(ft_text *out, const ft_style *style, const char *label)
{
    ft__text_add(out, "  ");
    ft__ink(out, style, FT_INK_DIM);
    ft__text_addf(out, "%-*s", FT_LINE_LABEL, label);
    ft__ink_end(out, style);
}

void ft__line(ft_text *out, const ft_style *style, const char *label, const ft_text *figure, const char *remark)
{
    const char *text = figure->at ? figure->at : "";
    begin_line(out, style, label);
    ft__text_add(out, text);
    if (remark && *remark) {
        int gap = FT_LINE_FIGURE - ft__text_width(text);
        ft__text_pad(out, gap > 0 ? gap : 1);
        ft__text_add(out, remark);
    }
    ft__text_add(out, "\n");
    if (figure->failed) out->failed = true;
}

void ft__add_wrapped(ft_text *out, const ft_style *style, const char *text)
{
    int at = 0;
    while (*text) {
        char word[128];
        size_t length = strcspn(text, " ");
        if (length >= sizeof word) length = sizeof word - 1;
        memcpy(word, text, length);
        word[length] = '\0';
        int width = ft__text_width(word);
        if (at > 0) {
            bool fits = at + 1 + width <= style->width;
            ft__text_add_n(out, fits ? " " : "\n", 1);
            at = fits ? at + 1 : 0;
        }
        ft__text_add(out, word);
        at += width;
        text += length;
        while (*text == ' ') text++;
    }
    ft__text_add(out, "\n");
}

/* Text cut to its column; what tells things apart stands first. */
void ft__add_cut(ft_text *out, const ft_text *text, int most)
{
    const char *at = text->at ? text->at : "";
    if (most < 8) most = 8; /* two dots alone say nothing: the line is folded instead */
    size_t shown = (int)strlen(at) > most ? ft__utf8_cut(at, most > 2 ? (size_t)(most - 2) : 0) : strlen(at);
    ft__text_add_n(out, at, shown);
    if (at[shown]) ft__text_add(out, "..");
    out->failed = out->failed || text->failed;
}

void ft__add_confidence(ft_text *out, double quantile)
{
    if (fabs(quantile - 0.9) < 1e-9)
        ft__text_add(out, "nine times in ten");
    else
        ft__text_addf(out, "in %g %% of cases", 100 * quantile);
}

const char *ft__bound_words(ft_bound bound)
{
    static const char *const words[] = {[FT_BOUND_COMPUTE] = "arithmetic",
                                        [FT_BOUND_MEMORY] = "memory bandwidth",
                                        [FT_BOUND_OVERHEAD] = "launch overhead",
                                        [FT_BOUND_COMMUNICATION] = "communication"};
    return (unsigned)bound < 4 ? words[bound] : "?";
}

const char *ft__bound_at_words(const ft_forecast *f)
{
    bool waits = f->bound == FT_BOUND_OVERHEAD && f->launch_ms < 0.5 * f->ms;
    return waits ? "latency" : ft__bound_words(f->bound);
}

void ft__add_gib(ft_text *out, double bytes)
{
    double gib = bytes / 1073741824.0;
    if (gib >= 0.0995)
        ft__add_figure(out, gib, 3);
    else
        ft__text_addf(out, "%.2f", gib); /* hundredths are enough */
}

void ft__add_parameters(ft_text *out, double count)
{
    static const struct {
        double size;
        const char *unit;
    } units[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}};
    for (int i = 0; i < 4; i++)
        if (count >= units[i].size * 0.9995) {
            ft__add_figure(out, count / units[i].size, 3);
            ft__text_addf(out, " %s", units[i].unit);
            return;
        }
    ft__text_addf(out, "%.0f", count);
}
