/* Versions of PyTorch: how they are written, which are known, what scaled_dot_product_attention picks in each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/operator.h"
#include "model/pytorch.h"
#include "model/stack.h"

static const ft_pytorch *of(const char *version)
{
    const ft_pytorch *found = NULL;
    bool newer = true;
    ft_error err;
    if (ft__pytorch_find(version, &found, &newer, &err) != FT_OK) fail_msg("%s", err.message);
    assert_false(newer);
    return found;
}

static void versions_are_read(void **state)
{
    (void)state;
    assert_ptr_equal(of("2.1"), of("2.1.2"));
    assert_ptr_equal(of("2.1"), of("v2.1.0+cu121"));
    assert_ptr_equal(of("2.2"), of("2.2.0.dev20231010"));
    assert_ptr_equal(of("1.11"), of("1.11.0a0+b6df043"));
    assert_ptr_equal(of("2.7"), of("2.6"));
    assert_ptr_not_equal(of("2.5.0"), of("2.5.1"));
    assert_ptr_equal(of("2.5"), of("2.5.1")); /* a patch that is not said is the last one */
    assert_ptr_not_equal(of("2.10"), of("2.1"));
    const ft_pytorch *newest = NULL;
    bool newer = false;
    ft_error err;
    assert_int_equal(ft__pytorch_find("3.0", &newest, &newer, &err), FT_OK);
    assert_true(newer);
    assert_ptr_equal(newest, &ft__pytorches[ft__pytorch_count - 1]);
}

static void others_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *version, *says;
    } wrong[] = {{"1.6", "did you mean \"1.7\"?"},
                 {"1.14", "did you mean \"1.13\"?"},
                 {"2", "unknown PyTorch \"2\""},
                 {"2.", "unknown"},
                 {"2.1x", "unknown"},
                 {"2.123", "unknown"},
                 {"", "unknown"},
                 {"-1.0", "unknown"},
                 {"latest", "\"1.7\" to \"2."}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const ft_pytorch *found;
        bool newer;
        ft_error err;
        assert_int_equal(ft__pytorch_find(wrong[i].version, &found, &newer, &err), FT_E_NAME);
        if (!strstr(err.message, wrong[i].says)) fail_msg("%s: %s", wrong[i].version, err.message);
        assert_string_equal(err.where, "pytorch");
    }
}

/* Every trait is today's in the last row, and some row has it otherwise. */
static void rows_rise(void **state)
{
    (void)state;
    for (size_t i = 1; i < ft__pytorch_count; i++) assert_true(ft__pytorches[i].since > ft__pytorches[i - 1].since);
    const ft_pytorch *first = &ft__pytorches[0], *today = &ft__pytorches[ft__pytorch_count - 1];
    assert_true(today->compiles && today->lists && today->drops_gradients && today->expands_segments);
    assert_true(today->sdpa == FT_SDPA_SECOND && today->sdpa_cudnn == FT_SDPA_CUDNN_TODAY && !today->tf32_products);
    assert_true(first->sdpa_rocm == FT_SDPA_ROCM_NONE && today->sdpa_rocm == FT_SDPA_ROCM_TODAY);
    assert_true(!first->compiles && !first->lists && !first->drops_gradients && !first->expands_segments);
    assert_true(!of("2.4")->sdpa_wide && of("2.5")->sdpa_wide);
    assert_true(!of("2.9")->library_experts && of("2.10")->library_experts);
    assert_true(!of("2.11")->library_biases && of("2.12")->library_biases);
    assert_true(of("1.11")->tf32_products && !of("1.12")->tf32_products);
    assert_int_equal(of("1.11")->script_joins, FT_SCRIPT_JOINS_POINTWISE);
    assert_int_equal(of("2.0")->script_joins, FT_SCRIPT_JOINS_REDUCTIONS);
    assert_int_equal(of("2.1")->script_joins, FT_SCRIPT_JOINS_POINTWISE);
}

enum {
    A100 = FT_SDPA_GPU_FLASH | FT_SDPA_GPU_ROOM,
    RTX = FT_SDPA_GPU_FLASH,
    H100 = A100 | FT_SDPA_GPU_CUDNN,
    V100 = 0,
    MI300X = FT_SDPA_GPU_ROCM
};
enum { TODAY = -1, WRITTEN_OUT = -2 };

