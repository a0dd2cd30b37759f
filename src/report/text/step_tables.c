/* step_tables.c: the kernels and the layers of a step, as tables. */
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "report/text/columns.h"
#include "report/text/describe.h"
#include "report/text/lines.h"
#include "report/text/step_screen.h"

/* Columns of the names and of the operators; 0 for none of these, where they would say nothing. */
typedef struct kernel_widths {
    int name, op;
    bool fused; /* some were merged of several operators: how many is a column */
} kernel_widths;

static void kernel_head(ft_columns *c, kernel_widths w)
{
    static const char *const head[] = {"kernel",  "phase",    "operator", "fuses",   "launches",
                                       "each ms", "total ms", "share",    "bound by"};
    for (int i = 0; i < 9; i++)
        if ((w.op > 0 || i != 2) && (w.fused || i != 3)) ft__cell_add(c, head[i]);
}

static void add_kernel_name(ft_text *out, const ft_merged *m)
{
    const char *block = m->block->name ? m->block->name : "";
    ft__text_add_plain(out, block);
    if (*block) ft__text_add(out, ".");
    ft__text_add_plain(out, m->node->name ? m->node->name : "");
}

static void kernel_row(ft_columns *c, const ft_merged *m, double busy_ms, kernel_widths w)
{
    ft_text text = {0};
    add_kernel_name(&text, m);
    ft__add_cut(ft__cell(c), &text, w.name);
    ft__cell_add(c, ft__phase_name(m->node->phase));
    if (w.op > 0) {
        ft__text_empty(&text);
        ft__describe_op(&text, &m->node->op);
        ft__add_cut(ft__cell(c), &text, w.op);
    }
    ft__text_free(&text);
    if (w.fused && m->node->members > 1) ft__cell_addf(c, "%d", (int)m->node->members);
    if (w.fused && m->node->members <= 1) ft__cell_add(c, "");
    ft__cell_addf(c, "%.0f", m->count);
    ft__add_figure(ft__cell(c), m->forecast->ms, 3);
    ft__add_figure(ft__cell(c), m->total_ms, 4);
    ft__add_percent(ft__cell(c), m->total_ms / busy_ms);
    ft__cell_add(c, ft_bound_name(m->forecast->bound));
}

/* The most expensive first; a few of many, so that selection is cheap. */
static void pick_dearest(ft_merged *merged, size_t count, size_t most)
{
    for (size_t i = 0; i < most; i++) {
        size_t top = i;
        for (size_t k = i + 1; k < count; k++)
            if (merged[k].total_ms > merged[top].total_ms) top = k;
        ft_merged swap = merged[i];
        merged[i] = merged[top];
        merged[top] = swap;
    }
}

/* What the other columns leave: names first, up to a third of the line, then operators. */
static kernel_widths widths_of(ft_text *out, const ft_style *style, const ft_merged *merged, size_t count)
{
    enum { OTHERS = 61, FUSES = 7, BETWEEN = 2, LEAST = 24 };
    kernel_widths w = {0};
    for (size_t i = 0; i < count; i++) {
        ft_text name = {0};
        add_kernel_name(&name, &merged[i]);
        int width = ft__text_width(name.at ? name.at : "");
        if (width > w.name) w.name = width;
        w.fused = w.fused || (style->width >= 90 && merged[i].node->members > 1); /* a narrow one does without */
        ft__text_drop(&name, out);
    }
    int others = OTHERS + (w.fused ? FUSES : 0);
    int most = style->width / 3 > style->width - others ? style->width - others : style->width / 3;
    if (most < 16) most = 16;
    if (w.name > most) w.name = most;
    int left = style->width - others - BETWEEN - w.name;
    if (left >= LEAST) w.op = left;
    return w;
}

/* Details of a step on many GPUs are those of one. */
static void say_whose(ft_text *out, const ft_step_view *v)
{
    if (!v->ranked) return;
    ft__text_add(out, "\n  Of one GPU");
    if (v->parallel->pp > 1) ft__text_addf(out, " of stage %" PRId64 ", the slowest", ft__slowest_stage(v) + 1);
    if (v->step->micros > 1) ft__text_addf(out, ", in all %" PRId64 " micro-batches", v->step->micros);
    ft__text_add(out, "; no exchanges.\n");
}

bool ft__screen_kernels(ft_text *out, const ft_style *style, const ft_step_view *v, size_t most)
{
    size_t count;
    ft_merged *merged = ft__merge_kernels(v, &count);
    if (!merged) return false;
    if (most < count) {
        pick_dearest(merged, count, most);
        count = most;
    }
    ft_columns c;
    kernel_widths w = widths_of(out, style, merged, count);
    static const char *const aligns[2][2] = {{"llrrrrl", "lllrrrrl"}, {"llrrrrrl", "lllrrrrrl"}};
    ft__columns_init(&c, aligns[w.fused][w.op > 0]);
    kernel_head(&c, w);
    for (size_t i = 0; i < count; i++) kernel_row(&c, &merged[i], v->step->busy_ms, w);
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    if (most == SIZE_MAX) say_whose(out, v);
    return printed && !out->failed;
}

bool ft__screen_layers(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    size_t count;
    const ft_layer *layers = ft__layers(v, &count);
    if (!layers) return false;
    static const char *const head[] = {"block", "times",      "forward ms", "recompute", "backward",
                                       "share", "parameters", "saved GiB",  "arithmetic"};
    bool recomputes = v->work->recompute != FT_RECOMPUTE_NONE,
         wide = style->width >= 90; /* a narrow one does without */
    char align[10] = "lrrrrrrrr";
    align[(recomputes ? 8 : 7) + (wide ? 1 : 0)] = '\0';
    ft_columns c;
    ft__columns_init(&c, align);
    for (int i = 0; i < 9; i++)
        if ((recomputes || i != 3) && (wide || i != 8)) ft__cell_add(&c, head[i]);
    for (size_t i = 0; i < count; i++) {
        const ft_layer *l = &layers[i];
        ft__cell_add(&c, l->name ? l->name : "");
        ft__cell_addf(&c, "%.0f", l->repeat);
        ft__add_figure(ft__cell(&c), l->forward_ms, 4);
        if (recomputes) ft__add_figure(ft__cell(&c), l->recompute_ms, 4);
        ft__add_figure(ft__cell(&c), l->backward_ms, 4);
        ft__add_percent(ft__cell(&c), (l->forward_ms + l->recompute_ms + l->backward_ms) / v->step->busy_ms);
        ft__add_parameters(ft__cell(&c), l->parameters);
        ft__add_gib(ft__cell(&c), l->saved_bytes);
        if (wide) ft__add_si(ft__cell(&c), l->flops, "FLOP");
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    say_whose(out, v);
    return printed && !out->failed;
}
