/* What ranks do adds up to what the model does. */
#include "layout_models.h"

static double all_stages(const ft_arch *a, const ft_workload *w, const ft_parallel *p, ft_arena *arena,
                         double *parameters)
{
    double flops = 0;
    *parameters = 0;
    for (int64_t s = 0; s < p->pp; s++) {
        ft_stage stage = rank_of(a, w, p, s, arena);
        flops += contractions(stage.g, false);
        *parameters += stage.g->parameters;
    }
    return flops;
}

/* -- arithmetic -------------------------------------------------------------------------------- */

static void ranks_do_the_models_arithmetic(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int64_t tp, pp, cp, ep;
        bool sp, ulysses;
        double replicated; /* how much more than the model, at most: heads of keys, routers, latents on every rank */
    } cases[] = {
        {"gpt2-xl", 5, 1, 1, 1, false, false, 0.01},         {"gpt3-6.7b", 8, 4, 1, 1, true, false, 0.01},
        {"llama-3-8b", 2, 1, 1, 1, false, false, 0.01},      {"llama-3-8b", 8, 2, 2, 1, true, false, 0.01},
        {"llama-3-8b", 1, 1, 8, 1, false, false, 0.01},      {"llama-3-8b", 2, 1, 4, 1, false, true, 0.01},
        {"llama-3-8b", 16, 1, 1, 1, true, false, 0.12},      {"qwen2.5-7b", 4, 2, 1, 1, false, false, 0.01},
        {"qwen3-30b-a3b", 1, 1, 1, 8, false, false, 0.01},   {"qwen3-30b-a3b", 4, 2, 1, 8, true, false, 0.01},
        {"qwen3-30b-a3b", 2, 1, 2, 4, false, false, 0.02},   {"mixtral-8x7b", 2, 2, 1, 8, true, false, 0.01},
        {"deepseek-v2-lite", 4, 1, 1, 8, true, false, 0.02}, {"deepseek-v3", 8, 16, 1, 8, true, false, 0.02},
        {"bert-large", 4, 2, 1, 1, false, false, 0.04},      {"bert-large", 4, 2, 1, 1, true, false, 0.02},
        {"gemma-2-9b", 4, 2, 1, 1, true, false, 0.01},       {"gpt-neox-20b", 8, 4, 1, 1, true, false, 0.01},
        {"falcon-40b", 8, 4, 1, 1, false, false, 0.01},      {"olmo-2-7b", 4, 1, 2, 1, true, false, 0.01},
        {"phi-3-medium", 2, 2, 1, 1, true, false, 0.01},     {"gpt-oss-20b", 4, 2, 1, 8, true, false, 0.03},
        {"starcoder2-15b", 4, 2, 1, 1, false, false, 0.01},  {"bloom-7b1", 8, 2, 1, 1, true, false, 0.01},
    };
    static const ft_execution ways[] = {FT_RUN_FUSED, FT_RUN_EAGER};
    ft_arena *arena = ft__arena_new(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            ft__arena_reset(arena);
            ft_arch a = open_model(cases[i].model);
            ft_workload w = train_work(2, strstr(cases[i].model, "bert") ? 512 : 2048);
            if (!strcmp(cases[i].model, "gpt2-xl")) w.seq = 1024;
            w.execution = ways[k];
            ft_parallel alone = layout_of(1, 1, 1, 1, 1);
            ft_parallel p = layout_of(cases[i].tp, cases[i].pp, cases[i].cp, cases[i].ep, 8);
            p.sp = cases[i].sp;
            p.context = cases[i].ulysses ? FT_CONTEXT_ULYSSES : FT_CONTEXT_RING;
            double whole_parameters, part_parameters;
            double whole = all_stages(&a, &w, &alone, arena, &whole_parameters);
            double parts = all_stages(&a, &w, &p, arena, &part_parameters) * (double)(p.tp * p.cp);
            double ratio = parts / whole;
            if (!(ratio > 0.995 && ratio < 1.005 + cases[i].replicated))
                fail_msg("%s tp %lld pp %lld cp %lld ep %lld %s: %.4f of the model's arithmetic", cases[i].model,
                         (long long)p.tp, (long long)p.pp, (long long)p.cp, (long long)p.ep, k ? "eager" : "fused",
                         ratio);
            ft__arch_release(&a);
        }
    ft__arena_free(arena);
}

