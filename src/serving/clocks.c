/* clocks.c: looking at every engine before each iteration of one of them takes a fleet of thousands minutes. */
#include "serving/clocks.h"

#include <math.h>
#include <stdlib.h>

static int64_t earlier(const ft_clocks *c, int64_t left, int64_t right)
{
    return c->ms[right] < c->ms[left] ? right : left;
}

static int64_t best_below(const ft_clocks *c, int64_t node)
{
    return node < c->places ? c->best[node] : node - c->places;
}

bool ft__clocks_open(ft_clocks *c, int64_t count)
{
    c->places = 1;
    while (c->places < count) c->places *= 2;
    c->ms = malloc((size_t)c->places * sizeof *c->ms);
    c->best = malloc((size_t)c->places * sizeof *c->best);
    if (!c->ms || !c->best) return false;
    for (int64_t i = 0; i < c->places; i++) c->ms[i] = INFINITY;
    for (int64_t node = c->places - 1; node > 0; node--) c->best[node] = best_below(c, 2 * node);
    return true;
}

void ft__clocks_close(ft_clocks *c)
{
    free(c->ms);
    free(c->best);
    *c = (ft_clocks){0};
}

void ft__clocks_set(ft_clocks *c, int64_t at, double ms)
{
    c->ms[at] = ms;
    for (int64_t node = (c->places + at) / 2; node > 0; node /= 2)
        c->best[node] = earlier(c, best_below(c, 2 * node), best_below(c, 2 * node + 1));
}

int64_t ft__clocks_first(const ft_clocks *c, double *second)
{
    const int64_t first = best_below(c, 1);
    *second = INFINITY;
    if (isinf(c->ms[first])) return -1;
    for (int64_t node = c->places + first; node > 1; node /= 2) {
        const double other = c->ms[best_below(c, node ^ 1)];
        if (other < *second) *second = other;
    }
    return first;
}

int64_t ft__clocks_from(const ft_clocks *c, int64_t from)
{
    int64_t first = from;
    for (int64_t node = c->places + from; node > 1; node /= 2)
        if (node % 2 == 0) first = earlier(c, first, best_below(c, node + 1));
    return first;
}
