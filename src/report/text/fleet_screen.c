/* fleet_screen.c: ways to serve side by side, what others lose by, what starts the best one; and which GPUs to rent. */
#include "report/text/fleet_screen.h"

#include <inttypes.h>
#include <string.h>

#include "report/launch/engines.h"
#include "report/text/choose_screen.h"
#include "report/text/columns.h"
#include "report/text/lines.h"

static void add_engine(ft_text *out, const ft_engine_layout *l)
{
    ft__text_addf(out, "tp %" PRId64, l->tp);
    if (l->pp > 1) ft__text_addf(out, ", pp %" PRId64, l->pp);
    if (l->dp > 1) ft__text_addf(out, ", dp %" PRId64, l->dp);
    if (l->ep > 1) ft__text_addf(out, ", ep %" PRId64, l->ep);
}

/* "3 x (tp 4)"; "prefill 2 x (tp 1), decode 1 x (tp 2)" */
static void add_way(ft_text *out, const ft_style *style, const ft_way *w)
{
    if (w->prefill.tp) {
        ft__text_addf(out, "prefill %" PRId64 " %s (", w->prefill_workers, ft__times(style));
        add_engine(out, &w->prefill);
        ft__text_add(out, "), decode ");
    }
    if (w->replicas > 0) ft__text_addf(out, "%" PRId64 " %s (", w->replicas, ft__times(style));
    add_engine(out, &w->layout);
    if (w->replicas > 0) ft__text_add(out, ")");
}

static void add_settings(ft_text *out, const ft_way *w)
{
    if (w->budget) ft__text_addf(out, "%" PRId64 " tokens", w->budget);
    if (w->max_seqs) ft__text_addf(out, "%s%" PRId64 " sequences", w->budget ? ", " : "", w->max_seqs);
    if (!w->budget && !w->max_seqs) ft__text_add(out, "its own");
}

static void bold(ft_text *out, const ft_style *style, const char *text)
{
    ft__ink(out, style, FT_INK_BOLD);
    ft__text_add(out, text);
    ft__ink_end(out, style);
}

static bool plans(ft_text *out, const ft_style *style, const ft_fleet *f)
{
    static const char *const head[] = {"",     "engines", "GPUs", "settings",     "requests/s", "TTFT",  "p90",
                                       "TPOT", "p90",     "keep", "tokens/s/GPU", "J/token",    "chance"};
    ft_columns t;
    ft__columns_init(&t, "rlrlrrrrrrrrr");
    t.drop = "dgil";
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) ft__cell_add(&t, head[i]);
    for (size_t i = 0; i < f->plans && i < (size_t)f->asked->top; i++) {
        const ft_way *w = &f->ways[i];
        ft__cell_addf(&t, "%zu", i + 1);
        add_way(ft__cell(&t), style, w);
        ft__cell_addf(&t, "%" PRId64, w->gpus);
        add_settings(ft__cell(&t), w);
        ft__add_figure(ft__cell(&t), w->rate, 3);
        ft__add_figure(ft__cell(&t), w->ttft_ms, 3);
        ft__add_figure(ft__cell(&t), w->ttft_p90_ms, 3);
        ft__add_figure(ft__cell(&t), w->tpot_ms, 3);
        ft__add_figure(ft__cell(&t), w->tpot_p90_ms, 3);
        if (f->goal == FT_FLEET_OFFLINE)
            ft__cell_add(&t, "-");
        else
            ft__add_percent(ft__cell(&t), w->share);
        ft__add_figure(ft__cell(&t), w->tokens_per_s / (double)w->gpus, 3);
        if (w->joules_per_token > 0)
            ft__add_figure(ft__cell(&t), w->joules_per_token, 3);
        else
            ft__cell_add(&t, "-");
        ft__add_percent(ft__cell(&t), w->chance);
    }
    ft__text_add(out, "\n");
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

