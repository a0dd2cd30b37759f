/* ONNX files: what their operators become, what they cost, and what is wrong with those that are refused. */
#define _GNU_SOURCE /* strdup, strtok_r, ftruncate under -std=c17 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "import/onnx/onnx.h"
#include "onnx_writer.h"
#include "scratch.h"

static ft_arena *arena;
static ft_arch opened; /* of the last graph, without what it owned */
static char warnings[1024];

static int begin(void **state)
{
    arena = ft__arena_new(0);
    return arena ? scratch_make(state) : -1;
}

static int end(void **state)
{
    ft__arena_free(arena);
    return scratch_remove(state);
}

static ft_workload workload(ft_task task, ft_attention_kind attention)
{
    return (ft_workload){.task = task,
                         .dtype = FT_BF16,
                         .kv_dtype = FT_BF16,
                         .batch = 4,
                         .seq = 128,
                         .attention = attention,
                         .optimizer = FT_ADAMW,
                         .accumulate = 1};
}

static ft_graph *graph_from(const void *bytes, size_t length, const ft_workload *given, ft_error *err)
{
    ft_arch arch = {0};
    ft_graph *graph = NULL;
    ft_workload work = *given;
    *err = (ft_error){0};
    ft__arena_reset(arena);
    ft_status status = ft__onnx_read(bytes, length, "test.onnx", &arch, err);
    if (status == FT_OK) {
        snprintf(warnings, sizeof warnings, "%s", arch.warnings);
        if (arch.fixed_batch) work.batch = arch.fixed_batch;
        if (arch.fixed_seq) work.seq = arch.fixed_seq;
        status = ft__model_graph(&arch, &work, arena, &graph, err);
    }
    opened = arch;
    ft__arch_release(&arch); /* the graph must not need the file */
    return status == FT_OK ? graph : NULL;
}

static ft_graph *graph_of(const char *text, const ft_workload *work, ft_error *err)
{
    size_t length;
    uint8_t *bytes = onnx_bytes(text, &length);
    ft_graph *g = graph_from(bytes, length, work, err);
    free(bytes);
    return g;
}

static ft_graph *good(const char *text, ft_task task, ft_attention_kind attention)
{
    ft_error err;
    ft_workload work = workload(task, attention);
    ft_graph *g = graph_of(text, &work, &err);
    if (!g) fail_msg("%s: %s", err.where, err.message);
    return g;
}

static ft_graph *forward(const char *text) { return good(text, FT_FORWARD_PASS, FT_EAGER); }

static void refused(const char *text, ft_status code, const char *says)
{
    ft_error err;
    ft_workload work = workload(FT_FORWARD_PASS, FT_EAGER);
    assert_null(graph_of(text, &work, &err));
    if (!strstr(err.message, says)) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    assert_int_equal(err.code, code);
    assert_true(err.where[0]);
}

static int kernels(const ft_graph *g, const char *op)
{
    int count = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        count += g->nodes[i].phase == FT_FORWARD && ft__node_runs(&g->nodes[i]) && !strcmp(g->nodes[i].op.name, op);
    return count;
}

static int running(const ft_graph *g)
{
    int count = 0;
    for (int32_t i = 0; i < g->node_count; i++) count += g->nodes[i].phase == FT_FORWARD && ft__node_runs(&g->nodes[i]);
    return count;
}

static double products(const ft_graph *g, ft_phase phase)
{
    double sum = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        ft_op_kind kind = g->nodes[i].op.kind;
        bool product = kind == FT_OP_GEMM || kind == FT_OP_CONV2D || kind == FT_OP_ATTENTION;
        if (g->nodes[i].phase == phase && product) sum += ft__op_flops(&g->nodes[i].op) * (double)g->nodes[i].count;
    }
    return sum;
}

static const ft_tensor *last(const ft_graph *g)
{
    for (int32_t b = g->block_count - 1; b >= 0; b--)
        if (g->blocks[b].phase == FT_FORWARD) return &g->tensors[g->blocks[b].carry_out];
    return NULL;
}

/* -- what operators become ------------------------------------------------------------------------- */

#define MLP                                                                                                     \
    "opset 17\nin x float batch seq 64\ninit fc1.weight float 64 256\ninit fc1.bias float 256\n"                \
    "init fc2.weight float 256 10\nnode MatMul x fc1.weight -> a\nnode Add fc1.bias a -> b\nnode Relu b -> c\n" \
    "node MatMul c fc2.weight -> y\nout y float batch seq 10\n"

