/* study.c: reading what requests of study/ share. */
#include "request/study.h"

#include <limits.h>
#include <string.h>

#include "base/text.h"

json_t *ft__study_copy(const json_t *object)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)object); /* Jansson counts references inside the values */
    if (json_object_size(copy) == json_object_size(object)) return copy;
    json_decref(copy);
    return NULL;
}

json_t *ft__study_base(const json_t *object, const char *const *own, size_t count)
{
    json_t *base = ft__study_copy(object);
    if (!base) return NULL;
    json_object_del(base, "id");
    for (size_t i = 0; i < count; i++) json_object_del(base, own[i]);
    return base;
}

ft_status ft__study_nearest(ft_status status, const char *const *own, size_t count, ft_error *err)
{
    if (status != FT_E_KEY || !err || strchr(err->where, '.')) return status;
    const char *nearest = ft__nearest(err->where, own, count);
    if (!nearest) return status;
    char key[sizeof err->where];
    strcpy(key, err->where);
    const char *said = strstr(err->message, "did you mean \"");
    if (said) { /* the base's own suggestion stands unless this one is nearer */
        said += strlen("did you mean \"");
        char other[64] = "";
        size_t length = strcspn(said, "\"");
        if (length < sizeof other) memcpy(other, said, length);
        if (ft__edits(key, strlen(key), other) <= ft__edits(key, strlen(key), nearest)) return status;
    }
    return ft__fail_at(err, FT_E_KEY, key, 0, 0, "unknown key \"%.*s\"; did you mean \"%s\"?",
                       (int)ft__utf8_cut(key, 100), key, nearest);
}

ft_status ft__study_wholes(const json_t *object, const char *key, int64_t low, int64_t high, int64_t *out, size_t most,
                           size_t *count, ft_error *err)
{
    const json_t *value = json_object_get(object, key), *each;
    size_t i;
    if (!value) return FT_OK;
    *count = 1;
    if (!json_is_array(value)) return ft__json_whole(object, key, FT_REQUIRED, low, high, out, "", err);
    *count = json_array_size(value);
    if (*count < 1 || *count > most)
        return ft__fail_at(err, FT_E_RANGE, key, 0, 0, "\"%s\" must be a number or a list of 1 to %zu, got %zu", key,
                           most, *count);
    json_array_foreach (value, i, each) {
        json_t *one = json_pack("{sO}", key, each);
        if (!one) return ft__fail(err, FT_E_MEMORY, "out of memory");
        ft_status status = ft__json_whole(one, key, FT_REQUIRED, low, high, &out[i], "", err);
        json_decref(one);
        FT_TRY(status);
    }
    return FT_OK;
}
