/* Platforms, flows, and what comes back from a simulator. SimGrid itself is asked by tests/network. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "comm/simgrid.h"
#include "device/gpu.h"

typedef struct bench {
    ft_device device;
    ft_cluster cluster;
    ft_arena *arena;
    ft_simulated *s;
} bench;

/* `object`: the request's cluster, as JSON. */
static void open_bench(bench *b, const char *object, int64_t ranks)
{
    ft_error err = {0};
    json_t *json = json_loads(object, 0, NULL);
    memset(b, 0, sizeof *b);
    assert_non_null(json);
    assert_int_equal(ft__catalogue_find("h100_sxm", &b->device, &err), FT_OK);
    assert_int_equal(ft__cluster_read(json, &b->device, ranks, &b->cluster, &err), FT_OK);
    b->arena = ft__arena_new(0);
    assert_non_null(b->arena);
    assert_int_equal(ft__simulated_new(&b->cluster, ranks, b->arena, &b->s, &err), FT_OK);
    json_decref(json);
}

static void close_bench(bench *b) { ft__arena_free(b->arena); }

/* An exchange whose closed form is given: 1 ms of latency and 10 ms on the wire. */
static const ft_exchanged *ask(bench *b, ft_collective op, int64_t size, int64_t stride, const char *algorithm)
{
    ft_error err = {0};
    ft_comm whole = {.ms = 11, .latency_ms = 1, .wire_bytes = 4e8, .algorithm = algorithm}, out = whole;
    ft_group group = {.size = size, .stride = stride};
    assert_int_equal(ft__simulated_ask(b->s, op, 1e8, &group, &whole, &out, &err), FT_OK);
    return &b->s->rows[b->s->count - 1];
}

static ft_flow *flows_of(bench *b, const ft_exchanged *e, int64_t *count)
{
    ft_flow *flows = NULL;
    ft_error err = {0};
    assert_int_equal(ft__simulated_flows(b->s, e, &flows, count, &err), FT_OK);
    return flows;
}

/* -- platforms --------------------------------------------------------------------------------- */

static void rails_hang_gpu_i_of_a_group_of_nodes_on_one_leaf(void **state)
{
    (void)state;
    bench b;
    ft_text xml = {0};
    open_bench(&b, "{\"interconnect\":\"ib_ndr400\",\"topology\":\"rails\",\"network\":\"simgrid\"}", 512);
    const ft_platform *p = &b.s->platform;
    assert_true(b.cluster.simulate);
    assert_int_equal(p->levels, 2);
    assert_int_equal(p->down[0], 32);
    assert_int_equal(p->down[1], 16); /* two groups of 32 nodes, eight rails each */
    assert_int_equal(p->hosts, 512);
    bool taken[512] = {false};
    for (int64_t rank = 0; rank < 512; rank++) {
        int64_t host = ft__platform_host(p, rank);
        assert_in_range(host, 0, 511);
        assert_false(taken[host]);
        taken[host] = true;
        assert_int_equal(host / 32 % 8, rank % 8); /* its leaf is its rail */
    }
    ft__platform_xml(p, &xml);
    assert_non_null(strstr(xml.at, "topology=\"FAT_TREE\" topo_parameters=\"2;32,16;1,32;1,1\""));
    assert_non_null(strstr(xml.at, "radical=\"0-511\""));
    ft__text_free(&xml);
    close_bench(&b);
}

static void a_plain_tree_puts_four_nodes_under_a_leaf_and_cuts_cables_above_it(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "{\"interconnect\":\"ib_ndr400\",\"topology\":\"fat tree 4:1\",\"leaf_nodes\":4}", 128);
    const ft_platform *p = &b.s->platform;
    assert_false(p->rails);
    assert_int_equal(p->down[0], 32);
    assert_int_equal(p->up[1], 8);
    assert_int_equal(ft__platform_host(p, 37), 37);
    close_bench(&b);
}

