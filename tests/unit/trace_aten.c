/* Operators of traces as kernels: sizes, layouts, formats, patterns. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/manner.h"
#include "trace/aten.h"

static ft_called called;

static const ft_op *call(const char *name, const char *dims, const char *types, const char *strides,
                         const char *concrete, const char *kernel)
{
    ft_inputs in;
    ft_signature_text text = {dims, types, strides, concrete};
    ft__inputs_read(&text, &in);
    assert_true(ft__aten_call(name, &in, kernel, 0, FT_BF16, &called));
    assert_true(called.count > 0);
    return &called.part[0].op;
}

#define BF "\"c10::BFloat16\""
#define FL "\"float\""

static void test_products(void **state)
{
    (void)state;
    /* a Linear's forward product: the weight is stored [n, k] and comes transposed */
    const ft_op *op = call("aten::addmm", "[[3072], [4096, 768], [768, 3072], [], []]",
                           "[" BF "," BF "," BF ",\"Scalar\",\"Scalar\"]", "[[1], [768, 1], [1, 768], [], []]", "",
                           "nvjet");
    assert_int_equal(op->kind, FT_OP_GEMM);
    assert_true(op->u.gemm.m == 4096 && op->u.gemm.n == 3072 && op->u.gemm.k == 768 && op->u.gemm.b == 1 &&
                op->u.gemm.bias);
    assert_string_equal(op->u.gemm.layout, "nt");
    assert_true(op->dtype == FT_BF16 && called.known && called.class == FT_CALLED_PRODUCT);
    /* the weight's gradient */
    op = call("aten::mm", "[[3072, 4096], [4096, 768]]", "[" BF "," BF "]", "[[1, 3072], [768, 1]]", "", "nvjet");
    assert_string_equal(op->u.gemm.layout, "tn");
    assert_false(op->u.gemm.bias);
    op = call("aten::bmm", "[[96, 512, 64], [96, 64, 512]]", "[" FL "," FL "]", "[[32768, 64, 1], [32768, 1, 64]]", "",
              "sgemm");
    assert_true(op->u.gemm.b == 96 && op->u.gemm.m == 512 && op->u.gemm.n == 512 && op->u.gemm.k == 64);
    assert_string_equal(op->u.gemm.layout, "nt");
    assert_int_equal(op->dtype, FT_FP32);
    /* the kernel's name tells TF32 */
    op = call("aten::mm", "[[64, 64], [64, 64]]", "[" FL "," FL "]", "", "", "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n");
    assert_int_equal(op->dtype, FT_TF32);
    op = call("aten::linear", "[[2, 128, 768], [3072, 768], [3072]]", "[" BF "," BF "," BF "]", "", "", NULL);
    assert_true(op->u.gemm.m == 256 && op->u.gemm.n == 3072 && op->u.gemm.k == 768);
    assert_string_equal(op->u.gemm.layout, "nt");
}

static void test_attention(void **state)
{
    (void)state;
    const ft_op *op = call("aten::_scaled_dot_product_flash_attention",
                           "[[8, 32, 1024, 64], [8, 8, 1024, 64], [8, 8, 1024, 64], [], [], [], []]",
                           "[" BF "," BF "," BF "]", "", "[\"\",\"\",\"\",\"0.\",\"True\",\"False\",\"\"]",
                           "flash_fwd_kernel");
    assert_int_equal(op->kind, FT_OP_ATTENTION);
    assert_true(op->u.attention.batch == 8 && op->u.attention.heads == 32 && op->u.attention.kv_heads == 8);
    assert_true(op->u.attention.q_len == 1024 && op->u.attention.head_dim == 64 && op->u.attention.causal);
    assert_true(op->u.attention.library == FT_LIBRARY_FLASH && op->pass == FT_PASS_FWD);
    op = call("aten::_efficient_attention_backward",
              "[[2,128,12,64],[2,128,12,64],[2,256,12,64],[2,256,12,64],[],[2,128,12,64],[],[],[],[],[2,12,128],[],[],["
              "],[],[]]",
              "[" FL "," FL "," FL "," FL "]", "", "", "fmha_cutlassB");
    assert_true(op->pass == FT_PASS_BWD && op->u.attention.heads == 12 && op->u.attention.q_len == 128);
    assert_true(op->u.attention.kv_len == 256 && !op->u.attention.causal);
}

