/* Graph files: images, indices and elements. */
#include "graphfile_graphs.h"

/* -- images ---------------------------------------------------------------------------------- */

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
    /* EfficientNet's last pool has a window as wide as the model: no kernel reads beyond the image. */
    g = FORWARD("{'op':'avgpool','in':'picture','window':1280,'ceil':true,'out':'c'},"
                "{'op':'reshape','in':'c','shape':['batch',8],'out':'y'}");
    assert_int_equal(4 * 8, help_node(g, FT_FORWARD, "avgpool")->op.u.elementwise.numel);
    assert_float_equal(32 * 32, help_node(g, FT_FORWARD, "avgpool")->op.u.elementwise.ops_per_element, 0);
    REFUSED("{'op':'upsample','in':'picture','shape':['batch',9,64,64],'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (upsample): \"shape\" must have x's 4 axes, and its first two sizes");
    REFUSED("{'op':'upsample','in':'picture','shape':['batch',8,64,64],'mode':'lanczos','out':'y'}", FT_E_NAME,
            "block \"b\", node 1 (upsample): \"mode\" must be \"nearest\", \"linear\" or \"cubic\"");
    REFUSED("{'op':'maxpool','in':'x','window':300,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (maxpool): a window of 300 does not fit a side of 64");
    REFUSED("{'op':'avgpool','in':'v','window':2,'out':'y'}", FT_E_RANGE,
            "block \"b\", node 1 (avgpool): it takes [n, c, ...] of 3 to 5 axes, got 1");
}

/* Channels next to each other stay so through filters, norms and sums; a channels-first image does not become so. */
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
