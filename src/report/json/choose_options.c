/* choose_options.c: a choice of GPUs in few words: what each option takes, from the offer that it is paid by; the front
 * of days against dollars, and its knee. The whole of each stands in `choices`. */

#include "report/json/choose_answer.h"

/* A figure with its interval, which is that of the days: all of these grow with them. */
static void with_days(ft_text *out, const char *const keys[3], double value, const ft_span *days)
{
    double each[] = {1, days->low / days->at, days->high / days->at};
    for (int i = 0; i < 3; i++) ft__answer_figure(out, keys[i], value * each[i]);
}

static void spanned(ft_text *out, const char *const keys[3], const ft_span *s)
{
    double each[] = {s->at, s->low, s->high};
    for (int i = 0; i < 3; i++) ft__answer_figure(out, keys[i], each[i]);
}

static bool paid(const ft_choice *c) { return c->usd_per_hour > 0 || c->own_usd >= 0; }

static void offered(ft_text *out, const ft_choice *c)
{
    const ft_offer *o = ft__choice_offer(c);
    if (c->own_usd >= 0) ft__answer_figure(out, "price", c->own_usd);
    if (!o) return;
    ft__answer_word(out, "provider", o->provider);
    ft__answer_word(out, "instance", o->instance);
    ft__answer_figure(out, "price", o->usd_per_hour / (double)o->gpus);
    ft__answer_word(out, "price_date", o->date);
}

static void option(ft_text *out, const void *choice)
{
    const ft_choice *c = choice;
    static const char *const days[] = {"days", "low_days", "high_days"},
                             *const usd[] = {"dollars", "low_dollars", "high_dollars"},
                             *const kwh[] = {"kwh", "low_kwh", "high_kwh"},
                             *const kg[] = {"kg_co2", "low_kg_co2", "high_kg_co2"};
    ft__json_member_text(out, "gpu", c->gpu);
    ft__json_member_whole(out, "gpus", c->gpus);
    if (c->lost != FT_LOST_NOTHING) ft__answer_word(out, "loses_by", ft__lost_words[c->lost]);
    offered(out, c);
    if (!c->planned) return;
    ft__json_member_open(out, "plan");
    ft__answer_layout(out, &c->layout);
    ft__answer_figure(out, "step_ms", c->step_ms);
    ft__json_close(out);
    spanned(out, days, &c->days);
    if (c->in_time >= 0) ft__json_member_number(out, "chance_in_time", c->in_time, 3);
    if (paid(c)) spanned(out, usd, &c->usd);
    with_days(out, kwh, c->kwh, &c->days);
    with_days(out, kg, c->kg, &c->days);
    ft__json_member_number(out, "goodput", c->goodput.useful, 6);
}

static void point(ft_text *out, const void *choice)
{
    const ft_choice *c = choice;
    ft__json_member_text(out, "gpu", c->gpu);
    ft__json_member_whole(out, "gpus", c->gpus);
    ft__answer_figure(out, "days", c->days.at);
    ft__answer_figure(out, "dollars", c->usd.at);
}

static bool on_front(const void *choice) { return ((const ft_choice *)choice)->front; }
static bool is_knee(const void *choice) { return ((const ft_choice *)choice)->knee; }

void ft__answer_options(ft_text *out, const ft_chosen *c)
{
    ft_option_list list = {c->choices, c->count, sizeof *c->choices, option, point, on_front, is_knee};
    ft__answer_option_list(out, &list);
}

void ft__answer_option_list(ft_text *out, const ft_option_list *l)
{
    const char *choices = l->choices, *knee = NULL;
    ft__json_member_list(out, "options");
    for (size_t i = 0; i < l->count; i++) {
        ft__json_open(out);
        l->option(out, choices + i * l->size);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    ft__json_member_list(out, "pareto");
    for (size_t i = 0; i < l->count; i++) {
        const char *choice = choices + i * l->size;
        if (!knee && l->is_knee(choice)) knee = choice;
        if (!l->on_front(choice)) continue;
        ft__json_open(out);
        l->point(out, choice);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    if (!knee) return;
    ft__json_member_open(out, "knee");
    l->point(out, knee);
    ft__json_close(out);
}