static void test_convolution(void **state)
{
    (void)state;
    const ft_op *op = call("aten::cudnn_convolution", "[[64, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], []]",
                           "[" BF "," BF "]", "[[150528, 1, 672, 3], [147, 1, 21, 3]]",
                           "[\"\",\"\",\"[3, 3]\",\"[2, 2]\",\"[1, 1]\",\"1\",\"False\",\"False\",\"True\"]", "fprop");
    assert_true(op->kind == FT_OP_CONV2D && op->u.conv.n == 64 && op->u.conv.c == 3 && op->u.conv.k == 64);
    assert_true(op->u.conv.r == 7 && op->u.conv.stride == 2 && op->u.conv.pad == 3 && op->u.conv.nhwc);
    op = call(
        "aten::convolution_backward", "[[64,64,112,112],[64,3,224,224],[64,3,7,7],[],[],[],[],[],[],[],[]]",
        "[" BF "," BF "," BF "]", "",
        "[\"\",\"\",\"\",\"[0]\",\"[2, 2]\",\"[3, 3]\",\"[1, 1]\",\"False\",\"[0, 0]\",\"1\",\"[False, True, False]\"]",
        "wgrad");
    assert_int_equal(op->pass, FT_PASS_FWD); /* one gradient of the two */
    op = call(
        "aten::convolution_backward", "[[64,64,112,112],[64,3,224,224],[64,3,7,7],[],[],[],[],[],[],[],[]]",
        "[" BF "," BF "," BF "]", "",
        "[\"\",\"\",\"\",\"[0]\",\"[2, 2]\",\"[3, 3]\",\"[1, 1]\",\"False\",\"[0, 0]\",\"1\",\"[True, True, False]\"]",
        "wgrad");
    assert_int_equal(op->pass, FT_PASS_BWD);
}

static void test_pointwise(void **state)
{
    (void)state;
    const ft_op *op = call("aten::mul", "[[8, 1024, 3072], []]", "[" BF ",\"double\"]", "[[3145728, 3072, 1], []]", "",
                           "k");
    assert_string_equal(op->name, "mulu"); /* with a number */
    assert_true(op->u.elementwise.pattern == FT_PATTERN_CONTIGUOUS && op->u.elementwise.numel == 8 * 1024 * 3072);
    op = call("aten::add_", "[[4, 8], [4, 8], []]", "[" BF "," BF ",\"Scalar\"]", "[[8, 1], [8, 1], []]", "", "k");
    assert_string_equal(op->name, "add");
    assert_true(op->u.elementwise.inputs == 2 && op->u.elementwise.bytes == 3 * 64);
    op = call("aten::mul", "[[2048], [8, 1024, 2048]]", "[" BF "," BF "]", "[[1], [2097152, 2048, 1]]", "", "k");
    assert_int_equal(op->u.elementwise.pattern, FT_PATTERN_SPREAD); /* a row that every row looks up */
    op = call("aten::add", "[[8, 32, 1024, 64], [8, 32, 1024, 64], []]", "[" BF "," BF ",\"Scalar\"]",
              "[[2097152, 64, 2048, 1], [2097152, 65536, 64, 1], []]", "", "k");
    assert_int_equal(op->u.elementwise.pattern, FT_PATTERN_STRIDED); /* operands in two orders */
    op = call("aten::add", "[[8, 32, 1024, 64], [8, 32, 1024, 64], []]", "[" BF "," BF ",\"Scalar\"]",
              "[[2097152, 64, 2048, 1], [2097152, 64, 2048, 1], []]", "", "k");
    assert_int_equal(op->u.elementwise.pattern, FT_PATTERN_CONTIGUOUS); /* in one, whichever */
    op = call("aten::copy_", "[[16, 50257], [16, 50257], []]", "[" FL "," BF ",\"Scalar\"]",
              "[[50257, 1], [50257, 1], []]", "", "k");
    assert_string_equal(op->name, "cast_fp32");
    assert_int_equal(op->dtype, FT_BF16);
    op = call("aten::eq", "[[100], []]", "[\"long int\", \"Scalar\"]", "", "", "k");
    assert_true(op->u.elementwise.bytes == 900); /* eight in, one out */
}

static void test_rows(void **state)
{
    (void)state;
    const ft_op *op = call("aten::native_layer_norm_backward",
                           "[[8,1024,768],[8,1024,768],[],[8,1024,1],[8,1024,1],[768],[768],[]]", "[" BF "," BF "]", "",
                           "[\"\",\"\",\"[768]\",\"\",\"\",\"\",\"\",\"[True, True, True]\"]", "k");
    assert_true(op->kind == FT_OP_ROW && op->pass == FT_PASS_BWD && op->u.row.rows == 8192 && op->u.row.cols == 768);
    assert_string_equal(op->name, "layernorm");
    op = call("aten::sum", "[[8192, 768], [], [], []]", "[" BF "]", "", "[\"\",\"[0]\",\"True\",\"\"]", "k");
    assert_string_equal(op->name, "sum_cols");
    op = call("aten::mean", "[[8, 1024, 768], [], [], []]", "[" FL "]", "", "[\"\",\"[-1]\",\"True\",\"\"]", "k");
    assert_string_equal(op->name, "sum_rows");
    assert_true(op->u.row.rows == 8192 && op->u.row.cols == 768);
    op = call("aten::embedding_dense_backward", "[[8,1024,768],[8,1024],[],[],[]]", "[" BF ",\"long int\"]", "",
              "[\"\",\"\",\"50257\",\"-1\",\"False\"]", "k");
    assert_true(op->pass == FT_PASS_BWD && op->u.row.vocab == 50257 && op->u.row.rows == 8192);
    assert_true(ft__aten_whole("aten::embedding_dense_backward") && !ft__aten_whole("aten::mm"));
}