static void sdpa_picks(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        unsigned gpu;
        ft_task task;
        ft_dtype dtype;
        int64_t batch, heads, seq, width;
        bool masked;
        double dropout;
        int picks;
    } cases[] = {
        {"2.0", A100, FT_FORWARD_PASS, FT_FP16, 8, 16, 1024, 64, false, 0, FT_LIBRARY_FLASH1},
        {"2.0", A100, FT_FORWARD_PASS, FT_FP16, 2, 8, 4096, 64, false, 0, FT_LIBRARY_XFORMERS}, /* few heads */
        {"2.0", A100, FT_FORWARD_PASS, FT_FP16, 2, 8, 64, 64, false, 0, FT_LIBRARY_FLASH1},     /* and few queries */
        {"2.0", A100, FT_FORWARD_PASS, FT_FP16, 8, 16, 1024, 128, false, 0, FT_LIBRARY_XFORMERS},
        {"2.0", A100, FT_FORWARD_PASS, FT_FP16, 8, 16, 1024, 160, false, 0, FT_LIBRARY_XFORMERS},
        {"2.0", A100, FT_FORWARD_PASS, FT_FP16, 8, 16, 1024, 64, true, 0, WRITTEN_OUT},
        {"2.1", A100, FT_FORWARD_PASS, FT_FP16, 8, 16, 1024, 64, true, 0, FT_LIBRARY_XFORMERS},
        {"2.0", A100, FT_TRAIN, FT_FP16, 8, 16, 512, 64, false, 0, FT_LIBRARY_FLASH1},
        {"2.1", A100, FT_TRAIN, FT_FP16, 8, 16, 512, 64, false, 0, FT_LIBRARY_XFORMERS},
        {"2.1", A100, FT_TRAIN, FT_FP16, 1, 16, 2048, 64, false, 0, FT_LIBRARY_FLASH1},
        {"2.0", A100, FT_TRAIN, FT_FP16, 8, 16, 512, 64, false, 0.1, FT_LIBRARY_FLASH1},
        {"2.0", RTX, FT_TRAIN, FT_FP16, 8, 16, 512, 128, false, 0.1, WRITTEN_OUT}, /* too wide to train, and dropout */
        {"2.0", RTX, FT_TRAIN, FT_FP16, 8, 16, 512, 96, false, 0, FT_LIBRARY_XFORMERS},
        {"2.0", A100, FT_TRAIN, FT_FP16, 8, 16, 512, 96, false, 0, FT_LIBRARY_FLASH1},
        {"2.0", A100, FT_FORWARD_PASS, FT_FP32, 8, 16, 512, 64, false, 0, TODAY},
        {"2.0", A100, FT_FORWARD_PASS, FT_FP32, 8, 16, 512, 64, true, 0, WRITTEN_OUT},
        {"2.0", V100, FT_FORWARD_PASS, FT_FP16, 8, 16, 512, 64, false, 0, TODAY},
        {"2.2", A100, FT_TRAIN, FT_FP16, 8, 16, 512, 128, false, 0.1, TODAY},
        {"2.2", H100, FT_TRAIN, FT_BF16, 8, 16, 512, 128, false, 0, FT_LIBRARY_FLASH2},
        {"2.2", H100, FT_TRAIN, FT_BF16, 8, 16, 512, 128, true, 0, FT_LIBRARY_XFORMERS},
        {"2.2", H100, FT_TRAIN, FT_BF16, 8, 16, 512, 512, false, 0, FT_LIBRARY_XFORMERS},
        {"2.5.0", H100, FT_TRAIN, FT_BF16, 8, 16, 512, 128, false, 0, FT_LIBRARY_CUDNN},
        {"2.5.1", H100, FT_TRAIN, FT_BF16, 8, 16, 512, 128, false, 0, FT_LIBRARY_FLASH2},
        {"2.9", H100, FT_TRAIN, FT_BF16, 8, 16, 512, 128, false, 0, FT_LIBRARY_CUDNN},
        {"2.10", H100, FT_TRAIN, FT_BF16, 8, 16, 512, 128, false, 0, FT_LIBRARY_FLASH2},
        {"2.11", H100, FT_TRAIN, FT_BF16, 8, 16, 512, 128, false, 0, TODAY},
        {"2.2", MI300X, FT_TRAIN, FT_BF16, 8, 16, 512, 128, false, 0, WRITTEN_OUT},
        {"2.3", MI300X, FT_TRAIN, FT_BF16, 8, 16, 512, 128, false, 0, FT__LIBRARY_AOTRITON_FIRST},
        {"2.4", MI300X, FT_TRAIN, FT_BF16, 8, 16, 512, 128, true, 0, WRITTEN_OUT},
        {"2.4", MI300X, FT_TRAIN, FT_FP32, 8, 16, 512, 128, false, 0, WRITTEN_OUT},
        {"2.5", MI300X, FT_TRAIN, FT_FP32, 8, 16, 512, 128, true, 0.1, FT__LIBRARY_AOTRITON_SECOND},
        {"2.6", MI300X, FT_TRAIN, FT_BF16, 8, 16, 512, 128, false, 0, TODAY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_workload w = {.task = cases[i].task,
                         .dtype = cases[i].dtype,
                         .attention = FT_SDPA,
                         .pytorch = of(cases[i].version),
                         .sdpa_gpu = cases[i].gpu};
        ft_attention_shape a = {.batch = cases[i].batch,
                                .heads = cases[i].heads,
                                .kv_heads = cases[i].heads,
                                .q_len = cases[i].seq,
                                .kv_len = cases[i].seq,
                                .head_dim = cases[i].width};
        ft_attention_library library = FT_LIBRARY_OPEN;
        ft_sdpa_way way = ft__sdpa_pick(&w, &a, cases[i].masked, cases[i].dropout, &library);
        int picked = way == FT_SDPA_AS_TODAY ? TODAY : way == FT_SDPA_WRITTEN_OUT ? WRITTEN_OUT : (int)library;
        if (picked != cases[i].picks) fail_msg("case %zu, %s: %d, not %d", i, cases[i].version, picked, cases[i].picks);
        w.execution = FT_RUN_FUSED; /* nobody asks PyTorch then */
        assert_int_equal(ft__sdpa_pick(&w, &a, cases[i].masked, cases[i].dropout, &library), FT_SDPA_AS_TODAY);
    }
}

