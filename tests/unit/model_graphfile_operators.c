/* Graph files: parameters, views, attention and what runs along axes. */
#include "graphfile_graphs.h"

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

/* softmax(x, dtype=float32) of fp16 reads the low format and writes fp32 in one kernel, and autocast asks for just
 * that; of bf16 it is raised by a kernel of its own, and so is a log_softmax's input. */
static void autocast_raises_no_softmax_of_fp16(void **state)
{
    (void)state;
    const char *const product = "{'op':'linear','in':'x','features':64,'out':'p'},{'op':'softmax','in':'p','out':'y'}";
    char text[2048];
    snprintf(text, sizeof text, HELP_FILE("", "%s"), product);
    help_work.autocast = true;
    help_work.dtype = FT_FP16;
    ft_graph *half = help_good(text, FT_FORWARD_PASS);
    int casts = help_count(half, FT_FORWARD, "cast_fp32");
    const ft_node *softmax = help_node(half, FT_FORWARD, "softmax");
    float traffic = softmax->traffic;
    ft_dtype computes = softmax->op.dtype;
    help_work.dtype = FT_BF16;
    int raised = help_count(help_good(text, FT_FORWARD_PASS), FT_FORWARD, "cast_fp32");
    help_work.autocast = false;
    assert_int_equal(0, casts);
    assert_int_equal(1, raised);
    assert_true(computes == FT_FP32 && traffic < 1);
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
    /* Joined, images that all lie channels last stay so: a convolution behind them turns nothing. */
    g = FORWARD(
        "{'op':'cat','in':['turned','turned'],'axis':1,'out':'c'},{'op':'conv2d','in':'c','k':8,'r':3,'out':'y'}");
    assert_true(help_node(g, FT_FORWARD, "conv2d")->op.u.conv.nhwc && help_count(g, FT_FORWARD, "transpose") == 0);
    /* A norm over the last axis of what a transposition left costs a copy into order. */
    g = FORWARD("{'op':'transpose','in':'picture','axes':[0,2,3,1],'out':'t'},{'op':'layernorm','in':'t','out':'y'}");
    assert_int_equal(1,
                     help_count(g, FT_FORWARD, "copy")); /* rows shorter than a warp: sectors are not fetched twice */
    g = FORWARD("{'op':'fill','shape':[2,64,16],'out':'f'},{'op':'transpose','in':'f','axes':[0,2,1],'out':'t'},"
                "{'op':'layernorm','in':'t','out':'y'}");
    assert_int_equal(1, help_count(g, FT_FORWARD, "transpose_copy"));
    g = FORWARD("{'op':'transpose','in':'turned','axes':[0,2,3,1],'out':'t'},{'op':'layernorm','in':'t','out':'y'}");
    assert_int_equal(1, help_kernels(g, FT_FORWARD)); /* which is where these lie already */
    REFUSED("{'op':'groupnorm','in':'picture','groups':3,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (groupnorm): 3 groups do not divide 8 channels");
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
        cmocka_unit_test(autocast_raises_no_softmax_of_fp16),
        cmocka_unit_test(norms),
    };
    return cmocka_run_group_tests(tests, help_open, help_close);
}
