/* Collectives between nodes: what bytes, cables, networks, trees and clouds do to them. */
#include "exchanges.h"

static void time_grows_with_bytes_and_nodes(void **state)
{
    (void)state;
    static const char *const gpus[] = {"a100_sxm_80gb", "h100_sxm", "b200_sxm", "mi300x", "l40s", "a100_pcie_80gb"};
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        ft_cluster c = cluster_of(gpus[g], 4096, NULL);
        for (int op = 0; op < FT_COLLECTIVE_COUNT; op++)
            for (int64_t n = 2; n <= 4096; n *= 2) {
                if (op == FT_COLLECTIVE_SEND_RECV && n > 2) break;
                double last = 0;
                for (double bytes = 256; bytes < 1e10; bytes *= 8) {
                    /* Measured times are not monotone where NCCL changes its protocol; eightfold bytes see past it. */
                    double ms = of(built_in, gpus[g], &c, (ft_collective)op, bytes, n, 1).ms;
                    if (ms < 0.9 * last)
                        fail_msg("%s on %s, %d ranks, %g bytes", ft__collective_name((ft_collective)op), gpus[g],
                                 (int)n, bytes);
                    last = ms;
                }
            }
    }
    ft_cluster c = cluster_of("h100_sxm", 16384, NULL);
    for (double bytes = 1e3; bytes < 1e10; bytes *= 10)
        for (int64_t n = 16; n < 16384; n *= 2)
            assert_true(of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, bytes, 2 * n, 1).ms >=
                        of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, bytes, n, 1).ms);
}

static void nothing_is_faster_than_its_wires(void **state)
{
    (void)state;
    ft_cluster c = cluster_of("h100_sxm", 1024, NULL);
    for (int64_t n = 2; n <= 1024; n *= 2)
        for (double bytes = 1e6; bytes < 1e11; bytes *= 10) {
            ft_comm r = of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_GATHER, bytes, n, 1);
            assert_true(r.wire_bytes / (c.tier[r.tier].gbps * 1e6) <= r.ms);
        }
}

/* nccl-tests on 16 nodes of 8 A100 with 8 HDR ports each (NetX-lab/Echo): 128 GPUs, 1 GiB in 16.6 ms, 1 MiB in 0.18. */
static void many_nodes_take_what_was_published(void **state)
{
    (void)state;
    ft_cluster c = cluster_of("a100_sxm_40gb", 128, "8x200 Gb/s IB per node");
    double large = of(built_in, "a100_sxm_40gb", &c, FT_COLLECTIVE_ALL_REDUCE, 1073741824, 128, 1).ms;
    double small = of(built_in, "a100_sxm_40gb", &c, FT_COLLECTIVE_ALL_REDUCE, 1048576, 128, 1).ms;
    assert_true(fabs(large / 16.586 - 1) < 0.15);
    assert_true(fabs(small / 0.1831 - 1) < 0.15);
}

/* Rings alone: a rank more is a step more, a node more a hop, whatever the size. Sharing 7 billion updates of 1,024
 * A100 out by a broadcast each took 2.6 ms for each (InternLM/InternEvo, its two ways to shard states). */
static void broadcasts_go_around_the_ring(void **state)
{
    (void)state;
    ft_cluster c = cluster_of("a100_sxm_80gb", 1024, "4x100Gb RoCE");
    double few = of(built_in, "a100_sxm_80gb", &c, FT_COLLECTIVE_BROADCAST, 1e3, 64, 1).ms;
    double many = of(built_in, "a100_sxm_80gb", &c, FT_COLLECTIVE_BROADCAST, 1e3, 1024, 1).ms;
    ft_comm share = of(built_in, "a100_sxm_80gb", &c, FT_COLLECTIVE_BROADCAST, 14.3e6, 1024, 1);
    assert_true(many > 10 * few && many < 16 * few);
    assert_string_equal(share.algorithm, "ring");
    assert_true(fabs(share.ms / 2.6 - 1) < 0.2);
}