static void where_pytorch_decides(void **state)
{
    (void)state;
    const ft_stack *xla = NULL;
    ft_error err;
    assert_int_equal(ft__stack_find("xla", &xla, &err), FT_OK);
    ft_workload w = {.task = FT_TRAIN, .dtype = FT_BF16, .pytorch = of("1.13")};
    assert_ptr_equal(ft__pytorch(&w), w.pytorch);
    assert_true(ft__keeps_gradients(&w));
    w.optimizer = FT_NO_OPTIMIZER;
    assert_false(ft__keeps_gradients(&w));
    w.stack = xla;
    assert_null(ft__pytorch(&w));
    w = (ft_workload){.task = FT_DECODE, .execution = FT_RUN_CUDA_GRAPH, .pytorch = of("2.0")};
    assert_null(ft__pytorch(&w)); /* a serving engine's */
    w = (ft_workload){.task = FT_FORWARD_PASS, .execution = FT_RUN_TORCHSCRIPT};
    assert_int_equal(ft__script_joins(&w), FT_SCRIPT_JOINS_POINTWISE);
    w.pytorch = of("1.13");
    assert_int_equal(ft__script_joins(&w), FT_SCRIPT_JOINS_REDUCTIONS);
}

static void pictures_are_turned_on_amd(void **state)
{
    (void)state;
    ft_workload w = {.task = FT_TRAIN, .pytorch = of("2.9"), .sdpa_gpu = MI300X};
    assert_true(ft__turns_pictures(&w));
    w.pytorch = of("2.10");
    assert_false(ft__turns_pictures(&w));
    w.pytorch = of("2.9"), w.sdpa_gpu = H100;
    assert_false(ft__turns_pictures(&w));
    w.pytorch = NULL, w.sdpa_gpu = MI300X;
    assert_false(ft__turns_pictures(&w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_read),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(pictures_are_turned_on_amd),
        cmocka_unit_test(rows_rise),
        cmocka_unit_test(sdpa_picks),
        cmocka_unit_test(where_pytorch_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