static void test_linear(void **state)
{
    (void)state;
    ft_graph *g = forward(MLP);
    assert_float_equal(g->parameters, 64 * 256 + 256 + 2560, 0);
    assert_int_equal(running(g), 3); /* the bias belongs to the product */
    assert_int_equal(kernels(g, "linear"), 2);
    assert_float_equal(products(g, FT_FORWARD), 2.0 * 4 * 128 * (64 * 256 + 2560), 0);
    assert_int_equal(last(g)->cols, 10);
    assert_string_equal(warnings, "");
    assert_int_equal(opened.fixed_batch, 0);
    assert_false(opened.samples);

    g = good(MLP, FT_TRAIN, FT_EAGER);
    assert_float_equal(g->trained_parameters, g->parameters, 0);
    /* Both gradients of the second layer, the weight's alone of the first: nothing wants the input's. */
    assert_float_equal(products(g, FT_BACKWARD), 2.0 * 4 * 128 * (64 * 256 + 2 * 2560), 0);
}

static void test_transposed_weights_cost_nothing(void **state)
{
    (void)state;
    ft_graph *g = forward("opset 13\nin x float 4 64\ninit w float 32 64\nnode Transpose w -> t perm=1,0\n"
                          "node MatMul x t -> y\nout y float 4 32\n");
    assert_int_equal(running(g), 1);
    assert_float_equal(g->parameters, 2048, 0);
    g = forward("opset 13\nin x float 4 64\ninit w float 32 64\ninit c float 32\nnode Gemm x w c -> y transB=1\n"
                "out y float 4 32\n");
    assert_int_equal(running(g), 1);
    assert_float_equal(g->parameters, 2080, 0);
    assert_int_equal(opened.fixed_batch, 4);
    assert_true(opened.samples);
}

static void test_shape_arithmetic_is_no_kernel(void **state)
{
    (void)state;
    ft_graph *g = forward("opset 17\nin x float batch seq 64\nints zero 0\nints two 2\nints rest -1 16\nints one 1\n"
                          "node Shape x -> s\nnode Slice s zero two -> lead\nnode Concat lead rest -> shape axis=0\n"
                          "node Reshape x shape -> heads\nnode Transpose heads -> turned perm=0,2,1,3\n"
                          "node Gather s one -> len axis=0\nnode Mul len two -> twice\nnode Div twice two -> back\n"
                          "node Equal back one -> same\nnode Relu turned -> y\nout y float batch 4 seq 16\n");
    assert_int_equal(running(g), 1);
    assert_int_equal(last(g)->rows * last(g)->cols, 4 * 128 * 64);
    assert_int_equal(last(g)->cols, 16);
}

static void test_a_reshape_copies_what_lies_otherwise(void **state)
{
    (void)state;
    ft_graph *g = forward("opset 17\nin x float 2 8 4 16\nints shape 2 4 128\nnode Transpose x -> t perm=0,2,1,3\n"
                          "node Reshape t shape -> r\nnode Relu r -> y\nout y float 2 4 128\n");
    assert_int_equal(kernels(g, "copy") + kernels(g, "transpose_copy"), 1);
    g = forward("opset 17\nin x float 2 8 4 16\nints shape 2 8 64\nnode Reshape x shape -> r\nnode Relu r -> y\n"
                "out y float 2 8 64\n");
    assert_int_equal(running(g), 1);
}

static const char attention[] =
    "opset 17\nin q float batch 8 seq 64\nin k float batch 8 seq 64\nin v float batch 8 seq 64\n"
    "in mask float batch 1 1 seq\nfloats scale 0.125\nnode Transpose k -> kt perm=0,1,3,2\nnode MatMul q kt -> s\n"
    "node Mul s scale -> scaled\nnode Add scaled mask -> masked\nnode Softmax masked -> p axis=-1\n"
    "node MatMul p v -> o\nnode Transpose o -> y perm=0,2,1,3\nout y float batch seq 8 64\n";