static void a_slower_network_is_slower(void **state)
{
    (void)state;
    ft_cluster fast = cluster_of("h100_sxm", 64, "ib_ndr400"), slow = cluster_of("h100_sxm", 64, "roce_100");
    ft_cluster shared = fast;
    shared.tier[1].oversubscription = 4;
    shared.rails = false;
    shared.leaf_nodes = 1; /* every node's cables end at a leaf of its own: all of its traffic crosses */
    for (int op = 0; op < FT_COLLECTIVE_COUNT; op++) {
        int64_t n = op == FT_COLLECTIVE_SEND_RECV ? 2 : 64, stride = op == FT_COLLECTIVE_SEND_RECV ? 8 : 1;
        double best = of(built_in, "h100_sxm", &fast, (ft_collective)op, 1e8, n, stride).ms;
        assert_true(best < of(built_in, "h100_sxm", &slow, (ft_collective)op, 1e8, n, stride).ms);
        assert_true(best < of(built_in, "h100_sxm", &shared, (ft_collective)op, 1e8, n, stride).ms);
    }
}

/* Only what leaves a leaf meets the thin cables above it. */
static void thin_cables_slow_what_crosses_them(void **state)
{
    (void)state;
    ft_cluster whole = cluster_of("h100_sxm", 1024, "ib_ndr400");
    whole.rails = false;
    whole.leaf_nodes = 4;
    ft_cluster thin = whole;
    thin.tier[1].oversubscription = 8;
    static const struct {
        ft_collective op;
        int64_t size, stride;
        double times;
    } cases[] = {{FT_COLLECTIVE_ALL_GATHER, 1024, 1, 2},  /* 8 NICs of 32 send across the edge, over 4 cables */
                 {FT_COLLECTIVE_ALL_GATHER, 128, 8, 2},   /* the same: a rank of every node */
                 {FT_COLLECTIVE_ALL_GATHER, 16, 64, 8},   /* every eighth node: all of a leaf's send across */
                 {FT_COLLECTIVE_ALL_GATHER, 32, 1, 1},    /* groups of four nodes fill a leaf */
                 {FT_COLLECTIVE_ALL_TO_ALL, 128, 1, 6.4}, /* 12 of 15 other nodes hang elsewhere */
                 {FT_COLLECTIVE_ALL_TO_ALL, 32, 1, 1},    {FT_COLLECTIVE_SEND_RECV, 2, 512, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double free = of(built_in, "h100_sxm", &whole, cases[i].op, 1e11, cases[i].size, cases[i].stride).ms;
        double slow = of(built_in, "h100_sxm", &thin, cases[i].op, 1e11, cases[i].size, cases[i].stride).ms;
        if (fabs(slow / free / cases[i].times - 1) > 0.05) fail_msg("case %zu: %g times", i, slow / free);
    }
    thin.leaf_nodes = 128; /* one leaf for all */
    double one = of(built_in, "h100_sxm", &thin, FT_COLLECTIVE_ALL_TO_ALL, 8e9, 1024, 1).ms;
    assert_float_equal(one, of(built_in, "h100_sxm", &whole, FT_COLLECTIVE_ALL_TO_ALL, 8e9, 1024, 1).ms, 1e-9);
}

/* NVIDIA/nccl issue 2409: 470 GB/s of bus bandwidth is healthy on two nodes of 8 H100 with 8 x 400 Gb/s. */
static void nodes_that_add_up_send_less(void **state)
{
    (void)state;
    ft_cluster c = cluster_of("h100_sxm", 16, "roce_400"), plain = c, sharp = c;
    ft_comm both = of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, 8e9, 16, 1);
    assert_string_equal("hierarchical", both.algorithm);
    assert_true(fabs(1.875 * 8 / both.ms * 1e3 / 470 - 1) < 0.1);
    plain.tier[0].reduces = false;
    sharp.tier[1].reduces = true;
    ft_comm ring = of(built_in, "h100_sxm", &plain, FT_COLLECTIVE_ALL_REDUCE, 8e9, 16, 1);
    assert_true(ring.ms > both.ms && ring.wire_bytes > both.wire_bytes);
    assert_true(of(built_in, "h100_sxm", &sharp, FT_COLLECTIVE_ALL_REDUCE, 8e9, 16, 1).ms <= both.ms);
}

/* NVIDIA/nccl-tests issue 309: 8 H100 and 8 x 400 Gb/s InfiniBand a node. From three nodes on those inside the trees
 * pass on what comes from two, and 470 GB/s of bus bandwidth become 366; in between a pipeline has to fill first. */
