/* Clusters: what people write is understood, what cannot be is refused with what can. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "comm/catalogue.h"
#include "comm/cluster.h"
#include "device/gpu.h"
#include "scratch.h"

static ft_device device_of(const char *name)
{
    ft_device d;
    assert_int_equal(FT_OK, ft__catalogue_find(name, &d, NULL));
    return d;
}

static ft_status read_json(const char *json, const char *gpu, int64_t ranks, ft_cluster *out, ft_error *err)
{
    ft_device d = device_of(gpu);
    json_t *object = json ? json_loads(json, 0, NULL) : NULL;
    assert_true(!json || object);
    memset(err, 0, sizeof *err);
    ft_status s = ft__cluster_read(object, &d, ranks, out, err);
    json_decref(object);
    return s;
}

static ft_cluster good(const char *json, const char *gpu, int64_t ranks)
{
    ft_cluster c;
    ft_error err;
    if (read_json(json, gpu, ranks, &c, &err) != FT_OK) fail_msg("%s: %s", json ? json : "(none)", err.message);
    assert_true(c.tiers >= 1 && c.tiers <= FT_MAX_TIERS && c.gpus >= ranks && c.understood[0]);
    for (int i = 0; i < c.tiers; i++) {
        assert_true(c.tier[i].gbps > 0 && c.tier[i].efficiency > 0 && c.tier[i].efficiency <= 1);
        assert_true(i == 0 || c.tier[i].gpus > c.tier[i - 1].gpus);
    }
    return c;
}

static const ft_tier *outermost(const ft_cluster *c) { return &c->tier[c->tiers - 1]; }

/* Text as it stands in publications and on mailing lists; GB/s of one GPU's share. */
static void words_about_the_network_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *text, *gpu;
        double gbps;
        ft_fabric fabric;
    } cases[] = {
        {"8x200 Gbps HDR InfiniBand/node (Selene)", "a100_sxm_80gb", 25, FT_INFINIBAND},
        {"NVLink3 in node; 8x200 Gb/s IB per node", "a100_sxm_40gb", 25, FT_INFINIBAND},
        {"1600 Gbps/node RoCE", "a100_sxm_80gb", 25, FT_ROCE},
        {"800 Gbps/node InfiniBand (per config)", "a100_sxm_80gb", 12.5, FT_INFINIBAND},
        {"400 Gb/s RDMA per GPU", "h100_sxm", 50, FT_ROCE},
        {"NVLink", "a100_sxm_80gb", 25, FT_INFINIBAND},
        {"NVLink + NDR", "h100_sxm", 50, FT_INFINIBAND},
        {"4 x HDR InfiniBand per node", "a100_sxm_80gb", 12.5, FT_INFINIBAND},
        {"InfiniBand", "h100_sxm", 50, FT_INFINIBAND},
        {"IB HDR100", "a100_sxm_80gb", 12.5, FT_INFINIBAND},
        {"3.2 Tbps EFA", "h100_sxm", 50, FT_EFA},
        {"400 Gbps EFA", "a100_sxm_40gb", 6.25, FT_EFA},
        {"100GbE", "a100_sxm_80gb", 12.5, FT_ETHERNET},
        {"25 GB/s per GPU RoCE", "a100_sxm_80gb", 25, FT_ROCE},
        {"8\xc3\x97"
         "400 Gb/s InfiniBand",
         "h200_sxm", 50, FT_INFINIBAND},
        {"ib_xdr800", "b300_sxm", 100, FT_INFINIBAND},
        {"dgx_h100", "h100_sxm", 50, FT_INFINIBAND},
        {"aws_p4d", "a100_sxm_40gb", 6.25, FT_EFA},
        {"AWS p4d", "a100_sxm_40gb", 6.25, FT_EFA},
        {"DGX H100", "h100_sxm", 50, FT_INFINIBAND},
        {"IB EDR100", "a100_sxm_80gb", 12.5, FT_INFINIBAND},
        {"1,600 Gbps/node RoCE", "a100_sxm_80gb", 25, FT_ROCE},
        {"1.6e3 Gbps/node RoCE", "a100_sxm_80gb", 25, FT_ROCE},
        {"1e+2 GbE", "a100_sxm_80gb", 12.5, FT_ETHERNET},
        {"400000 Mb/s InfiniBand per GPU", "h100_sxm", 50, FT_INFINIBAND},
        {"HDR-200 InfiniBand, 2:1 oversubscribed", "a100_sxm_80gb", 25, FT_INFINIBAND},
        {"InfiniBand 200", "h100_sxm", 25, FT_INFINIBAND}, /* figures without a unit are not passed over */
        {"RoCE v2 200", "h100_sxm", 25, FT_ROCE},
        {"200 gigabit Ethernet", "h100_sxm", 25, FT_ETHERNET},
        {"25 gigabytes per second RoCE per GPU", "h100_sxm", 25, FT_ROCE},
        {"4 HDR 200 Gb/s per node", "a100_sxm_80gb", 12.5, FT_INFINIBAND},
        {"two 100 Gb/s Ethernet ports", "a100_sxm_80gb", 3.125, FT_ETHERNET},
        {"dual 100 GbE", "a100_sxm_80gb", 3.125, FT_ETHERNET},
        {"2 nodes 200 Gb/s HDR", "a100_sxm_80gb", 25, FT_INFINIBAND}, /* not of ports */
        {"ConnectX-7 400 Gb/s InfiniBand", "h100_sxm", 50, FT_INFINIBAND},
        {"Slingshot 11 200 Gb/s", "a100_sxm_80gb", 25, FT_ETHERNET},
        {"4 x 100 Gb Omni-Path per node", "a100_sxm_80gb", 6.25, FT_INFINIBAND},
        {"H100 80GB, InfiniBand NDR", "h100_sxm", 50, FT_INFINIBAND}, /* memory is no network */
        {"P5.48xlarge", "h100_sxm", 50, FT_EFA},
        {"p4de", "a100_sxm_80gb", 12.5 / 2, FT_EFA},
        {"Standard_ND96isr_H100_v5", "h100_sxm", 50, FT_INFINIBAND},
        {"ib_ndr400", "a100_sxm_80gb", 31.5, FT_INFINIBAND}, /* through PCIe 4 */
        {"400 Gb/s RoCE per GPU", "l40s", 31.5, FT_ROCE},
        {"PCIe Gen4 x8, 400 Gb/s NDR", "l40s", 15.75, FT_INFINIBAND},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[300];
        snprintf(json, sizeof json, "{\"gpus_per_node\": 8, \"interconnect\": \"%s\"}", cases[i].text);
        ft_cluster c = good(json, cases[i].gpu, 64);
        const ft_tier *t = outermost(&c);
        if (fabs(t->gbps - cases[i].gbps) > 1e-9 || t->fabric != cases[i].fabric)
            fail_msg("%s: %g GB/s of %s (%s)", cases[i].text, t->gbps, t->name, c.understood);
        assert_non_null(strstr(c.understood, t->name));
    }
    static const char *const named[][2] = {{"GPUDirect-TCPX", "tcpx_200"},
                                           {"8x200 Gb/s TCPXO per node", "tcpxo_200"},
                                           {"Omni-Path", "opa_100"},
                                           {"4x OPA-100", "opa_100"},
                                           {"HPE Slingshot", "slingshot_200"},
                                           {"a3-megagpu-8g", "tcpxo_200"},
                                           {"Google a3-highgpu-8g", "tcpx_200"},
                                           {"200 Gb/s Ethernet", "ethernet_400"}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        char json[300];
        snprintf(json, sizeof json, "{\"gpus_per_node\": 8, \"interconnect\": \"%s\"}", named[i][0]);
        ft_cluster c = good(json, "h100_sxm", 16);
        assert_string_equal(outermost(&c)->name, named[i][1]);
    }
}

