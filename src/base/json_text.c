/* json_text.c: JSON text -> Jansson values.
 *
 * The tree is Jansson's; the reading is ours, for one reason: Jansson's reader (2.14, lex_save) ignores that its token
 * buffer could not grow, and with memory exhausted in the middle of a string it drops characters or scans past the
 * buffer's end. We promise that running out of memory is an answer. A reader that works on the text in place is also
 * the faster one, says what it expected, and does not ask the locale for the decimal point.
 *
 * It takes RFC 8259 with an object or array at the root. Refused as ambiguous: a key given twice in one object, \u0000
 * (our strings are C strings), integers beyond 64 bits, reals beyond a double. The fuzzer holds it against
 * Jansson's own reader.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

enum { DEEPEST = 512, LONGEST_NUMBER = 400 };

typedef struct reader {
    const char *start, *at, *end;
    const char *where;
    char *buffer; /* pieces with a NUL behind: below `used` the keys whose values are being read, above it scratch */
    size_t used, room;
    char small[256]; /* the first buffer: requests rarely need more */
    int depth;
    ft_error *err;
} reader;

static ft_status read_value(reader *r, json_t **out);

/* -- errors ------------------------------------------------------------------------------------ */

static ft_status no_memory(const reader *r)
{
    return ft__fail_at(r->err, FT_E_MEMORY, r->where, 0, 0, "out of memory while reading JSON");
}

/* Lines and columns are counted only here. Columns count characters, not bytes. */
static ft_status fail_here(const reader *r, const char *at, ft_status code, const char *message)
{
    int line = 1, column = 1;
    for (const char *p = r->start; p < at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*p & 0xC0) != 0x80) {
            column++;
        }
    }
    return ft__fail_at(r->err, code, r->where, line, column, "%s%s", code == FT_E_SYNTAX ? "malformed JSON: " : "",
                       message);
}

static ft_status fail_expected(const reader *r, const char *expected)
{
    char message[160];
    if (r->at >= r->end) {
        snprintf(message, sizeof message, "%s is expected, the text ends", expected);
    } else {
        unsigned char c = (unsigned char)*r->at;
        size_t length = ft__utf8_length(r->at, (size_t)(r->end - r->at));
        if (c < 0x20 || c == 0x7F || length == 0) {
            snprintf(message, sizeof message, "%s is expected, got the byte 0x%02x", expected, c);
        } else {
            snprintf(message, sizeof message, "%s is expected, got '%.*s'", expected, (int)length, r->at);
        }
    }
    return fail_here(r, r->at, FT_E_SYNTAX, message);
}

/* -- pieces ------------------------------------------------------------------------------------ */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void skip_blanks(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')) r->at++;
}

static bool next_is(const reader *r, char c) { return r->at < r->end && *r->at == c; }

/* Scratch of `size` bytes; good until the next call. */
static ft_status make_room(reader *r, size_t size, char **out)
{
    if (size > r->room - r->used) {
        size_t room = (r->used + size) * 2;
        char *larger = malloc(room);
        if (!larger) return no_memory(r);
        memcpy(larger, r->buffer, r->used);
        if (r->buffer != r->small) free(r->buffer);
        r->buffer = larger;
        r->room = room;
    }
    *out = r->buffer + r->used;
    return FT_OK;
}

static bool hex4(const char *s, const char *end, unsigned *out)
{
    if (end - s < 4) return false;
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = s[i];
        unsigned digit;
        if (is_digit(c))
            digit = (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (unsigned)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            digit = (unsigned)(c - 'A') + 10;
        else
            return false;
        value = value << 4 | digit;
    }
    *out = value;
    return true;
}

