/* An arena and the graph that a test of models builds in it. */
#ifndef FT_TEST_GRAPH_FIXTURE_H
#define FT_TEST_GRAPH_FIXTURE_H
#include "base/arena.h"
#include "base/error.h"
#include "graph/graph.h"

typedef struct fixture {
    ft_arena *arena;
    ft_graph *graph;
    ft_error err;
} fixture;

static int open_arena(void **state)
{
    static fixture f;
    f = (fixture){.arena = ft__arena_new(0)};
    *state = &f;
    return f.arena ? 0 : -1;
}

static int close_arena(void **state)
{
    ft__arena_free(((fixture *)*state)->arena);
    return 0;
}
#endif
