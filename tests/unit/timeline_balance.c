/* Births and deaths over whole models: every activation that a step makes is given back as often as it is made,
 * whatever repeats, runs again or stands alone. */
#include "layout_models.h"

#include <inttypes.h>

#include "memory/lifetime.h"

static double made(const ft_graph *g, int32_t birth)
{
    for (int32_t b = 0; b < g->block_count; b++)
        if (birth >= g->blocks[b].first && birth < g->blocks[b].first + g->blocks[b].count)
            return (double)g->blocks[b].repeat;
    return 0;
}

static void count_deaths(const ft_graph *g, const ft_lifetimes *l, double *deaths)
{
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        for (int32_t i = block->first; i < block->first + block->count; i++)
            for (int32_t d = l->first[i]; d >= 0; d = l->deaths[d].next)
                for (int64_t k = 0; k < block->repeat; k++)
                    deaths[l->deaths[d].tensor] += ft__happens(l->deaths[d].when, k, block->repeat);
    }
}

static void balance(const ft_arch *arch, const ft_workload *work, bool python)
{
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = NULL;
    ft_lifetimes l;
    ft_error err;
    if (ft__model_graph(arch, work, arena, &g, &err) != FT_OK) fail_msg("%s", err.message);
    assert_int_equal(ft__lifetimes(g, python ? FT_PYTHON_HOLDS : FT_NOBODY_HOLDS, &l, &err), FT_OK);
    double *deaths = ft__arena_array(arena, (size_t)g->tensor_count + 1, sizeof *deaths);
    assert_non_null(deaths);
    count_deaths(g, &l, deaths);
    for (ft_ref t = 0; t < g->tensor_count; t++)
        if (l.birth[t] >= 0 && g->tensors[t].role == FT_ACTIVATION && deaths[t] != made(g, l.birth[t]))
            fail_msg("%s, %" PRId64 " layers: what %s makes is made %g times and dies %g times", arch->model_type,
                     arch->layers, g->nodes[l.birth[t]].name, made(g, l.birth[t]), deaths[t]);
    ft__arena_free(arena);
}

static void whole_models_balance(void **state)
{
    (void)state;
    static const char *const models[] = {"gpt2",       "llama-3.2-1b", "olmo-2-1b", "olmo-3-7b", "gemma-2-2b",
                                         "gemma-3-1b", "gpt-oss-20b",  "t5-base",   "bert-base", "qwen3-30b-a3b"};
    static const ft_execution ways[] = {FT_RUN_EAGER, FT_RUN_FUSED, FT_RUN_COMPILE};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        ft_arch arch = open_model(models[m]);
        for (int64_t layers = 1; layers <= 13; layers += 2)
            for (int recompute = FT_RECOMPUTE_NONE; recompute <= FT_RECOMPUTE_FULL; recompute++)
                for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                    ft_arch some = arch;
                    if (arch.design == FT_DECODER_ONLY) some.layers = layers; /* others keep their own depth */
                    ft_workload work = train_work(1, 128);
                    work.recompute = (ft_recompute)recompute;
                    work.execution = ways[w];
                    balance(&some, &work, ways[w] == FT_RUN_EAGER);
                }
        ft__arch_release(&arch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_models_balance)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
