/* Pages and pictures hold what the forecast said, and nothing that is no number. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "report/html/page.h"
#include "steps.h"

#define TRAIN(model, more) "{\"task\":\"train\",\"model\":\"" model "\",\"gpu\":\"h100_sxm\"" more "}"
#define MANY(parallel) TRAIN("llama-3-8b", ",\"seq\":2048,\"global_batch\":16,\"parallel\":" parallel)

static const char *const requests[] = {
    TRAIN("gpt2", ",\"batch\":8,\"seq\":512,\"advice\":true"),
    TRAIN("gpt2", ",\"seq\":128,\"global_batch\":100"),
    TRAIN("gpt2", ",\"batch\":2,\"seq\":512,\"recompute\":\"full\",\"execution\":\"compile\""),
    TRAIN("resnet-50", ",\"batch\":32"),
    "{\"task\":\"prefill\",\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"batch\":2,\"seq\":512}",
    "{\"task\":\"decode\",\"model\":\"llama-3-8b\",\"gpu\":\"h100_sxm\",\"batch\":2,\"seq\":512}",
    "{\"task\":\"memory\",\"model\":\"gpt2\",\"gpu\":\"h100_sxm\",\"batch\":2,\"seq\":512}",
    MANY("{\"tp\":2,\"pp\":4,\"dp\":2}"),
    MANY("{\"tp\":2,\"pp\":4,\"vpp\":2,\"dp\":2,\"zero\":1}"),
    MANY("{\"pp\":4,\"schedule\":\"zero_bubble\"}"),
    MANY("{\"pp\":4,\"schedule\":\"dualpipe\"}"),
    MANY("{\"dp\":8,\"zero\":3}"),
    MANY("{\"dp\":8,\"zero\":3,\"gather\":\"parameter\"}"),
};
enum { REQUESTS = sizeof requests / sizeof *requests };

static size_t times(const char *text, const char *what)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) count++;
    return count;
}

/* Every attribute of a mark is a number, every element that is opened is closed. */
static void pages_are_sound(void **state)
{
    (void)state;
    for (int i = 0; i < REQUESTS; i++) {
        ft_step_view v;
        ft_text page = {0};
        json_t *request = forecast(requests[i], &v);
        assert_true(ft__page_step(&page, &v));
        if (strstr(page.at, "\"nan") || strstr(page.at, "\"inf") || strstr(page.at, "nan,") ||
            strstr(page.at, "null") || strstr(page.at, "-nan") || strstr(page.at, " inf"))
            fail_msg("%s: a mark stands nowhere", requests[i]);
        static const char *const elements[] = {"svg", "section", "table", "details", "dl", "tr", "td"};
        for (size_t e = 0; e < sizeof elements / sizeof *elements; e++) {
            char open[16], close[16], bare[16];
            snprintf(open, sizeof open, "<%s ", elements[e]);
            snprintf(bare, sizeof bare, "<%s>", elements[e]);
            snprintf(close, sizeof close, "</%s>", elements[e]);
            assert_int_equal(times(page.at, open) + times(page.at, bare), times(page.at, close));
        }
        assert_int_equal(times(page.at, "data-picture=\"memory\""), 2);
        bool pipeline = v.ranked && v.ranked->stage_count > 1;
        assert_int_equal(times(page.at, "data-picture=\"stages\""), pipeline ? 2 : 0);
        ft__text_free(&page);
        json_decref(request);
    }
}

/* As many dots as kernels that do anything, in each of the two sizes. */
static void kernels_are_dots(void **state)
{
    (void)state;
    for (int i = 0; i < REQUESTS; i++) {
        ft_step_view v;
        ft_text out = {0};
        json_t *request = forecast(requests[i], &v);
        size_t count = 0, active = 0;
        const ft_merged *kernels = ft__merge_kernels(&v, &count);
        assert_non_null(kernels);
        for (size_t k = 0; k < count; k++) active += kernels[k].forecast->flops > 0 || kernels[k].forecast->bytes > 0;
        assert_true(ft__svg_step_roofline(&out, &ft__frame_alone, &v));
        assert_int_equal(times(out.at, "<circle class=\"dot"), active);
        ft__text_free(&out);
        json_decref(request);
    }
}

