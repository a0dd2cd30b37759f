/* Traces hold what the forecast said: Perfetto's rules, and Chakra's graph read back. */
#include <math.h>

#include "traced_requests.h"

/* -- Perfetto ---------------------------------------------------------------------------------- */

static const char *word(const json_t *e, const char *key)
{
    const char *s = json_string_value(json_object_get(e, key));
    return s ? s : "";
}

static double number(const json_t *e, const char *key) { return json_number_value(json_object_get(e, key)); }

enum { PIDS = 64, TIDS = 32 };

/* Names, order and no overlap inside a track; arrows with two ends that go forward in time. */
static double check_events(const json_t *events, double *last_kernel)
{
    static double end[PIDS][TIDS], starts[4096];
    static bool named[PIDS][TIDS];
    double all = 0;
    size_t i, arrows = 0, arrived = 0;
    json_t *e;
    memset(end, 0, sizeof end);
    memset(named, 0, sizeof named);
    *last_kernel = 0;
    json_array_foreach (events, i, e) {
        const char *phase = word(e, "ph");
        int pid = (int)number(e, "pid"), tid = (int)number(e, "tid");
        assert_true(pid > 0 && pid < PIDS && tid >= 0 && tid < TIDS);
        if (!strcmp(phase, "X")) {
            double ts = number(e, "ts"), dur = number(e, "dur");
            assert_true(word(e, "name")[0]);
            assert_true(ts >= 0 && dur > 0);
            assert_true(ts >= end[pid][tid] - 1e-6);
            end[pid][tid] = round((ts + dur) * 1e3) / 1e3;
            if (ts + dur > all) all = ts + dur;
            if (tid == 3 && ts + dur > *last_kernel) *last_kernel = ts + dur;
        } else if (!strcmp(phase, "M")) {
            if (!strcmp(word(e, "name"), "thread_name")) named[pid][tid] = true;
        } else {
            int64_t id = json_integer_value(json_object_get(e, "id"));
            assert_true(id > 0 && id < 4096);
            if (!strcmp(phase, "s")) {
                starts[id] = number(e, "ts");
                arrows++;
            } else {
                assert_string_equal(phase, "f");
                assert_true(number(e, "ts") >= starts[id]);
                arrived++;
            }
        }
    }
    assert_int_equal(arrows, arrived);
    for (int p = 0; p < PIDS; p++)
        for (int t = 0; t < TIDS; t++) assert_true(end[p][t] <= 0 || named[p][t]);
    return all;
}

static void a_trace_obeys_the_format_and_ends_with_the_step(void **state)
{
    (void)state;
    for (int i = 0; i < REQUESTS; i++) {
        ft_step_view view;
        ft_text out = {0};
        ft_error err = {0};
        json_t *request = forecast(requests[i], &view);
        if (ft__perfetto(&view, &out, &err) != FT_OK) fail_msg("%s: %s", requests[i], err.message);
        json_t *trace = json_loads(out.at, 0, NULL);
        assert_non_null(trace);
        json_t *events = json_object_get(trace, "traceEvents");
        assert_in_range(json_array_size(events), 20, 2 * FT_TRACE_EVENTS);
        double kernels, end = check_events(events, &kernels), step = view.step->step_ms * 1e3;
        if (fabs(end / step - 1) > 0.01) fail_msg("%s ends at %g us, not %g", requests[i], end, step);
        assert_true(kernels > 0.2 * step);
        assert_true(word(json_object_get(trace, "otherData"), "notes")[0]);
        json_decref(trace);
        json_decref(request);
        ft__text_free(&out);
    }
}

static size_t count_of(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

static void stages_are_processes_and_sends_are_arrows(void **state)
{
    (void)state;
    ft_step_view view;
    ft_text out = {0};
    json_t *request = forecast(requests[2], &view);
    assert_int_equal(ft__perfetto(&view, &out, NULL), FT_OK);
    assert_int_equal(count_of(out.at, "\"process_name\""), 4);
    assert_int_equal(count_of(out.at, "\"ph\":\"s\""),
                     2 * 3 * 8); /* both ways, three boundaries, eight micro-batches */
    assert_non_null(strstr(out.at, "stage 3 of 4: GPU 12 and 3 like it"));
    assert_non_null(strstr(out.at, "\"forward 7\""));
    assert_non_null(strstr(out.at, "\"tensor exchanges\""));
    assert_non_null(strstr(out.at, "\"data exchanges\""));
    assert_non_null(strstr(out.at, "all_reduce "));
    assert_non_null(strstr(out.at, "\"bound\":\"compute\""));
    assert_non_null(strstr(out.at, "4 more like this")); /* of eight layers */
    ft__text_free(&out);
    json_decref(request);
}

/* Chunks of an interleaved stage send their gradients each behind its own last backward pass: the head's leave with
 * the first chunk that is done, and the embedding's with the last. */
static void every_chunk_sends_its_gradients(void **state)
{
    (void)state;
    ft_step_view view;
    ft_text out = {0};
    json_t *request = forecast(LAID_OUT("llama-3-8b", "16", "{\"pp\":4,\"vpp\":4,\"dp\":2}"), &view);
    assert_int_equal(ft__perfetto(&view, &out, NULL), FT_OK);
    assert_int_equal(count_of(out.at, "reduce gradients of head"), 1);
    assert_int_equal(count_of(out.at, "reduce gradients of embed"), 1);
    json_decref(request);
    ft__text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_obeys_the_format_and_ends_with_the_step),
        cmocka_unit_test(stages_are_processes_and_sends_are_arrows),
        cmocka_unit_test(every_chunk_sends_its_gradients),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
