/* Selective recomputation: what runs again, what is kept, and for how long, as PyTorch 2.11 was seen to do it with
 * torchtitan's policy (tests/python/test_selective.py asks PyTorch itself). */
#include "layout_models.h"

static ft_workload selective_work(ft_execution execution)
{
    ft_workload w = train_work(2, 1024);
    w.master_weights = false;
    w.execution = execution;
    w.recompute = FT_RECOMPUTE_SELECTIVE;
    return w;
}

static ft_graph *built(const char *model, const ft_workload *work, ft_arena *arena)
{
    ft_error err = {0};
    ft_graph *g = NULL;
    ft_arch a = open_model(model);
    ft__arena_reset(arena);
    if (ft__model_graph(&a, work, arena, &g, &err) != FT_OK) fail_msg("%s: %s", model, err.message);
    ft__arch_release(&a);
    return g;
}

/* The products and attention of one layer that run again, by name, in order. */
static const char *again(const ft_graph *g)
{
    static char text[512];
    text[0] = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->phase != FT_RECOMPUTE || ft__node_class(n) != FT_CONTRACTION || !ft__node_runs(n)) continue;
        if (strlen(text) + strlen(n->name) + 2 > sizeof text) fail_msg("too much runs again");
        if (text[0]) strcat(text, " ");
        strcat(text, n->name);
    }
    return text;
}

static void every_second_product_runs_again(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    static const ft_execution ways[] = {FT_RUN_EAGER, FT_RUN_COMPILE, FT_RUN_CUDA_GRAPH, FT_RUN_IDEAL};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ft_workload w = selective_work(ways[i]);
        assert_string_equal(again(built("llama-3-8b", &w, arena)), "attn.k_proj attn.o_proj mlp.up_proj");
        /* With biases. The sixth product is the layer's last, and nobody asks for its result. */
        const ft_graph *biased = built("starcoder2-3b", &w, arena);
        assert_string_equal(again(biased), "attn.k_proj attn.o_proj");
        /* Attention and MLP side by side: nobody asks for the second product's result either, which a compiler sees. */
        bool compiled = ways[i] == FT_RUN_COMPILE || ways[i] == FT_RUN_CUDA_GRAPH;
        assert_string_equal(again(built("pythia-410m", &w, arena)), compiled ? "" : "attn.o_proj");
    }
    ft__arena_free(arena);
}

/* Products of two activations are not on the list. */
static void scores_run_again(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_workload w = selective_work(FT_RUN_EAGER);
    w.attention = FT_EAGER;
    const char *names = again(built("llama-3-8b", &w, arena));
    if (!strstr(names, "attn.attend") && !strstr(names, "attn.scores")) fail_msg("%s", names);
    assert_non_null(strstr(names, "attn.k_proj"));
    assert_null(strstr(names, "attn.q_proj"));
    /* Megatron's kernels: scores alone, and with flash attention there are none. */
    w.execution = FT_RUN_FUSED;
    names = again(built("llama-3-8b", &w, arena));
    assert_true(strlen(names) > 0 && !strstr(names, "proj"));
    w.attention = FT_FLASH;
    assert_string_equal(again(built("llama-3-8b", &w, arena)), "");
    ft__arena_free(arena);
}

/* Layers of a pattern are checkpointed one by one: each begins with its first product. */
static void layers_of_a_pattern_count_by_themselves(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_workload w = selective_work(FT_RUN_EAGER);
    ft_graph *g = built("gemma-2-9b", &w, arena);
    int saved = 0, run_again = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->verb != FT_DO_LINEAR || n->phase == FT_BACKWARD) continue;
        if (n->phase == FT_RECOMPUTE && strstr(n->name, "q_proj")) fail_msg("the first product runs again");
        saved += n->phase == FT_FORWARD && strcmp(n->name, "lm_head") != 0;
        run_again += n->phase == FT_RECOMPUTE;
    }
    assert_int_equal(saved, 42 * 7);
    assert_int_equal(run_again, saved / 7 * 3);
    ft__arena_free(arena);
}

/* Adapters are products too, and go by the name of the one that they are beside: q_proj's are the second and the third
 * of their layer, and of each adapter's two products one is saved. */
static void adapters_count_as_products(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_workload w = selective_work(FT_RUN_EAGER);
    w.lora_rank = 8;
    ft_graph *g = built("llama-3-8b", &w, arena);
    int forward = 0, run_again = 0, of_q = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->verb != FT_DO_LINEAR || n->phase == FT_BACKWARD) continue;
        forward += n->phase == FT_FORWARD && strcmp(n->name, "lm_head") != 0;
        run_again += n->phase == FT_RECOMPUTE;
        of_q += n->phase == FT_RECOMPUTE && strstr(n->name, "q_proj");
    }
    assert_int_equal(forward, 21);
    assert_int_equal(of_q, 1);
    assert_int_equal(run_again, 10);
    ft__arena_free(arena);
}

/* -- memory ------------------------------------------------------------------------------------ */

