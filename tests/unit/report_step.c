/* Reports of whole models: days to train, kernels merged, layers added up, text that fits the terminal. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "failing_alloc.h"
#include "open_context.h"
#include "report/text/infer_screen.h"
#include "report/text/lines.h"
#include "report/text/step_screen.h"

static const ft_style ascii = {.width = 80}, wide = {.unicode = true, .colour = true, .width = 120};

/* The four counts that the formula is known by: 300 G tokens on 480 GPUs, 2.7, 6.7, 13 and 175 G parameters at 127 to
 * 140 TFLOP/s. */
static void the_closed_formula_gives_the_known_days(void **state)
{
    (void)state;
    static const struct {
        double parameters, tflops, days;
    } cases[] = {{2.7e9, 127, 1.2}, {6.7e9, 130, 3.0}, {13e9, 135, 5.6}, {175e9, 140, 72.3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ft_graph graph = {.parameters = cases[i].parameters};
        ft_workload work = {.batch = 2, .seq = 2048, .accumulate = 4};
        ft_step step = {.step_ms = 1000, .executed_flops = cases[i].tflops * 1e12};
        ft_step_view view = {.graph = &graph, .work = &work, .step = &step};
        ft_days days = ft__days_of(&view, 300e9, 480);
        assert_true(fabs(days.closed_8 - cases[i].days) < 0.051);
        assert_true(fabs(days.closed_6 / days.closed_8 - 0.75) < 1e-12);
        assert_true(fabs(days.steps - 300e9 / (480 * 2 * 2048 * 4.0)) < 1e-6);
        assert_true(fabs(days.days - days.steps / 86400) < 1e-9); /* a step a second */
    }
}

static void counts_and_sizes_are_short(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } counts[] = {{8030261248.0, "8.03 B"}, {124439808, "124 M"}, {1.8e12, "1.80 T"},
                  {999.6e6, "1.00 B"},      {1536, "1.54 K"},     {12, "12"}},
      sizes[] = {{16060522496.0, "15.0"}, {1073741824, "1.00"}, {1e6, "0.00"}, {3e7, "0.03"}};
    ft_text out = {0};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        ft__text_clear(&out);
        ft__add_parameters(&out, counts[i].value);
        assert_string_equal(counts[i].text, out.at);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ft__text_clear(&out);
        ft__add_gib(&out, sizes[i].value);
        assert_string_equal(sizes[i].text, out.at);
    }
    ft__text_free(&out);
}

static void words_are_wrapped_at_the_width(void **state)
{
    (void)state;
    ft_text out = {0};
    const ft_style narrow = {.width = 10};
    ft__add_wrapped(&out, &narrow, "one two three fourteenfifteen six");
    assert_string_equal("one two\nthree\nfourteenfifteen\nsix\n", out.at);
    ft__text_free(&out);
}

/* -- screens of real steps --------------------------------------------------------------------- */

static ft_step_view view_of(const char *text, json_t **document)
{
    ft_model_request r;
    ft_step_view v = {0};
    ft_error err = {0};
    if (ft__json_parse(text, strlen(text), "", document, &err) != FT_OK ||
        ft__model_request_of(ft, &scratch, *document, &r, &err) != FT_OK ||
        ft__step_of(ft, &scratch, &r, &v, &err) != FT_OK)
        fail_msg("%s: %s", text, err.message);
    return v;
}

static int widest(const char *text)
{
    int most = 0;
    for (const char *at = text; *at;) {
        char line[1024];
        size_t length = strcspn(at, "\n");
        assert_true(length < sizeof line);
        memcpy(line, at, length);
        line[length] = '\0';
        int width = ft__text_width(line);
        if (width > most) most = width;
        at += length + (at[length] == '\n');
    }
    return most;
}

