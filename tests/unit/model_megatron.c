/* Megatron-Core's kernels of latent attention, routers and experts with biases: which run, and what they move. */
#include "layout_models.h"

static bool called(const ft_node *n, const char *name, ft_phase phase)
{
    return n->phase == phase && n->name && !strcmp(n->name, name) && n->verb != FT_DO_COMM && ft__node_runs(n);
}

/* Launches of kernels of this name in one iteration of every block, and their bytes. */
static double launched(const ft_graph *g, const char *name, ft_phase phase, double *bytes)
{
    double count = 0, moved = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (!called(n, name, phase)) continue;
        count += (double)n->count;
        moved += ft__op_bytes(&n->op) * (double)n->count;
    }
    if (bytes) *bytes = moved;
    return count;
}

/* Of one iteration of every block, of which gpt-oss' has two: with a window and without. */
static double layers_of(const ft_graph *g) { return launched(g, "attn.o_proj", FT_FORWARD, NULL); }

static const ft_graph *rank(const ft_arch *a, const ft_workload *w, const ft_parallel *p, ft_arena *arena)
{
    return rank_of(a, w, p, 0, arena).g;
}

/* -- latent attention -------------------------------------------------------------------------- */

/* One kernel rotates queries in place, one makes keys and values; going back there are two like them. Queries read and
 * write their rotary columns, keys and values are read and written once, with a rotary part per head. */
static void latents_are_rotated_by_two_kernels(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("deepseek-v3");
    ft_workload w = train_work(1, 1024);
    ft_parallel p = layout_of(1, 1, 1, 1, 1);
    const ft_graph *g = rank(&a, &w, &p, arena);
    double layers = layers_of(g), rows = 1024.0 * 128, there, back;
    assert_true(launched(g, "attn.rotary", FT_FORWARD, &there) == 2 * layers);
    assert_true(launched(g, "attn.rotary", FT_BACKWARD, &back) == 2 * layers);
    double queries = 2 * rows * 64 * 2, keys = rows * (256 + 256 + 64) * 2 + 1024 * 64 * 2.0;
    assert_true(fabs(there / (layers * (queries + keys)) - 1) < 1e-9);
    assert_true(fabs(back / there - 1) < 1e-9);
    static const char *const gone[] = {"attn.q_cat", "attn.k_cat", "attn.v", "view"};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        assert_true(launched(g, gone[i], FT_FORWARD, NULL) == 0);
        assert_true(launched(g, gone[i], FT_BACKWARD, NULL) == 0);
    }
    /* Without them keys are concatenated and values copied, and nothing stands head by head either. */
    w.fusions = FT_FUSIONS_PLAIN;
    g = rank(&a, &w, &p, arena);
    assert_true(launched(g, "attn.q_cat", FT_FORWARD, NULL) == layers);
    assert_true(launched(g, "attn.k_cat", FT_FORWARD, NULL) == layers);
    assert_true(launched(g, "attn.v", FT_FORWARD, NULL) == layers);
    assert_true(launched(g, "attn.rotary", FT_FORWARD, NULL) > 2 * layers);
    assert_true(launched(g, "view", FT_BACKWARD, NULL) == 0);
    ft__arch_release(&a);
    ft__arena_free(arena);
}

/* Attention keeps queries, keys and values, and not what they were made of. */
static void latents_are_kept_once(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("deepseek-v3");
    ft_workload w = train_work(1, 1024);
    ft_parallel p = layout_of(1, 1, 1, 1, 1);
    const ft_graph *g = rank(&a, &w, &p, arena);
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->phase != FT_BACKWARD) continue;
        for (int k = 0; k < n->in_count; k++) {
            const ft_tensor *t = &g->tensors[g->tensors[n->in[k]].storage];
            bool forward = t->block >= 0 && g->blocks[t->block].phase == FT_FORWARD && t->role == FT_ACTIVATION;
            if (forward && t->rows == 1024) assert_true(t->cols != 128 * (128 + 128)); /* the expanded latent */
        }
    }
    ft__arch_release(&a);
    ft__arena_free(arena);
}