static void test_lists(void **state)
{
    (void)state;
    const ft_op *op = call("aten::_fused_adamw_", "[[[768, 768], [768]], [[768, 768], [768]]]",
                           "[\"TensorList\",\"TensorList\"]", "", "",
                           "multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4, 1, false>>");
    assert_true(op->kind == FT_OP_OPTIMIZER && op->u.optimizer.tensors == 2 && op->dtype == FT_FP32);
    assert_true(op->u.optimizer.params > 590000 && op->u.optimizer.params <= 768 * 768 + 768);
    /* a list too long to be written down: by the blocks of its kernels */
    ft_inputs in;
    ft_signature_text text = {"[[], []]", "[\"TensorList\",\"Scalar\"]", "", ""};
    ft__inputs_read(&text, &in);
    assert_true(
        ft__aten_call("aten::_foreach_mul_", &in, "BinaryOpScalarFunctor<c10::BFloat16, 1>", 100, FT_FP32, &called));
    assert_true(called.part[0].op.kind == FT_OP_OPTIMIZER && called.part[0].op.dtype == FT_BF16);
    assert_true(called.part[0].op.u.optimizer.params > 6553000 && called.part[0].op.u.optimizer.params <= 6553600);
    assert_true(called.part[0].times == 2 / 8.0); /* one list in, one out, of momentum's eight */
    op = call("aten::cat", "[[[0], [8, 8, 1024, 64]], []]", "[\"TensorList\",\"Scalar\"]", "", "[\"\",\"-2\"]",
              "CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 4>");
    assert_int_equal(op->u.elementwise.pattern, FT_PATTERN_STRIDED);
    assert_true(op->u.elementwise.bytes == 2.0 * 2 * 8 * 8 * 1024 * 64);
}

/* An AdamW step's calls together are about one step of the family that was measured; a recording says formats. */
static void test_lists_of_an_optimizer(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int lists;
    } step[] = {{"aten::_foreach_mul_", 1},     {"aten::_foreach_lerp_", 2},   {"aten::_foreach_mul_", 1},
                {"aten::_foreach_addcmul_", 3}, {"aten::_foreach_sqrt", 1},    {"aten::_foreach_div_", 1},
                {"aten::_foreach_add_", 1},     {"aten::_foreach_addcdiv_", 3}};
    double momentum = 0, adamw = 0;
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        char dims[200] = "[", types[200] = "[";
        for (int k = 0; k < step[i].lists; k++) {
            strcat(dims, k ? ", [[768, 768], [768]]" : "[[768, 768], [768]]");
            strcat(types, k ? ", \"TensorList<float>\"" : "\"TensorList<float>\"");
        }
        strcat(dims, ", []]");
        strcat(types, ", \"Scalar\"]");
        const ft_op *op = call(step[i].name, dims, types, "", "", NULL);
        assert_true(op->kind == FT_OP_OPTIMIZER && op->dtype == FT_FP32 && op->u.optimizer.tensors == 2);
        *(strcmp(op->name, "adamw_foreach") ? &momentum : &adamw) += called.part[0].times;
    }
    assert_true(momentum == 0.75 && adamw > 0.75 && adamw < 0.8);
    /* counters of steps are no lists to speak of */
    const ft_op *op = call("aten::_foreach_add_", "[[[], [], []], []]", "[\"TensorList<float>\", \"Scalar\"]", "", "",
                           NULL);
    assert_int_equal(op->kind, FT_OP_ELEMENTWISE);
    /* a type that nobody knows, and what only begins like one */
    static const char *const odd[] = {"TensorList<>", "TensorList<", "TensorList<strange>", "TensorList<float"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char types[100];
        snprintf(types, sizeof types, "[\"%s\", \"Scalar\"]", odd[i]);
        assert_int_equal(call("aten::_foreach_add_", "[[[768, 768]], []]", types, "", "", NULL)->dtype, FT_BF16);
    }
}

