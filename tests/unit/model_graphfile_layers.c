/* Layers that run as one call of a library, weights that were computed, and what a file says of its training. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graphfile_help.h"
#include "memory/workspace.h"

#define GATES "{'op':'linear','in':'x','features':1024,'bias':true,'out':'g','name':'g'},"
#define STEPS(kind, more) GATES "{'op':'recurrence','in':'g','kind':'" kind "'" more ",'out':'y','name':'r'}"

/* How often kernels of this name are launched. */
static double launches(const ft_graph *g, ft_phase phase, const char *op)
{
    double all = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].phase == phase && g->nodes[i].verb == FT_DO_RECUR && !strcmp(g->nodes[i].op.name, op))
            all += (double)g->nodes[i].count;
    return all;
}

/* x is [4, 128, 64]: four steps of 128 sequences. */
static void steps_wait_for_each_other(void **state)
{
    (void)state;
    ft_graph *g = TRAINED(STEPS("lstm", ",'bias':true"));
    assert_true(g->parameters == 64 * 1024 + 1024 + 256 * 1024 + 1024);
    assert_true(launches(g, FT_FORWARD, "linear") == 4 && launches(g, FT_FORWARD, "recurrent_cell") == 4);
    assert_true(launches(g, FT_BACKWARD, "linear") == 4 && launches(g, FT_BACKWARD, "recurrent_cell") == 4);
    const ft_op *step = NULL, *whole = NULL;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->op.kind != FT_OP_GEMM || !n->name || strcmp(n->name, "r") != 0) continue;
        if (n->phase == FT_FORWARD) step = &n->op;
        if (n->phase == FT_BACKWARD && n->verb == FT_DO_LINEAR) whole = &n->op; /* the weight's, over all steps */
    }
    assert_true(step && step->u.gemm.m == 128 && step->u.gemm.n == 1024 && step->u.gemm.k == 256);
    assert_true(whole && whole->u.gemm.m == 1024 && whole->u.gemm.n == 256 && whole->u.gemm.k == 512);
    assert_int_equal(2, help_count(g, FT_BACKWARD, "sum_cols")); /* both biases */
    int by_steps = 0; /* the state's goes through 512 rows one behind the other */
    for (int32_t i = 0; i < g->node_count; i++)
        by_steps += g->nodes[i].walk == FT_WALK_BIAS_LSTM && g->nodes[i].trips == 512;
    assert_int_equal(1, by_steps);
    assert_non_null(help_node(g, FT_BACKWARD, "g")); /* and it goes on to the inputs' product */
}

static void inference_keeps_no_gates(void **state)
{
    (void)state;
    ft_graph *g = help_good(HELP_FILE("", STEPS("lstm", "")), FT_FORWARD_PASS);
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].verb == FT_DO_RECUR) assert_true(g->nodes[i].out_count <= 1);
}

static void both_ways_run_side_by_side(void **state)
{
    (void)state;
    ft_graph *g = TRAINED(GATES "{'op':'linear','in':'x','features':1024,'out':'h'},"
                                "{'op':'recurrence','in':['g','h'],'kind':'lstm','out':'y','name':'r'}");
    assert_true(launches(g, FT_FORWARD, "recurrent_cell") == 8 && launches(g, FT_BACKWARD, "recurrent_cell") == 8);
    assert_true(g->tensors[g->blocks[0].carry_out].cols == 512);
    /* of a plain recurrence gates are as wide as states: weights must not be taken for a second way's gates */
    g = TRAINED("{'op':'linear','in':'x','features':64,'out':'g'},"
                "{'op':'recurrence','in':'g','kind':'rnn','bias':true,'out':'y','name':'r'}");
    assert_true(launches(g, FT_BACKWARD, "linear") == 4);
}

/* A row of data/measurements/h200/recurrent.jsonl: a GRU of 512 features over 100 steps of 32 sequences in bf16 asks
 * for 28,082,688 bytes and for 3,151,872 more for a copy of its weights; its gates, 9,830,400 of them, are a tensor
 * here. */
