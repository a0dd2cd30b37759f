/* golden.c: what the golden tests share. */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ft_context *golden_ft;

int golden_open(void **state)
{
    (void)state;
    return ft_open(&golden_ft, NULL, NULL) == FT_OK ? 0 : -1;
}

int golden_close(void **state)
{
    (void)state;
    ft_close(golden_ft);
    return 0;
}

static json_t *ask(const char *request)
{
    char *text = ft_answer(golden_ft, request);
    if (!text) fail_msg("no answer to %.200s", request);
    json_t *answer = json_loads(text, 0, NULL);
    if (!answer || !json_is_true(json_object_get(answer, "ok"))) fail_msg("%.200s -> %.400s", request, text);
    free(text);
    return answer;
}

static char *printed(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (text) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    assert_non_null(text);
    return text;
}

json_t *golden_ask(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *request = printed(format, arguments);
    va_end(arguments);
    json_t *answer = ask(request);
    free(request);
    return answer;
}

double golden_figure(const json_t *answer, const char *path)
{
    const json_t *at = answer;
    char key[64];
    for (const char *from = path; at && *from;) {
        size_t length = strcspn(from, ".");
        if (length >= sizeof key) {
            fail_msg("too long: %s", path);
            return 0; /* never: the compiler does not know */
        }
        memcpy(key, from, length);
        key[length] = 0;
        at = json_object_get(at, key);
        from += length + (from[length] == '.');
    }
    if (!json_is_number(at)) fail_msg("no figure \"%s\" in the answer", path);
    return json_number_value(at);
}

double golden_value(const char *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *request = printed(format, arguments);
    va_end(arguments);
    json_t *answer = ask(request);
    free(request);
    double value = golden_figure(answer, path);
    json_decref(answer);
    return value;
}

void golden_near(const char *what, double got, double expected, double share)
{
    if (!(fabs(got - expected) <= share * fabs(expected)))
        fail_msg("%s: got %g, expected %g within %g %%", what, got, expected, 100 * share);
}

void golden_holds(bool holds, const char *format, ...)
{
    if (holds) return;
    va_list arguments;
    va_start(arguments, format);
    char text[800]; /* not from the heap: the failure leaves by a jump */
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_msg("%s", text);
}

char *golden_file(const char *name)
{
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/golden/%s", root ? root : ".", name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    enum { ROOM = 1 << 16 };
    char *text = malloc(ROOM);
    assert_non_null(text);
    size_t length = fread(text, 1, ROOM - 1, f);
    text[length] = 0;
    fclose(f);
    return text;
}

json_t *golden_rows(const char *name)
{
    const char *root = getenv("FORETELL_SOURCE_ROOT");
    char path[1024], line[1 << 14];
    snprintf(path, sizeof path, "%s/data/%s", root ? root : ".", name);
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("cannot open %s", path);
    json_t *rows = json_array();
    assert_non_null(rows);
    while (fgets(line, sizeof line, f)) {
        json_t *row = json_loads(line, 0, NULL);
        if (!row || json_array_append_new(rows, row)) fail_msg("%s: row %zu", path, json_array_size(rows) + 1);
    }
    fclose(f);
    return rows;
}

static int bound_of(const json_t *run, const golden_bound *bounds, int count)
{
    const char *source = json_string_value(json_object_get(run, "source"));
    int i = 0;
    while (i < count && strcmp(source, bounds[i].name) != 0) i++;
    return i;
}

void golden_runs(const char *file, const golden_bound *bounds, int count, int (*which)(const json_t *run))
{
    enum { MOST = 24 };
    double sum[MOST] = {0};
    int runs[MOST] = {0};
    assert_true(count <= MOST);
    json_t *rows = golden_rows(file), *run;
    size_t n;
    json_array_foreach (rows, n, run) {
        const int i = which ? which(run) : bound_of(run, bounds, count);
        golden_holds(i >= 0 && i < count, "no bound for a run of %s", file);
        char *request = json_dumps(json_object_get(run, "request"), 0);
        assert_non_null(request);
        double got = golden_value(json_string_value(json_object_get(run, "quantity")), "%s", request);
        double truth = json_number_value(json_object_get(run, "truth_ms"));
        golden_near(json_string_value(json_object_get(run, "note")), got, truth, bounds[i].worst);
        sum[i] += fabs(got / truth - 1);
        runs[i]++;
        free(request);
    }
    json_decref(rows);
    for (int i = 0; i < count; i++) {
        golden_holds(runs[i] == bounds[i].runs, "%s: %d runs", bounds[i].name, runs[i]);
        golden_holds(sum[i] / runs[i] < bounds[i].mean, "%s: %.1f %% off on average", bounds[i].name,
                     100 * sum[i] / runs[i]);
    }
}
