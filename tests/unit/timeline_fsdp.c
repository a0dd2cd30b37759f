/* What a rank of PyTorch's fully_shard holds, term by term, and what one of Megatron's sharding does. */
#include "layout_models.h"

static const double layers = 32, hidden = 4096, ffn = 14336, kv = 1024, vocab = 128256;

typedef struct rig {
    ft_arena *arena;
    ft_arch arch;
    ft_workload work;
    ft_parallel parallel;
    ft_device device;
    ft_memory memory;
} rig;

static rig begin(ft_execution execution)
{
    rig r = {.arena = ft__arena_new(0),
             .arch = open_model("llama-3-8b"),
             .work = train_work(2, 8192),
             .parallel = layout_of(1, 1, 1, 1, 8),
             .device = limit_device("h100_sxm")};
    r.work.execution = execution;
    r.work.recompute = FT_RECOMPUTE_SELECTIVE;
    r.parallel.zero = 3;
    return r;
}

static void end(rig *r)
{
    ft__arch_release(&r->arch);
    ft__arena_free(r->arena);
}

static void ask(rig *r)
{
    ft_ranks ranks = {
        .arch = &r->arch, .work = &r->work, .parallel = &r->parallel, .device = &r->device, .arena = r->arena};
    ft_error err = {0};
    int64_t worst;
    ft__arena_reset(r->arena);
    if (ft__ranks_memory(&ranks, &r->memory, &worst, &err) != FT_OK) fail_msg("%s", err.message);
    assert_true(r->memory.reserved_bytes >= r->memory.peak_bytes);
}

static void close_to(const char *what, double found, double expected)
{
    if (fabs(found - expected) > 0.002 * expected + 2e6) fail_msg("%s: %.4g, expected %.4g", what, found, expected);
}

static double layer_elements(void) { return 2 * hidden * hidden + 2 * hidden * kv + 3 * hidden * ffn + 2 * hidden; }
static double root_elements(void) { return 2 * vocab * hidden + hidden; }
static double elements(void) { return layers * layer_elements() + root_elements(); }

static void shards_are_the_fp32_copies(void **state)
{
    (void)state;
    rig r = begin(FT_RUN_EAGER);
    ask(&r);
    close_to("parameters", r.memory.weights_bytes, 4 * elements() / 8);
    close_to("states", r.memory.optimizer_bytes, 8 * elements() / 8);
    /* Megatron's kernels: low-precision parameters beside fp32 ones, all sharded. */
    r.work.execution = FT_RUN_FUSED;
    ask(&r);
    close_to("Megatron's parameters", r.memory.weights_bytes, 2 * elements() / 8);
    close_to("Megatron's states", r.memory.optimizer_bytes, 12 * elements() / 8);
    /* Parameters that are not sharded are what they are. */
    r.work.execution = FT_RUN_EAGER;
    r.parallel.zero = 2;
    ask(&r);
    close_to("parameters of stage 2", r.memory.weights_bytes, 2 * elements());
    end(&r);
}

/* Gradients are dropped before the next forward pass, but the blocks of their shards belong to another stream. */
static void gradients_come_and_go(void **state)
{
    (void)state;
    rig r = begin(FT_RUN_EAGER);
    const double shards = 4 * elements() / 8;
    ask(&r);
    assert_int_equal(r.memory.peak_phase, FT_BACKWARD);
    assert_string_equal(r.memory.peak_block, "head");
    assert_true(r.memory.gradients_bytes < 0.01 * shards);
    assert_true(r.memory.reserved_bytes > r.memory.peak_bytes + 0.99 * shards);
    double once = r.memory.reserved_bytes;
    r.work.accumulate = 4; /* they wait for the other micro-batches */
    ask(&r);
    close_to("gradients", r.memory.gradients_bytes, shards);
    assert_true(fabs(r.memory.reserved_bytes / once - 1) < 0.01);
    /* A short sequence: the peak is where all of them are there. */
    r.work.accumulate = 1;
    r.work.batch = 1;
    r.work.seq = 128;
    ask(&r);
    assert_true(r.memory.gradients_bytes > 0.4 * shards);
    end(&r);
}

static void the_root_stays_gathered(void **state)
{
    (void)state;
    rig r = begin(FT_RUN_COMPILE);
    ask(&r); /* fullest at the loss: layers are dropped and not yet asked for again */
    close_to("gathered", r.memory.communication_bytes, 2 * root_elements());
    r.parallel.keep_gathered = true;
    ask(&r);
    close_to("all of it", r.memory.communication_bytes, 2 * elements());
    /* Fullest in a layer: two layers gathered, the gradients of one and of the head, and one reduced in fp32. */
    r.parallel.keep_gathered = false;
    r.parallel.reduce_bytes = 4;
    r.work.recompute = FT_RECOMPUTE_FULL;
    r.arch.vocab = 4096;
    ask(&r);
    assert_string_equal(r.memory.peak_block, "layers");
    double root = 2 * 4096 * hidden + hidden, head = 4096 * hidden + hidden;
    close_to("in a layer", r.memory.communication_bytes, 2 * root + (4 + 2 + 4) * layer_elements() + 2 * head);
    end(&r);
}

/* PyTorch's pipelines reduce after a stage's last micro-batch: until then gradients are whole, in the format in which
 * they will be reduced, beside parameters that are gathered once. */