/* -- parameters -------------------------------------------------------------------------------- */

static void parameters_are_cut_where_they_can_be(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("llama-3-8b");
    ft_workload w = train_work(1, 4096);
    double h = 4096, ffn = 14336, kv = 1024, layers = 32, vocab = 128256;
    for (int64_t tp = 1; tp <= 32; tp *= 2)
        for (int amp = 0; amp < 2; amp++) {
            ft__arena_reset(arena);
            w.autocast = amp;
            w.master_weights = !amp;
            w.execution = amp ? FT_RUN_EAGER : FT_RUN_FUSED;
            ft_parallel p = layout_of(tp, 1, 1, 1, 1);
            ft_stage s = rank_of(&a, &w, &p, 0, arena);
            double t = (double)tp, heads = kv / fmin(t, 8); /* eight heads of keys: held twice by sixteen ranks */
            double layer = h * h / t * 2 + 2 * h * heads + 3 * h * ffn / t + 2 * h;
            double expected = layers * layer + 2 * ceil(vocab / t) * h + h;
            if (fabs(s.g->parameters / expected - 1) > 1e-4)
                fail_msg("tp %d amp %d: %.0f parameters instead of %.0f", (int)tp, amp, s.g->parameters, expected);
            if (tp > 1) assert_true(s.replicated == layers * 2 * h + h); /* the norms */
        }
    /* Experts are spread over expert ranks and cut over tensor ranks. */
    ft_arch moe = open_model("mixtral-8x7b");
    w = train_work(1, 4096);
    ft_parallel p = layout_of(2, 1, 1, 4, 4);
    ft_stage s = rank_of(&moe, &w, &p, 0, arena);
    assert_true(fabs(s.expert / (32.0 * 8 * 3 * 4096 * 14336 / 8) - 1) < 1e-6);
    /* Over two stages a tied table is held twice, its words filled up to 128. */
    ft_arch tied = open_model("gpt2");
    w.seq = 1024;
    ft_parallel two = layout_of(1, 2, 1, 1, 1), one = layout_of(1, 1, 1, 1, 1);
    double parts = rank_of(&tied, &w, &two, 0, arena).g->parameters + rank_of(&tied, &w, &two, 1, arena).g->parameters;
    double whole = rank_of(&tied, &w, &one, 0, arena).g->parameters;
    assert_true(parts == whole + 50304.0 * 768);
    ft__arch_release(&a);
    ft__arch_release(&moe);
    ft__arch_release(&tied);
    ft__arena_free(arena);
}

/* -- exchanges --------------------------------------------------------------------------------- */

