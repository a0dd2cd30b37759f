/* Collectives over groups: which tier bounds them, what grows with what. */
#include "exchanges.h"

static const ft_predictor empty = {.mode = FT_PREDICT_LEARNED};

static void the_group_says_which_tier_it_crosses(void **state)
{
    (void)state;
    ft_cluster c = cluster_of("h100_sxm", 64, NULL);
    assert_int_equal(0, of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, 1e8, 8, 1).tier);
    assert_int_equal(0, of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, 1e8, 2, 4).tier);
    assert_int_equal(1, of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, 1e8, 2, 8).tier);
    assert_int_equal(1, of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, 1e6, 16, 1).tier);
    /* Four ranks over two nodes have two NICs to a node, two over two nodes have one. */
    double one = of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, 1e9, 2, 8).ms;
    double two = of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, 1e9, 4, 4).ms;
    double eight = of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, 1e9, 16, 1).ms;
    assert_true(two < one && eight < two);
    ft_cluster rack = cluster_of("gb200", 144, NULL);
    assert_int_equal(0, of(built_in, "gb200", &rack, FT_COLLECTIVE_ALL_REDUCE, 1e9, 72, 1).tier);
    assert_int_equal(1, of(built_in, "gb200", &rack, FT_COLLECTIVE_ALL_REDUCE, 1e6, 144, 1).tier);
}

/* Groups stand in a row without gaps: nodes of three hold one and a half of two ranks each. */
static void groups_that_nodes_do_not_hold_whole_cross_them(void **state)
{
    (void)state;
    ft_device d = device_of("h100_sxm");
    static const struct {
        int64_t per_node, ranks, size, stride;
        int crosses; /* ranks in the smaller part; 0: none does */
    } cases[] = {{3, 6, 2, 1, 1},  {3, 3, 3, 1, 0},  {4, 8, 2, 1, 0}, {12, 24, 8, 1, 4},  {12, 24, 6, 2, 0},
                 {8, 12, 3, 2, 1}, {8, 12, 2, 6, 1}, {8, 6, 3, 2, 0}, {16, 48, 12, 1, 4}, {12, 12, 8, 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_cluster c, pairs;
        json_t *object = json_pack("{s:I, s:s, s:I}", "gpus_per_node", (json_int_t)cases[i].per_node, "interconnect",
                                   "ib_ndr400", "nodes", (json_int_t)16); /* more of them than are in use */
        assert_int_equal(FT_OK, ft__cluster_read(object, &d, cases[i].ranks, &c, NULL));
        json_decref(object);
        ft_comm x = of(built_in, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, 1e9, cases[i].size, cases[i].stride);
        if (x.tier != (cases[i].crosses > 0))
            fail_msg("%d ranks %d apart on nodes of %d: tier %d", (int)cases[i].size, (int)cases[i].stride,
                     (int)cases[i].per_node, x.tier);
        if (!cases[i].crosses) continue;
        /* As slow as if all its parts were as small. */
        object = json_pack("{s:I, s:s}", "gpus_per_node", (json_int_t)cases[i].crosses, "interconnect", "ib_ndr400");
        assert_int_equal(FT_OK, ft__cluster_read(object, &d, 64, &pairs, NULL));
        json_decref(object);
        double even = of(built_in, "h100_sxm", &pairs, FT_COLLECTIVE_ALL_REDUCE, 1e9, cases[i].size, 1).ms;
        if (fabs(x.ms / even - 1) > 0.5) fail_msg("case %d: %.1f ms, in even parts %.1f", (int)i, x.ms, even);
    }
}

/* Nodes beyond those in use send nothing. */
static void idle_nodes_change_nothing(void **state)
{
    (void)state;
    ft_device d = device_of("mi250x");
    double ms[2];
    for (int i = 0; i < 2; i++) {
        ft_cluster c;
        json_t *object = json_pack("{s:i, s:s, s:i, s:f}", "gpus_per_node", 16, "interconnect", "ethernet_10", "nodes",
                                   i ? 60 : 15, "oversubscription", 4.0);
        assert_int_equal(FT_OK, ft__cluster_read(object, &d, 226, &c, NULL));
        json_decref(object);
        ms[i] = of(built_in, "mi250x", &c, FT_COLLECTIVE_ALL_REDUCE, 1e9, 226, 1).ms;
    }
    assert_true(ms[0] == ms[1]);
}

/* What leaves a node has gone around it: no group is faster than its ranks in one node. Boxes of slots are where the
 * rate of the links says least. */
static void no_exchange_between_nodes_is_faster_than_inside_one(void **state)
{
    (void)state;
    static const char *const gpus[] = {"l40s", "rtx_4090", "a100_pcie_80gb", "h100_pcie", "t4", "h100_sxm", "gb200"};
    static const ft_collective ops[] = {FT_COLLECTIVE_ALL_REDUCE, FT_COLLECTIVE_ALL_GATHER,
                                        FT_COLLECTIVE_REDUCE_SCATTER, FT_COLLECTIVE_BROADCAST};
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        ft_cluster c = cluster_of(gpus[g], 1024, NULL);
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
            for (double bytes = 1e4; bytes < 1e10; bytes *= 10) {
                double inside = of(built_in, gpus[g], &c, ops[o], bytes, c.tier[c.tiers - 2].gpus, 1).ms;
                for (int64_t n = 2 * c.gpus_per_node; n <= 1024; n *= 4) {
                    if (n <= c.tier[c.tiers - 2].gpus) continue;
                    double ms = of(built_in, gpus[g], &c, ops[o], bytes, n, 1).ms;
                    if (ms < inside)
                        fail_msg("%s, %d ranks, %g bytes: %g ms, %g inside", gpus[g], (int)n, bytes, ms, inside);
                }
            }
    }
}