static void left_out_it_is_the_usual_node(void **state)
{
    (void)state;
    static const struct {
        const char *gpu;
        int64_t per_node;
        double gbps;
    } usual[] = {{"v100_sxm_32gb", 8, 6.25}, {"a100_sxm_80gb", 8, 25}, {"h100_sxm", 8, 50}, {"h200_sxm", 8, 50},
                 {"b200_sxm", 8, 50},        {"b300_sxm", 8, 100},     {"gb200", 4, 50},    {"gb300", 4, 100},
                 {"mi300x", 8, 50},          {"l40s", 8, 12.5},        {"gh200", 1, 50},    {"mi250x", 8, 12.5}};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        ft_cluster c = good(NULL, usual[i].gpu, 1024);
        assert_int_equal(usual[i].per_node, c.gpus_per_node);
        assert_float_equal(usual[i].gbps, outermost(&c)->gbps, 1e-9);
        assert_non_null(strstr(c.understood, "usual"));
    }
    for (size_t i = 0; i < ft__catalogue_count(); i++) good(NULL, ft__catalogue_name(i), 64);
}

static void tiers_follow_from_the_gpu(void **state)
{
    (void)state;
    ft_cluster rack = good("{\"gpus_per_node\": 4}", "gb200", 144);
    assert_int_equal(2, rack.tiers);
    assert_int_equal(72, rack.tier[0].gpus);
    assert_true(rack.tier[0].switched && rack.tier[0].reduces);
    ft_cluster box = good("{\"gpus_per_node\": 8}", "a100_sxm_80gb", 8);
    assert_int_equal(1, box.tiers);
    assert_true(box.tier[0].switched && !box.tier[0].reduces);
    ft_cluster pairs = good(NULL, "a100_pcie_80gb", 16);
    assert_int_equal(3, pairs.tiers);
    assert_int_equal(2, pairs.tier[0].gpus);
    assert_int_equal(FT_PCIE, pairs.tier[1].fabric);
    ft_cluster cards = good("{\"interconnect\": \"PCIe, 100 Gb/s RoCE\"}", "a100_pcie_80gb", 16);
    assert_int_equal(FT_PCIE, cards.tier[0].fabric);
    ft_cluster half = good("{\"gpus_per_node\": 4, \"interconnect\": \"ib_hdr200\"}", "a100_sxm_80gb", 8);
    assert_int_equal(4, half.tier[0].gpus);
}

