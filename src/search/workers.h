/* The threads of one search, each with what it remembers. */
#ifndef FT_SEARCH_WORKERS_H
#define FT_SEARCH_WORKERS_H
#include "ranks/ranks.h"

/* What a thread works with: a memo and an arena of its own. */
typedef struct ft_worker {
    ft_memo *memo;
    ft_exchanges *exchanges; /* over the search's own cluster */
    ft_arena *arena;
} ft_worker;

typedef struct ft_workers {
    ft_worker *worker; /* by thread */
    ft_memo *common;   /* behind theirs; NULL: one thread alone */
    ft_status *status;
    ft_error *err;
    int threads;
} ft_workers;

/* One of `count` pieces of work. */
typedef ft_status (*ft_worker_task)(void *context, size_t i, ft_worker *worker, ft_error *err);

/* Stop them either way. */
ft_status ft__workers_start(int threads, ft_workers *c, ft_error *err);
void ft__workers_stop(ft_workers *c);
/* All pieces, on all threads, `few` of them at a time: neighbours that run the same kernels stay together. */
ft_status ft__workers_run(ft_workers *c, size_t count, size_t few, ft_worker_task piece, void *context, ft_error *err);
#endif