static void test_attention_is_recognised(void **state)
{
    (void)state;
    double flops = 4.0 * 4 * 8 * 128 * 128 * 64;
    ft_graph *g = good(attention, FT_FORWARD_PASS, FT_EAGER);
    assert_int_equal(kernels(g, "softmax"), 1);
    assert_int_equal(kernels(g, "bmm"), 2);
    assert_float_equal(products(g, FT_FORWARD), flops, 1);
    g = good(attention, FT_FORWARD_PASS, FT_FLASH);
    assert_int_equal(kernels(g, "softmax"), 0);
    assert_int_equal(kernels(g, "attention"), 1);
    assert_int_equal(running(g), 1);
    assert_float_equal(products(g, FT_FORWARD), flops, 1);
}

/* Keys and values that are repeated for groups of queries are not repeated for a kernel that knows groups. */
static void test_grouped_attention(void **state)
{
    (void)state;
    static const char text[] =
        "opset 17\nin q float 2 8 16 64\nin k float 2 2 16 64\nin v float 2 2 16 64\nints two 2\n"
        "ints wide 2 2 4 16 64\nints all 2 8 16 64\ninit mask float 1 1 16 16\nnode Unsqueeze k two -> k1\n"
        "node Expand k1 wide -> k2\nnode Reshape k2 all -> k3\nnode Unsqueeze v two -> v1\nnode Expand v1 wide -> v2\n"
        "node Reshape v2 all -> v3\nnode Transpose k3 -> kt perm=0,1,3,2\nnode MatMul q kt -> s\n"
        "node Add s mask -> m\nnode Softmax m -> p axis=-1\nnode IsNaN p -> n\nfloats zero 0\n"
        "node Where n zero p -> c\nnode MatMul c v3 -> y\nout y float 2 8 16 64\n";
    ft_graph *g = good(text, FT_FORWARD_PASS, FT_FLASH);
    assert_int_equal(running(g), 1);
    for (int32_t i = 0; i < g->node_count; i++) {
        if (g->nodes[i].op.kind != FT_OP_ATTENTION) continue;
        assert_int_equal(g->nodes[i].op.u.attention.kv_heads, 2);
        assert_true(g->nodes[i].op.u.attention.causal); /* a square table for all sequences alike */
    }
    g = good(text, FT_FORWARD_PASS, FT_EAGER);
    assert_int_equal(kernels(g, "copy"), 2); /* the repetitions */
    assert_int_equal(kernels(g, "attention"), 0);
}

static void test_fused_operators(void **state)
{
    (void)state;
    ft_graph *g = good("opset 23\nin q float batch 8 seq 64\nin k float batch 2 seq 64\nin v float batch 2 seq 64\n"
                       "node Attention q k v -> a is_causal=1\nout a float batch 8 seq 64\n",
                       FT_FORWARD_PASS, FT_FLASH);
    assert_int_equal(kernels(g, "attention"), 1);
    assert_float_equal(products(g, FT_FORWARD), 4.0 * 4 * 8 * (128.0 * 129 / 2) * 64, 1);
    g = good("opset 17\nopset 1 com.microsoft\nin x float batch seq 64\ninit w float 64 192\ninit b float 192\n"
             "init g float 64\ninit h float 64\nnode Attention x w b -> a num_heads=4 domain=com.microsoft\n"
             "node SkipLayerNormalization a x g h -> n domain=com.microsoft\n"
             "node FastGelu n -> f domain=com.microsoft\nout f float batch seq 64\n",
             FT_FORWARD_PASS, FT_FLASH);
    assert_int_equal(kernels(g, "linear"), 1);
    assert_int_equal(kernels(g, "attention"), 1);
    assert_int_equal(kernels(g, "layernorm"), 1);
    assert_int_equal(kernels(g, "add"), 0); /* the norm's kernel adds */
    assert_int_equal(kernels(g, "gelu"), 1);
    assert_float_equal(g->parameters, 64 * 192 + 192 + 128, 0);
    g = good("opset 17\nopset 1 com.microsoft\nin q float batch seq 512\nin k float batch seq 128\n"
             "in v float batch seq 128\nnode GroupQueryAttention q k v -> a num_heads=8 kv_num_heads=2 "
             "domain=com.microsoft\nnode RotaryEmbedding a -> r domain=com.microsoft\nout r float batch seq 512\n",
             FT_FORWARD_PASS, FT_FLASH);
    assert_int_equal(kernels(g, "attention"), 1);
    assert_int_equal(kernels(g, "rotary"), 1);
}

