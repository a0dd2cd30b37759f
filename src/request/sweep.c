/* sweep.c: reading a request for a sweep: which number, over what, of which request. */
#include "request/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/words.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* "over": {"batch": "1:64:x2"} is read as "batch=1:64:x2"; {"batch": [1, 3, 9]} as it stands. */
static ft_status read_over(const json_t *over, size_t most, ft_range *out, ft_error *err)
{
    json_t *readable = (json_t *)(uintptr_t)over; /* Jansson's iterators change nothing */
    void *only = json_object_iter(readable);
    if (!json_is_object(over) || json_object_size(over) != 1)
        return ft__fail_at(err, FT_E_TYPE, "over", 0, 0,
                           "\"over\" must be an object of one key: {\"batch\": \"1:64:x2\"}");
    const char *key = json_object_iter_key(only);
    const json_t *value = json_object_iter_value(only);
    char text[200];
    if (strlen(key) >= sizeof out->key) return ft__fail_at(err, FT_E_KEY, "over", 0, 0, "unknown key \"%.60s\"", key);
    if (json_is_string(value)) {
        snprintf(text, sizeof text, "%s=%.*s", key, FT_RANGE_TEXT, json_string_value(value)); /* longer is refused */
        return ft__range_read(text, most, out, err);
    }
    size_t count = json_array_size(value);
    if (count < 1 || count > most)
        return ft__fail_at(err, FT_E_TYPE, "over", 0, 0,
                           "\"%s\" must be a range, \"1:64:x2\", or a list of 1 to %zu numbers", key, most);
    out->x = calloc(count, sizeof *out->x);
    if (!out->x) return ft__no_memory(err);
    strcpy(out->key, key);
    out->whole = true;
    for (; out->count < count; out->count++) {
        const json_t *each = json_array_get(value, out->count);
        if (!json_is_number(each))
            return ft__fail_at(err, FT_E_TYPE, "over", 0, 0, "\"%s\" must list numbers; element %zu is not one", key,
                               out->count + 1);
        double x = json_number_value(each);
        if (fabs(x) > FT_RANGE_LARGEST)
            return ft__fail_at(err, FT_E_RANGE, "over", 0, 0, "lists numbers up to 2^53; element %zu of \"%s\" is %g",
                               out->count + 1, key, x);
        out->x[out->count] = x;
        out->whole = out->whole && floor(x) == x;
    }
    return FT_OK;
}

/* Degrees, the cluster and the loader have objects of their own in a request; kernels have none of them, and how many
 * GPUs there are is a key of the study where it lays its models out itself. */
static const char *section_of(const char *key, const char *task)
{
    static const ft_section sections[] = {FT_SECTION_PARALLEL, FT_SECTION_CLUSTER, FT_SECTION_LOADER};
    bool none = !strcmp(task, "kernel"), lays_out = !strcmp(task, "largest") || !strcmp(task, "scale");
    none = none || (lays_out && !strcmp(key, "gpus"));
    for (size_t i = 0; !none && i < COUNT(sections); i++)
        if (ft__key_find(sections[i], key) != FT_KEY_COUNT) return ft__section_name(sections[i]);
    return NULL;
}

ft_status ft__sweep_request_read(const json_t *object, ft_sweep_request *out, ft_error *err)
{
    ft_said said;
    *out = (ft_sweep_request){0};
    FT_TRY(ft__study_read(object, FT_ASK_SWEEP, &out->base, &said, err));
    const char *task = ft__swept_words[ft__word_of(&said, FT_KEY_ID_SWEEP_OF)];
    bool kernel = !strcmp(task, "kernel");
    size_t most = kernel ? FT_SWEEP_KERNELS : FT_SWEEP_POINTS;
    const json_t *over = said.at[FT_KEY_ID_SWEEP_OVER].json;
    const char *text = said.at[FT_KEY_ID_SWEEP_RANGE].text;
    if (!text == !over)
        return ft__fail_at(
            err, FT_E_MISSING, "sweep", 0, 0,
            "one of \"sweep\", \"batch=1:64:x2\", and \"over\", {\"batch\": \"1:64:x2\"}, says what to sweep");
    ft_status status = over ? read_over(over, most, &out->range, err) : ft__range_read(text, most, &out->range, err);
    if (status == FT_E_FORMAT || (status == FT_E_RANGE && err)) { /* said without a subject */
        ft_error told = *err;
        ft__fail_at(err, status, over ? "over" : "sweep", 0, 0, "\"%s\" %s", over ? "over" : "sweep", told.message);
    }
    FT_TRY(status);
    out->section = section_of(out->range.key, task);
    out->gpus = said.at[FT_KEY_ID_SWEEP_GPU].json;
    if (json_is_array(out->gpus) && !json_array_size(out->gpus)) out->gpus = NULL;
    if (!out->gpus)
        return ft__fail_at(err, FT_E_MISSING, "gpu", 0, 0,
                           "\"gpu\" is missing: a name (h100_sxm), a file or a spec object, or a list of them");
    return ft__key_set(out->base, FT_KEY_ID_TASK, json_string(task)) ? FT_OK : ft__no_memory(err);
}

void ft__sweep_request_free(ft_sweep_request *r)
{
    json_decref(r->base);
    r->base = NULL;
    ft__range_free(&r->range);
}
