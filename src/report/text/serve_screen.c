/* serve_screen.c: what clients see, what the engine does, queue and cache over time. */
#include "report/text/serve_screen.h"

#include <inttypes.h>
#include <math.h>

#include "report/text/columns.h"
#include "report/text/lines.h"
#include "report/text/step_words.h"

enum { BAR = 40, MOMENTS = 8 };

static void add_load(ft_text *out, const ft_serving *s)
{
    const ft_load *l = &s->load;
    if (l->clients)
        ft__text_addf(out, "%" PRId64 " client%s", l->clients, l->clients == 1 ? "" : "s");
    else if (l->rate_per_s > 0)
        ft__text_addf(out, "%g request%s/s", l->rate_per_s, l->rate_per_s == 1 ? "" : "s");
    else
        ft__text_addf(out, "a log of %" PRId64 " requests", l->made);
    if (l->rate_per_s > 0 || l->clients)
        ft__text_addf(out, ", prompts of %g, answers of %g token%s", l->prompt.mean, l->answer.mean,
                      l->answer.mean == 1 ? "" : "s");
}

void ft__screen_serve_title(ft_text *out, const ft_style *style, const ft_serving *s)
{
    const ft_served *m = &s->served;
    ft__ink(out, style, FT_INK_BOLD);
    ft__add_model_name(out, s->model);
    ft__ink_end(out, style);
    ft__text_addf(out, "  served by %s on ", s->engine->title);
    if (s->gpus > 1) ft__text_addf(out, "%" PRId64 " %s ", s->gpus, ft__times(style));
    ft__text_add_plain(out, s->device->title[0] ? s->device->title : s->device->name);
    ft__text_add(out, "\n");
    ft__ink(out, style, FT_INK_DIM);
    add_load(out, s);
    ft__text_addf(out, "; %s", ft_dtype_name(m->dtype));
    if (m->by_module && m->arch->quantized_bits < 8 * ft_dtype_bytes(m->dtype))
        ft__text_addf(out, ", %g-bit weights", m->arch->quantized_bits);
    ft__text_addf(out, ", cache in %s, tp %" PRId64, ft_dtype_name(m->kv_dtype), m->tp);
    if (m->pp > 1) ft__text_addf(out, ", pp %" PRId64, m->pp);
    if (m->dp > 1) ft__text_addf(out, ", dp %" PRId64, m->dp);
    if (m->ep > 1) ft__text_addf(out, ", ep %" PRId64, m->ep);
    if (m->cp > 1) ft__text_addf(out, ", cp %" PRId64, m->cp);
    if (m->adapters > 0) ft__text_addf(out, ", %g adapters of rank %g", m->adapters, m->adapter_rank);
    if (s->scene.replicas > 1) ft__text_addf(out, ", %" PRId64 " replicas", s->scene.replicas);
    if (s->scene.prefill_costs) ft__text_addf(out, ", %" PRId64 " that prefill", s->scene.prefill_replicas);
    if (s->policy.drafts > 0)
        ft__text_addf(out, ", %g drafts a step of which %.2g are kept", s->policy.drafts, s->policy.accepted - 1);
    if (s->recipes.length) ft__text_add(out, "\nstarted as in a public recipe; --settings defaults does without");
    if (s->load.prompts > 0)
        ft__text_addf(out, "\nprompts are drawn from %" PRId64 ", so that the cache finds repeated ones%s",
                      s->load.prompts, s->prompts_said ? "" : "; with --prompts 0 all differ");
    ft__ink_end(out, style);
    ft__text_add(out, "\n");
}

void ft__screen_serve_load(ft_text *out, const ft_style *style, const ft_serving *s)
{
    ft__ink(out, style, FT_INK_BOLD);
    ft__add_model_name(out, s->model);
    ft__ink_end(out, style);
    ft__text_add(out, "  served to ");
    add_load(out, s);
    ft__text_add(out, "\n\n");
}

