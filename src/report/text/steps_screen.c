/* steps_screen.c: the same step on several GPUs, and days to train. */
#include <math.h>

#include "memory/verdict.h"
#include "report/json/answer.h"
#include "report/text/columns.h"
#include "report/text/lines.h"
#include "report/text/step_screen.h"

bool ft__screen_steps(ft_text *out, const ft_style *style, const ft_step_case *cases, size_t count, double quantile)
{
    enum { SMALL_BAR = 16 };
    bool bar = style->width >= 110, wide = style->width >= 90;
    const double tokens = count ? cases[0].days.tokens : 0;
    double slowest = 0;
    for (size_t i = 0; i < count; i++) slowest = fmax(slowest, cases[i].step.step_ms);
    ft_columns c;
    static const char *const head[] = {"gpu",      "step ms", "low",      "high", "",        "speed",
                                       "tokens/s", "MFU",     "peak GiB", "fits", "bound by"};
    ft__columns_init(&c, tokens > 0 ? (bar    ? "lrrrlrrrrllr"
                                       : wide ? "lrrrrrrrllr"
                                              : "lrrrrrrllr")
                         : bar      ? "lrrrlrrrrll"
                         : wide     ? "lrrrrrrrll"
                                    : "lrrrrrrll");
    c.drop = bar ? "ehkfg" : wide ? "gjef" : "fieg";
    for (int i = 0; i < 11; i++)
        if ((bar || i != 4) && (wide || i != 5)) ft__cell_add(&c, head[i]);
    if (tokens > 0) ft__cell_add(&c, "days");
    for (size_t i = 0; i < count; i++) {
        const ft_step *s = &cases[i].step;
        ft__cell_add(&c, cases[i].device.name);
        ft__add_figure(ft__cell(&c), s->step_ms, 4);
        ft__add_figure(ft__cell(&c), s->low_ms, 4);
        ft__add_figure(ft__cell(&c), s->high_ms, 4);
        if (bar) ft__add_bar(ft__cell(&c), style, s->step_ms / slowest, SMALL_BAR);
        if (wide) ft__text_addf(ft__cell(&c), "%.2f%s", cases[0].step.step_ms / s->step_ms, ft__times(style));
        ft__add_figure(ft__cell(&c), s->tokens_per_s, 4);
        ft__add_percent(ft__cell(&c), s->mfu);
        ft__add_gib(ft__cell(&c), s->memory.peak_bytes);
        ft__cell_add(&c, ft__fit_answers[s->memory.verdict]);
        ft__cell_add(&c, ft__bound_by_bubble(s) ? "bubble" : ft_bound_name(s->bound));
        if (tokens > 0) ft__add_figure(ft__cell(&c), cases[i].days.days, 3);
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    ft__text_add(out, "\n  The truth should lie in low to high ");
    ft__add_confidence(out, quantile);
    if (wide) ft__text_addf(out, "; speed relative to %s", cases[0].device.name);
    ft__text_add(out, ".\n");
    if (tokens > 0) {
        ft__text_add(out, "  Days to train on ");
        ft__add_si(out, tokens, " tokens");
        ft__text_addf(out, ", on %.0f GPU%s of a kind.\n", cases[0].days.gpus, cases[0].days.gpus > 1 ? "s" : "");
    }
    return printed && !out->failed;
}

void ft__screen_days(ft_text *out, const ft_style *style, const ft_days *d)
{
    ft_text a = {0}, b = {0};
    ft__text_add(out, "\n");
    ft__ink(&a, style, d->fits ? FT_INK_BOLD : FT_INK_RED);
    if (d->fits) {
        ft__add_figure(&a, d->days, 3);
        ft__text_add(&a, " days");
    } else {
        ft__text_add(&a, "does not fit");
        ft__add_figure(&b, d->days, 3);
        ft__text_add(&b, " days if it did: ");
    }
    ft__ink_end(&a, style);
    ft__add_si(&b, d->tokens, " tokens");
    ft__text_addf(&b, " on %.0f GPU%s", d->gpus,
                  d->gpus <= 1  ? ""
                  : d->laid_out ? "s, as laid out"
                                : "s, perfectly data-parallel");
    if (d->days > 730) ft__text_addf(&b, ": %.0f years", d->days / 365.25);
    ft__line(out, style, "to train", &a, b.at);
    ft__text_empty(&a);
    ft__text_empty(&b);
    ft__add_figure(&a, d->closed_8, 3);
    ft__text_add(&a, " days");
    ft__text_add(&b, "8TP/(nX), X = ");
    ft__add_figure(&b, d->achieved_tflops, 4);
    ft__text_add(&b, " TFLOP/s; 6TP/(nX): ");
    ft__add_figure(&b, d->closed_6, 3);
    if (d->fits) ft__line(out, style, "formula", &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

void ft__answer_days(ft_text *out, const ft_days *d)
{
    ft__json_member_open(out, "training");
    ft__json_member_number(out, "tokens", d->tokens, 6);
    ft__answer_figure(out, "gpus", d->gpus);
    ft__answer_figure(out, "steps", d->steps);
    ft__answer_figure(out, "days", d->days);
    ft__json_member_flag(out, "fits", d->fits);
    ft__answer_figure(out, "achieved_tflops_per_gpu", d->achieved_tflops);
    ft__answer_figure(out, "formula_8tp_days", d->closed_8);
    ft__answer_figure(out, "formula_6tp_days", d->closed_6);
    ft__json_close(out);
}
