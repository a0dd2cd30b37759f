/* Operators of graph files: the shapes they give, the kernels they launch, what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "graphfile_help.h"

/* -- parameters -------------------------------------------------------------------------------- */

static void parameters_belong_to_whoever_reads_them(void **state)
{
    (void)state;
    ft_graph *g = TRAINED("{'op':'parameter','shape':[32,64],'out':'w'},{'op':'parameter','shape':[32],'out':'b'},"
                          "{'op':'linear','in':'x','weight':'w','bias':'b','out':'h','name':'up'},"
                          "{'op':'matmul','in':['h','w'],'out':'m','name':'down'},"
                          "{'op':'mul','in':['m','v'],'out':'y'}");
    assert_true(g->parameters == 32 * 64 + 32 && g->parameter_tensors == 2);
    const ft_op *up = &help_node(g, FT_FORWARD, "up")->op, *down = &help_node(g, FT_FORWARD, "down")->op;
    assert_string_equal("nt", up->u.gemm.layout);
    assert_true(up->u.gemm.m == 512 && up->u.gemm.n == 32 && up->u.gemm.k == 64 && up->u.gemm.bias);
    /* [batch, seq, 32] x [32, 64] is one product of all rows, its weight as it stands. */
    assert_true(down->u.gemm.b == 1 && down->u.gemm.m == 512 && down->u.gemm.n == 64 && down->u.gemm.k == 32);
    assert_string_equal("nn", down->u.gemm.layout);
    g = TRAINED("{'op':'parameter','shape':[64,32],'out':'w'},"
                "{'op':'linear','in':'x','weight':'w','weight_layout':'kn','out':'y','name':'up'}");
    up = &help_node(g, FT_FORWARD, "up")->op;
    assert_string_equal("nn", up->u.gemm.layout);
    assert_int_equal(32, up->u.gemm.n);
}

static void parameters_of_iterations(void **state)
{
    (void)state;
    const char *file =
        HELP_FILE(",'repeat':3,'in':'x'",
                  "{'op':'parameter','shape':[64],'out':'own'},"
                  "{'op':'parameter','shape':[64],'shared':true,'out':'one'},"
                  "{'op':'parameter','shape':[64],'trained':false,'dtype':'fp32','out':'still'},"
                  "{'op':'buffer','shape':[100],'dtype':'int64','out':'u'},"
                  "{'op':'mul','in':['x','own'],'out':'a'},{'op':'mul','in':['a','one'],'out':'c'},"
                  "{'op':'mul','in':['c','still'],'out':'d'},{'op':'cast','in':'d','to':'model','out':'y'}");
    ft_graph *g = help_good(file, FT_TRAIN);
    assert_true(g->parameters == 64 * (3 + 1 + 3) && g->trained_parameters == 64 * (3 + 1));
    assert_true(g->parameter_bytes == 2 * 64 * 4 + 4 * 64 * 3 && g->buffer_bytes == 3 * 800);
    assert_true(g->trained_tensors == 4);
    int gradients = 0;
    for (int32_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].role == FT_GRADIENT && g->tensors[i].storage == i) gradients += (int)g->tensors[i].copies;
    assert_int_equal(4, gradients);
}

static void parameters_that_do_not_fit(void **state)
{
    (void)state;
    REFUSED("{'op':'parameter','shape':[32,63],'out':'w'},{'op':'linear','in':'x','weight':'w','out':'y'}", FT_E_RANGE,
            "block \"b\", node 2 (linear): its weight is for rows of 63, x has rows of 64");
    REFUSED("{'op':'linear','in':'x','weight':'ww','out':'y'}", FT_E_NAME,
            "block \"b\", node 1 (linear): \"ww\" was not made before");
    REFUSED("{'op':'linear','in':'x','features':8,'weight_layout':'nn','out':'y'}", FT_E_NAME,
            "block \"b\", node 1 (linear): \"weight_layout\" must be \"nk\", features first, or \"kn\"");
    REFUSED("{'op':'linear','in':'x','features':8,'bias':'v','out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (linear): \"bias\" has 64 elements, not 1 x 8");
    REFUSED("{'op':'parameter','shape':[8],'dtype':'bf17','out':'y'}", FT_E_NAME,
            "block \"b\", node 1 (parameter): \"dtype\" must name a dtype, got \"bf17\"");
    REFUSED("{'op':'parameter','shape':[8],'out':'y'}", FT_E_RANGE,
            "block \"b\": its result \"y\" is a parameter, which nobody computes");
    REFUSED("{'op':'parameter','in':'x','shape':[8],'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (parameter): it takes 0 operands at most, got 1");
    REFUSED("{'op':'parameter','shape':[9,9],'out':'t'},{'op':'embedding','in':'ids','rows':8,'table':'t','out':'y'}",
            FT_E_RANGE, "block \"b\", node 2 (embedding): \"table\" names a tensor of another shape than 8 x 9");
}

/* -- views ------------------------------------------------------------------------------------- */