static void time_row(ft_columns *c, const ft_style *style, const char *name, const ft_tally *t, const ft_bounds_ms *b)
{
    static const double shares[] = {0.5, 0.9, 0.95, 0.99};
    if (t->count <= 0) return;
    ft__cell_add(c, name);
    ft__add_figure(ft__cell(c), ft__tally_mean(t), 4);
    ft_text *interval = ft__cell(c);
    ft__add_figure(interval, b->low, 3);
    ft__text_addf(interval, " %s ", ft__dash(style));
    ft__add_figure(interval, b->high, 3);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        ft__add_figure(ft__cell(c), ft__tally_quantile(t, shares[i]), 4);
}

static bool times(ft_text *out, const ft_style *style, const ft_serving *s)
{
    const ft_outcome *o = s->out;
    static const char *const heads[] = {"ms", "mean", "interval", "p50", "p90", "p95", "p99"};
    ft_columns c;
    ft__columns_init(&c, "lrrrrrr");
    c.drop = "fc"; /* p95, then the interval, on a narrow terminal */
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) ft__cell_add(&c, heads[i]);
    if (s->stable) time_row(&c, style, "TTFT", &o->ttft, &s->ttft);
    time_row(&c, style, "TPOT", &o->tpot, &s->tpot);
    time_row(&c, style, "ITL", &o->itl, &s->itl);
    if (s->stable) time_row(&c, style, "E2E", &o->e2e, &s->e2e);
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

static void line(ft_text *out, const ft_style *style, const char *label, ft_text *figure, ft_text *remark)
{
    ft__line(out, style, label, figure, remark->at ? remark->at : "");
    ft__text_empty(figure);
    ft__text_empty(remark);
}