static void exchanges_are_megatrons(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("gpt3-6.7b");
    double layers = 32, bsh = 2.0 * 2048 * 4096 * 2;
    for (int eager = 0; eager < 2; eager++) {
        ft_workload w = train_work(2, 2048);
        if (eager) w.execution = FT_RUN_EAGER;
        ft_parallel p = layout_of(8, 1, 1, 1, 1);
        ft_graph *g = (ft_graph *)(uintptr_t)rank_of(&a, &w, &p, 0, arena).g;
        /* Two all-reduces going forward, two going back; the embedding's going forward, the head's going back. */
        double there = exchanged_bytes(g, FT_AXIS_TENSOR, FT_EXCHANGE_ALL_REDUCE, FT_FORWARD);
        double back = exchanged_bytes(g, FT_AXIS_TENSOR, FT_EXCHANGE_ALL_REDUCE, FT_BACKWARD);
        assert_true(there == (2 * layers + 1) * bsh);
        assert_true(back == (2 * layers + 1) * bsh);
        /* Sequence parallelism: each becomes a gathering and a scattering of as much. */
        p.sp = true;
        g = (ft_graph *)(uintptr_t)rank_of(&a, &w, &p, 0, arena).g;
        double gathered = exchanged_bytes(g, FT_AXIS_TENSOR, FT_EXCHANGE_ALL_GATHER, FT_FORWARD);
        double scattered = exchanged_bytes(g, FT_AXIS_TENSOR, FT_EXCHANGE_REDUCE_SCATTER, FT_FORWARD);
        assert_true(gathered == (2 * layers + 1) * bsh && scattered == gathered);
        assert_true(exchanged_bytes(g, FT_AXIS_TENSOR, FT_EXCHANGE_ALL_GATHER, FT_BACKWARD) == scattered);
        assert_true(exchanged_bytes(g, FT_AXIS_TENSOR, FT_EXCHANGE_REDUCE_SCATTER, FT_BACKWARD) == gathered);
        assert_true(exchanged_bytes(g, FT_AXIS_TENSOR, FT_EXCHANGE_ALL_REDUCE, FT_FORWARD) == 0);
        /* Recomputing whole layers repeats their exchanges, in PyTorch but the last one. Megatron's selective
         * recomputation repeats none, PyTorch's the sum behind the second product. */
        p.sp = false;
        w.recompute = FT_RECOMPUTE_FULL;
        g = (ft_graph *)(uintptr_t)rank_of(&a, &w, &p, 0, arena).g;
        double again = exchanged_bytes(g, FT_AXIS_TENSOR, FT_EXCHANGE_ALL_REDUCE, FT_RECOMPUTE);
        assert_true(again == (eager ? 1 : 2) * layers * bsh);
        w.recompute = FT_RECOMPUTE_SELECTIVE;
        w.attention = FT_EAGER;
        g = (ft_graph *)(uintptr_t)rank_of(&a, &w, &p, 0, arena).g;
        again = exchanged_bytes(g, FT_AXIS_TENSOR, FT_EXCHANGE_ALL_REDUCE, FT_RECOMPUTE);
        assert_true(again == (eager ? 1 : 0) * layers * bsh);
        assert_true(contractions(g, true) > 0);
        /* What was scattered is on the list of what is saved, what was gathered is not. */
        p.sp = true;
        g = (ft_graph *)(uintptr_t)rank_of(&a, &w, &p, 0, arena).g;
        assert_true(exchanged_bytes(g, FT_AXIS_TENSOR, FT_EXCHANGE_REDUCE_SCATTER, FT_RECOMPUTE) == 0);
        gathered = exchanged_bytes(g, FT_AXIS_TENSOR, FT_EXCHANGE_ALL_GATHER, FT_RECOMPUTE);
        assert_true(gathered == (eager ? 2 : 0) * layers * bsh);
    }
    ft__arch_release(&a);
    ft__arena_free(arena);
}

static double merged_launches(const ft_graph *g, ft_phase phase)
{
    double launches = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t i = g->blocks[b].first; i < g->blocks[b].first + g->blocks[b].count; i++)
            if (!strcmp(g->nodes[i].name ? g->nodes[i].name : "", "attn.merge_parts") && g->nodes[i].phase == phase)
                launches += (double)g->nodes[i].count * (double)g->blocks[b].repeat;
    return launches;
}

/* What one layer's merging moves. */
static double merged_bytes(const ft_graph *g, ft_phase phase)
{
    double bytes = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        if (!strcmp(g->nodes[i].name ? g->nodes[i].name : "", "attn.merge_parts") && g->nodes[i].phase == phase)
            bytes += (double)g->nodes[i].count * g->nodes[i].op.u.other.bytes;
    return bytes;
}

/* Attention's workspace of a phase, and that of its exchanges. */
static void workspaces(const ft_graph *g, ft_phase phase, double *attention, double *exchange)
{
    *attention = *exchange = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->phase != phase) continue;
        if (n->verb == FT_DO_ATTENTION) *attention = fmax(*attention, n->workspace);
        if (n->verb == FT_DO_COMM && n->exchange.axis == FT_AXIS_CONTEXT) *exchange = fmax(*exchange, n->workspace);
    }
}