static void the_library_holds_weights_and_products(void **state)
{
    (void)state;
    ft_graph *g = help_good(
        HELP_FILE("", "{'op':'rand','shape':[100,32,512],'out':'i'},{'op':'linear','in':'i','features':1536,'out':'g'},"
                      "{'op':'recurrence','in':'g','kind':'gru','layers':1,'inputs':512,'out':'y'}"),
        FT_FORWARD_PASS);
    double held = 0;
    for (int32_t i = 0; i < g->node_count; i++) held += (double)g->nodes[i].workspace;
    double seen = 28082688 + 3151872 - 9830400;
    if (!(held > 0.99 * seen && held < 1.01 * seen)) fail_msg("%g bytes, measured %g", held, seen);
    g = TRAINED(STEPS("lstm", ",'layers':2,'inputs':64"));
    double back = 0;
    held = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        bool cell = g->nodes[i].verb == FT_DO_RECUR && !strcmp(g->nodes[i].op.name, "recurrent_cell");
        if (cell && g->nodes[i].phase == FT_FORWARD) held = (double)g->nodes[i].workspace;
        if (cell && g->nodes[i].phase == FT_BACKWARD) back = (double)g->nodes[i].workspace;
    }
    assert_true(held > 16 * 1048576 && back == held); /* of both layers, and again going back */
    g = TRAINED(STEPS("lstm", ""));
    for (int32_t i = 0; i < g->node_count; i++) /* a file that does not say which call it is part of */
        assert_true(g->nodes[i].verb != FT_DO_RECUR || g->nodes[i].workspace == 0);
}

static void wrong_recurrences_are_refused(void **state)
{
    (void)state;
    help_refused(HELP_FILE("", STEPS("lsmt", "")), FT_E_NAME,
                 "block \"b\", node 2 (r): \"kind\" must be lstm, gru or rnn");
    help_refused(HELP_FILE("", STEPS("gru", "")), FT_E_RANGE,
                 "block \"b\", node 2 (r): gates of [steps, batch, 3 times the state] are expected, the same of both "
                 "ways");
}

/* Standardised filters: a gradient flows to whatever made them. */
static void filters_that_were_computed(void **state)
{
    (void)state;
    ft_graph *g = TRAINED("{'op':'parameter','shape':[16,8,3,3],'out':'w'},{'op':'mulu','in':'w','out':'s','name':'s'},"
                          "{'op':'conv2d','in':['picture','s'],'k':16,'r':3,'pad':1,'out':'y','name':'c'}");
    assert_true(g->parameters == 16 * 8 * 9);
    assert_true(help_node(g, FT_BACKWARD, "c") && help_node(g, FT_BACKWARD, "s"));
    help_refused(HELP_FILE("", "{'op':'conv2d','in':['picture','v'],'k':16,'r':3,'out':'y','name':'c'}"), FT_E_RANGE,
                 "block \"b\", node 1 (c): the weight has 64 elements, the filters 1152");
}

static void whose_statistics(void **state)
{
    (void)state;
#define NORM(more) HELP_FILE("", "{'op':'batchnorm','in':'picture'" more ",'out':'y'}")
    assert_int_equal(0, help_count(help_good(NORM(""), FT_FORWARD_PASS), FT_FORWARD, "batchnorm_moments"));
    ft_graph *g = help_good(NORM(",'statistics':'batch'"), FT_FORWARD_PASS);
    assert_true(help_count(g, FT_FORWARD, "batchnorm_moments") == 1 && help_kernels(g, FT_FORWARD) == 2);
    g = help_good(NORM(",'statistics':'running'"), FT_TRAIN);
    assert_int_equal(0, help_count(g, FT_FORWARD, "batchnorm_moments"));
    help_refused(NORM(",'statistics':'old'"), FT_E_NAME,
                 "block \"b\", node 1 (batchnorm): \"statistics\" must be \"batch\" or \"running\"");
#undef NORM
}

static void activations_inside_products(void **state)
{
    (void)state;
#define PRODUCT(name) HELP_FILE("", "{'op':'linear','in':'x','features':64,'activation':'" name "','out':'y'}")
    assert_int_equal(1, help_kernels(help_good(PRODUCT("gelu"), FT_FORWARD_PASS), FT_FORWARD));
    help_refused(PRODUCT("gelu"), FT_E_UNSUPPORTED,
                 "block \"b\", node 1 (linear): \"activation\" inside a product has no gradient: a node of its own is "
                 "needed to train");
    help_refused(PRODUCT("silu"), FT_E_NAME,
                 "block \"b\", node 1 (linear): \"activation\" of a product must be \"gelu\" or \"relu\"");
#undef PRODUCT
}

