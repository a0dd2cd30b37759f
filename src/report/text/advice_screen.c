/* advice_screen.c: tables of advice. */
#include "report/text/advice_screen.h"

#include <inttypes.h>
#include <math.h>

#include "memory/verdict.h"
#include "report/text/advice_words.h"
#include "report/text/columns.h"
#include "report/text/lines.h"

/* "+1.20", "-0.50", "0" where nothing changes to speak of. */
static void add_memory(ft_text *out, double bytes)
{
    if (fabs(bytes) < 0.005 * 1073741824.0) {
        ft__text_add(out, "0");
        return;
    }
    ft__text_add(out, bytes < 0 ? "-" : "+");
    ft__add_gib(out, fabs(bytes));
}

static void add_signed(ft_text *out, double value, int digits)
{
    if (value < 0) ft__text_add(out, "-");
    ft__add_figure(out, fabs(value), digits);
}

/* `fits`: a column more, where the step as asked or one of the changed ones has less than the room it wants. */
static void advice_row(ft_columns *c, const ft_style *style, const ft_step_view *v, const ft_advice *a, int room,
                       bool fits)
{
    ft_text t = {0};
    ft__advice_change(&t, a, v->asked);
    if (!a->exact) ft__text_add(&t, " *");
    ft__add_cut(ft__cell(c), &t, room);
    ft__text_free(&t);
    double unit = ft__time_unit(v->step->step_ms).ms;
    add_signed(ft__cell(c), a->saves_ms / unit, 3);
    ft_text *range = ft__cell(c);
    add_signed(range, a->low_ms / unit, 3);
    ft__text_addf(range, " %s ", ft__dash(style));
    add_signed(range, a->high_ms / unit, 3);
    ft__add_percent(ft__cell(c), a->saves_ms / v->step->step_ms);
    add_memory(ft__cell(c), a->memory_bytes);
    if (fits) ft__cell_add(c, ft__fit_answers[a->verdict]);
}

static int room_of(const ft_style *style)
{
    int room = style->width - 47;
    return room < 16 ? 16 : room > 56 ? 56 : room;
}

static bool scarce(const ft_step_view *v, const ft_advice *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].verdict != FT_FIT_YES) return true;
    return !v->step->memory.fits;
}

