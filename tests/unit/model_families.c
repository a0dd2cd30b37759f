/* What single architectures have of their own, as their builders make it: norms, routers, patterns of layers. */
#include <math.h>
#include <string.h>

#include "model_graphs.h"

#include "graph/emit.h"
#include "import/config/config.h"

static const ft_node *find(const ft_graph *g, const char *name, const char *op)
{
    for (int32_t i = 0; i < g->node_count; i++)
        if (!strcmp(g->nodes[i].name, name) && !strcmp(g->nodes[i].op.name, op)) return &g->nodes[i];
    return NULL;
}

/* transformers computes w + 1 before every norm and squares after relu; Transformer Engine's norm has the one in its
 * kernel, and Megatron-Core's squared relu is compiled. Under autocast the norm's class casts everything down
 * itself. */
static void nemotron_s_norms_and_squares(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_TRAIN, FT_SDPA);
    (void)state;
    ft_graph *g = graph_of("nemotron-4-15b", 2, &work, arena);
    const ft_node *one = find(g, "attn.norm", "addu");
    assert_non_null(one);
    assert_int_equal(one->op.u.elementwise.numel, 6144);
    assert_non_null(find(g, "mlp.act", "relu"));
    assert_non_null(find(g, "mlp.act", "powu"));
    double parameters = g->parameters;
    work.autocast = true;
    g = graph_of("nemotron-4-15b", 2, &work, arena);
    assert_int_equal(find(g, "mlp.norm", "layernorm")->op.dtype, FT_BF16);
    work.autocast = false;
    work.execution = FT_RUN_FUSED;
    g = graph_of("nemotron-4-15b", 2, &work, arena);
    assert_null(find(g, "attn.norm", "addu"));
    assert_null(find(g, "mlp.act", "powu"));
    assert_non_null(find(g, "mlp.act", "relu2"));
    assert_non_null(find(g, "mlp.act", "relu_backward"));
    assert_true(g->parameters == parameters);
    ft__arena_free(arena);
}

static double times(const ft_graph *g, const char *name, const char *op, ft_phase phase)
{
    double n = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t i = g->blocks[b].first; i < g->blocks[b].first + g->blocks[b].count; i++)
            if (g->nodes[i].phase == phase && !strcmp(g->nodes[i].name, name) && !strcmp(g->nodes[i].op.name, op))
                n += (double)g->nodes[i].count * (double)g->blocks[b].repeat;
    return n;
}

/* Seven layers of smollm3, of which every fourth is not rotated: one whole pattern and three rotated layers behind
 * it, as one block, or as runs where each layer counts. */
static void patterns_end_where_the_layers_do(void **state)
{
    static const ft_arch arch = {.model_type = "smollm3",
                                 .design = FT_DECODER_ONLY,
                                 .causal = true,
                                 .gated = true,
                                 .final_norm = true,
                                 .position = FT_ROTARY,
                                 .lm_head = true,
                                 .norm = FT_RMSNORM,
                                 .embed_scale = 1,
                                 .vocab = 1000,
                                 .hidden = 256,
                                 .ffn = 512,
                                 .layers = 7,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .head_dim = 64,
                                 .rotary_dim = 64,
                                 .turn_every = 4,
                                 .activation = "silu"};
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_FORWARD_PASS, FT_SDPA);
    ft_error err = {0};
    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        ft_graph *g = NULL;
        work.layers_apart = apart;
        assert_int_equal(FT_OK, ft__model_graph(&arch, &work, arena, &g, &err));
        assert_true(times(g, "attn.rotary", "neg", FT_FORWARD) == 2 * 6); /* queries and keys of all but the fourth */
        assert_true(times(g, "attn.o_proj", "linear", FT_FORWARD) == 7);
        assert_int_equal(apart ? 5 : 4, g->block_count);
    }
    ft__arena_free(arena);
}

/* transformers sends every token of llama4 through every expert; Megatron and engines route it to one. Beyond a chunk
 * attention sees half of it on the average; in decoding no more of the past than a chunk is kept. */
