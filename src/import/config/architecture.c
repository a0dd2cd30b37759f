/* architecture.c: an architecture's file and those it is like, as presets and keys. */
#include "import/config/architecture.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "import/embedded.h"

size_t ft__architecture_count(void) { return ft__embedded_architecture_type_count; }

const char *ft__architecture_at(size_t index) { return ft__embedded_architecture_types[index].name; }

const char *ft__architecture_text(const char *model_type, const char **name)
{
    size_t low = 0, high = ft__embedded_architecture_type_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(model_type, ft__embedded_architecture_types[middle].name);
        if (order == 0) {
            if (name) *name = ft__embedded_architecture_types[middle].name;
            return ft__embedded_architectures[ft__embedded_architecture_types[middle].entry];
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* -- keys ----------------------------------------------------------------------------------------- */

static void forget(ft_architecture *a, size_t offset)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->key_count; i++)
        if (a->keys[i].offset != offset) a->keys[kept++] = a->keys[i];
    a->key_count = kept;
}

static ft_status remember(ft_architecture *a, const ft_config_key *key, const char *file, ft_error *err)
{
    if (a->key_count + 1 >= FT_MOST_KEYS)
        return ft__fail_at(err, FT_E_RANGE, file, 0, 0, "more than %d keys", FT_MOST_KEYS - 1);
    a->keys[a->key_count++] = *key;
    return FT_OK;
}

/* "hidden": "hidden_size", or a list of names of which the config has one; null: no key gives it any more. */
static ft_status read_key(ft_architecture *a, const char *name, const json_t *value, const char *file, ft_error *err)
{
    const ft_model_trait *trait = ft__model_trait_find(name);
    if (!trait) return ft__fail_at(err, FT_E_NAME, file, 0, 0, "\"keys\": no trait is called \"%s\"", name);
    if (trait->words)
        return ft__fail_at(err, FT_E_TYPE, file, 0, 0, "\"keys\": \"%s\" is a word: say it in \"when\"", name);
    forget(a, trait->offset);
    ft_config_key key = {.kind = trait->kind, .offset = trait->offset};
    if (json_is_null(value)) return FT_OK;
    if (json_is_string(value)) {
        key.name = json_string_value(value);
        return remember(a, &key, file, err);
    }
    size_t count = json_array_size(value);
    if (!count)
        return ft__fail_at(err, FT_E_TYPE, file, 0, 0, "\"keys\": \"%s\" must be a key or a list of keys", name);
    for (size_t i = count; i-- > 0;) { /* the first named wins, which is the one that is read last */
        key.name = json_string_value(json_array_get(value, i));
        if (!key.name)
            return ft__fail_at(err, FT_E_TYPE, file, 0, 0, "\"keys\": \"%s\" must hold the names of keys", name);
        FT_TRY(remember(a, &key, file, err));
    }
    return FT_OK;
}

/* -- documents ------------------------------------------------------------------------------------ */

static ft_status from_c(ft_architecture *a, const ft_config_type *type, const char *file, ft_error *err)
{
    a->type = *type;
    a->preset = *type->preset;
    for (size_t list = 0; list < sizeof type->keys / sizeof *type->keys; list++)
        for (const ft_config_key *key = type->keys[list]; key && key->name; key++) FT_TRY(remember(a, key, file, err));
    return FT_OK;
}

static ft_status parse(const char *what, const char *where, json_t **out, ft_error *err)
{
    const char *text = ft__architecture_text(what, NULL);
    if (text) return ft__json_parse(text, strlen(text), what, out, err);
    size_t length = strlen(what);
    if (length < 6 || strcmp(what + length - 5, ".json") != 0)
        return ft__fail_at(err, FT_E_NAME, where, 0, 0, "no architecture is called \"%.*s\"",
                           (int)ft__utf8_cut(what, 60), what);
    char *read;
    FT_TRY(ft__file_read(what, (size_t)1 << 20, &read, &length, err));
    ft_status status = ft__json_parse(read, length, what, out, err);
    free(read);
    return status;
}

static ft_status open_one(ft_architecture *a, const char *what, const char *where, ft_error *err)
{
    json_t *document;
    const char *name;
    json_t *value;
    if (a->count == FT_MOST_LIKE)
        return ft__fail_at(err, FT_E_RANGE, where, 0, 0, "architectures are like each other more than %d deep",
                           FT_MOST_LIKE);
    FT_TRY(parse(what, where, &document, err));
    a->document[a->count++] = document;
    if (!json_is_object(document)) return ft__fail_at(err, FT_E_TYPE, what, 0, 0, "an architecture is an object");
    const char *like = json_string_value(json_object_get(document, "like"));
    const ft_config_type *type = like ? ft__config_built_in(like) : NULL;
    if (type)
        FT_TRY(from_c(a, type, what, err));
    else if (like)
        FT_TRY(open_one(a, like, what, err));
    json_object_foreach (json_object_get(document, "traits"), name, value) {
        const ft_model_trait *trait = ft__model_trait_find(name);
        if (!trait && !strcmp(name, "rotary_share") && json_is_number(value)) {
            a->type.rotary_share = json_number_value(value);
            continue;
        }
        if (!trait) return ft__fail_at(err, FT_E_NAME, what, 0, 0, "no trait is called \"%s\"", name);
        FT_TRY(ft__model_trait_set(trait, value, &a->preset, what, err));
    }
    json_object_foreach (json_object_get(document, "keys"), name, value) FT_TRY(read_key(a, name, value, what, err));
    if (json_is_null(json_object_get(document, "finish"))) a->type.finish = NULL;
    return FT_OK;
}

ft_status ft__architecture_open(const char *what, const char *where, ft_architecture *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    ft_status status = open_one(out, what, where, err);
    if (status != FT_OK) {
        ft__architecture_close(out);
        return status;
    }
    out->keys[out->key_count] = (ft_config_key)FT_KEY_END;
    out->type.preset = &out->preset;
    memset(out->type.keys, 0, sizeof out->type.keys);
    out->type.keys[0] = out->keys;
    return FT_OK;
}

void ft__architecture_close(ft_architecture *a)
{
    for (size_t i = 0; i < a->count; i++) json_decref(a->document[i]);
    a->count = 0;
}

/* A word of the nearest file that has it. */
static const char *said(const ft_architecture *of, const char *key)
{
    for (size_t i = 0; i < of->count; i++) {
        const char *word = json_string_value(json_object_get(of->document[i], key));
        if (word) return word;
    }
    return NULL;
}

const char *ft__architecture_wraps(const ft_architecture *of) { return said(of, "wraps"); }

const char *ft__architecture_text_type(const ft_architecture *of)
{
    const char *type = said(of, "text");
    return type ? type : "llama";
}

ft_status ft__architecture_outer(const ft_architecture *of, bool usual, const ft_reading *r, ft_arch *a)
{
    for (size_t i = of->count; i-- > 0;) {
        const json_t *tied = json_object_get(of->document[i], "tied");
        if (usual) FT_TRY(ft__architecture_set(r, json_object_get(of->document[i], "text_traits"), a));
        if (json_is_boolean(tied)) a->tied = json_is_true(tied);
    }
    return FT_OK;
}