static bool losers(ft_text *out, const ft_style *style, const ft_fleet *f)
{
    static const char *const why[FT_FLEET_LOSTS] = {"",
                                                    "memory: no room for a cache",
                                                    "first tokens come too late",
                                                    "tokens come too slowly",
                                                    "answers end too late",
                                                    "takes more GPUs than there are",
                                                    "takes far more GPUs than the best"};
    enum { MOST = 12 };
    ft_columns t;
    if (f->plans == f->count) return true;
    ft__columns_init(&t, "lrrrl");
    static const char *const head[] = {"others", "GPUs", "TTFT p90", "TPOT p90", "lose by"};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) ft__cell_add(&t, head[i]);
    for (size_t i = f->plans; i < f->count && i < f->plans + MOST; i++) {
        const ft_way *w = &f->ways[i];
        bool measured = w->lost > FT_FLEET_MEMORY && w->lost < FT_FLEET_TOO_MANY;
        add_way(ft__cell(&t), style, w);
        ft__cell_addf(&t, "%" PRId64, w->gpus);
        for (int k = 0; k < 2; k++) {
            if (measured)
                ft__add_figure(ft__cell(&t), k ? w->tpot_p90_ms : w->ttft_p90_ms, 3);
            else
                ft__cell_add(&t, "-");
        }
        ft__cell_add(&t, why[w->lost]);
    }
    ft__text_add(out, "\n");
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

bool ft__screen_fleet(ft_text *out, const ft_style *style, const ft_fleet *f)
{
    static const char *const asked[] = {"the fewest GPUs that meet the objectives", "the highest rate that meets them",
                                        "the most tokens per second, nobody waiting"};
    ft_text t = {0};
    bold(out, style, "plan ");
    ft__text_add_plain(out, f->model);
    ft__text_addf(out, "  served by %s on %s\n", f->engine, f->gpu);
    ft__text_addf(&t, "%s", asked[f->goal]);
    if (f->goal == FT_FLEET_GPUS) {
        ft__text_add(&t, " at ");
        ft__add_figure(&t, f->rate, 3);
        ft__text_add(&t, " requests/s");
    }
    ft__text_addf(&t, "; %zu ways, %zu simulations", f->count, f->simulations);
    ft__text_addf(&t, "; %s", ft__fleet_proof(f));
    ft__ink(out, style, FT_INK_DIM);
    ft__add_wrapped(out, style, t.at ? t.at : "");
    ft__ink_end(out, style);
    ft__text_drop(&t, out);
    bool printed = true;
    if (f->plans)
        printed = plans(out, style, f);
    else
        ft__text_add(out, f->goal == FT_FLEET_OFFLINE ? "\n  None fits.\n" : "\n  None meets the objectives.\n");
    if (f->least_gpus) ft__text_addf(out, "  %" PRId64 " GPUs would do.\n", f->least_gpus);
    printed = losers(out, style, f) && printed;
    for (size_t i = 0; f->plans && i < f->asked->emit_count; i++) {
        ft__text_add(out, "\n");
        bold(out, style, f->asked->emit[i]);
        ft__text_add(out, "\n");
        ft__engine_launch(out, f->asked->emit[i], f, &f->ways[0]);
    }
    return printed && !out->failed;
}

/* -- choices ----------------------------------------------------------------------------------- */

static const char *loses(const char *verdict)
{
    static const char *const words[][2] = {{"memory", "memory: nothing fits"},
                                           {"refused", "cannot be forecast"},
                                           {"network", "network: no RDMA rented"},
                                           {"price_unknown", "no price known"},
                                           {"deadline", "past deadline"},
                                           {"budget", "over budget"},
                                           {"gpus", "takes more GPUs"},
                                           {"objectives", "misses the objectives"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i][0], verdict)) return words[i][1];
    return verdict;
}