/* A compiler's kernel: what its name lists, over what its loops walk. */
static void test_generated(void **state)
{
    (void)state;
    const ft_op *op = call("triton_poi_fused_gelu_view_7", "[[64, 384, 3072], []]", "[" BF ",\"Scalar\"]", "",
                           "[\"\",\"75497472\"]", "triton_poi_fused_gelu_view_7");
    assert_true(op->u.elementwise.bytes == 4.0 * 75497472); /* one tensor, in place */
    assert_true(op->u.elementwise.ops_per_element > 20 && !called.known);
    op = call("triton_red_fused_embedding_mean_0", "[[128256, 2048], [4096, 2048], [4096], [], []]",
              "[" BF "," BF ",\"long int\"]", "", "[\"\",\"\",\"\",\"4096\",\"2048\"]", "triton_red");
    assert_true(op->u.elementwise.bytes < 3.0 * 2 * 4096 * 2048); /* a table is looked up, not read */
}

static void test_names(void **state)
{
    (void)state;
    assert_true(
        ft__kernel_on_tensor_cores("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1>"));
    assert_true(ft__kernel_on_tensor_cores("nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN"));
    assert_true(ft__kernel_on_tensor_cores("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32"));
    assert_true(ft__kernel_on_tensor_cores("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN"));
    assert_false(ft__kernel_on_tensor_cores(
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma"));
    assert_false(ft__kernel_on_tensor_cores("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>"));
    assert_false(ft__kernel_on_tensor_cores("void at::native::vectorized_elementwise_kernel<4>"));
    assert_true(ft__kernel_is_product("ampere_sgemm_128x64_tn") &&
                !ft__kernel_is_product("void at::native::reduce_kernel<512>"));
    assert_true(ft__aten_free("aten::view") && !ft__aten_free("aten::mm") && ft__aten_runs("aten::add_"));
}

/* Whatever the shapes, what comes out is a kernel that can be asked for, or nothing. */
static void test_strange_shapes(void **state)
{
    (void)state;
    static const char *const names[] = {"aten::mm",
                                        "aten::addmm",
                                        "aten::bmm",
                                        "aten::linear",
                                        "aten::_grouped_mm",
                                        "aten::convolution",
                                        "aten::convolution_backward",
                                        "aten::_flash_attention_forward",
                                        "aten::_fused_adamw_",
                                        "aten::_foreach_add_",
                                        "aten::native_layer_norm",
                                        "aten::native_batch_norm",
                                        "aten::_softmax",
                                        "aten::sum",
                                        "aten::nll_loss_forward",
                                        "aten::copy_",
                                        "aten::fill_",
                                        "aten::cat",
                                        "aten::embedding",
                                        "aten::gather",
                                        "aten::_index_put_impl_",
                                        "aten::max_pool2d_with_indices",
                                        "aten::sort",
                                        "aten::native_dropout",
                                        "aten::add",
                                        "aten::where",
                                        "aten::exotic",
                                        "triton_poi_fused_x",
                                        "",
                                        "aten::slice_backward",
                                        "aten::_to_copy",
                                        "aten::arange",
                                        "::",
                                        "a::b::c_"};
    static const char *const shapes[] = {"[]",
                                         "[[]]",
                                         "[[0]]",
                                         "[[0, 0], [0, 0]]",
                                         "[[1], [1], [1]]",
                                         "[[1, 1], [1, 1], [1, 1]]",
                                         "[[3, 4], [5, 6], [7, 8]]",
                                         "[[2, 3, 4, 5], [6, 7, 8, 9], [1, 1, 1, 1], [2]]",
                                         "[[1099511627776, 1099511627776], [1099511627776, 1099511627776], [9]]",
                                         "[[[1], [2]], [[3]], [4]]",
                                         "[[1,1,1,1,1,1,1,1,1]]"};
    ft_inputs in;
    ft_device device = {.vendor = FT_VENDOR_NVIDIA};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            ft_signature_text text = {shapes[s], "[\"float\",\"float\",\"float\",\"float\"]", "",
                                      "[\"\",\"[-9]\",\"[0]\",\"-1\"]"};
            ft__inputs_read(&text, &in);
            if (!ft__aten_call(names[n], &in, s % 2 ? "k" : NULL, (double)s, FT_FP32, &called)) continue;
            assert_true(called.count > 0 && called.count <= FT_CALLED_PARTS);
            for (int i = 0; i < called.count; i++) {
                double effort = ft__manner_effort(&device, called.part[i].manner, called.part[i].each,
                                                  &called.part[i].op);
                assert_true(isfinite(effort) && effort > 0);
                if (called.part[i].op.kind == FT_OP_ELEMENTWISE)
                    assert_true(called.part[i].op.u.elementwise.numel >= 1 &&
                                called.part[i].op.u.elementwise.bytes > 0);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_pointwise),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_lists_of_an_optimizer),
        cmocka_unit_test(test_generated),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_strange_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
