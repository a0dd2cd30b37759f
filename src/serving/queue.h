/* Requests that wait, in the order in which they may start. */
#ifndef FT_SERVING_QUEUE_H
#define FT_SERVING_QUEUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How waiting requests are chosen: first come, first served; the lowest number of priority first; the shortest prompt
 * first; or by clients, the one that was served least first (virtual token counters, Sheng et al. 2024), which is
 * max-min fair in tokens. */
typedef enum ft_scheduling { FT_FCFS, FT_BY_PRIORITY, FT_SHORTEST_FIRST, FT_FAIR } ft_scheduling;

typedef struct ft_waiting {
    double key, time_ms; /* the smallest key first; the earlier of equal ones */
    uint64_t number;
    uint32_t index;
    int32_t client;
} ft_waiting;

/* A heap. Of FT_FAIR each client's service is kept, and a request's key is its client's when it comes to the front. */
typedef struct ft_queue {
    ft_scheduling by;
    ft_waiting *at;
    size_t count, room;
    uint64_t number;
    double *served; /* by client */
    size_t clients;
} ft_queue;

/* False: out of memory. `again`: it was preempted and goes first. */
bool ft__queue_add(ft_queue *q, uint32_t index, double time_ms, int32_t client, int32_t priority, int32_t prompt,
                   bool again);
/* The first one; the queue is not empty. */
uint32_t ft__queue_first(ft_queue *q);
void ft__queue_drop_first(ft_queue *q);
/* Tokens that a client was served; false: out of memory. */
bool ft__queue_serve(ft_queue *q, int32_t client, double tokens);
void ft__queue_free(ft_queue *q);
#endif