static void bags_are_sorted_going_back(void **state)
{
    (void)state;
    ft_graph *g = TRAINED("{'op':'embedding','in':'ids','rows':100,'features':64,'bag':16,'out':'y','name':'e'}");
    assert_true(help_node(g, FT_FORWARD, "e")->traffic == 0.53125F); /* sixteen rows are read, one is written */
    assert_true(help_result(g, "e")->rows == 4 * 128 / 16 && help_result(g, "e")->cols == 64);
    assert_true(help_count(g, FT_BACKWARD, "sort") > 20 && help_count(g, FT_BACKWARD, "embedding") == 1);
    g = TRAINED("{'op':'embedding','in':'ids','rows':100,'features':64,'out':'y','name':'e'}");
    assert_int_equal(0, help_count(g, FT_BACKWARD, "sort"));
    help_refused(HELP_FILE("", "{'op':'embedding','in':'ids','rows':100,'features':64,'bag':15,'out':'y','name':'e'}"),
                 FT_E_RANGE, "block \"b\", node 1 (e): 512 indices are not bags of 15");
}

static void what_was_counted_is_read(void **state)
{
    (void)state;
#define HELD(value)                                                                                           \
    "{'foretell_graph':1,'held_bytes':" value ",'inputs':{'x':{'shape':['batch',64]}},'blocks':[{'name':'b'," \
    "'out':'y','nodes':[{'op':'relu','in':'x','out':'y'}]}]}"
    assert_true(help_good(HELD("'1024*batch+512'"), FT_FORWARD_PASS)->held_bytes == 4 * 1024 + 512);
    help_refused(HELD("-1"), FT_E_TYPE,
                 "\"held_bytes\" must be a whole number from 1 on, or a formula with batch and seq");
#undef HELD
}

/* A workspace comes on top of what the model's own code holds while its convolution runs, not of what operators need.
 */
static void what_was_counted_at_a_convolution_is_read(void **state)
{
    (void)state;
#define CONV(more)                                                                                                     \
    "{'foretell_graph':1,'held_bytes':50000000,'inputs':{'x':{'shape':[8,64,56,56]}},'blocks':[{'name':'b','out':'y'," \
    "'nodes':[{'op':'conv2d','in':'x','out':'y','k':64,'r':3,'pad':1" more "}]}]}"
    const ft_graph *plain = help_good(CONV(""), FT_FORWARD_PASS);
    for (int32_t i = 0; i < plain->node_count; i++) assert_true(plain->nodes[i].held_bytes == 0);
    const ft_graph *counted = help_good(CONV(",'held_bytes':40000000"), FT_FORWARD_PASS);
    int found = 0;
    for (int32_t i = 0; i < counted->node_count; i++)
        if (counted->nodes[i].op.kind == FT_OP_CONV2D) found += counted->nodes[i].held_bytes == 40000000;
    assert_int_equal(found, 1);
    help_refused(CONV(",'held_bytes':'many'"), FT_E_TYPE,
                 "block \"b\", node 1 (conv2d): \"held_bytes\" must be a whole number from 1 on, or a formula with "
                 "batch and seq");
#undef CONV
}

/* A clip stands for images whose channels are those of its depth; the operator says so, both ways. Few channels run
 * on vector units and take no workspace. */