static void many_gpus_are_simulated_node_by_node(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "{\"interconnect\":\"ib_ndr400\",\"topology\":\"rails\"}", 30720);
    const ft_platform *p = &b.s->platform;
    assert_true(p->by_node);
    assert_int_equal(p->levels, 3);
    assert_true(p->hosts >= 3840 && p->hosts <= FT_MOST_HOSTS);
    assert_true(fabs(p->gbps - 8 * 50 * b.cluster.tier[b.cluster.tiers - 1].efficiency) < 1e-6);
    close_bench(&b);
    ft_error err = {0};
    ft_platform out;
    b.cluster.gpus_per_node = 8;
    assert_int_equal(ft__platform_of(&b.cluster, 8 * 20000, &out, &err), FT_E_RANGE);
    assert_non_null(strstr(err.message, "up to 8192 nodes, got 20000"));
}

static void one_node_has_no_network(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "{\"network\":\"simgrid\"}", 8);
    assert_null(b.s);
    close_bench(&b);
}

static void the_word_is_closed_or_simgrid(void **state)
{
    (void)state;
    ft_error err = {0};
    bool simulate = true;
    json_t *json = json_pack("{s:s}", "network", "ns3");
    assert_int_equal(ft__network_word(json, &simulate, &err), FT_E_NAME);
    assert_string_equal(err.message, "unknown network model \"ns3\"; it is \"closed\" or \"simgrid\"");
    json_decref(json);
    json = json_pack("{s:i}", "network", 3);
    assert_int_equal(ft__network_word(json, &simulate, &err), FT_E_TYPE);
    json_decref(json);
    assert_int_equal(ft__network_word(NULL, &simulate, &err), FT_OK);
    assert_false(simulate);
}

/* -- flows ------------------------------------------------------------------------------------- */

static void in_a_ring_every_nic_sends_once_and_receives_once(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "{\"interconnect\":\"ib_ndr400\"}", 128);
    const ft_exchanged *e = ask(&b, FT_COLLECTIVE_ALL_REDUCE, 128, 1, "ring");
    int64_t count, sent[128] = {0}, got[128] = {0};
    ft_flow *flow = flows_of(&b, e, &count);
    assert_int_equal(count, 128);
    for (int64_t i = 0; i < count; i++) {
        sent[flow[i].from]++;
        got[flow[i].to]++;
        assert_true(fabs(flow[i].bytes / e->wire_bytes - 1) < 1e-12);
    }
    for (int i = 0; i < 128; i++) assert_true(sent[i] == 1 && got[i] == 1);
    /* Groups of four nodes, one GPU of each: 32 rings at once. */
    flows_of(&b, ask(&b, FT_COLLECTIVE_ALL_GATHER, 4, 8, "ring"), &count);
    assert_int_equal(count, 128);
    close_bench(&b);
}

static void a_double_tree_loads_no_nic_with_more_than_a_ring_would(void **state)
{
    (void)state;
    bench b;
    for (int64_t nodes = 3; nodes <= 33; nodes++) {
        open_bench(&b, "{\"interconnect\":\"ib_ndr400\"}", nodes * 8);
        const ft_exchanged *e = ask(&b, FT_COLLECTIVE_ALL_REDUCE, nodes * 8, 1, "tree");
        int64_t count;
        double sent[512] = {0}, got[512] = {0}, all = 0;
        ft_flow *flow = flows_of(&b, e, &count);
        for (int64_t i = 0; i < count; i++) {
            sent[flow[i].from] += flow[i].bytes / e->wire_bytes;
            got[flow[i].to] += flow[i].bytes / e->wire_bytes;
            all += flow[i].bytes / e->wire_bytes;
        }
        for (int64_t r = 0; r < nodes * 8; r++) {
            int64_t h = ft__platform_host(&b.s->platform, r);
            assert_true(sent[h] > 0.2 && sent[h] < 1.26); /* the odd tree's shift puts one edge more on some */
            assert_true(got[h] > 0.2 && got[h] < 1.26);
        }
        assert_true(fabs(all - (double)(nodes - 1) * 8) < 1e-6); /* two trees, up and down, a quarter each */
        close_bench(&b);
    }
}

