/* Memory of a step: by hand, against what an allocator was seen to do, and against figures that people publish. */
#include "small_graph.h"

#include "memory/allocator.h"
#include "memory/kept.h"
#include "timeline/states.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

/* -- one moment by hand ------------------------------------------------------------------------ */

/* Three layers: x -> h (16 KiB, saved) -> y; backward reads h, makes a gradient of 4 KiB. */
static ft_graph *scaled_layers(ft_arena *arena, int64_t repeat, int64_t scale)
{
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    assert_non_null(g);
    ft_ref weight = tensor(g, FT_PARAMETER, 4 * scale, repeat), x = tensor(g, FT_ACTIVATION, 2 * scale, 1);
    open_block(g, "embed", FT_FORWARD, 1, FT_NONE, -1);
    node(g, FT_FORWARD, "embed", 0, NULL, 1, &x);
    close_block(g, x);
    ft_ref in = tensor(g, FT_ACTIVATION, 2 * scale, 1), h = tensor(g, FT_ACTIVATION, 16 * scale, 1),
           y = tensor(g, FT_ACTIVATION, 2 * scale, 1);
    open_block(g, "layers", FT_FORWARD, repeat, in, -1);
    node(g, FT_FORWARD, "up", 2, (ft_ref[]){in, weight}, 1, &h);
    node(g, FT_FORWARD, "down", 1, &h, 1, &y);
    close_block(g, y);
    ft_ref back = tensor(g, FT_ACTIVATION, 2 * scale, 1), dh = tensor(g, FT_ACTIVATION, 16 * scale, 1),
           dw = tensor(g, FT_GRADIENT, 4 * scale, repeat), dx = tensor(g, FT_ACTIVATION, 2 * scale, 1);
    open_block(g, "layers", FT_BACKWARD, repeat, back, 1);
    node(g, FT_BACKWARD, "down", 2, (ft_ref[]){back, h}, 1, &dh);
    node(g, FT_BACKWARD, "up", 2, (ft_ref[]){dh, in}, 2, (ft_ref[]){dx, dw});
    close_block(g, dx);
    return g;
}

static ft_graph *three_layers(ft_arena *arena, int64_t repeat) { return scaled_layers(arena, repeat, 1); }

static void the_peak_is_named_and_taken_apart(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = {.task = FT_TRAIN, .dtype = FT_BF16, .accumulate = 1, .optimizer = FT_ADAMW};
    for (int64_t repeat = 1; repeat <= 200; repeat += repeat < 8 ? 1 : 64) {
        ft_memory m = memory_of(three_layers(arena, repeat), &work);
        double layers = (double)repeat;
        assert_true(m.weights_bytes == layers * 4096);
        assert_true(m.optimizer_bytes == layers * 8192); /* two states of the parameter's own two bytes */
        /* Saved: h and the input of each layer. The peak is in the first backward iteration, where the last layer's h
         * is live beside its gradient. */
        assert_string_equal(m.peak_block, "layers");
        assert_string_equal(m.peak_node, "down");
        assert_int_equal(m.peak_phase, FT_BACKWARD);
        assert_int_equal(m.peak_layer, repeat > 1 ? repeat - 1 : -1); /* the last layer, as the model counts them */
        assert_true(m.activations_bytes == (layers * (16 + 2) + 2) * 1024); /* and the result of all */
        assert_true(m.gradients_bytes == 0);
        assert_true(m.temporary_bytes == 16 * 1024);
        work.accumulate = 2; /* from the second micro-batch on all gradients wait */
        m = memory_of(three_layers(arena, repeat), &work);
        assert_true(m.gradients_bytes == layers * 4096);
        work.accumulate = 1;
    }
    ft__arena_free(arena);
}

/* -- the allocator ----------------------------------------------------------------------------- */

#define MIB 1048576.0

static void blocks_are_cut_as_the_caching_allocator_cuts_them(void **state)
{
    (void)state;
    assert_true(ft__allocated(0) == 0 && ft__allocated(1) == 512 && ft__allocated(513) == 1024);
    ft_packer p = {0};
    /* gpt2-large in fp32 (measured): 25 MiB lie in segments of 26 MiB whose last one is too small to cut off. */
    assert_true(ft__pack(&p, 25 * MIB, 1) == 26 * MIB);
    assert_true(p.reserved == 26 * MIB);
    /* 18.75 MiB lie in 20, and 1.25 MiB are worth cutting off. */
    assert_true(ft__pack(&p, 18.75 * MIB, 1) == 18.75 * MIB);
    assert_true(p.reserved == 46 * MIB);
    /* Below 10 MiB segments of 20 are shared: three of 6.25 leave 1.25. */
    for (int i = 0; i < 3; i++) assert_true(ft__pack(&p, 6.25 * MIB, 1) == 6.25 * MIB);
    assert_true(p.reserved == 66 * MIB);
    assert_true(ft__pack(&p, 6.25 * MIB, 1) == 6.25 * MIB);
    assert_true(p.reserved == 86 * MIB);
    /* Small ones share 2 MiB. */
    for (int i = 0; i < 2; i++) ft__pack(&p, 1 * MIB, 1);
    assert_true(p.reserved == 88 * MIB);
}

