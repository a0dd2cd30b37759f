/* Requests that wait, in the order in which they may start. */
#ifndef FT_SERVING_QUEUE_H
#define FT_SERVING_QUEUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How waiting requests are chosen: first come, first served; the lowest number of priority first; the shortest prompt
 * first; or by clients. FT_FAIR: the one that was served least so far first (virtual token counters, Sheng et al.
 * 2024). FT_MAX_MIN: the one that has least of the engine now, in tokens of its requests that run, so that the least
 * share is as large as it can be (progressive filling); what somebody had before does not count. */
typedef enum ft_scheduling { FT_FCFS, FT_BY_PRIORITY, FT_SHORTEST_FIRST, FT_FAIR, FT_MAX_MIN } ft_scheduling;

typedef struct ft_waiting {
    double key, time_ms; /* the smallest key first; the earlier of equal ones */
    uint64_t number;
    uint32_t index;
    int32_t client;
} ft_waiting;

/* A heap. Of FT_FAIR and FT_MAX_MIN each client's service is kept, and a request's key is its client's when it comes to
 * the front. */
typedef struct ft_queue {
    ft_scheduling by;
    ft_waiting *at;
    size_t count, room;
    uint64_t number;
    double *served; /* by client: tokens so far, or tokens of what runs */
    size_t clients;
    bool shrunk; /* a client's service has become less since keys were last looked at */
} ft_queue;

/* False: out of memory. `again`: it was preempted and goes first. */
bool ft__queue_add(ft_queue *q, uint32_t index, double time_ms, int32_t client, int32_t priority, int32_t prompt,
                   bool again);
/* The first one; the queue is not empty. */
uint32_t ft__queue_first(ft_queue *q);
void ft__queue_drop_first(ft_queue *q);
/* Tokens that a client was served; false: out of memory. */
bool ft__queue_serve(ft_queue *q, int32_t client, double tokens);
/* A request of `whole` tokens, prompt and answer, begins to run, `tokens` of which are to be computed first; it leaves
 * the engine with `answer` tokens made since. False: out of memory. */
bool ft__queue_began(ft_queue *q, int32_t client, double tokens, double whole);
bool ft__queue_left(ft_queue *q, int32_t client, double answer, double whole);
void ft__queue_free(ft_queue *q);
#endif
