/* Requests: whatever bytes come, one answer that is valid JSON; a forecast is finite, positive and inside its own
 * interval, an error has a code and a message. The same bytes give the same answer again: one input in eight is asked
 * twice. Requests are edited as such (request_edit.c); fuzz_request reads them alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "base/file.h"
#include "base/json.h"
#include "fuzz.h"
#include "request_edit.h"

static ft_context *context;

/* The shipped predictor; before there is one, a predictor that knows nothing and answers from the roofline. */
static void open_context(void)
{
    void *bytes;
    size_t length;
    if (context || ft_open(&context, NULL, NULL) == FT_OK) return;
    FUZZ_CHECK(ft__predictor_write(NULL, 0, NULL, 0, "{}", &bytes, &length, NULL) == FT_OK);
    ft_options options = {.predictor = fuzz_file(0, bytes, length)};
    FUZZ_CHECK(ft_open(&context, &options, NULL) == FT_OK);
    free(bytes);
}

/* Tasks that answer with one forecast; the others with lists of answers, plans, percentiles, or of what is known. */
static bool asks_one_forecast(const json_t *request)
{
    static const char *const tasks[] = {"train", "forward", "prefill", "decode", "memory", "kernel", "collective"};
    const char *task = json_string_value(json_object_get(request, "task"));
    for (size_t i = 0; task && i < sizeof tasks / sizeof *tasks; i++)
        if (!strcmp(task, tasks[i])) return true;
    return false;
}

/* Differences between answers may be below zero, but every figure is one. */
static void check_list(const json_t *value)
{
    const char *key;
    json_t *inner, *readable = (json_t *)(uintptr_t)value;
    size_t i;
    FUZZ_CHECK(!json_is_number(value) || isfinite(json_number_value(value)));
    json_array_foreach (value, i, inner) check_list(inner);
    json_object_foreach (readable, key, inner) check_list(inner);
}

static void check_figures(const json_t *answer)
{
    const char *key;
    json_t *value, *readable = (json_t *)(uintptr_t)answer;
    json_object_foreach (readable, key, value) {
        if (!strcmp(key, "id")) continue;
        FUZZ_CHECK(!json_is_null(value));
        FUZZ_CHECK(!json_is_number(value) || json_number_value(value) >= 0);
    }
}

/* A whole model: its time, unless its memory alone was asked for; parts of the memory add up to its peak. */
static void check_step(const json_t *answer)
{
    static const char *const parts[] = {"weights_bytes",   "gradients_bytes", "optimizer_bytes",    "activations_bytes",
                                        "temporary_bytes", "kv_cache_bytes",  "communication_bytes"};
    const json_t *memory = json_object_get(answer, "memory");
    double sum = 0, peak = json_number_value(json_object_get(memory, "peak_bytes"));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        sum += json_number_value(json_object_get(memory, parts[i]));
    FUZZ_CHECK(peak > 0 && fabs(sum - peak) <= 16 + 1e-9 * peak);
    FUZZ_CHECK(json_is_boolean(json_object_get(memory, "fits")));
    check_figures(answer);
    check_figures(memory);
    if (!json_object_get(answer, "step_ms")) return;
    double ms = json_number_value(json_object_get(answer, "step_ms"));
    double low = json_number_value(json_object_get(answer, "low_ms"));
    double high = json_number_value(json_object_get(answer, "high_ms"));
    FUZZ_CHECK(isfinite(ms) && isfinite(low) && isfinite(high) && low > 0 && low <= ms && ms <= high);
}

static void check_forecast(const json_t *answer)
{
    if (json_object_get(answer, "memory")) {
        check_step(answer);
        return;
    }
    double ms = json_number_value(json_object_get(answer, "ms"));
    double low = json_number_value(json_object_get(answer, "low_ms"));
    double high = json_number_value(json_object_get(answer, "high_ms"));
    FUZZ_CHECK(isfinite(ms) && isfinite(low) && isfinite(high) && low > 0 && low <= ms && ms <= high);
    FUZZ_CHECK(json_is_string(json_object_get(answer, "bound")) && json_is_string(json_object_get(answer, "source")));
    check_figures(answer);
}

static void check_error(const json_t *answer)
{
    const json_t *error = json_object_get(answer, "error");
    const char *code = json_string_value(json_object_get(error, "code"));
    FUZZ_CHECK(code && json_string_length(json_object_get(error, "message")) > 0);
    FUZZ_CHECK(strcmp(code, "bug") != 0 && strcmp(code, "ok") != 0);
}

static void ask(const uint8_t *data, size_t size, ft_text *out)
{
    ft_scratch scratch = {0};
    ft__answer(context, &scratch, (const char *)data, size, 1, out);
    ft__scratch_free(&scratch);
}

/* One input in eight, by what it says: half of the time went into asking everything twice. */
static bool is_asked_again(const uint8_t *data, size_t size) { return ft__hash(data, size, 1) % 8 == 0; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *request = NULL;
    open_context();
    ft__json_parse((const char *)data, size, "", &request, NULL);
    if (fuzz_leads_to_a_file(request)) {
        json_decref(request);
        return 0;
    }
    ft_text out = {0}, again = {0};
    ask(data, size, &out);
    FUZZ_CHECK(!out.failed);
    if (is_asked_again(data, size)) {
        ask(data, size, &again);
        FUZZ_CHECK(out.length == again.length && !memcmp(out.at, again.at, out.length));
    }
    FUZZ_CHECK(!memchr(out.at, '\n', out.length));
    json_t *answer = json_loadb(out.at, out.length, JSON_REJECT_DUPLICATES, NULL);
    FUZZ_CHECK(json_is_object(answer) && json_is_boolean(json_object_get(answer, "ok")));
    if (!json_is_true(json_object_get(answer, "ok")))
        check_error(answer);
    else if (asks_one_forecast(request))
        check_forecast(answer);
    else
        check_list(answer);
    const json_t *id = json_object_get(request, "id");
    if (id && !json_is_object(id) && !json_is_array(id))
        FUZZ_CHECK(json_equal((json_t *)(uintptr_t)id, json_object_get(answer, "id")));
    json_decref(answer);
    json_decref(request);
    ft__text_free(&out);
    ft__text_free(&again);
    return 0;
}
