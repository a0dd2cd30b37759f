/* load.c: random lengths and arrivals. Numbers come from splitmix64 (Steele, Lea, Flood 2014): equal seeds give equal
 * requests on every machine. */
#include "serving/load.h"

#include <math.h>

static const double two_pi = 6.283185307179586;

void ft__load_seed(ft_load *l, uint64_t seed) { l->state = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du; }

static uint64_t draw(ft_load *l)
{
    uint64_t z = l->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* In [0, 1). */
static double uniform(ft_load *l) { return (double)(draw(l) >> 11) * 0x1p-53; }

static double normal(ft_load *l)
{
    double u = 1 - uniform(l), v = uniform(l);
    return sqrt(-2 * log(u)) * cos(two_pi * v);
}

/* Gamma by Marsaglia and Tsang (2000); shapes below one through the next one. */
static double gamma_of(ft_load *l, double shape)
{
    double boost = 1, x, v;
    if (shape < 1) {
        boost = pow(1 - uniform(l), 1 / shape);
        shape += 1;
    }
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        x = normal(l);
        v = 1 + c * x;
        if (v <= 0) continue;
        v = v * v * v;
        double u = 1 - uniform(l);
        if (log(u) < x * x / 2 + d - d * v + d * log(v)) return boost * d * v;
    }
}

/* The share of a standard normal variable below x. */
static double normal_below(double x) { return erfc(-x / sqrt(2)) / 2; }

/* Lognormal lengths about this centre: the share of them between the bounds, and its mean. */
static double between_bounds(const ft_lengths *k, double centre, double *mean)
{
    double s = k->sigma, first = k->low > 0 ? (log(k->low) - centre) / s : -HUGE_VAL;
    double last = (log(k->high) - centre) / s, share = normal_below(last) - normal_below(first);
    *mean = share > 0 ? exp(centre + s * s / 2) * (normal_below(last - s) - normal_below(first - s)) / share : 0;
    return share;
}

enum { HALVINGS = 60, MOST_DRAWS = 1000 };

bool ft__lengths_centre(ft_lengths *k)
{
    double least = 1.0 / 16, mean;
    k->centre = -k->sigma * k->sigma / 2;
    if (k->high <= 0) return true;
    if (k->low >= 1 || k->high <= 1) return false;
    double from = k->centre - 4 * k->sigma, to = -k->centre + 4 * k->sigma;
    for (int i = 0; i < HALVINGS; i++) {
        k->centre = (from + to) / 2;
        between_bounds(k, k->centre, &mean);
        *(mean < 1 ? &from : &to) = k->centre;
    }
    return between_bounds(k, k->centre, &mean) >= least && fabs(mean - 1) < 1e-6;
}

static double lognormal(ft_load *l, const ft_lengths *k)
{
    double share = 0;
    for (int i = 0; i < MOST_DRAWS; i++) {
        share = exp(k->centre + k->sigma * normal(l));
        if (k->high <= 0 || (share >= k->low && share <= k->high)) break;
    }
    return share;
}

static int32_t length(ft_load *l, const ft_lengths *k)
{
    double share = k->high, scale = k->scale > 0 ? k->scale : 1, tokens;
    if (k->kind == FT_SPREAD_LOGNORMAL)
        share = lognormal(l, k);
    else if (k->high > k->low)
        share = k->low + (k->high - k->low) * uniform(l);
    tokens = floor(k->mean * scale * share + 0.5);
    return tokens < 1 ? 1 : tokens > 1e9 ? 1000000000 : (int32_t)tokens;
}

/* One of the prompts that come again: hashes of its blocks, up to where this request ends it. */
static void draw_prompt(ft_load *l, ft_call *out)
{
    uint64_t prompt = draw(l) % (uint64_t)l->prompts;
    double blocks = floor((double)out->prompt / l->hash_tokens);
    out->hash_count = (int32_t)fmin(blocks, 2 * FT_PROMPT_BLOCKS);
    for (int32_t i = 0; i < out->hash_count; i++) l->hashes[i] = prompt << 8 | (uint64_t)i;
    out->hashes = l->hashes;
}

void ft__load_call(ft_load *l, int32_t client, double sent_ms, ft_call *out)
{
    out->sent_ms = sent_ms;
    out->client = client;
    out->priority = out->turn = out->hash_count = 0;
    if (l->pair_count) {
        const ft_length_pair *drawn = &l->pairs[draw(l) % l->pair_count];
        out->prompt = drawn->prompt;
        out->answer = drawn->answer;
    } else {
        out->prompt = length(l, &l->prompt);
        out->answer = length(l, &l->answer);
    }
    out->cached = (int32_t)(l->prefix_share * out->prompt);
    if (l->prompts > 0) draw_prompt(l, out);
    l->made++;
}

static void draw_arrival(ft_load *l, ft_call *out)
{
    double shape = l->burstiness; /* 1: Poisson; below: bursts */
    double gap = 1e3 / l->rate_per_s * gamma_of(l, shape) / shape;
    l->clock_ms += l->stretch > 0 ? gap * l->stretch : gap;
    ft__load_call(l, (int32_t)(l->made % INT32_MAX), l->clock_ms, out);
    out->client = 0;
}

static double expected(const ft_lengths *k)
{
    return k->kind == FT_SPREAD_LOGNORMAL ? k->mean : k->mean * (k->low + k->high) / 2;
}

enum { MOST_REHEARSED = 1000000 }; /* the mean of more is as close as it can be */

void ft__load_scale(ft_load *l)
{
    ft_load rehearsed = *l;
    double prompts = 0, answers = 0, requests = (double)l->requests;
    ft_call call;
    if (l->log || l->pair_count || l->turns > 1 || l->requests > MOST_REHEARSED || l->requests < 1) return;
    while (rehearsed.made < rehearsed.requests) {
        if (l->rate_per_s > 0)
            draw_arrival(&rehearsed, &call);
        else
            ft__load_call(&rehearsed, 0, 0, &call);
        prompts += call.prompt, answers += call.answer;
    }
    l->prompt.scale = expected(&l->prompt) * requests / prompts;
    l->answer.scale = expected(&l->answer) * requests / answers;
}

void ft__load_stretch(ft_load *l)
{
    ft_load rehearsed = *l;
    ft_call call;
    rehearsed.stretch = 1;
    while (rehearsed.made < rehearsed.requests) draw_arrival(&rehearsed, &call);
    double wanted = 1e3 * (double)l->requests / l->rate_per_s;
    l->stretch = rehearsed.clock_ms > 0 ? wanted / rehearsed.clock_ms : 1;
}

ft_status ft__load_next(ft_load *l, bool *more, ft_call *out, ft_error *err)
{
    *more = l->made < l->requests;
    if (!*more) return FT_OK;
    if (l->log) {
        FT_TRY(ft__log_next(l->log, more, out, err));
        if (*more) {
            if (!out->cached) out->cached = (int32_t)(l->prefix_share * out->prompt);
            l->made++;
        }
        return FT_OK;
    }
    draw_arrival(l, out);
    return FT_OK;
}
