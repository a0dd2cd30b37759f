/* dispatcher.c: turns, or the engine with least to do.
 *
 * What waits counts several times what runs. An engine that is ahead of the request still had what has ended since.
 * Equal ones have their turns: were it always the first, it would be given the next prompt too. */
#include "serving/dispatcher.h"

#include <math.h>

#include "serving/prefix.h"
#include "serving/routing_constants.h"

static double load_of(const ft_replica *r)
{
    return FT_K_ROUTING_WAITING * (double)r->queue.count + (double)(r->decoder_count + r->prompt_count);
}

bool ft__dispatcher_open(ft_dispatcher *t, ft_routing_kind kind, const ft_replica *engines, int64_t count,
                         double hash_tokens)
{
    *t = (ft_dispatcher){.kind = kind, .engines = engines, .count = count, .hash_tokens = hash_tokens};
    if (!ft__clocks_open(&t->loads, count) || !ft__clocks_open(&t->settled, count)) return false;
    for (int64_t i = 0; i < count; i++) ft__dispatcher_note(t, i);
    return true;
}

void ft__dispatcher_close(ft_dispatcher *t)
{
    ft__clocks_close(&t->loads);
    ft__clocks_close(&t->settled);
}

void ft__dispatcher_note(ft_dispatcher *t, int64_t at)
{
    const ft_replica *r = &t->engines[at];
    if (t->kind == FT_ROUND_ROBIN || t->count == 1) return;
    ft__clocks_set(&t->loads, at, load_of(r) + r->just_ended);
    ft__clocks_set(&t->settled, at, r->just_ended > 0 ? r->now_ms : INFINITY);
}

static int64_t least_loaded(ft_dispatcher *t, double ms)
{
    double second;
    for (int64_t at; (at = ft__clocks_first(&t->settled, &second)) >= 0 && t->settled.ms[at] <= ms;) {
        ft__clocks_set(&t->loads, at, load_of(&t->engines[at]));
        ft__clocks_set(&t->settled, at, INFINITY);
    }
    int64_t first = ft__clocks_first(&t->loads, &second), next = ft__clocks_from(&t->loads, t->turn % t->count);
    return t->loads.ms[next] <= t->loads.ms[first] ? next : first;
}

/* A known block outweighs a request. */
static int64_t knows_most(const ft_dispatcher *t, const ft_live *l, double ms)
{
    double least = INFINITY;
    int64_t best = 0;
    for (int64_t i = 0; i < t->count; i++) {
        int64_t at = (t->turn + i) % t->count;
        const ft_replica *r = &t->engines[at];
        double load = load_of(r) + (r->now_ms > ms ? r->just_ended : 0);
        if (r->prefixes) load -= (double)ft__prefixes_known(r->prefixes, l->hashes, l->hash_count) / t->hash_tokens;
        if (load < least) {
            least = load;
            best = at;
        }
    }
    return best;
}

int64_t ft__dispatched_to(ft_dispatcher *t, const ft_live *l, double ms)
{
    int64_t best = t->turn % t->count;
    if (t->count == 1) return 0;
    if (t->kind == FT_PREFIX_AWARE && l->hash_count > 0)
        best = knows_most(t, l, ms);
    else if (t->kind != FT_ROUND_ROBIN)
        best = least_loaded(t, ms);
    t->turn = best + 1;
    return best;
}