static void topology_and_oversubscription_are_read(void **state)
{
    (void)state;
    ft_cluster c = good("{\"interconnect\": \"ib_ndr400\", \"topology\": \"fat tree 3:1\"}", "h100_sxm", 64);
    assert_float_equal(3, outermost(&c)->oversubscription, 0);
    assert_false(c.rails);
    c = good("{\"interconnect\": \"ib_ndr400\", \"topology\": \"rail-optimised\"}", "h100_sxm", 64);
    assert_true(c.rails);
    c = good("{}", "h100_sxm", 64);
    assert_true(c.rails && c.leaf_nodes == 32);
    c = good("{\"topology\": \"fat_tree\"}", "h100_sxm", 64); /* 32 nodes hang on a rail's leaf, not on this one's */
    assert_true(!c.rails && c.leaf_nodes == 0);
    c = good("{\"tiers\": [{\"fabric\": \"nvlink\", \"gbps\": 450, \"gpus\": 8},"
             "{\"interconnect\": \"ib_ndr400\", \"gpus\": 256},"
             "{\"interconnect\": \"ib_ndr400\", \"gpus\": 1024, \"oversubscription\": 4}]}",
             "h100_sxm", 512);
    assert_int_equal(3, c.tiers);
    assert_int_equal(8, c.gpus_per_node);
}

