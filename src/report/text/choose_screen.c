/* choose_screen.c: the one chosen with its bill, then every kind and number of GPUs in a table: the front of days
 * against dollars is marked, and of the others stands what they lose by. */
#include "report/text/choose_screen.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/text/columns.h"
#include "report/text/lines.h"
#include "report/text/plan_screen.h"

/* "43,100", "1.25 M" */
static void add_usd(ft_text *out, double usd)
{
    if (usd >= 1e6) {
        ft__add_figure(out, usd * 1e-6, 3);
        ft__text_add(out, " M");
    } else if (usd >= 1e4) {
        ft__add_figure(out, usd * 1e-3, 3);
        ft__text_add(out, " k");
    } else {
        ft__add_figure(out, usd, 3);
    }
}

/* "1 T", "4.19 M" */
static void add_count(ft_text *out, double count)
{
    double unit = count >= 1e12 ? 1e12 : count >= 1e9 ? 1e9 : count >= 1e6 ? 1e6 : count >= 1e3 ? 1e3 : 1;
    ft__text_addf(out, "%.3g%s", count / unit,
                  unit == 1e12  ? " T"
                  : unit == 1e9 ? " G"
                  : unit == 1e6 ? " M"
                  : unit == 1e3 ? " k"
                                : "");
}

static void add_span(ft_text *out, const ft_style *style, const ft_span *s, void (*add)(ft_text *, double))
{
    add(out, s->low);
    ft__text_addf(out, " %s ", ft__dash(style));
    add(out, s->high);
}

static void add_three(ft_text *out, double value) { ft__add_figure(out, value, 3); }

/* Fine-tuning takes hours, or minutes. */
static double unit_of_days(double days, const char **unit)
{
    const double day_h = 24, day_min = 1440;
    if (days >= 1) return 1;
    *unit = days * day_h >= 1 ? "hours" : "minutes";
    return days * day_h >= 1 ? day_h : day_min;
}

static void title(ft_text *out, const ft_style *style, const char *model, const ft_chosen *c)
{
    ft_text t = {0};
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, "choose ");
    ft__text_add_plain(out, model);
    ft__ink_end(out, style);
    ft__text_add(out, "  ");
    add_count(out, c->asked->tokens);
    ft__text_addf(out, " %s, %.0f steps of ", c->samples ? "samples" : "tokens", c->steps);
    add_count(out, c->tokens_per_step);
    ft__text_add(out, "\n");
    const ft_failures *f = &c->asked->failures;
    if (f->per_node_day > 0)
        ft__text_addf(&t, "%.2g failures per node and day, %.0f s to restart, %.0f s to save; ", f->per_node_day,
                      f->restart_s, f->save_s);
    else
        ft__text_add(&t, "no failures; ");
    ft__text_addf(&t, "%s prices; PUE %.3g, %.3g kg of CO2 per kWh", ft__pricing_words[c->asked->pricing],
                  c->asked->pue, c->asked->kg_per_kwh);
    ft__ink(out, style, FT_INK_DIM);
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__ink_end(out, style);
    ft__text_drop(&t, out);
}

static void money_lines(ft_text *out, const ft_style *style, const ft_choice *c, ft_text *a, ft_text *b)
{
    const ft_offer *o = ft__choice_offer(c);
    ft__text_empty(a);
    ft__text_empty(b);
    ft__text_add(a, "$");
    add_usd(a, c->usd.at);
    add_span(b, style, &c->usd, add_usd);
    if (o)
        ft__text_addf(b, "; %s %s, $%.2f a GPU-hour (%s)", o->provider, o->instance, o->usd_per_hour / (double)o->gpus,
                      o->date);
    else
        ft__text_addf(b, "; your price, $%.2f a GPU-hour", c->own_usd);
    ft__line(out, style, "cost", a, b->at);
    if (!o) return;
    ft__text_empty(a);
    ft__text_empty(b);
    ft__text_addf(a, "$%.2f", c->price.median->usd_per_hour / (double)c->price.median->gpus);
    ft__text_addf(b, "the median GPU-hour (%s)", c->price.median->provider);
    if (c->price.hyperscaler)
        ft__text_addf(b, "; at a hyperscaler $%.2f (%s)",
                      c->price.hyperscaler->usd_per_hour / (double)c->price.hyperscaler->gpus,
                      c->price.hyperscaler->provider);
    ft__line(out, style, "", a, b->at);
}