static void test_pictures(void **state)
{
    (void)state;
    ft_graph *g = forward("opset 17\nin x float batch 3 33 32\ninit conv.weight float 16 3 3 3\n"
                          "init conv.bias float 16\ninit bn.weight float 16\ninit bn.bias float 16\n"
                          "init bn.running_mean float 16\ninit bn.running_var float 16\n"
                          "node Conv x conv.weight conv.bias -> a strides=2,2 pads=1,1,1,1\n"
                          "node BatchNormalization a bn.weight bn.bias bn.running_mean bn.running_var -> b\n"
                          "node MaxPool b -> c kernel_shape=3,3 strides=2,2 pads=1,1,1,1\n"
                          "node GlobalAveragePool c -> d\nnode Flatten d -> y\nout y float batch 16\n");
    assert_float_equal(g->parameters, 16 * 27 + 16 + 32, 0);
    assert_float_equal(products(g, FT_FORWARD), 2.0 * 4 * 17 * 16 * 16 * 27, 0);
    assert_true(opened.samples);
    assert_int_equal(last(g)->rows * last(g)->cols, 64);
    /* Other windows do the same arithmetic: dilated, uneven, one-dimensional, transposed. */
    g = forward("opset 17\nin x float 2 8 32 32\ninit w float 16 4 3 5\nnode Conv x w -> y group=2 dilations=2,1 "
                "auto_pad=SAME_UPPER\nout y float 2 16 32 32\n");
    assert_float_equal(products(g, FT_FORWARD), 2.0 * 2 * 16 * 32 * 32 * 4 * 15, 0);
    g = forward("opset 17\nin x float 2 80 100\ninit w float 16 80 3\nnode Conv x w -> y strides=2, pads=1,1\n"
                "out y float 2 16 50\n");
    assert_float_equal(products(g, FT_FORWARD), 2.0 * 2 * 16 * 50 * 80 * 3, 0);
    g = forward("opset 17\nin x float 2 16 8 8\ninit w float 16 4 2 2\nnode ConvTranspose x w -> y strides=2,2\n"
                "out y float 2 4 16 16\n");
    assert_float_equal(products(g, FT_FORWARD), 2.0 * 2 * 16 * 8 * 8 * 4 * 4, 0);
}

static void test_quantised(void **state)
{
    (void)state;
    ft_graph *g = forward("opset 17\nopset 1 com.microsoft\nin x float 4 1024\ninit w uint8 512 32 16\n"
                          "init s float 16384\nnode MatMulNBits x w s -> y K=1024 N=512 bits=4 block_size=32 "
                          "domain=com.microsoft\nout y float 4 512\n");
    assert_float_equal(g->parameters, 1024 * 512, 0);
    assert_float_equal(g->parameter_bytes, 1024 * 512 * (0.5 + 2.0 / 32), 1);
    g = forward("opset 17\nin x float 4 64\ninit w int8 64 32\nfloats s 0.1\nnode DequantizeLinear w s -> d\n"
                "node MatMul x d -> y\nout y float 4 32\n");
    assert_int_equal(running(g), 1);
    assert_float_equal(g->parameter_bytes, 2048, 0);
    g = forward("opset 17\nin x uint8 4 64\ninit w int8 64 32\nnode MatMulInteger x w -> y\nout y int32 4 32\n");
    assert_float_equal(products(g, FT_FORWARD), 2.0 * 4 * 64 * 32, 0);
}

static void test_recurrent(void **state)
{
    (void)state;
    ft_graph *g = forward("opset 17\nin x float 16 2 8\ninit l.w float 2 48 8\ninit l.r float 2 48 12\n"
                          "init l.b float 2 96\nnode LSTM x l.w l.r l.b -> y direction=bidirectional hidden_size=12\n"
                          "out y float 16 2 2 12\n");
    assert_float_equal(g->parameters, 2 * 48 * 8 + 2 * 48 * 12 + 192, 0);
    assert_float_equal(products(g, FT_FORWARD), 2.0 * 16 * 2 * 96 * (8 + 12), 1);
}

