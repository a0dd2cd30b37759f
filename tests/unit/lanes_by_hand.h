/* One rank's streams by hand. */
#ifndef FT_TEST_LANES_BY_HAND_H
#define FT_TEST_LANES_BY_HAND_H
#include "small_graph.h"

#include "graph/emit.h"
#include "ranks/lanes.h"
#include "timeline/overlap_slowdown.h"

enum { NODES = 4 };

/* a kernel, an exchange of its result, a kernel that needs neither, a kernel that reads what was exchanged */
typedef struct hand {
    ft_arena *arena;
    ft_graph *g;
    ft_node_cost costs[NODES];
    double comm[NODES], again[NODES], entry[1], gather[1], scatter[1], spent[1], ended[NODES];
    ft_axis axis[NODES];
    double left[NODES];
    int32_t awaits[NODES], sends[NODES];
    ft_lanes lanes;
} hand;

static void set_up(hand *h, int64_t repeat)
{
    *h = (hand){.arena = ft__arena_new(0)};
    h->g = ft__graph_new(h->arena, FT_BF16);
    ft_ref in = tensor(h->g, FT_ACTIVATION, 1, 1), a = tensor(h->g, FT_ACTIVATION, 1, 1),
           b = tensor(h->g, FT_ACTIVATION, 1, 1), c = tensor(h->g, FT_ACTIVATION, 1, 1),
           d = tensor(h->g, FT_ACTIVATION, 1, 1);
    open_block(h->g, "layers", FT_FORWARD, repeat, FT_NONE, -1);
    node(h->g, FT_FORWARD, "make", 1, &in, 1, &a);
    node(h->g, FT_FORWARD, "send", 1, &a, 1, &b);
    node(h->g, FT_FORWARD, "other", 1, &in, 1, &c);
    node(h->g, FT_FORWARD, "use", 1, &b, 1, &d);
    close_block(h->g, d);
    for (int i = 0; i < NODES; i++) {
        h->g->nodes[i].op = ft__bytes_kernel("copy", FT_BF16, 1024, 0);
        h->costs[i] = (ft_node_cost){.gpu = i == 1 ? 0 : 1, .count = 1};
    }
    h->g->nodes[1].verb = FT_DO_COMM;
    h->g->nodes[1].op = (ft_op){.kind = FT_OP_OTHER, .name = "comm"};
    h->g->nodes[1].exchange = (ft_exchange){.kind = FT_EXCHANGE_ALL_REDUCE, .axis = FT_AXIS_TENSOR};
    assert_int_equal(ft__lanes_awaits(h->g, h->awaits, h->sends, NULL), FT_OK);
    h->axis[1] = FT_AXIS_TENSOR;
    h->lanes = (ft_lanes){.g = h->g,
                          .costs = h->costs,
                          .entry = h->entry,
                          .comm = h->comm,
                          .axis = h->axis,
                          .awaits = h->awaits,
                          .sends = h->sends,
                          .left = h->left,
                          .again = h->again,
                          .gather = h->gather,
                          .scatter = h->scatter,
                          .spent = h->spent};
}

static double forward(hand *h, bool gathers, bool scatters)
{
    ft_clocks c = {0};
    ft__lanes_run(&h->lanes, FT_FORWARD, gathers, scatters, h->ended, &c);
    return fmax(c.gpu, c.lane[FT_AXIS_DATA]);
}

static bool near(double a, double b) { return fabs(a - b) < 1e-9; }

static ft_op product_of(int64_t m, int64_t n, ft_dtype dtype)
{
    ft_op op = {.kind = FT_OP_GEMM, .name = "linear", .dtype = dtype};
    op.u.gemm.b = 1;
    op.u.gemm.m = m;
    op.u.gemm.n = n;
    op.u.gemm.k = 4096;
    return op;
}
#endif
