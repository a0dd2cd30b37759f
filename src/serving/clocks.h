/* Which of many engines is furthest behind: a tournament of their clocks, of which one changes at a time. */
#ifndef FT_SERVING_CLOCKS_H
#define FT_SERVING_CLOCKS_H
#include <stdbool.h>
#include <stdint.h>

typedef struct ft_clocks {
    double *ms;    /* of every engine, INFINITY where it has nothing to do; as many as `places` */
    int64_t *best; /* of the engines below a node; the first node is 1, the engines' own begin at `places` */
    int64_t places;
} ft_clocks;

bool ft__clocks_open(ft_clocks *c, int64_t count); /* nobody has anything to do; false: out of memory */
void ft__clocks_close(ft_clocks *c);
void ft__clocks_set(ft_clocks *c, int64_t at, double ms);
/* The engine that is furthest behind, of equal ones the first; -1: none has anything to do. The clock of the next one
 * is in *second. */
int64_t ft__clocks_first(const ft_clocks *c, double *second);
/* The same of the engines from this one on, which may have nothing to do. */
int64_t ft__clocks_from(const ft_clocks *c, int64_t from);
#endif