static void test_functions_are_inlined(void **state)
{
    (void)state;
    ft_graph *g = forward("opset 17\nopset 1 my\nin x float 4 64\n"
                          "function Twice a -> b\nnode Relu a -> h\nnode Inner h -> b domain=my axis=@axis\nend\n"
                          "function Inner a -> b\nnode Softmax a -> b axis=@axis\nend\n"
                          "node Twice x -> y domain=my axis=1\nnode Twice y -> z domain=my axis=0\nout z float 4 64\n");
    assert_int_equal(kernels(g, "relu"), 2);
    assert_int_equal(kernels(g, "softmax"), 2);
    refused("opset 17\nopset 1 my\nin x float 4\nfunction F a -> b\nnode F a -> b domain=my\nend\n"
            "node F x -> y domain=my\nout y float 4\n",
            FT_E_RANGE, "calls itself");
}

static void test_order_does_not_matter(void **state)
{
    (void)state;
    ft_graph *g = forward("opset 17\nin x float 4\nnode Tanh a -> y\nnode Relu x -> a\nout y float 4\n");
    assert_int_equal(running(g), 2);
}

static void test_free_sizes(void **state)
{
    (void)state;
    ft_graph *g = forward("opset 17\nin x float N 3 height width\nnode Relu x -> y\nout y float N 3 height width\n");
    assert_int_equal(last(g)->rows * last(g)->cols, 4 * 3 * 224 * 224);
    assert_non_null(strstr(warnings, "\"height\" of input \"x\" is free: taken as 224"));
    g = forward("opset 17\nin x int64 ? ?\nin z float 3 knots\nnode Cast x -> y to=1\nnode Relu z -> u\n"
                "out y float ? ?\nout u float 3 knots\n");
    assert_int_equal(last(g)->rows * last(g)->cols, 4 * 128);
    assert_non_null(strstr(warnings, "\"knots\" of input \"z\" is free: taken as 1"));
    /* A cache that is still empty is nothing, and nothing is joined to it. */
    g = forward("opset 17\nin x float batch 8 seq 64\nin past float batch 8 past_sequence_length 64\n"
                "node Concat past x -> k axis=2\nnode Relu k -> y\nout y float batch 8 total 64\n");
    assert_int_equal(running(g), 1);
}

static void test_unknown_operators(void **state)
{
    (void)state;
    ft_graph *g = forward("opset 17\nopset 1 acme\nin x float 4 64\nnode Blur x -> y domain=acme\nnode Relu y -> z\n"
                          "value y float 4 32\nout z float 4 32\n");
    assert_non_null(strstr(warnings, "operator acme.Blur (node \"y\") is not known"));
    assert_int_equal(kernels(g, "unknown"), 1);
    refused("opset 17\nopset 1 acme\nin x float 4 64\nnode Blur x -> y domain=acme\nnode Relu y -> z\nout z float ?\n",
            FT_E_UNSUPPORTED, "shape of its result is not known");
}

/* What a graph computes with before it runs is not trained, whatever its shape. */
static void test_buffers_are_no_parameters(void **state)
{
    (void)state;
    ft_graph *g = good("opset 17\nin x float batch seq 64\ninit layer.weight float 64\ninit rotary.inv_freq float 64\n"
                       "init val_7 float 64\nnode Mul x layer.weight -> a\nnode Mul a rotary.inv_freq -> b\n"
                       "node Add b val_7 -> y\nout y float batch seq 64\n",
                       FT_TRAIN, FT_EAGER);
    assert_float_equal(g->parameters, 64, 0);
    assert_float_equal(g->trained_parameters, 64, 0);
}

/* -- what is refused ------------------------------------------------------------------------------- */

#define X "opset 17\nin x float 4 64\n"
#define Y "out y float 4 64\n"