/* Whatever brings the keys, the pairs are the same. */
static void kinds_of_context_differ_in_what_travels(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("llama-3-8b");
    ft_workload w = train_work(1, 8192);
    ft_parallel p = layout_of(2, 1, 4, 1, 1);
    double flops[FT_CONTEXT_COUNT], held, passing;
    double keys = 32.0 * 2 * 8192 * 1024 / 2 * 2; /* keys and values of all tokens, this rank's heads, all layers */
    for (int kind = 0; kind < FT_CONTEXT_COUNT; kind++) {
        p.context = (ft_context_kind)kind;
        const ft_graph *g = rank_of(&a, &w, &p, 0, arena).g;
        flops[kind] = contractions(g, false);
        double gathered = exchanged_bytes(g, FT_AXIS_CONTEXT, FT_EXCHANGE_ALL_GATHER, FT_FORWARD);
        double again = exchanged_bytes(g, FT_AXIS_CONTEXT, FT_EXCHANGE_ALL_GATHER, FT_BACKWARD);
        double scattered = exchanged_bytes(g, FT_AXIS_CONTEXT, FT_EXCHANGE_REDUCE_SCATTER, FT_BACKWARD);
        double sent = exchanged_bytes(g, FT_AXIS_CONTEXT, FT_EXCHANGE_SEND_RECV, FT_BACKWARD);
        bool pytorch = kind == FT_CONTEXT_PYTORCH, trades = kind == FT_CONTEXT_ULYSSES;
        double heads = pytorch ? 4 : 1; /* of queries to one of keys: repeated before they are sent */
        assert_true(gathered == (trades ? 0 : heads * keys));
        assert_true(again == (pytorch ? heads * keys : 0));
        assert_true(scattered == (trades || pytorch ? 0 : 2 * keys)); /* they travel again, with their gradients */
        assert_true(sent == (pytorch ? 2 * heads * keys : 0));        /* fp32, a quarter in each of four steps */
        /* PyTorch merges three results. Transformer Engine copies the keys, scales the first, adds three, and does the
         * same with their statistics. */
        double merges = pytorch ? 3 : kind == FT_CONTEXT_RING ? 9 : 0, q = 2 * 2048 * 2048, kv = q / 2;
        assert_true(merged_launches(g, FT_FORWARD) == 32 * merges);
        assert_true(merged_launches(g, FT_BACKWARD) == 32 * merges);
        if (kind == FT_CONTEXT_RING) {
            assert_true(merged_bytes(g, FT_FORWARD) == 11 * q + 2 * kv);
            assert_true(fabs(merged_bytes(g, FT_BACKWARD) / (11 * q + 13 * kv) - 1) < 1e-6);
        }
        workspaces(g, FT_FORWARD, &held, &passing);
        bool whole = pytorch || kind == FT_CONTEXT_GATHER; /* while attention runs; of a ring two of four parts */
        assert_true(held == (whole ? heads * keys / 32 : 0));
        assert_true(passing == (kind == FT_CONTEXT_RING ? keys / 32 / 2 / 2 : 0));
        workspaces(g, FT_BACKWARD, &held, &passing);
        assert_true(held >= (whole ? heads * keys / 32 : 0));
    }
    for (int kind = 1; kind < FT_CONTEXT_COUNT; kind++) assert_true(fabs(flops[kind] / flops[0] - 1) < 0.002);
    /* One context rank sends nothing, and has nothing to merge. */
    p = layout_of(2, 1, 1, 1, 1);
    p.context = FT_CONTEXT_PYTORCH;
    const ft_graph *g = rank_of(&a, &w, &p, 0, arena).g;
    assert_true(merged_launches(g, FT_FORWARD) == 0);
    assert_true(exchanged_bytes(g, FT_AXIS_CONTEXT, FT_EXCHANGE_ALL_GATHER, FT_FORWARD) == 0);
    ft__arch_release(&a);
    ft__arena_free(arena);
}

