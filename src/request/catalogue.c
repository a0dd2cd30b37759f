/* catalogue.c: reading requests for the catalogues of GPUs and models. */
#include "request/catalogue.h"

#include "base/text.h"
#include "device/gpu.h"
#include "request/keys.h"
#include "request/tasks.h"
#include "request/words.h"

static ft_status unknown(const char *key, const char *word, const char *const *names, size_t count, ft_error *err)
{
    const char *nearest = ft__nearest(word, names, count);
    if (nearest)
        return ft__fail_at(err, FT_E_NAME, key, 0, 0, "unknown %s \"%.60s\"; did you mean \"%s\"?", key, word, nearest);
    return ft__fail_at(err, FT_E_NAME, key, 0, 0, "unknown %s \"%.60s\"", key, word);
}

static ft_status read_dtype(const json_t *object, int *out, ft_error *err)
{
    const char *word = NULL, *names[FT_DTYPE_COUNT];
    ft_dtype dtype;
    FT_TRY(ft__json_string(object, FT_KEY(HAS_DTYPE), FT_OPTIONAL, &word, "", err));
    if (!word) return FT_OK;
    if (ft_dtype_parse(word, &dtype)) {
        *out = (int)dtype;
        return FT_OK;
    }
    for (int i = 0; i < FT_DTYPE_COUNT; i++) names[i] = ft_dtype_name((ft_dtype)i);
    return unknown("dtype", word, names, FT_DTYPE_COUNT, err);
}

static ft_status check_names(const json_t *names, ft_error *err)
{
    const json_t *list = json_is_array(names) ? names : NULL;
    size_t count = list ? json_array_size(list) : 1;
    for (size_t i = 0; i < count; i++) {
        const json_t *name = list ? json_array_get(list, i) : names;
        if (!json_is_string(name) && !json_is_object(name))
            return ft__fail_at(err, FT_E_TYPE, "name", 0, 0,
                               "\"name\" must be a GPU's name, a spec file, a spec object, or a list of them");
    }
    return FT_OK;
}

ft_status ft__gpus_request_read(const json_t *object, ft_gpus_request *out, ft_error *err)
{
    ft_said said;
    *out = (ft_gpus_request){.dtype = -1};
    FT_TRY(ft__task_keys_known(object, FT_ASK_GPUS, err));
    ft__said_init(&said);
    FT_TRY(ft__said_read(object, FT_SECTION_GPUS, &said, err));
    if (ft__given(&said, FT_KEY_ID_VENDOR)) out->vendor = ft__vendor_words[ft__word_of(&said, FT_KEY_ID_VENDOR)];
    out->min_memory_gib = ft__real_of(&said, FT_KEY_ID_MIN_MEMORY);
    FT_TRY(read_dtype(object, &out->dtype, err));
    out->generation = said.at[FT_KEY_ID_GENERATION].text;
    out->names = said.at[FT_KEY_ID_GPUS_NAME].json;
    return out->names ? check_names(out->names, err) : FT_OK;
}

ft_status ft__models_request_read(const json_t *object, ft_models_request *out, ft_error *err)
{
    ft_said said;
    *out = (ft_models_request){.name = ""};
    FT_TRY(ft__task_keys_known(object, FT_ASK_MODELS, err));
    ft__said_init(&said);
    FT_TRY(ft__said_read(object, FT_SECTION_MODELS, &said, err));
    if (ft__given(&said, FT_KEY_ID_MODELS_NAME)) out->name = said.at[FT_KEY_ID_MODELS_NAME].text;
    out->read_as = said.at[FT_KEY_ID_MODELS_READ_AS].text;
    out->types = ft__switch_of(&said, FT_KEY_ID_TYPES);
    return FT_OK;
}
