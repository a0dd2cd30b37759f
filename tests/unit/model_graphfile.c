/* Graph files: what they become, the manual's example, and what is wrong with those that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "failing_alloc.h"
#include "import/config/config.h"
#include "import/graphfile/graphfile.h"

static ft_arena *arena;

static int open_arena(void **state)
{
    (void)state;
    arena = ft__arena_new(0);
    return arena ? 0 : -1;
}

static int close_arena(void **state)
{
    (void)state;
    ft__arena_free(arena);
    return 0;
}

static ft_workload workload(ft_task task)
{
    return (ft_workload){.task = task,
                         .dtype = FT_BF16,
                         .kv_dtype = FT_BF16,
                         .batch = 4,
                         .seq = 128,
                         .optimizer = FT_ADAMW,
                         .accumulate = 1};
}

/* The graph of a text; NULL with *err filled when it is refused. */
static ft_graph *graph_of(const char *text, ft_task task, ft_error *err)
{
    json_t *file = NULL;
    ft_arch arch = {0};
    ft_workload work = workload(task);
    ft_graph *graph = NULL;
    ft__arena_reset(arena);
    if (ft__json_parse(text, strlen(text), "", &file, err) != FT_OK) fail_msg("%s: %.200s", err->message, text);
    ft_status status = ft__config_read(file, NULL, "model", &arch, err);
    if (arch.fixed_batch > 0) work.batch = arch.fixed_batch; /* as requests do */
    if (arch.fixed_seq > 0) work.seq = arch.fixed_seq;
    if (status == FT_OK) status = ft__model_graph(&arch, &work, arena, &graph, err);
    ft__arch_release(&arch);
    json_decref(file);
    return status == FT_OK ? graph : NULL;
}

static ft_graph *good(const char *text, ft_task task)
{
    ft_error err = {0};
    ft_graph *g = graph_of(text, task, &err);
    if (!g) fail_msg("%s: %.200s", err.message, text);
    return g;
}

/* A file of one block with these nodes over x [batch, 64] and w [9, 4]; its result is y. */
#define FILE_OF(more, nodes)                                                                                    \
    "{\"foretell_graph\":1,\"inputs\":{\"x\":{\"shape\":[\"batch\",64]},\"w\":{\"shape\":[9,4]}},\"blocks\":[{" \
    "\"name\":"                                                                                                 \
    "\"b\",\"out\":\"y\"" more ",\"nodes\":[" nodes "]}]}"
#define OF(nodes) FILE_OF("", nodes)
#define LINEAR(more) "{\"op\":\"linear\",\"in\":\"x\",\"features\":64" more ",\"out\":\"y\"}"

