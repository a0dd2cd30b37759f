/* architecture.c: an architecture's file and those it is like, as presets and keys. */
#include "import/config/architecture.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "import/config/finish.h"
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

/* "hidden_size", or {"key": "n_embd", "or": "hidden_size", "least": 1}: "or" is another name under which the library
 * keeps the same value; "least" 1 refuses 0 and null where others mean "none" by it. */
static ft_status read_name(const json_t *value, const ft_model_trait *trait, ft_config_key *key, const char *file,
                           ft_error *err)
{
    const json_t *least = json_object_get(value, "least");
    *key = (ft_config_key){.kind = trait->kind, .offset = trait->offset};
    key->name = json_is_object(value) ? json_string_value(json_object_get(value, "key")) : json_string_value(value);
    key->alias = json_string_value(json_object_get(value, "or"));
    if (!key->name)
        return ft__fail_at(err, FT_E_TYPE, file, 0, 0,
                           "\"keys\": \"%s\" must be a key, {\"key\": ...} or a list of them", trait->name);
    if (least && ((trait->kind != FT_KEY_MAYBE && trait->kind != FT_KEY_FOLLOWS) || json_integer_value(least) != 1))
        return ft__fail_at(err, FT_E_RANGE, file, 0, 0, "\"keys\": \"least\" of \"%s\" can only be 1, of a size",
                           trait->name);
    if (least) key->kind = FT_KEY_SIZE;
    return FT_OK;
}

/* One of those, or a list of which the config has one; null: no key gives it any more. */
static ft_status read_key(ft_architecture *a, const char *name, const json_t *value, const char *file, ft_error *err)
{
    const ft_model_trait *trait = ft__model_trait_find(name);
    ft_config_key key;
    if (!trait) return ft__fail_at(err, FT_E_NAME, file, 0, 0, "\"keys\": no trait is called \"%s\"", name);
    if (trait->words || trait->kind == FT_KEY_SIZES)
        return ft__fail_at(err, FT_E_TYPE, file, 0, 0, "\"keys\": \"%s\" is a word or a list: say it in \"when\"",
                           name);
    forget(a, trait->offset);
    if (json_is_null(value)) return FT_OK;
    if (!json_is_array(value) || !json_array_size(value)) {
        FT_TRY(read_name(value, trait, &key, file, err));
        return remember(a, &key, file, err);
    }
    for (size_t i = json_array_size(value); i-- > 0;) { /* the first named wins, which is the one that is read last */
        FT_TRY(read_name(json_array_get(value, i), trait, &key, file, err));
        FT_TRY(remember(a, &key, file, err));
    }
    return FT_OK;
}

/* -- documents ------------------------------------------------------------------------------------ */

static ft_status parse(const char *what, const char *where, json_t **out, ft_error *err)
{
    const char *text = ft__architecture_text(what, NULL);
    if (text) return ft__json_parse(text, strlen(text), what, out, err);
    size_t length = strlen(what);
    if (length < 6 || strcmp(what + length - 5, ".json") != 0) {
        const char *all[512];
        size_t count = ft__architecture_count() < 512 ? ft__architecture_count() : 512;
        for (size_t i = 0; i < count; i++) all[i] = ft__architecture_at(i);
        const char *nearest = ft__nearest(what, all, count);
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "\"like\": no architecture is called \"%.*s\"%s%s",
                           (int)ft__utf8_cut(what, 60), what, nearest ? "; the nearest is " : "",
                           nearest ? nearest : "");
    }
    char *read;
    FT_TRY(ft__file_read(what, (size_t)1 << 20, &read, &length, err));
    ft_status status = ft__json_parse(read, length, what, out, err);
    free(read);
    return status;
}

/* The name of a function; null: without that of the type it is like. */
static ft_status read_finish(ft_architecture *a, const json_t *finish, const char *file, ft_error *err)
{
    if (!finish) return FT_OK;
    a->type.finish = NULL;
    if (json_is_null(finish)) return FT_OK;
    const char *name = json_string_value(finish), *nearest = NULL;
    if (name) a->type.finish = ft__finish_find(name, &nearest);
    if (a->type.finish) return FT_OK;
    return ft__fail_at(err, FT_E_TYPE, file, 0, 0, "\"finish\" must be the name of a function; the nearest is \"%s\"",
                       nearest ? nearest : "falcon");
}

/* What a file may say at its top, and what each must be. */
static ft_status check_members(const json_t *document, const char *file, ft_error *err)
{
    static const struct {
        const char *key;
        json_type type;
        const char *kind; /* NULL: its reader says */
    } members[] = {
        {"types", JSON_ARRAY, "a list"},    {"like", JSON_STRING, "a name"},
        {"source", JSON_STRING, "a text"},  {"date", JSON_STRING, "a text"},
        {"notes", JSON_STRING, "a text"},   {"traits", JSON_OBJECT, "an object"},
        {"keys", JSON_OBJECT, "an object"}, {"wraps", JSON_STRING, "a name"},
        {"text", JSON_STRING, "a name"},    {"text_traits", JSON_OBJECT, "an object"},
        {"finish", JSON_NULL, NULL},        {"vision", JSON_NULL, NULL},
        {"tied", JSON_NULL, NULL},          {"layers", JSON_NULL, NULL},
        {"when", JSON_NULL, NULL},          {"words", JSON_NULL, NULL},
        {"mtp", JSON_NULL, NULL},
    };
    enum { COUNT = sizeof members / sizeof *members };
    const char *known[COUNT];
    for (size_t i = 0; i < COUNT; i++) known[i] = members[i].key;
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)document, key, value) { /* Jansson's iterators change nothing */
        size_t at = 0;
        while (at < COUNT && strcmp(key, members[at].key) != 0) at++;
        if (at == COUNT) {
            const char *nearest = ft__nearest(key, known, COUNT);
            return ft__fail_at(err, FT_E_KEY, file, 0, 0, "unknown key \"%.*s\" of an architecture%s%s%s",
                               (int)ft__utf8_cut(key, 60), key, nearest ? "; did you mean \"" : "",
                               nearest ? nearest : "", nearest ? "\"?" : "");
        }
        if (members[at].kind && json_typeof(value) != members[at].type)
            return ft__fail_at(err, FT_E_TYPE, file, 0, 0, "\"%s\" must be %s", key, members[at].kind);
    }
    return FT_OK;
}

static ft_status open_one(ft_architecture *a, const char *what, const char *where, ft_error *err)
{
    json_t *document;
    const char *name;
    json_t *value;
    if (a->count == FT_MOST_LIKE)
        return ft__fail_at(err, FT_E_RANGE, where, 0, 0,
                           "architectures are \"like\" each other more than %d levels deep", FT_MOST_LIKE);
    FT_TRY(parse(what, where, &document, err));
    a->document[a->count++] = document;
    if (!json_is_object(document)) return ft__fail_at(err, FT_E_TYPE, what, 0, 0, "an architecture is an object");
    FT_TRY(check_members(document, what, err));
    const char *like = json_string_value(json_object_get(document, "like"));
    if (like) FT_TRY(open_one(a, like, what, err));
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
    return read_finish(a, json_object_get(document, "finish"), what, err);
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
    out->type.keys = out->keys;
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

bool ft__architecture_adds(const ft_architecture *of)
{
    for (size_t i = 0; i < of->count; i++)
        if (json_object_get(of->document[i], "vision") || json_object_get(of->document[i], "text_traits")) return true;
    return of->type.finish != NULL;
}

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
