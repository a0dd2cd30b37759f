/* Gradients of a graph file's operators: the kernels that PyTorch's derivative formulas launch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graphfile_help.h"

/* Something that is trained to begin with. */
#define TRAIN "{'op':'linear','in':'x','features':64,'out':'t','name':'t'},"
#define BACK(nodes) TRAINED(TRAIN nodes)

/* Kernels of the gradient beside the two products of the linear layer. */
static int beside(const ft_graph *g) { return help_kernels(g, FT_BACKWARD) - 1; } /* x is an input: one product */

static bool reaches(const ft_graph *g) { return help_node(g, FT_BACKWARD, "t") != NULL; }

static void parameters_that_were_broadcast_are_summed(void **state)
{
    (void)state;
    ft_graph *g = TRAINED("{'op':'parameter','shape':[64],'out':'w'},{'op':'mul','in':['x','w'],'out':'y','name':'m'}");
    assert_true(help_count(g, FT_BACKWARD, "sum_cols") == 1 && help_count(g, FT_BACKWARD, "mul") == 1);
    g = TRAINED("{'op':'parameter','shape':['seq',64],'out':'w'},{'op':'add','in':['x','w'],'out':'y','name':'m'}");
    const ft_op *sum = &help_node(g, FT_BACKWARD, "m")->op; /* over the batch */
    assert_string_equal("sum_cols", sum->name);
    assert_true(sum->u.row.rows == 4 && sum->u.row.cols == 128 * 64);
    g = TRAINED("{'op':'parameter','shape':[64],'trained':false,'out':'w'},{'op':'mul','in':['x','w'],'out':'y'}");
    assert_int_equal(0, help_kernels(g, FT_BACKWARD));
}

/* One weight for all iterations: the later gradients are added to the first. */
static void shared_parameters_add_up(void **state)
{
    (void)state;
#define LOOP(more)                                                                                      \
    help_good(HELP_FILE(",'repeat':4,'in':'x'", "{'op':'parameter','shape':[64,64],'out':'w'" more "}," \
                                                "{'op':'linear','in':'x','weight':'w','out':'y'}"),     \
              FT_TRAIN)
    ft_graph *g = LOOP("");
    assert_int_equal(0, help_count(g, FT_BACKWARD, "add"));
    g = LOOP(",'shared':true");
    assert_true(g->parameters == 64 * 64);
    bool added = false;
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].phase == FT_BACKWARD && !strcmp(g->nodes[i].op.name, "add")) added = g->nodes[i].count == 0.75F;
    assert_true(added);
#undef LOOP
}

/* A block reads what any earlier one made; the gradient finds its way back past the blocks in between. */
static void blocks_read_all_that_was_made(void **state)
{
    (void)state;
    ft_graph *g = help_good("{'foretell_graph':1,'inputs':{'x':{'shape':['batch',64]}},'blocks':["
                            "{'name':'a','out':'h','nodes':[{'op':'linear','in':'x','features':64,'out':'h'},"
                            "{'op':'linear','in':'x','features':64,'out':'aside','name':'aside'}]},"
                            "{'name':'b','in':'h','out':'z','nodes':[{'op':'relu','in':'h','out':'z'}]},"
                            "{'name':'head','in':'z','out':'loss','nodes':[{'op':'add','in':['aside','h'],'out':'s'},"
                            "{'op':'mse_loss','in':['s','x'],'out':'loss'}]}]}",
                            FT_TRAIN);
    assert_int_equal(FT_DO_LINEAR, help_node(g, FT_BACKWARD, "aside")->verb);
    /* h is the first block's, not what walked through the second: both linears get their gradient, relu none. */
    assert_true(help_count(g, FT_BACKWARD, "linear") == 2 && help_count(g, FT_BACKWARD, "relu_backward") == 0);
}