/* The measured box has no switch. Nobody knows another GPU's: it lies between that one and those behind a switch, and
 * its interval holds both. */
static void slots_are_as_good_as_their_box(void **state)
{
    (void)state;
    ft_cluster unknown = cluster_of("rtx_4090", 8, NULL), switched = cluster_of("rtx_4090", 8, "PCIe switch"),
               measured = cluster_of("l40s", 8, NULL);
    ft_comm slow = of(built_in, "l40s", &measured, FT_COLLECTIVE_ALL_REDUCE, 1e9, 8, 1);
    ft_comm good = of(built_in, "rtx_4090", &switched, FT_COLLECTIVE_ALL_REDUCE, 1e9, 8, 1);
    ft_comm between = of(built_in, "rtx_4090", &unknown, FT_COLLECTIVE_ALL_REDUCE, 1e9, 8, 1);
    assert_int_equal(slow.source, FT_SOURCE_LEARNED);
    assert_true(good.ms < 0.5 * between.ms && between.ms < 0.5 * slow.ms);
    assert_true(between.low_ms <= good.ms && slow.ms <= between.high_ms);
    /* 41.1 of 63 GB/s behind switches, 28 without one that is known: 0.44 to 0.65 of the slot's rate. */
    double share = 2 * 7.0 / 8 * 1e9 / (good.ms * 1e6) / switched.tier[0].gbps;
    assert_true(share > 0.4 && share < 0.65);
    /* Two GPUs are neighbours in any box, and small messages do not fill a slot. */
    assert_true(of(built_in, "rtx_4090", &unknown, FT_COLLECTIVE_ALL_REDUCE, 1e9, 2, 1).ms ==
                of(built_in, "rtx_4090", &switched, FT_COLLECTIVE_ALL_REDUCE, 1e9, 2, 1).ms);
    assert_non_null(strstr(unknown.understood, "PCIe switch"));
    assert_non_null(strstr(switched.understood, "behind a PCIe switch"));
    assert_non_null(strstr(measured.understood, "as measured"));
    ft_cluster links = cluster_of("h100_sxm", 8, NULL);
    assert_null(strstr(links.understood, "slots"));
}

/* Of the measured box nobody says that it is the user's: a step's cards reach each other, and the interval holds it. */
static void steps_are_in_no_measured_box(void **state)
{
    (void)state;
    ft_cluster c = cluster_of("l40s", 8, NULL);
    ft_device d = device_of("l40s");
    ft_group group = {.size = 8, .stride = 1};
    ft_comm alone, inside;
    ft_error err;
    assert_int_equal(
        ft__collective_forecast(built_in, &d, &c, FT_COLLECTIVE_ALL_REDUCE, 3e7, &group, 0.9, &alone, &err), FT_OK);
    group.in_step = true;
    assert_int_equal(
        ft__collective_forecast(built_in, &d, &c, FT_COLLECTIVE_ALL_REDUCE, 3e7, &group, 0.9, &inside, &err), FT_OK);
    assert_true(inside.ms < 0.2 * alone.ms && inside.high_ms >= alone.ms);
    group.size = 2; /* a pair is a pair in any box */
    assert_int_equal(
        ft__collective_forecast(built_in, &d, &c, FT_COLLECTIVE_ALL_REDUCE, 3e7, &group, 0.9, &inside, &err), FT_OK);
    group.in_step = false;
    assert_int_equal(
        ft__collective_forecast(built_in, &d, &c, FT_COLLECTIVE_ALL_REDUCE, 3e7, &group, 0.9, &alone, &err), FT_OK);
    assert_true(inside.ms == alone.ms);
}