static void refused(const char *text, ft_status code, const char *message)
{
    ft_error err = {0};
    if (graph_of(text, FT_TRAIN, &err)) fail_msg("not refused: %s", text);
    assert_string_equal(message, err.message);
    assert_int_equal(code, err.code);
    assert_string_equal("model", err.where);
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
    assert_true(g->parameters == 8 * 3 * 9); /* 17 x 17 pictures of 8 channels, or the view would be refused */
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

/* -- what is refused --------------------------------------------------------------------------- */

static void names_that_nobody_made(void **state)
{
    (void)state;
    refused(OF("{\"op\":\"relu\",\"in\":\"xx\",\"out\":\"y\"}"), FT_E_NAME,
            "block \"b\", node 1 (relu): \"xx\" was not made before; did you mean \"x\"?");
    refused(OF("{\"op\":\"add\",\"name\":\"sum\",\"in\":[\"x\",\"y\"],\"out\":\"z\"},{\"op\":\"relu\",\"in\":\"z\","
               "\"out\":\"y\"}"),
            FT_E_NAME,
            "block \"b\", node 1 (sum): \"y\" is made later: nodes run in the order of the list, without cycles");
    refused(OF("{\"op\":\"relu\",\"in\":\"x\",\"out\":\"z\"}"), FT_E_NAME,
            "block \"b\": its result \"y\" is made by none of its nodes");
    refused(FILE_OF(",\"in\":\"q\"", LINEAR("")), FT_E_NAME, "block \"b\": its input \"q\" was not made before");
    refused(OF(LINEAR(",\"weight\":\"x\"")), FT_E_RANGE,
            "block \"b\", node 1 (linear): the weight has 256 elements, not 64 x 64");
    refused(OF("{\"op\":\"add\",\"in\":\"x\",\"out\":\"y\"}"), FT_E_MISSING,
            "block \"b\", node 1 (add): operand 2 is missing in \"in\"");
    refused(OF("{\"op\":\"cross_entropy\",\"in\":[\"x\",\"labels\"],\"out\":\"y\"}"), FT_E_NAME,
            "block \"b\", node 1 (cross_entropy): \"labels\" was not made before");
    refused(OF("{\"op\":\"relu\",\"in\":\"x\"}"), FT_E_MISSING,
            "block \"b\", node 1 (relu): \"out\" must name the result");
}

static void shapes_that_do_not_fit(void **state)
{
    (void)state;
    refused(OF("{\"op\":\"matmul\",\"in\":[\"x\",\"w\"],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (matmul): the operands' inner sizes differ: 64 and 9");
    refused(OF("{\"op\":\"add\",\"in\":[\"x\",\"w\"],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (add): operands of 256 and 36 elements: sizes must be equal or 1 in each of their "
            "last axes");
    refused(OF("{\"op\":\"view\",\"in\":\"x\",\"shape\":[\"batch\",65],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (view): view of 256 elements cannot give 260");
    refused(OF("{\"op\":\"cat\",\"in\":[\"x\",\"x\"],\"shape\":[\"batch\",64],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (cat): 2 tensors of 512 elements together cannot give 256");
    refused(OF("{\"op\":\"attention\",\"in\":[\"x\",\"x\",\"x\"],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (attention): attention takes q, k, v as [batch, heads, length, dim]: one batch, k and "
            "v of "
            "equal heads and lengths, q and k of equal dim, heads of q a multiple of k's");
    refused(OF("{\"op\":\"conv2d\",\"in\":\"x\",\"k\":1,\"r\":1,\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (conv2d): a convolution takes [n, c, h, w], got 2 axes");
    refused(FILE_OF(",\"repeat\":3,\"in\":\"x\"", "{\"op\":\"linear\",\"in\":\"x\",\"features\":8,\"out\":\"y\"}"),
            FT_E_RANGE, "block \"b\" repeats, but its result has 32 elements and its input 256");
    refused(
        OF("{\"op\":\"view\",\"in\":\"x\",\"shape\":[],\"out\":\"y\"}"), FT_E_TYPE,
        "block \"b\", node 1 (view): \"shape\" must be a list of 1 to 8 sizes: whole numbers, \"batch\", \"seq\" or "
        "formulas of them, up to 2^40 each and 2^60 together");
}

static void keys_and_numbers(void **state)
{
    (void)state;
    refused(OF(LINEAR(",\"biass\":true")), FT_E_KEY,
            "block \"b\", node 1 (linear): unknown key \"biass\"; did you mean \"bias\"?");
    refused(OF(LINEAR(",\"bias\":1")), FT_E_TYPE,
            "block \"b\", node 1 (linear): \"bias\" must be true, false or the name of a parameter");
    refused(FILE_OF(",\"repeats\":2", LINEAR("")), FT_E_KEY,
            "block \"b\": unknown key \"repeats\"; did you mean \"repeat\"?");
    refused(FILE_OF(",\"repeat\":1000000000,\"in\":\"x\"", LINEAR("")), FT_E_RANGE,
            "block \"b\": \"repeat\" must be a whole number from 1 to 1000000");
    refused(FILE_OF(",\"repeat\":2", LINEAR("")), FT_E_MISSING,
            "block \"b\" repeats: it needs \"in\", what walks from one iteration to the next");
    refused(
        OF("{\"op\":\"linear\",\"in\":\"x\",\"features\":-1,\"out\":\"y\"}"), FT_E_RANGE,
        "block \"b\", node 1 (linear): \"features\" must be a whole number from 1 to 1099511627776, or a formula with "
        "\"batch\" and \"seq\"");
    refused(
        OF("{\"op\":\"sofmax\",\"in\":\"x\",\"out\":\"y\"}"), FT_E_NAME,
        "block \"b\", node 1 (sofmax): unknown operator \"sofmax\"; did you mean \"softmax\"? one that is really new "
        "needs \"bytes\" and \"shape\"");
    refused(OF("{\"op\":\"dropout\",\"in\":\"x\",\"p\":\"half\",\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (dropout): \"p\" must be a number from 0 to 1, 1 excluded");
    refused(OF("{\"op\":\"relu\",\"in\":[\"x\",\"w\"],\"out\":\"y\"}"), FT_E_RANGE,
            "block \"b\", node 1 (relu): it takes 1 operands at most, got 2");
    refused(OF("7"), FT_E_TYPE, "block \"b\", node 1 must be an object");
    refused("{\"foretell_graph\":1,\"inputs\":{\"x\":{\"shape\":[0]}},\"blocks\":[{}]}", FT_E_TYPE,
            "input \"x\": \"shape\" must be a list of 1 to 8 sizes: whole numbers, \"batch\", \"seq\" or formulas of "
            "them, up "
            "to 2^40 each and 2^60 together");
    refused("{\"foretell_graph\":1,\"inputs\":{},\"blocks\":[]}", FT_E_MISSING,
            "a graph file needs \"inputs\", an object of shapes, and \"blocks\", a list");
}

static ft_status attempt(void *context)
{
    ft_error err = {0};
    json_t *file = NULL;
    ft_arch arch = {0};
    ft_workload work = workload(FT_TRAIN);
    ft_graph *graph = NULL;
    const char *text = context;
    ft_arena *mine = ft__arena_new(0);
    ft_status status = mine ? ft__json_parse(text, strlen(text), "", &file, &err) : FT_E_MEMORY;
    if (status == FT_OK) status = ft__config_read(file, NULL, "model", &arch, &err);
    if (status == FT_OK) status = ft__model_graph(&arch, &work, mine, &graph, &err);
    ft__arch_release(&arch);
    json_decref(file);
    ft__arena_free(mine);
    if (status != FT_OK && status != FT_E_MEMORY) fail_msg("%s", err.message);
    return status;
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    static char text[] = OF(LINEAR(",\"bias\":true"));
    assert_true(failing_alloc_sweep(attempt, text) > 3);
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
        cmocka_unit_test(names_that_nobody_made),
        cmocka_unit_test(shapes_that_do_not_fit),
        cmocka_unit_test(keys_and_numbers),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
