/* Which of several engines a request goes to. */
#ifndef FT_SERVING_DISPATCHER_H
#define FT_SERVING_DISPATCHER_H
#include "serving/clocks.h"
#include "serving/replica.h"

typedef enum ft_routing_kind { FT_ROUND_ROBIN, FT_LEAST_LOADED, FT_PREFIX_AWARE } ft_routing_kind;

/* Engines of one kind. Their loads are kept in a tournament, as looking at every engine for each request would take a
 * fleet of thousands minutes. */
typedef struct ft_dispatcher {
    ft_routing_kind kind;
    const ft_replica *engines;
    int64_t count, turn;
    double hash_tokens; /* of a block with a hash */
    ft_clocks loads;
    ft_clocks settled; /* when what has just ended no longer counts; INFINITY: it does not */
} ft_dispatcher;

/* False: out of memory. */
bool ft__dispatcher_open(ft_dispatcher *t, ft_routing_kind kind, const ft_replica *engines, int64_t count,
                         double hash_tokens);
void ft__dispatcher_close(ft_dispatcher *t);
/* Something of this engine has changed. */
void ft__dispatcher_note(ft_dispatcher *t, int64_t at);
/* The engine for a request that comes now; times do not go back. */
int64_t ft__dispatched_to(ft_dispatcher *t, const ft_live *l, double ms);
#endif
