/* roll.c: requests and iterations in arrays. */
#include "serving/roll.h"

#include <stdlib.h>

static bool room(void **at, size_t *have, size_t count, size_t size)
{
    if (count < *have) return true;
    size_t more = *have ? 2 * *have : 1024;
    void *moved = realloc(*at, more * size);
    if (!moved) return false;
    *at = moved;
    *have = more;
    return true;
}

static void on_request(void *user, const ft_served_request *one)
{
    ft_roll *r = user;
    void *at = r->requests;
    if (r->failed || r->request_count >= r->request_most) return;
    r->failed = !room(&at, &r->request_room, r->request_count, sizeof *r->requests);
    r->requests = at;
    if (!r->failed) r->requests[r->request_count++] = *one;
}

static void on_step(void *user, const ft_served_step *one)
{
    ft_roll *r = user;
    void *at = r->steps;
    if (r->failed || r->step_count >= r->step_most) return;
    r->failed = !room(&at, &r->step_room, r->step_count, sizeof *r->steps);
    r->steps = at;
    if (!r->failed) r->steps[r->step_count++] = *one;
}

ft_serving_sink ft__roll_sink(ft_roll *r, size_t requests, size_t steps)
{
    *r = (ft_roll){.request_most = requests, .step_most = steps};
    return (ft_serving_sink){r, requests ? on_request : NULL, steps ? on_step : NULL, NULL, NULL};
}

void ft__roll_free(ft_roll *r)
{
    free(r->requests);
    free(r->steps);
    *r = (ft_roll){0};
}
