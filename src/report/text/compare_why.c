/* compare_why.c: why one step takes longer than another: its parts, then its kernels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/text/columns.h"
#include "report/text/compare_screen.h"
#include "report/text/lines.h"

enum { MOST_KERNELS = 10, NARROWEST_TABLE = 64 };

static void add_change(ft_text *out, double by)
{
    ft__text_add(out, by < 0 ? "-" : "+");
    ft__add_figure(out, fabs(by), 4);
}

/* Shares of a sum say something where its parts do not cancel: where none is ten times the sum or more. */
enum { CANCELS = 10 };
static bool parts_cancel(const ft_pair *p)
{
    for (size_t i = 0; i < p->cause_count; i++)
        if (fabs(p->causes[i].b_ms - p->causes[i].a_ms) >= CANCELS * fabs(p->change_ms)) return true;
    return false;
}

static bool print_causes(ft_text *out, const ft_style *style, const ft_pair *p, char b)
{
    bool table = style->width >= NARROWEST_TABLE, remarks = style->width >= 100;
    ft_columns t;
    ft__columns_init(&t, remarks ? "lrrrrl" : "lrrrr");
    static const char *const head[] = {"part", "A ms", "", "change", "of it", "why"};
    for (int i = 0; i < (remarks ? 6 : 5); i++)
        if (i == 2)
            ft__text_addf(ft__cell(&t), "%c ms", b);
        else
            ft__cell_add(&t, head[i]);
    size_t shown = 0;
    bool cancel = parts_cancel(p);
    for (size_t i = 0; i < p->cause_count; i++) {
        const ft_cause *c = &p->causes[i];
        double by = c->b_ms - c->a_ms;
        if (fabs(by) < 0.005 * fabs(p->change_ms) || !(fabs(by) > 1e-4 * p->a_ms)) continue;
        shown++;
        ft__cell_add(&t, c->name);
        ft__add_figure(ft__cell(&t), c->a_ms, 4);
        ft__add_figure(ft__cell(&t), c->b_ms, 4);
        add_change(ft__cell(&t), by);
        ft_text *share = ft__cell(&t);
        if (!cancel) ft__text_addf(share, "%.0f %%", 100 * by / p->change_ms);
        if (remarks) ft__cell_add(&t, c->why);
        if (!table) {
            ft__text_addf(out, "%s ", c->name);
            add_change(out, by);
            ft__text_add(out, " ms\n");
        }
    }
    bool printed = !table || shown == 0 || ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

static bool print_kernels(ft_text *out, const ft_style *style, const ft_pair *p, char b, bool all)
{
    size_t shown = 0, most = all ? p->kernel_count : MOST_KERNELS;
    bool wide = style->width >= 100;
    if (p->kernel_count == 0 || style->width < NARROWEST_TABLE) return true;
    ft_columns t;
    ft__columns_init(&t, wide ? "lllrrrrrl" : "llrrr");
    static const char *const head[] = {"kernel", "phase", "op", "A x", "B x", "A ms", "B ms", "change", "bound by"};
    for (int i = 0; i < 9; i++)
        if (wide || i < 2 || (i >= 5 && i < 8)) {
            ft_text *cell = ft__cell(&t);
            if (head[i][0] == 'B')
                ft__text_addf(cell, "%c%s", b, head[i] + 1);
            else
                ft__text_add(cell, head[i]);
        }
    for (size_t i = 0; i < p->kernel_count && shown < most; i++) {
        const ft_kernel_pair *k = &p->kernels[i];
        double by = k->ms[1] - k->ms[0];
        if (!(fabs(by) > 1e-6 * p->a_ms) || (!all && fabs(by) < 1e-3 * fabs(p->change_ms))) break;
        shown++;
        ft_text name = {0};
        ft__text_add_plain(&name, k->name);
        ft__add_cut(ft__cell(&t), &name, 32);
        ft__text_drop(&name, out);
        ft__cell_add(&t, k->phase);
        if (wide) {
            ft__cell_add(&t, k->op);
            for (int s = 0; s < 2; s++) ft__text_addf(ft__cell(&t), "%.4g", k->launches[s]);
        }
        for (int s = 0; s < 2; s++) {
            ft_text *cell = ft__cell(&t);
            if (k->launches[s] > 0) ft__add_figure(cell, k->ms[s], 4);
        }
        add_change(ft__cell(&t), by);
        if (!wide) continue;
        ft_text *cell = ft__cell(&t);
        if (k->launches[0] <= 0)
            ft__text_addf(cell, "only in %c", b);
        else if (k->launches[1] <= 0)
            ft__text_add(cell, "only in A");
        else if (strcmp(k->bound[0], k->bound[1]) != 0)
            ft__text_addf(cell, "%.20s, was %.20s", k->bound[1], k->bound[0]);
        else
            ft__text_addf(cell, "%.20s", k->bound[0]);
    }
    ft__text_add(out, shown ? "\n" : "\n  No kernel differs.\n");
    bool printed = shown == 0 || ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

bool ft__screen_pair(ft_text *out, const ft_style *style, const ft_compared *c, size_t other, bool all)
{
    ft_pair p;
    ft_text line = {0};
    char b = (char)('A' + other);
    if (!ft__compare_pair(&c[0], &c[other], &p)) return false;
    ft__text_add(out, "\n");
    double by = fabs(p.change_ms);
    bool same = by <= 0.0005 * p.a_ms, faster = p.change_ms < 0;
    if (same) {
        ft__text_addf(&line, "%c takes as long as A", b);
    } else {
        ft__text_addf(&line, "%c is %.2f times as fast as A: ", b, p.a_ms / p.b_ms);
        ft__add_figure(&line, by, 4);
        ft__text_addf(&line, " ms %s", faster ? "less" : "more");
    }
    if (p.work != 1) ft__text_addf(&line, " for the samples of A's step (%c's step %.4g times)", b, p.work);
    if (!same) ft__text_addf(&line, "; the intervals %s", p.apart ? "lie apart" : "overlap");
    ft__text_add(&line, ".");
    ft__ink(out, style, FT_INK_BOLD);
    ft__add_wrapped(out, style, line.at ? line.at : "");
    ft__ink_end(out, style);
    for (int i = 0; i < 2; i++) { /* of a kernel: rows that are not aligned */
        const char *note = json_string_value(json_object_get(c[i ? other : 0].answer, "note"));
        ft_text said = {0};
        if (note) ft__text_addf(&said, "%c: ", i ? b : 'A');
        if (note) ft__text_add_plain(&said, note);
        if (note) ft__add_wrapped(out, style, said.at ? said.at : "");
        ft__text_drop(&said, out);
    }
    bool printed = print_causes(out, style, &p, b) && print_kernels(out, style, &p, b, all) && !line.failed;
    ft__text_drop(&line, out);
    free(p.kernels);
    return printed;
}