/* Many at once lie as one after the other would, whatever lay there before. */
static void copies_are_packed_as_one_by_one(void **state)
{
    (void)state;
    ft_packer once = {0}, each = {0};
    static const double sizes[] = {100, 512, 700 * 1024, MIB, 1.5 * MIB, 6.25 * MIB, 9.75 * MIB, 10 * MIB, 25 * MIB};
    for (int64_t copies = 1; copies < 90; copies += 11)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            double sum = 0;
            for (int64_t k = 0; k < copies; k++) sum += ft__pack(&each, sizes[i], 1);
            assert_true(ft__pack(&once, sizes[i], copies) == sum);
            assert_true(once.reserved == each.reserved && once.allocated == each.allocated);
            assert_true(once.small == each.small && once.large == each.large);
        }
}

/* -- what optimizers keep ---------------------------------------------------------------------- */

static double states_of(ft_optimizer optimizer, bool master, double element, int64_t rows, int64_t cols)
{
    ft_workload work = {.task = FT_TRAIN, .optimizer = optimizer, .master_weights = master, .accumulate = 1};
    ft_tensor t = {
        .rows = rows, .cols = cols, .element_bytes = element, .role = FT_PARAMETER, .trained = true, .copies = 1};
    double parts[FT_STATE_PARTS], sum = 0;
    for (int i = ft__optimizer_states(&work, &t, parts); i-- > 0;) sum += parts[i];
    return sum;
}

static void optimizers_keep_what_the_literature_says(void **state)
{
    (void)state;
    const int64_t rows = 100000, cols = 10000; /* 1 B parameters */
    const double billion = 1e9;
    /* Mixed precision, Adam, fp16 gradients: 2 + 2 + 12 bytes per parameter, 14.90 GiB for a billion (the figure of
     * the ZeRO paper's accounting, Rajbhandari et al. 2020). */
    double adam = states_of(FT_ADAMW, true, 2, rows, cols);
    assert_true(adam == 12 * billion);
    assert_true(fabs((2 * billion + 2 * billion + adam) / GIB - 14.90) < 0.005);
    /* Megatron keeps gradients in fp32: 18 bytes. */
    ft_workload megatron = {.task = FT_TRAIN, .optimizer = FT_ADAMW, .master_weights = true, .accumulate = 1};
    ft_tensor half = {.rows = rows, .cols = cols, .element_bytes = 2, .trained = true, .copies = 1};
    assert_true(2 + ft__gradient_element(&megatron, &half) + adam / billion == 18);
    /* T5-3B: AdamW in fp32 24 GB, 8-bit states 6 GB and their scales, Adafactor next to nothing. */
    assert_true(3 * states_of(FT_ADAMW, false, 4, rows, cols) == 24e9);
    double eight = 3 * states_of(FT_ADAMW_8BIT, false, 4, rows, cols);
    assert_true(eight > 6e9 && eight < 6.2e9);
    assert_true(states_of(FT_ADAFACTOR, false, 4, rows, cols) == 4.0 * (double)(rows + cols));
    assert_true(states_of(FT_ADAFACTOR, false, 4, 1, cols) == 4.0 * (double)cols);
    assert_true(states_of(FT_SGD, false, 4, rows, cols) == 0);
    assert_true(states_of(FT_SGD_MOMENTUM, false, 4, rows, cols) == 4 * billion);
    assert_true(states_of(FT_MUON, false, 2, rows, cols) == 2 * billion);
    assert_true(states_of(FT_MUON, false, 2, 1, cols) == 4.0 * (double)cols);
    assert_true(states_of(FT_NO_OPTIMIZER, true, 2, rows, cols) == 0);
}

