/* plan.c: models whose layers differ in more than a rhythm of windows and experts: hybrids, searched architectures,
 * shapes by layer. */
#include "model/plan.h"

#include "base/multiple.h"

ft_layer_shape ft__layer_usual(const ft_arch *a)
{
    ft_layer_shape l = {0};
    l.mixer = a->mixer != FT_MIX_ATTENTION ? a->mixer : a->kv_lora > 0 ? FT_MIX_LATENT : FT_MIX_ATTENTION;
    l.feed = a->experts > 0 ? FT_FEED_EXPERTS : FT_FEED_DENSE;
    l.window = -1;
    l.rotated = true;
    l.chunked = a->chunked;
    l.sinks = a->sinks;
    l.indexed = a->index_topk > 0;
    return l;
}

ft_layer_shape ft__layer_at(const ft_arch *a, int64_t i)
{
    if (a->kind_count > 0) return a->kinds[a->order[i]];
    ft_layer_shape l = ft__layer_usual(a);
    int64_t dense = a->experts > 0 ? a->first_dense : 0, at = i - dense; /* rhythms begin behind the dense ones */
    bool every = a->window_every <= (at < 0 ? 0 : 1), windowed = a->window > 0 && every;
    l.mixer = a->kv_lora > 0 ? FT_MIX_LATENT : a->mixer;
    if (at < 0) {
        l.feed = FT_FEED_DENSE;
    } else {
        windowed = windowed || (a->window > 0 && (at + 1) % a->window_every != 0);
        if (a->experts > 0 && a->moe_every > 1 && (at + 1) % a->moe_every != 0) l.feed = FT_FEED_DENSE;
        l.rotated = a->turn_windowed ? windowed : a->turn_every <= 1 || (at + 1) % a->turn_every != 0;
    }
    l.window = windowed ? a->window : -1;
    return l;
}

static bool same(const ft_layer_shape *a, const ft_layer_shape *b)
{
#define EQUAL(name, what) &&a->name == b->name
    return a->mixer == b->mixer && a->feed == b->feed FT_LAYER_SIZES(EQUAL) FT_LAYER_FLAGS(EQUAL);
#undef EQUAL
}

bool ft__plan(ft_arch *a, const ft_layer_shape *layers)
{
    a->kind_count = 0;
    for (int64_t i = 0; i < a->layers; i++) {
        int32_t at = 0;
        while (at < a->kind_count && !same(&a->kinds[at], &layers[i])) at++;
        if (at == a->kind_count) {
            if (at == FT_MOST_KINDS) return false;
            a->kinds[a->kind_count++] = layers[i];
        }
        a->order[i] = (uint8_t)at;
    }
    return true;
}

void ft__layer_arch(const ft_arch *a, const ft_layer_shape *l, ft_arch *out)
{
    *out = *a;
#define OWN(field) out->field = l->field ? l->field : a->field
    OWN(heads);
    OWN(kv_heads);
    OWN(head_dim);
    OWN(v_dim);
    OWN(rotary_dim);
    OWN(ffn);
    OWN(moe_ffn);
    OWN(topk);
    OWN(shared_ffn);
#undef OWN
    /* A head of another width is rotated in the same share. */
    if (l->head_dim && !l->rotary_dim && a->head_dim)
        out->rotary_dim = (a->rotary_dim * l->head_dim / a->head_dim + 1) / 2 * 2;
    out->window = l->window > 0 ? l->window : 0;
    out->chunked = l->chunked;
    out->sinks = l->sinks;
    if (!l->indexed) out->index_topk = 0;
    if (l->mixer != FT_MIX_LATENT) out->kv_lora = 0;
}

static int64_t runs_of(const ft_arch *a, int64_t from, int64_t to)
{
    int64_t runs = 0;
    for (int64_t i = from; i < to; i++) runs += i == from || a->order[i] != a->order[i - 1];
    return runs;
}

ft_rhythm ft__plan_rhythm(const ft_arch *a)
{
    enum { MOST_BEFORE = 8, LONGEST = 64 };
    ft_rhythm best = {.before = a->layers};
    int64_t fewest = runs_of(a, 0, a->layers);
    for (int64_t before = 0; before <= MOST_BEFORE && before < a->layers; before++)
        for (int64_t period = 1; period <= LONGEST && before + 2 * period <= a->layers; period++) {
            int64_t end = before + period;
            while (end < a->layers && a->order[end] == a->order[end - period]) end++;
            int64_t times = (end - before) / period, rest = before + times * period;
            if (times < 2) continue;
            int64_t built = runs_of(a, 0, before) + period + runs_of(a, rest, a->layers);
            if (built >= fewest) continue;
            fewest = built;
            best = (ft_rhythm){.before = before, .period = period, .times = times};
        }
    return best;
}

int64_t ft__plan_period(const ft_arch *a, int64_t layers)
{
    enum { MOST = 64 };
    int64_t each[4] = {a->window > 0 ? a->window_every : 1, a->experts > 0 ? a->moe_every : 1, a->turn_every,
                       a->cross_every};
    int64_t period = 1;
    for (int i = 0; i < 4 && period <= MOST; i++)
        if (each[i] > 1) period = each[i] <= MOST ? ft__common_multiple(period, each[i]) : MOST + 1;
    if (period > layers) period = layers > 0 ? layers : 1;
    return period < MOST ? period : MOST;
}
