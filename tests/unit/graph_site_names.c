/* Names of files become sites, kinds of blocks and parameters of experts. */
#include <stdio.h>

#include "import/site.h"
#include "model/parts.h"
#include "ranks_rig.h"

/* -- names of files --------------------------------------------------------------------------------- */

static void names_of_files_become_sites(void **state)
{
    (void)state;
    static const struct {
        const char *name, *module;
        ft_site site;
        bool outer;
    } cases[] = {
        {"attn.k_proj", "attn", FT_SITE_ATTN_K_PROJ, false},
        {"attn.k_proj.scale", "attn", FT_SITE_ATTN_K_PROJ, false},
        {"attn.k_projection", "attn", FT_SITE_ATTN, false},
        {"attn.repeat_heads", "attn", FT_SITE_ATTN_REPEAT_KV, false},
        {"moe.router.logits", "moe", FT_SITE_MOE_ROUTER, false},
        {"mlp.norm", "mlp", FT_SITE_MLP_NORM, true},
        {"block.residual", "block", FT_SITE_NONE, true},
        {"block.residual2", "block", FT_SITE_NONE, false},
        {"lm_head", "lm_head", FT_SITE_LM_HEAD, true},
        {"lm_head.cast", "lm_head", FT_SITE_LM_HEAD, true},
        {"conv7", "conv7", FT_SITE_NONE, false},
        {"", "", FT_SITE_NONE, true},
    };
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_at at = ft__import_site(g, cases[i].name);
        assert_non_null(at);
        assert_string_equal(at->name, cases[i].name);
        assert_string_equal(at->of->name, cases[i].module);
        if (at->site != cases[i].site) fail_msg("%s is at \"%s\"", at->name, ft__sites[at->site].name);
        assert_int_equal(at->outer, cases[i].outer);
        assert_ptr_equal(at, ft__import_site(g, cases[i].name)); /* one for each name */
        assert_ptr_equal(at->of, ft__import_site(g, cases[i].module));
    }
    for (int i = 0; i < FT_SITE_COUNT; i++) assert_ptr_equal(ft__import_site(g, ft__sites[i].name), &ft__sites[i]);
    ft__arena_free(arena);
}

static void thousands_of_names_are_told_apart(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static ft_at found[MANY];
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < MANY; i++) {
            char name[32];
            snprintf(name, sizeof name, "module%d.part%d", i / 7, i);
            ft_at at = ft__import_site(g, name);
            assert_non_null(at);
            if (round) assert_ptr_equal(at, found[i]);
            found[i] = at;
            assert_string_equal(at->name, name);
            if (i % 7) assert_ptr_equal(at->of, found[i - 1]->of);
        }
    ft__arena_free(arena);
}

static void names_of_blocks_become_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        ft_block_kind kind;
        int32_t trunk;
    } cases[] = {
        {"layers", FT_BLOCK_LAYERS, FT_TRUNK_MODEL},
        {"layers.3", FT_BLOCK_LAYERS, FT_TRUNK_MODEL},
        {"encoder.layers", FT_BLOCK_LAYERS, FT_TRUNK_ENCODER},
        {"decoder.embed", FT_BLOCK_OTHER, FT_TRUNK_DECODER},
        {"head", FT_BLOCK_HEAD, FT_TRUNK_MODEL},
        {"text.head", FT_BLOCK_OTHER, FT_TRUNK_TEXT},
        {"embed", FT_BLOCK_OTHER, FT_TRUNK_MODEL},
        {"player", FT_BLOCK_OTHER, FT_TRUNK_MODEL},
    };
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_block_info info = ft__import_block(g, cases[i].name);
        if (info.kind != cases[i].kind || info.trunk != cases[i].trunk) fail_msg("%s", cases[i].name);
    }
    /* Functions that nobody knows: one for each first word. */
    static const char *const own[] = {"tower.stem", "tower.layers", "other.stem"};
    int32_t trunk[3];
    for (int i = 0; i < 3; i++) {
        ft_block_info info = ft__import_block(g, own[i]);
        assert_non_null(ft__graph_block(g, &(ft_block){.name = own[i], .trunk = info.trunk}));
        trunk[i] = info.trunk;
    }
    assert_true(trunk[0] >= FT_TRUNK_COUNT && trunk[0] == trunk[1] && trunk[2] != trunk[0]);
    ft__arena_free(arena);
}

static void parameters_of_experts_say_so(void **state)
{
    (void)state;
    assert_int_equal(ft__import_expert("experts.bias"), FT_EXPERT_BIAS);
    assert_int_equal(ft__import_expert("experts.down"), FT_EXPERT_WEIGHT);
    assert_int_equal(ft__import_expert("layers.experts"), FT_NO_EXPERT);
}

/* Checkpoints, wrappers and Python's frames are a layer's; a trunk's last norm and its projection stand outside. */
static void ends_of_trunks_are_no_layers(void **state)
{
    (void)state;
    for (int i = 0; i < FT_BLOCK_AT_COUNT; i++) {
        ft_block b = {.carry_in = 0, .kind = ft__block_infos[i].kind};
        bool end = b.kind == FT_BLOCK_HEAD || b.kind == FT_BLOCK_END;
        if (ft__block_is_layer(&b) == end) fail_msg("%s", ft__block_infos[i].name);
    }
    assert_false(ft__block_is_layer(&(ft_block){.carry_in = 0, .kind = FT_BLOCK(TEXT_HEAD)->kind}));
    assert_false(ft__block_is_layer(&(ft_block){.carry_in = 0, .kind = FT_BLOCK(ENCODER_NORM)->kind}));
    assert_true(ft__block_is_layer(&(ft_block){.carry_in = 0, .kind = FT_BLOCK(TEXT_LAYERS)->kind}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_files_become_sites),  cmocka_unit_test(thousands_of_names_are_told_apart),
        cmocka_unit_test(names_of_blocks_become_kinds), cmocka_unit_test(parameters_of_experts_say_so),
        cmocka_unit_test(ends_of_trunks_are_no_layers),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
