/* Models of images: parameters as their libraries count them, the kernels that a profiler saw one step launch, and
 * what must hold for any of them. The counts are operators with at least one kernel, of transformers 5.17 on PyTorch
 * 2.11 and an H200, in bf16 with scaled_dot_product_attention. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "graph_fixture.h"
#include "import/config/config.h"
#include "model/workload.h"

static const char vit[] = "{\"model_type\":\"vit\",\"num_hidden_layers\":6,\"num_labels\":1000}";
static const char clip[] = "{\"model_type\":\"clip\",\"text_config\":{\"num_hidden_layers\":4},"
                           "\"vision_config\":{\"num_hidden_layers\":4}}";
static const char resnet18[] = "{\"model_type\":\"resnet\",\"layer_type\":\"basic\",\"depths\":[2,2,2,2],"
                               "\"hidden_sizes\":[64,128,256,512],\"num_labels\":1000}";
static const char resnet50[] = "{\"model_type\":\"resnet\",\"num_labels\":1000}";
static const char convnext[] = "{\"model_type\":\"convnext\",\"num_labels\":1000}";
static const char dit[] = "{\"_class_name\":\"DiTTransformer2DModel\",\"out_channels\":8}";
static const char *const all[] = {vit, clip, resnet18, resnet50, convnext, dit};
enum { ALL = sizeof all / sizeof *all };

static ft_workload bf16(ft_task task, int64_t batch)
{
    return (ft_workload){.task = task,
                         .dtype = FT_BF16,
                         .kv_dtype = FT_BF16,
                         .batch = batch,
                         .seq = 77,
                         .attention = FT_SDPA,
                         .execution = FT_RUN_EAGER,
                         .accumulate = 1};
}

static ft_status build(fixture *f, const char *text, const ft_workload *work)
{
    json_t *config = NULL;
    ft_arch arch;
    assert_int_equal(FT_OK, ft__json_parse(text, strlen(text), "test", &config, &f->err));
    ft_status status = ft__config_read(config, NULL, "model", &arch, &f->err);
    json_decref(config);
    if (status != FT_OK) fail_msg("%s: %s", text, f->err.message);
    return ft__model_graph(&arch, work, f->arena, &f->graph, &f->err);
}

static const ft_graph *built(fixture *f, const char *text, ft_workload work)
{
    if (build(f, text, &work) != FT_OK) fail_msg("%s: %s", text, f->err.message);
    return f->graph;
}

/* Operators with a kernel: batch norm's moments and its result are two kernels of one. */
static double launches(const ft_graph *g, ft_phase phase)
{
    double sum = 0;
    for (int32_t i = 0; i < g->block_count; i++)
        for (int32_t n = g->blocks[i].first; n < g->blocks[i].first + g->blocks[i].count; n++)
            if (g->nodes[n].phase == phase && ft__node_runs(&g->nodes[n]) &&
                strcmp(g->nodes[n].op.name, "batchnorm_moments") != 0)
                sum += (double)g->nodes[n].count * (double)g->blocks[i].repeat;
    return sum;
}

static double activation_bytes(const ft_graph *g)
{
    double sum = 0;
    for (int32_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].role == FT_ACTIVATION && g->tensors[i].storage == i) sum += ft__tensor_bytes(&g->tensors[i]);
    return sum;
}

/* -- against what is known ------------------------------------------------------------------------- */

static void parameters_are_those_of_the_library(void **state)
{
    static const struct {
        const char *config;
        double parameters;
    } known[] = {
        {vit, 44040424},
        {"{\"model_type\":\"vit\",\"num_labels\":1000}", 86567656},
        {clip, 69355265},
        {resnet18, 11689512},
        {resnet50, 25557032},
        {"{\"model_type\":\"resnet\",\"depths\":[3,4,23,3],\"num_labels\":1000}", 44549160},
        {convnext, 28589128},
        {dit, 674834720}, /* DiT-XL/2 */
        {"{\"_class_name\":\"DiTTransformer2DModel\",\"out_channels\":8,\"num_attention_heads\":6,"
         "\"attention_head_dim\":64,\"num_layers\":12}",
         32865056}, /* DiT-S/2 */
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const ft_graph *g = built(f, known[i].config, bf16(FT_FORWARD_PASS, 2));
        if (g->parameters != known[i].parameters)
            fail_msg("%s: %.0f parameters, known are %.0f", known[i].config, g->parameters, known[i].parameters);
    }
}

