/* Every request and iteration of a run, kept for who wants them one by one. */
#ifndef FT_SERVING_ROLL_H
#define FT_SERVING_ROLL_H
#include "serving/simulate.h"

typedef struct ft_roll {
    ft_served_request *requests;
    size_t request_count, request_room, request_most;
    ft_served_step *steps;
    size_t step_count, step_room, step_most;
    bool failed; /* out of memory */
} ft_roll;

/* A sink that fills it, up to so many of each; 0: none. */
ft_serving_sink ft__roll_sink(ft_roll *r, size_t requests, size_t steps);
void ft__roll_free(ft_roll *r);
#endif
