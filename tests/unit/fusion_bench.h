/* A graph that is built, fused and looked at. */
#ifndef TESTS_FUSION_BENCH_H
#define TESTS_FUSION_BENCH_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "graph/build.h"
#include "graph/emit.h"
#include "named_site.h"

enum { ROWS = 4096, COLS = 1024 };
static const double unit = (double)ROWS * COLS * 2; /* one pass over a bf16 activation */

typedef struct bench {
    ft_arena *arena;
    ft_graph *g;
    ft_build b;
    ft_error err;
} bench;

static inline int start_with(void **state, bool training)
{
    bench *t = test_calloc(1, sizeof *t);
    t->arena = ft__arena_new(0);
    t->g = ft__graph_new(t->arena, FT_BF16);
    t->b = ft__build_begin(t->g, FT_BF16, false, training, &t->err);
    *state = t;
    return 0;
}
static inline int start(void **state) { return start_with(state, false); }
static inline int start_training(void **state) { return start_with(state, true); }

static inline int stop(void **state)
{
    bench *t = *state;
    ft__arena_free(t->arena);
    test_free(t);
    return 0;
}

static inline ft_ref open_once(bench *t, const char *name)
{
    const ft_block_info info = ft__import_block(t->g, name);
    return ft__block_open(&t->b, &info, 1, FT_NONE);
}

static inline ft_ref input(bench *t) { return ft__input(&t->b, ROWS, COLS, 2); }

static inline void fuse(bench *t)
{
    assert_int_equal(t->b.status, FT_OK);
    assert_int_equal(ft__graph_fuse(t->g, false, &t->err), FT_OK);
}

static inline int launches(const ft_graph *g)
{
    int sum = 0;
    for (int32_t i = 0; i < g->node_count; i++) sum += ft__node_runs(&g->nodes[i]);
    return sum;
}

static inline double traffic(const ft_graph *g)
{
    double sum = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        if (ft__node_runs(&g->nodes[i]))
            sum += ft__op_bytes(&g->nodes[i].op) * (double)g->nodes[i].traffic * (double)g->nodes[i].count;
    return sum;
}

static inline const ft_node *fused(const ft_graph *g, int skip)
{
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].members > 0 && ft__node_runs(&g->nodes[i]) && skip-- == 0) return &g->nodes[i];
    fail_msg("no such fused kernel");
    return NULL;
}

static inline bool reads(const ft_graph *g, const ft_node *n, ft_ref x)
{
    for (int k = 0; k < n->in_count; k++)
        if (g->tensors[n->in[k]].storage == g->tensors[x].storage) return true;
    return false;
}

static inline bool makes(const ft_graph *g, const ft_node *n, ft_ref x)
{
    for (int k = 0; k < n->out_count; k++)
        if (g->tensors[n->out[k]].storage == g->tensors[x].storage) return true;
    return false;
}

static inline bool anyone(const ft_graph *g, bool (*does)(const ft_graph *, const ft_node *, ft_ref), ft_ref x)
{
    for (int32_t i = 0; i < g->node_count; i++)
        if (does(g, &g->nodes[i], x)) return true;
    return false;
}

/* What a node reads was made before it, unless it was there before the step. */
static inline void assert_sound(const ft_graph *g, const bool *made_by_step)
{
    bool *there = test_calloc((size_t)g->tensor_count, sizeof *there);
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        if (block->carry_in != FT_NONE) there[g->tensors[block->carry_in].storage] = true;
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            const ft_node *n = &g->nodes[i];
            for (int k = 0; k < n->in_count; k++) {
                ft_ref r = g->tensors[n->in[k]].storage;
                if (made_by_step[r] && !there[r]) fail_msg("node %d, %s, reads %d before it exists", i, n->name, r);
            }
            for (int k = 0; k < n->out_count; k++) there[g->tensors[n->out[k]].storage] = true;
        }
        if (block->carry_out != FT_NONE && made_by_step[g->tensors[block->carry_out].storage])
            assert_true(there[g->tensors[block->carry_out].storage]);
    }
    for (ft_ref t = 0; t < g->tensor_count; t++)
        if (g->tensors[t].role == FT_GRADIENT && made_by_step[t]) assert_true(there[t]);
    test_free(there);
}

static inline bool *made_by_step(const ft_graph *g, int32_t room)
{
    bool *made = test_calloc((size_t)room, sizeof *made);
    for (int32_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i].out_count; k++) {
            ft_ref r = g->tensors[g->nodes[i].out[k]].storage;
            made[r] = g->tensors[r].role == FT_ACTIVATION || g->tensors[r].role == FT_GRADIENT;
        }
    return made;
}

static inline ft_ref written_out_norm(ft_build *b, ft_ref x)
{
    ft_ref weight = ft__parameter(b, "norm.weight", 1, COLS), wide = ft__cast(b, named_site(b->g, "norm"), x, FT_FP32);
    ft_ref mean = ft__reduce(b, named_site(b->g, "norm"), "mean",
                             ft__pointwise(b, named_site(b->g, "norm"), "powu", wide));
    ft_ref scale = ft__pointwise(b, named_site(b->g, "norm"), "rsqrt",
                                 ft__pointwise(b, named_site(b->g, "norm"), "addu", mean));
    ft_ref y = ft__cast(b, named_site(b->g, "norm"), ft__mul(b, named_site(b->g, "norm"), wide, scale), FT_BF16);
    return ft__mul(b, named_site(b->g, "norm"), y, weight);
}

#endif