/* Heads apart, transposed, attended, transposed back, joined: nothing of it is copied. */
static void views_cost_nothing_where_memory_allows_it(void **state)
{
    (void)state;
    ft_graph *g = FORWARD("{'op':'view','in':'x','shape':['batch','seq',4,16],'out':'a'},"
                          "{'op':'transpose','in':'a','axes':[0,2,1,3],'out':'h'},"
                          "{'op':'attention','in':['h','h','h'],'heads_out':true,'out':'o'},"
                          "{'op':'transpose','in':'o','axes':[0,2,1,3],'out':'t'},"
                          "{'op':'contiguous','in':'t','out':'c'},"
                          "{'op':'reshape','in':'c','shape':['batch','seq',64],'out':'y'}");
    assert_int_equal(1, help_kernels(g, FT_FORWARD));
    g = FORWARD("{'op':'view','in':'x','shape':['batch','seq',4,16],'out':'a'},"
                "{'op':'transpose','in':'a','axes':[0,2,1,3],'out':'h'},"
                "{'op':'reshape','in':'h','shape':['batch','4*seq',16],'out':'y'}"); /* heads do not lie so */
    assert_int_equal(1, help_count(g, FT_FORWARD, "copy"));
    g = FORWARD("{'op':'slice','in':'x','shape':[1,'seq',64],'out':'a'},"
                "{'op':'reshape','in':'a','shape':['64*seq'],'out':'y'}"); /* the first of a batch lies in one piece */
    assert_int_equal(0, help_kernels(g, FT_FORWARD));
    g = FORWARD("{'op':'slice','in':'x','shape':['batch',64],'axis':1,'out':'a'},"
                "{'op':'reshape','in':'a','shape':['64*batch'],'out':'y'}"); /* the first token of each does not */
    assert_int_equal(1, help_count(g, FT_FORWARD, "copy"));
    /* What is repeated is read once: 2 heads of keys for 8 of queries. */
    g = FORWARD("{'op':'view','in':'k','shape':['batch',2,1,'seq',64],'out':'a'},"
                "{'op':'expand','in':'a','shape':['batch',2,4,'seq',64],'out':'e'},"
                "{'op':'reshape','in':'e','shape':['batch',8,'seq',64],'out':'y','name':'repeat'}");
    assert_true(help_node(g, FT_FORWARD, "repeat")->op.u.elementwise.bytes == 2.0 * (4 * 2 + 4 * 8) * 128 * 64);
    REFUSED("{'op':'transpose','in':'x','axes':[0,0,1],'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (transpose): \"axes\" must be the numbers 0 to 2 in their new order");
    REFUSED("{'op':'transpose','in':'x','axes':[0,2,1],'shape':['batch','seq',64],'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (transpose): \"shape\" is not that of x with its axes in the order of \"axes\"");
}

static void lists_of_results(void **state)
{
    (void)state;
    ft_graph *g = FORWARD("{'op':'split','in':'x','sizes':[16,48],'out':['a','c']},"
                          "{'op':'relu','in':'c','out':'d','name':'wide'},"
                          "{'op':'cat','in':['d','a','x','d','a','x','d','a','x','d','a'],'axis':-1,'out':'y'}");
    assert_int_equal(4 * 128 * 48, help_node(g, FT_FORWARD, "wide")->op.u.elementwise.numel);
    assert_true(ft__tensor_numel(&g->tensors[g->blocks[0].carry_out]) == 4 * 128 * 448); /* eleven operands */
    g = FORWARD("{'op':'unbind','in':'k','axis':1,'out':['a','c']},{'op':'add','in':['a','c'],'out':'y','name':'s'}");
    assert_int_equal(4 * 128 * 64, help_node(g, FT_FORWARD, "s")->op.u.elementwise.numel);
    g = FORWARD("{'op':'topk','in':'x','k':8,'out':['a','at']},{'op':'mulu','in':'a','out':'y','name':'s'}");
    assert_int_equal(4 * 128 * 8, help_node(g, FT_FORWARD, "s")->op.u.elementwise.numel);
    g = FORWARD("{'op':'split','in':'x','sizes':[10,10,10,10,10,14],'out':['a','c','d','e','f','y']}");
    assert_true(ft__tensor_numel(&g->tensors[g->blocks[0].carry_out]) == 4 * 128 * 14); /* more than a node has */
    REFUSED("{'op':'split','in':'x','sizes':[16,47],'out':['y','c']}", FT_E_RANGE,
            "block \"b\", node 1 (split): \"sizes\" must be a list of 2, one for each name in \"out\", and give 64 "
            "together");
    REFUSED("{'op':'split','in':'x','out':['y','c']}", FT_E_MISSING,
            "block \"b\", node 1 (split): \"sizes\" must be a list of 2, one for each name in \"out\", and give 64 "
            "together");
    REFUSED("{'op':'unbind','in':'k','axis':1,'out':['y']}", FT_E_RANGE,
            "block \"b\", node 1 (unbind): \"out\" must name 2 results of two axes or more, got 1");
    REFUSED("{'op':'topk','in':'x','k':65,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (topk): \"k\" must be a whole number from 1 to 64, or a formula with \"batch\" and "
            "\"seq\"");
    REFUSED("{'op':'cat','in':['x','k'],'axis':1,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (cat): operand 2 has other sizes than the first beside axis 1");
}