/* What free text says of the shape of the network and of the inside of its nodes is taken, and repeated. */
static void words_about_the_shape_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double over;
        int rails;
    } shapes[] = {{"400 Gbps InfiniBand per GPU, rail-optimised, 2:1 oversubscribed", 2, 1},
                  {"400 Gbps InfiniBand per GPU, fat tree 3:1", 3, 0},
                  {"400 Gbps InfiniBand per GPU, 1:4 oversubscription", 4, 0},
                  {"400 Gbps InfiniBand per GPU; 2x oversubscribed", 2, 0},
                  {"NDR InfiniBand, non-blocking", 1, 0},
                  {"rails", 1, 1},
                  {"NDR, not oversubscribed, dragonfly", 1, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char json[300];
        snprintf(json, sizeof json, "{\"interconnect\": \"%s\"}", shapes[i].text);
        ft_cluster c = good(json, "h100_sxm", 64);
        if (fabs(outermost(&c)->oversubscription - shapes[i].over) > 1e-9 || c.rails != shapes[i].rails)
            fail_msg("%s: %s", shapes[i].text, c.understood);
        assert_float_equal(50, outermost(&c)->gbps, 1e-9);
        assert_true(shapes[i].over <= 1 || strstr(c.understood, ":1 oversubscribed"));
    }
    ft_cluster c = good("{\"interconnect\": \"NDR, 2:1\", \"oversubscription\": 4}", "h100_sxm", 64);
    assert_float_equal(4, outermost(&c)->oversubscription, 0); /* a key stands before words */

    static const struct {
        const char *text, *gpu;
        ft_fabric inside;
        double gbps;
        const char *says;
    } nodes[] = {{"PCIe", "h100_sxm", FT_PCIE, 63, "not the GPU's own nvlink4"},
                 {"pcie gen3", "h100_sxm", FT_PCIE, 15.75, "pcie3"},
                 {"PCIe Gen5 x16", "a100_sxm_80gb", FT_PCIE, 31.5, "pcie4"}, /* the card is of the fourth */
                 {"PCIe 4.0 x8, 200 Gbps InfiniBand", "h100_sxm", FT_PCIE, 15.75, "pcie"},
                 {"PCIe", "gb200", FT_PCIE, 63, "within 4 GPUs"},
                 {"PCIe and NVLink", "h100_sxm", FT_NVLINK, 450, "nvlink4"},
                 {"xGMI", "h100_sxm", FT_NVLINK, 450, "no xGMI: h100_sxm has none"},
                 {"NVLink", "l40s", FT_PCIE, 31.5, "no NVLink: l40s has none"},
                 {"NVLink", "rtx_3090", FT_NVLINK, 56.25, "within 2 GPUs"}, /* whose bridge is sold apart */
                 {"PCIe", "rtx_3090", FT_PCIE, 31.5, "PCIe as said"},
                 {"", "rtx_3090", FT_PCIE, 31.5, "its bridge is sold apart"},
                 {"", "a100_pcie_80gb", FT_NVLINK, 300, "within 2 GPUs"},
                 {"NVLink", "mi300x", FT_XGMI, 448, "no NVLink: mi300x has none"},
                 {"xGMI", "mi300x", FT_XGMI, 448, "xgmi 448 GB/s per GPU within 8 GPUs, 64 between two"}};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        char json[300];
        snprintf(json, sizeof json, "{\"interconnect\": \"%s\"}", nodes[i].text);
        ft_cluster n = good(json, nodes[i].gpu, 16);
        if (n.tier[0].fabric != nodes[i].inside || fabs(n.tier[0].gbps - nodes[i].gbps) > 1e-9 ||
            !strstr(n.understood, nodes[i].says))
            fail_msg("%s on %s: %s", nodes[i].text, nodes[i].gpu, n.understood);
    }
    c = good("{}", "mi300x", 4); /* a mesh: three of seven wires lead to the group */
    assert_non_null(strstr(c.understood, ", 64 between two, 192 among 4"));
    c = good("{}", "h100_sxm", 2);
    assert_null(strstr(c.understood, "between two"));
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int64_t ranks;
        ft_status code;
        const char *says;
    } cases[] = {
        {"{\"gpus_per_node\": 0}", 8, FT_E_RANGE, "gpus_per_node"},
        {"{\"gpus_per_node\": -8}", 8, FT_E_RANGE, "gpus_per_node"},
        {"{\"nodes\": 0}", 8, FT_E_RANGE, "nodes"},
        {"{\"nodes\": 2}", 32, FT_E_RANGE, "4 nodes would hold them"},
        {"{\"interconnect\": \"carrier pigeons\"}", 16, FT_E_NAME, "carrier pigeons"},
        {"{\"interconnect\": \"ib_ndr40\"}", 16, FT_E_NAME, "ib_ndr400"},
        {"{\"interconnect\": 400}", 16, FT_E_TYPE, "interconnect"},
        {"{\"interconnect\": \"-5 Gbps\"}", 16, FT_E_RANGE, "got \"-5 Gbps\""},
        {"{\"interconnect\": \"8x -200 Gbps\"}", 16, FT_E_RANGE, "-200 Gbps"},
        {"{\"interconnect\": \"1e-300 Gbps\"}", 16, FT_E_RANGE, "1e-300 Gbps"},
        {"{\"interconnect\": \"1e999 Gbps\"}", 16, FT_E_RANGE, "1e999 Gbps"},
        {"{\"interconnect\": \"0 Gbps InfiniBand\"}", 16, FT_E_RANGE, "0 Gbps"},
        {"{\"interconnect\": \"99999999999 Gbps\"}", 16, FT_E_RANGE, "100000 Gbit/s"},
        {"{\"interconnect\": \"1000x99999 Gbps\"}", 16, FT_E_RANGE, "100000"},
        {"{\"interconnect\": \"0x200 Gbps HDR\"}", 16, FT_E_RANGE, "ports"},
        {"{\"interconnect\": \"1,6 Tbps\"}", 16, FT_E_RANGE, "point"},
        {"{\"interconnect\": \"NDR 0:1\"}", 16, FT_E_RANGE, "1:1 to 1000:1"},
        {"{\"interconnect\": \"NDR, oversubscribed\"}", 16, FT_E_RANGE, "2:1"},
        {"{\"interconnect\": \"PCIe Gen9\"}", 16, FT_E_RANGE, "1 to 7"},
        {"{\"interconnect\": \"infinband\"}", 16, FT_E_NAME, "did you mean \"infiniband\"?"},
        {"{\"interconnect\": \"Infiniband NDR400x\"}", 16, FT_E_NAME, "did you mean \"ndr400\"?"},
        {"{\"interconnect\": \"dgx h10\"}", 16, FT_E_NAME, "did you mean \"dgx_h100\"?"},
        {"{\"topology\": \"moebius\"}", 16, FT_E_NAME, "fat_tree"},
        {"{\"topology\": \"fat_tree 0:1\"}", 16, FT_E_RANGE, "1:1"},
        {"{\"interconect\": \"ib_ndr400\"}", 16, FT_E_KEY, "interconnect"},
        {"[]", 16, FT_E_TYPE, "object"},
        {"{}", 10000000, FT_E_RANGE, "10000000"},
        {"{}", 0, FT_E_RANGE, "0 ranks"},
        {"{\"tiers\": []}", 16, FT_E_TYPE, "tiers"},
        {"{\"tiers\": [{\"fabric\": \"nvlink\", \"gbps\": 450, \"gpus\": 8}]}", 16, FT_E_RANGE, "not connected"},
        {"{\"tiers\": [{\"fabric\": \"string\", \"gbps\": 450, \"gpus\": 8}]}", 8, FT_E_NAME, "nvlink"},
        {"{\"tiers\": [{\"fabric\": \"nvlink\", \"gpus\": 8}]}", 8, FT_E_MISSING, "gbps"},
        {"{\"tiers\": [{\"fabric\": \"nvlink\", \"gbps\": 450, \"gpus\": 8},"
         "{\"interconnect\": \"ib_ndr400\", \"gpus\": 12}]}",
         8, FT_E_RANGE, "whole ones"},
        {"{\"tiers\": [{\"interconnect\": \"ib_ndr400\", \"gpus\": 8},"
         "{\"fabric\": \"nvlink\", \"gbps\": 450, \"gpus\": 16}]}",
         8, FT_E_RANGE, "inside a node"},
        {"{\"interconnect\": \"no/such/cluster.json\"}", 16, FT_E_FILE, "no/such/cluster.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_cluster c;
        ft_error err;
        ft_status s = read_json(cases[i].json, "h100_sxm", cases[i].ranks, &c, &err);
        if (s != cases[i].code) fail_msg("%s: status %d, %s", cases[i].json, (int)s, err.message);
        if (!strstr(err.message, cases[i].says) && !strstr(err.where, cases[i].says))
            fail_msg("%s: \"%s\" at \"%s\" does not say \"%s\"", cases[i].json, err.message, err.where, cases[i].says);
    }
}

