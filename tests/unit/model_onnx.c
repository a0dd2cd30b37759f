/* ONNX files: what their operators become. */
#include "onnx_graphs.h"

/* -- what operators become ------------------------------------------------------------------------- */

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
    };
    return cmocka_run_group_tests(tests, begin, end);
}