/* A tensor rank rotates its own heads; the shared key's gradient is summed over ranks. */
static void tensor_ranks_rotate_their_heads(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("deepseek-v2-lite");
    ft_workload w = train_work(1, 1024);
    ft_parallel one = layout_of(1, 1, 1, 1, 1), four = layout_of(4, 1, 1, 1, 1);
    double all, part;
    launched(rank(&a, &w, &one, arena), "attn.rotary", FT_BACKWARD, &all);
    const ft_graph *g = rank(&a, &w, &four, arena);
    launched(g, "attn.rotary", FT_BACKWARD, &part);
    assert_true(fabs(part / (all / 4) - 1) < 0.01);
    int32_t sums = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        bool keys = n->verb == FT_DO_COMM && n->phase == FT_BACKWARD && !strcmp(n->name, "attn.rotary");
        if (keys) assert_true(n->exchange.kind == FT_EXCHANGE_ALL_REDUCE && n->exchange.bytes == 1024.0 * 64 * 2);
        sums += keys;
    }
    assert_true((double)sums == layers_of(g));
    ft__arch_release(&a);
    ft__arena_free(arena);
}

/* -- routers ----------------------------------------------------------------------------------- */

static void routers_are_a_product_and_a_kernel(void **state)
{
    (void)state;
    static const char *const models[] = {"deepseek-v3", "qwen3-30b-a3b", "gpt-oss-20b"};
    ft_arena *arena = ft__arena_new(0);
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        ft_arch a = open_model(models[m]);
        ft_workload w = train_work(1, 1024);
        w.dtype = FT_FP8; /* in which routers are never */
        ft_parallel p = layout_of(1, 1, 1, 1, 1);
        const ft_graph *g = rank(&a, &w, &p, arena);
        double products = launched(g, "moe.router", FT_FORWARD, NULL);
        assert_true(products >= 1);
        assert_true(launched(g, "moe.topk", FT_FORWARD, NULL) == products);
        assert_true(launched(g, "moe.router.groups", FT_FORWARD, NULL) == 0);
        for (int32_t i = 0; i < g->node_count; i++)
            if (called(&g->nodes[i], "moe.router", FT_FORWARD)) assert_true(g->nodes[i].op.dtype == FT_BF16);
        w.fusions = FT_FUSIONS_PLAIN;
        assert_true(launched(rank(&a, &w, &p, arena), "moe.topk", FT_FORWARD, NULL) > products);
        ft__arch_release(&a);
    }
    ft__arena_free(arena);
}

/* -- experts ----------------------------------------------------------------------------------- */

/* gpt-oss: clamp, clamp, cat before the activation; bias by weight, sum, cat behind the second product. Nobody else has
 * them, and all have the parameters that they have by other kernels. */
static void clamps_and_biases_are_pytorchs(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("gpt-oss-20b"), b = open_model("qwen3-30b-a3b");
    ft_workload w = train_work(1, 1024), eager = w;
    ft_parallel p = layout_of(1, 1, 1, 1, 1);
    eager.execution = FT_RUN_EAGER;
    const ft_graph *g = rank(&a, &w, &p, arena);
    double layers = layers_of(g), moved;
    assert_true(launched(g, "moe.clamp", FT_FORWARD, NULL) == 3 * layers);
    assert_true(launched(g, "moe.bias", FT_FORWARD, &moved) == (2 * 32 + 1) * layers); /* two by expert */
    double one = 1024.0 * 4 * 2880 * 2; /* a row of every token's four experts */
    assert_true(moved > 6 * one * layers && moved < 6.1 * one * layers);
    const ft_graph *plain = rank(&a, &eager, &p, arena);
    assert_true(g->parameters == plain->parameters && g->active_parameters == plain->active_parameters);
    const ft_graph *other = rank(&b, &w, &p, arena);
    assert_true(launched(other, "moe.clamp", FT_FORWARD, NULL) == 0);
    assert_true(launched(other, "moe.bias", FT_FORWARD, NULL) == 0);
    /* An expert rank has its experts' biases: both of them. */
    ft_parallel spread = layout_of(1, 1, 1, 8, 8);
    ft_stage whole = rank_of(&a, &w, &p, 0, arena), part = rank_of(&a, &w, &spread, 0, arena);
    assert_true(fabs(part.expert / (whole.expert / 8) - 1) < 1e-9);
    double here;
    assert_true(launched(part.g, "moe.bias", FT_FORWARD, &here) == (2 * 4 + 1) * layers);
    assert_true(fabs(here / moved - 1) < 0.02);
    double back = launched(g, "moe.bias", FT_BACKWARD, &moved);
    assert_true(launched(part.g, "moe.bias", FT_BACKWARD, &here) == back / 8 && fabs(here / moved - 1) < 0.02);
    ft__arch_release(&a);
    ft__arch_release(&b);
    ft__arena_free(arena);
}