static void stages_add_up_whole_gradients(void **state)
{
    (void)state;
    rig r = begin(FT_RUN_COMPILE);
    r.parallel = layout_of(1, 2, 1, 1, 4);
    r.parallel.zero = 3;
    r.work.accumulate = 8;
    const double last = layers / 2 * layer_elements() + vocab * hidden + hidden; /* the stage with the head */
    static const double formats[] = {2, 4};
    for (int i = 0; i < 2; i++) {
        r.parallel.reduce_bytes = formats[i];
        ask(&r);
        assert_string_equal(r.memory.peak_block, "head");
        close_to("gradients of a stage", r.memory.gradients_bytes, formats[i] * last);
        close_to("parameters of a stage", r.memory.communication_bytes, 2 * last);
        close_to("shards", r.memory.weights_bytes, 4 * last / 4);
    }
    r.parallel.drop_gathered = true;
    ask(&r);
    close_to("dropped parameters", r.memory.communication_bytes, 2 * (vocab * hidden + hidden));
    close_to("gradients beside them", r.memory.gradients_bytes, 4 * last);
    r.parallel.drop_gathered = false;
    r.work.recompute = FT_RECOMPUTE_FULL; /* fullest in a layer: its own gradients and the head's beside the sums */
    r.arch.vocab = 4096;
    ask(&r);
    const double small = layers / 2 * layer_elements() + 4096 * hidden;
    close_to("in a layer", r.memory.communication_bytes, 2 * small + 2 * layer_elements());
    /* Without stages every micro-batch sends its gradients on; Megatron's sharding is another one. */
    r.parallel = layout_of(1, 1, 1, 1, 8);
    r.parallel.zero = 3;
    ask(&r);
    assert_true(r.memory.gradients_bytes < 4.1 * elements() / 8);
    r.parallel = layout_of(1, 2, 1, 1, 4);
    r.parallel.zero = 3;
    r.work.execution = FT_RUN_FUSED;
    ask(&r);
    assert_true(r.memory.gradients_bytes < 4.1 * small / 4);
    end(&r);
}

/* What comes back from reducing a stage's gradients is memory of the stream that reduces. */
static void shards_of_a_stage_are_another_streams(void **state)
{
    (void)state;
    rig r = begin(FT_RUN_COMPILE);
    const double last = layers / 2 * layer_elements() + vocab * hidden + hidden;
    double cached[2];
    for (int i = 0; i < 2; i++) {
        r.parallel = layout_of(1, 2, 1, 1, i ? 8 : 4);
        r.parallel.zero = 3;
        r.parallel.reduce_bytes = 4;
        r.work.accumulate = 8;
        ask(&r);
        cached[i] = r.memory.reserved_bytes - r.memory.peak_bytes;
    }
    /* The update's own copies are smaller with more ranks too, and cached as well in part. */
    double shards = 4 * last * (1.0 / 4 - 1.0 / 8), found = cached[0] - cached[1];
    if (!(found > 0.85 * shards && found < 1.05 * shards)) fail_msg("%.4g of shards, found %.4g", shards, found);
    end(&r);
}

/* A chunk reduces after its own last backward pass. As many micro-batches as stages go back through the last chunk one
 * after the other before any reaches the first; of more, the first ones have by then. */
static void chunks_reduce_by_themselves(void **state)
{
    (void)state;
    rig r = begin(FT_RUN_COMPILE);
    r.parallel = layout_of(1, 2, 1, 1, 4);
    r.parallel.zero = 3;
    r.parallel.schedule = FT_INTERLEAVED;
    r.parallel.vpp = 2;
    r.parallel.reduce_bytes = 4;
    const double chunk = layers / 4 * layer_elements(), head = vocab * hidden + hidden;
    r.work.accumulate = 2;
    ask(&r);
    close_to("the last chunk's gradients", r.memory.gradients_bytes, 4 * (chunk + head));
    r.work.accumulate = 4;
    ask(&r);
    close_to("both chunks' gradients", r.memory.gradients_bytes, 4 * (2 * chunk + head));
    end(&r);
}

/* A buffer for everything that a stage will receive, and what it sent while that is in flight. */
static void stages_have_buffers_for_all_micro_batches(void **state)
{
    (void)state;
    rig r = begin(FT_RUN_COMPILE);
    const double boundary = 2 * 2 * 8192 * hidden; /* in bf16 */
    double held[2];
    r.parallel = layout_of(1, 2, 1, 1, 4);
    r.parallel.zero = 3;
    for (int i = 0; i < 2; i++) { /* fullest where the head is: it receives activations */
        r.work.accumulate = i ? 12 : 4;
        ask(&r);
        assert_string_equal(r.memory.peak_block, "head");
        held[i] = r.memory.activations_bytes;
    }
    close_to("buffers of eight more", held[1] - held[0], 8 * boundary);
    r.arch.vocab = 4096; /* fullest in the first stage, which receives gradients and keeps what it sent */
    for (int i = 0; i < 2; i++) {
        r.work.accumulate = i ? 12 : 4;
        ask(&r);
        assert_string_equal(r.memory.peak_block, "layers");
        held[i] = r.memory.activations_bytes;
    }
    close_to("of gradients", held[1] - held[0], 8 * boundary);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_the_fp32_copies),
        cmocka_unit_test(gradients_come_and_go),
        cmocka_unit_test(the_root_stays_gathered),
        cmocka_unit_test(stages_add_up_whole_gradients),
        cmocka_unit_test(shards_of_a_stage_are_another_streams),
        cmocka_unit_test(chunks_reduce_by_themselves),
        cmocka_unit_test(stages_have_buffers_for_all_micro_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
