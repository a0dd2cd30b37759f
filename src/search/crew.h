/* The threads of one search, each with what it remembers. */
#ifndef FT_SEARCH_CREW_H
#define FT_SEARCH_CREW_H
#include "ranks/ranks.h"

/* Where a thread works: a memo and an arena of its own. */
typedef struct ft_bench {
    ft_memo *memo;
    ft_exchanges *exchanges; /* over the search's own cluster */
    ft_arena *arena;
} ft_bench;

typedef struct ft_crew {
    ft_bench *bench; /* by thread */
    ft_status *status;
    ft_error *err;
    int threads;
} ft_crew;

/* One of `count` pieces of work. */
typedef ft_status (*ft_crew_piece)(void *context, size_t i, ft_bench *bench, ft_error *err);

/* Dismiss it either way. */
ft_status ft__crew_hire(int threads, ft_crew *c, ft_error *err);
void ft__crew_dismiss(ft_crew *c);
/* All pieces, on all threads, `few` of them at a time: neighbours that run the same kernels stay together. */
ft_status ft__crew_do(ft_crew *c, size_t count, size_t few, ft_crew_piece piece, void *context, ft_error *err);
#endif
