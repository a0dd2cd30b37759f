/* Reports of profiler traces, forecasts and screens included: whatever bytes come, figures that are finite and an
 * answer that is JSON, or an error that says what. The first byte chooses whether a GPU is named, and which. fuzz_trace
 * reads traces alone; both have one corpus. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"
#include "kernel/predictor.h"
#include "report/text/trace_screen.h"

static void check_text(const char *text)
{
    json_t *valid = json_string(text); /* NULL where the text is not UTF-8 */
    FUZZ_CHECK(valid);
    json_decref(valid);
}

static void check_sight(const ft_trace_report *s)
{
    const ft_record *r = &s->record;
    FUZZ_CHECK(isfinite(s->busy.step_ms) && s->busy.step_ms >= 0 && isfinite(s->busy.busy_ms) && s->busy.idle_ms >= 0);
    for (int i = 0; i < 4; i++) FUZZ_CHECK(s->busy.share[i] >= 0 && s->busy.share[i] <= 1.0001);
    for (size_t i = 0; i < r->op_count; i++) FUZZ_CHECK(r->ops[i].parent < (int32_t)i);
    for (size_t i = 0; i < r->work_count; i++) FUZZ_CHECK(r->work[i].end >= r->work[i].start);
    for (size_t i = 0; i < s->groups.count && s->against; i++) {
        const ft_against *a = &s->against[i];
        FUZZ_CHECK(isfinite(a->forecast_ms) && a->forecast_ms >= 0 && a->low_ms <= a->high_ms);
    }
    for (int i = 0; i < s->elsewhere_count; i++) {
        const ft_elsewhere *e = &s->elsewhere[i];
        FUZZ_CHECK(isfinite(e->step_ms) && e->step_ms >= 0 && e->low_ms <= e->step_ms && e->step_ms <= e->high_ms);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    static ft_predictor *predictor; /* opened once: it is large */
    static const char *const gpus[] = {"h100_sxm", "t4", "mi300x"};
    if (!predictor) FUZZ_CHECK(ft__predictor_open(NULL, &predictor, NULL) == FT_OK);
    if (length < 1) return 0;
    const char *gpu = gpus[data[0] % 3];
    bool elsewhere = data[0] & 4, on = data[0] & 8;
    ft_slices *from;
    ft_error err = {0};
    ft_trace_report s;
    FUZZ_CHECK(ft__slices_of(data + 1, length - 1, &from, &err) == FT_OK);
    ft_status status = ft__trace_report_of(from, predictor, on ? "h200_sxm" : NULL, &gpu, elsewhere ? 1 : 0, 0.9, NULL,
                                           &s, &err);
    ft__slices_close(from);
    FUZZ_CHECK(err.code == status || status == FT_OK);
    if (status == FT_OK) {
        ft_text out = {0};
        ft_style style = {.unicode = true, .width = 100};
        check_sight(&s);
        ft__answer_trace(&out, NULL, &s);
        json_t *answer;
        FUZZ_CHECK(ft__json_parse(out.at, out.length, "", &answer, NULL) == FT_OK);
        json_decref(answer);
        ft__text_clear(&out);
        FUZZ_CHECK(ft__screen_trace(&out, &style, "trace", &s, 8));
        ft__text_free(&out);
    } else {
        FUZZ_CHECK(err.message[0]);
        check_text(err.where);
    }
    ft__trace_report_free(&s);
    return 0;
}
