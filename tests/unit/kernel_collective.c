/* Collectives inside a node: limits of the physics, and NCCL's choices. */
#include "kernel_limits.h"

#include "kernel/collective.h"

static ft_op exchange(int kind, double bytes, int64_t ranks, double gbps)
{
    ft_op op;
    ft__op_init(ft__collective_names[kind], &op);
    assert_int_equal(FT_OP_COLLECTIVE, op.kind);
    assert_int_equal(kind, op.u.collective.op);
    op.u.collective.bytes = bytes;
    op.u.collective.ranks = ranks;
    op.u.collective.link_gbps = gbps;
    op.u.collective.switched = true;
    op.u.collective.reduces = gbps >= 450;
    op.u.collective.pcie = gbps < 100;
    return op;
}

static const double links[] = {31.5, 300, 450, 900};
enum { LINKS = sizeof links / sizeof *links };

static void no_exchange_beats_the_wire(void **state)
{
    (void)state;
    for (int d = 0; d < LIMIT_DEVICES; d++) {
        ft_device device = limit_device(limit_devices[d]);
        for (int kind = 0; kind < FT_COLLECTIVE_COUNT; kind++)
            for (int l = 0; l < LINKS; l++)
                for (int64_t n = 2; n <= 72; n *= 2)
                    for (double bytes = 1; bytes < 1e12; bytes *= 30) {
                        ft_op op = exchange(kind, bytes, n, links[l]);
                        assert_above_floor(&device, &op);
                    }
    }
}

static void time_grows_with_bytes(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    for (int kind = 0; kind < FT_COLLECTIVE_COUNT; kind++)
        for (int l = 0; l < LINKS; l++)
            for (int64_t n = 2; n <= 8; n *= 2)
                for (double bytes = 512; bytes < 1e10; bytes *= 4) {
                    ft_op op = exchange(kind, bytes, n, links[l]), more = exchange(kind, 4 * bytes, n, links[l]);
                    assert_true(limit_ms(&device, &more) >= 0.95 * limit_ms(&device, &op));
                }
}

/* The sizes between which NCCL was measured to change from LL to Simple between two GPUs. */
static void protocols_change_where_they_were_seen_to(void **state)
{
    (void)state;
    static const struct {
        double gbps, last_ll, first_simple;
    } seen[] = {{300, 524288, 1048576}, {450, 1048576, 2097152}, {900, 2097152, 4194304}};
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        ft_op before = exchange(FT_COLLECTIVE_ALL_REDUCE, seen[i].last_ll, 2, seen[i].gbps);
        ft_op after = exchange(FT_COLLECTIVE_ALL_REDUCE, seen[i].first_simple, 2, seen[i].gbps);
        assert_int_equal(FT_LL, ft__collective_protocol(NULL, &before));
        assert_int_equal(FT_SIMPLE, ft__collective_protocol(NULL, &after));
    }
    ft_op eight = exchange(FT_COLLECTIVE_ALL_REDUCE, 1e9, 8, 450),
          four = exchange(FT_COLLECTIVE_ALL_REDUCE, 1e9, 4, 450);
    ft_op older = exchange(FT_COLLECTIVE_ALL_REDUCE, 1e9, 8, 300),
          gather = exchange(FT_COLLECTIVE_ALL_GATHER, 1e9, 8, 450);
    assert_int_equal(FT_NVLS, ft__collective_protocol(NULL, &eight));
    assert_int_equal(FT_SIMPLE, ft__collective_protocol(NULL, &four));
    assert_int_equal(FT_SIMPLE, ft__collective_protocol(NULL, &older));
    assert_int_equal(FT_SIMPLE, ft__collective_protocol(NULL, &gather));
}

/* Sizes of the whole buffer at which L40S were seen to leave LL. */
static void pcie_changes_where_it_was_seen_to(void **state)
{
    (void)state;
    static const struct {
        int kind;
        int64_t ranks;
        double last_ll;
    } seen[] = {{FT_COLLECTIVE_ALL_GATHER, 2, 262144},    {FT_COLLECTIVE_ALL_REDUCE, 2, 262144},
                {FT_COLLECTIVE_ALL_GATHER, 4, 262144},    {FT_COLLECTIVE_ALL_REDUCE, 4, 262144},
                {FT_COLLECTIVE_ALL_GATHER, 8, 524288},    {FT_COLLECTIVE_ALL_REDUCE, 8, 262144},
                {FT_COLLECTIVE_REDUCE_SCATTER, 8, 524288}};
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        ft_op before = exchange(seen[i].kind, seen[i].last_ll, seen[i].ranks, 31.5);
        ft_op after = exchange(seen[i].kind, 2 * seen[i].last_ll, seen[i].ranks, 31.5);
        assert_int_equal(FT_LL, ft__collective_protocol(NULL, &before));
        assert_int_equal(FT_SIMPLE, ft__collective_protocol(NULL, &after));
    }
}

