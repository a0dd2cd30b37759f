/* What kernels find in the cache: chains of copies by hand, in the limits and in between. */
#include "small_graph.h"

#include "graph/build.h"
#include "timeline/residency.h"

enum { NODES = 64 };

typedef struct hand {
    ft_arena *arena;
    ft_graph *g;
    ft_device device;
    ft_found found[NODES];
    double last[NODES];
} hand;

static void begin(hand *h)
{
    memset(h, 0, sizeof *h);
    h->arena = ft__arena_new(0);
    h->g = ft__graph_new(h->arena, FT_BF16);
    assert_non_null(h->g);
    h->device = limit_device("h200_sxm");
}

/* A copy that runs: one of `in` into `out`. */
static void copies(hand *h, int in_count, const ft_ref *in, ft_ref out)
{
    node(h->g, FT_FORWARD, "copy", in_count, in, 1, &out);
    ft_node *n = &h->g->nodes[h->g->node_count - 1];
    n->op = (ft_op){.kind = FT_OP_ELEMENTWISE, .name = "copy", .dtype = FT_BF16};
    n->op.u.elementwise.numel = (int64_t)ft__tensor_numel(&h->g->tensors[out]);
    n->op.u.elementwise.inputs = in_count;
}

static void walk(hand *h)
{
    assert_true(h->g->node_count <= NODES && h->g->tensor_count <= NODES);
    ft__residency_walk(h->g, &h->device, h->last, h->found);
}

static double share(const hand *h, int i) { return h->found[i].hit / h->found[i].read; }

/* x -> a -> b, and a weight beside, in tensors of `kib`. */
static void chain(hand *h, int64_t kib, int64_t weight_kib)
{
    begin(h);
    ft_ref x = tensor(h->g, FT_INPUT, kib, 1), w = tensor(h->g, FT_PARAMETER, weight_kib, 1),
           a = tensor(h->g, FT_ACTIVATION, kib, 1), b = tensor(h->g, FT_ACTIVATION, kib, 1);
    open_block(h->g, "layers", FT_FORWARD, 1, FT_NONE, -1);
    copies(h, 1, &x, a);
    copies(h, 1, &a, b);
    copies(h, 1, &w, x);
    close_block(h->g, b);
    ft__graph_recount(h->g);
    walk(h);
}

static void what_was_just_written_is_found(void **state)
{
    (void)state;
    hand h;
    chain(&h, 8 << 10, 128 << 10);
    assert_true(share(&h, 1) > 0.99);
    assert_true(share(&h, 2) < 0.01); /* the weight, twice as large as the cache */
    ft__arena_free(h.arena);
    chain(&h, 256 << 10, 128 << 10); /* larger than the cache: nothing */
    assert_true(share(&h, 0) < 0.01 && share(&h, 1) < 0.01);
    ft__arena_free(h.arena);
    chain(&h, 64, 64); /* all of a small network waits from one step to the next */
    for (int i = 0; i < 3; i++) assert_true(share(&h, i) > 0.99);
    ft__arena_free(h.arena);
}

/* Less is found of larger tensors, more in larger caches, on every GPU; no more than all of it. */
static void larger_tensors_are_found_less_and_larger_caches_hold_more(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h200_sxm", "t4", "l40s", "mi300x", "v100_pcie_32gb"};
    for (size_t k = 0; k < sizeof gpus / sizeof *gpus; k++) {
        double before = 1;
        for (int64_t kib = 64; kib <= 1 << 20; kib *= 2) {
            hand h;
            chain(&h, kib, 4);
            h.device = limit_device(gpus[k]);
            walk(&h);
            double now = share(&h, 1), was = 0;
            assert_true(now >= 0 && now <= before);
            before = now;
            for (h.device.l2_mib = 1; h.device.l2_mib <= 1024; h.device.l2_mib *= 2) {
                walk(&h);
                assert_true(share(&h, 1) >= was);
                was = share(&h, 1);
            }
            ft__arena_free(h.arena);
        }
        assert_true(before < 0.01 || limit_device(gpus[k]).l2_mib > 200);
    }
}

/* Other traffic puts a tensor out of the cache; what is touched again does not count twice. */
static void traffic_between_puts_a_tensor_out(void **state)
{
    (void)state;
    for (int between = 0; between <= 12; between += 12) {
        hand h;
        begin(&h);
        ft_ref kept = tensor(h.g, FT_ACTIVATION, 8 << 10, 1), small = tensor(h.g, FT_INPUT, 64, 1),
               out = tensor(h.g, FT_ACTIVATION, 64, 1);
        open_block(h.g, "layers", FT_FORWARD, 1, FT_NONE, -1);
        copies(&h, 1, &small, kept);
        for (int i = 0; i < between; i++) copies(&h, 1, &small, tensor(h.g, FT_ACTIVATION, 8 << 10, 1));
        copies(&h, 1, &kept, out);
        for (int i = 0; i < 20; i++) copies(&h, 1, &kept, out); /* the same again and again */
        close_block(h.g, out);
        walk(&h);
        assert_true(between ? share(&h, 1 + between) < 0.01 : share(&h, 1) > 0.99);
        assert_true(share(&h, h.g->node_count - 1) > 0.99);
        ft__arena_free(h.arena);
    }
}