static void chosen_lines(ft_text *out, const ft_style *style, const ft_choice *c)
{
    ft_text a = {0}, b = {0};
    ft__ink(&a, style, FT_INK_BOLD);
    ft__text_addf(&a, "%" PRId64 " %s %s", c->gpus, ft__times(style), c->gpu);
    ft__ink_end(&a, style);
    ft__add_layout(&b, style, &c->layout);
    ft__text_addf(&b, ", MFU ");
    ft__add_percent(&b, c->mfu);
    ft__line(out, style, "chosen", &a, b.at);
    ft__text_empty(&a);
    ft__text_empty(&b);
    const char *unit = "days";
    double per_day = unit_of_days(c->days.at, &unit);
    ft_span span = {c->days.at * per_day, c->days.low * per_day, c->days.high * per_day};
    ft__add_figure(&a, span.at, 3);
    ft__text_addf(&a, " %s", unit);
    add_span(&b, style, &span, add_three);
    ft__text_add(&b, "; ");
    add_count(&b, c->gpu_hours);
    ft__text_add(&b, " GPU-hours");
    if (c->in_time >= 0) {
        ft__text_add(&b, "; in time with a chance of ");
        ft__add_percent(&b, c->in_time);
    }
    ft__line(out, style, "time", &a, b.at);
    money_lines(out, style, c, &a, &b);
    ft__text_empty(&a);
    ft__text_empty(&b);
    ft__add_si(&a, c->kwh * 1e3, "Wh");
    ft__add_figure(&b, c->kg >= 1e3 ? c->kg * 1e-3 : c->kg, 3);
    ft__text_addf(&b, " %s of CO2; ", c->kg >= 1e3 ? "t" : "kg");
    ft__add_figure(&b, c->energy.watts, 3);
    ft__text_add(&b, " W per GPU, ");
    ft__add_figure(&b, c->energy.node_watts, 3);
    ft__text_add(&b, " with its node");
    ft__line(out, style, "energy", &a, b.at);
    if (isfinite(c->goodput.mtbf_s)) {
        ft__text_empty(&a);
        ft__text_empty(&b);
        ft__text_addf(&a, "%.1f %% useful", 100 * c->goodput.useful);
        ft__add_figure(&b, c->restarts, 2);
        ft__text_add(&b, " restarts to expect; save ");
        ft__add_figure(&b, c->goodput.checkpoint_bytes * 1e-9, 3);
        ft__text_add(&b, " GB every ");
        ft__add_figure(&b, c->goodput.interval_s / 60, 2);
        ft__text_add(&b, " min");
        ft__line(out, style, "goodput", &a, b.at);
    }
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static void near_one(ft_text *out, const ft_style *style, const char *which, const ft_choice *c)
{
    ft__text_addf(out, "%s, %" PRId64 " %s %s, takes ", which, c->gpus, ft__times(style), c->gpu);
    ft__add_figure(out, c->days.at, 3);
    ft__text_add(out, " days and $");
    add_usd(out, c->usd.at);
}

/* None keeps deadline and budget: what comes nearest to either. */
static void nearest(ft_text *out, const ft_style *style, const ft_chosen *c)
{
    const ft_choice *quick = NULL, *cheap = NULL;
    for (size_t i = 0; i < c->count; i++) {
        const ft_choice *one = &c->choices[i];
        if (one->lost != FT_LOST_DEADLINE && one->lost != FT_LOST_BUDGET) continue;
        if (!quick || one->days.at < quick->days.at) quick = one;
        if (!cheap || one->usd.at < cheap->usd.at) cheap = one;
    }
    if (!quick) return;
    ft_text t = {0};
    near_one(&t, style, quick == cheap ? "  The nearest" : "  The quickest", quick);
    if (quick != cheap) near_one(&t, style, "; the cheapest", cheap);
    ft__text_add(&t, ".");
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__text_drop(&t, out);
}

/* None is a choice: how many lose by what. */
static void none(ft_text *out, const ft_style *style, const ft_chosen *c)
{
    static const char *const words[FT_LOST_SPEED] = {NULL,
                                                     "not fitting",
                                                     "having no layout to forecast",
                                                     "never ending for failures",
                                                     "the network (nobody rents that many with RDMA)",
                                                     "having no known price",
                                                     "the deadline",
                                                     "the budget"};
    ft_text t = {0};
    if (c->count == 1)
        ft__text_add(&t, "  This is not a choice");
    else
        ft__text_addf(&t, "  None of these %zu is a choice", c->count);
    const char *between = ": ";
    for (int lost = FT_LOST_MEMORY; lost < FT_LOST_SPEED; lost++) {
        size_t count = 0;
        for (size_t i = 0; i < c->count; i++) count += c->choices[i].lost == (ft_lost)lost;
        if (!count) continue;
        if (c->count == 1)
            ft__text_addf(&t, "%sit loses by %s", between, words[lost]);
        else
            ft__text_addf(&t, "%s%zu lose%s by %s", between, count, count == 1 ? "s" : "", words[lost]);
        between = ", ";
    }
    ft__text_add(&t, ".");
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__text_drop(&t, out);
}

static const char *loses(const ft_choice *c)
{
    static const char *const words[FT_LOST_COUNT] = {"chosen",
                                                     "memory: nothing fits",
                                                     "no layout to forecast",
                                                     "failures: never done",
                                                     "network: no RDMA rented",
                                                     "no price known",
                                                     "past deadline",
                                                     "over budget",
                                                     "speed",
                                                     "price",
                                                     "energy"};
    return words[c->lost];
}

static bool table(ft_text *out, const ft_style *style, const ft_chosen *chosen)
{
    static const char *const head[] = {"GPU", "number", "layout", "days",    "dollars",
                                       "MWh", "useful", "front",  "loses by"};
    ft_columns t;
    ft__columns_init(&t, "lrlrrrrll");
    t.drop = "gfc";
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) ft__cell_add(&t, head[i]);
    for (size_t i = 0; i < chosen->count; i++) {
        const ft_choice *c = &chosen->choices[i];
        ft__cell_add(&t, i && !strcmp(c->gpu, chosen->choices[i - 1].gpu) ? "" : c->gpu);
        ft__cell_addf(&t, "%" PRId64, c->gpus);
        if (!c->planned) {
            for (int k = 0; k < 5; k++) ft__cell_add(&t, k ? "-" : "");
            ft__cell_add(&t, "");
            ft__cell_add(&t, loses(c));
            continue;
        }
        ft__add_layout(ft__cell(&t), style, &c->layout);
        bool ends = c->lost != FT_LOST_FAILURES;
        if (ends)
            ft__add_figure(ft__cell(&t), c->days.at, 3);
        else
            ft__cell_add(&t, "-");
        ft_text *cell = ft__cell(&t);
        if (ends && (c->usd_per_hour > 0 || c->own_usd >= 0))
            add_usd(cell, c->usd.at);
        else
            ft__text_add(cell, "-");
        if (ends)
            ft__add_figure(ft__cell(&t), c->kwh * 1e-3, 3);
        else
            ft__cell_add(&t, "-");
        ft__cell_addf(&t, "%.1f %%", 100 * c->goodput.useful);
        ft__cell_add(&t, c->knee ? "knee" : c->front ? "yes" : "");
        ft__cell_add(&t, loses(c));
    }
    ft__text_add(out, "\n");
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

/* Why a GPU has no layout, once for all its numbers that share it. */
static void refusals(ft_text *out, const ft_style *style, const ft_chosen *c)
{
    ft_text t = {0};
    for (size_t i = 0; i < c->count; i++) {
        const ft_choice *one = &c->choices[i];
        if (!*one->why || (i && !strcmp(one->why, c->choices[i - 1].why))) continue;
        ft__text_clear(&t);
        ft__text_addf(&t, "%" PRId64 " %s %s cannot be forecast: %s.", one->gpus, ft__times(style), one->gpu, one->why);
        ft__add_wrapped(out, style, t.at ? t.at : "");
    }
    ft__text_drop(&t, out);
}

void ft__choices_note(ft_text *out, const ft_style *style, const ft_choices_shown *shown, const char *whose)
{
    ft_text t = {0};
    if (shown->front)
        ft__text_add(&t, "The front has no choice that is both faster and cheaper; its knee is the corner nearest to "
                         "both. ");
    if (shown->offers)
        ft__text_addf(&t, "Dollars are the cheapest %s (data/prices), whole instances%s.", whose,
                      shown->own ? ", where no price is yours" : "");
    else if (shown->own)
        ft__text_add(&t, "Dollars are by your own price of a GPU-hour.");
    if (t.length) ft__add_wrapped(out, style, t.at);
    ft__text_drop(&t, out);
}

bool ft__screen_choose(ft_text *out, const ft_style *style, const char *model, const ft_chosen *c)
{
    title(out, style, model, c);
    ft__text_add(out, "\n");
    if (c->best < c->count)
        chosen_lines(out, style, &c->choices[c->best]);
    else
        none(out, style, c);
    if (c->best == c->count) nearest(out, style, c);
    if (c->best == c->count && c->least_gpus)
        ft__text_addf(out, "  %" PRId64 " %s %s are the smallest cluster that it fits on.\n", c->least_gpus,
                      ft__times(style), c->least_gpu);
    ft_choices_shown shown = {.front = false};
    bool refused = false;
    for (size_t i = 0; i < c->count; i++) {
        const ft_choice *one = &c->choices[i];
        refused = refused || *one->why;
        shown.front = shown.front || one->front;
        shown.offers = shown.offers || (one->planned && ft__choice_offer(one));
        shown.own = shown.own || (one->planned && one->own_usd >= 0);
    }
    bool printed = table(out, style, c);
    if (shown.front || shown.offers || shown.own || refused) ft__text_add(out, "\n");
    refusals(out, style, c);
    ft__choices_note(out, style, &shown, "offer's that a job of that size can take");
    return printed && !out->failed;
}