static void test_refusals(void **state)
{
    (void)state;
    refused("opset 12\nin x float 4\nnode Relu x -> y\nout y float 4\n", FT_E_UNSUPPORTED, "opset 12: 13 and later");
    refused("in x float 4\nnode Relu x -> y\nout y float 4\n", FT_E_MISSING, "which opset");
    refused(X "node If x -> y name=choice then_branch={}\n" Y, FT_E_UNSUPPORTED, "\"choice\" (If): control flow");
    refused(X "node Loop x -> y\n" Y, FT_E_UNSUPPORTED, "(Loop): control flow");
    refused(X "node Scan x -> y body={}\n" Y, FT_E_UNSUPPORTED, "(Scan): control flow");
    refused(X "node Odd x -> y body={} domain=acme\n" Y, FT_E_UNSUPPORTED, "holds a subgraph, \"body\"");
    refused("opset 17\nin x sequence\nnode Relu x -> y\nout y float 4\n", FT_E_UNSUPPORTED, "\"x\" is a sequence");
    refused(X "node SequenceConstruct x -> y\n" Y, FT_E_UNSUPPORTED, "sequences are not tensors");
    refused("opset 17\nin x text 4\nnode Relu x -> y\nout y float 4\n", FT_E_UNSUPPORTED, "is text");
    refused(X "node Add b x -> a name=first\nnode Relu a -> b\nnode Relu b -> y\n" Y, FT_E_FORMAT, "a cycle: node \"");
    refused(X "node Add x hidden -> y name=sum\n" Y, FT_E_NAME, "\"sum\" (Add) reads \"hidden\"");
    refused(X "init hidden.w float 64\nnode Add x hidden.v -> y\n" Y, FT_E_NAME, "did you mean \"hidden.w\"?");
    refused(X "node Relu x -> y\nnode Tanh x -> y\n" Y, FT_E_NAME,
            "\"y\", a result of node \"y\" (Tanh), is made twice");
    refused(X "in x float 4\nnode Relu x -> y\n" Y, FT_E_NAME, "two inputs are called \"x\"");
    refused(X "init w float 4\ninit w float 4\nnode Relu x -> y\n" Y, FT_E_NAME, "two initializers");
    refused(X "node Relu x -> z\n" Y, FT_E_MISSING, "output \"y\" is made by no node");
    refused(X "node Relu x -> y\n", FT_E_MISSING, "no outputs");
    refused("opset 17\ninit y float 4\nout y float 4\n", FT_E_MISSING, "no nodes");
    refused(X "node Relu -> y\n" Y, FT_E_MISSING, "at least 1 operands, got 0");
    refused(X "init w float 32 8\nnode MatMul x w -> y name=mm\n" Y, FT_E_RANGE,
            "node \"mm\" (MatMul): the operands' inner sizes differ: 64 and 32");
    refused(X "init w float 3 64\nnode Add x w -> y\n" Y, FT_E_RANGE, "sizes are 4 and 3 along one axis");
    refused(X "ints s 7 -1\nnode Reshape x s -> y\n" Y, FT_E_RANGE, "256 elements cannot be seen as 252");
    refused(X "node Transpose x -> y perm=0,1,2\n" Y, FT_E_RANGE, "\"perm\" has 3 axes, the tensor 2");
    refused(X "node Transpose x -> y perm=1,1\n" Y, FT_E_RANGE, "names axis 1 twice");
    refused(X "node Softmax x -> y axis=2\n" Y, FT_E_RANGE, "axis 2 of a tensor of 2 axes");
    refused(X "init w float 8 3 3 3\nnode Conv x w -> y\n" Y, FT_E_RANGE, "filters of 4 axes for pictures of 2");
    refused("opset 17\nin x float 1 4 8 8\ninit w float 8 3 3 3\nnode Conv x w -> y\nout y float 1\n", FT_E_RANGE,
            "4 channels in 1 groups");
    refused("opset 17\nin x float 1 3 2 2\ninit w float 8 3 3 3\nnode Conv x w -> y\nout y float 1\n", FT_E_RANGE,
            "a window of 3 does not fit 2 pixels");
    refused("opset 17\nin s int64 2\nin x float 4\nnode Reshape x s -> y\nnode Relu y -> z\nout z float ?\n",
            FT_E_UNSUPPORTED, "the shape depends on what is computed");
    refused("opset 17\nin x float 1 1 1 1 1 1 1 1 1\nnode Relu x -> y\nout y float 1\n", FT_E_UNSUPPORTED, "9 axes");
    refused("opset 17\nin x float 1099511627776 1099511627776\nnode Relu x -> y\nout y float 1\n", FT_E_UNSUPPORTED,
            "beyond any machine");
    refused("opset 17\nin x float 4\ninit w float -3\nnode Add x w -> y\nout y float 4\n", FT_E_RANGE, "size of -3");
}