/* How many rows an expert gets the host has to know, once a layer; the clamped activation's offset it copies. */
static void hosts_wait_for_counts(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double waits; /* per layer */
    } cases[] = {{"qwen3-30b-a3b", 1}, {"gpt-oss-20b", 2}, {"llama-3-8b", 0}};
    ft_arena *arena = ft__arena_new(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_arch a = open_model(cases[i].model);
        ft_workload w = train_work(1, 1024);
        ft_parallel p = layout_of(1, 1, 1, 1, 1);
        const ft_graph *g = rank(&a, &w, &p, arena);
        double waits = 0;
        for (int32_t k = 0; k < g->node_count; k++)
            waits += g->nodes[k].synced && !strncmp(g->nodes[k].name, "moe.", 4);
        assert_true(waits == cases[i].waits * layers_of(g));
        ft__arch_release(&a);
    }
    ft__arena_free(arena);
}

/* Rows from an all-to-all are sorted where a rank has several experts, and back: four times a layer. */
static void arrivals_are_sorted(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("gpt-oss-20b");
    ft_workload w = train_work(1, 1024);
    for (int eager = 0; eager < 2; eager++) {
        w.execution = eager ? FT_RUN_EAGER : FT_RUN_FUSED;
        ft_parallel none = layout_of(1, 1, 1, 1, 32), some = layout_of(1, 1, 1, 8, 32), all = some, once = some;
        all.ep = 32; /* an expert each */
        once.dispatch_once = true;
        const char *const at[] = {"moe.dispatch", "moe.combine"};
        for (int k = 0; k < 2; k++) {
            double layers = layers_of(rank(&a, &w, &none, arena));
            double unsorted = launched(rank(&a, &w, &none, arena), at[k], FT_FORWARD, NULL);
            assert_true(launched(rank(&a, &w, &some, arena), at[k], FT_FORWARD, NULL) == unsorted + layers);
            assert_true(launched(rank(&a, &w, &all, arena), at[k], FT_FORWARD, NULL) == unsorted);
            assert_true(launched(rank(&a, &w, &once, arena), at[k], FT_FORWARD, NULL) == unsorted);
            double gone = launched(rank(&a, &w, &none, arena), at[k], FT_BACKWARD, NULL);
            assert_true(launched(rank(&a, &w, &some, arena), at[k], FT_BACKWARD, NULL) == gone + layers);
        }
    }
    ft__arch_release(&a);
    ft__arena_free(arena);
}

/* Experts without a gate run by the same kernels: their activation multiplies the weight in, nothing is masked. */
static void plain_experts_are_weighed_in_place(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16");
    ft_workload w = train_work(1, 1024);
    ft_parallel p = layout_of(1, 1, 1, 1, 1);
    const ft_graph *g = rank(&a, &w, &p, arena);
    double experts = launched(g, "moe.gate_up", FT_FORWARD, NULL);
    assert_true(experts > 0 && launched(g, "moe.act", FT_FORWARD, NULL) == experts);
    assert_true(launched(g, "moe.weigh", FT_FORWARD, NULL) == 0);
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (called(n, "moe.act", FT_FORWARD)) assert_string_equal(n->op.name, "relu2_weighed");
        assert_false(!strncmp(n->name, "moe.", 4) && !strcmp(n->op.name, "masked_fill"));
        assert_false(!strcmp(n->name, "moe.down") && n->op.dtype == FT_FP32); /* weights are, rows are not */
    }
    ft__arch_release(&a);
    ft__arena_free(arena);
}

/* -- recomputation ----------------------------------------------------------------------------- */

/* Forward tensors of so many columns that a gradient reads. */
static int32_t kept(const ft_graph *g, int64_t cols)
{
    int32_t count = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i].in_count && g->nodes[i].phase == FT_BACKWARD; k++) {
            const ft_tensor *t = &g->tensors[g->tensors[g->nodes[i].in[k]].storage];
            bool forward = t->block >= 0 && g->blocks[t->block].phase == FT_FORWARD && t->role == FT_ACTIVATION;
            count += forward && t->cols == cols;
        }
    return count;
}

