/* Layers over stages and chunks: as Megatron deals them out, none lost, and every chunk with what is its own. */
#include "layout_models.h"

#include <string.h>

/* Llama 3.1 405B as Megatron-Bridge and torchtitan run it: 126 layers, embedding and loss as one each. */
static void layers_are_dealt_as_megatron_does(void **state)
{
    (void)state;
    static const struct {
        int64_t layers, places, first, second, last;
        ft_deal deal;
    } cases[] = {
        {126, 64, 1, 2, 1, FT_DEAL_ENDS}, {126, 32, 3, 4, 3, FT_DEAL_ENDS},   {126, 128, 0, 1, 0, FT_DEAL_ENDS},
        {126, 16, 7, 8, 7, FT_DEAL_ENDS}, {126, 8, 15, 16, 15, FT_DEAL_ENDS}, {126, 18, 7, 7, 7, FT_DEAL_EVEN},
        {80, 20, 4, 4, 4, FT_DEAL_EVEN},  {47, 16, 3, 3, 2, FT_DEAL_LOSS},    {32, 33, 1, 1, 0, FT_DEAL_LOSS},
        {30, 4, 7, 8, 7, FT_DEAL_ENDS},   {32, 5, 7, 7, 6, FT_DEAL_FRONT},    {126, 1, 126, 0, 126, FT_DEAL_EVEN},
        {6, 4, 1, 2, 1, FT_DEAL_ENDS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t layers = cases[i].layers, places = cases[i].places, at = 0, from, to;
        assert_int_equal(ft__layout_deal(layers, places, false), cases[i].deal);
        for (int64_t p = 0; p < places; p++) {
            ft__layout_range(layers, places, false, p, &from, &to);
            assert_int_equal(from, at); /* one after the other, nothing twice */
            assert_true(to >= from);
            if (p == 0) assert_int_equal(to - from, cases[i].first);
            if (p == 1) assert_int_equal(to - from, cases[i].second);
            if (p == places - 1) assert_int_equal(to - from, cases[i].last);
            at = to;
        }
        assert_int_equal(at, layers);
    }
    /* Every number of layers over every number of places: all of them, and no place two apart from another. */
    for (int64_t layers = 1; layers <= 130; layers++)
        for (int64_t places = 1; places <= layers + 2; places++) {
            int64_t at = 0, from, to, least = layers, most = 0;
            for (int64_t p = 0; p < places; p++) {
                ft__layout_range(layers, places, false, p, &from, &to);
                assert_int_equal(from, at);
                at = to;
                if (to - from < least) least = to - from;
                if (to - from > most) most = to - from;
            }
            assert_int_equal(at, layers);
            if (most - least > 1) fail_msg("%lld layers, %lld places", (long long)layers, (long long)places);
        }
}

/* DeepSeek-V3 as Megatron-Bridge runs it: 61 layers over 16 places, fifteen times four and one. */
static void the_last_takes_what_remains(void **state)
{
    (void)state;
    int64_t from, to;
    assert_int_equal(ft__layout_deal(61, 16, true), FT_DEAL_REST);
    assert_int_equal(ft__layout_deal(64, 16, true), FT_DEAL_EVEN);  /* where they divide, they do */
    assert_int_equal(ft__layout_deal(33, 16, true), FT_DEAL_FRONT); /* five places would have none */
    for (int64_t layers = 1; layers <= 130; layers++)
        for (int64_t places = 2; places <= layers; places++) {
            int64_t at = 0, first = 0;
            for (int64_t p = 0; p < places; p++) {
                ft__layout_range(layers, places, true, p, &from, &to);
                assert_int_equal(from, at);
                if (p == 0) first = to - from;
                bool rest = ft__layout_deal(layers, places, true) == FT_DEAL_REST;
                if (rest) assert_true(p + 1 < places ? to - from == first : to > from && to - from < first);
                at = to;
            }
            assert_int_equal(at, layers);
        }
}

/* Every stage keeps its layers, however few and however they come, and its chunks run all of them. */
static void stages_share_all_layers(void **state)
{
    (void)state;
    static const char *const models[] = {"llama-3-8b", "deepseek-v2-lite", "gemma-2-9b", "gemma-3-12b", "gpt-oss-20b"};
    enum { BLOCKS = 16, CHUNKS = 12 };
    ft_arena *arena = ft__arena_new(0);
    int interleaved = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        ft_arch a = open_model(models[i]);
        ft_workload w = train_work(1, 1024);
        for (int64_t pp = 1; pp <= 12; pp++)
            for (int64_t vpp = 1; vpp <= (pp > 1 ? CHUNKS : 1); vpp++) {
                ft_parallel p = layout_of(1, pp, 1, 1, 1);
                p.vpp = vpp;
                p.schedule = vpp > 1 ? FT_INTERLEAVED : FT_1F1B;
                ft_divisible model = ft__ranks_model(&a, &w);
                ft_error err;
                if (vpp > 1 && ft__parallel_check(&p, &model, &err) != FT_OK) continue;
                ft_graph *g = NULL;
                ft__arena_reset(arena);
                assert_int_equal(ft__model_forward(&a, &w, arena, &g, NULL), FT_OK);
                int64_t sums[BLOCKS] = {0}, kept[BLOCKS];
                double parts[BLOCKS * CHUNKS];
                bool refused = false;
                assert_true(g->block_count <= BLOCKS);
                for (int64_t s = 0; s < pp && !refused; s++) {
                    refused = ft__layout_shares(g, &p, s, kept, parts, &err) != FT_OK;
                    for (int32_t b = 0; b < g->block_count && !refused; b++) {
                        double whole = 0;
                        sums[b] += kept[b];
                        for (int64_t c = 0; c < vpp; c++) whole += parts[c * g->block_count + b];
                        if (kept[b] > 0) assert_true(fabs(whole - 1) < 1e-12);
                    }
                }
                if (refused) { /* a pattern of six layers cannot be taken apart */
                    assert_string_equal(models[i], "gemma-3-12b");
                    assert_true(pp > a.layers / 6);
                    continue;
                }
                interleaved += vpp > 1;
                for (int32_t b = 0; b < g->block_count; b++) assert_int_equal(sums[b], g->blocks[b].repeat);
            }
        ft__arch_release(&a);
    }
    assert_true(interleaved > 30);
    ft__arena_free(arena);
}

