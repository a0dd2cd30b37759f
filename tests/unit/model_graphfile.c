/* Graph files: what they become, the manual's example, and what is wrong with those that are refused. */
#include <stdio.h>
#include <stdlib.h>

#include "graphfile_try.h"

static ft_graph *good(const char *text, ft_task task)
{
    ft_error err = {0};
    ft_graph *g = graph_of(text, task, &err);
    if (!g) fail_msg("%s: %.200s", err.message, text);
    return g;
}

/* -- the manual -------------------------------------------------------------------------------- */

static char *manual(void)
{
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    char path[1024];
    snprintf(path, sizeof path, "%s/docs/graph.md", root ? root : ".");
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    enum { ROOM = 1 << 16 };
    char *text = calloc(1, ROOM);
    assert_non_null(text);
    assert_true(fread(text, 1, ROOM - 1, f) > 1000);
    fclose(f);
    return text;
}

static void the_manuals_example_runs(void **state)
{
    (void)state;
    char *text = manual(), *from = strstr(text, "```json\n"), *to = from ? strstr(from + 8, "\n```") : NULL;
    assert_non_null(to);
    *to = 0;
    ft_graph *g = good(from + 8, FT_TRAIN);
    /* The table, and for each of two layers a norm, four products and two of the MLP with their biases. */
    double layer = 2 * 512.0 + 4 * 512 * 512 + (512 * 2048 + 2048) + (2048 * 512 + 512);
    assert_true(g->parameters == 32000 * 512.0 + 2 * layer);
    assert_int_equal(7, g->block_count); /* three forward, three backward, the update */
    assert_string_equal("layers", g->blocks[1].name);
    assert_int_equal(2, g->blocks[1].repeat);
    good(from + 8, FT_FORWARD_PASS);
    free(text);
}

static void the_manual_names_every_operator(void **state)
{
    (void)state;
    char *text = manual();
    static const char *const names[] = {"linear",
                                        "matmul",
                                        "attention",
                                        "conv1d",
                                        "conv2d",
                                        "conv3d",
                                        "embedding",
                                        "experts",
                                        "grouped_mm",
                                        "parameter",
                                        "buffer",
                                        "view",
                                        "reshape",
                                        "transpose",
                                        "slice",
                                        "expand",
                                        "detach",
                                        "contiguous",
                                        "copy",
                                        "cat",
                                        "split",
                                        "unbind",
                                        "sum",
                                        "mean",
                                        "amax",
                                        "amin",
                                        "prod",
                                        "norm",
                                        "var",
                                        "std",
                                        "logsumexp",
                                        "any",
                                        "all",
                                        "argmax",
                                        "argmin",
                                        "softmax",
                                        "log_softmax",
                                        "cumsum",
                                        "topk",
                                        "sort",
                                        "layernorm",
                                        "rmsnorm",
                                        "batchnorm",
                                        "groupnorm",
                                        "maxpool",
                                        "avgpool",
                                        "adaptive_avgpool",
                                        "upsample",
                                        "pad",
                                        "gather",
                                        "index_select",
                                        "index",
                                        "take_along",
                                        "masked_select",
                                        "nonzero",
                                        "scatter",
                                        "scatter_add",
                                        "index_add",
                                        "index_put",
                                        "index_fill",
                                        "masked_scatter",
                                        "one_hot",
                                        "fill",
                                        "arange",
                                        "full",
                                        "zeros",
                                        "ones",
                                        "rand",
                                        "empty",
                                        "sync",
                                        "dropout",
                                        "cast",
                                        "cross_entropy",
                                        "nll_loss",
                                        "mse_loss",
                                        "l1_loss",
                                        "smooth_l1_loss",
                                        "bce_with_logits",
                                        "where",
                                        "lerp",
                                        "atan2",
                                        "hardswish"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strstr(text, names[i])) fail_msg("docs/graph.md does not name %s", names[i]);
    free(text);
}

/* -- what comes out ---------------------------------------------------------------------------- */

static const ft_node *node_named(const ft_graph *g, const char *name, ft_phase phase)
{
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].phase == phase && g->nodes[i].name && !strcmp(g->nodes[i].name, name)) return &g->nodes[i];
    fail_msg("no node %s", name);
    return NULL;
}