static void pairs_leave_ll_by_what_a_peer_gets(void **state)
{
    (void)state;
    for (int l = 0; l < LINKS; l++)
        for (int64_t n = 2; n <= 8; n *= 2)
            for (int old = 0; old < 2; old++) {
                double most = links[l] > 100 && (links[l] <= 300 || old) ? 524288 : 32768;
                ft_op last = exchange(FT_COLLECTIVE_ALL_TO_ALL, most * (double)n, n, links[l]);
                ft_op next = exchange(FT_COLLECTIVE_ALL_TO_ALL, 2 * most * (double)n, n, links[l]);
                last.u.collective.nccl = next.u.collective.nccl = old ? 223 : 227;
                assert_int_equal(FT_LL, ft__collective_protocol(NULL, &last));
                assert_int_equal(FT_SIMPLE, ft__collective_protocol(NULL, &next));
            }
}

static void single_bytes_are_not_added_in_the_switch(void **state)
{
    (void)state;
    ft_op op = exchange(FT_COLLECTIVE_ALL_REDUCE, 1e9, 8, 450);
    op.dtype = FT_INT8;
    assert_int_equal(FT_SIMPLE, ft__collective_protocol(NULL, &op));
    op.dtype = FT_FP32;
    assert_int_equal(FT_NVLS, ft__collective_protocol(NULL, &op));
}

static void an_operator_that_cannot_be_is_refused(void **state)
{
    (void)state;
    ft_device device = limit_device("h200_sxm");
    ft_op op = exchange(FT_COLLECTIVE_ALL_REDUCE, 1e6, 8, 450);
    ft_error err;
    assert_int_equal(FT_OK, ft__op_check(&op, &device, &err));
    op.u.collective.ranks = 0;
    assert_int_equal(FT_E_RANGE, ft__op_check(&op, &device, &err));
    op = exchange(FT_COLLECTIVE_ALL_REDUCE, NAN, 8, 450);
    assert_int_equal(FT_E_RANGE, ft__op_check(&op, &device, &err));
    op = exchange(FT_COLLECTIVE_ALL_REDUCE, 1e6, 8, 0);
    assert_int_equal(FT_E_RANGE, ft__op_check(&op, &device, &err));
    op = exchange(FT_COLLECTIVE_ALL_REDUCE, 1e6, 8, 450);
    op.u.collective.op = FT_COLLECTIVE_COUNT;
    assert_int_equal(FT_E_NAME, ft__op_check(&op, &device, &err));
}

/* AMD's wires: no message is long enough for more than they leave, all-to-alls get less than rings, and neither holds
 * for links of another maker's that no switch joins. */
static void a_mesh_of_amd_reaches_what_its_wires_leave(void **state)
{
    (void)state;
    ft_device amd = limit_device("mi300x"), nvidia = limit_device("v100_sxm_32gb");
    ft_op ring = exchange(FT_COLLECTIVE_ALL_REDUCE, 16e9, 8, 448),
          pairs = exchange(FT_COLLECTIVE_ALL_TO_ALL, 16e9, 8, 448);
    ring.u.collective.switched = ring.u.collective.reduces = pairs.u.collective.switched = false;
    double gbps = 1.75 * 16e9 / (limit_ms(&amd, &ring) * 1e6);
    assert_true(gbps > 0.70 * 448 && gbps < 0.74 * 448);
    assert_true(0.875 * 16e9 / (limit_ms(&amd, &pairs) * 1e6) < 0.68 * 448);
    assert_true(limit_ms(&nvidia, &ring) < limit_ms(&amd, &ring));
    ring.u.collective.bytes = 32 << 20; /* RCCL has no LL128 there */
    assert_int_equal(FT_LL128, ft__collective_protocol(&nvidia, &ring));
    assert_int_equal(FT_SIMPLE, ft__collective_protocol(&amd, &ring));
}

/* Variants are stored by name: all different, fallbacks that end. */
static void every_variant_has_a_name_and_an_end(void **state)
{
    (void)state;
    ft_op op = exchange(FT_COLLECTIVE_ALL_REDUCE, 1e6, 8, 450);
    int variant;
    const ft_family *f = ft__family_of(&op, &variant);
    assert_string_equal("collective", f->name);
    for (int v = 0; v < f->variant_count; v++) {
        assert_true(strlen(f->variant_name(v)) < 24);
        for (int w = 0; w < v; w++) assert_string_not_equal(f->variant_name(v), f->variant_name(w));
        int steps = 0;
        for (int w = v; w >= 0; w = f->variant_fallback(w)) assert_true(steps++ < 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_exchange_beats_the_wire),
        cmocka_unit_test(time_grows_with_bytes),
        cmocka_unit_test(protocols_change_where_they_were_seen_to),
        cmocka_unit_test(pcie_changes_where_it_was_seen_to),
        cmocka_unit_test(pairs_leave_ll_by_what_a_peer_gets),
        cmocka_unit_test(single_bytes_are_not_added_in_the_switch),
        cmocka_unit_test(an_operator_that_cannot_be_is_refused),
        cmocka_unit_test(a_mesh_of_amd_reaches_what_its_wires_leave),
        cmocka_unit_test(every_variant_has_a_name_and_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
