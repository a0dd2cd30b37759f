/* The settings file: any bytes, values one can keep or an error with its line. What is read is written again as TOML
 * and read once more: the same values, in the same order. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "fuzz.h"
#include "toml.h"

typedef struct kept {
    ft_text written, seen;
    int values, last_line;
} kept;

/* Between double quotes, every byte that TOML wants escaped as \u. */
static void add_quoted(ft_text *out, const char *text)
{
    ft__text_add(out, "\"");
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == '"' || *text == '\\' || *text == 0x7f)
            ft__text_addf(out, "\\u%04x", (unsigned char)*text);
        else
            ft__text_add_n(out, text, 1);
    ft__text_add(out, "\"");
}

static ft_status take(void *user, const cli_toml_value *v, ft_error *err)
{
    kept *k = user;
    (void)err;
    FUZZ_CHECK(v->path && v->line > 0 && v->line >= k->last_line);
    FUZZ_CHECK(v->type != CLI_TOML_NUMBER || isfinite(v->number));
    FUZZ_CHECK(v->type != CLI_TOML_SWITCH || v->number == 0 || v->number == 1);
    k->last_line = v->line;
    k->values++;
    add_quoted(&k->written, v->path); /* one quoted key says the same path as dots and tables */
    ft__text_add(&k->written, " = ");
    ft__text_addf(&k->seen, "%s|%d|%.17g|%zu|", v->path, v->type, v->number, v->count);
    const char *each = v->text;
    switch (v->type) {
    case CLI_TOML_TEXT:
        add_quoted(&k->written, v->text);
        ft__text_add(&k->seen, v->text);
        break;
    case CLI_TOML_NUMBER: ft__text_addf(&k->written, "%.17g", v->number); break;
    case CLI_TOML_SWITCH: ft__text_add(&k->written, v->number > 0 ? "true" : "false"); break;
    case CLI_TOML_LIST:
        ft__text_add(&k->written, "[");
        for (size_t i = 0; i < v->count; i++, each += strlen(each) + 1) {
            ft__text_add(&k->written, i ? ", " : "");
            add_quoted(&k->written, each);
            ft__text_addf(&k->seen, "%s,", each);
        }
        ft__text_add(&k->written, "]");
        break;
    }
    ft__text_add(&k->written, "\n");
    ft__text_add(&k->seen, "\n");
    return FT_OK;
}

static void release(kept *k)
{
    ft__text_free(&k->written);
    ft__text_free(&k->seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kept first = {0}, again = {0};
    ft_error err = {0};
    ft_status status = cli_toml_read((const char *)data, size, "fuzz.toml", take, &first, &err);
    if (status != FT_OK) {
        FUZZ_CHECK(status == FT_E_SYNTAX && err.code == status && err.line > 0 && err.message[0]);
    } else if (first.values) {
        status = cli_toml_read(first.written.at, first.written.length, "again", take, &again, &err);
        FUZZ_CHECK(status == FT_OK && again.values == first.values);
        FUZZ_CHECK(again.seen.length == first.seen.length && !memcmp(again.seen.at, first.seen.at, first.seen.length));
    }
    release(&first);
    release(&again);
    return 0;
}
