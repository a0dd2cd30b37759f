/* json.c: values out of JSON objects, with our errors.
 *
 * Malformed text has a line and a column (json_text.c); a wrong value in well-formed text has none, so the getters say
 * the key's path instead. `where` is what the object is called: a key path ("parallel" makes "parallel.tp") or a file
 * (its name is followed by a colon: "my_gpu.json: sms").
 */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

static const size_t largest_file = (size_t)64 << 20;

/* -- documents --------------------------------------------------------------------------------- */

ft_status ft__json_load(const char *path, json_t **out, ft_error *err)
{
    char *text;
    size_t length;
    *out = NULL;
    FT_TRY(ft__file_read(path, largest_file, &text, &length, err));
    ft_status status = ft__json_parse(text, length, path, out, err);
    free(text);
    return status;
}

/* -- values ------------------------------------------------------------------------------------ */

typedef char path_text[256];
typedef char value_text[96];

static bool names_a_file(const char *where)
{
    size_t n = strlen(where);
    return strchr(where, '/') || (n > 5 && strcmp(where + n - 5, ".json") == 0);
}

static const char *path_of(path_text path, const char *where, const char *key)
{
    if (!where || !*where) return key;
    /* Cut between characters: a place is part of an answer. */
    const size_t most = sizeof(path_text) - sizeof ": ", front = ft__utf8_cut(where, most),
                 back = ft__utf8_cut(key, most - front);
    snprintf(path, sizeof(path_text), "%.*s%s%.*s", (int)front, where, names_a_file(where) ? ": " : ".", (int)back,
             key);
    return path;
}

/* What was found instead, short enough for a message. */
static const char *describe(const json_t *value, value_text text)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: return "null";
    case JSON_STRING: {
        size_t length = json_string_length(value);
        const char *s = json_string_value(value);
        size_t shown = ft__utf8_cut(s, 60);
        snprintf(text, sizeof(value_text), "the string \"%.*s%s\"", (int)shown, s, shown < length ? "..." : "");
        return text;
    }
    case JSON_INTEGER:
        snprintf(text, sizeof(value_text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return text;
    case JSON_REAL: {
        ft_text number = {0};
        ft__text_add_number(&number, json_real_value(value), 15);
        snprintf(text, sizeof(value_text), "%s", number.failed ? "another number" : number.at);
        ft__text_free(&number);
        return text;
    }
    }
    return "something else";
}

/* Limits are read by people: 2^53 rather than 9007199254740992. */
static const char *limit_text(int64_t limit, value_text text)
{
    if (limit == INT64_MAX) return "2^63 - 1";
    if (limit == INT64_MIN) return "-2^63";
    uint64_t size = limit < 0 ? -(uint64_t)limit : (uint64_t)limit;
    if (size >= (1u << 20) && (size & (size - 1)) == 0) {
        int power = 0;
        while (size >> power != 1) power++;
        snprintf(text, sizeof(value_text), "%s2^%d", limit < 0 ? "-" : "", power);
    } else {
        snprintf(text, sizeof(value_text), "%" PRId64, limit);
    }
    return text;
}

static ft_status lookup(const json_t *object, const char *key, ft_need need, const json_t **out, const char *where,
                        ft_error *err)
{
    *out = NULL;
    value_text text;
    path_text path;
    if (!json_is_object(object)) {
        const char *found = object ? describe(object, text) : "nothing";
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "an object that may hold \"%s\" is expected, got %s", key,
                           found);
    }
    *out = json_object_get(object, key);
    if (!*out && need == FT_REQUIRED)
        return ft__fail_at(err, FT_E_MISSING, path_of(path, where, key), 0, 0, "\"%s\" is missing", key);
    return FT_OK;
}

static ft_status must_be(const char *what, const json_t *value, const char *key, const char *where, ft_error *err)
{
    value_text found;
    path_text path;
    return ft__fail_at(err, FT_E_TYPE, path_of(path, where, key), 0, 0, "\"%s\" must be %s, got %s", key, what,
                       describe(value, found));
}

ft_status ft__json_number(const json_t *object, const char *key, ft_need need, double low, double high, double *out,
                          const char *where, ft_error *err)
{
    const json_t *value;
    FT_TRY(lookup(object, key, need, &value, where, err));
    if (!value) return FT_OK;
    if (!json_is_number(value)) return must_be("a number", value, key, where, err);
    double number = json_number_value(value);
    if (!(number >= low && number <= high)) {
        value_text found;
        path_text path;
        ft_text range = {0};
        if (isfinite(low)) {
            ft__text_add(&range, isfinite(high) ? " from " : " of at least ");
            ft__text_add_number(&range, low, 9);
        }
        if (isfinite(high)) {
            ft__text_add(&range, isfinite(low) ? " to " : " of at most ");
            ft__text_add_number(&range, high, 9);
        }
        ft_status status = ft__fail_at(err, FT_E_RANGE, path_of(path, where, key), 0, 0,
                                       "\"%s\" must be a number%s, got %s", key, range.at ? range.at : "",
                                       describe(value, found));
        ft__text_free(&range);
        return status;
    }
    *out = number;
    return FT_OK;
}

