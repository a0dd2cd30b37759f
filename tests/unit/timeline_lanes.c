/* One rank's streams by hand: what is hidden, what is exposed. */
#include "lanes_by_hand.h"

static void who_reads_an_exchange_waits_for_it(void **state)
{
    (void)state;
    hand h;
    set_up(&h, 1);
    assert_int_equal(h.awaits[3], 1);
    assert_int_equal(h.awaits[2], -1);
    assert_int_equal(h.sends[1], 0);
    h.comm[1] = 0.5; /* hidden behind the kernel between */
    assert_true(near(forward(&h, false, false), 3));
    h.comm[1] = 2; /* one ms of it sticks out */
    assert_true(near(forward(&h, false, false), 4));
    assert_true(near(h.spent[0], 4));
    h.lanes.slowdown = 0.2; /* the kernel beside it is slower, which costs nothing while the exchange is longer */
    assert_true(near(forward(&h, false, false), 4));
    h.comm[1] = 0.6; /* 0.6 ms at 1/1.2 of the speed */
    assert_true(near(forward(&h, false, false), 3 + 0.1));
    ft__arena_free(h.arena);
}

static void an_operand_that_is_there_need_not_wait(void **state)
{
    (void)state;
    hand h;
    set_up(&h, 1);
    /* Issued behind a kernel that it does not need. */
    ft_node moved = h.g->nodes[1];
    h.g->nodes[1] = h.g->nodes[2];
    h.g->nodes[2] = moved;
    h.costs[1].gpu = 1;
    h.costs[2].gpu = 0;
    h.comm[2] = 1;
    h.axis[2] = FT_AXIS_TENSOR;
    assert_int_equal(ft__lanes_awaits(h.g, h.awaits, h.sends, NULL), FT_OK);
    assert_true(near(forward(&h, false, false), 4));
    h.lanes.async = true;
    assert_true(near(forward(&h, false, false), 3));
    ft__arena_free(h.arena);
}

/* A compiled graph waits where the collective stands: a kernel that reads something else does too. */
static void everybody_waits_for_what_blocks(void **state)
{
    (void)state;
    hand h;
    set_up(&h, 1);
    h.comm[1] = 4; /* from 1 to 5, the other kernel beside it, the one that uses it from 5 */
    assert_true(near(forward(&h, false, false), 6));
    h.left[1] = -1;
    assert_true(near(forward(&h, false, false), 7));
    ft__arena_free(h.arena);
}

/* Sharded parameters, tensor by tensor: before one everybody comes to rest; one that was asked for runs beside. */
static void a_tensor_is_waited_for(void **state)
{
    (void)state;
    hand h;
    ft_sharded at[NODES] = {[2] = {.stops = true, .fetch = 5}};
    set_up(&h, 1);
    h.lanes.sharded = at;
    assert_true(near(forward(&h, false, false), 3)); /* whole parameters: nothing is gathered */
    assert_true(near(forward(&h, true, false), 8));
    at[0] = (ft_sharded){.stops = true, .issue = 0.25, .ahead = 0.75}; /* for the third, hidden behind the first */
    at[2].fetch = 0;
    assert_true(near(forward(&h, true, false), 3.25));
    at[0].ahead = 4; /* or not */
    assert_true(near(forward(&h, true, false), 4 + 2));
    at[0] = (ft_sharded){.releases = true};
    at[2] = (ft_sharded){0};
    h.costs[2].host = 0.5; /* the host begins it when the first has ended, not before */
    assert_true(near(forward(&h, true, false), 3.5));
    ft__arena_free(h.arena);
}

/* The host makes a list, then the exchange runs; the next one's list waits for it. */
static void gradients_by_the_tensor(void **state)
{
    (void)state;
    hand h;
    ft_sharded at[NODES] = {[0] = {.behind = {.list = 0.5, .exchange = 2}}};
    set_up(&h, 1);
    h.lanes.sharded = at;
    assert_true(near(forward(&h, false, false), 3));
    assert_true(near(forward(&h, false, true), 3)); /* from 0.5 to 2.5, beside kernels */
    at[0].behind.fresh = true;                      /* the kernel before has made it: from 1 to 3 */
    at[0].behind.exchange = 2.5;
    assert_true(near(forward(&h, false, true), 3.5));
    at[2].before = (ft_reducing){.list = 0.25, .exchange = 1}; /* from 3.75 to 4.75; kernels from 3.75 */
    assert_true(near(forward(&h, false, true), 3.75 + 2));
    ft__arena_free(h.arena);
}