static void a_file_describes_a_cluster(void **state)
{
    (void)state;
    char json[5000];
    const char *path = scratch_text("cluster.json", "{\"name\": \"ours\", \"gpus_per_node\": 4, "
                                                    "\"interconnect\": \"2x100 Gb/s InfiniBand per node\"}");
    snprintf(json, sizeof json, "{\"interconnect\": \"%s\"}", path);
    ft_cluster c = good(json, "a100_sxm_80gb", 16);
    assert_int_equal(4, c.gpus_per_node);
    assert_float_equal(6.25, outermost(&c)->gbps, 1e-9);
    path = scratch_text("loop.json", "{\"interconnect\": \"loop.json\"}");
    snprintf(json, sizeof json, "{\"interconnect\": \"%s\"}", path);
    ft_error err;
    assert_int_equal(FT_E_NAME, read_json(json, "a100_sxm_80gb", 16, &c, &err));
}

/* Each of the request's own keys stands before what the file says. */
static void a_request_stands_before_its_file(void **state)
{
    (void)state;
    char json[5000];
    const char *path = scratch_text("said.json",
                                    "{\"interconnect\": \"ib_ndr400\", \"gpus_per_node\": 4, \"nodes\": 16, "
                                    "\"topology\": \"fat_tree\", \"oversubscription\": 2, "
                                    "\"leaf_nodes\": 8}");
    snprintf(json, sizeof json, "{\"interconnect\": \"%s\"}", path);
    ft_cluster c = good(json, "h100_sxm", 64);
    assert_true(c.gpus_per_node == 4 && c.nodes == 16 && !c.rails && c.leaf_nodes == 8);
    assert_float_equal(2, outermost(&c)->oversubscription, 0);
    snprintf(json, sizeof json,
             "{\"interconnect\": \"%s\", \"gpus_per_node\": 8, \"nodes\": 9, \"topology\": \"rails\", "
             "\"oversubscription\": 3, \"leaf_nodes\": 5}",
             path);
    c = good(json, "h100_sxm", 64);
    assert_true(c.gpus_per_node == 8 && c.nodes == 9 && c.rails && c.leaf_nodes == 5);
    assert_float_equal(3, outermost(&c)->oversubscription, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_stands_before_its_file),
        cmocka_unit_test(words_about_the_network_are_understood),
        cmocka_unit_test(words_about_the_shape_are_understood),
        cmocka_unit_test(left_out_it_is_the_usual_node),
        cmocka_unit_test(tiers_follow_from_the_gpu),
        cmocka_unit_test(topology_and_oversubscription_are_read),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_file_describes_a_cluster),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