/* 175 B parameters in fp32 are 651.92 GiB of weights; eight GPUs of 80 GiB do not hold them. */
static void weights_are_counted_by_copies(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = ft__graph_new(arena, FT_FP32);
    ft_tensor t = {.rows = 1750000,
                   .cols = 1000,
                   .element_bytes = 4,
                   .dtype = FT_FP32,
                   .role = FT_PARAMETER,
                   .storage = FT_NONE,
                   .block = -1,
                   .copies = 100};
    ft_ref weight = ft__graph_tensor(g, &t), y = tensor(g, FT_ACTIVATION, 1, 1);
    open_block(g, "layers", FT_FORWARD, 100, FT_NONE, -1);
    node(g, FT_FORWARD, "layer", 1, &weight, 1, &y);
    close_block(g, y);
    ft_workload work = {.task = FT_FORWARD_PASS, .dtype = FT_FP32, .accumulate = 1};
    ft_memory m = memory_of(g, &work);
    assert_true(fabs(m.weights_bytes / GIB - 651.92) < 0.1);
    assert_false(m.fits);
    ft__arena_free(arena);
}

/* -- caches ------------------------------------------------------------------------------------ */

static void a_cache_is_there_before_a_decode_step_and_grows_in_a_prefill(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    for (int growing = 0; growing < 2; growing++) {
        ft_graph *g = ft__graph_new(arena, FT_BF16);
        ft_ref x = tensor(g, FT_ACTIVATION, 1, 1), in = tensor(g, FT_ACTIVATION, 1, 1), y, cache, wide;
        open_block(g, "embed", FT_FORWARD, 1, FT_NONE, -1);
        node(g, FT_FORWARD, "embed", 0, NULL, 1, &x);
        close_block(g, x);
        y = tensor(g, FT_ACTIVATION, 1, 1);
        wide = tensor(g, FT_ACTIVATION, 64, 1);
        cache = tensor(g, FT_CACHE, 8, 5);
        open_block(g, "layers", FT_FORWARD, 5, in, -1);
        node(g, FT_FORWARD, "wide", 1, &in, 1, &wide);
        node(g, FT_FORWARD, "write", 1, &wide, 1, &cache);
        node(g, FT_FORWARD, "attend", 2, (ft_ref[]){wide, cache}, 1, &y);
        close_block(g, y);
        ft_workload work = {.task = growing ? FT_PREFILL : FT_DECODE,
                            .dtype = FT_BF16,
                            .accumulate = 1,
                            .cache = growing ? FT_CACHE_DYNAMIC : FT_CACHE_STATIC};
        ft_memory m = memory_of(g, &work);
        assert_true(m.kv_cache_bytes == 5 * 8 * 1024); /* the peak of a prefill is in its last layer */
        assert_true(m.peak_layer == (growing ? 4 : 1));
        assert_true(m.activations_bytes == (64 + 1 + 1 + 1) * 1024); /* and what was fed in, the layer's input, y */
    }
    ft__arena_free(arena);
}

static void memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_workload work = {.task = FT_TRAIN, .dtype = FT_BF16, .accumulate = 1};
    int failures = 0;
    for (size_t cap = 64; cap < 200000; cap += cap / 4) {
        ft_arena *arena = ft__arena_new(0);
        ft_graph *g = three_layers(arena, 3);
        ft_arena *small = ft__arena_new(cap);
        assert_non_null(small);
        g->arena = small;
        ft_memory m;
        ft_error err;
        ft_status status = ft__step_memory(g, &work, &h200, &m, &err);
        assert_true(status == FT_OK || status == FT_E_MEMORY);
        failures += status != FT_OK;
        ft__arena_free(small);
        ft__arena_free(arena);
    }
    assert_true(failures > 0);
}

/* Steps that differ in one thing each, one after the other with one memo and each alone: what was asked before decides
 * nothing. Twice, so that the second time everything is remembered. */
static void what_was_asked_before_decides_nothing(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_memo *memo = ft__memo_new();
    ft_device h200 = limit_device("h200_sxm");
    const ft_workload asked = {.task = FT_TRAIN, .dtype = FT_BF16, .accumulate = 1, .optimizer = FT_ADAMW};
    ft_workload work[5] = {asked, asked, asked, asked, asked};
    work[1].optimizer = FT_SGD;
    work[2].accumulate = 2;
    work[3].expandable_segments = true;
    work[4].master_weights = true;
    double first = 0;
    int differ = 0;
    for (int round = 0; round < 2; round++)
        for (int64_t scale = 300; scale < 1200; scale += 77)
            for (int64_t repeat = 3; repeat < 40; repeat += 9)
                for (int i = 0; i < 5; i++) {
                    ft_graph *g = scaled_layers(arena, repeat, scale);
                    ft_memory alone, after;
                    ft_error err;
                    assert_int_equal(ft__step_memory(g, &work[i], &h200, &alone, &err), FT_OK);
                    assert_int_equal(ft__step_memory_memoized(g, &work[i], &h200, memo, &after, &err), FT_OK);
                    assert_true(alone.reserved_bytes == after.reserved_bytes);
                    if (i == 0) first = alone.reserved_bytes;
                    differ += alone.reserved_bytes > first || alone.reserved_bytes < first;
                    ft__arena_reset(arena);
                }
    assert_true(differ > 300); /* of 480 that differ in what is asked */
    ft__memo_free(memo);
    ft__arena_free(arena);
}