static size_t lines_of(const char *text)
{
    size_t lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

static void a_screen_fits_the_terminal(void **state)
{
    (void)state;
    static const char *const requests[] = {
        ("{\"model\":\"llama-3-8b\",\"gpu\":\"h200_sxm\",\"batch\":8,\"recompute\":\"full\",\"master_weights\":true,"
         "\"global_batch\":64,\"execution\":\"cuda_graph\"}"),
        "{\"model\":\"gpt2\",\"gpu\":\"t4\",\"dtype\":\"amp_fp16\",\"attention\":\"eager\"}",
        "{\"task\":\"decode\",\"model\":\"gpt2\",\"gpu\":\"mi300x\",\"cache\":\"dynamic\"}",
        "{\"model\":{\"model_type\":\"resnet\"},\"gpu\":\"a100_sxm_80gb\",\"batch\":32}",
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        json_t *document;
        ft_step_view v = view_of(requests[i], &document);
        ft_text narrow = {0}, broad = {0};
        assert_true(ft__screen_step(&narrow, &ascii, &v) && ft__screen_step(&broad, &wide, &v));
        assert_true(lines_of(narrow.at) <= 45 && lines_of(broad.at) <= 45);
        if (widest(narrow.at) > 80) fail_msg("%d columns:\n%s", widest(narrow.at), narrow.at);
        if (widest(broad.at) > 120) fail_msg("%d columns:\n%s", widest(broad.at), broad.at);
        for (const char *at = narrow.at; *at; at++) assert_true(*at == '\n' || (*at >= ' ' && *at <= '~'));
        assert_non_null(strstr(broad.at, "\x1b["));
        ft__text_free(&narrow);
        ft__text_free(&broad);
        json_decref(document);
    }
}

static const char *const laid_out[] = {
    "{\"model\":\"llama-3-70b\",\"gpu\":\"h100_sxm\",\"recompute\":\"full\",\"global_batch\":64,\"parallel\":{\"tp\":8,"
    "\"pp\":4,\"dp\":2,\"sp\":true,\"zero\":1}}",
    "{\"model\":\"qwen3-30b-a3b\",\"gpu\":\"h200_sxm\",\"global_batch\":32,\"execution\":\"fused\",\"parallel\":{"
    "\"tp\":2,"
    "\"cp\":2,\"ep\":8,\"dp\":8,\"pp\":2,\"zero\":3,\"sp\":true}}",
    "{\"model\":\"gpt2\",\"gpu\":\"a100_sxm_80gb\",\"global_batch\":64,\"parallel\":{\"pp\":4,\"vpp\":3,\"dp\":4}}",
    "{\"task\":\"decode\",\"model\":\"llama-3-70b\",\"gpu\":\"h100_sxm\",\"batch\":16,\"parallel\":{\"tp\":8}}",
};
enum { LAID_OUT = sizeof laid_out / sizeof *laid_out };

static void a_screen_of_many_gpus_fits_the_terminal(void **state)
{
    (void)state;
    for (size_t i = 0; i < LAID_OUT; i++) {
        json_t *document;
        ft_step_view v = view_of(laid_out[i], &document);
        ft_text narrow = {0}, broad = {0}, layers = {0};
        assert_true(ft__screen_step(&narrow, &ascii, &v) && ft__screen_step(&broad, &wide, &v));
        assert_true(ft__screen_stages(&layers, &ascii, &v) && ft__screen_layers(&layers, &ascii, &v));
        assert_true(lines_of(narrow.at) <= 50 && lines_of(broad.at) <= 50);
        if (widest(narrow.at) > 80) fail_msg("%d columns:\n%s", widest(narrow.at), narrow.at);
        if (widest(broad.at) > 120) fail_msg("%d columns:\n%s", widest(broad.at), broad.at);
        if (widest(layers.at) > 80) fail_msg("%d columns:\n%s", widest(layers.at), layers.at);
        ft__text_free(&narrow);
        ft__text_free(&broad);
        ft__text_free(&layers);
        json_decref(document);
    }
}

/* What sticks out along the axes is what sticks out in all, and no axis shows more than it exchanges. */
static void exposed_exchanges_add_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < LAID_OUT; i++) {
        json_t *document;
        ft_step_view v = view_of(laid_out[i], &document);
        double exposed[FT_AXIS_COUNT], sum = 0;
        assert_true(ft__axes_exposed(&v, exposed));
        for (int a = 0; a < FT_AXIS_COUNT; a++) {
            assert_true(exposed[a] >= 0 && exposed[a] <= v.step->axis_ms[a] * (1 + 1e-9));
            sum += exposed[a];
        }
        if (sum > v.step->comm_exposed_ms * 1.001 || sum < v.step->comm_exposed_ms * 0.9)
            fail_msg("%s: %g ms by axis, %g in all", laid_out[i], sum, v.step->comm_exposed_ms);
        json_decref(document);
    }
}