/* What one more layer keeps for the backward pass. */
static double kept_by_a_layer(const char *model, const ft_workload *w, ft_arena *arena)
{
    ft_device h100 = limit_device("h100_sxm");
    double bytes[2];
    for (int k = 0; k < 2; k++) {
        ft_error err = {0};
        ft_graph *g = NULL;
        ft_memory m;
        ft_arch a = open_model(model);
        a.layers = 4 + 2 * k;
        ft__arena_reset(arena);
        if (ft__model_graph(&a, w, arena, &g, &err) != FT_OK) fail_msg("%s: %s", model, err.message);
        assert_int_equal(ft__step_memory(g, w, &h100, &m, &err), FT_OK);
        bytes[k] = m.saved_bytes;
        ft__arch_release(&a);
    }
    return (bytes[1] - bytes[0]) / 2;
}

static void a_layer_keeps_what_the_policy_saves(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_workload w = selective_work(FT_RUN_EAGER);
    double tokens = 2 * 1024, h = 4096, kv = 1024, ffn = 14336, heads = 32;
    /* Its input, q, v, attention's result and a number per head, gate; eager checkpoints also down_proj's result,
     * which nobody asks for. */
    double policy = tokens * (2 * (h + h + kv + h + ffn) + 4 * heads), down = tokens * 2 * h;
    double eager = kept_by_a_layer("llama-3-8b", &w, arena);
    if (fabs(eager / (policy + down) - 1) > 0.002) fail_msg("eager: %.0f, expected %.0f", eager, policy + down);
    w.execution = FT_RUN_COMPILE;
    double compiled = kept_by_a_layer("llama-3-8b", &w, arena);
    if (fabs(compiled / policy - 1) > 0.002) fail_msg("compiled: %.0f, expected %.0f", compiled, policy);
    w.recompute = FT_RECOMPUTE_FULL;
    double full = kept_by_a_layer("llama-3-8b", &w, arena);
    assert_true(fabs(full / (tokens * 2 * h) - 1) < 0.002);
    ft__arena_free(arena);
}

/* Between none and full, for every model that has layers and in every way to run it. */
static void memory_lies_between_none_and_full(void **state)
{
    (void)state;
    static const char *const models[] = {"gpt2",      "llama-3.2-1b", "qwen3-0.6b", "mixtral-8x7b", "gemma-2-9b",
                                         "bert-base", "t5-base",      "vit-b-16",   "mamba2-130m",  "switch-base-8"};
    static const ft_execution ways[] = {FT_RUN_EAGER, FT_RUN_COMPILE};
    ft_arena *arena = ft__arena_new(0);
    ft_device h100 = limit_device("h100_sxm");
    int seen = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (size_t k = 0; k < 2; k++) {
            double saved[3];
            ft_arch a;
            ft_error err = {0};
            if (ft__model_open(models[i], NULL, &a, &err) != FT_OK) continue;
            for (int r = 0; r <= FT_RECOMPUTE_FULL; r++) {
                ft_workload w = selective_work(ways[k]);
                ft_graph *g = NULL;
                ft_memory m;
                w.seq = 512;
                w.recompute = (ft_recompute)r;
                ft__arena_reset(arena);
                if (ft__model_graph(&a, &w, arena, &g, &err) != FT_OK) fail_msg("%s: %s", models[i], err.message);
                assert_int_equal(ft__step_memory(g, &w, &h100, &m, &err), FT_OK);
                saved[r] = m.saved_bytes;
            }
            if (!(saved[2] <= saved[1] && saved[1] < saved[0]))
                fail_msg("%s, way %zu: %.3g none, %.3g selective, %.3g full", models[i], k, saved[0], saved[1],
                         saved[2]);
            ft__arch_release(&a);
            seen++;
        }
    assert_int_equal(seen, 20);
    ft__arena_free(arena);
}

/* -- over ranks -------------------------------------------------------------------------------- */

/* A reduce-scatter's result is saved: eager checkpoints still run the product before it, a compiler does not. */
static void compilers_skip_products_whose_sum_was_saved(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("llama-3-8b");
    ft_parallel p = layout_of(2, 1, 1, 1, 1);
    p.sp = true;
    ft_workload w = selective_work(FT_RUN_EAGER);
    assert_non_null(strstr(again(rank_of(&a, &w, &p, 0, arena).g), "attn.o_proj"));
    w.execution = FT_RUN_COMPILE;
    const char *names = again(rank_of(&a, &w, &p, 0, arena).g);
    assert_null(strstr(names, "attn.o_proj"));
    assert_non_null(strstr(names, "mlp.up_proj"));
    ft__arch_release(&a);
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_second_product_runs_again),
        cmocka_unit_test(scores_run_again),
        cmocka_unit_test(layers_of_a_pattern_count_by_themselves),
        cmocka_unit_test(adapters_count_as_products),
        cmocka_unit_test(a_layer_keeps_what_the_policy_saves),
        cmocka_unit_test(memory_lies_between_none_and_full),
        cmocka_unit_test(compilers_skip_products_whose_sum_was_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
