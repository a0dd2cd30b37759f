/* front.c: choices of which none other is both faster and cheaper, and the corner of them.
 *
 * The knee lies farthest from the line between the front's ends, both in logarithms: where another day saved begins to
 * cost more than another dollar saved would cost in days. */
#include <math.h>

#include "search/choose.h"

size_t ft__front(ft_traded *all, size_t count)
{
    const ft_traded *fast = NULL, *cheap = NULL;
    for (size_t i = 0; i < count; i++) {
        ft_traded *c = &all[i];
        c->front = c->stands;
        for (size_t k = 0; k < count && c->front; k++) {
            const ft_traded *o = &all[k];
            bool better = o->stands && o->time <= c->time && o->cost <= c->cost &&
                          (o->time < c->time || o->cost < c->cost || k < i);
            if (k != i && better) c->front = false;
        }
        if (!c->front) continue;
        if (!fast || c->time < fast->time) fast = c;
        if (!cheap || c->cost < cheap->cost) cheap = c;
    }
    if (!fast || !cheap) return count;
    double wide = log(cheap->time / fast->time), high = log(fast->cost / cheap->cost), most = 0;
    size_t knee = count;
    for (size_t i = 0; i < count; i++) {
        const ft_traded *c = &all[i];
        if (!c->front) continue;
        /* From 0 at the fast end and at the cheap one to 1 in the corner that has both. */
        double time = wide > 0 ? log(c->time / fast->time) / wide : 0,
               cost = high > 0 ? log(c->cost / cheap->cost) / high : 0, from_line = 1 - time - cost;
        if (knee == count || from_line > most) {
            knee = i;
            most = from_line;
        }
    }
    return knee;
}
