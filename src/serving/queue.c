/* queue.c: a binary heap of waiting requests. */
#include "serving/queue.h"

#include <stdlib.h>

static const double goes_first = -1e300; /* of who was preempted */

static bool before(const ft_waiting *a, const ft_waiting *b)
{
    if (a->key != b->key) return a->key < b->key;
    if (a->time_ms != b->time_ms) return a->time_ms < b->time_ms;
    return a->number < b->number;
}

static void sift_down(ft_queue *q, size_t i)
{
    for (;;) {
        size_t least = i, left = 2 * i + 1, right = left + 1;
        if (left < q->count && before(&q->at[left], &q->at[least])) least = left;
        if (right < q->count && before(&q->at[right], &q->at[least])) least = right;
        if (least == i) return;
        ft_waiting swapped = q->at[i];
        q->at[i] = q->at[least];
        q->at[least] = swapped;
        i = least;
    }
}

static void sift_up(ft_queue *q, size_t i)
{
    while (i > 0 && before(&q->at[i], &q->at[(i - 1) / 2])) {
        ft_waiting swapped = q->at[i];
        q->at[i] = q->at[(i - 1) / 2];
        q->at[(i - 1) / 2] = swapped;
        i = (i - 1) / 2;
    }
}

static double service(const ft_queue *q, int32_t client) { return (size_t)client < q->clients ? q->served[client] : 0; }

/* A client that comes back after a while starts level with the least served of those who wait: idling earns nothing. */
static void lift(ft_queue *q, int32_t client)
{
    double least = -1;
    for (size_t i = 0; i < q->count; i++) {
        if (q->at[i].client == client) return;
        double s = service(q, q->at[i].client);
        if (least < 0 || s < least) least = s;
    }
    if (least > service(q, client)) q->served[client] = least;
}

bool ft__queue_add(ft_queue *q, uint32_t index, double time_ms, int32_t client, int32_t priority, int32_t prompt,
                   bool again)
{
    if (q->count == q->room) {
        size_t room = q->room ? 2 * q->room : 64;
        ft_waiting *at = realloc(q->at, room * sizeof *at);
        if (!at) return false;
        q->at = at;
        q->room = room;
    }
    bool by_client = q->by == FT_FAIR || q->by == FT_MAX_MIN;
    if (by_client && !ft__queue_serve(q, client, 0)) return false;
    if (q->by == FT_FAIR && !again) lift(q, client);
    double key = q->by == FT_BY_PRIORITY      ? (double)priority
                 : q->by == FT_SHORTEST_FIRST ? (double)prompt
                 : by_client                  ? service(q, client)
                                              : 0;
    if (again) key = goes_first;
    q->at[q->count] = (ft_waiting){key, time_ms, q->number++, index, client};
    sift_up(q, q->count++);
    return true;
}

/* Every key anew, and the heap from its leaves up. */
static void look_again(ft_queue *q)
{
    for (size_t i = 0; i < q->count; i++)
        if (q->at[i].key > goes_first) q->at[i].key = service(q, q->at[i].client);
    for (size_t i = q->count / 2; i-- > 0;) sift_down(q, i);
    q->shrunk = false;
}

/* Keys grow while requests wait: the first is looked at again until it stays first. Where one has become less, all are:
 * once in an iteration at most. */
uint32_t ft__queue_first(ft_queue *q)
{
    bool by_client = q->by == FT_FAIR || q->by == FT_MAX_MIN;
    if (q->shrunk) look_again(q);
    while (by_client && q->at[0].key > goes_first && q->at[0].key < service(q, q->at[0].client)) {
        q->at[0].key = service(q, q->at[0].client);
        sift_down(q, 0);
    }
    return q->at[0].index;
}

void ft__queue_drop_first(ft_queue *q)
{
    q->at[0] = q->at[--q->count];
    sift_down(q, 0);
}

bool ft__queue_serve(ft_queue *q, int32_t client, double tokens)
{
    if (client < 0) return true;
    if ((size_t)client >= q->clients) {
        size_t clients = q->clients ? q->clients : 16;
        while (clients <= (size_t)client) clients *= 2;
        double *served = realloc(q->served, clients * sizeof *served);
        if (!served) return false;
        for (size_t i = q->clients; i < clients; i++) served[i] = 0;
        q->served = served;
        q->clients = clients;
    }
    q->served[client] += tokens;
    return true;
}

bool ft__queue_began(ft_queue *q, int32_t client, double tokens, double whole)
{
    if (q->by == FT_FAIR) return ft__queue_serve(q, client, tokens);
    return q->by == FT_MAX_MIN ? ft__queue_serve(q, client, whole) : true;
}

bool ft__queue_left(ft_queue *q, int32_t client, double answer, double whole)
{
    if (q->by == FT_FAIR) return ft__queue_serve(q, client, answer);
    if (q->by != FT_MAX_MIN) return true;
    q->shrunk = true;
    return ft__queue_serve(q, client, -whole);
}

void ft__queue_free(ft_queue *q)
{
    free(q->at);
    free(q->served);
    *q = (ft_queue){.by = q->by};
}