static void sizes_are_formulas(void **state)
{
    (void)state;
    ft_graph *g = FORWARD("{'op':'zeros','shape':['2*seq-1','seq/3+batch'],'out':'y','name':'z'}");
    const ft_tensor *t = help_result(g, "z");
    assert_true(t->rows == 255 && t->cols == 42 + 4 && t->element_bytes == 2);
    REFUSED("{'op':'zeros','shape':['seq-200'],'out':'y'}", FT_E_TYPE,
            "block \"b\", node 1 (zeros): \"shape\" must be a list of 1 to 8 sizes: whole numbers, \"batch\", \"seq\" "
            "or formulas of them, up to 2^40 each and 2^60 together");
    static const char *const wrong[] = {"seq/0", "seq+", "*seq", "seq**2", "sequence", "seq*-1", "1e30*seq"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[600];
        ft_error err = {0};
        snprintf(text, sizeof text, HELP_FILE("", "{'op':'zeros','shape':['%s'],'out':'y'}"), wrong[i]);
        assert_null(help_read(text, &err));
        assert_int_equal(FT_E_TYPE, err.code);
    }
}

/* -- attention --------------------------------------------------------------------------------- */

static void attention_follows_the_request(void **state)
{
    (void)state;
#define ATTEND(more) "{'op':'attention','in':['q','k','k'" more ",'out':'y'}"
    help_work.attention = FT_FLASH;
    ft_graph *g = FORWARD(ATTEND("],'causal':true"));
    assert_int_equal(1, help_count(g, FT_FORWARD, "attention"));
    assert_true(help_node(g, FT_FORWARD, "attention")->op.u.attention.library == FT_LIBRARY_FLASH);
    help_work.attention = FT_SDPA;
    g = FORWARD(ATTEND("],'causal':true"));
    assert_true(help_count(g, FT_FORWARD, "attention") == 1 && help_count(g, FT_FORWARD, "where") == 0);
    g = FORWARD(
        ATTEND(",'seen']")); /* true and false become numbers, keys and values are repeated, nothing is causal */
    assert_true(help_count(g, FT_FORWARD, "where") == 1 && help_count(g, FT_FORWARD, "copy") == 3);
    assert_true(help_node(g, FT_FORWARD, "attention")->manner & FT_MANNER_MASK);
    help_work.attention = FT_EAGER;
    g = FORWARD(ATTEND("],'causal':true"));
    assert_true(help_count(g, FT_FORWARD, "attention") == 0 && help_count(g, FT_FORWARD, "bmm") == 2);
    assert_true(help_count(g, FT_FORWARD, "softmax") == 1 && help_count(g, FT_FORWARD, "add") == 1); /* the mask */
    g = FORWARD(ATTEND("],'softcap':30"));
    assert_true(help_count(g, FT_FORWARD, "tanh") == 1 && help_count(g, FT_FORWARD, "add") == 0);
    g = FORWARD(ATTEND("],'backend':'flash','scale':0.1"));
    assert_int_equal(1, help_count(g, FT_FORWARD, "attention"));
    g = TRAINED("{'op':'linear','in':'x','features':64,'out':'l'},{'op':'view','in':'l','shape':['batch','seq',1,64],"
                "'out':'h'},{'op':'transpose','in':'h','axes':[0,2,1,3],'out':'t'},"
                "{'op':'attention','in':['t','t','t'],'dropout':0.1,'backend':'eager','out':'y'}");
    assert_int_equal(1, help_count(g, FT_FORWARD, "dropout"));
    help_work.attention = FT_FLASH;
    g = FORWARD(ATTEND("],'backend':'math'")); /* sdpa's own, in fp32 */
    assert_true(help_count(g, FT_FORWARD, "attention") == 0 && help_count(g, FT_FORWARD, "cast_fp32") == 3);
    REFUSED(ATTEND("],'backend':'flsh'"), FT_E_NAME,
            "block \"b\", node 1 (attention): \"backend\" must be flash, sdpa, math or eager; did you mean \"flash\"?");
    REFUSED(ATTEND("],'dropout':1"), FT_E_RANGE,
            "block \"b\", node 1 (attention): \"dropout\" must be a number from 0 to 1, 1 excluded");
    REFUSED(ATTEND("],'scale':'d'"), FT_E_TYPE, "block \"b\", node 1 (attention): \"scale\" must be a number");
#undef ATTEND
}

/* -- along axes -------------------------------------------------------------------------------- */

static void row_is(const ft_graph *g, const char *name, const char *op, int64_t rows, int64_t cols)
{
    const ft_node *n = help_node(g, FT_FORWARD, name);
    assert_int_equal(FT_OP_ROW, n->op.kind);
    assert_string_equal(op, n->op.name);
    assert_int_equal(rows, n->op.u.row.rows);
    assert_int_equal(cols, n->op.u.row.cols);
}