static void reductions(void **state)
{
    (void)state;
    ft_graph *g = BACK("{'op':'sum','in':'t','axis':1,'out':'y'}");
    assert_int_equal(0, help_count(g, FT_BACKWARD, "divu")); /* the same number everywhere is a view */
    g = BACK("{'op':'mean','in':'t','axes':[0,1],'out':'y'}");
    assert_int_equal(1, help_count(g, FT_BACKWARD, "divu"));
    g = BACK("{'op':'amax','in':'t','axis':1,'out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "compare") == 1 && help_count(g, FT_BACKWARD, "sum_cols") == 1);
    g = BACK("{'op':'norm','in':'t','out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "masked_fill") == 1 && help_count(g, FT_BACKWARD, "mul") == 1);
    assert_true(help_count(g, FT_BACKWARD, "div") == 1); /* the whole of t by its norms, not the gradient by them */
    g = BACK("{'op':'var','in':'t','out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "sub") == 1 && help_count(g, FT_BACKWARD, "sum_rows") == 1);
    g = BACK("{'op':'logsumexp','in':'t','out':'y'}");
    assert_int_equal(1, help_count(g, FT_BACKWARD, "exp"));
    g = BACK("{'op':'softmax','in':'t','axis':1,'out':'y','name':'s'}");
    const ft_op *soft = &help_node(g, FT_BACKWARD, "s")->op;
    assert_true(soft->pass == FT_PASS_BWD && soft->u.row.rows == 256 && soft->u.row.cols == 128);
    g = BACK("{'op':'argmax','in':'t','out':'y'}");
    assert_int_equal(0, help_kernels(g, FT_BACKWARD));
}

/* A norm keeps what it was given; what does not lie in rows is copied both ways. */
static void norms_across_the_order(void **state)
{
    (void)state;
    ft_graph *g = BACK("{'op':'layernorm','in':'t','out':'y'}");
    assert_true(help_count(g, FT_FORWARD, "transpose_copy") == 0 && help_count(g, FT_BACKWARD, "transpose_copy") == 0);
    g = BACK("{'op':'transpose','in':'t','axes':[0,2,1],'out':'h'},{'op':'layernorm','in':'h','out':'y'}");
    assert_true(help_count(g, FT_FORWARD, "transpose_copy") == 1 && help_count(g, FT_BACKWARD, "transpose_copy") == 1);
}

static void pieces(void **state)
{
    (void)state;
    ft_graph *g = BACK("{'op':'split','in':'t','sizes':[16,48],'out':['a','c']},{'op':'relu','in':'a','out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "fill") == 1 && help_count(g, FT_BACKWARD, "relu_backward") == 1 &&
                reaches(g));
    g = BACK("{'op':'cat','in':['t','t','t','t','t','t','t','t','t','t'],'axis':0,'out':'y'}");
    assert_int_equal(9, help_count(g, FT_BACKWARD, "add")); /* ten gradients of one tensor */
    g = BACK("{'op':'detach','in':'t','out':'d'},{'op':'add','in':['d','v'],'out':'y'}");
    assert_int_equal(0, help_kernels(g, FT_BACKWARD));
    g = BACK("{'op':'view','in':'t','shape':['batch','seq',4,16],'out':'a'},"
             "{'op':'transpose','in':'a','axes':[0,2,1,3],'out':'h'},"
             "{'op':'attention','in':['h','h','h'],'heads_out':true,'out':'o'},"
             "{'op':'transpose','in':'o','axes':[0,2,1,3],'out':'p'},"
             "{'op':'reshape','in':'p','shape':['batch','seq',64],'out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "attention") == 1 && help_count(g, FT_BACKWARD, "copy") == 0 && reaches(g));
}

static void indices(void **state)
{
    (void)state;
    ft_graph *g = BACK("{'op':'index_select','in':['t','ids'],'shape':['batch','seq',64],'out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "fill") == 1 && help_count(g, FT_BACKWARD, "index_put") == 1);
    assert_int_equal(0, help_count(g, FT_BACKWARD, "sort"));
    g = BACK("{'op':'index','in':['t','ids'],'shape':['batch','seq',64],'out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "sort") > 0 && help_count(g, FT_BACKWARD, "index_put") == 1);
    g = BACK("{'op':'scatter','in':['t','t'],'out':'y'}"); /* what was there loses those places, what came gets them */
    assert_true(help_count(g, FT_BACKWARD, "index_put") == 1 && help_count(g, FT_BACKWARD, "gather") == 1);
    g = BACK("{'op':'index_add','in':['t','t'],'in_place':true,'out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "index_put") == 0 && help_count(g, FT_BACKWARD, "gather") == 1);
    g = BACK("{'op':'topk','in':'t','k':4,'out':['y','at']}");
    assert_true(help_count(g, FT_BACKWARD, "fill") == 1 && help_count(g, FT_BACKWARD, "index_put") == 1);
    g = BACK("{'op':'sort','in':'t','out':['y']}");
    assert_true(help_count(g, FT_FORWARD, "sort") == 1 && help_count(g, FT_BACKWARD, "index_put") == 1);
    g = BACK("{'op':'sort','in':'t','out':['v2','at']},{'op':'mul','in':['at','v'],'out':'y'}");
    assert_int_equal(0, help_kernels(g, FT_BACKWARD)); /* indices have none */
}

static const ft_node *walking(const ft_graph *g, ft_phase phase, ft_walk walk)
{
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].phase == phase && g->nodes[i].walk == walk && ft__node_runs(&g->nodes[i])) return &g->nodes[i];
    return NULL;
}

/* Views of windows that overlap run nothing. Going back one kernel adds them up, or all elements are numbered, the
 * numbers copied as the view lies, and added by. */
static void windows_of_a_sequence(void **state)
{
    (void)state;
    ft_graph *g = BACK("{'op':'expand','in':'t','shape':['batch',2,'seq',64],'overlap':'count','out':'y'}");
    assert_true(walking(g, FT_BACKWARD, FT_WALK_OVERLAP) && !walking(g, FT_FORWARD, FT_WALK_OVERLAP));
    assert_true(help_count(g, FT_BACKWARD, "fill") == 1 && !walking(g, FT_BACKWARD, FT_WALK_COUNT_UP));
    g = BACK("{'op':'expand','in':'t','shape':['batch',2,'seq',64],'overlap':'index','out':'y'}");
    assert_true(walking(g, FT_BACKWARD, FT_WALK_COUNT_UP) && walking(g, FT_BACKWARD, FT_WALK_ADD_BY_INDEX));
    assert_int_equal(2, help_count(g, FT_BACKWARD, "fill"));                     /* zeros, numbers */
    g = BACK("{'op':'expand','in':'t','shape':['batch',2,'seq',64],'out':'y'}"); /* repeated: a sum */
    assert_true(!walking(g, FT_BACKWARD, FT_WALK_OVERLAP) && help_count(g, FT_BACKWARD, "fill") == 0);
}

/* Along the last axis sixteen columns are a block, which goes through all rows; along the first it is as fast as
 * memory. */
static void norms_of_weights(void **state)
{
    (void)state;
    ft_graph *g =
        BACK("{'op':'sum','in':'t','axes':[0,1],'out':'g'},{'op':'weight_norm','in':['t','g'],'last':true,'out':'y'}");
    const ft_node *there = walking(g, FT_FORWARD, FT_WALK_WEIGHT_NORM),
                  *back = walking(g, FT_BACKWARD, FT_WALK_WEIGHT_NORM_BACKWARD);
    assert_true(there && back && there->blocks == 4 && there->trips == 8 && back->trips == 8);
    g = BACK("{'op':'sum','in':'t','axis':2,'out':'g'},{'op':'weight_norm','in':['t','g'],'out':'y'}");
    assert_true(!walking(g, FT_FORWARD, FT_WALK_WEIGHT_NORM) && help_count(g, FT_BACKWARD, "weight_norm") == 1);
}

/* A softmax along an axis in the middle goes along it thread by thread, forward and back; along the last it does not.
 * Sums over axes with another between them compute the place of every value. */
static void across_axes(void **state)
{
    (void)state;
    ft_graph *g = BACK("{'op':'softmax','in':'t','axis':1,'out':'y'}");
    const ft_node *there = walking(g, FT_FORWARD, FT_WALK_TOGETHER), /* of 64 places a block's threads share the axis */
        *back = walking(g, FT_BACKWARD, FT_WALK_TOGETHER_BACKWARD);
    assert_true(there && back && there->trips == back->trips && there->blocks == back->blocks);
    g = BACK("{'op':'softmax','in':'t','axis':0,'out':'y'}");
    there = walking(g, FT_FORWARD, FT_WALK_CHANNELS);
    back = walking(g, FT_BACKWARD, FT_WALK_CHANNELS_BACKWARD);
    assert_true(there && back && there->trips > 1 && there->trips == back->trips && there->blocks == back->blocks);
    g = BACK("{'op':'softmax','in':'t','axis':2,'out':'y'}");
    assert_true(!walking(g, FT_FORWARD, FT_WALK_CHANNELS) && !walking(g, FT_BACKWARD, FT_WALK_CHANNELS_BACKWARD));
    g = BACK("{'op':'sum','in':'t','axes':[0,2],'out':'y'}");
    assert_true(walking(g, FT_FORWARD, FT_WALK_APART) || walking(g, FT_FORWARD, FT_WALK_APART_STAGED));
    g = BACK("{'op':'sum','in':'t','axes':[1,2],'out':'y'}");
    assert_true(!walking(g, FT_FORWARD, FT_WALK_APART) && !walking(g, FT_FORWARD, FT_WALK_APART_STAGED));
}

static void pictures(void **state)
{
    (void)state;
#define PICTURE(nodes) TRAINED("{'op':'conv2d','in':'picture','k':8,'r':1,'out':'t','name':'t'}," nodes)
    ft_graph *g = PICTURE("{'op':'maxpool','in':'t','window':2,'out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "fill") == 1 && help_count(g, FT_BACKWARD, "pool") == 1);
    g = PICTURE("{'op':'avgpool','in':'t','window':2,'out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "fill") == 0 && help_count(g, FT_BACKWARD, "pool") == 1);
    g = PICTURE("{'op':'upsample','in':'t','shape':['batch',8,64,64],'out':'y'}");
    assert_int_equal(1, help_count(g, FT_BACKWARD, "upsample"));
    /* Logits that the loss looks at in more pixels: a row for each of those. */
    g = PICTURE("{'op':'cross_entropy','in':'t','pixels':[64,64],'name':'loss','out':'y'}");
    assert_true(help_count(g, FT_FORWARD, "upsample") == 1 && help_count(g, FT_BACKWARD, "upsample") == 1);
    for (int32_t i = 0; i < g->node_count; i++)
        if (!strcmp(g->nodes[i].op.name, "log_softmax")) assert_int_equal(4 * 64 * 64, g->nodes[i].op.u.row.rows);
    assert_int_equal(1, help_count(g, FT_FORWARD, "log_softmax"));
    /* Of the size that it has: a copy, which the cubic kernel makes itself. */
    g = PICTURE("{'op':'upsample','in':'t','shape':['batch',8,32,32],'mode':'linear','out':'y'}");
    assert_true(!walking(g, FT_FORWARD, FT_WALK_LINEAR) && !walking(g, FT_BACKWARD, FT_WALK_LINEAR_BACKWARD));
    g = PICTURE("{'op':'upsample','in':'t','shape':['batch',8,32,32],'mode':'cubic','out':'y'}");
    assert_true(walking(g, FT_FORWARD, FT_WALK_CUBIC_SAME) && walking(g, FT_BACKWARD, FT_WALK_CUBIC_SAME));
    g = PICTURE("{'op':'upsample','in':'t','shape':['batch',8,16,16],'mode':'cubic','antialias':true,'out':'y'}");
    assert_true(walking(g, FT_FORWARD, FT_WALK_SMOOTH) && walking(g, FT_BACKWARD, FT_WALK_SMOOTH_BACKWARD));
    assert_true(walking(g, FT_FORWARD, FT_WALK_SMOOTH)->trips == 64); /* eight pixels an axis */
    /* One pixel lies both ways: as the model's images do (tests/cli/catalogue_nets.case has the other). */
    g = PICTURE("{'op':'mean','in':'t','axes':[2,3],'keepdim':true,'out':'p'},{'op':'relu','in':'p','out':'q'},"
                "{'op':'upsample','in':'q','shape':['batch',8,9,9],'mode':'linear','out':'y'}");
    assert_true(walking(g, FT_FORWARD, FT_WALK_LINEAR_LAST) && walking(g, FT_BACKWARD, FT_WALK_LINEAR_LAST_BACKWARD));
    /* Channels of NCHW are joined in long runs, rows of few pixels or not. */
    g = PICTURE("{'op':'cat','in':['t','t'],'shape':['batch',16,32,32],'out':'y'}");
    assert_true(help_node(g, FT_FORWARD, "cat")->op.u.elementwise.pattern != FT_PATTERN_STRIDED);
    g = PICTURE("{'op':'cat','in':['t','t'],'shape':['batch',8,32,64],'out':'y'}");
    assert_int_equal(1, help_count(g, FT_FORWARD, "cat_halves"));
    g = PICTURE("{'op':'rand','shape':['batch',5,7,2],'out':'at'},{'op':'grid_sample','in':['t','at'],'out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "fill") == 1 && help_count(g, FT_BACKWARD, "grid_sample") == 1);
    g = PICTURE(
        "{'op':'rand','shape':['batch',8,5,3],'out':'at'},{'op':'transpose','in':'t','axes':[0,2,3,1],'out':'w'},"
        "{'op':'linear','in':'w','features':2,'out':'at'},{'op':'detach','in':'t','out':'u'},"
        "{'op':'grid_sample','in':['u','at'],'mode':'cubic','border':true,'out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "fill") == 0 && help_count(g, FT_BACKWARD, "grid_sample") == 1);
    /* Windows: a copy and a kernel for each image; one kernel puts them together. Each is the other's gradient. */
#define CUT "{'op':'unfold','in':'t','window':[3,3],'stride':[2,2],'shape':['batch',72,225],"
    g = PICTURE(CUT "'out':'y'}");
    const ft_node *cut = walking(g, FT_FORWARD, FT_WALK_UNFOLD), *put = walking(g, FT_BACKWARD, FT_WALK_FOLD);
    assert_true(cut && cut->count == 4 && cut->trips == 9 && cut->op.u.elementwise.numel == 72 * 225);
    assert_true(put && put->count == 1 && put->trips == 4 && put->op.u.elementwise.numel == 4 * 8 * 32 * 32);
    g = PICTURE(CUT
                "'out':'w'},{'op':'fold','in':'w','window':[3,3],'stride':[2,2],'shape':['batch',8,32,32],'out':'y'}");
    put = walking(g, FT_FORWARD, FT_WALK_FOLD), cut = walking(g, FT_BACKWARD, FT_WALK_UNFOLD);
    assert_true(put && put->trips == 4 && cut && cut->count == 4 && cut->trips == 9);
    g = PICTURE("{'op':'pad','in':'t','shape':['batch',8,34,34],'out':'y'}");
    assert_int_equal(1, help_count(g, FT_BACKWARD, "pad"));
    /* A sequence that lies turned is normed as it lies, and its result is read as rows again: nothing is copied. */
    g = BACK("{'op':'transpose','in':'t','axes':[0,2,1],'out':'u'},{'op':'batchnorm','in':'u','out':'v2'},"
             "{'op':'transpose','in':'v2','axes':[0,2,1],'out':'w'},{'op':'linear','in':'w','features':8,'out':'y'}");
    assert_int_equal(0, help_count(g, FT_FORWARD, "copy") + help_count(g, FT_FORWARD, "transpose"));
    assert_true(walking(g, FT_FORWARD, FT_WALK_NORM_TURNED) && walking(g, FT_FORWARD, FT_WALK_MOMENTS_TURNED));
    assert_non_null(walking(g, FT_BACKWARD, FT_WALK_GRADIENT_TURNED));
    g = PICTURE("{'op':'groupnorm','in':'t','groups':2,'out':'y'}");
    assert_int_equal(1, help_count(g, FT_BACKWARD, "groupnorm"));
    assert_int_equal(1, help_count(g, FT_BACKWARD, "groupnorm_sums"));
    assert_int_equal(1, help_count(g, FT_BACKWARD, "groupnorm_weights"));
    g = PICTURE("{'op':'batchnorm','in':'t','out':'y'}");
    assert_int_equal(1, help_count(g, FT_BACKWARD, "batchnorm"));
    g = PICTURE("{'op':'conv2d','in':'t','k':4,'r':2,'stride':2,'transposed':true,'bias':true,'out':'y','name':'up'}");
    /* Of the inputs one lies channels last, and with it the filters: so does the result, whose columns are summed. */
    assert_true(help_count(g, FT_BACKWARD, "conv2d") == 2 && help_count(g, FT_BACKWARD, "sum_cols") == 1);
#undef PICTURE
}

static void elements(void **state)
{
    (void)state;
    /* two comparisons, a half, a choice, a filling in place */
    assert_int_equal(5, beside(BACK("{'op':'maximum','in':['t','v'],'out':'y'}")));
    assert_int_equal(5, beside(BACK("{'op':'erf','in':'t','out':'y'}")));
    assert_int_equal(0, help_kernels(BACK("{'op':'floor','in':'t','out':'y'}"), FT_BACKWARD));
    assert_int_equal(0, help_kernels(BACK("{'op':'gt','in':['t','v'],'out':'y'}"), FT_BACKWARD));
    ft_graph *g = BACK("{'op':'addcmul','in':['t','t','t'],'out':'y'}");
    assert_int_equal(2, help_count(g, FT_BACKWARD, "mul"));
    g = BACK("{'op':'gt','in':'t','out':'m'},{'op':'where','in':['m','t','t'],'out':'y'}");
    assert_int_equal(2, help_count(g, FT_BACKWARD, "where"));
    g = BACK("{'op':'relu','in':'t','in_place':true,'out':'y'}");
    assert_int_equal(1, help_count(g, FT_BACKWARD, "relu_backward"));
}

static void losses(void **state)
{
    (void)state;
    ft_graph *g = BACK("{'op':'mse_loss','in':['t','x'],'out':'y'}");
    assert_true(help_count(g, FT_FORWARD, "mean_all") == 1 && beside(g) == 1);
    g = BACK("{'op':'bce_with_logits','in':['t','x'],'out':'y'}");
    assert_int_equal(4, beside(g));
    g = BACK("{'op':'log_softmax','in':'t','out':'p'},{'op':'nll_loss','in':['p','ids'],'out':'y'}");
    assert_true(help_count(g, FT_BACKWARD, "nll_loss_backward") == 1 && help_count(g, FT_BACKWARD, "log_softmax") == 1);
    g = help_good(HELP_FILE("", TRAIN "{'op':'mse_loss','in':['t','x'],'out':'y'}"), FT_FORWARD_PASS);
    assert_int_equal(1, help_kernels(g, FT_FORWARD)); /* inference has no loss */
    REFUSED("{'op':'mse_loss','in':['v','x'],'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (mse_loss): 32768 targets for 64 elements");
}

/* Every operand of an operator that nobody knows gets its gradient. */
static void unknown_operators(void **state)
{
    (void)state;
    ft_graph *g = BACK("{'op':'linear','in':'x','features':64,'out':'u','name':'u'},"
                       "{'op':'fft','in':['t','u'],'bytes':1000,'shape':['batch','seq',64],'out':'y'}");
    assert_true(help_node(g, FT_BACKWARD, "fft")->op.u.other.bytes == 2000);
    help_node(g, FT_BACKWARD, "u");
    assert_true(reaches(g));
}

/* An operand that lies across the result's order costs its product more, and the sum to the other's shape; the sum to
 * its own reads in order. */
static void operands_across_the_order(void **state)
{
    (void)state;
#define OUTER(more)                                                                               \
    TRAINED(TRAIN "{'op':'view','in':'t','shape':['batch','seq',64,1],'out':'a'},"                \
                  "{'op':'linear','in':'x','features':64,'out':'u'},"                             \
                  "{'op':'view','in':'u','shape':['batch','seq',1,64],'strided':true,'out':'w'}," \
                  "{'op':'mul','in':['a','w'],'out':'m','name':'m'" more "},{'op':'sum','in':'m','out':'y'}")
    ft_graph *g = OUTER("");
    assert_true(help_node(g, FT_FORWARD, "m")->manner == 0);
    g = OUTER(",'across':true");
    assert_true(help_node(g, FT_FORWARD, "m")->manner == FT_MANNER_ACROSS);
    int slow = 0, sums = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->phase != FT_BACKWARD || n->verb != FT_DO_ROW) continue;
        sums++;
        slow += n->manner == FT_MANNER_ACROSS;
    }
    assert_true(sums == 2 && slow == 1);
    REFUSED("{'op':'mul','in':['x','v'],'out':'y','across':1}", FT_E_TYPE,
            "block \"b\", node 1 (mul): \"across\" must be true or false");
#undef OUTER
}

/* A sum's gradient is one number for all that it summed: memory has it once. */
static void repeated_operands_are_read_once(void **state)
{
    (void)state;
    ft_graph *g = BACK("{'op':'mul','in':['t','t'],'out':'m','name':'m'},{'op':'sum','in':'m','out':'y'}");
    const ft_op *op = &help_node(g, FT_BACKWARD, "m")->op;
    double all = 4.0 * 128 * 64 * 2;
    assert_string_equal("mul", op->name);
    assert_true(op->u.elementwise.inputs == 1);
    assert_true(op->u.elementwise.bytes >= 2 * all && op->u.elementwise.bytes < 2.1 * all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_that_were_broadcast_are_summed),
        cmocka_unit_test(shared_parameters_add_up),
        cmocka_unit_test(blocks_read_all_that_was_made),
        cmocka_unit_test(reductions),
        cmocka_unit_test(norms_across_the_order),
        cmocka_unit_test(pieces),
        cmocka_unit_test(indices),
        cmocka_unit_test(windows_of_a_sequence),
        cmocka_unit_test(norms_of_weights),
        cmocka_unit_test(across_axes),
        cmocka_unit_test(pictures),
        cmocka_unit_test(elements),
        cmocka_unit_test(losses),
        cmocka_unit_test(unknown_operators),
        cmocka_unit_test(operands_across_the_order),
        cmocka_unit_test(repeated_operands_are_read_once),
    };
    return cmocka_run_group_tests(tests, help_open, help_close);
}