static void trees_of_more_than_two_nodes_send_twice_as_much(void **state)
{
    (void)state;
    static const struct {
        int64_t ranks;
        double bytes, us;
    } seen[] = {{16, 33554432, 267.9}, {16, 134217728, 748.3}, {16, 1073741824, 4484.9},
                {32, 33554432, 376.0}, {32, 134217728, 990.7}, {32, 1073741824, 5808.8}};
    ft_cluster c = cluster_of("h100_sxm", 32, "ib_ndr400");
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        double ms = of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, seen[i].bytes, seen[i].ranks, 1).ms;
        if (fabs(ms * 1e3 / seen[i].us - 1) > 0.12)
            fail_msg("%d ranks, %g bytes: %g us", (int)seen[i].ranks, seen[i].bytes, ms * 1e3);
    }
}

/* EFA delivers in any order: A100 use Simple alone there, and a tree between two nodes sends half of a ring's bytes
 * (two p4de: 1 GiB in 26.2 ms, 1 KiB in 165 us; two p5: 69 us). */
static void efa_has_its_own_ways(void **state)
{
    (void)state;
    ft_cluster old = cluster_of("a100_sxm_80gb", 16, "aws_p4de"), later = cluster_of("h100_sxm", 16, "aws_p5");
    ft_comm large = of(built_in, "a100_sxm_80gb", &old, FT_COLLECTIVE_ALL_REDUCE, 1073741824, 16, 1);
    ft_comm small = of(built_in, "a100_sxm_80gb", &old, FT_COLLECTIVE_ALL_REDUCE, 1024, 16, 1);
    assert_string_equal("tree", large.algorithm);
    assert_float_equal(1073741824 / 8, large.wire_bytes, 1);
    assert_true(fabs(large.ms / 26.2 - 1) < 0.12);
    assert_string_equal("Simple", small.protocol);
    assert_true(fabs(small.ms / 0.165 - 1) < 0.12);
    assert_string_equal("LL", of(built_in, "h100_sxm", &later, FT_COLLECTIVE_ALL_REDUCE, 1024, 16, 1).protocol);
    assert_string_equal("hierarchical",
                        of(built_in, "h100_sxm", &later, FT_COLLECTIVE_ALL_REDUCE, 1e9, 16, 1).algorithm);
}

/* NCCL's trees between two nodes send half of a ring's bytes, and are taken where the network holds a ring back: a NIC
 * for two A100 (400 MiB of vTrain's tensor sums), not where each has its own, nor from three nodes on. */
static void trees_between_two_nodes_send_half(void **state)
{
    (void)state;
    const double bytes = 400 * 1048576.0;
    ft_cluster few = cluster_of("a100_sxm_80gb", 32, "800 Gbps/node InfiniBand");
    ft_cluster many = cluster_of("a100_sxm_80gb", 32, "1600 Gbps/node InfiniBand");
    ft_comm two = of(built_in, "a100_sxm_80gb", &few, FT_COLLECTIVE_ALL_REDUCE, bytes, 16, 1);
    ft_comm three = of(built_in, "a100_sxm_80gb", &few, FT_COLLECTIVE_ALL_REDUCE, bytes, 24, 1);
    ft_comm each = of(built_in, "a100_sxm_80gb", &many, FT_COLLECTIVE_ALL_REDUCE, bytes, 16, 1);
    assert_string_equal("tree", two.algorithm);
    assert_float_equal(bytes / 8, two.wire_bytes, 1);
    assert_true(three.wire_bytes > 1.8 * two.wire_bytes && three.ms > 1.6 * two.ms);
    assert_true(each.wire_bytes > 1.8 * two.wire_bytes && each.ms < two.ms * 1.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_grows_with_bytes_and_nodes),
        cmocka_unit_test(nothing_is_faster_than_its_wires),
        cmocka_unit_test(many_nodes_take_what_was_published),
        cmocka_unit_test(broadcasts_go_around_the_ring),
        cmocka_unit_test(a_slower_network_is_slower),
        cmocka_unit_test(thin_cables_slow_what_crosses_them),
        cmocka_unit_test(nodes_that_add_up_send_less),
        cmocka_unit_test(trees_of_more_than_two_nodes_send_twice_as_much),
        cmocka_unit_test(efa_has_its_own_ways),
        cmocka_unit_test(trees_between_two_nodes_send_half),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