static void reductions_walk_as_memory_lies(void **state)
{
    (void)state;
    row_is(FORWARD("{'op':'sum','in':'x','out':'y'}"), "sum", "sum_rows", 512, 64);
    row_is(FORWARD("{'op':'mean','in':'x','axes':[1,2],'out':'y'}"), "mean", "sum_rows", 4, 8192);
    row_is(FORWARD("{'op':'amax','in':'x','axis':0,'out':'y'}"), "amax", "sum_cols", 4, 8192);
    row_is(FORWARD("{'op':'sum','in':'x','axis':1,'out':'y'}"), "sum", "sum_cols", 128, 256);
    row_is(FORWARD("{'op':'norm','in':'x','axes':[0,1,2],'out':'y'}"), "norm", "mean_all", 512, 64);
    row_is(FORWARD("{'op':'argmax','in':'x','axis':-1,'out':'y'}"), "argmax", "argmax", 512, 64);
    row_is(FORWARD("{'op':'softmax','in':'x','axis':1,'out':'y'}"), "softmax", "softmax", 256, 128);
    ft_graph *g = FORWARD("{'op':'sum','in':'x','axis':1,'keepdim':false,'out':'s'},"
                          "{'op':'view','in':'s','shape':['batch',64],'out':'y'}");
    assert_int_equal(2, g->node_count);
    assert_true(help_result(FORWARD("{'op':'argmax','in':'x','out':'y'}"), "argmax")->element_bytes == 8);
    assert_true(help_result(FORWARD("{'op':'any','in':'seen','out':'y'}"), "any")->element_bytes == 1);
    REFUSED("{'op':'sum','in':'x','axis':3,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (sum): \"axis\" must be axes of 3, from -3 to 2");
    REFUSED("{'op':'sum','in':'x','axes':[],'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (sum): \"axes\" must be axes of 3, from -3 to 2");
    REFUSED("{'op':'softmax','in':'x','axis':'last','out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (softmax): \"axis\" must be axes of 3, from -3 to 2");
}

static void norms(void **state)
{
    (void)state;
    ft_graph *g = FORWARD("{'op':'layernorm','in':'x','weight':false,'out':'a'},"
                          "{'op':'layernorm','in':'a','last':2,'bias':true,'out':'c'},"
                          "{'op':'rmsnorm','in':'c','out':'y'}");
    assert_true(g->parameters == 2 * 8192 + 64);
    /* A weight that was computed is an operand: the parameter behind it, one small kernel, the norm. */
    g = FORWARD("{'op':'parameter','shape':[64],'out':'w'},{'op':'add','in':['w','v'],'out':'u'},"
                "{'op':'layernorm','in':['x','u'],'bias':true,'out':'y'}");
    assert_true(g->parameters == 2 * 64);
    assert_int_equal(2, help_kernels(g, FT_FORWARD));
    REFUSED("{'op':'parameter','shape':[63],'out':'w'},{'op':'layernorm','in':['x','w'],'out':'y'}", FT_E_RANGE,
            "block \"b\", node 2 (layernorm): the weight has 63 elements, a row 64");
    REFUSED("{'op':'parameter','shape':[64],'out':'w'},{'op':'rmsnorm','in':['x','w'],'weight':true,'out':'y'}",
            FT_E_RANGE,
            "block \"b\", node 2 (rmsnorm): its weight is given twice: as the second operand and by \"weight\"");
    g = FORWARD("{'op':'groupnorm','in':'picture','groups':4,'out':'y','name':'gn'}");
    const ft_node *sums = NULL, *result = NULL;
    for (int32_t i = 0; i < g->node_count; i++) {
        if (!strcmp(g->nodes[i].op.name, "groupnorm_moments")) sums = &g->nodes[i];
        if (!strcmp(g->nodes[i].op.name, "groupnorm")) result = &g->nodes[i];
    }
    assert_true(sums && result);
    assert_true(sums->walk == FT_WALK_GROUP_MOMENTS && sums->trips == 4 &&
                sums->blocks == 16); /* 2,048 by 512 threads */
    assert_true(result->walk == FT_WALK_BROADCAST_LOW && result->blocks == 64);
    assert_true(g->parameters == 16);
    /* Channels last are turned first, and the result stays turned: a batch norm of it walks channels first. */
    assert_int_equal(0, help_count(g, FT_FORWARD, "transpose"));
    g = FORWARD("{'op':'groupnorm','in':'turned','groups':4,'out':'g'},{'op':'batchnorm','in':'g','out':'y'}");
    assert_int_equal(1, help_count(g, FT_FORWARD, "transpose"));
    for (int32_t i = 0; i < g->node_count; i++)
        if (!strcmp(g->nodes[i].op.name, "batchnorm")) assert_true(g->nodes[i].walk == FT_WALK_NORM);
    /* A convolution whose filters lie channels last turns it back. */
    g = FORWARD("{'op':'groupnorm','in':'turned','groups':4,'out':'g'},{'op':'conv2d','in':'g','k':8,'r':3,'out':'y'}");
    assert_int_equal(2, help_count(g, FT_FORWARD, "transpose"));
    /* Joined, pictures that all lie channels last stay so: a convolution behind them turns nothing. */
    g = FORWARD(
        "{'op':'cat','in':['turned','turned'],'axis':1,'out':'c'},{'op':'conv2d','in':'c','k':8,'r':3,'out':'y'}");
    assert_true(help_node(g, FT_FORWARD, "conv2d")->op.u.conv.nhwc && help_count(g, FT_FORWARD, "transpose") == 0);
    /* A norm over the last axis of what a transposition left costs a copy into order. */
    g = FORWARD("{'op':'transpose','in':'picture','axes':[0,2,3,1],'out':'t'},{'op':'layernorm','in':'t','out':'y'}");
    assert_int_equal(1, help_count(g, FT_FORWARD, "transpose_copy"));
    g = FORWARD("{'op':'transpose','in':'turned','axes':[0,2,3,1],'out':'t'},{'op':'layernorm','in':'t','out':'y'}");
    assert_int_equal(1, help_kernels(g, FT_FORWARD)); /* which is where these lie already */
    REFUSED("{'op':'groupnorm','in':'picture','groups':3,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (groupnorm): 3 groups do not divide 8 channels");
}