static void test_tasks(void **state)
{
    (void)state;
    ft_error err;
    ft_workload work = workload(FT_DECODE, FT_FLASH);
    assert_null(graph_of(MLP, &work, &err));
    assert_int_equal(err.code, FT_E_UNSUPPORTED);
    work = workload(FT_TRAIN, FT_FLASH);
    work.lora_rank = 8;
    assert_null(graph_of(MLP, &work, &err));
    assert_non_null(strstr(err.message, "lora_rank"));
}

/* -- damaged files --------------------------------------------------------------------------------- */

static void test_truncated_anywhere(void **state)
{
    (void)state;
    size_t length;
    uint8_t *bytes = onnx_bytes(attention, &length);
    ft_workload work = workload(FT_FORWARD_PASS, FT_FLASH);
    int fine = 0;
    for (size_t cut = 0; cut < length; cut++) {
        ft_error err;
        uint8_t *part = malloc(cut + 1); /* of its own, so that a sanitiser sees who reads on */
        assert_non_null(part);
        memcpy(part, bytes, cut);
        if (graph_from(part, cut, &work, &err))
            fine++;
        else
            assert_true(err.message[0] && err.where[0]);
        free(part);
    }
    assert_int_equal(fine, 0); /* the graph is the last field: no part of it is whole */
    free(bytes);
}

static void test_every_byte_wrong(void **state)
{
    (void)state;
    size_t length;
    uint8_t *bytes = onnx_bytes(MLP, &length);
    ft_workload work = workload(FT_TRAIN, FT_EAGER);
    static const uint8_t masks[] = {0x01, 0x80, 0xFF};
    for (size_t at = 0; at < length; at++)
        for (size_t m = 0; m < sizeof masks; m++) {
            ft_error err;
            bytes[at] ^= masks[m];
            if (!graph_from(bytes, length, &work, &err)) assert_true(err.message[0]);
            bytes[at] ^= masks[m];
        }
    free(bytes);
}

static void refused_bytes(const void *bytes, size_t length, const char *says)
{
    ft_error err;
    ft_workload work = workload(FT_FORWARD_PASS, FT_EAGER);
    assert_null(graph_from(bytes, length, &work, &err));
    if (!strstr(err.message, says)) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    assert_int_equal(err.code, FT_E_FORMAT);
}

static void test_hostile_bytes(void **state)
{
    (void)state;
    static const uint8_t endless[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01};
    static const uint8_t long_graph[] = {0x3A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0x00};
    static const uint8_t group[] = {0x3B, 0x3C}, zero[] = {0x00, 0x00}, number[] = {0x38, 0x05};
    refused_bytes("", 0, "it has no graph");
    refused_bytes(endless, sizeof endless, "a field without a number at byte 0");
    refused_bytes(long_graph, sizeof long_graph, "runs past the end");
    refused_bytes(group, sizeof group, "runs past the end");
    refused_bytes(zero, sizeof zero, "no possible number");
    refused_bytes(number, sizeof number, "a number where a message must be");
    refused_bytes("{\"model_type\": \"bert\"}", 22, "at byte");
    /* Subgraphs in subgraphs without end: nobody looks inside. */
    wire *inner = new_wire();
    for (int depth = 0; depth < 3000; depth++) {
        wire *outer = new_wire();
        put_bytes(outer, depth % 3 == 0 ? 6 : depth % 3 == 1 ? 5 : 1, inner->at, inner->length);
        free(inner);
        inner = outer;
    }
    wire *model = new_wire();
    put_bytes(model, 7, inner->at, inner->length);
    ft_error err;
    ft_workload work = workload(FT_FORWARD_PASS, FT_EAGER);
    assert_null(graph_from(model->at, model->length, &work, &err));
    free(inner);
    free(model);
}

/* By this process so far, as Linux counts; 0 elsewhere. */
static double bytes_read(void)
{
    double bytes = 0;
    FILE *io = fopen("/proc/self/io", "r");
    if (!io) return 0;
    assert_int_equal(fscanf(io, "rchar: %lf", &bytes), 1);
    fclose(io);
    return bytes;
}

