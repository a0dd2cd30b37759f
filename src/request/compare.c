/* compare.c: reading a request to compare answers. */
#include "request/compare.h"

#include <string.h>

#include "request/keys.h"
#include "request/tasks.h"

static ft_status read_list(const json_t *object, const char *key, bool objects, bool texts, const json_t **out,
                           ft_error *err)
{
    const json_t *list = json_object_get(object, key), *each;
    size_t i;
    if (!list) return FT_OK;
    const char *what = objects && texts ? "objects and files" : objects ? "requests" : "texts";
    if (!json_is_array(list)) return ft__fail_at(err, FT_E_TYPE, key, 0, 0, "\"%s\" must be a list of %s", key, what);
    json_array_foreach (list, i, each)
        if (!(objects && json_is_object(each)) && !(texts && json_is_string(each)))
            return ft__fail_at(err, FT_E_TYPE, key, 0, 0, "\"%s\" must be a list of %s; element %zu is not one", key,
                               what, i + 1);
    *out = list;
    return FT_OK;
}

/* One answer comes of one request: lists of them are not compared with each other. */
static ft_status check_tasks(const json_t *list, const char *key, ft_error *err)
{
    static const char *const several[] = {"compare", "sweep", "models", "gpus", "draw"};
    const json_t *each;
    size_t i;
    json_array_foreach (list, i, each) {
        const char *task = json_string_value(ft__key_get(each, FT_KEY_ID_TASK));
        bool request = task && !json_object_get(each, "ok");
        for (size_t k = 0; request && k < sizeof several / sizeof *several; k++)
            if (!strcmp(task, several[k]))
                return ft__fail_at(err, FT_E_UNSUPPORTED, key, 0, 0,
                                   "a request of \"%s\" cannot be compared; those of train, forward, prefill, decode, "
                                   "memory, kernel and infer can",
                                   task);
    }
    return FT_OK;
}

ft_status ft__compare_request_read(const json_t *object, ft_compare_request *out, ft_error *err)
{
    *out = (ft_compare_request){0};
    FT_TRY(ft__task_keys_known(object, FT_ASK_COMPARE, err));
    FT_TRY(read_list(object, "answers", true, true, &out->answers, err));
    FT_TRY(read_list(object, "requests", true, false, &out->requests, err));
    FT_TRY(read_list(object, "names", false, true, &out->names, err));
    FT_TRY(check_tasks(out->answers, "answers", err));
    FT_TRY(check_tasks(out->requests, "requests", err));
    if (out->answers || out->requests) return FT_OK;
    return ft__fail_at(err, FT_E_MISSING, "answers", 0, 0,
                       "\"answers\" is missing: a list of answers or of files that hold some; or \"requests\"");
}