static void products_have_the_shapes_of_their_operands(void **state)
{
    (void)state;
    ft_graph *g =
        good("{\"foretell_graph\":1,\"inputs\":{\"a\":{\"shape\":[\"batch\",8,\"2*seq\",64]},\"c\":{\"shape\":"
             "[\"batch*8\",32,64]}},\"blocks\":[{\"name\":\"b\",\"out\":\"y\",\"nodes\":[{\"op\":\"matmul\",\"name\":"
             "\"p\",\"in\":[\"a\",\"c\"],\"transposed\":true,\"out\":\"y\"}]}]}",
             FT_FORWARD_PASS);
    const ft_op *op = &node_named(g, "p", FT_FORWARD)->op;
    assert_int_equal(FT_OP_GEMM, op->kind);
    assert_int_equal(32, op->u.gemm.b);
    assert_int_equal(256, op->u.gemm.m);
    assert_int_equal(32, op->u.gemm.n);
    assert_int_equal(64, op->u.gemm.k);
    assert_string_equal("nt", op->u.gemm.layout);
}

static void grouped_attention_and_convolution(void **state)
{
    (void)state;
    ft_graph *g =
        good("{\"foretell_graph\":1,\"inputs\":{\"q\":{\"shape\":[\"batch\",8,\"seq\",64]},\"k\":{\"shape\":"
             "[\"batch\",2,\"seq\",64]}},\"blocks\":[{\"name\":\"b\",\"out\":\"z\",\"nodes\":[{\"op\":\"attention\","
             "\"in\":[\"q\",\"k\",\"k\"],\"causal\":true,\"window\":32,\"out\":\"y\"},{\"op\":\"linear\",\"in\":\"y\","
             "\"features\":10,\"out\":\"z\"}]}]}",
             FT_FORWARD_PASS);
    const ft_op *op = &node_named(g, "attention", FT_FORWARD)->op;
    assert_int_equal(2, op->u.attention.kv_heads);
    assert_int_equal(32, op->u.attention.window);
    assert_true(op->u.attention.causal && g->parameters == 512 * 10);
    g = good(
        "{\"foretell_graph\":1,\"inputs\":{\"x\":{\"shape\":[\"batch\",3,33,33]}},\"blocks\":[{\"name\":\"b\",\"out\":"
        "\"z\",\"nodes\":[{\"op\":\"conv2d\",\"in\":\"x\",\"k\":8,\"r\":3,\"stride\":2,\"pad\":1,\"out\":\"y\"},{"
        "\"op\":\"view\","
        "\"in\":\"y\",\"shape\":[\"batch\",2312],\"out\":\"z\"}]}]}",
        FT_FORWARD_PASS);
    assert_true(g->parameters == 8 * 3 * 9); /* 17 x 17 images of 8 channels, or the view would be refused */
}

static void broadcasts_give_the_larger_shape(void **state)
{
    (void)state;
    ft_graph *g = good(
        "{\"foretell_graph\":1,\"inputs\":{\"x\":{\"shape\":[\"batch\",64]},\"w\":{\"shape\":[64]}},\"blocks\":[{"
        "\"name\":\"b\",\"out\":\"z\",\"nodes\":[{\"op\":\"mul\",\"in\":[\"w\",\"x\"],\"out\":\"y\"},{\"op\":\"view\","
        "\"in\":\"y\",\"shape\":[2,128],\"out\":\"z\"}]}]}",
        FT_FORWARD_PASS);
    assert_int_equal(256, node_named(g, "mul", FT_FORWARD)->op.u.elementwise.numel);
}

static void unknown_operators_are_their_bytes(void **state)
{
    (void)state;
    ft_graph *g =
        good(OF("{\"op\":\"fft\",\"in\":\"x\",\"bytes\":1e6,\"flops\":5e6,\"shape\":[\"batch\",64],\"out\":\"y\"}"),
             FT_FORWARD_PASS);
    const ft_node *n = node_named(g, "fft", FT_FORWARD);
    assert_int_equal(FT_OP_OTHER, n->op.kind);
    assert_true(n->op.u.other.bytes == 1e6 && n->op.u.other.flops == 5e6);
}

/* Names outlive the file: the reader above gave it back before they are looked at. */
static void names_belong_to_the_graph(void **state)
{
    (void)state;
    ft_graph *g = good(OF("{\"op\":\"linear\",\"name\":\"a.module\",\"in\":\"x\",\"features\":8,\"out\":\"y\"}"),
                       FT_TRAIN);
    assert_string_equal("b", g->blocks[0].name);
    node_named(g, "a.module", FT_FORWARD);
    node_named(g, "a.module", FT_BACKWARD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_manuals_example_runs),
        cmocka_unit_test(the_manual_names_every_operator),
        cmocka_unit_test(products_have_the_shapes_of_their_operands),
        cmocka_unit_test(grouped_attention_and_convolution),
        cmocka_unit_test(broadcasts_give_the_larger_shape),
        cmocka_unit_test(unknown_operators_are_their_bytes),
        cmocka_unit_test(names_belong_to_the_graph),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