static void stages_of_a_pipeline_all_send_at_once_but_for_the_last(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "{\"interconnect\":\"ib_ndr400\"}", 8 * 16);
    int64_t count;
    ft_flow *flow = flows_of(&b, ask(&b, FT_COLLECTIVE_SEND_RECV, 16, 8, "pairwise"), &count);
    assert_int_equal(count, 15 * 8);
    assert_true(flow[0].from != flow[0].to);
    /* Stages inside a node send over NVLink: the network sees nothing of them. */
    flows_of(&b, ask(&b, FT_COLLECTIVE_SEND_RECV, 4, 2, "pairwise"), &count);
    assert_int_equal(count, 0);
    close_bench(&b);
}

static void an_all_to_all_sends_what_the_closed_form_says(void **state)
{
    (void)state;
    bench b;
    open_bench(&b, "{\"interconnect\":\"ib_ndr400\"}", 512);
    const ft_exchanged *e = ask(&b, FT_COLLECTIVE_ALL_TO_ALL, 512, 1, "pairwise");
    int64_t count;
    double sent[512] = {0}, got[512] = {0};
    ft_flow *flow = flows_of(&b, e, &count);
    for (int64_t i = 0; i < count; i++) {
        sent[flow[i].from] += flow[i].bytes;
        got[flow[i].to] += flow[i].bytes;
    }
    for (int i = 0; i < 512; i++) {
        assert_true(fabs(sent[i] / e->wire_bytes - 1) < 1e-9);
        assert_true(fabs(got[i] / e->wire_bytes - 1) < 1e-9);
    }
    close_bench(&b);
}

/* -- the simulator's answer -------------------------------------------------------------------- */

static ft_status twice(void *user, const char *scenario, size_t length, double *seconds, size_t count, ft_error *err)
{
    (void)err;
    const bench *b = user;
    assert_int_equal(strlen(scenario), length);
    assert_true(!strncmp(scenario, "xml ", 4));
    for (size_t i = 0; i < count; i++) seconds[i] = 2 * b->s->rows[i].wire_ms * 1e-3;
    return FT_OK;
}

static ft_status at_once(void *user, const char *scenario, size_t length, double *seconds, size_t count, ft_error *err)
{
    (void)user, (void)scenario, (void)length, (void)err;
    for (size_t i = 0; i < count; i++) seconds[i] = 0;
    return FT_OK;
}

static ft_status nonsense(void *user, const char *scenario, size_t length, double *seconds, size_t count, ft_error *err)
{
    (void)user, (void)scenario, (void)length, (void)err;
    for (size_t i = 0; i < count; i++) seconds[i] = NAN;
    return FT_OK;
}

static void a_wire_that_takes_twice_as_long_doubles_all_but_the_latency(void **state)
{
    (void)state;
    bench b;
    ft_error err = {0};
    open_bench(&b, "{\"interconnect\":\"ib_ndr400\"}", 128);
    ask(&b, FT_COLLECTIVE_ALL_REDUCE, 128, 1, "ring");
    ask(&b, FT_COLLECTIVE_ALL_REDUCE, 128, 1, "ring"); /* the same again is one row */
    assert_int_equal(b.s->count, 1);
    ft_simulator simulator = {twice, &b};
    assert_int_equal(ft__simulated_run(b.s, &simulator, &err), FT_OK);
    ft_comm whole = {.ms = 11, .latency_ms = 1, .wire_bytes = 4e8, .algorithm = "ring"}, out = whole;
    ft_group group = {.size = 128, .stride = 1};
    out.low_ms = 10;
    out.high_ms = 12;
    assert_int_equal(ft__simulated_ask(b.s, FT_COLLECTIVE_ALL_REDUCE, 1e8, &group, &whole, &out, &err), FT_OK);
    assert_true(fabs(out.ms - 21) < 1e-9);
    assert_true(fabs(out.low_ms - 10 * 21 / 11.0) < 1e-9);
    /* What nobody simulated keeps its closed form. */
    out = whole;
    assert_int_equal(ft__simulated_ask(b.s, FT_COLLECTIVE_ALL_REDUCE, 2e8, &group, &whole, &out, &err), FT_OK);
    assert_true(fabs(out.ms - 11) < 1e-9);
    close_bench(&b);
}