/* -- pictures ---------------------------------------------------------------------------------- */

static void convolutions_of_all_kinds(void **state)
{
    (void)state;
    ft_graph *g = FORWARD(
        "{'op':'conv2d','in':'picture','k':16,'r':3,'stride':[2,1],'pad':[1,0],'dilation':2,'out':'c'},"
        "{'op':'view','in':'c','shape':['batch',16,15,28],'out':'y'}");
    double flops = 2.0 * 4 * 15 * 28 * 16 * 8 * 9;
    assert_true(ft__op_flops(&help_node(g, FT_FORWARD, "conv2d")->op) == flops);
    g = FORWARD(
        "{'op':'conv2d','in':'picture','k':4,'r':3,'stride':2,'pad':1,'output_pad':1,'transposed':true,'out':'c'},"
        "{'op':'view','in':'c','shape':['batch',4,64,64],'out':'y'}");
    assert_true(g->parameters == 8 * 4 * 9);
    assert_true(ft__op_flops(&help_node(g, FT_FORWARD, "conv2d")->op) == 2.0 * 4 * 32 * 32 * 8 * 4 * 9);
    g = FORWARD("{'op':'conv1d','in':'sound','k':6,'r':5,'stride':2,'pad':2,'groups':2,'bias':true,'out':'c'},"
                "{'op':'view','in':'c','shape':['batch',6,50],'out':'y'}");
    assert_true(g->parameters == 6 * 4 * 5 + 6);
    assert_true(ft__op_flops(&help_node(g, FT_FORWARD, "conv1d")->op) == 2.0 * 4 * 50 * 6 * 4 * 5);
    g = FORWARD("{'op':'conv3d','in':'film','k':6,'t':3,'r':3,'stride':[1,2,2],'pad':1,'out':'c'},"
                "{'op':'view','in':'c','shape':['batch',6,8,8,8],'out':'y'}");
    assert_true(g->parameters == 6 * 4 * 27);
    assert_true(ft__op_flops(&help_node(g, FT_FORWARD, "conv3d")->op) == 2.0 * 4 * 512 * 6 * 4 * 27);
    /* Sizes may come from the weight. */
    g = FORWARD("{'op':'parameter','shape':[16,8,3,3],'out':'w'},{'op':'parameter','shape':[16],'out':'o'},"
                "{'op':'conv2d','in':'turned','weight':'w','bias':'o','pad':1,'out':'y'}");
    assert_true(g->parameters == 16 * 8 * 9 + 16 && help_node(g, FT_FORWARD, "conv2d")->op.u.conv.nhwc);
    assert_int_equal(1, help_count(g, FT_FORWARD, "add")); /* the bias is a kernel of its own */
    REFUSED("{'op':'conv2d','in':'picture','k':4,'r':40,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (conv2d): a filter of 40 does not fit a side of 32");
    REFUSED("{'op':'conv1d','in':'picture','k':4,'r':3,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (conv1d): a convolution takes [n, c, l], got 4 axes");
    REFUSED("{'op':'conv2d','in':'picture','k':4,'r':3,'stride':[1,2,3],'out':'y'}", FT_E_TYPE,
            "block \"b\", node 1 (conv2d): \"stride\" must be a whole number from 1 on, or a list of 2 of them");
    REFUSED("{'op':'conv2d','in':'picture','k':4,'r':3,'weight':'v','out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (conv2d): \"weight\" has 64 elements, not 4 x 72");
}