/* Workstations' cards reach each other's memory; GeForce cards go through the host's, which a pair feels most. */
static void cards_that_reach_each_other_need_no_switch(void **state)
{
    (void)state;
    ft_cluster plain = cluster_of("rtx_a4000", 8, NULL), switched = cluster_of("rtx_a4000", 8, "PCIe switch"),
               geforce = cluster_of("rtx_4090", 2, NULL);
    ft_comm one = of(built_in, "rtx_a4000", &plain, FT_COLLECTIVE_ALL_REDUCE, 1e9, 8, 1);
    ft_comm other = of(built_in, "rtx_a4000", &switched, FT_COLLECTIVE_ALL_REDUCE, 1e9, 8, 1);
    assert_true(one.ms == other.ms);
    assert_true(one.high_ms > 2 * other.high_ms); /* a virtual machine may keep them apart */
    assert_non_null(strstr(plain.understood, "reach each other"));
    ft_comm pair = of(built_in, "rtx_a4000", &plain, FT_COLLECTIVE_ALL_REDUCE, 1e9, 2, 1);
    ft_comm host = of(built_in, "rtx_4090", &geforce, FT_COLLECTIVE_ALL_REDUCE, 1e9, 2, 1);
    assert_true(1e9 / (pair.ms * 1e6) > 15 && 1e9 / (host.ms * 1e6) < 7);
    assert_true(host.low_ms < pair.ms); /* nobody knows every machine's */
    /* Small messages do not fill even that. */
    double few = of(built_in, "rtx_4090", &geforce, FT_COLLECTIVE_ALL_REDUCE, 1e4, 2, 1).ms;
    assert_true(few < 2 * of(built_in, "rtx_a4000", &plain, FT_COLLECTIVE_ALL_REDUCE, 1e4, 2, 1).ms);
}

static double pair_gbps(const char *gpu, const char *words)
{
    ft_cluster c = cluster_of(gpu, 2, words);
    return 1e9 / (of(built_in, gpu, &c, FT_COLLECTIVE_ALL_REDUCE, 1e9, 2, 1).ms * 1e6);
}

/* NCCL_P2P_DISABLE=1: whatever joins them, GPUs are as fast as the host's memory, and a Xeon's is faster. Lambda's logs
 * (docs/models/collective.md): 3.6 to 6.4 GB/s of pairs of A100 on EPYC, 8 of V100 and 26 to 57 of H100 on Xeons. */
static void without_peers_the_host_decides(void **state)
{
    (void)state;
    double links = pair_gbps("a100_sxm_80gb", NULL), off = pair_gbps("a100_sxm_80gb", "P2P disabled");
    assert_true(links > 100 && off > 3 && off < 7);
    assert_true(pair_gbps("a100_sxm_80gb", "PCIe switch without P2P") == off);
    assert_true(pair_gbps("a100_sxm_80gb", "P2P not disabled") == links);
    assert_true(pair_gbps("a100_pcie_80gb", "no P2P") == off);
    double fourth = pair_gbps("v100_sxm_16gb", "no P2P; Xeon"), fifth = pair_gbps("h100_pcie", "no P2P; Xeon");
    assert_true(fourth > 6 && fourth < 10 && fifth > 25 && fifth < 57);
    ft_cluster eight = cluster_of("a100_sxm_80gb", 8, "no P2P"), xeon = cluster_of("a100_sxm_80gb", 8, "no P2P, Xeon");
    double slow = of(built_in, "a100_sxm_80gb", &eight, FT_COLLECTIVE_ALL_REDUCE, 1e9, 8, 1).ms;
    assert_true(slow > 1.5 * of(built_in, "a100_sxm_80gb", &xeon, FT_COLLECTIVE_ALL_REDUCE, 1e9, 8, 1).ms);
    assert_non_null(strstr(eight.understood, "without P2P, through the host's memory"));
}