/* Who asks for the verdict alone is spared the allocator where the peak says it all, and gets the same one. */
static void a_verdict_alone_is_the_same_verdict(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_device d = limit_device("h200_sxm");
    int found[FT_FIT_COUNT] = {0}, spared = 0;
    ft_workload whole = {.task = FT_TRAIN, .dtype = FT_BF16, .accumulate = 1, .optimizer = FT_ADAMW};
    for (int paged = 0; paged < 2; paged++)
        for (int64_t scale = 300; scale < 1200; scale += 150)
            for (double gib = 1; gib < 200; gib *= 1.11) {
                ft_graph *g = scaled_layers(arena, 24, scale);
                ft_memory all, alone;
                ft_error err;
                d.memory_gib = gib;
                whole.offload = paged ? 1u << FT_OFFLOAD_PAGED_OPTIMIZER : 0;
                ft_workload judged = whole;
                judged.verdict_alone = true;
                assert_int_equal(ft__step_memory(g, &whole, &d, &all, &err), FT_OK);
                assert_int_equal(ft__step_memory(g, &judged, &d, &alone, &err), FT_OK);
                assert_true(all.verdict == alone.verdict && all.fits == alone.fits);
                assert_true(all.peak_bytes == alone.peak_bytes && all.chance_fits == alone.chance_fits);
                const double parts = all.weights_bytes + all.gradients_bytes + all.optimizer_bytes +
                                     all.activations_bytes + all.temporary_bytes;
                assert_true(fabs(parts - all.peak_bytes) < 16); /* without what was paged out */
                found[all.verdict]++;
                spared += all.reserved_bytes > alone.reserved_bytes || all.reserved_bytes < alone.reserved_bytes;
                ft__arena_reset(arena);
            }
    assert_true(found[FT_FIT_YES] && found[FT_FIT_TIGHT] && found[FT_FIT_NO] && spared);
    ft__arena_free(arena);
}

/* What a step keeps is a part of its peak, whichever optimizer, and all but activations of a deep model's. */
static void what_is_kept_is_below_the_peak(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    for (int optimizer = 0; optimizer < FT_OPTIMIZER_COUNT; optimizer++)
        for (int64_t scale = 1; scale < 2000; scale *= 7)
            for (int bits = 0; bits < 8; bits++) {
                ft_workload work = {.task = bits & 4 ? FT_FORWARD_PASS : FT_TRAIN,
                                    .dtype = FT_BF16,
                                    .accumulate = bits & 1 ? 4 : 1,
                                    .master_weights = bits & 2,
                                    .optimizer = (ft_optimizer)optimizer};
                ft_graph *g = scaled_layers(arena, 40, scale);
                for (ft_ref t = 0; t < g->tensor_count; t++) g->tensors[t].trained = g->tensors[t].role == FT_PARAMETER;
                const ft_memory m = memory_of(g, &work);
                const double least = ft__least_kept(g, &work);
                assert_true(least > 0 && least <= m.peak_bytes);
                if (work.task == FT_TRAIN) assert_true(least >= 0.9 * (m.weights_bytes + m.optimizer_bytes));
                work.offload = 1u << FT_OFFLOAD_OPTIMIZER;
                assert_true(ft__least_kept(g, &work) == 0);
                ft__arena_reset(arena);
            }
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peak_is_named_and_taken_apart),
        cmocka_unit_test(blocks_are_cut_as_the_caching_allocator_cuts_them),
        cmocka_unit_test(copies_are_packed_as_one_by_one),
        cmocka_unit_test(optimizers_keep_what_the_literature_says),
        cmocka_unit_test(weights_are_counted_by_copies),
        cmocka_unit_test(a_cache_is_there_before_a_decode_step_and_grows_in_a_prefill),
        cmocka_unit_test(a_verdict_alone_is_the_same_verdict),
        cmocka_unit_test(what_is_kept_is_below_the_peak),
        cmocka_unit_test(what_was_asked_before_decides_nothing),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