static void pictures_change_their_size(void **state)
{
    (void)state;
    ft_graph *g = FORWARD("{'op':'maxpool','in':'picture','window':3,'stride':2,'pad':1,'out':'a'},"
                          "{'op':'avgpool','in':'a','window':[2,3],'ceil':true,'out':'c'},"
                          "{'op':'upsample','in':'c','shape':['batch',8,20,20],'out':'d'},"
                          "{'op':'pad','in':'d','shape':['batch',8,22,22],'out':'e'},"
                          "{'op':'adaptive_avgpool','in':'e','shape':['batch',8,1,1],'out':'f'},"
                          "{'op':'reshape','in':'f','shape':['batch',8],'out':'y'}");
    assert_int_equal(4 * 8 * 16 * 16, help_node(g, FT_FORWARD, "maxpool")->op.u.elementwise.numel);
    assert_int_equal(4 * 8 * 8 * 6, help_node(g, FT_FORWARD, "avgpool")->op.u.elementwise.numel);
    row_is(g, "adaptive_avgpool", "sum_rows", 32, 484);
    REFUSED("{'op':'upsample','in':'picture','shape':['batch',9,64,64],'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (upsample): \"shape\" must have x's 4 axes, and its first two sizes");
    REFUSED("{'op':'maxpool','in':'x','window':300,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (maxpool): a window of 300 does not fit a side of 64");
    REFUSED("{'op':'avgpool','in':'v','window':2,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (avgpool): it takes [n, c, ...] of 3 to 5 axes, got 1");
}

/* Channels next to each other stay so through filters, norms and sums; a channels-first picture does not become so. */
static void pictures_keep_their_order(void **state)
{
    (void)state;
    ft_graph *g = TRAINED(
        "{'op':'conv2d','in':'turned','k':8,'r':3,'pad':1,'out':'a'},{'op':'batchnorm','in':'a','out':'c'},"
        "{'op':'relu','in':'c','out':'d'},{'op':'add','in':['d','turned'],'out':'e'},"
        "{'op':'conv2d','in':'e','k':8,'r':1,'out':'y','name':'last'}");
    assert_true(help_node(g, FT_FORWARD, "last")->op.u.conv.nhwc);
    assert_true(help_count(g, FT_FORWARD, "copy") == 0 && help_count(g, FT_BACKWARD, "copy") == 0);
    g = FORWARD("{'op':'conv2d','in':'picture','k':8,'r':3,'pad':1,'out':'a'},{'op':'relu','in':'a','out':'y'}");
    assert_false(help_node(g, FT_FORWARD, "conv2d")->op.u.conv.nhwc);
}

/* -- indices, elements ------------------------------------------------------------------------- */

static void formats_of_results(void **state)
{
    (void)state;
    ft_graph *g = FORWARD("{'op':'arange','shape':['seq'],'out':'p','name':'p'},"
                          "{'op':'eq','in':['ids','p'],'out':'e','name':'e'},"
                          "{'op':'add','in':['ids','e'],'out':'i','name':'i'},"
                          "{'op':'one_hot','in':'ids','classes':10,'out':'o','name':'o'},"
                          "{'op':'cast','in':'i','to':'int32','out':'s','name':'s'},"
                          "{'op':'cast','in':'x','to':'fp32','out':'f','name':'f'},"
                          "{'op':'cast','in':'f','like':'x','out':'l','name':'l'},"
                          "{'op':'mulu','in':'l','dtype':'fp32','out':'y','name':'y'}");
    assert_true(help_result(g, "p")->element_bytes == 8 && help_result(g, "e")->element_bytes == 1);
    assert_true(help_result(g, "i")->element_bytes == 8 && help_result(g, "o")->element_bytes == 8);
    assert_true(help_result(g, "s")->element_bytes == 4 && help_result(g, "f")->element_bytes == 4);
    assert_true(help_result(g, "l")->element_bytes == 2 && help_result(g, "y")->element_bytes == 4);
    /* Bytes are those of the formats: two indices in, a truth out. */
    assert_true(help_node(g, FT_FORWARD, "e")->op.u.elementwise.bytes == 512 * 8 + 128 * 8 + 512);
    /* A cast to what it is already is nothing. */
    assert_int_equal(0, help_kernels(FORWARD("{'op':'cast','in':'x','to':'model','out':'y'}"), FT_FORWARD));
    REFUSED("{'op':'cast','in':'x','out':'y'}", FT_E_MISSING,
            "block \"b\", node 1 (cast): \"to\" must name a dtype, or \"like\" a tensor");
    REFUSED("{'op':'relu','in':'x','dtype':'float','out':'y'}", FT_E_NAME,
            "block \"b\", node 1 (relu): \"dtype\" must name a dtype, got \"float\"");
}

