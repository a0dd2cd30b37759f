/* The JSON reader against Jansson's own: both take the same texts and build the same trees, or both refuse. Where ours
 * is stricter by intent (depth, length of a number) or kinder (a byte-order mark), that is allowed for below. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "fuzz.h"

static bool stricter(const ft_error *err)
{
    return strstr(err->message, "levels of depth") || strstr(err->message, "more than 400 characters");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    json_t *ours;
    ft_error err = {0};
    ft_status status = ft__json_parse(text, size, "fuzz", &ours, &err);
    FUZZ_CHECK((status == FT_OK) == (ours != NULL));
    if (status != FT_OK) {
        FUZZ_CHECK(status == FT_E_SYNTAX || status == FT_E_RANGE);
        FUZZ_CHECK(err.code == status && err.line > 0 && err.column > 0 && err.message[0]);
        ft_text quoted = {0}; /* messages quote the text and must still be valid UTF-8 */
        ft__text_add_json(&quoted, err.message);
        FUZZ_CHECK(!strstr(quoted.at, "\\ufffd"));
        ft__text_free(&quoted);
    }
    if (memchr(text, 0, size)) { /* Jansson overlooks some NUL bytes between tokens */
        json_decref(ours);
        return 0;
    }
    size_t skip = size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    json_t *theirs = json_loadb(text + skip, size - skip, JSON_REJECT_DUPLICATES, NULL);
    FUZZ_CHECK(!ours == !theirs || stricter(&err));
    if (ours && theirs) FUZZ_CHECK(json_equal(ours, theirs));
    json_decref(ours);
    json_decref(theirs);
    return 0;
}
