/* calibration_screen.c: the table that `fit --calibrate` ends with. */
#include "report/text/calibration_screen.h"

#include <math.h>
#include <string.h>

#include "base/json_write.h"
#include "report/text/columns.h"

static void add_percent(ft_columns *c, double share)
{
    if (isfinite(share))
        ft__cell_addf(c, "%.1f %%", 100 * share);
    else
        ft__cell_add(c, "-");
}

static size_t variants_of(const ft_calibration_table *t, const char *family)
{
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++) n += !strcmp(t->lines[i].family, family) && t->lines[i].variant[0];
    return n;
}

bool ft__screen_calibration(ft_text *out, const ft_style *style, const ft_calibration_table *table)
{
    static const char *const head[] = {"family", "variant", "points", "held out",  "before",
                                       "after",  "inside",  "tried",  "constants", "learned"};
    ft_columns c;
    ft__columns_init(&c, "llrrrrrrll");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) ft__cell_add(&c, head[i]);
    for (size_t i = 0; i < table->count; i++) {
        const ft_calibration_line *l = &table->lines[i];
        bool whole = !l->variant[0], fitted = isfinite(l->tried);
        if (whole && variants_of(table, l->family) == 1) continue; /* its one variant says the same */
        ft__cell_add(&c, l->family);
        ft__cell_add(&c, whole ? "all" : l->variant);
        ft__cell_addf(&c, "%zu", l->points);
        ft__cell_addf(&c, "%zu", l->held_out);
        add_percent(&c, l->before);
        add_percent(&c, l->after);
        add_percent(&c, l->inside);
        add_percent(&c, l->tried);
        ft__cell_add(&c, whole ? "" : !fitted ? "inherited" : l->refitted ? "refitted" : "kept");
        ft__cell_add(&c, l->learned);
    }
    bool printed = ft__columns_print(&c, out, style, 0, true);
    ft__columns_free(&c);
    return printed;
}

static void add_figure(ft_text *out, const char *key, double value)
{
    if (isfinite(value)) ft__json_member_number(out, key, value, 6);
}

void ft__answer_calibration(ft_text *out, const ft_calibration_table *table)
{
    ft__json_open_list(out);
    for (size_t i = 0; i < table->count; i++) {
        const ft_calibration_line *l = &table->lines[i];
        ft__json_line(out);
        ft__json_open(out);
        ft__json_member_text(out, "family", l->family);
        if (l->variant[0]) ft__json_member_text(out, "variant", l->variant);
        ft__json_member_whole(out, "points", (int64_t)l->points);
        ft__json_member_whole(out, "held_out", (int64_t)l->held_out);
        add_figure(out, "before", l->before);
        add_figure(out, "after", l->after);
        add_figure(out, "inside", l->inside);
        add_figure(out, "tried", l->tried);
        ft__json_member_text(out, "constants", l->refitted ? "refitted" : "kept");
        ft__json_member_text(out, "learned", l->learned);
        ft__json_close(out);
    }
    ft__text_add(out, "\n");
    ft__json_close_list(out);
}