/* A round of a block finds its carry, and not what the block before made when there are many rounds. */
static void rounds_are_far_apart(void **state)
{
    (void)state;
    for (int64_t repeat = 1; repeat <= 64; repeat *= 64) {
        hand h;
        begin(&h);
        ft_ref x = tensor(h.g, FT_INPUT, 4 << 10, 1), first = tensor(h.g, FT_ACTIVATION, 4 << 10, 1),
               in = tensor(h.g, FT_ACTIVATION, 4 << 10, 1), out = tensor(h.g, FT_ACTIVATION, 4 << 10, 1),
               end = tensor(h.g, FT_ACTIVATION, 4 << 10, 1);
        open_block(h.g, "embed", FT_FORWARD, 1, FT_NONE, -1);
        copies(&h, 1, &x, first);
        close_block(h.g, first);
        open_block(h.g, "layers", FT_FORWARD, repeat, in, -1);
        copies(&h, 1, &in, out);
        close_block(h.g, out);
        open_block(h.g, "head", FT_FORWARD, 1, FT_NONE, -1);
        copies(&h, 1, &first, end);
        close_block(h.g, end);
        walk(&h);
        assert_true(share(&h, 1) > 0.99);
        assert_true(repeat > 1 ? share(&h, 2) < 0.01 : share(&h, 2) > 0.99);
        ft__arena_free(h.arena);
    }
}

/* A kernel that only reads waits for what others wrote; one that finds all it reads does not, nor one that writes. */
static void readers_wait_for_what_was_written(void **state)
{
    (void)state;
    hand h;
    begin(&h);
    ft_ref x = tensor(h.g, FT_INPUT, 256 << 10, 1), a = tensor(h.g, FT_ACTIVATION, 256 << 10, 1),
           b = tensor(h.g, FT_ACTIVATION, 256 << 10, 1), sum = tensor(h.g, FT_ACTIVATION, 1, 1);
    open_block(h.g, "layers", FT_FORWARD, 1, FT_NONE, -1);
    copies(&h, 1, &x, a);
    copies(&h, 1, &a, b);
    copies(&h, 1, &b, sum);
    copies(&h, 1, &x, sum);
    close_block(h.g, sum);
    walk(&h);
    double cache = h.device.l2_mib * 1048576;
    assert_true(h.found[1].back == 0);
    assert_true(h.found[2].back > 0.1 * cache && h.found[2].back < cache);
    assert_true(h.found[3].back < 1e-3 * cache); /* it has gone out by then */
    ft__arena_free(h.arena);
}

/* The time saved or lost: one wait and half of the bytes' time at the most, none where nothing differs. What others
 * wrote is not as near as what the benchmark repeats on; one operand that is far away is waited for as all of them. */
static void time_follows_what_is_found(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_found all = {.read = 16e6, .hit = 16e6, .least = 1}, none = {.read = 16e6}, nothing = {.least = 1},
             one_far = {.read = 16e6, .hit = 15.99e6};
    double bytes_ms = 16e6 / (h200.memory_gbps * 1e6), wait = ft__residency_wait_ms(false, false, 2);
    assert_true(ft__residency_ms(&h200, &none, 0, wait) == 0 && ft__residency_ms(&h200, &nothing, 1, wait) == 0);
    double saved = ft__residency_ms(&h200, &all, 0, wait), lost = ft__residency_ms(&h200, &none, 1, wait);
    assert_true(saved < 0 && saved > -(0.001 + bytes_ms));
    assert_true(lost > -saved && lost < -1.5 * saved);
    double kept = ft__residency_ms(&h200, &all, 1, wait), far = ft__residency_ms(&h200, &one_far, 1, wait);
    assert_true(kept > 0 && kept < 0.3 * lost && far > kept + 0.7 * wait && far < lost);
    assert_true(ft__residency_wait_ms(true, false, 2) > ft__residency_wait_ms(true, false, 4));
    assert_true(ft__residency_wait_ms(true, true, 4) > ft__residency_wait_ms(true, false, 4));
    /* Sums along rows are chains of loads: half as long. Others are none. */
    double near = ft__residency_chain(&all, "sum_rows", 0), same = ft__residency_chain(&none, "sum_rows", 0);
    assert_true(near > 0.5 && near < 0.7 && same == 1 && ft__residency_chain(&none, "sum_rows", 1) == 2);
    assert_true(ft__residency_chain(&all, "softmax", 0) == 0);
    assert_true(ft__residency_timed(&h200, 1e3, false) > 0.99 && ft__residency_timed(&h200, 1e9, false) < 0.01);
    assert_true(ft__residency_timed(&h200, 1e3, true) > 0.99);
    assert_true(ft__residency_timed(&h200, 1e9, true) < ft__residency_timed(&h200, 1e3, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_just_written_is_found),
        cmocka_unit_test(larger_tensors_are_found_less_and_larger_caches_hold_more),
        cmocka_unit_test(traffic_between_puts_a_tensor_out),
        cmocka_unit_test(rounds_are_far_apart),
        cmocka_unit_test(readers_wait_for_what_was_written),
        cmocka_unit_test(time_follows_what_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