/* What fewer GPUs would cost: a plan by numbers alone takes them. */
static void fewer_line(ft_text *out, const ft_style *style, const ft_fleet_choice *c)
{
    const ft_fleet_fewer *f = &c->fewer;
    ft_text a = {0}, b = {0};
    if (!f->way.gpus) return;
    ft__text_addf(&a, "%" PRId64 " %s %s", f->way.gpus, ft__times(style), c->gpu);
    add_way(&b, style, &f->way);
    if (f->offer)
        ft__text_addf(&b, ": $%.2f an hour at %s", f->usd_per_hour, f->offer->provider);
    else
        ft__text_add(&b, ": not for rent this way");
    if (f->network) ft__text_add(&b, f->way.prefill.tp ? ", caches need a network" : ", engines need a network");
    ft__line(out, style, "fewer GPUs", &a, b.at);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static void chosen_lines(ft_text *out, const ft_style *style, const ft_fleet_choice *c)
{
    ft_text a = {0}, b = {0};
    const ft_offer *o = c->own_usd < 0 ? c->price.cheapest : NULL;
    ft__text_addf(&a, "%" PRId64 " %s %s", c->way.gpus, ft__times(style), c->gpu);
    add_way(&b, style, &c->way);
    ft__text_add(&b, "; settings: ");
    add_settings(&b, &c->way);
    ft__line(out, style, "chosen", &a, b.at);
    ft__text_empty(&a);
    ft__text_empty(&b);
    ft__text_addf(&a, "$%.2f an hour", c->usd_per_hour);
    ft__text_addf(&b, "$%.3g for a million tokens; ", c->usd_per_million);
    if (o)
        ft__text_addf(&b, "%s %s, $%.2f a GPU-hour (%s)", o->provider, o->instance, o->usd_per_hour / (double)o->gpus,
                      o->date);
    else
        ft__text_addf(&b, "your price, $%.2f a GPU-hour", c->own_usd);
    ft__line(out, style, "cost", &a, b.at);
    if (c->kwh_per_million > 0) {
        ft__text_clear(&a);
        ft__text_clear(&b);
        ft__add_figure(&a, c->days > 0 ? c->kwh : c->kwh_per_million, 3);
        ft__text_add(&a, " kWh");
        ft__text_add(&b, c->days > 0 ? "of the job, with node and building; "
                                     : "for a million tokens, with node and building; ");
        ft__add_figure(&b, c->days > 0 ? c->kg : c->kg_per_million, 3);
        ft__text_add(&b, " kg of CO2");
        ft__line(out, style, "energy", &a, b.at);
    }
    if (c->days > 0) {
        ft__text_empty(&a);
        ft__text_empty(&b);
        ft__add_figure(&a, c->days, 3);
        ft__text_add(&a, " days");
        ft__text_addf(&b, "$%.0f", c->usd);
        ft__line(out, style, "job", &a, b.at);
    }
    ft__text_empty(&a);
    ft__text_empty(&b);
    ft__add_figure(&a, c->way.ttft_ms, 3);
    ft__text_add(&a, " ms TTFT");
    ft__add_figure(&b, c->way.ttft_low_ms, 3);
    ft__text_addf(&b, " %s ", ft__dash(style));
    ft__add_figure(&b, c->way.ttft_high_ms, 3);
    ft__text_add(&b, "; TPOT ");
    ft__add_figure(&b, c->way.tpot_ms, 3);
    ft__text_add(&b, " ms, ");
    ft__add_figure(&b, c->way.tpot_low_ms, 3);
    ft__text_addf(&b, " %s ", ft__dash(style));
    ft__add_figure(&b, c->way.tpot_high_ms, 3);
    if (!(c->days > 0)) ft__line(out, style, "clients see", &a, b.at);
    fewer_line(out, style, c);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static bool table(ft_text *out, const ft_style *style, const ft_fleet_chosen *chosen)
{
    bool job = chosen->asked->requests > 0;
    const char *const head[] = {"GPU",        "number", "engines", job ? "days" : "TTFT", "TPOT", "dollars",
                                "$/M tokens", "front",  "loses by"};
    ft_columns t;
    ft__columns_init(&t, "lrlrrrrll");
    t.drop = "he";
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) ft__cell_add(&t, head[i]);
    for (size_t i = 0; i < chosen->count; i++) {
        const ft_fleet_choice *c = &chosen->choices[i];
        ft__cell_add(&t, c->gpu);
        if (!c->planned) {
            if (c->limit > 0)
                ft__cell_addf(&t, "%" PRId64, c->limit);
            else
                ft__cell_add(&t, "-");
            for (int k = 1; k < 7; k++) ft__cell_add(&t, k == 1 || k == 6 ? "" : "-");
            ft__cell_add(&t, loses(c->verdict));
            continue;
        }
        ft__cell_addf(&t, "%" PRId64, c->way.gpus);
        add_way(ft__cell(&t), style, &c->way);
        ft__add_figure(ft__cell(&t), job ? c->days : c->way.ttft_ms, 3);
        ft__add_figure(ft__cell(&t), c->way.tpot_ms, 3);
        bool known = c->usd_per_hour > 0 || c->own_usd >= 0;
        if (known) {
            ft__cell_addf(&t, "%.2f%s", job ? c->usd : c->usd_per_hour, job ? "" : "/h");
            ft__add_figure(ft__cell(&t), c->usd_per_million, 3);
        } else {
            ft__cell_add(&t, "-");
            ft__cell_add(&t, "-");
        }
        ft__cell_add(&t, c->knee ? "knee" : c->front ? "yes" : "");
        ft__cell_add(&t, loses(c->verdict));
    }
    ft__text_add(out, "\n");
    bool printed = ft__columns_print(&t, out, style, 2, true);
    ft__columns_free(&t);
    return printed;
}

/* Why nothing serves on a GPU, once for all its numbers. */
static void refusals(ft_text *out, const ft_style *style, const ft_fleet_chosen *c)
{
    ft_text t = {0};
    for (size_t i = 0; i < c->count; i++) {
        const ft_fleet_choice *one = &c->choices[i];
        if (!*one->why || (i && !strcmp(one->why, c->choices[i - 1].why))) continue;
        ft__text_clear(&t);
        ft__text_addf(&t, "%s cannot be forecast: %s.", one->gpu, one->why);
        ft__add_wrapped(out, style, t.at ? t.at : "");
    }
    ft__text_drop(&t, out);
}

bool ft__screen_fleet_chosen(ft_text *out, const ft_style *style, const char *model, const ft_fleet_chosen *c)
{
    ft_text t = {0};
    bold(out, style, "choose ");
    ft__text_add_plain(out, model);
    if (c->rate > 0) {
        ft__text_add(&t, "  to serve ");
        ft__add_figure(&t, c->rate, 3);
        ft__text_add(&t, " requests/s");
    } else {
        ft__text_addf(&t, "  to answer %.0f requests", c->asked->requests);
    }
    ft__text_add(out, t.at ? t.at : "");
    ft__text_add(out, "\n\n");
    ft__text_drop(&t, out);
    if (c->best < c->count)
        chosen_lines(out, style, &c->choices[c->best]);
    else
        ft__text_add(out, "  None of these is a choice; the last column says what each loses by.\n");
    if (c->best == c->count && c->least_gpus)
        ft__text_addf(out, "  %" PRId64 " %s %s would do.\n", c->least_gpus, ft__times(style), c->least_gpu);
    ft_choices_shown shown = {.front = false};
    bool refused = false;
    for (size_t i = 0; i < c->count; i++) {
        const ft_fleet_choice *one = &c->choices[i];
        refused = refused || *one->why;
        shown.front = shown.front || one->front;
        shown.offers = shown.offers || (one->planned && one->own_usd < 0 && one->price.cheapest);
        shown.own = shown.own || (one->planned && one->own_usd >= 0);
    }
    bool printed = table(out, style, c);
    if (shown.front || shown.offers || shown.own || refused) ft__text_add(out, "\n");
    refusals(out, style, c);
    ft__choices_note(out, style, &shown, "offer's whose instances hold an engine");
    return printed && !out->failed;
}