static void clips_stand_among_pictures(void **state)
{
    (void)state;
    ft_device device = {.sms = 132};
    static const int64_t channels[] = {1, 3, 16};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{'foretell_graph':1,'inputs':{'x':{'shape':[2,%lld,16,56,56]}},'blocks':[{'name':'b','out':'y',"
                 "'nodes':[{'op':'conv3d','in':'x','out':'y','k':64,'t':3,'r':7,'s':7,'pad':[1,3,3]}]}]}",
                 (long long)channels[i]);
        const ft_graph *g = help_good(text, FT_TRAIN);
        int ways = 0;
        for (int32_t k = 0; k < g->node_count; k++) {
            const ft_node *n = &g->nodes[k];
            if (n->op.kind != FT_OP_CONV2D) continue;
            assert_int_equal(FT_BF16, n->op.dtype);
            assert_true(n->op.u.conv.space == 3 && n->op.u.conv.depth == 3 && !n->op.u.conv.dilated);
            assert_int_equal(3 * channels[i], n->op.u.conv.c);
            assert_int_equal(2 * 16, n->op.u.conv.n);
            if (n->op.pass == FT_PASS_FWD) assert_int_equal(channels[i] >= 8, ft__node_workspace(g, n, &device) > 0);
            ways++;
        }
        assert_int_equal(ways, 2);
    }
}

static void files_say_that_they_recompute(void **state)
{
    (void)state;
    static const char *const words[] = {"full", "none", NULL};
    for (int i = 0; i < 3; i++) {
        ft_arch arch = {0};
        ft_error err = {0};
        json_t *file = json_pack("{s:i,s:{s:{s:[i,i]}},s:[{s:s,s:s,s:[{s:s,s:s,s:s}]}],s:s}", "foretell_graph", 1,
                                 "inputs", "x", "shape", 4, 4, "blocks", "name", "b", "out", "y", "nodes", "op", "relu",
                                 "in", "x", "out", "y", "recompute", words[i] ? words[i] : "some");
        assert_non_null(file);
        ft_status status = ft__config_read(file, NULL, "model", &arch, &err);
        assert_int_equal(words[i] ? FT_OK : FT_E_NAME, status);
        if (words[i]) assert_int_equal(i == 0, arch.checkpointed);
        if (!words[i]) assert_string_equal("\"recompute\" of a graph file must be \"full\" or \"none\"", err.message);
        ft__arch_release(&arch);
        json_decref(file);
    }
}

#define TWO_STREAMS(more)                                                                                \
    "{'name':'layers'" more ",'in':'x','out':'x','nodes':["                                              \
    "{'op':'linear','in':'x','features':64,'out':'a'},{'op':'linear','in':'t','features':64,'out':'c'}," \
    "{'op':'add','in':['a','t'],'out':'d'},{'op':'add','in':['c','x'],'out':'x'},"                       \
    "{'op':'cast','in':'d','like':'d','out':'t'}]}"
#define STREAMS(blocks)                                                                                             \
    "{'foretell_graph':1,'inputs':{'p':{'shape':['batch','seq',64]}},'blocks':[{'name':'embed','out':'x','nodes':[" \
    "{'op':'linear','in':'p','features':64,'out':'x'},{'op':'linear','in':'p','features':64,'out':'t'}]}," blocks "]}"

/* Layers that hand two values on: as if the file had each of them. */
static void blocks_are_written_several_times(void **state)
{
    ft_error err = {0};
    (void)state;
    const ft_graph *g = help_read(STREAMS(TWO_STREAMS("") "," TWO_STREAMS("") "," TWO_STREAMS("")), &err);
    if (!g) fail_msg("%s", err.message);
    double parameters = g->parameters, flops = ft__graph_flops(g, FT_FORWARD);
    int32_t nodes = g->node_count;
    g = help_read(STREAMS(TWO_STREAMS(",'times':3")), &err);
    if (!g) fail_msg("%s", err.message);
    assert_true(parameters == 8 * 64 * 64 && g->parameters == parameters);
    assert_true(flops > 0 && ft__graph_flops(g, FT_FORWARD) == flops);
    assert_int_equal(nodes, g->node_count);
    assert_null(help_read(STREAMS(TWO_STREAMS(",'times':0")), &err));
    assert_non_null(strstr(err.message, "block \"layers\": \"times\" must be a whole number from 1 to 1000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_wait_for_each_other),
        cmocka_unit_test(inference_keeps_no_gates),
        cmocka_unit_test(both_ways_run_side_by_side),
        cmocka_unit_test(wrong_recurrences_are_refused),
        cmocka_unit_test(filters_that_were_computed),
        cmocka_unit_test(whose_statistics),
        cmocka_unit_test(activations_inside_products),
        cmocka_unit_test(files_say_that_they_recompute),
        cmocka_unit_test(what_was_counted_is_read),
        cmocka_unit_test(what_was_counted_at_a_convolution_is_read),
        cmocka_unit_test(the_library_holds_weights_and_products),
        cmocka_unit_test(clips_stand_among_pictures),
        cmocka_unit_test(bags_are_sorted_going_back),
        cmocka_unit_test(blocks_are_written_several_times),
    };
    return cmocka_run_group_tests(tests, help_open, help_close);
}