static void skew_makes_an_exchange_as_slow_as_its_heaviest_rank(void **state)
{
    (void)state;
    ft_device d = device_of("h100_sxm");
    ft_cluster c = cluster_of("h100_sxm", 64, NULL);
    for (int64_t n = 8; n <= 64; n *= 8) {
        ft_comm even, uneven;
        ft_group g = {.size = n, .stride = 1, .skew = 1}, h = {.size = n, .stride = 1, .skew = 2};
        assert_int_equal(
            FT_OK, ft__collective_forecast(built_in, &d, &c, FT_COLLECTIVE_ALL_TO_ALL, 1e9, &g, 0.9, &even, NULL));
        assert_int_equal(
            FT_OK, ft__collective_forecast(built_in, &d, &c, FT_COLLECTIVE_ALL_TO_ALL, 1e9, &h, 0.9, &uneven, NULL));
        assert_true(uneven.ms > 1.7 * even.ms && uneven.ms < 2.2 * even.ms);
    }
}

static void a_predictor_without_exchanges_answers_from_physics(void **state)
{
    (void)state;
    ft_cluster c = cluster_of("h100_sxm", 8, NULL);
    ft_comm r = of(&empty, "h100_sxm", &c, FT_COLLECTIVE_ALL_REDUCE, 1e9, 8, 1);
    assert_int_equal(FT_SOURCE_PHYSICS, r.source);
    assert_string_equal("nvls", r.algorithm);
    /* H100 was measured at 3.9 ms for this. */
    assert_true(r.ms > 2.5 && r.ms < 6 && r.high_ms > 3.9 && r.low_ms < 3.9);
}

static void wider_intervals_hold_more(void **state)
{
    (void)state;
    ft_device d = device_of("h100_sxm");
    ft_cluster c = cluster_of("h100_sxm", 64, NULL);
    ft_group g = {.size = 64, .stride = 1};
    double width = 0;
    for (double q = 0.5; q < 0.995; q += 0.07) {
        ft_comm r;
        assert_int_equal(FT_OK,
                         ft__collective_forecast(built_in, &d, &c, FT_COLLECTIVE_ALL_GATHER, 1e8, &g, q, &r, NULL));
        assert_true(r.high_ms / r.low_ms > width);
        width = r.high_ms / r.low_ms;
    }
}

static void one_rank_sends_nothing_and_nonsense_is_refused(void **state)
{
    (void)state;
    ft_device d = device_of("h100_sxm");
    ft_cluster c = cluster_of("h100_sxm", 8, NULL);
    ft_comm r;
    ft_error err;
    ft_group one = {.size = 1, .stride = 1}, none = {.size = 0}, two = {.size = 2, .stride = 1};
    assert_int_equal(FT_OK,
                     ft__collective_forecast(built_in, &d, &c, FT_COLLECTIVE_ALL_REDUCE, 1e6, &one, 0.9, &r, &err));
    assert_float_equal(0, r.ms, 0);
    assert_int_equal(FT_E_RANGE,
                     ft__collective_forecast(built_in, &d, &c, FT_COLLECTIVE_ALL_REDUCE, 1e6, &none, 0.9, &r, &err));
    assert_int_equal(FT_E_RANGE,
                     ft__collective_forecast(built_in, &d, &c, FT_COLLECTIVE_ALL_REDUCE, -1, &two, 0.9, &r, &err));
    assert_int_equal(FT_E_RANGE,
                     ft__collective_forecast(built_in, &d, &c, FT_COLLECTIVE_ALL_REDUCE, NAN, &two, 0.9, &r, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_group_says_which_tier_it_crosses),
        cmocka_unit_test(groups_that_nodes_do_not_hold_whole_cross_them),
        cmocka_unit_test(idle_nodes_change_nothing),
        cmocka_unit_test(no_exchange_between_nodes_is_faster_than_inside_one),
        cmocka_unit_test(slots_are_as_good_as_their_box),
        cmocka_unit_test(steps_are_in_no_measured_box),
        cmocka_unit_test(cards_that_reach_each_other_need_no_switch),
        cmocka_unit_test(without_peers_the_host_decides),
        cmocka_unit_test(skew_makes_an_exchange_as_slow_as_its_heaviest_rank),
        cmocka_unit_test(a_predictor_without_exchanges_answers_from_physics),
        cmocka_unit_test(wider_intervals_hold_more),
        cmocka_unit_test(one_rank_sends_nothing_and_nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