/* A weight of three GiB inside the file, not on the disk: stepped over, not read. */
static void test_weights_are_stepped_over(void **state)
{
    (void)state;
    uint64_t inside = (uint64_t)3 << 30;
    wire *tensor = new_wire(), *head = new_wire(), *tail = new_wire();
    put_whole(tensor, 1, 1 << 15);
    put_whole(tensor, 1, 3 << 13);
    put_whole(tensor, 2, 1);
    put_text(tensor, 8, "layer.weight");
    put_varint(tensor, 9 << 3 | 2);
    put_varint(tensor, inside);
    size_t graph_length;
    uint8_t *small = onnx_bytes("in x float batch 32768\nnode MatMul x layer.weight -> y\nout y float batch 24576\n",
                                &graph_length);
    /* ir_version, then the graph with one initialiser in front of the rest. */
    uint8_t *rest = small + 2;
    while (*rest++ & 0x80) {}
    while (*rest++ & 0x80) {}
    size_t rest_length = graph_length - (size_t)(rest - small);
    wire *set = new_wire();
    put_text(set, 1, "");
    put_whole(set, 2, 17);
    put_inside(head, 8, set);
    wire *count = new_wire();
    put_varint(count, tensor->length + inside);
    put_varint(head, 7 << 3 | 2);
    put_varint(head, 1 + count->length + tensor->length + inside + rest_length);
    put_varint(head, 5 << 3 | 2);
    memcpy(head->at + head->length, count->at, count->length);
    head->length += count->length;
    memcpy(head->at + head->length, tensor->at, tensor->length);
    head->length += tensor->length;
    memcpy(tail->at, rest, rest_length);
    const char *path = scratch_path("large.onnx");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(head->at, 1, head->length, file), head->length);
    assert_int_equal(fseeko(file, (off_t)inside, SEEK_CUR), 0);
    assert_int_equal(fwrite(tail->at, 1, rest_length, file), rest_length);
    assert_int_equal(fclose(file), 0);
    ft_arch arch = {0};
    ft_error err = {0};
    double before = bytes_read();
    if (ft__onnx_open(path, &arch, &err) != FT_OK) fail_msg("%s", err.message);
    double read = bytes_read() - before;
    if (read > 1e6) fail_msg("%g bytes of it were read", read);
    ft_workload work = workload(FT_FORWARD_PASS, FT_EAGER);
    ft_graph *g = NULL;
    ft__arena_reset(arena);
    assert_int_equal(ft__model_graph(&arch, &work, arena, &g, &err), FT_OK);
    assert_float_equal(g->parameters, 32768.0 * 24576, 0);
    ft__arch_release(&arch);
    free(small);
    free(tensor);
    free(head);
    free(tail);
    free(count);
}

static void test_missing_file(void **state)
{
    (void)state;
    ft_arch arch = {0};
    ft_error err = {0};
    assert_int_equal(ft__onnx_open(scratch_path("nowhere.onnx"), &arch, &err), FT_E_FILE);
}

static ft_status attempt(void *context)
{
    ft_arch arch = {0};
    ft_graph *g = NULL;
    ft_workload work = workload(FT_TRAIN, FT_FLASH);
    ft_arena *own = ft__arena_new(0);
    ft_status status = own ? FT_OK : FT_E_MEMORY;
    const wire *w = context;
    if (status == FT_OK) status = ft__onnx_read(w->at, w->length, "test.onnx", &arch, NULL);
    if (status == FT_OK) status = ft__model_graph(&arch, &work, own, &g, NULL);
    ft__arch_release(&arch);
    ft__arena_free(own);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    wire *w = new_wire();
    uint8_t *bytes = onnx_bytes(attention, &w->length);
    memcpy(w->at, bytes, w->length);
    free(bytes);
    assert_true(failing_alloc_sweep(attempt, w) > 3);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_transposed_weights_cost_nothing),
        cmocka_unit_test(test_shape_arithmetic_is_no_kernel),
        cmocka_unit_test(test_a_reshape_copies_what_lies_otherwise),
        cmocka_unit_test(test_attention_is_recognised),
        cmocka_unit_test(test_grouped_attention),
        cmocka_unit_test(test_fused_operators),
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_quantised),
        cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_functions_are_inlined),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_free_sizes),
        cmocka_unit_test(test_unknown_operators),
        cmocka_unit_test(test_buffers_are_no_parameters),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_truncated_anywhere),
        cmocka_unit_test(test_every_byte_wrong),
        cmocka_unit_test(test_hostile_bytes),
        cmocka_unit_test(test_weights_are_stepped_over),
        cmocka_unit_test(test_missing_file),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