/* Tensor ranks with user buffers: a product reads the pieces it has, and sends those it is done with. */
static void products_take_and_give_pieces(void **state)
{
    (void)state;
    hand h;
    bool pieces[NODES] = {[1] = true};
    set_up(&h, 1);
    h.lanes.pieces = pieces;
    h.lanes.piece_count = 4;
    h.g->nodes[1].exchange.kind = FT_EXCHANGE_ALL_GATHER;
    h.comm[1] = 4;                                   /* from 1 to 5 */
    assert_true(near(forward(&h, false, false), 6)); /* its reader is no product: it waits */
    h.g->nodes[3].op.kind = FT_OP_GEMM;
    assert_true(near(forward(&h, false, false), 5 + 0.25));
    h.comm[1] = 1.5; /* until 2.5, when three quarters of the reader are still to come */
    assert_true(near(forward(&h, false, false), 3));

    h.g->nodes[1].exchange.kind = FT_EXCHANGE_REDUCE_SCATTER;
    h.comm[1] = 4;
    assert_true(near(forward(&h, false, false), 6)); /* its maker is no product: from 1 to 5 */
    h.g->nodes[0].op.kind = FT_OP_GEMM;
    assert_true(near(forward(&h, false, false), 4.25 + 1)); /* from 0.25 to 4.25 */
    h.comm[1] = 1.2;
    assert_true(near(forward(&h, false, false), 3)); /* done at 1.45, before its reader's turn */
    h.lanes.slowdown = 0.5;
    h.comm[1] = 4; /* three quarters of the maker ran beside it */
    assert_true(near(forward(&h, false, false), 4.25 + 0.375 + 1));

    h.lanes.slowdown = 0; /* experts' products have no user buffers */
    h.g->nodes[0].in[0] = ft__graph_tensor(h.g, &(ft_tensor){.expert = FT_EXPERT_WEIGHT});
    h.g->nodes[0].in_count = 1;
    assert_true(near(forward(&h, false, false), 6));
    ft__arena_free(h.arena);
}

static void sharded_parameters_come_one_iteration_ahead(void **state)
{
    (void)state;
    hand h;
    for (int64_t repeat = 1; repeat <= 40; repeat += 13) {
        double n = (double)repeat;
        set_up(&h, repeat);
        h.gather[0] = 2; /* shorter than an iteration: only the first is waited for; the last asks for nobody's */
        assert_true(near(forward(&h, true, false), fmax(2 + 3 * n, 2 + 3 * n - 3 + 2)));
        assert_true(near(forward(&h, false, false), 3 * n));
        h.gather[0] = 5; /* longer: the network sets the pace */
        ft_clocks c = {0};
        ft__lanes_run(&h.lanes, FT_FORWARD, true, false, h.ended, &c);
        assert_true(near(c.gpu, 5 * n + 3));
        h.gather[0] = 0;
        h.scatter[0] = 1; /* each behind the next iteration; the last sticks out */
        assert_true(near(forward(&h, false, true), 3 * n + 1));
        ft__arena_free(h.arena);
    }
}

static void what_is_gathered_again_starts_a_kernel_earlier(void **state)
{
    (void)state;
    hand h;
    set_up(&h, 1);
    h.comm[1] = 0;
    h.again[3] = 1;
    assert_true(near(forward(&h, false, false), 3));
    h.again[3] = 2.5; /* begun with the kernel before, at 1 */
    assert_true(near(forward(&h, false, false), 4.5));
    h.again[3] = 0.5; /* and in its way */
    h.lanes.slowdown = 0.1;
    h.lanes.sms = 132;
    h.g->nodes[2].op = product_of(1024, 4096, FT_BF16);
    assert_true(near(forward(&h, false, false), 3 + 0.5 * 0.85 / 1.85));
    ft__arena_free(h.arena);
}