static void keys_travel_and_tokens_visit_experts(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("llama-3-8b");
    ft_workload w = train_work(1, 8192);
    ft_parallel p = layout_of(2, 1, 4, 1, 1);
    const ft_graph *g = rank_of(&a, &w, &p, 0, arena).g;
    double keys = 32.0 * 2 * 8192 * 1024 / 2 * 2; /* keys and values of all tokens, this rank's heads */
    assert_true(exchanged_bytes(g, FT_AXIS_CONTEXT, FT_EXCHANGE_ALL_GATHER, FT_FORWARD) == keys);
    assert_true(exchanged_bytes(g, FT_AXIS_CONTEXT, FT_EXCHANGE_REDUCE_SCATTER, FT_BACKWARD) == 2 * keys);
    p.context = FT_CONTEXT_ULYSSES;
    g = rank_of(&a, &w, &p, 0, arena).g;
    double all = 32.0 * (8192 / 4) * (2 * 4096 + 2 * 1024) / 2 * 2; /* queries, keys, values, results */
    assert_true(exchanged_bytes(g, FT_AXIS_CONTEXT, FT_EXCHANGE_ALL_TO_ALL, FT_FORWARD) == all);
    assert_true(exchanged_bytes(g, FT_AXIS_CONTEXT, FT_EXCHANGE_ALL_TO_ALL, FT_BACKWARD) == all);
    /* Experts: there and back, twice. */
    ft_arch moe = open_model("qwen3-30b-a3b");
    w = train_work(1, 4096);
    p = layout_of(1, 1, 1, 8, 8);
    g = rank_of(&moe, &w, &p, 0, arena).g;
    double routed = 48.0 * 2 * 4096 * 8 * 2048 * 2;
    assert_true(exchanged_bytes(g, FT_AXIS_EXPERT, FT_EXCHANGE_ALL_TO_ALL, FT_FORWARD) == routed);
    assert_true(exchanged_bytes(g, FT_AXIS_EXPERT, FT_EXCHANGE_ALL_TO_ALL, FT_BACKWARD) == routed);
    /* Cut over two tensor ranks, an expert's tokens are gathered by both; whole, a rank sends its own half of them. */
    p = layout_of(2, 1, 1, 4, 4);
    p.sp = true;
    ft_stage cut = rank_of(&moe, &w, &p, 0, arena);
    double gathered = exchanged_bytes(cut.g, FT_AXIS_TENSOR, FT_EXCHANGE_ALL_GATHER, FT_FORWARD);
    assert_true(exchanged_bytes(cut.g, FT_AXIS_EXPERT, FT_EXCHANGE_ALL_TO_ALL, FT_FORWARD) == routed / 2);
    p.ep = 8;
    p.etp = 1;
    ft_stage whole = rank_of(&moe, &w, &p, 0, arena);
    assert_true(exchanged_bytes(whole.g, FT_AXIS_EXPERT, FT_EXCHANGE_ALL_TO_ALL, FT_FORWARD) == routed / 2);
    assert_true(exchanged_bytes(whole.g, FT_AXIS_TENSOR, FT_EXCHANGE_ALL_GATHER, FT_FORWARD) < 0.5 * gathered);
    assert_true(fabs(whole.expert / cut.expert - 1) < 1e-9); /* an eighth of the experts, or a quarter cut in two */
    ft__arch_release(&a);
    ft__arch_release(&moe);
    ft__arena_free(arena);
}

/* -- activations ------------------------------------------------------------------------------- */