static void llama_4_routes_where_it_is_fused(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_FORWARD_PASS, FT_FLASH);
    (void)state;
    work.batch = 1;
    const ft_graph *plain = graph_of("llama-4-scout", 4, &work, arena);
    double parameters = plain->parameters, active = plain->active_parameters;
    const ft_node *n = find(plain, "moe.gate_up", "bmm");
    assert_true(n && n->op.u.gemm.b == 16 && n->op.u.gemm.m == 1024);
    assert_true(times(plain, "attn.temperature", "mul", FT_FORWARD) == 1); /* one layer in four is not rotated */
    assert_true(times(plain, "attn.rotary", "mul", FT_FORWARD) == 2 * 3);
    work.execution = FT_RUN_FUSED;
    const ft_graph *fused = graph_of("llama-4-scout", 4, &work, arena);
    n = find(fused, "moe.gate_up", "bmm");
    assert_true(n && n->op.u.gemm.b == 16 && n->op.u.gemm.m == 64); /* its even share */
    assert_true(fused->parameters == parameters && fabs(fused->active_parameters / active - 1) < 1e-9);
    work.seq = 16384;
    int narrow = 0, wide = 0;
    const ft_graph *g = graph_of("llama-4-scout", 4, &work, arena);
    for (int32_t i = 0; i < g->node_count; i++) {
        if (g->nodes[i].verb != FT_DO_ATTENTION) continue;
        narrow += g->nodes[i].op.u.attention.window == 4096;
        wide += g->nodes[i].op.u.attention.window == 0;
    }
    assert_true(narrow == 3 && wide == 1);
    ft_arch arch;
    ft_error err = {0};
    ft_graph *none = NULL;
    assert_int_equal(FT_OK, ft__model_open("llama-4-scout", NULL, &arch, &err));
    arch.experts = (int64_t)1 << 31;
    work.execution = FT_RUN_EAGER;
    work.batch = work.seq = 1000000;
    assert_int_equal(FT_E_RANGE, ft__model_forward(&arch, &work, arena, &none, &err));
    assert_non_null(strstr(err.message, "too large for any machine"));
    ft__arena_free(arena);
}

/* Phi's router picks two experts one after the other, with noise on its input while it trains; others take the best
 * two at once. */
static void phi_picks_experts_one_by_one(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_TRAIN, FT_SDPA);
    (void)state;
    const ft_graph *g = graph_of("phi-3.5-moe", 2, &work, arena);
    assert_true(times(g, "moe.mixer", "softmax", FT_FORWARD) == 2 * 2);
    assert_true(times(g, "moe.jitter", "mul", FT_FORWARD) == 2 * 2);
    double drawn = times(g, "moe.mixer", "copy", FT_FORWARD);
    work.task = FT_FORWARD_PASS;
    g = graph_of("phi-3.5-moe", 2, &work, arena);
    assert_true(times(g, "moe.jitter", "mul", FT_FORWARD) == 0);
    assert_true(times(g, "moe.mixer", "copy", FT_FORWARD) < drawn);
    work.execution = FT_RUN_FUSED;
    assert_null(find(graph_of("phi-3.5-moe", 2, &work, arena), "moe.mixer", "softmax"));
    ft__arena_free(arena);
}

static double parameters_by(const ft_arch *arch, ft_task task, ft_execution execution, ft_arena *arena)
{
    ft_workload work = work_of(task, FT_FLASH);
    ft_error err = {0};
    ft_graph *g = NULL;
    work.execution = execution;
    work.cache = FT_CACHE_PAGED;
    if (arch->reversible) work.seq = arch->max_position; /* it trains on no other */
    if (ft__model_graph(arch, &work, arena, &g, &err) != FT_OK) fail_msg("%s: %s", arch->model_type, err.message);
    return g->parameters;
}

/* Whoever's kernels run: plain ones, Megatron's, a serving engine's. */
static void kernels_change_no_weights(void **state)
{
    size_t count = ft__config_type_count();
    ft_arena *arena = ft__arena_new(0);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        ft_arch arch;
        ft_error err = {0};
        if (!strcmp(ft__config_type_at(i), "pix2struct_text_model")) continue; /* never by itself */
        json_t *config = json_pack("{s:s, s:i, s:i, s:i}", "model_type", ft__config_type_at(i), "num_hidden_layers", 4,
                                   "head_dim", 64, "num_experts_per_tok", 2);
        if (ft__config_read(config, NULL, "", &arch, &err) != FT_OK)
            fail_msg("%s: %s", ft__config_type_at(i), err.message);
        json_decref(config);
        if (arch.design != FT_DECODER_ONLY) continue;
        if (arch.canvas > 0) continue;               /* neither trained nor served here */
        arch.vocab = (arch.vocab + 127) / 128 * 128; /* Megatron fills words up */
        double plain = parameters_by(&arch, FT_TRAIN, FT_RUN_EAGER, arena);
        double megatron = parameters_by(&arch, FT_TRAIN, FT_RUN_FUSED, arena);
        bool served = !arch.bidirectional && arch.bytes.group < 1;
        double engine = served ? parameters_by(&arch, FT_PREFILL, FT_RUN_FUSED, arena) : plain;
        if (plain != megatron || plain != engine)
            fail_msg("%s: %.0f parameters, by Megatron %.0f, by an engine %.0f", ft__config_type_at(i), plain, megatron,
                     engine);
        ft__arena_reset(arena);
    }
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nemotron_s_norms_and_squares),     cmocka_unit_test(patterns_end_where_the_layers_do),
        cmocka_unit_test(llama_4_routes_where_it_is_fused), cmocka_unit_test(phi_picks_experts_one_by_one),
        cmocka_unit_test(kernels_change_no_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