static char *put_utf8(char *to, unsigned point)
{
    if (point < 0x80) {
        *to++ = (char)point;
    } else if (point < 0x800) {
        *to++ = (char)(0xC0 | point >> 6);
        *to++ = (char)(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        *to++ = (char)(0xE0 | point >> 12);
        *to++ = (char)(0x80 | (point >> 6 & 0x3F));
        *to++ = (char)(0x80 | (point & 0x3F));
    } else {
        *to++ = (char)(0xF0 | point >> 18);
        *to++ = (char)(0x80 | (point >> 12 & 0x3F));
        *to++ = (char)(0x80 | (point >> 6 & 0x3F));
        *to++ = (char)(0x80 | (point & 0x3F));
    }
    return to;
}

/* The escape at r->at, which stands on its backslash. */
static ft_status read_escape(reader *r, char **to)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *backslash = r->at++;
    const char *found = r->at < r->end && *r->at ? strchr(letters, *r->at) : NULL;
    if (found) {
        *(*to)++ = meanings[found - letters];
        r->at++;
        return FT_OK;
    }
    if (!next_is(r, 'u'))
        return fail_here(r, backslash, FT_E_SYNTAX, "an escape is one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
    unsigned high, low;
    if (!hex4(r->at + 1, r->end, &high))
        return fail_here(r, backslash, FT_E_SYNTAX, "\\u needs four hexadecimal digits");
    r->at += 5;
    if (high == 0) return fail_here(r, backslash, FT_E_SYNTAX, "\\u0000 is not accepted");
    if (high >= 0xD800 && high <= 0xDFFF) {
        bool pair = high < 0xDC00 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u' &&
                    hex4(r->at + 2, r->end, &low) && low >= 0xDC00 && low <= 0xDFFF;
        if (!pair) return fail_here(r, backslash, FT_E_SYNTAX, "half of a surrogate pair");
        r->at += 6;
        high = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }
    *to = put_utf8(*to, high);
    return FT_OK;
}

/* A string without its quotes. It stays where it is when it needs no change, and goes to the buffer, with a NUL
 * behind, when it has escapes or `copy` asks for it. Escapes never grow: \uXXXX is six bytes and at most three. */
static ft_status read_string(reader *r, bool copy, const char **out, size_t *length)
{
    if (!next_is(r, '"')) return fail_expected(r, "a string in quotes");
    const char *quote = r->at++, *first = r->at, *close = r->at;
    bool escaped = false;
    while (close < r->end && *close != '"') {
        if (*close == '\\') {
            escaped = true;
            if (++close == r->end) break;
        }
        close++;
    }
    if (close >= r->end) return fail_here(r, quote, FT_E_SYNTAX, "the string that begins here is never closed");
    char *to = NULL;
    if (escaped || copy) FT_TRY(make_room(r, (size_t)(close - first) + 1, &to));
    char *scratch = to;
    while (r->at < close) {
        unsigned char c = (unsigned char)*r->at;
        if (c == '\\') {
            FT_TRY(read_escape(r, &to));
            continue;
        }
        size_t n = 1;
        if (c >= 0x80) n = ft__utf8_length(r->at, (size_t)(close - r->at));
        if (n == 0) return fail_here(r, r->at, FT_E_SYNTAX, "a byte that is not UTF-8");
        if (c < 0x20) return fail_here(r, r->at, FT_E_SYNTAX, "a control character in a string (a line end is \\n)");
        if (to) {
            memcpy(to, r->at, n);
            to += n;
        }
        r->at += n;
    }
    if (to) *to = '\0';
    *out = to ? scratch : first;
    *length = to ? (size_t)(to - scratch) : (size_t)(close - first);
    r->at = close + 1;
    return FT_OK;
}

/* -- values ------------------------------------------------------------------------------------ */

static ft_status take_digits(reader *r)
{
    if (r->at >= r->end || !is_digit(*r->at)) return fail_expected(r, "a digit");
    while (r->at < r->end && is_digit(*r->at)) r->at++;
    return FT_OK;
}

/* Kept out of read_value, whose frame is there once per level of depth. */
__attribute__((noinline)) static ft_status read_number(reader *r, json_t **out)
{
    const char *first = r->at;
    bool real = false;
    if (next_is(r, '-')) r->at++;
    if (next_is(r, '0') && r->end - r->at > 1 && is_digit(r->at[1]))
        return fail_here(r, r->at, FT_E_SYNTAX, "a number must not begin with 0 and another digit");
    FT_TRY(take_digits(r));
    if (next_is(r, '.')) {
        real = true;
        r->at++;
        FT_TRY(take_digits(r));
    }
    if (next_is(r, 'e') || next_is(r, 'E')) {
        real = true;
        r->at++;
        if (next_is(r, '+') || next_is(r, '-')) r->at++;
        FT_TRY(take_digits(r));
    }
    size_t length = (size_t)(r->at - first);
    if (length > LONGEST_NUMBER) return fail_here(r, first, FT_E_RANGE, "a number of more than 400 characters");
    char digits[LONGEST_NUMBER + 1];
    memcpy(digits, first, length);
    digits[length] = '\0';
    double value;
    int64_t whole;
    if (real) {
        if (!ft__number_parse(digits, &value)) return fail_here(r, first, FT_E_RANGE, "a number beyond 1.8e308");
        *out = json_real(value);
    } else {
        if (!ft__whole_parse(digits, &whole)) return fail_here(r, first, FT_E_RANGE, "a whole number beyond 2^63");
        *out = json_integer(whole);
    }
    return *out ? FT_OK : no_memory(r);
}

static ft_status read_member(reader *r, json_t *object)
{
    const char *key_at = r->at, *key;
    size_t length, key_offset = r->used;
    if (!next_is(r, '"')) return fail_expected(r, "a key in quotes");
    FT_TRY(read_string(r, true, &key, &length));
    skip_blanks(r);
    if (!next_is(r, ':')) return fail_expected(r, "':' after the key");
    r->at++;
    json_t *value;
    r->used += length + 1;
    FT_TRY(read_value(r, &value));
    r->used = key_offset;
    key = r->buffer + key_offset; /* the buffer may have moved */
    size_t before = json_object_size(object);
    if (json_object_set_new_nocheck(object, key, value) != 0) return no_memory(r);
    if (json_object_size(object) == before) {
        char message[160];
        snprintf(message, sizeof message, "the key \"%.*s\" is given twice", (int)ft__utf8_cut(key, 60), key);
        return fail_here(r, key_at, FT_E_SYNTAX, message);
    }
    return FT_OK;
}

static ft_status read_element(reader *r, json_t *array)
{
    json_t *value;
    FT_TRY(read_value(r, &value));
    return json_array_append_new(array, value) == 0 ? FT_OK : no_memory(r); /* takes the value even when it fails */
}

/* Objects and arrays: what is between the braces differs, the commas do not. */
static ft_status read_container(reader *r, json_t *into, ft_status (*read_one)(reader *, json_t *), char close)
{
    const char *expected = close == '}' ? "',' or '}'" : "',' or ']'";
    r->at++;
    skip_blanks(r);
    if (next_is(r, close)) {
        r->at++;
        return FT_OK;
    }
    for (;;) {
        FT_TRY(read_one(r, into));
        skip_blanks(r);
        if (next_is(r, close)) {
            r->at++;
            return FT_OK;
        }
        if (!next_is(r, ',')) return fail_expected(r, expected);
        r->at++;
        skip_blanks(r);
    }
}

static bool take_word(reader *r, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

static ft_status read_nested(reader *r, json_t **out)
{
    if (r->depth >= DEEPEST) return fail_here(r, r->at, FT_E_SYNTAX, "more than 512 levels of depth");
    bool object = *r->at == '{';
    json_t *into = object ? json_object() : json_array();
    if (!into) return no_memory(r);
    r->depth++;
    ft_status status = object ? read_container(r, into, read_member, '}') : read_container(r, into, read_element, ']');
    r->depth--;
    if (status != FT_OK) {
        json_decref(into);
        return status;
    }
    *out = into;
    return FT_OK;
}

static ft_status read_value(reader *r, json_t **out)
{
    *out = NULL;
    skip_blanks(r);
    char c = r->at < r->end ? *r->at : '\0';
    if (c == '{' || c == '[') return read_nested(r, out);
    if (c == '-' || is_digit(c)) return read_number(r, out);
    if (c == '"') {
        const char *s;
        size_t length;
        FT_TRY(read_string(r, false, &s, &length));
        *out = json_stringn_nocheck(s, length);
    } else if (take_word(r, "true")) {
        *out = json_true();
    } else if (take_word(r, "false")) {
        *out = json_false();
    } else if (take_word(r, "null")) {
        *out = json_null();
    } else {
        return fail_expected(r, "a value");
    }
    return *out ? FT_OK : no_memory(r);
}

static ft_status read_root(reader *r, json_t **out)
{
    /* Some editors begin a file with a byte-order mark; JSON knows none. */
    if (r->end - r->at >= 3 && memcmp(r->at, "\xEF\xBB\xBF", 3) == 0) r->start = r->at += 3;
    skip_blanks(r);
    if (r->at == r->end) return fail_here(r, r->at, FT_E_SYNTAX, "the text is empty");
    if (*r->at != '{' && *r->at != '[') return fail_expected(r, "'{' or '['");
    FT_TRY(read_nested(r, out));
    skip_blanks(r);
    return r->at == r->end ? FT_OK : fail_expected(r, "the end of the text");
}

ft_status ft__json_parse(const char *text, size_t length, const char *where, json_t **out, ft_error *err)
{
    reader r = {.start = text, .at = text, .end = text + length, .where = where, .err = err};
    r.buffer = r.small;
    r.room = sizeof r.small;
    *out = NULL;
    ft_status status = read_root(&r, out);
    if (status != FT_OK) {
        json_decref(*out);
        *out = NULL;
    }
    if (r.buffer != r.small) free(r.buffer);
    return status;
}
