/* picture_screen.c: what an image or a video of its prompt takes, part by part. */
#include "report/text/picture_screen.h"

#include <inttypes.h>

#include "report/text/columns.h"
#include "report/text/lines.h"
#include "report/text/step_screen.h"

static void add_seconds(ft_text *out, double ms, int digits)
{
    ft__add_figure(out, ms * 1e-3, digits);
    ft__text_add(out, " s");
}

/* "seconds a to b; 23.9 GiB of 79.2, fits". */
static void time_line(ft_text *out, const ft_style *style, const char *label, const double ms[3], double need,
                      double capacity, ft_fit verdict)
{
    ft_text a = {0}, b = {0};
    ft__ink(&a, style, FT_INK_BOLD);
    add_seconds(&a, ms[0], 4);
    ft__ink_end(&a, style);
    ft__add_figure(&b, ms[1] * 1e-3, 3);
    ft__text_addf(&b, " %s ", ft__dash(style));
    ft__add_figure(&b, ms[2] * 1e-3, 3);
    ft__text_add(&b, " s; ");
    ft__add_gib(&b, need);
    ft__text_add(&b, " of ");
    ft__add_gib(&b, capacity);
    ft__text_addf(&b, " GiB: %s", verdict == FT_FIT_YES ? "fits" : verdict == FT_FIT_TIGHT ? "tight" : "does not fit");
    ft__line(out, style, label, &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static bool part_table(ft_text *out, const ft_style *style, const ft_generated *g)
{
    ft_columns c;
    ft__columns_init(&c, "llrrrr");
    c.drop = "e";
    static const char *const heads[] = {"part", "model", "passes", "seconds", "interval", "share"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) ft__cell_add(&c, heads[i]);
    for (size_t i = 0; i < g->part_count; i++) {
        const ft_generated_part *p = &g->parts[i];
        ft__cell_add(&c, p->what);
        ft__cell_add(&c, p->model);
        if (p->model[0])
            ft__cell_addf(&c, "%.0f", p->calls);
        else
            ft__cell_add(&c, "");
        ft__add_figure(ft__cell(&c), p->ms * 1e-3, 3);
        ft__cell_addf(&c, "-%.0f +%.0f %%", 100 * (1 - p->low_ms / p->ms), 100 * (p->high_ms / p->ms - 1));
        ft__add_percent(ft__cell(&c), p->ms / g->ms);
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

static void add_what(ft_text *out, const ft_style *style, const ft_generated *g)
{
    static const char *const guided[] = {"no passes for guidance", "guidance in a doubled batch",
                                         "guidance in a second pass"};
    ft_text t = {0};
    if (g->batch > 1) ft__text_addf(&t, "%" PRId64 " at once, ", g->batch);
    if (g->size.frames > 0) ft__text_addf(&t, "%" PRId64 " frames of ", g->size.frames);
    ft__text_addf(&t, "%" PRId64 "x%" PRId64 " pixels, %" PRId64 " step%s, %s; %s, %s attention%s", g->size.height,
                  g->size.width, g->steps, g->steps == 1 ? "" : "s", guided[g->guidance],
                  ft__execution_words[g->execution], ft__attention_words[g->attention],
                  g->tiled ? ", decoded in tiles" : "");
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_addf(out, "\n  %s", g->size.frames > 0 ? "video" : "image");
    ft__ink_end(out, style);
    ft__text_add(out, "  ");
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__text_add(out, "\n");
    ft__text_drop(&t, out);
}

bool ft__screen_picture(ft_text *out, const ft_style *style, const ft_generated *g)
{
    if (!g->by) return true;
    const double all[3] = {g->ms, g->low_ms, g->high_ms};
    const double away[3] = {g->offload_ms, g->offload_low_ms, g->offload_high_ms};
    add_what(out, style, g);
    bool printed = part_table(out, style, g);
    ft__text_add(out, "\n");
    time_line(out, style, "together", all, g->need_bytes, g->capacity_bytes, g->fits);
    time_line(out, style, "offloaded", away, g->offload_need_bytes, g->capacity_bytes, g->offload_fits);
    ft_text a = {0}, b = {0};
    ft__add_figure(&a, (double)g->batch * 3600e3 / (g->fits == FT_FIT_NO ? g->offload_ms : g->ms), 4);
    ft__text_add(&a, " per hour");
    if (g->energy.joules > 0) {
        ft__add_figure(&b, g->energy.joules / (double)g->batch, 3);
        ft__text_add(&b, " joules each");
    }
    ft__line(out, style, "rate", &a, b.at ? b.at : "");
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
    if (!g->by->decoder[0]) ft__text_add(out, "\n  What decodes its latents is not modelled, and not counted here.\n");
    return printed && !out->failed;
}