/* Objectives that as many requests as were asked for would keep. */
static void nearest(ft_text *out, const ft_style *style, const ft_serving *s)
{
    const struct {
        const char *name;
        double ms;
    } each[] = {{"ttft", s->nearest_ttft_ms}, {"tpot", s->nearest_tpot_ms}, {"e2e", s->nearest_e2e_ms}};
    ft_text a = {0}, b = {0};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        if (each[i].ms <= 0) continue;
        ft__text_addf(&a, "%s%s=", a.length ? "," : "", each[i].name);
        ft__add_figure(&a, each[i].ms, 4);
        ft__text_add(&a, "ms");
    }
    ft__text_add(&b, s->find != FT_FIND_NOTHING ? "is the closest that a single request can meet"
                                                : "is the closest that this load can meet");
    if (a.length) line(out, style, "nearest", &a, &b);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static void rates(ft_text *out, const ft_style *style, const ft_serving *s)
{
    const ft_outcome *o = s->out;
    ft_text a = {0}, b = {0};
    ft__text_add(out, "\n");
    ft__add_figure(&a, ft__serving_requests_per_s(s), 4);
    ft__text_add(&a, " requests/s");
    ft__text_addf(&b, "%.0f in ", o->requests);
    ft__add_figure(&b, (o->last_ms - o->first_ms) / 1e3, 4);
    ft__text_add(&b, " s");
    line(out, style, "throughput", &a, &b);
    ft__add_figure(&a, ft__serving_tokens_per_s_per_gpu(s), 4);
    ft__text_add(&a, " tokens/s/GPU");
    if (o->tpot.count > 0) {
        ft__add_figure(&b, 1e3 / ft__tally_mean(&o->tpot), 4);
        ft__text_add(&b, " tokens/s for a client while its answer comes");
    }
    if (s->device->price_usd_per_hour > 0) {
        ft__text_addf(&b, "%s", b.length ? "; $" : "$");
        ft__add_figure(&b, ft__serving_usd_per_million(s), 3);
        ft__text_add(&b, " for a million");
    }
    line(out, style, "", &a, &b);
    if (s->energy.joules > 0) {
        ft__add_figure(&a, ft__serving_joules_per_token(s), 3);
        ft__text_add(&a, " J/token");
        ft__add_figure(&b, s->energy.watts, 3);
        ft__text_add(&b, " W for each GPU; ");
        ft__add_figure(&b, ft__serving_joules_per_token(s) / 3.6, 3);
        ft__text_add(&b, " kWh for a million tokens");
        line(out, style, "energy", &a, &b);
    }
    if (s->slo_share > 0) {
        ft__add_percent(&a, o->requests > 0 ? o->good / o->requests : 0);
        ft__text_addf(&b, "meet the objectives, of %g %% that must: %s", 100 * s->slo_share,
                      s->slo_met ? "met" : "missed");
        line(out, style, "good", &a, &b);
    }
    if (s->find != FT_FIND_NOTHING) {
        if (s->found > 0)
            ft__add_figure(&a, s->found, 4);
        else
            ft__text_add(&a, "none");
        if (s->found > 0) ft__text_addf(&a, s->find == FT_FIND_RATE ? " requests/s" : " clients");
        ft__text_add(&b, s->found > 0 ? "are the most that meet them" : "not even a single request meets them");
        line(out, style, "highest", &a, &b);
    }
    if (s->slo_share > 0 && !s->slo_met) nearest(out, style, s);
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

static void engine_lines(ft_text *out, const ft_style *style, const ft_serving *s)
{
    static const char *const bounds[FT_SERVING_BOUNDS] = {
        [FT_BOUND_BY_DECODE] = "decoding: faster memory, more tensor ranks or a narrower format would help",
        [FT_BOUND_BY_PREFILL] = "prompts: more arithmetic, prefix caching or engines that only prefill would help",
        [FT_BOUND_BY_CACHE] = "the cache is full: a narrower kv_dtype, more GPUs or replicas would help",
        [FT_BOUND_BY_FRONTEND] = "the front end: fewer streamed tokens or more processes would help",
        [FT_BOUND_BY_QUEUE] = "max_num_seqs: more sequences at once would help"};
    const ft_outcome *o = s->out;
    ft_text a = {0}, b = {0};
    double busy = fmax(o->busy_ms, 1e-9), steps = o->steps_decode + o->steps_mixed;
    ft__text_add(&a, ft__serving_bound_words[s->bound]);
    ft__text_add(&b, bounds[s->bound]);
    line(out, style, "bound", &a, &b);
    ft__text_addf(&a, "%.0f", steps);
    ft__add_percent(&b, o->mixed_ms / busy);
    ft__text_add(&b, " of the time with prompts in them, ");
    ft__add_figure(&b, o->steps_mixed > 0 ? o->mixed_ms / o->steps_mixed : 0, 3);
    ft__text_add(&b, " ms each; without ");
    ft__add_figure(&b, o->steps_decode > 0 ? o->decode_ms / o->steps_decode : 0, 3);
    line(out, style, "iterations", &a, &b);
    ft__add_figure(&a, o->running_ms / busy, 3);
    ft__text_addf(&b, "sequences at once, %.0f at most; they waited ", o->running_max);
    ft__add_figure(&b, ft__tally_mean(&o->queue), 3);
    ft__text_add(&b, " ms, after ");
    ft__add_figure(&b, ft__serving_frontend_ms(s), 3);
    ft__text_add(&b, " in the front end");
    line(out, style, "running", &a, &b);
    ft__add_percent(&a, o->peak_tokens / s->policy.capacity);
    ft__text_addf(&b, "of %.0f tokens at most", s->policy.capacity);
    if (o->preemptions > 0) ft__text_addf(&b, "; %" PRId64 " preemptions", o->preemptions);
    if (o->known_tokens > 0) {
        ft__text_add(&b, "; ");
        ft__add_percent(&b, o->known_tokens / o->prompt_tokens);
        ft__text_add(&b, " of the prompts was in it");
    }
    line(out, style, "cache", &a, &b);
    if (o->clients > 1 && s->load.log) {
        ft__add_figure(&a, o->jain, 3);
        ft__text_addf(&b, "Jain's index of %" PRId64 " clients; the worst waits %.2f times the mean", o->clients,
                      o->worst_client_ratio);
        line(out, style, "fairness", &a, &b);
    }
    ft__text_drop(&a, out);
    ft__text_drop(&b, out);
}

/* Waiting, running and the cache at some moments. */
static bool course(ft_text *out, const ft_style *style, const ft_serving *s)
{
    const ft_course *k = &s->out->course;
    static const char *const heads[] = {"time", "waiting", "running", "cache"};
    if (k->count < MOMENTS) return true;
    ft_columns c;
    double most = 1e-9;
    for (int i = 0; i < k->count; i++) most = fmax(most, k->at[i].waiting + k->at[i].running);
    ft__text_add(out, "\n");
    ft__columns_init(&c, "rrrrl");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) ft__cell_add(&c, heads[i]);
    ft__cell_add(&c, "");
    for (int i = 0; i < MOMENTS; i++) {
        const ft_course_point *p = &k->at[i * (k->count - 1) / (MOMENTS - 1)];
        ft_text *time = ft__cell(&c);
        ft__add_figure(time, p->ms / 1e3, 3);
        ft__text_add(time, " s");
        ft__cell_addf(&c, "%.0f", p->waiting);
        ft__cell_addf(&c, "%.0f", p->running);
        ft__add_percent(ft__cell(&c), p->cache_share);
        ft__add_bar(ft__cell(&c), style, (p->waiting + p->running) / most, BAR);
    }
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

/* A row of the table: times as they are or would be, and below zero what they save. */
static void change_row(ft_columns *c, const char *what, const ft_serving_advice *a, bool priced, bool compared)
{
    ft__cell_add(c, what);
    ft__cell_addf(c, "%" PRId64, a->gpus);
    double times[] = {a->ttft_ms, a->tpot_ms}, saved[] = {a->ttft_saved_ms, a->tpot_saved_ms};
    for (int i = 0; i < 2; i++) {
        if (i == 0 && !a->stable)
            ft__cell_add(c, "-");
        else
            ft__add_figure(ft__cell(c), times[i], 4);
        if (compared && (i > 0 || a->stable) && times[i] + saved[i] > 0)
            ft__cell_addf(c, "%+.0f %%", -100 * saved[i] / (times[i] + saved[i]));
        else
            ft__cell_add(c, "");
    }
    ft__add_figure(ft__cell(c), a->tokens_per_s_per_gpu, 4);
    if (priced) ft__add_figure(ft__cell(c), a->usd_per_million, 3);
}

static bool advice(ft_text *out, const ft_style *style, const ft_serving *s)
{
    static const char *const heads[] = {"what would change", "GPUs", "TTFT ms",      "",
                                        "TPOT ms",           "",     "tokens/s/GPU", "$/million"};
    bool priced = s->device->price_usd_per_hour > 0;
    size_t columns = sizeof heads / sizeof *heads - (priced ? 0 : 1);
    if (!s->advice_count) return true;
    ft_columns c;
    ft__text_add(out, "\n");
    ft__columns_init(&c, priced ? "lrrrrrrr" : "lrrrrrr");
    if (priced) c.drop = "h"; /* dollars go the way of tokens/s/GPU */
    for (size_t i = 0; i < columns; i++) ft__cell_add(&c, heads[i]);
    ft_serving_advice now = {.gpus = s->gpus,
                             .ttft_ms = ft__tally_mean(&s->out->ttft),
                             .tpot_ms = ft__tally_mean(&s->out->tpot),
                             .tokens_per_s_per_gpu = ft__serving_tokens_per_s_per_gpu(s),
                             .usd_per_million = ft__serving_usd_per_million(s),
                             .stable = s->stable};
    change_row(&c, "nothing", &now, priced, false);
    for (size_t i = 0; i < s->advice_count; i++) change_row(&c, s->advice[i].what, &s->advice[i], priced, s->stable);
    bool printed = ft__columns_print(&c, out, style, 2, true);
    ft__columns_free(&c);
    return printed;
}

bool ft__screen_serve(ft_text *out, const ft_style *style, const ft_serving *s)
{
    ft__screen_serve_title(out, style, s);
    ft__text_add(out, "\n");
    bool printed = times(out, style, s);
    if (!s->stable)
        ft__text_add(out,
                     "\n  Requests come faster than they are served: the queue grows without end, and TTFT and E2E "
                     "have no mean.\n  The most that is served is shown below.\n");
    rates(out, style, s);
    engine_lines(out, style, s);
    printed = ft__screen_serve_histogram(out, style, s) && printed;
    printed = advice(out, style, s) && printed;
    return course(out, style, s) && printed && !out->failed;
}