/* A module's kernels run once more, and nothing else does. */
static void modules_run_again(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        ft_module module;
        const char *kernels[4];
    } cases[] = {
        {"gpt-oss-20b", FT_MODULE_LAYERNORM, {"attn.norm", "mlp.norm"}},
        {"gpt-oss-20b", FT_MODULE_MOE_ACT, {"moe.clamp", "moe.act"}},
        {"deepseek-v3", FT_MODULE_MLA_UP_PROJ, {"attn.q_b_proj", "attn.kv_b_proj", "attn.rotary"}},
        {"llama-3-8b", FT_MODULE_MLP, {"mlp.gate_up_proj", "mlp.act", "mlp.down_proj"}},
        {"llama-3-8b", FT_MODULE_MLA_UP_PROJ, {NULL}}, /* it has a rotary embedding, but no latents */
        {"llama-3-8b", FT_MODULE_MOE, {NULL}},
        {"llama-3-8b", FT_MODULE_CORE_ATTN, {NULL}}, /* fused attention has no scores */
        {"gpt-oss-20b", FT_MODULE_SHARED_EXPERTS, {NULL}},
    };
    ft_arena *arena = ft__arena_new(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_arch a = open_model(cases[i].model);
        ft_workload w = train_work(1, 1024);
        w.recompute = FT_RECOMPUTE_SELECTIVE;
        w.again = 1u << cases[i].module;
        ft_parallel p = layout_of(1, 1, 1, 1, 1);
        const ft_graph *g = rank(&a, &w, &p, arena);
        double again = 0, named = 0;
        for (int32_t k = 0; k < g->node_count; k++)
            if (g->nodes[k].phase == FT_RECOMPUTE && ft__node_runs(&g->nodes[k])) again += (double)g->nodes[k].count;
        for (int k = 0; k < 4 && cases[i].kernels[k]; k++) {
            double twice = launched(g, cases[i].kernels[k], FT_RECOMPUTE, NULL);
            assert_true(twice > 0 && twice == launched(g, cases[i].kernels[k], FT_FORWARD, NULL));
            named += twice;
        }
        if (again != named)
            fail_msg("%s, module %d: %.0f kernels run again, %.0f of them its own", cases[i].model, cases[i].module,
                     again, named);
        ft__arch_release(&a);
    }
    ft__arena_free(arena);
}

/* What runs again is not kept: activations of experts, queries, keys and values. */
static void what_runs_again_is_dropped(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_parallel p = layout_of(1, 1, 1, 1, 1);
    ft_workload w = train_work(1, 1024);
    ft_arch a = open_model("qwen3-30b-a3b"), b = open_model("deepseek-v3");
    assert_true(kept(rank(&a, &w, &p, arena), 768) > 0 && kept(rank(&b, &w, &p, arena), 192) > 0);
    w.recompute = FT_RECOMPUTE_SELECTIVE;
    w.again = 1u << FT_MODULE_MOE_ACT;
    const ft_graph *g = rank(&a, &w, &p, arena);
    assert_true(kept(g, 768) == 0 && kept(g, 2 * 768) > 0); /* what it is made of stays */
    w.again = 1u << FT_MODULE_MLA_UP_PROJ;
    g = rank(&b, &w, &p, arena);
    assert_true(kept(g, 192) == 0 && kept(g, 128 * 192) == 0 && kept(g, 1536) > 0);
    /* A mixture's layers have their exchanges again, and its dense ones are left alone. */
    w.again = 1u << FT_MODULE_MOE;
    ft_parallel spread = layout_of(1, 1, 1, 8, 8);
    g = rank(&b, &w, &spread, arena);
    assert_true(exchanged_bytes(g, FT_AXIS_EXPERT, FT_EXCHANGE_ALL_TO_ALL, FT_RECOMPUTE) ==
                exchanged_bytes(g, FT_AXIS_EXPERT, FT_EXCHANGE_ALL_TO_ALL, FT_FORWARD));
    assert_true(launched(g, "moe.gate_up", FT_RECOMPUTE, NULL) == launched(g, "moe.gate_up", FT_FORWARD, NULL));
    assert_true(launched(g, "mlp.down_proj", FT_RECOMPUTE, NULL) == launched(g, "moe.gate_up", FT_FORWARD, NULL));
    w.again = 1u << FT_MODULE_SHARED_EXPERTS;
    g = rank(&b, &w, &spread, arena);
    assert_true(launched(g, "moe.gate_up", FT_RECOMPUTE, NULL) == 0);
    assert_true(launched(g, "mlp.down_proj", FT_RECOMPUTE, NULL) == launched(g, "moe.gate_up", FT_FORWARD, NULL));
    ft__arch_release(&a);
    ft__arch_release(&b);
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latents_are_rotated_by_two_kernels),
        cmocka_unit_test(latents_are_kept_once),
        cmocka_unit_test(tensor_ranks_rotate_their_heads),
        cmocka_unit_test(routers_are_a_product_and_a_kernel),
        cmocka_unit_test(clamps_and_biases_are_pytorchs),
        cmocka_unit_test(arrivals_are_sorted),
        cmocka_unit_test(plain_experts_are_weighed_in_place),
        cmocka_unit_test(hosts_wait_for_counts),
        cmocka_unit_test(modules_run_again),
        cmocka_unit_test(what_runs_again_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