/* A chunk is a row of neighbours: DeepSeek's first layer, the only dense one, is the first chunk's alone. */
static void a_chunk_has_its_own_kinds_of_layers(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch a = open_model("deepseek-v2-lite"); /* 27 layers: one dense, 26 with experts */
    ft_workload w = train_work(1, 1024);
    ft_parallel p = layout_of(1, 3, 1, 1, 1);
    p.vpp = 3;
    p.schedule = FT_INTERLEAVED;
    ft_stage s = rank_of(&a, &w, &p, 0, arena);
    int dense = -1, experts = -1, embed = -1;
    for (int32_t b = 0; b < s.g->block_count; b++) {
        if (s.g->blocks[b].phase != FT_FORWARD) continue;
        bool layers = !strncmp(s.g->blocks[b].name, "layers", 6);
        if (layers && s.g->blocks[b].repeat == 1) dense = b;
        if (layers && s.g->blocks[b].repeat > 1) experts = b;
        if (!layers) embed = b;
    }
    assert_true(dense >= 0 && experts >= 0 && embed >= 0);
    assert_int_equal(s.g->blocks[experts].repeat, 8);
    assert_int_equal(s.chunks.count, 3);
    static const double of_dense[] = {1, 0, 0}, of_experts[] = {2.0 / 8, 3.0 / 8, 3.0 / 8};
    for (int64_t c = 0; c < 3; c++) {
        assert_true(ft__chunk_part(&s.chunks, s.g, c, dense) == of_dense[c]);
        assert_true(ft__chunk_part(&s.chunks, s.g, c, embed) == of_dense[c]);
        assert_true(fabs(ft__chunk_part(&s.chunks, s.g, c, experts) - of_experts[c]) < 1e-12);
    }
    for (int32_t b = 0; b < s.g->block_count; b++) /* a backward block follows its forward block */
        if (s.g->blocks[b].phase == FT_BACKWARD && s.g->blocks[b].mirror == dense)
            assert_true(ft__chunk_part(&s.chunks, s.g, 0, b) == 1 && ft__chunk_part(&s.chunks, s.g, 2, b) == 0);
    ft__arch_release(&a);
    ft__arena_free(arena);
}

/* Layers with and without windows come in a pattern: a stage gets as many layers as it is said to get all the same. */
static void patterns_are_taken_apart(void **state)
{
    (void)state;
    static const char *const models[] = {"gemma-3-27b", "gpt-oss-20b", "gemma-2-9b"};
    ft_arena *arena = ft__arena_new(0);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        ft_arch a = open_model(models[i]);
        ft_workload w = train_work(1, 1024);
        for (int64_t pp = 2; pp <= 11; pp += 3) {
            ft_parallel p = layout_of(1, pp, 1, 1, 1);
            for (int64_t s = 0; s < pp; s++) {
                ft__arena_reset(arena);
                const ft_graph *g = rank_of(&a, &w, &p, s, arena).g;
                int64_t from, to, layers = 0;
                ft__layout_range(a.layers, pp, false, s, &from, &to);
                for (int32_t b = 0; b < g->block_count; b++)
                    if (g->blocks[b].phase == FT_FORWARD && !strncmp(g->blocks[b].name, "layers", 6))
                        layers += g->blocks[b].repeat;
                assert_int_equal(layers, to - from);
            }
        }
        ft__arch_release(&a);
    }
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_dealt_as_megatron_does), cmocka_unit_test(the_last_takes_what_remains),
        cmocka_unit_test(stages_share_all_layers),           cmocka_unit_test(a_chunk_has_its_own_kinds_of_layers),
        cmocka_unit_test(patterns_are_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