static void launches_are_those_of_the_profiler(void **state)
{
    static const struct {
        const char *config;
        int64_t batch;
        double forward, trained, backward;
    } seen[] = {
        {vit, 64, 78, 80, 171},        {clip, 64, 142, 151, 312},     {resnet18, 128, 88, 90, 75},
        {resnet50, 64, 227, 229, 181}, {convnext, 64, 163, 165, 295},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        double forward = launches(built(f, seen[i].config, bf16(FT_FORWARD_PASS, seen[i].batch)), FT_FORWARD);
        const ft_graph *g = built(f, seen[i].config, bf16(FT_TRAIN, seen[i].batch));
        double trained = launches(g, FT_FORWARD), backward = launches(g, FT_BACKWARD);
        if (fabs(forward - seen[i].forward) > 0.02 * seen[i].forward)
            fail_msg("%s: a forward pass launches %g, seen were %g", seen[i].config, forward, seen[i].forward);
        if (fabs(trained - seen[i].trained) > 0.02 * seen[i].trained)
            fail_msg("%s: in training %g forward, seen were %g", seen[i].config, trained, seen[i].trained);
        if (fabs(backward - seen[i].backward) > 0.1 * seen[i].backward)
            fail_msg("%s: %g backward, seen were %g", seen[i].config, backward, seen[i].backward);
    }
}

/* 4.09e9 multiply-adds forward at 224 pixels, counted by every paper since (He et al. say 3.8e9, before the stride
 * moved to the 3x3 filter); ViT-B/16: 17.6e9 (Dosovitskiy et al., torchvision). */
static void arithmetic_is_as_published(void **state)
{
    fixture *f = *state;
    double residual = ft__graph_flops(built(f, resnet50, bf16(FT_FORWARD_PASS, 1)), FT_FORWARD) / 2e9;
    double tokens = ft__graph_flops(built(f, "{\"model_type\":\"vit\",\"num_labels\":1000}", bf16(FT_FORWARD_PASS, 1)),
                                    FT_FORWARD);
    assert_true(residual > 4.05 && residual < 4.2);
    assert_true(tokens / 2e9 > 17.4 && tokens / 2e9 < 17.9);
}

/* -- what must hold ----------------------------------------------------------------------------------- */

static void more_pictures_are_more_work_and_as_many_launches(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < ALL; i++) {
        const ft_graph *g = built(f, all[i], bf16(FT_TRAIN, 4));
        double flops = ft__graph_flops(g, FT_BACKWARD), bytes = activation_bytes(g), count = launches(g, FT_BACKWARD);
        g = built(f, all[i], bf16(FT_TRAIN, 8));
        assert_true(ft__graph_flops(g, FT_BACKWARD) > 1.7 * flops);
        assert_true(activation_bytes(g) > 1.5 * bytes);
        assert_true(launches(g, FT_BACKWARD) == count);
    }
}

static void wider_formats_are_more_bytes(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < ALL; i++) {
        double narrow = activation_bytes(built(f, all[i], bf16(FT_TRAIN, 4)));
        ft_workload wide = bf16(FT_TRAIN, 4);
        wide.dtype = wide.kv_dtype = FT_FP32;
        double bytes = activation_bytes(built(f, all[i], wide));
        assert_true(bytes > 1.6 * narrow && bytes < 2.1 * narrow);
    }
}