/* Korthikanti et al. 2022, table 2: bytes of one layer, over s b h. */
static void activations_are_korthikantis(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_device a100 = limit_device("a100_sxm_80gb");
    ft_arch a = open_model("gpt3-175b");
    a.embed_dropout = a.attention_dropout = a.residual_dropout = a.mlp_dropout = 0.1;
    double s = 2048, h = 12288, heads = 96, t = 8, scores = 5 * heads * s / h;
    const struct {
        int64_t tp;
        bool sp;
        ft_recompute recompute;
        double expected;
    } cases[] = {{1, false, FT_RECOMPUTE_NONE, 34 + scores},
                 {8, false, FT_RECOMPUTE_NONE, 10 + (24 + scores) / t},
                 {8, true, FT_RECOMPUTE_NONE, (34 + scores) / t},
                 {8, false, FT_RECOMPUTE_SELECTIVE, 10 + 24 / t},
                 {8, true, FT_RECOMPUTE_SELECTIVE, 34 / t}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double bytes[2];
        for (int k = 0; k < 2; k++) { /* what two more layers add */
            ft__arena_reset(arena);
            a.layers = 4 + 2 * k;
            ft_workload w = train_work(1, 2048);
            w.attention = FT_EAGER;
            w.recompute = cases[i].recompute;
            ft_parallel p = layout_of(cases[i].tp, 1, 1, 1, 1);
            p.sp = cases[i].sp;
            ft_stage stage = rank_of(&a, &w, &p, 0, arena);
            ft_memory m;
            assert_int_equal(ft__step_memory(stage.g, &w, &a100, &m, NULL), FT_OK);
            bytes[k] = m.activations_bytes;
        }
        double found = (bytes[1] - bytes[0]) / 2 / (s * h);
        if (fabs(found / cases[i].expected - 1) > 0.01)
            fail_msg("tp %lld sp %d recompute %d: %.2f s b h, expected %.2f", (long long)cases[i].tp, cases[i].sp,
                     cases[i].recompute, found, cases[i].expected);
    }
    ft__arch_release(&a);
    ft__arena_free(arena);
}

/* -- inference --------------------------------------------------------------------------------- */

static double cache_bytes(const ft_graph *g)
{
    double sum = 0;
    for (int32_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].role == FT_CACHE && g->tensors[i].storage == i)
            sum += ft__tensor_bytes(&g->tensors[i]) * (double)g->tensors[i].copies;
    return sum;
}

static void caches_are_split_by_heads(void **state)
{
    (void)state;
    static const ft_cache_kind kinds[] = {FT_CACHE_PAGED, FT_CACHE_STATIC, FT_CACHE_DYNAMIC};
    static const ft_execution ways[] = {FT_RUN_FUSED, FT_RUN_EAGER};
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("llama-3-8b"), moe = open_model("mixtral-8x7b"), latent = open_model("deepseek-v2-lite");
    for (int task = FT_PREFILL; task <= FT_DECODE; task++)
        for (size_t i = 0; i < 3; i++)
            for (size_t k = 0; k < 2; k++) {
                ft__arena_reset(arena);
                ft_workload w = train_work(4, 1024);
                w.task = (ft_task)task;
                w.master_weights = false;
                w.cache = kinds[i];
                w.execution = ways[k];
                ft_parallel one = layout_of(1, 1, 1, 1, 1), four = layout_of(4, 1, 1, 1, 1),
                            many = layout_of(16, 1, 1, 1, 1);
                const ft_graph *whole = rank_of(&a, &w, &one, 0, arena).g, *part = rank_of(&a, &w, &four, 0, arena).g;
                assert_true(cache_bytes(part) == cache_bytes(whole) / 4);
                assert_true(cache_bytes(rank_of(&a, &w, &many, 0, arena).g) == cache_bytes(whole) / 8);
                double ratio = 4 * contractions(part, false) / contractions(whole, false);
                if (fabs(ratio - 1) > 0.01) fail_msg("task %d cache %d: %.3f", task, (int)i, ratio);
                whole = rank_of(&moe, &w, &one, 0, arena).g;
                part = rank_of(&moe, &w, &four, 0, arena).g;
                ratio = 4 * contractions(part, false) / contractions(whole, false);
                if (fabs(ratio - 1) > 0.02)
                    fail_msg("experts, task %d cache %d way %d: %.3f", task, (int)i, (int)k, ratio);
                whole = rank_of(&latent, &w, &one, 0, arena).g;
                part = rank_of(&latent, &w, &four, 0, arena).g;
                assert_true(cache_bytes(part) == cache_bytes(whole)); /* one latent for all heads */
            }
    ft__arch_release(&a);
    ft__arch_release(&moe);
    ft__arch_release(&latent);
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_do_the_models_arithmetic),
        cmocka_unit_test(parameters_are_cut_where_they_can_be),
        cmocka_unit_test(exchanges_are_megatrons),
        cmocka_unit_test(keys_travel_and_tokens_visit_experts),
        cmocka_unit_test(kinds_of_context_differ_in_what_travels),
        cmocka_unit_test(activations_are_korthikantis),
        cmocka_unit_test(caches_are_split_by_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
