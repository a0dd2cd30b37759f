/* choose_answer.c: every kind and number of GPUs with what it takes and what it loses by. */
#include "report/json/choose_answer.h"

#include <math.h>

#include "report/json/plan_answer.h"

void ft__answer_offer(ft_text *out, const char *key, const ft_offer *o, int64_t gpus, int64_t joined)
{
    if (!o) return;
    ft__json_member_open(out, key);
    ft__json_member_text(out, "provider", o->provider);
    ft__answer_word(out, "instance", o->instance);
    ft__answer_word(out, "region", o->region);
    ft__answer_word(out, "pricing", ft__pricing_words[o->pricing]);
    ft__answer_word(out, "date", o->date);
    ft__answer_figure(out, "usd_per_gpu_hour", o->usd_per_hour / (double)o->gpus);
    ft__answer_figure(out, "usd_per_hour", ft__offer_per_hour(o, gpus, joined));
    ft__json_close(out);
}

static void prices(ft_text *out, const ft_choice *c)
{
    ft__json_member_open(out, "price");
    ft__json_member_number(out, "usd_per_hour", c->usd_per_hour, 6);
    if (c->own_usd >= 0) ft__answer_figure(out, "own_usd_per_gpu_hour", c->own_usd);
    ft__answer_offer(out, "cheapest", c->price.cheapest, c->gpus, 0);
    ft__answer_offer(out, "median", c->price.median, c->gpus, 0);
    ft__answer_offer(out, "hyperscaler", c->price.hyperscaler, c->gpus, 0);
    ft__json_close(out);
}

void ft__answer_layout(ft_text *out, const ft_layout *l)
{
    const ft_parallel *p = &l->parallel;
    ft__json_member_open(out, "parallel");
    ft__json_member_whole(out, "dp", p->dp);
    ft__json_member_whole(out, "tp", p->tp);
    ft__json_member_whole(out, "pp", p->pp);
    if (p->vpp > 1) ft__json_member_whole(out, "vpp", p->vpp);
    ft__json_member_whole(out, "cp", p->cp);
    ft__json_member_whole(out, "ep", p->ep);
    ft__json_member_whole(out, "zero", p->zero);
    ft__json_close(out);
    ft__json_member_whole(out, "batch", l->batch);
    ft__answer_word(out, "recompute", ft__recompute_words[l->recompute]);
    ft__answer_offloaded(out, l);
}

static void span(ft_text *out, const char *key, const char *low, const char *high, const ft_span *s)
{
    ft__answer_figure(out, key, s->at);
    ft__answer_figure(out, low, s->low);
    ft__answer_figure(out, high, s->high);
}

static void choice(ft_text *out, const ft_choice *c)
{
    ft__json_member_text(out, "gpu", c->gpu);
    ft__json_member_whole(out, "gpus", c->gpus);
    ft__json_member_flag(out, "fits", c->planned);
    ft__answer_word(out, "verdict", ft__lost_words[c->lost]);
    if (*c->why) ft__json_member_text(out, "why", c->why);
    if (!c->planned) return;
    ft__json_member_whole(out, "nodes", c->nodes);
    ft__answer_layout(out, &c->layout);
    ft__answer_figure(out, "step_ms", c->step_ms);
    ft__answer_figure(out, "mfu", c->mfu);
    span(out, "days", "low_days", "high_days", &c->days);
    if (c->in_time >= 0) ft__json_member_number(out, "chance_in_time", c->in_time, 3);
    ft__answer_figure(out, "gpu_hours", c->gpu_hours);
    if (c->usd_per_hour > 0 || c->own_usd >= 0) span(out, "usd", "low_usd", "high_usd", &c->usd);
    prices(out, c);
    ft__answer_figure(out, "watts_per_gpu", c->energy.watts);
    ft__answer_figure(out, "kwh", c->kwh);
    ft__answer_figure(out, "co2_kg", c->kg);
    ft__json_member_open(out, "goodput");
    ft__json_member_number(out, "useful", c->goodput.useful, 6);
    ft__answer_figure(out, "low", c->goodput.low);
    ft__answer_figure(out, "high", c->goodput.high);
    if (isfinite(c->goodput.mtbf_s)) ft__answer_figure(out, "mtbf_hours", c->goodput.mtbf_s / 3600);
    if (isfinite(c->goodput.interval_s)) ft__answer_figure(out, "save_every_s", c->goodput.interval_s);
    ft__answer_figure(out, "restarts", c->restarts);
    ft__answer_figure(out, "checkpoint_gb", c->goodput.checkpoint_bytes * 1e-9);
    if (isfinite(c->goodput.interval_s))
        ft__answer_figure(out, "least_storage_gbps", c->goodput.checkpoint_bytes * 1e-9 / c->goodput.interval_s);
    ft__json_close(out);
    ft__json_member_flag(out, "front", c->front);
    if (c->knee) ft__json_member_flag(out, "knee", true);
}

void ft__answer_choose(ft_text *out, const json_t *id, const ft_chosen *c)
{
    ft__answer_begin(out, id);
    ft__answer_word(out, "objective", ft__choice_words[c->asked->goal]);
    ft__answer_figure(out, "tokens", c->asked->tokens);
    ft__json_member_whole(out, "steps", llround(c->steps));
    ft__json_member_whole(out, "tokens_per_step", llround(c->tokens_per_step));
    ft__answer_figure(out, "pue", c->asked->pue);
    ft__answer_figure(out, "kg_per_kwh", c->asked->kg_per_kwh);
    ft__json_member_flag(out, "found", c->best < c->count);
    if (c->best < c->count) {
        ft__json_member_open(out, "chosen");
        choice(out, &c->choices[c->best]);
        ft__json_close(out);
    } else if (c->least_gpus) {
        ft__json_member_whole(out, "least_gpus", c->least_gpus);
        ft__json_member_text(out, "least_gpu", c->least_gpu);
    }
    ft__json_member_list(out, "choices");
    for (size_t i = 0; i < c->count; i++) {
        ft__json_open(out);
        choice(out, &c->choices[i]);
        ft__json_close(out);
    }
    ft__json_close_list(out);
    ft__answer_options(out, c);
    ft__answer_lines(out, "warnings", c->warnings.at ? c->warnings.at : "");
    ft__json_close(out);
}
