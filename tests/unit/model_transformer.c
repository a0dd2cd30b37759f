/* Decoder-only models: as many kernels as PyTorch was seen to launch. The counts are of the profiler's records on an
 * H200 (PyTorch 2.11, transformers 5.17, batch 4, 1024 tokens, bf16): operators that touch at least 20 000 elements,
 * without the optimizer, of models with these shapes and so many layers. */
#include <math.h>
#include <string.h>

#include "model_graphs.h"

#include "graph/emit.h"

/* Elements that a kernel touches; what is only its bytes is small in these models. */
static double elements(const ft_op *op)
{
    switch (op->kind) {
    case FT_OP_ELEMENTWISE: return (double)op->u.elementwise.numel;
    case FT_OP_ROW: return (double)op->u.row.rows * (double)op->u.row.cols;
    case FT_OP_OTHER: return 0;
    default: return INFINITY;
    }
}

static double kernels(const ft_graph *g, double least)
{
    double n = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t i = g->blocks[b].first; i < g->blocks[b].first + g->blocks[b].count; i++)
            if (ft__node_runs(&g->nodes[i]) && elements(&g->nodes[i].op) >= least)
                n += (double)g->nodes[i].count * (double)g->blocks[b].repeat;
    return n;
}

static double bytes_of(const ft_graph *g)
{
    double sum = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t i = g->blocks[b].first; i < g->blocks[b].first + g->blocks[b].count; i++)
            sum += ft__op_bytes(&g->nodes[i].op) * (double)g->nodes[i].count * (double)g->blocks[b].repeat;
    return sum;
}

static const struct {
    const char *model;
    int64_t layers;
    ft_attention_kind attention;
    double forward, train;
} seen[] = {
    {"llama-3.2-3b", 3, FT_SDPA, 118, 350},
    {"qwen2.5-1.5b", 4, FT_SDPA, 152, 465},
    {"qwen3-4b", 4, FT_SDPA, 216, 645},
    {"gemma-2-2b", 4, FT_SDPA, 204, 613},
    {"gemma-2b", 4, FT_SDPA, 153, 451},
    {"mixtral-8x7b", 2, FT_SDPA, 110, 316},
    {"phi-2", 4, FT_SDPA, 135, 408},
    {"starcoder2-3b", 4, FT_SDPA, 99, 296},
    {"olmo-2-7b", 3, FT_SDPA, 158, 485},
    {"stablelm-3b-4e1t", 4, FT_SDPA, 119, 351},
    {"phi-3-mini", 4, FT_SDPA, 152, 468},
    {"gpt-neo-1.3b", 4, FT_EAGER, 126, 326},
    {"bloom-1b7", 4, FT_EAGER, 121, 347},
    {"mpt-7b", 3, FT_EAGER, 68, 165},
    {"pythia-2.8b", 4, FT_SDPA, 103, 307},
    {"qwen1.5-moe-a2.7b", 3, FT_SDPA, 180, 531},
    {"deepseek-v2-lite", 4, FT_SDPA, 262, 748},
};

static void forward_passes_launch_what_was_seen(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        ft_workload work = work_of(FT_FORWARD_PASS, seen[i].attention);
        double got = kernels(graph_of(seen[i].model, seen[i].layers, &work, arena), 20000);
        ft__arena_reset(arena);
        if (fabs(got - seen[i].forward) <= fmax(2, 0.035 * seen[i].forward)) continue;
        wrong++;
        print_message("%s: %.0f kernels, %.0f were seen\n", seen[i].model, got, seen[i].forward);
    }
    ft__arena_free(arena);
    assert_int_equal(0, wrong);
}

static void training_launches_what_was_seen(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        ft_workload work = work_of(FT_TRAIN, seen[i].attention);
        double got = kernels(graph_of(seen[i].model, seen[i].layers, &work, arena), 20000);
        ft__arena_reset(arena);
        if (fabs(got - seen[i].train) <= fmax(2, 0.05 * seen[i].train)) continue;
        wrong++;
        print_message("%s: %.0f kernels, %.0f were seen\n", seen[i].model, got, seen[i].train);
    }
    ft__arena_free(arena);
    assert_int_equal(0, wrong);
}