bool ft__json_is_whole(const json_t *value, int64_t *out)
{
    if (json_is_integer(value)) {
        *out = json_integer_value(value);
        return true;
    }
    const double real = json_real_value(value); /* 0 of what is none */
    /* Beyond 2^53 neighbouring integers share a double: which one was meant is lost. */
    if (!json_is_real(value) || !(fabs(real) <= 0x1p53) || real != floor(real)) return false;
    *out = (int64_t)real;
    return true;
}

int64_t ft__json_whole_of(const json_t *value)
{
    int64_t number = 0;
    ft__json_is_whole(value, &number);
    return number;
}

ft_status ft__json_whole(const json_t *object, const char *key, ft_need need, int64_t low, int64_t high, int64_t *out,
                         const char *where, ft_error *err)
{
    const json_t *value;
    FT_TRY(lookup(object, key, need, &value, where, err));
    if (!value) return FT_OK;
    int64_t number = 0;
    if (!ft__json_is_whole(value, &number) || number < low || number > high) {
        value_text found, least, most;
        path_text path;
        ft_status code = json_is_number(value) ? FT_E_RANGE : FT_E_TYPE;
        return ft__fail_at(err, code, path_of(path, where, key), 0, 0,
                           "\"%s\" must be a whole number from %s to %s, got %s", key, limit_text(low, least),
                           limit_text(high, most), describe(value, found));
    }
    *out = number;
    return FT_OK;
}

ft_status ft__json_string(const json_t *object, const char *key, ft_need need, const char **out, const char *where,
                          ft_error *err)
{
    const json_t *value;
    FT_TRY(lookup(object, key, need, &value, where, err));
    if (!value) return FT_OK;
    if (!json_is_string(value)) return must_be("a string", value, key, where, err);
    *out = json_string_value(value);
    return FT_OK;
}

ft_status ft__json_bool(const json_t *object, const char *key, ft_need need, bool *out, const char *where,
                        ft_error *err)
{
    const json_t *value;
    FT_TRY(lookup(object, key, need, &value, where, err));
    if (!value) return FT_OK;
    if (!json_is_boolean(value)) return must_be("true or false", value, key, where, err);
    *out = json_is_true(value);
    return FT_OK;
}

static bool is_known(const char *key, const char *const *known, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(key, known[i]) == 0) return true;
    return false;
}

/* Nothing like it: what there is, where that is a sentence. */
enum { FEW_KEYS = 12 };
static ft_status list_keys(const char *key, const char *const *known, size_t count, const char *path, ft_error *err)
{
    ft_text all = {0};
    for (size_t i = 0; i < count; i++) ft__text_addf(&all, "%s%s", i ? ", " : "", known[i]);
    bool listed = all.length && !all.failed;
    ft_status status = ft__fail_at(err, FT_E_KEY, path, 0, 0, "unknown key \"%.*s\"%s%s", (int)ft__utf8_cut(key, 60),
                                   key, listed ? "; there are " : "", listed ? all.at : "");
    ft__text_free(&all);
    return status;
}

ft_status ft__json_known_keys(const json_t *object, const char *const *known, size_t count, const char *where,
                              ft_error *err)
{
    value_text found;
    path_text path;
    if (!json_is_object(object))
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "an object is expected, got %s",
                           object ? describe(object, found) : "nothing");
    /* Jansson's iterators take a non-const object but change nothing. */
    json_t *readable = (json_t *)(uintptr_t)object;
    for (void *it = json_object_iter(readable); it; it = json_object_iter_next(readable, it)) {
        const char *key = json_object_iter_key(it);
        if (is_known(key, known, count)) continue;
        const char *nearest = ft__nearest(key, known, count);
        if (!nearest && count <= FEW_KEYS) return list_keys(key, known, count, path_of(path, where, key), err);
        return ft__fail_at(err, FT_E_KEY, path_of(path, where, key), 0, 0, "unknown key \"%.*s\"%s%s%s",
                           (int)ft__utf8_cut(key, 100), key, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                           nearest ? "\"?" : "");
    }
    return FT_OK;
}
