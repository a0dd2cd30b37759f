/* What the loss holds of the logits, by who computes it: PyTorch, PyTorch over tensor ranks, Megatron, those
 * after it. */
#include "layout_models.h"

static const double tokens = 2 * 8192, vocab = 128256;
static const double logits = 4 * 2 * 8192 * 128256.0; /* of fp32 */

typedef struct rig {
    ft_arena *arena;
    ft_arch arch;
    ft_workload work;
    ft_device device;
} rig;

static rig begin(void)
{
    rig r = {.arena = ft__arena_new(0), .arch = open_model("llama-3.2-1b"), .work = train_work(2, 8192)};
    r.device = limit_device("h100_sxm");
    r.work.execution = FT_RUN_EAGER;
    r.work.recompute = FT_RECOMPUTE_FULL; /* fullest at the loss */
    return r;
}

static void end(rig *r)
{
    ft__arch_release(&r->arch);
    ft__arena_free(r->arena);
}

static ft_graph *graph_of(rig *r)
{
    ft_graph *g = NULL;
    ft_error err;
    ft__arena_reset(r->arena);
    if (ft__model_graph(&r->arch, &r->work, r->arena, &g, &err) != FT_OK) fail_msg("%s", err.message);
    return g;
}

static double peak_of(rig *r, const ft_graph *g)
{
    ft_memory m;
    ft_error err;
    if (ft__step_memory(g, &r->work, &r->device, &m, &err) != FT_OK) fail_msg("%s", err.message);
    assert_string_equal(m.peak_block, "head");
    return m.peak_bytes;
}

/* Tensors of fp32 as large as the logits that have memory of their own. */
static int copies_of(const ft_graph *g)
{
    int count = 0;
    for (ft_ref i = 0; i < g->tensor_count; i++) {
        const ft_tensor *t = &g->tensors[i];
        count += t->storage == i && t->role == FT_ACTIVATION && ft__tensor_numel(t) == tokens * vocab &&
                 t->element_bytes == 4;
    }
    return count;
}

static void close_to(const char *what, double found, double expected)
{
    if (fabs(found - expected) > 0.01 * logits) fail_msg("%s: %.4g, expected %.4g", what, found, expected);
}

static void copies_are_counted_as_they_are_made(void **state)
{
    (void)state;
    rig r = begin();
    double plain = peak_of(&r, graph_of(&r));
    assert_int_equal(copies_of(graph_of(&r)), 4); /* in fp32, their log-softmax, and two gradients */
    static const struct {
        ft_loss_by by;
        int copies;
        double more; /* copies at the fullest moment */
    } ways[] = {
        {FT_LOSS_PLAIN, 4, 0},             /* going back: what was saved, and both gradients */
        {FT_LOSS_PARALLEL, 4, 1},          /* and a sum */
        {FT_LOSS_AFTER_MEGATRON, 2, -0.5}, /* going forward: in 16 bits, in fp32, shifted */
        {FT_LOSS_MEGATRON, 1, -1.5},       /* in 16 bits and in fp32, both ways */
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ft_graph *g = graph_of(&r);
        ft__loss_memory(g, ways[i].by);
        assert_int_equal(copies_of(g), ways[i].copies);
        close_to("copies more than PyTorch's", peak_of(&r, g) - plain, ways[i].more * logits);
    }
    end(&r);
}

/* Hand-fused kernels are Megatron's, on one GPU as on many. */
static void fused_is_megatron(void **state)
{
    (void)state;
    rig r = begin();
    r.work.execution = FT_RUN_FUSED;
    ft_graph *g = graph_of(&r);
    assert_int_equal(copies_of(g), 1);
    peak_of(&r, g);
    r.work.dtype = FT_FP32; /* it is the logits themselves */
    assert_int_equal(copies_of(graph_of(&r)), 1);
    end(&r);
}

/* A loss of one kernel each way reads the logits as they are: autocast, which raises PyTorch's to fp32, has no part in
 * it, whether the request names that loss or the stack has it. */
static void autocast_raises_no_fused_loss(void **state)
{
    (void)state;
    static const struct {
        const char *stack;
        ft_entropy loss;
        bool copied;
    } ways[] = {{"pytorch", FT_ENTROPY_OF_MODEL, true},
                {"pytorch", FT_ENTROPY_FUSED, false},
                {"llm_foundry", FT_ENTROPY_OF_MODEL, false}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        rig r = begin();
        r.work.autocast = true;
        ft_error err;
        assert_int_equal(ft__stack_find(ways[i].stack, &r.work.stack, &err), FT_OK);
        r.work.loss = ways[i].loss;
        assert_int_equal(copies_of(graph_of(&r)) > 0, ways[i].copied);
        end(&r);
    }
}

static void a_cut_vocabulary_asks_whose_it_is(void **state)
{
    (void)state;
    static const struct {
        ft_execution execution;
        int64_t tp;
        bool copies;
        int zero;
        ft_loss_by by;
    } cases[] = {
        {FT_RUN_COMPILE, 8, true, 3, FT_LOSS_PARALLEL},     {FT_RUN_EAGER, 8, false, 0, FT_LOSS_PARALLEL},
        {FT_RUN_EAGER, 8, true, 1, FT_LOSS_AFTER_MEGATRON}, {FT_RUN_FUSED, 8, true, 1, FT_LOSS_PLAIN},
        {FT_RUN_EAGER, 1, true, 3, FT_LOSS_PLAIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_workload w = train_work(1, 2048);
        w.execution = cases[i].execution;
        w.master_weights = cases[i].copies;
        ft_parallel p = layout_of(cases[i].tp, 1, 1, 1, 4);
        p.zero = cases[i].zero;
        assert_int_equal(ft__ranks_loss(&p, &w), cases[i].by);
    }
}

/* A compiled loss is fused, unless it is in parts with exchanges between them. */
static void parts_of_a_loss_are_not_fused(void **state)
{
    (void)state;
    for (int64_t tp = 1; tp <= 8; tp *= 8) {
        ft_workload w = train_work(1, 2048);
        ft_error err;
        assert_int_equal(ft__stack_find("torchtitan", &w.stack, &err), FT_OK);
        w.execution = FT_RUN_COMPILE;
        w.scope = w.stack->compile_scope;
        ft_parallel p = layout_of(tp, 1, 1, 1, 4);
        p.zero = 3;
        ft_ranks r = {.work = &w, .parallel = &p};
        assert_int_equal(ft__ranks_workload(&r).scope, tp > 1 ? FT_SCOPE_LAYERS : FT_SCOPE_LOSS);
    }
}

/* The rank's graph has it: under FSDP both kernels of the loss hold one more part. */
static void ranks_hold_their_parts(void **state)
{
    (void)state;
    rig r = begin();
    ft_parallel p = layout_of(8, 1, 1, 1, 4);
    p.zero = 3;
    ft_stage s = rank_of(&r.arch, &r.work, &p, 0, r.arena);
    int kernels = 0;
    for (int32_t i = 0; i < s.g->node_count; i++) {
        const ft_node *n = &s.g->nodes[i];
        if (!n->op.name || strcmp(n->op.name, "log_softmax")) continue;
        kernels++;
        close_to("a part", n->workspace, logits / 8);
    }
    assert_int_equal(kernels, 2);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_counted_as_they_are_made), cmocka_unit_test(fused_is_megatron),
        cmocka_unit_test(autocast_raises_no_fused_loss),       cmocka_unit_test(a_cut_vocabulary_asks_whose_it_is),
        cmocka_unit_test(parts_of_a_loss_are_not_fused),       cmocka_unit_test(ranks_hold_their_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