static void parameters_are_those_of_the_whole_model(void **state)
{
    (void)state;
    json_t *document;
    double all, active;
    ft_step_view v = view_of(laid_out[1], &document);
    assert_true(ft__view_parameters(&v, &all, &active));
    assert_true(all > 30e9 && all < 31e9 && active > 3e9 && active < 3.7e9 && v.graph->parameters < all / 4);
    json_decref(document);
}

/* int8 of a B300 is slower than its bf16, in which attention and the experts run; four-bit weights on an RTX 3090 come
 * over the bus before the tensor cores are done. */
static void nothing_is_faster_than_its_peak(void **state)
{
    (void)state;
    json_t *document;
    ft_step_view v =
        view_of("{\"task\":\"prefill\",\"model\":\"qwen3-30b-a3b\",\"gpu\":\"b300_sxm\",\"dtype\":\"int8\","
                "\"batch\":32,\"seq\":8192,\"execution\":\"ideal\"}",
                &document);
    assert_true(v.step->mfu > 0 && v.step->mfu < 1 && v.step->hfu < 1);
    json_decref(document);
    v = view_of("{\"task\":\"prefill\",\"model\":\"deepseek-v3\",\"gpu\":\"rtx_3090\",\"weights_dtype\":\"int4\","
                "\"batch\":32,\"seq\":8192,\"execution\":\"ideal\"}",
                &document);
    for (int32_t i = 0; i < v.step->kernel_count; i++) {
        const ft_forecast *f = &v.step->kernels[i].forecast;
        if (v.graph->nodes[v.step->kernels[i].node].op.kind == FT_OP_GEMM)
            assert_true(f->flops / f->ms * 1e-9 <= v.device->peak_tflops[FT_BF16] * v.device->running_mhz /
                                                       v.device->matrix_mhz); /* quoted below what it runs at */
    }
    json_decref(document);
}

static void merged_kernels_are_all_of_them_once(void **state)
{
    (void)state;
    json_t *document;
    ft_step_view v = view_of("{\"model\":\"llama-3-8b\",\"gpu\":\"h200_sxm\"}", &document);
    size_t count, launched = 0;
    double times = 0;
    const ft_merged *merged = ft__merge_kernels(&v, &count);
    assert_non_null(merged);
    for (int32_t i = 0; i < v.step->kernel_count; i++) times += v.step->kernels[i].times;
    for (size_t i = 0; i < count; i++) {
        launched += (size_t)merged[i].count;
        for (size_t k = i + 1; k < count; k++)
            if (merged[i].block == merged[k].block && merged[i].node->phase == merged[k].node->phase &&
                merged[i].forecast->ms == merged[k].forecast->ms &&
                !strcmp(merged[i].node->name, merged[k].node->name) && merged[i].node->op.kind != FT_OP_GEMM)
                assert_string_not_equal(merged[i].node->op.name, merged[k].node->op.name);
    }
    assert_true(count < (size_t)v.step->kernel_count && fabs((double)launched - times) < 0.5);
    json_decref(document);
}

static ft_status attempt(void *context)
{
    ft_text out = {0};
    bool printed = ft__screen_step(&out, &wide, context);
    ft__text_free(&out);
    return printed ? FT_OK : FT_E_MEMORY;
}

static void running_out_of_memory_is_noticed(void **state)
{
    (void)state;
    json_t *document;
    ft_step_view v = view_of("{\"model\":\"gpt2\",\"gpu\":\"h200_sxm\"}", &document);
    assert_true(failing_alloc_sweep(attempt, &v) > 10);
    json_decref(document);
    v = view_of(laid_out[0], &document);
    assert_true(failing_alloc_sweep(attempt, &v) > 10);
    json_decref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_closed_formula_gives_the_known_days), cmocka_unit_test(counts_and_sizes_are_short),
        cmocka_unit_test(words_are_wrapped_at_the_width),          cmocka_unit_test(a_screen_fits_the_terminal),
        cmocka_unit_test(a_screen_of_many_gpus_fits_the_terminal), cmocka_unit_test(exposed_exchanges_add_up),
        cmocka_unit_test(parameters_are_those_of_the_whole_model), cmocka_unit_test(nothing_is_faster_than_its_peak),
        cmocka_unit_test(merged_kernels_are_all_of_them_once),     cmocka_unit_test(running_out_of_memory_is_noticed),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