static const ft_node *find(const ft_graph *g, const char *name, const char *op)
{
    for (int32_t i = 0; i < g->node_count; i++)
        if (!strcmp(g->nodes[i].name, name) && !strcmp(g->nodes[i].op.name, op)) return &g->nodes[i];
    return NULL;
}

static void a_dynamic_cache_copies_the_past_and_a_static_one_does_not(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_DECODE, FT_SDPA);
    (void)state;
    const ft_node *append = find(graph_of("llama-3.2-1b", 2, &work, arena), "attn.cache", "append");
    assert_non_null(append);
    assert_int_equal(append->op.u.elementwise.pattern, FT_PATTERN_CONTIGUOUS);
    assert_int_equal(append->op.u.elementwise.numel, 4 * 1025 * 512); /* 8 heads of 64 */
    /* Values that are a slice of fused projections send the whole cache through the slow kernel. */
    const ft_node *sliced = find(graph_of("gpt2", 2, &work, arena), "attn.cache", "append");
    assert_non_null(sliced);
    assert_int_equal(sliced->op.u.elementwise.pattern, FT_PATTERN_STRIDED);
    work.cache = FT_CACHE_STATIC;
    ft_graph *g = graph_of("llama-3.2-1b", 2, &work, arena);
    assert_null(find(g, "attn.cache", "append"));
    assert_non_null(find(g, "attn.repeat_kv", "copy")); /* a mask is passed, so keys are repeated */
    ft__arena_free(arena);
}

static void a_window_bounds_what_a_layer_remembers(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_DECODE, FT_SDPA);
    (void)state;
    work.seq = 4096;
    double narrow = 0, wide = 0;
    ft_graph *g = graph_of("gemma-3-1b", 6, &work, arena); /* five layers of 512, one without a window */
    for (int32_t i = 0; i < g->node_count; i++) {
        if (strcmp(g->nodes[i].op.name, "append")) continue;
        if (g->nodes[i].op.u.elementwise.numel == 4 * 512 * 256) narrow++;
        if (g->nodes[i].op.u.elementwise.numel == 4 * 4097 * 256) wide++;
    }
    assert_true(narrow == 10 && wide == 2);
    ft__arena_free(arena);
}

static void few_tokens_wake_few_experts(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_DECODE, FT_SDPA);
    (void)state;
    work.batch = 8; /* 8 tokens pick 8 of 128 each: 52 are expected to be hit */
    const ft_node *n = find(graph_of("qwen3-30b-a3b", 2, &work, arena), "moe.gate_up", "bmm");
    assert_non_null(n);
    assert_int_equal(n->op.u.gemm.b, 52);
    work.task = FT_FORWARD_PASS;
    n = find(graph_of("qwen3-30b-a3b", 2, &work, arena), "moe.gate_up", "bmm");
    assert_non_null(n);
    assert_int_equal(n->op.u.gemm.b, 128);
    work.dtype = FT_FP32; /* no grouped product: one after the other, after the host has learned the sizes */
    n = find(graph_of("qwen3-30b-a3b", 2, &work, arena), "moe.gate_up", "bmm");
    assert_non_null(n);
    assert_true(n->op.u.gemm.b == 1 && n->count == 128 && n->synced);
    ft__arena_free(arena);
}

static int count_verb(const ft_graph *g, ft_verb verb, ft_phase phase)
{
    int n = 0;
    for (int32_t i = 0; i < g->node_count; i++) n += g->nodes[i].verb == verb && g->nodes[i].phase == phase;
    return n;
}

/* Megatron-Core copies tokens to their experts and sums them back in one pass each, there and back; a token's weights
 * are the activation's affair, whose gradient reaches the router. */
