/* serve_side.c: the same load on several GPUs or engines, a row each; the best of a column is marked. */
#include <inttypes.h>

#include "report/text/columns.h"
#include "report/text/lines.h"
#include "report/text/serve_screen.h"
#include "report/text/step_words.h"

enum { COLUMNS = 7 };

/* What is compared; 0: it has none. */
static void figures(const ft_serving *s, double at[COLUMNS])
{
    const ft_outcome *o = s->out;
    at[0] = s->stable ? ft__tally_mean(&o->ttft) : 0;
    at[1] = s->stable ? ft__tally_quantile(&o->ttft, 0.99) : 0;
    at[2] = ft__tally_mean(&o->tpot);
    at[3] = ft__serving_requests_per_s(s);
    at[4] = ft__serving_tokens_per_s_per_gpu(s);
    at[5] = ft__serving_usd_per_million(s);
    at[6] = ft__serving_joules_per_token(s);
}

static bool larger_is_better(int column) { return column == 3 || column == 4; }

static void find_best(const ft_serving *of, size_t count, double best[COLUMNS])
{
    for (int k = 0; k < COLUMNS; k++) best[k] = 0;
    for (size_t i = 0; i < count; i++) {
        double at[COLUMNS];
        if (!of[i].out) continue;
        figures(&of[i], at);
        for (int k = 0; k < COLUMNS; k++)
            if (at[k] > 0 && (best[k] <= 0 || (larger_is_better(k) ? at[k] > best[k] : at[k] < best[k])))
                best[k] = at[k];
    }
}

bool ft__screen_serve_side(ft_text *out, const ft_style *style, const ft_serving *of, size_t count)
{
    static const char *const heads[] = {"gpu",        "engine",       "gpus",       "TTFT ms", "p99",  "TPOT ms",
                                        "requests/s", "tokens/s/GPU", "$/M tokens", "J/token", "bound"};
    double best[COLUMNS], at[COLUMNS];
    ft_columns c;
    find_best(of, count, best);
    ft__columns_init(&c, "llrrrrrrrrl");
    c.drop = "ekj";
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) ft__cell_add(&c, heads[i]);
    for (size_t i = 0; i < count; i++) {
        const ft_serving *s = &of[i];
        if (!s->out) continue;
        figures(s, at);
        ft__cell_add(&c, s->device->name);
        ft__cell_add(&c, s->engine->name);
        ft__cell_addf(&c, "%" PRId64, s->gpus);
        for (int k = 0; k < COLUMNS; k++) {
            ft_text *cell = ft__cell(&c);
            if (at[k] > 0)
                ft__add_figure(cell, at[k], 4);
            else
                ft__text_add(cell, "-");
            if (at[k] > 0 && at[k] == best[k]) ft__text_add(cell, "*");
        }
        ft_text *bound = ft__cell(&c);
        ft__text_add(bound, s->stable ? ft__serving_bound_words[s->bound] : "unstable");
        if (s->slo_share > 0) ft__text_addf(bound, ", objectives %s", s->slo_met ? "met" : "missed");
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    ft__text_add(out, "\n  * the best of its column\n");
    return printed && !out->failed;
}
