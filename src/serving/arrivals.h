/* Requests on their way to a queue, the earliest first. */
#ifndef FT_SERVING_ARRIVALS_H
#define FT_SERVING_ARRIVALS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ft_arrival {
    double ms;
    uint64_t number; /* of equal times the first to set out comes first */
    uint32_t index;
} ft_arrival;

typedef struct ft_arrivals {
    ft_arrival *heap;
    size_t count, room;
    uint64_t number;
} ft_arrivals;

bool ft__arrive(ft_arrivals *a, double ms, uint32_t index); /* false: out of memory */
ft_arrival ft__arrival_first(ft_arrivals *a);               /* takes it out; there is one */
#endif