static void megatron_permutes(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_TRAIN, FT_FLASH);
    (void)state;
    const ft_graph *plain = graph_of("qwen3-30b-a3b", 2, &work, arena);
    work.execution = FT_RUN_FUSED;
    const ft_graph *g = graph_of("qwen3-30b-a3b", 2, &work, arena);
    assert_int_equal(count_verb(g, FT_DO_PERMUTE, FT_FORWARD), 2);
    assert_int_equal(count_verb(g, FT_DO_PERMUTE, FT_BACKWARD), 2);
    assert_int_equal(count_verb(plain, FT_DO_PERMUTE, FT_FORWARD), 0);
    /* In fp8 the experts' products are too; PyTorch's grouped product has 16 bits. */
    work.dtype = FT_FP8;
    assert_int_equal(find(graph_of("qwen3-30b-a3b", 2, &work, arena), "moe.gate_up", "bmm")->op.dtype, FT_FP8);
    work.execution = FT_RUN_EAGER;
    assert_int_equal(find(graph_of("qwen3-30b-a3b", 2, &work, arena), "moe.gate_up", "bmm")->op.dtype, FT_BF16);
    assert_null(find(g, "moe.weigh", "mul"));
    assert_non_null(find(g, "moe.act", "swiglu_weighed"));
    const ft_node *there = find(g, "moe.dispatch", "copy");
    assert_non_null(there);
    double tokens = 4 * 1024, width = 2048; /* one row read, eight written, of two bytes an element */
    assert_true(fabs(there->op.u.elementwise.bytes / (9 * tokens * width * 2) - 1) < 1e-9);
    bool routed = false;
    for (int32_t i = 0; i < g->node_count; i++)
        routed |= g->nodes[i].phase == FT_BACKWARD && !strcmp(g->nodes[i].name, "moe.router") &&
                  g->nodes[i].op.kind == FT_OP_GEMM;
    assert_true(routed);
    ft__arena_free(arena);
}

static void more_of_anything_is_more(void **state)
{
    static const char *const models[] = {"llama-3.2-1b", "gpt2", "falcon-7b", "gpt-oss-20b", "deepseek-v2-lite"};
    ft_arena *arena = ft__arena_new(0);
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        ft_workload work = work_of(FT_TRAIN, FT_SDPA);
        ft_graph *g = graph_of(models[i], 2, &work, arena);
        double flops = ft__graph_flops(g, FT_FORWARD), bytes = bytes_of(g);
        work.batch *= 2;
        assert_true(ft__graph_flops(graph_of(models[i], 2, &work, arena), FT_FORWARD) > 1.9 * flops);
        work.batch /= 2;
        work.dtype = FT_FP32;
        assert_true(bytes_of(graph_of(models[i], 2, &work, arena)) > 1.05 * bytes);
        ft__arena_reset(arena);
    }
    ft__arena_free(arena);
}

static void autocast_raises_what_it_must(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_TRAIN, FT_SDPA);
    (void)state;
    work.autocast = true;
    ft_graph *g = graph_of("gpt2", 1, &work, arena);
    const ft_node *power = find(g, "mlp.act", "powu"), *product = find(g, "mlp.up_proj", "linear");
    assert_non_null(power);
    assert_non_null(product);
    assert_int_equal(power->op.dtype, FT_FP32); /* pow is on autocast's list */
    assert_int_equal(product->op.dtype, FT_BF16);
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_passes_launch_what_was_seen),
        cmocka_unit_test(training_launches_what_was_seen),
        cmocka_unit_test(a_dynamic_cache_copies_the_past_and_a_static_one_does_not),
        cmocka_unit_test(a_window_bounds_what_a_layer_remembers),
        cmocka_unit_test(few_tokens_wake_few_experts),
        cmocka_unit_test(megatron_permutes),
        cmocka_unit_test(more_of_anything_is_more),
        cmocka_unit_test(autocast_raises_what_it_must),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