/* LL128 sends at two fifths of a NIC's rate: cables that could carry more do not hurry it. */
static void no_flow_is_faster_than_its_protocol(void **state)
{
    (void)state;
    bench b;
    ft_error err = {0};
    open_bench(&b, "{\"interconnect\":\"ib_ndr400\"}", 128);
    const ft_exchanged *e = ask(&b, FT_COLLECTIVE_ALL_REDUCE, 128, 1, "tree");
    ft_simulator simulator = {at_once, &b};
    assert_int_equal(ft__simulated_run(b.s, &simulator, &err), FT_OK);
    assert_true(fabs(e->simulated_ms - 11) < 1e-9);
    close_bench(&b);
}

static void a_missing_or_mad_simulator_is_an_error(void **state)
{
    (void)state;
    bench b;
    ft_error err = {0};
    open_bench(&b, "{\"interconnect\":\"ib_ndr400\"}", 128);
    ask(&b, FT_COLLECTIVE_ALL_REDUCE, 128, 1, "ring");
    assert_int_equal(ft__simulated_run(b.s, NULL, &err), FT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "leave \"network\" out"));
    ft_simulator simulator = {nonsense, NULL};
    assert_int_equal(ft__simulated_run(b.s, &simulator, &err), FT_E_BUG);
    close_bench(&b);
}

static void the_library_alone_says_that_it_does_not_simulate(void **state)
{
    (void)state;
    ft_context *ft;
    assert_int_equal(ft_open(&ft, NULL, NULL), FT_OK);
    char *answer = ft_answer(ft, "{\"task\":\"collective\",\"op\":\"all_reduce\",\"bytes\":1e8,\"ranks\":64,"
                                 "\"gpu\":\"h100_sxm\",\"cluster\":{\"network\":\"simgrid\"}}");
    assert_non_null(answer);
    assert_non_null(strstr(answer, "\"code\":\"unsupported\""));
    free(answer);
    /* One node has no network: the answer is the closed form's. */
    answer = ft_answer(ft, "{\"task\":\"collective\",\"op\":\"all_reduce\",\"bytes\":1e8,\"ranks\":8,"
                           "\"gpu\":\"h100_sxm\",\"cluster\":{\"network\":\"simgrid\"}}");
    assert_non_null(strstr(answer, "\"ok\":true"));
    free(answer);
    ft_close(ft);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rails_hang_gpu_i_of_a_group_of_nodes_on_one_leaf),
        cmocka_unit_test(a_plain_tree_puts_four_nodes_under_a_leaf_and_cuts_cables_above_it),
        cmocka_unit_test(many_gpus_are_simulated_node_by_node),
        cmocka_unit_test(one_node_has_no_network),
        cmocka_unit_test(the_word_is_closed_or_simgrid),
        cmocka_unit_test(in_a_ring_every_nic_sends_once_and_receives_once),
        cmocka_unit_test(a_double_tree_loads_no_nic_with_more_than_a_ring_would),
        cmocka_unit_test(stages_of_a_pipeline_all_send_at_once_but_for_the_last),
        cmocka_unit_test(an_all_to_all_sends_what_the_closed_form_says),
        cmocka_unit_test(a_wire_that_takes_twice_as_long_doubles_all_but_the_latency),
        cmocka_unit_test(no_flow_is_faster_than_its_protocol),
        cmocka_unit_test(a_missing_or_mad_simulator_is_an_error),
        cmocka_unit_test(the_library_alone_says_that_it_does_not_simulate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
