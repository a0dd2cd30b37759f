/* Answers that somebody kept: a document on each line. What passes the checks is compared on a wide screen, on a narrow
 * one and as JSON, which must be JSON again; what does not says why. */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "fuzz.h"
#include "report/text/compare_screen.h"

static void show(const ft_compared *c, size_t count)
{
    static const ft_style styles[] = {{.width = 120, .unicode = true}, {.width = 20}};
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        ft_text out = {0};
        FUZZ_CHECK(ft__screen_compared(&out, &styles[i], c, count, i == 0) && out.length > 0);
        ft__text_free(&out);
    }
    ft_text out = {0};
    FUZZ_CHECK(ft__answer_compared(&out, NULL, c, count, ""));
    json_t *read = json_loads(out.at, 0, NULL);
    FUZZ_CHECK(json_is_true(json_object_get(read, "ok")));
    FUZZ_CHECK(json_array_size(json_object_get(read, "answers")) == count);
    json_decref(read);
    ft__text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a", "b", "c"};
    enum { MOST = sizeof names / sizeof *names };
    json_t *documents[MOST] = {0};
    ft_compared compared[MOST];
    size_t count = 0;
    const char *at = (const char *)data, *end = at + size;
    bool fine = true;
    while (fine && at < end && count < MOST) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        ft_error err = {0};
        fine = ft__json_parse(at, length, names[count], &documents[count], &err) == FT_OK;
        if (fine) {
            const char *name = names[count];
            fine = ft__compared_of(name, documents[count], NULL, &compared[count], &err) == FT_OK;
            count++;
        }
        if (!fine) FUZZ_CHECK(err.code != FT_OK && err.code != FT_E_BUG && err.message[0]);
        at += length + 1;
    }
    ft_error err = {0};
    if (fine && count > 1) {
        if (ft__compare_check(compared, count, &err) == FT_OK)
            show(compared, count);
        else
            FUZZ_CHECK(err.code != FT_OK && err.code != FT_E_BUG && err.message[0]);
    }
    for (size_t i = 0; i < MOST; i++) json_decref(documents[i]);
    return 0;
}