static void elements_broadcast_as_in_numpy(void **state)
{
    (void)state;
    ft_graph *g = FORWARD(
        "{'op':'arange','shape':['seq',1],'out':'a'},{'op':'arange','shape':[1,'seq'],'out':'c'},"
        "{'op':'ge','in':['a','c'],'out':'m','name':'m'},{'op':'masked_fill','in':['seen','m'],'out':'y'}");
    const ft_tensor *t = help_result(g, "m");
    assert_true(t->rows == 128 && t->cols == 128 && t->element_bytes == 1);
    g = FORWARD("{'op':'ne','in':'ids','out':'n'},{'op':'view','in':'n','shape':['batch','seq',1],'out':'m'},"
                "{'op':'where','in':['m','x','v'],'out':'y','name':'w'}"); /* condition, x, the other choice */
    assert_true(help_result(g, "w")->element_bytes == 2 && help_node(g, FT_FORWARD, "w")->in_count == 3);
    assert_int_equal(4 * 128 * 64, help_node(g, FT_FORWARD, "w")->op.u.elementwise.numel);
    REFUSED(
        "{'op':'add','in':['x','k'],'out':'y'}", FT_E_RANGE,
        "block \"b\", node 1 (add): operands of 32768 and 65536 elements: sizes must be equal or 1 in each of their "
        "last axes");
}

static void indices_and_places(void **state)
{
    (void)state;
    ft_graph *g = FORWARD("{'op':'index_select','in':['x','ids'],'shape':['batch','seq',64],'out':'a','name':'rows'},"
                          "{'op':'take_along','in':['x','ids'],'shape':['batch','seq',1],'out':'c','name':'one'},"
                          "{'op':'index_put','in':['x','a','ids'],'out':'d','name':'put'},"
                          "{'op':'index_fill','in':'d','count':7,'in_place':true,'out':'y','name':'few'}");
    row_is(g, "rows", "embedding", 512, 64);
    assert_int_equal(512, help_node(g, FT_FORWARD, "one")->op.u.elementwise.numel);
    assert_int_equal(2, help_count(g, FT_FORWARD, "index_put"));
    assert_int_equal(1, help_count(g, FT_FORWARD, "copy")); /* the first is not in place */
    assert_int_equal(7, help_node(g, FT_FORWARD, "few")->op.u.elementwise.numel);
    g = FORWARD("{'op':'masked_select','in':['x','seen'],'shape':['batch*seq'],'out':'y'}");
    assert_int_equal(FT_DO_SYNC, g->nodes[0].verb); /* the host waits for how many there are */
    g = FORWARD("{'op':'empty','shape':[9],'out':'e'},{'op':'sync'},{'op':'full','shape':[9],'out':'y'}");
    assert_int_equal(1, help_count(g, FT_FORWARD, "fill"));
    REFUSED("{'op':'scatter','in':'x','out':'y'}", FT_E_MISSING,
            "block \"b\", node 1 (scatter): operand 2 is missing in \"in\"");
    REFUSED("{'op':'index_fill','in':'x','out':'y'}", FT_E_MISSING,
            "block \"b\", node 1 (index_fill): \"count\" must be a whole number from 1 to 1099511627776, or a formula "
            "with \"batch\" and \"seq\"");
}

static void in_place_and_the_host(void **state)
{
    (void)state;
    ft_graph *g = FORWARD("{'op':'mulu','in':'x','out':'a'},{'op':'add','in':['a','v'],'in_place':true,'out':'y',"
                          "'module':'model.layers.0.act','host_ops':5}");
    const ft_node *n = help_node(g, FT_FORWARD, "model.layers.0.act");
    assert_true(n->in_place && n->host_ops == 5);
    assert_int_equal(g->tensors[n->in[0]].storage, g->tensors[n->out[0]].storage);
    g = help_good(HELP_FILE(",'modules':17", "{'op':'linear','in':'x','features':8,'out':'y'}"), FT_FORWARD_PASS);
    assert_int_equal(17, g->blocks[0].modules);
    REFUSED("{'op':'add','in':['v','x'],'in_place':true,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (add): in place its result has the first operand's shape");
    REFUSED("{'op':'relu','in':'x','host_ops':-1,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (relu): \"host_ops\" must be a whole number from 0 to 100000, or a formula with "
            "\"batch\" and \"seq\"");
    help_refused(HELP_FILE(",'modules':-1", "{'op':'relu','in':'x','out':'y'}"), FT_E_RANGE,
                 "block \"b\": \"modules\" must be a whole number from 0 to 1000000");
}

static void experts(void **state)
{
    (void)state;
    ft_graph *g = FORWARD(
        "{'op':'linear','in':'x','features':16,'out':'r'},{'op':'topk','in':'r','k':2,'out':['w','at']},"
        "{'op':'experts','in':['x','w','at'],'experts':16,'topk':2,'inter':32,'out':'y'}");
    assert_true(g->parameters == 64 * 16 + 16.0 * 3 * 64 * 32);
    assert_true(g->active_parameters == 64 * 16 + 2.0 * 3 * 64 * 32);
    const ft_op *up = &help_node(g, FT_FORWARD, "moe.gate_up")->op;
    assert_true(up->u.gemm.b == 16 && up->u.gemm.m == 64 && up->u.gemm.n == 64 && up->u.gemm.k == 64);
    g = FORWARD("{'op':'parameter','shape':[16,24,64],'out':'w'},"
                "{'op':'grouped_mm','in':'x','experts':16,'features':24,'weight':'w','out':'y'}");
    assert_true(g->parameters == 16 * 24 * 64);
    REFUSED("{'op':'experts','in':['x','x'],'experts':16,'topk':2,'inter':32,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (experts): 512 tokens of 2 experts each need as many weights, got 32768");
    REFUSED("{'op':'grouped_mm','in':'x','experts':4,'topk':5,'features':8,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (grouped_mm): \"topk\" is 5 of 4 experts");
}