static void every_parameter_gets_a_gradient(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < ALL; i++) {
        const ft_graph *g = built(f, all[i], bf16(FT_TRAIN, 4));
        double gradients = 0;
        for (int32_t t = 0; t < g->tensor_count; t++)
            if (g->tensors[t].role == FT_GRADIENT && g->tensors[t].storage == t && *g->tensors[t].name)
                gradients += ft__tensor_numel(&g->tensors[t]) * (double)g->tensors[t].copies;
        if (gradients != g->parameters)
            fail_msg("%s: gradients of %.0f of %.0f parameters", all[i], gradients, g->parameters);
    }
}

static void mixed_precision_casts_and_recomputation_repeats(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < ALL; i++) {
        double plain = launches(built(f, all[i], bf16(FT_TRAIN, 4)), FT_FORWARD);
        ft_workload mixed = bf16(FT_TRAIN, 4), again = bf16(FT_TRAIN, 4);
        mixed.autocast = true;
        again.recompute = FT_RECOMPUTE_FULL;
        assert_true(launches(built(f, all[i], mixed), FT_FORWARD) > plain);
        assert_true(launches(built(f, all[i], again), FT_RECOMPUTE) > 0);
    }
}

static void a_model_without_labels_ends_where_it_ends(void **state)
{
    static const char *const bare[] = {"{\"model_type\":\"vit\",\"architectures\":[\"ViTModel\"]}",
                                       "{\"model_type\":\"resnet\",\"architectures\":[\"ResNetModel\"]}",
                                       "{\"model_type\":\"convnext\",\"architectures\":[\"ConvNextModel\"]}"};
    fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        const ft_graph *g = built(f, bare[i], bf16(FT_FORWARD_PASS, 2));
        const ft_tensor *end = &g->tensors[g->blocks[g->block_count - 1].carry_out];
        assert_int_equal(2, end->rows);
    }
}

static void pictures_are_not_decoded(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < ALL; i++) {
        ft_workload decode = bf16(FT_DECODE, 1), prefill = bf16(FT_PREFILL, 1);
        assert_int_equal(FT_E_UNSUPPORTED, build(f, all[i], &decode));
        assert_non_null(strstr(f->err.message, "decode"));
        assert_int_equal(FT_E_UNSUPPORTED, build(f, all[i], &prefill));
    }
}

static void a_text_longer_than_its_positions_is_refused(void **state)
{
    fixture *f = *state;
    ft_workload work = bf16(FT_FORWARD_PASS, 1);
    work.seq = 78;
    assert_int_equal(FT_E_RANGE, build(f, clip, &work));
    assert_non_null(strstr(f->err.message, "77"));
}

static void pictures_beyond_any_machine_are_refused(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < ALL; i++) {
        ft_workload work = bf16(FT_TRAIN, (int64_t)1 << 50);
        assert_int_equal(FT_E_RANGE, build(f, all[i], &work));
    }
}

static void pictures_too_small_for_the_filters_are_refused(void **state)
{
    fixture *f = *state;
    ft_workload work = bf16(FT_FORWARD_PASS, 1);
    assert_int_equal(FT_E_RANGE, build(f, "{\"model_type\":\"convnext\",\"image_size\":8}", &work));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_those_of_the_library),
        cmocka_unit_test(launches_are_those_of_the_profiler),
        cmocka_unit_test(arithmetic_is_as_published),
        cmocka_unit_test(more_pictures_are_more_work_and_as_many_launches),
        cmocka_unit_test(wider_formats_are_more_bytes),
        cmocka_unit_test(every_parameter_gets_a_gradient),
        cmocka_unit_test(mixed_precision_casts_and_recomputation_repeats),
        cmocka_unit_test(a_model_without_labels_ends_where_it_ends),
        cmocka_unit_test(pictures_are_not_decoded),
        cmocka_unit_test(a_text_longer_than_its_positions_is_refused),
        cmocka_unit_test(pictures_beyond_any_machine_are_refused),
        cmocka_unit_test(pictures_too_small_for_the_filters_are_refused),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