/* Every iteration of every block, none folded. */
static double one_by_one(const ft_graph *g, const ft_pace *p)
{
    double host = p->pass[FT_FORWARD], gpu = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int64_t i = 0; i < g->blocks[b].repeat; i++) {
            double running = 0, launches = 0;
            host += p->entry[b];
            for (int32_t n = g->blocks[b].first; n < g->blocks[b].first + g->blocks[b].count; n++) {
                host += p->costs[n].host;
                if (p->costs[n].gpu <= 0) continue;
                gpu = fmax(gpu, host + p->latency) + p->costs[n].gpu + p->gap;
                running += p->costs[n].gpu + p->gap;
                launches++;
            }
            host = fmax(host, gpu - p->queue * running / launches);
        }
    return fmax(host, gpu);
}

/* Without exchanges they are the two streams of one GPU: whoever leads, however long, and whatever the queue holds. */
static void alone_they_are_the_streams_of_one_gpu(void **state)
{
    (void)state;
    hand h;
    uint32_t seed = 7;
    for (int trial = 0; trial < 2000; trial++) {
        double random[16];
        for (int i = 0; i < 16; i++) {
            seed = seed * 1664525u + 1013904223u;
            random[i] = (double)(seed >> 8) / (double)(1u << 24);
        }
        set_up(&h, 1 + (int64_t)(random[0] * random[0] * 150));
        open_block(h.g, "layers", FT_FORWARD, 1 + (int64_t)(random[1] * 60), FT_NONE, -1);
        ft_ref in = tensor(h.g, FT_ACTIVATION, 1, 1), out = tensor(h.g, FT_ACTIVATION, 1, 1);
        node(h.g, FT_FORWARD, "more", 1, &in, 1, &out);
        close_block(h.g, out);
        ft_node_cost costs[NODES + 1];
        double none[NODES + 1] = {0}, entry[2] = {0.3 * random[2], 0.3 * random[3]}, ended[NODES + 1];
        ft_axis axis[NODES + 1] = {FT_AXIS_TENSOR};
        int32_t nobody[NODES + 1];
        for (int i = 0; i <= NODES; i++) {
            costs[i] = (ft_node_cost){.host = 0.4 * random[4 + i], .gpu = i == 1 ? 0 : random[9 + i], .count = 1};
            nobody[i] = -1;
        }
        ft_pace pace = {.costs = costs,
                        .entry = entry,
                        .pass = {[FT_FORWARD] = random[14]},
                        .latency = 0.01,
                        .gap = 0.001,
                        .queue = trial % 3 ? 1000 : 8,
                        .accumulate = 1,
                        .host_scale = 1,
                        .gpu_scale = 1};
        ft_lanes lanes = {.g = h.g,
                          .costs = costs,
                          .entry = entry,
                          .pass = pace.pass,
                          .comm = none,
                          .axis = axis,
                          .awaits = nobody,
                          .sends = nobody,
                          .left = none,
                          .again = none,
                          .gather = none,
                          .scatter = none,
                          .latency = pace.latency,
                          .gap = pace.gap,
                          .queue = pace.queue};
        ft_clocks c = {0};
        ft__lanes_run(&lanes, FT_FORWARD, false, false, ended, &c);
        double together = fmax(c.host, c.gpu), alone = ft__stream_walk(h.g, &pace).total,
               truth = one_by_one(h.g, &pace);
        if (fabs(together / truth - 1) > 1e-3 || fabs(alone / truth - 1) > 1e-3)
            fail_msg("trial %d: %.6f ms in lanes, %.6f in streams, truly %.6f", trial, together, alone, truth);
        ft__arena_free(h.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_reads_an_exchange_waits_for_it),
        cmocka_unit_test(an_operand_that_is_there_need_not_wait),
        cmocka_unit_test(everybody_waits_for_what_blocks),
        cmocka_unit_test(a_tensor_is_waited_for),
        cmocka_unit_test(gradients_by_the_tensor),
        cmocka_unit_test(products_take_and_give_pieces),
        cmocka_unit_test(sharded_parameters_come_one_iteration_ahead),
        cmocka_unit_test(what_is_gathered_again_starts_a_kernel_earlier),
        cmocka_unit_test(alone_they_are_the_streams_of_one_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