/* The sweep with a recorder says what it said without, and its highest moment is the peak. */
static void curve_has_the_peak(void **state)
{
    (void)state;
    for (int i = 0; i < 7; i++) {
        ft_step_view v;
        ft_memory plain, drawn;
        ft_memory_curve c;
        ft_error err;
        json_t *request = forecast(requests[i], &v);
        assert_int_equal(ft__step_memory(v.graph, v.work, v.device, &plain, &err), FT_OK);
        assert_int_equal(ft__step_memory_curve(v.graph, v.work, v.device, &drawn, &c, &err), FT_OK);
        assert_true(plain.peak_bytes == drawn.peak_bytes && plain.reserved_bytes == drawn.reserved_bytes);
        double most = 0, least = 1e300;
        assert_true(c.count > 10);
        for (size_t k = 0; k < c.count; k++) {
            const ft_memory_point *p = &c.points[k];
            double bytes = p->gradients_bytes + p->activations_bytes + p->temporary_bytes + p->kv_cache_bytes;
            most = fmax(most, bytes);
            least = fmin(least, bytes);
        }
        assert_true(least >= -1);
        most += c.kept.gradients_bytes + c.kept.activations_bytes + c.kept.temporary_bytes + c.kept.kv_cache_bytes +
                plain.weights_bytes + plain.optimizer_bytes;
        if (fabs(most - plain.peak_bytes) > 1) fail_msg("%s: %g, not %g", requests[i], most, plain.peak_bytes);
        json_decref(request);
    }
}

static void text_is_escaped(void **state)
{
    (void)state;
    ft_text out = {0};
    ft__markup_text(&out, "<a href=\"x\">&'\x01\xff é");
    assert_string_equal(out.at, "&lt;a href=&quot;x&quot;&gt;&amp;&#39;?? é");
    ft__text_free(&out);
}

static void ticks_stand_in_the_range(void **state)
{
    (void)state;
    static const ft_ruler rulers[] = {
        {0, 1, 0, 100, false},     {0, 123456, 0, 1000, false}, {0.97, 1.03, 0, 500, false}, {1, 8192, 0, 1000, true},
        {1e-7, 3e5, 0, 300, true}, {3.6, 22, 280, 0, true},     {5, 5, 0, 1, false},         {0, 5, 0, 10, true}};
    for (size_t i = 0; i < sizeof rulers / sizeof *rulers; i++)
        for (int most = 0; most < 40; most += 3) {
            double ticks[FT_TICKS];
            int count = ft__ruler_ticks(&rulers[i], most, ticks);
            assert_in_range(count, i < 6 ? 1 : 0, i < 6 ? FT_TICKS : 0);
            for (int k = 0; k < count; k++) {
                assert_true(ticks[k] >= rulers[i].low * 0.999999 && ticks[k] <= rulers[i].high * 1.000001);
                assert_true(k == 0 || ticks[k] > ticks[k - 1]);
            }
        }
}

/* Where few have room, those that stay are of the whole range: 1.4 to 440 days were marked up to 20 only. */
static void few_ticks_span_the_range(void **state)
{
    (void)state;
    static const ft_ruler days = {1.4, 440, 0, 300, true};
    for (int most = 2; most < 12; most++) {
        double ticks[FT_TICKS];
        int count = ft__ruler_ticks(&days, most, ticks);
        assert_in_range(count, 2, most);
        assert_true(ticks[0] <= 10 && ticks[count - 1] >= 100);
    }
}

/* Counts of GPUs stand whole, and the last label stays in the frame. */
static void labels_are_whole(void **state)
{
    (void)state;
    static const double at[] = {16384, 32768, 65536}, round[] = {20000, 40000};
    ft_ruler r = {.low = 16384, .high = 65536, .from = 52, .to = 344, .log = true};
    ft_text out = {0};
    ft__svg_ruler_x_at(&out, &r, 0, 100, "GPUs", at, 3);
    assert_non_null(strstr(out.at, ">16384<"));
    assert_non_null(strstr(out.at, "x=\"358\" y=\"117\" text-anchor=\"end\" class=\"dim\">65536<"));
    ft__text_clear(&out);
    r.low = 20000, r.high = 40000;
    ft__svg_ruler_x_at(&out, &r, 0, 100, "tokens", round, 2);
    assert_true(strstr(out.at, ">20k<") && strstr(out.at, ">40k<"));
    ft__text_free(&out);
}

static ft_status draw_all(void *context)
{
    const ft_step_view *v = context;
    ft_text out = {0};
    bool drawn = ft__svg_memory(&out, &ft__frame_narrow, v) && ft__svg_layers(&out, &ft__frame_narrow, v) &&
                 ft__svg_step_ranges(&out, &ft__frame_narrow, v) && ft__svg_classes(&out, &ft__frame_narrow, v);
    ft__text_free(&out);
    return drawn ? FT_OK : FT_E_MEMORY;
}

static void survives_exhaustion(void **state)
{
    (void)state;
    ft_step_view v;
    json_t *request = forecast(TRAIN("gpt2", ",\"seq\":64"), &v);
    assert_true(failing_alloc_sweep(draw_all, &v) > 10);
    json_decref(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_sound),          cmocka_unit_test(kernels_are_dots),
        cmocka_unit_test(curve_has_the_peak),       cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(labels_are_whole),         cmocka_unit_test(ticks_stand_in_the_range),
        cmocka_unit_test(few_ticks_span_the_range), cmocka_unit_test(survives_exhaustion),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
