/* keys.c: the table of request keys, and reading and writing by it.
 *
 * A value is read by its row alone: type, limits, words. What it means beside the others (a schedule that follows from
 * vpp, a capacity that bounds a skew) is said where the typed request is made: parallel.c, model.c, advice.c.
 */
#include "request/keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/collective.h"
#include "request/request.h"
#include "request/words.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define WORDS(list) ft__##list##_words, COUNT(ft__##list##_words)
#define NO_WORDS NULL, 0
#define DEPENDS NAN
#define LARGEST_SIZE (double)FT_LARGEST_SIZE
#define MOST_RANKS FT_MOST_RANKS

/* clang-format off */
const ft_key_row ft__keys[FT_KEY_COUNT] = {
#define FLAG(id, key, type, low, high, words, standard, flag, letter, argument, commands, help, docs) \
    [FT_KEY_ID_##id] = {key, HERE, FT_KEY_##type, low, high, words, standard, flag, help, docs},
#define PLAIN(id, key, type, low, high, words, standard, docs) \
    [FT_KEY_ID_##id] = {key, HERE, FT_KEY_##type, low, high, words, standard, NULL, NULL, docs},
#define HERE FT_SECTION_COMMON
    FT_COMMON_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_OPERATOR
    FT_OPERATOR_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_MODEL
    FT_MODEL_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_PARALLEL
    FT_PARALLEL_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_CLUSTER
    FT_CLUSTER_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_LOADER
    FT_LOADER_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_LORA
    FT_LORA_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_KERNEL
    FT_KERNEL_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_COLLECTIVE
    FT_COLLECTIVE_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_TRACE
    FT_TRACE_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_SERVE
    FT_SERVE_KEYS(FLAG, PLAIN)
#undef HERE
#undef PLAIN
#undef FLAG
};
/* clang-format on */

const char *ft__section_name(ft_section section)
{
    return section == FT_SECTION_PARALLEL  ? "parallel"
           : section == FT_SECTION_CLUSTER ? "cluster"
           : section == FT_SECTION_LOADER  ? "loader"
           : section == FT_SECTION_LORA    ? "lora"
                                           : "";
}

ft_key_id ft__key_find(ft_section section, const char *key)
{
    for (int i = 0; i < FT_KEY_COUNT; i++)
        if (ft__keys[i].section == section && !strcmp(ft__keys[i].key, key)) return (ft_key_id)i;
    return FT_KEY_COUNT;
}

const char *ft__key_standard(const ft_key_row *key, char room[32])
{
    if (isnan(key->standard)) return "";
    if (key->type == FT_KEY_WORD) return key->words[(int)key->standard];
    if (key->type == FT_KEY_DTYPE) return ft_dtype_name((ft_dtype)key->standard);
    if (key->type == FT_KEY_SWITCH) return key->standard > 0 ? "true" : "false";
    snprintf(room, 32, "%g", key->standard);
    return room;
}

ft_status ft__keys_known(const json_t *object, const ft_section *sections, size_t count, ft_error *err)
{
    const char *known[FT_KEY_COUNT];
    size_t known_count = 0;
    for (size_t s = 0; s < count; s++)
        for (int i = 0; i < FT_KEY_COUNT; i++)
            if (ft__keys[i].section == sections[s]) known[known_count++] = ft__keys[i].key;
    return ft__json_known_keys(object, known, known_count, ft__section_name(sections[0]), err);
}

/* -- reading ----------------------------------------------------------------------------------- */

void ft__said_init(ft_said *said)
{
    for (int i = 0; i < FT_KEY_COUNT; i++) {
        const ft_key_row *k = &ft__keys[i];
        bool open = isnan(k->standard);
        said->at[i] = (ft_said_value){.real = open ? 0 : k->standard, .whole = open ? 0 : (int64_t)k->standard};
        if (open && k->type == FT_KEY_WORD) said->at[i].whole = -1;
    }
}

static ft_status read_names(const json_t *object, const ft_key_row *k, ft_said_value *out, ft_error *err)
{
    const json_t *names = json_object_get(object, k->key), *name;
    size_t i;
    if (!json_is_array(names) || !json_array_size(names))
        return ft__fail_at(err, FT_E_TYPE, k->key, 0, 0, "\"%s\" must be an array of names: [\"%s\", \"%s\"]", k->key,
                           k->words[1], k->words[2]);
    json_array_foreach (names, i, name) {
        if (!json_is_string(name))
            return ft__fail_at(err, FT_E_TYPE, k->key, 0, 0,
                               "\"%s\" must be an array of names; element %zu is not a string", k->key, i + 1);
        int word = -1;
        FT_TRY(ft__request_word_said(json_string_value(name), k->key, k->key, k->words, k->word_count, &word, err));
        out->whole |= (int64_t)1 << word;
    }
    return FT_OK;
}

static ft_status read_value(const json_t *object, const ft_key_row *k, ft_said_value *out, ft_error *err)
{
    const char *where = ft__section_name(k->section);
    int word = -1;
    bool on = false;
    out->given = true;
    switch (k->type) {
    case FT_KEY_WHOLE:
        return ft__json_whole(object, k->key, FT_OPTIONAL, (int64_t)k->low, (int64_t)k->high, &out->whole, where, err);
    case FT_KEY_REAL: return ft__json_number(object, k->key, FT_OPTIONAL, k->low, k->high, &out->real, where, err);
    case FT_KEY_SWITCH:
        FT_TRY(ft__json_bool(object, k->key, FT_OPTIONAL, &on, where, err));
        out->whole = on;
        return FT_OK;
    case FT_KEY_WORD:
        FT_TRY(ft__request_word_in(object, where, k->key, k->words, k->word_count, &word, err));
        out->whole = word;
        return FT_OK;
    case FT_KEY_TEXT: return ft__json_string(object, k->key, FT_OPTIONAL, &out->text, where, err);
    case FT_KEY_NAMES: return read_names(object, k, out, err);
    case FT_KEY_DTYPE:
    case FT_KEY_GPU:
    case FT_KEY_SECTION:
    case FT_KEY_ANY: return FT_OK;
    }
    return ft__fail(err, FT_E_BUG, "key \"%s\" has no type", k->key);
}

ft_status ft__said_read(const json_t *object, ft_section section, ft_said *said, ft_error *err)
{
    for (int i = 0; i < FT_KEY_COUNT; i++)
        if (ft__keys[i].section == section && json_object_get(object, ft__keys[i].key))
            FT_TRY(read_value(object, &ft__keys[i], &said->at[i], err));
    return FT_OK;
}

/* -- writing ----------------------------------------------------------------------------------- */

static json_t *names_of(const ft_key_row *k, int64_t bits)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < k->word_count; i++)
        if (bits >> i & 1 && json_array_append_new(list, json_string(k->words[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *value_of(const ft_key_row *k, const ft_said_value *v)
{
    switch (k->type) {
    case FT_KEY_WHOLE: return json_integer(v->whole);
    case FT_KEY_REAL: return json_real(v->real);
    case FT_KEY_SWITCH: return json_boolean(v->whole != 0);
    case FT_KEY_WORD: return json_string(k->words[v->whole]);
    case FT_KEY_TEXT: return json_string(v->text);
    case FT_KEY_NAMES: return names_of(k, v->whole);
    case FT_KEY_DTYPE:
    case FT_KEY_GPU:
    case FT_KEY_SECTION:
    case FT_KEY_ANY: break;
    }
    return NULL;
}

json_t *ft__said_write(const ft_said *said, ft_section section)
{
    json_t *object = json_object();
    for (int i = 0; object && i < FT_KEY_COUNT; i++) {
        const ft_key_row *k = &ft__keys[i];
        if (k->section != section || !said->at[i].given || k->type >= FT_KEY_GPU || k->type == FT_KEY_DTYPE) continue;
        if (json_object_set_new(object, k->key, value_of(k, &said->at[i])) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}