static void inputs_say_how_they_lie(void **state)
{
    (void)state;
    help_refused("{'foretell_graph':1,'inputs':{'p':{'shape':[1,2,3,4],'layout':'hwc'}},'blocks':[{}]}", FT_E_NAME,
                 "input \"p\": \"layout\" must be nchw, nhwc or request");
    help_refused("{'foretell_graph':1,'inputs':{'p':{'shape':[1],'dtype':'int65'}},'blocks':[{}]}", FT_E_NAME,
                 "input \"p\": \"dtype\" must be int64, int32, bool or a dtype, got \"int65\"");
    const char *file = "{'foretell_graph':1,'inputs':{'p':{'shape':[1,8,4,4],'layout':'request'}},'blocks':[{'out':'y',"
                       "'nodes':[{'op':'conv2d','in':'p','k':8,'r':1,'out':'y'}]}]}";
    assert_true(help_node(help_good(file, FT_FORWARD_PASS), FT_FORWARD, "conv2d")->op.u.conv.nhwc);
    help_work.nchw = true;
    assert_false(help_node(help_good(file, FT_FORWARD_PASS), FT_FORWARD, "conv2d")->op.u.conv.nhwc);
    help_work.nchw = false;
}

/* Names are found by hash: twenty thousand nodes are read at once. */
static void large_files(void **state)
{
    (void)state;
    enum { NODES = 20000 };
    char *text = malloc(NODES * 64 + 1024), *at = text;
    assert_non_null(text);
    at += sprintf(at, "{'foretell_graph':1,'inputs':{'n0':{'shape':['batch',64]}},'blocks':[{'out':'n%d','nodes':[",
                  NODES);
    for (int i = 0; i < NODES; i++) at += sprintf(at, "%s{'op':'relu','in':'n%d','out':'n%d'}", i ? "," : "", i, i + 1);
    strcpy(at, "]}]}");
    ft_graph *g = help_good(text, FT_FORWARD_PASS);
    assert_int_equal(NODES, g->node_count);
    free(text);
}

static ft_status attempt(void *context)
{
    ft_error err = {0};
    ft_arena *kept = help_arena;
    help_arena = ft__arena_new(0);
    ft_status status = FT_E_MEMORY;
    json_t *file = NULL;
    ft_arch arch = {0};
    ft_graph *graph = NULL;
    const char *text = context;
    if (help_arena) status = ft__json_parse(text, strlen(text), "", &file, &err);
    if (status == FT_OK) status = ft__config_read(file, NULL, "model", &arch, &err);
    if (status == FT_OK) status = ft__model_graph(&arch, &help_work, help_arena, &graph, &err);
    ft__arch_release(&arch);
    json_decref(file);
    ft__arena_free(help_arena);
    help_arena = kept;
    if (status != FT_OK && status != FT_E_MEMORY) fail_msg("%s", err.message);
    return status;
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    char text[] =
        HELP_FILE("", "{'op':'parameter','shape':[64,64],'out':'w'},{'op':'linear','in':'x','weight':'w','out':'a'},"
                      "{'op':'split','in':'a','sizes':[32,32],'out':['b','c']},{'op':'cat','in':['c','b'],'axis':2,"
                      "'out':'y'}");
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    help_work.task = FT_TRAIN;
    assert_true(failing_alloc_sweep(attempt, text) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_belong_to_whoever_reads_them),
        cmocka_unit_test(parameters_of_iterations),
        cmocka_unit_test(parameters_that_do_not_fit),
        cmocka_unit_test(views_cost_nothing_where_memory_allows_it),
        cmocka_unit_test(lists_of_results),
        cmocka_unit_test(sizes_are_formulas),
        cmocka_unit_test(attention_follows_the_request),
        cmocka_unit_test(reductions_walk_as_memory_lies),
        cmocka_unit_test(norms),
        cmocka_unit_test(convolutions_of_all_kinds),
        cmocka_unit_test(pictures_change_their_size),
        cmocka_unit_test(pictures_keep_their_order),
        cmocka_unit_test(formats_of_results),
        cmocka_unit_test(elements_broadcast_as_in_numpy),
        cmocka_unit_test(indices_and_places),
        cmocka_unit_test(in_place_and_the_host),
        cmocka_unit_test(experts),
        cmocka_unit_test(inputs_say_how_they_lie),
        cmocka_unit_test(large_files),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, help_open, help_close);
}