static bool advice_table(ft_text *out, const ft_style *style, const ft_step_view *v, const char *title,
                         const ft_advice *list, size_t count)
{
    ft_columns c;
    bool fits = scarce(v, list, count);
    int room = room_of(style) - (fits ? 6 : 0);
    ft__columns_init(&c, fits ? "lrrrrl" : "lrrrr");
    ft__cell_add(&c, title);
    ft__text_addf(ft__cell(&c), "saves %s", ft__time_unit(v->step->step_ms).name);
    ft__cell_add(&c, "range");
    ft__cell_add(&c, "share");
    ft__cell_add(&c, "GiB");
    if (fits) ft__cell_add(&c, "fits");
    for (size_t i = 0; i < count; i++) advice_row(&c, style, v, &list[i], room, fits);
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

static int64_t samples_of(const ft_change *c) { return c->work.batch * c->work.accumulate * c->parallel.dp; }

static void together_line(ft_text *out, const ft_style *style, const ft_step_view *v, size_t shown)
{
    const ft_advice *t = &v->advised->together;
    if (!(t->saves_ms > 0)) return;
    ft_text a = {0}, b = {0};
    ft_time_unit unit = ft__time_unit(v->step->step_ms);
    add_signed(&a, t->saves_ms / unit.ms, 4);
    ft__text_addf(&a, " %s", unit.name);
    ft__text_addf(&b, "all %zu", v->advised->count);
    if (shown < v->advised->count) ft__text_addf(&b, ", %zu of them above", shown);
    ft__text_add(&b, ": ");
    ft__add_figure(&b, t->step_ms / unit.ms, 4);
    ft__text_addf(&b, " %s", unit.name);
    int64_t asked = samples_of(v->asked), then = samples_of(&t->after);
    if (asked != then) ft__text_addf(&b, " for batch %" PRId64, then);
    if (t->verdict == FT_FIT_TIGHT) ft__text_add(&b, ", tight");
    ft__line(out, style, "together", &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

bool ft__screen_advice(ft_text *out, const ft_style *style, const ft_step_view *v, size_t most)
{
    const ft_advised *a = v->advised;
    if (!a || a->count == 0) return true;
    size_t shown = a->count < most ? a->count : most;
    ft__text_add(out, "\n");
    bool printed = advice_table(out, style, v, "what to change", a->list, shown);
    together_line(out, style, v, shown);
    if (a->closed_forms) ft__add_wrapped(out, style, ft__closed_remark);
    if (ft__advice_inexact(a->list, shown)) {
        ft__ink(out, style, FT_INK_DIM);
        ft__text_addf(out, "  %s\n", ft__inexact_remark);
        ft__ink_end(out, style);
    }
    return printed && !out->failed;
}

/* -- everything -------------------------------------------------------------------------------- */

static void verdict_row(ft_columns *c, const ft_verdict *x, const char *name, const char *held)
{
    ft__cell_add(c, name);
    ft__add_figure(ft__cell(c), x->ms, 4);
    ft__cell_add(c, held ? held : ft__bound_words(x->bound));
    ft__add_percent(ft__cell(c), x->share[x->bound]);
    ft__add_figure(ft__cell(c), x->intensity, 3);
    ft__add_figure(ft__cell(c), x->balance, 3);
    ft__add_figure(ft__cell(c), x->tflops, 3);
    ft__add_percent(ft__cell(c), x->peak_tflops > 0 ? x->tflops / x->peak_tflops : 0);
    ft__add_figure(ft__cell(c), x->gbps, 4);
    ft__add_percent(ft__cell(c), x->peak_gbps > 0 ? x->gbps / x->peak_gbps : 0);
    if (x->tail > 0)
        ft__add_percent(ft__cell(c), x->tail);
    else
        ft__cell_add(c, "0 %");
}

static bool verdict_table(ft_text *out, const ft_style *style, const ft_verdicts *v)
{
    static const char *const head[] = {"part",    "ms",      "bound by", "share",   "FLOP/byte", "balance",
                                       "TFLOP/s", "of peak", "GB/s",     "of peak", "tail"};
    ft_columns c;
    ft__columns_init(&c, "lrlrrrrrrrr");
    c.drop = "kfjhe"; /* tail, balance, both shares of peaks, intensity */
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) ft__cell_add(&c, head[i]);
    bool waits = v->whole.bound == FT_BOUND_OVERHEAD &&
                 v->bubble_ms > 0.5 * v->whole.share[FT_BOUND_OVERHEAD] * v->whole.ms;
    verdict_row(&c, &v->whole, "step", waits ? "pipeline bubble" : NULL);
    for (int p = 0; p < FT_PHASE_COUNT; p++)
        if (v->phase[p].ms > 0) verdict_row(&c, &v->phase[p], v->phase[p].name, NULL);
    for (size_t i = 0; i < v->layer_count; i++) {
        ft_text name = {0}, cut = {0};
        ft__text_add(&name, "block ");
        ft__text_add_plain(&name, v->layers[i].name);
        ft__add_cut(&cut, &name, 20);
        verdict_row(&c, &v->layers[i], cut.at ? cut.at : "", NULL);
        ft__text_drop(&name, out);
        ft__text_drop(&cut, out);
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

static void doubling_line(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    double ratio = ft__doubling(&v->advised->verdicts, v->step);
    if (!(ratio > 0)) return;
    ft_text a = {0}, b = {0};
    ft__text_addf(&a, "%.2f times", ratio);
    ft__text_addf(&b, "as long with batch %" PRId64 "%s", v->advised->verdicts.doubled_batch,
                  ratio > 1.8                                          ? ": the GPU sets the pace"
                  : ratio < 1.2 && v->step->bound == FT_BOUND_OVERHEAD ? ": the host sets the pace"
                  : ratio < 1.2 && v->step->bound == FT_BOUND_MEMORY   ? ": what is read once serves them all"
                                                                       : "");
    ft__line(out, style, "doubling", &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static void why_lines(ft_text *out, const ft_style *style, const ft_step_view *v, const ft_advice *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ft_text t = {0};
        ft__text_add(&t, "- ");
        ft__advice_change(&t, &list[i], v->asked);
        ft__text_add(&t, ": ");
        ft__advice_why(&t, &list[i], v->asked, v->advised->part_ms);
        ft__add_wrapped(out, style, t.at ? t.at : "");
        ft__text_drop(&t, out);
    }
}

static bool lint_table(ft_text *out, const ft_style *style, const ft_advised *a)
{
    enum { MOST = 20 };
    if (a->lint_count == 0) return true;
    ft_columns c;
    ft__columns_init(&c, "lrrll");
    static const char *const head[] = {"checklist", "ms", "saves", "finding", "cheapest fix"};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) ft__cell_add(&c, head[i]);
    for (size_t i = 0; i < a->lint_count && i < MOST; i++) {
        const ft_lint *l = &a->lints[i];
        ft_text *name = ft__cell(&c);
        ft__text_add_plain(name, l->block ? l->block : "");
        ft__text_add(name, ".");
        ft__text_add_plain(name, l->name ? l->name : "");
        ft__add_figure(ft__cell(&c), l->ms, 3);
        ft__add_figure(ft__cell(&c), l->saves_ms, 3);
        ft__lint_finding(ft__cell(&c), l);
        ft__lint_fix(ft__cell(&c), l);
    }
    ft__text_add(out, "\n");
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

bool ft__screen_advice_all(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    const ft_advised *a = v->advised;
    if (!a) return true;
    bool printed = verdict_table(out, style, &a->verdicts);
    ft__text_add(out, "\n");
    doubling_line(out, style, v);
    if (a->count == 0) ft__text_add(out, "  Nothing that we know of makes this step shorter.\n");
    printed = ft__screen_advice(out, style, v, SIZE_MAX) && printed;
    if (a->gpu_count > 0) {
        ft__text_add(out, "\n");
        printed = advice_table(out, style, v, "on another GPU", a->gpus, a->gpu_count) && printed;
    }
    if (a->count > 0) {
        ft__text_add(out, "\n");
        why_lines(out, style, v, a->list, a->count);
    }
    return lint_table(out, style, a) && printed && !out->failed;
}

bool ft__screen_techniques(ft_text *out, const ft_style *style, const ft_step_view *v)
{
    const ft_advised *a = v->advised;
    if (!a || !a->table) return true;
    ft_columns c;
    ft__columns_init(&c, "lrrrrrl");
    static const char *const head[] = {"technique", "step ms", "saves ms", "time", "peak GiB", "memory", "fits"};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) ft__cell_add(&c, head[i]);
    ft__cell_add(&c, "as asked");
    ft__add_figure(ft__cell(&c), v->step->step_ms, 4);
    ft__cell_add(&c, "");
    ft__cell_add(&c, "");
    ft__add_gib(ft__cell(&c), v->step->memory.peak_bytes);
    ft__cell_add(&c, "");
    ft__cell_add(&c, ft__fit_answers[v->step->memory.verdict]);
    for (size_t i = 0; i < a->table_count; i++) {
        const ft_advice *x = &a->table[i];
        ft_text t = {0};
        ft__advice_change(&t, x, v->asked);
        ft__add_cut(ft__cell(&c), &t, style->width < 96 ? style->width - 56 : 40);
        ft__text_drop(&t, out);
        ft__add_figure(ft__cell(&c), x->step_ms, 4);
        add_signed(ft__cell(&c), x->saves_ms, 3);
        ft__add_change(ft__cell(&c), -x->saves_ms / v->step->step_ms);
        ft__add_gib(ft__cell(&c), v->step->memory.peak_bytes + x->memory_bytes);
        ft__add_change(ft__cell(&c), x->memory_bytes / v->step->memory.peak_bytes);
        ft__cell_add(&c, ft__fit_answers[x->verdict]);
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    if (a->closed_forms) ft__add_wrapped(out, style, ft__closed_remark);
    ft__columns_free(&c);
    return printed && !out->failed;
}
