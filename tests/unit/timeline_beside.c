/* What runs beside an exchange: how much slower it gets, and what goes on meanwhile. */
#include "lanes_by_hand.h"

/* Of many launches those run slower that run beside the exchange, not all of them. */
static void an_exchange_slows_what_runs_beside_it(void **state)
{
    (void)state;
    hand h;
    set_up(&h, 1);
    h.comm[1] = 1.1; /* from 1 to 2.1: a kernel and the tenth that it is longer */
    h.lanes.slowdown = 0.1;
    assert_true(near(forward(&h, false, false), 3.1));
    h.costs[2].count = 10; /* ten of them: from 1 to 11.1 */
    assert_true(near(forward(&h, false, false), 12.1));
    ft__arena_free(h.arena);
}

/* A persistent product's late blocks come with their tiles still before them: one of few waves loses more. */
static void an_exchange_holds_up_persistent_products(void **state)
{
    (void)state;
    hand h;
    set_up(&h, 1);
    ft_op one = product_of(1024, 4096, FT_BF16), many = product_of(65536, 65536, FT_BF16);
    h.lanes.slowdown = 0.1 / 0.9; /* a tenth of the SMs */
    h.lanes.sms = 132;
    h.comm[1] = 0.5;
    h.g->nodes[2].op = one;
    assert_true(near(forward(&h, false, false), 3 + 0.5 * 0.85 / 1.85));
    h.g->nodes[2].op = many; /* 993 waves: hardly more than the SMs' share */
    double little = forward(&h, false, false);
    assert_true(little > 3 + 0.5 * 0.1 / 1.1 && little < 3 + 0.5 * 0.105 / 1.105);
    h.lanes.copies = true; /* copy engines take no SMs: as everybody else */
    assert_true(near(forward(&h, false, false), 3 + 0.5 * 0.1));
    h.lanes.copies = false;
    h.g->nodes[2].op.kind = FT_OP_ATTENTION;
    assert_true(near(forward(&h, false, false), 3 + 0.5 * 0.1));
    ft__arena_free(h.arena);
    assert_true(ft__overlap_slowdown_product(&one, 132, 0) == 0 && ft__overlap_slowdown(2, 0.1, -1) == 0);
    ft_device h100 = limit_device("h100_sxm"), a100 = limit_device("a100_sxm_80gb");
    assert_true(ft__overlap_whole_waves(&h100) && !ft__overlap_whole_waves(&a100));
}

/* What was measured on an H200 beside a kernel that holds SMs (data/measurements/h200/beside.jsonl). */
static void products_lose_what_was_measured(void **state)
{
    (void)state;
    char path[1024], line[512], kind[16], across[16];
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    assert_non_null(root);
    snprintf(path, sizeof path, "%s/data/measurements/h200/beside.jsonl", root);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    double off = 0, rows = 0;
    while (fgets(line, sizeof line, file)) {
        json_t *row = json_loads(line, 0, NULL);
        const char *kernel = json_string_value(json_object_get(row, "kernel"));
        double held = json_number_value(json_object_get(row, "blocks"));
        double alone = json_number_value(json_object_get(row, "alone_ms"));
        double beside = json_number_value(json_object_get(row, "beside_ms"));
        long long m, n, k;
        bool product = kernel && (sscanf(kernel, "%15s %lld %lld %lld", kind, &m, &n, &k) == 4 ||
                                  sscanf(kernel, "%15s %15s %lld %lld %lld", kind, across, &m, &n, &k) == 5);
        if (product && held > 2) { /* an exchange holds more */
            ft_op op = product_of(m, n, strcmp(kind, "fp8") ? FT_BF16 : FT_FP8);
            off += fabs((1 + ft__overlap_slowdown_product(&op, 132, held / 132)) / (beside / alone) - 1);
            rows++;
        }
        json_decref(row);
    }
    fclose(file);
    assert_true(rows == 150);
    assert_true(off / rows < 0.04);
}

/* Megatron's order: an input's gradient, the weight's, the exchange of the first, which runs beside the second. */
static void an_exchange_that_comes_later_is_beside_what_came_before(void **state)
{
    (void)state;
    hand h;
    set_up(&h, 1);
    ft_node send = h.g->nodes[1];
    h.g->nodes[1] = h.g->nodes[2];
    h.g->nodes[2] = send;
    h.g->nodes[1].op = product_of(1024, 4096, FT_BF16);
    h.costs[1] = (ft_node_cost){.gpu = 1, .count = 1};
    h.costs[2] = (ft_node_cost){.count = 1};
    h.axis[2] = FT_AXIS_TENSOR;
    h.comm[2] = 0.4;
    h.lanes.slowdown = 0.1;
    h.lanes.async = true;
    assert_int_equal(ft__lanes_awaits(h.g, h.awaits, h.sends, NULL), FT_OK);
    assert_int_equal(h.sends[2], 0);
    assert_true(near(forward(&h, false, false), 3 + 0.4 * 0.1 / 1.1));
    h.lanes.sms = 132;
    assert_true(near(forward(&h, false, false), 3 + 0.4 * 0.85 / 1.85));
    h.lanes.async = false; /* it waits for both, and is in nobody's way */
    assert_true(near(forward(&h, false, false), 3.4));
    ft__arena_free(h.arena);
}

static void a_ring_goes_on_beside_its_kernel(void **state)
{
    (void)state;
    hand h;
    set_up(&h, 1);
    h.left[1] = 0.25; /* four steps */
    h.comm[1] = 1.5;  /* from 1 to 2.5; the kernel from 2, its last quarter after 2.5 */
    assert_true(near(forward(&h, false, false), 3));
    h.comm[1] = 4;
    assert_true(near(forward(&h, false, false), 5 + 0.25));
    ft__arena_free(h.arena);
}

/* All but the first of four steps need what is gathered. */
static void what_is_gathered_goes_on_beside_the_first_step(void **state)
{
    (void)state;
    hand h;
    set_up(&h, 1);
    h.left[1] = 0.75;
    h.comm[1] = 1.125; /* from 1 to 2.125; the kernel from 2, its first quarter until 2.25 */
    assert_true(near(forward(&h, false, false), 3));
    h.comm[1] = 4;
    assert_true(near(forward(&h, false, false), 5 + 0.75));
    ft__arena_free(h.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exchange_slows_what_runs_beside_it),
        cmocka_unit_test(an_exchange_holds_up_persistent_products),
        cmocka_unit_test(products_lose_what_was_measured),
        cmocka_unit_test(an_exchange_that_comes_later_is_beside_what_came_before),
        cmocka_unit_test(a_ring_goes_on_beside_its_kernel),
        cmocka_unit_test(what_is_gathered_goes_on_beside_the_first_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
