/* Modules that predict further tokens: what they add to parameters, arithmetic and losses, and that gradients reach
 * them. */
#include "model_graphs.h"

#include "graph/site.h"

static int losses_in(const ft_graph *g, ft_phase phase)
{
    int found = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        found += g->nodes[i].phase == phase && ft__node_site(&g->nodes[i]) == FT_SITE_LM_HEAD &&
                 g->nodes[i].verb == FT_DO_LINEAR;
    return found;
}

/* A layer like the last, a product of twice the width, and three norms; embedding and head are the model's own. */
static void a_module_adds_a_layer_and_a_product(void **state)
{
    static const struct {
        const char *model;
        double layer;
    } cases[] = {
        {"llama-3-8b", 218112000},  /* 4096 (4096 2 + 1024 2 + 14336 3) + 2 norms */
        {"qwen2.5-7b", 233057792},  /* with biases on q, k, v */
        {"llama-3.2-1b", 60821504}, /* its head is its embedding */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_arena *arena = ft__arena_new(0);
        ft_workload plain = work_of(FT_FORWARD_PASS, FT_SDPA), two = plain;
        ft_arch arch;
        two.mtp = 2;
        assert_int_equal(FT_OK, ft__model_open(cases[i].model, NULL, &arch, NULL));
        double without = graph_of(cases[i].model, 0, &plain, arena)->parameters;
        double with = graph_of(cases[i].model, 0, &two, arena)->parameters, h = (double)arch.hidden;
        assert_float_equal(with - without, 2 * (cases[i].layer + 2 * h * h + 3 * h), 0.5);
        ft__arena_free(arena);
    }
}

static void every_module_has_a_loss_and_gradients(void **state)
{
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = work_of(FT_TRAIN, FT_FLASH);
    (void)state;
    for (int64_t modules = 0; modules <= 2; modules++) {
        work.mtp = modules;
        const ft_graph *g = graph_of("llama-3.2-1b", 4, &work, arena);
        int trained = 0, gradients = 0;
        for (ft_ref i = 0; i < g->tensor_count; i++) {
            trained += g->tensors[i].role == FT_PARAMETER && g->tensors[i].trained && g->tensors[i].storage == i;
            gradients += g->tensors[i].role == FT_GRADIENT && g->tensors[i].storage == i;
        }
        assert_int_equal(1 + modules, losses_in(g, FT_FORWARD));
        assert_int_equal(trained, gradients);
    }
    ft__arena_free(arena);
}

/* DeepSeek's module is a layer with experts, Nemotron's attention before experts, MiMo V2's dense through a window. */
static void a_module_is_as_its_file_says(void **state)
{
    static const struct {
        const char *model;
        ft_mixer mixer;
        ft_feed feed;
        int64_t modules;
    } cases[] = {{"nemotron-3-super-120b-a12b", FT_MIX_ATTENTION, FT_FEED_EXPERTS, 1},
                 {"mimo-v2-flash", FT_MIX_ATTENTION, FT_FEED_DENSE, 3},
                 {"deepseek-v4-flash", FT_MIX_COMPRESSED, FT_FEED_EXPERTS, 0}};
    ft_arch arch;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(FT_OK, ft__model_open(cases[i].model, NULL, &arch, NULL));
        assert_true(arch.mtp_said);
        assert_int_equal(cases[i].mixer, arch.mtp.mixer);
        assert_int_equal(cases[i].feed, arch.mtp.feed);
        if (cases[i].modules == 3) assert_int_equal(3, arch.mtp_layers);
    }
    assert_int_equal(FT_OK, ft__model_open("deepseek-v3", NULL, &arch, NULL));
    assert_false(arch.mtp_said); /* as the last layer is */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_adds_a_layer_and_a_product),
        cmocka_unit_test(every_module_has_a_loss_and_gradients),
        cmocka_unit_test(a_module_is_as_its_file_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
