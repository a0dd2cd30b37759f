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
#define HERE FT_SECTION_LENGTHS
    FT_LENGTHS_KEYS(FLAG, PLAIN)
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
#define HERE FT_SECTION_SLO
    FT_SLO_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_SPECULATIVE
    FT_SPECULATIVE_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_DISAGGREGATED
    FT_DISAGGREGATED_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_SIDE
    FT_SIDE_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_INFER
    FT_INFER_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_LARGEST
    FT_LARGEST_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_SCALE
    FT_SCALE_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_SWEEP
    FT_SWEEP_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_COMPARE
    FT_COMPARE_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_MODELS
    FT_MODELS_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_GPUS
    FT_GPUS_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_PLAN
    FT_PLAN_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_SEARCH
    FT_SEARCH_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_CONSTRAINTS
    FT_CONSTRAINTS_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_CHOOSE
    FT_CHOOSE_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_FAILURES
    FT_FAILURES_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_DRAW
    FT_DRAW_KEYS(FLAG, PLAIN)
#undef HERE
#define HERE FT_SECTION_PICTURE
    FT_PICTURE_KEYS(FLAG, PLAIN)
#undef HERE
#undef PLAIN
#undef FLAG
};
/* clang-format on */

const char *ft__section_name(ft_section section)
{
    static const char *const inside[FT_SECTION_COUNT] = {
#define SECTION(name, list, title, object) [FT_SECTION_##name] = (object),
        FT_SECTION_LIST(SECTION)
#undef SECTION
    };
    return inside[section];
}

const char *ft__section_title(ft_section section)
{
    static const char *const titles[FT_SECTION_COUNT] = {
#define SECTION(name, list, title, object) [FT_SECTION_##name] = (title),
        FT_SECTION_LIST(SECTION)
#undef SECTION
    };
    return titles[section];
}

const char *ft__key_type_name(ft_key_type type)
{
    static const char *const names[FT_KEY_TYPE_COUNT] = {
        [FT_KEY_WHOLE] = "whole",   [FT_KEY_REAL] = "real",       [FT_KEY_SHARE] = "share",
        [FT_KEY_SWITCH] = "switch", [FT_KEY_WORD] = "word",       [FT_KEY_NAMES] = "names",
        [FT_KEY_TEXT] = "text",     [FT_KEY_DTYPE] = "dtype",     [FT_KEY_WHOLES] = "wholes",
        [FT_KEY_TRIED] = "tried",   [FT_KEY_PAIR] = "pair",       [FT_KEY_TRIED_WORDS] = "tried_words",
        [FT_KEY_TEXTS] = "texts",   [FT_KEY_OBJECTS] = "objects", [FT_KEY_GPU] = "gpu",
        [FT_KEY_GPUS] = "gpus",     [FT_KEY_NAMED] = "named",     [FT_KEY_SECTION] = "section",
        [FT_KEY_ANY] = "any",       [FT_KEY_EXTENT] = "extent",
    };
    return names[type];
}

ft_key_id ft__key_find(ft_section section, const char *key)
{
    for (int i = 0; i < FT_KEY_COUNT; i++)
        if (ft__keys[i].section == section && ft__keys[i].key[0] == key[0] && !strcmp(ft__keys[i].key, key))
            return (ft_key_id)i;
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

ft_status ft__keys_known_at(const json_t *object, const ft_section *sections, size_t count, const char *where,
                            ft_error *err)
{
    const char *known[FT_KEY_COUNT];
    size_t known_count = 0;
    for (size_t s = 0; s < count; s++)
        for (int i = 0; i < FT_KEY_COUNT; i++)
            if (ft__keys[i].section == sections[s]) known[known_count++] = ft__keys[i].key;
    return ft__json_known_keys(object, known, known_count, where, err);
}

ft_status ft__keys_known(const json_t *object, const ft_section *sections, size_t count, ft_error *err)
{
    return ft__keys_known_at(object, sections, count, ft__section_name(sections[0]), err);
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

static ft_status read_value(const json_t *object, const char *where, const ft_key_row *k, ft_said_value *out,
                            ft_error *err)
{
    int word = -1;
    bool on = false;
    out->given = true;
    out->json = json_object_get(object, k->key);
    switch (k->type) {
    case FT_KEY_WHOLE:
        if (k->word_count && json_is_string(out->json)) {
            FT_TRY(ft__request_word_in(object, where, k->key, k->words, k->word_count, &word, err));
            out->whole = -1 - word;
            return FT_OK;
        }
        return ft__json_whole(object, k->key, FT_OPTIONAL, (int64_t)k->low, (int64_t)k->high, &out->whole, where, err);
    case FT_KEY_REAL:
    case FT_KEY_SHARE: return ft__json_number(object, k->key, FT_OPTIONAL, k->low, k->high, &out->real, where, err);
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
    case FT_KEY_WHOLES:
    case FT_KEY_TRIED:
    case FT_KEY_TRIED_WORDS:
    case FT_KEY_PAIR:
    case FT_KEY_EXTENT:
    case FT_KEY_TEXTS:
    case FT_KEY_OBJECTS:
    case FT_KEY_GPU:
    case FT_KEY_GPUS:
    case FT_KEY_NAMED:
    case FT_KEY_SECTION:
    case FT_KEY_ANY: return FT_OK;
    case FT_KEY_TYPE_COUNT: break;
    }
    return ft__fail(err, FT_E_BUG, "key \"%s\" has no type", k->key);
}

ft_status ft__said_read_at(const json_t *object, ft_section section, const char *where, ft_said *said, ft_error *err)
{
    for (int i = 0; i < FT_KEY_COUNT; i++)
        if (ft__keys[i].section == section && json_object_get(object, ft__keys[i].key))
            FT_TRY(read_value(object, where, &ft__keys[i], &said->at[i], err));
    return FT_OK;
}

ft_status ft__said_read(const json_t *object, ft_section section, ft_said *said, ft_error *err)
{
    return ft__said_read_at(object, section, ft__section_name(section), said, err);
}

ft_status ft__said_inside(const json_t *object, ft_section section, const char *form, ft_said *said, ft_error *err)
{
    const char *name = ft__section_name(section);
    const json_t *inner = json_object_get(object, name);
    if (!inner) return FT_OK;
    if (!json_is_object(inner))
        return ft__fail_at(err, FT_E_TYPE, name, 0, 0, "\"%s\" must be an object: %s", name, form);
    FT_TRY(ft__keys_known(inner, &section, 1, err));
    return ft__said_read(inner, section, said, err);
}

/* -- lists ------------------------------------------------------------------------------------- */

static bool is_auto(const json_t *value) { return json_is_string(value) && !strcmp(json_string_value(value), "auto"); }

static ft_status read_whole(const json_t *value, const ft_key_row *k, const char *where, int64_t *out, ft_error *err)
{
    json_t *one = json_pack("{sO}", k->key, value);
    if (!one) return ft__no_memory(err);
    ft_status status = ft__json_whole(one, k->key, FT_REQUIRED, (int64_t)k->low, (int64_t)k->high, out, "", err);
    if (status != FT_OK && err) snprintf(err->where, sizeof err->where, "%s", where);
    json_decref(one);
    return status;
}

ft_status ft__wholes_of(const ft_said *said, ft_key_id id, const char *where, int64_t *out, size_t most, size_t *count,
                        ft_error *err)
{
    const ft_key_row *k = &ft__keys[id];
    const json_t *value = said->at[id].json;
    bool tried = k->type == FT_KEY_TRIED, list = json_is_array(value);
    *count = 0;
    if (!value || (tried && is_auto(value))) return FT_OK;
    if (tried && json_is_string(value))
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "\"%s\" must be \"auto\", a number or a list of numbers",
                           k->key);
    size_t said_count = list ? json_array_size(value) : 1;
    if (said_count < 1 || said_count > most)
        return ft__fail_at(err, FT_E_RANGE, where, 0, 0, "\"%s\" must be a number or a list of 1 to %zu, got %zu",
                           k->key, most, said_count);
    for (; *count < said_count; ++*count)
        FT_TRY(read_whole(list ? json_array_get(value, *count) : value, k, where, &out[*count], err));
    return FT_OK;
}

ft_status ft__tried_words_of(const ft_said *said, ft_key_id id, const char *where, unsigned *bits, ft_error *err)
{
    const ft_key_row *k = &ft__keys[id];
    const json_t *value = said->at[id].json;
    size_t count = json_is_array(value) ? json_array_size(value) : value ? 1 : 0;
    int word = 0;
    *bits = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_string(one))
            return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "\"%s\" must be \"auto\", a word or a list of words",
                               k->key);
        if (is_auto(one)) continue;
        FT_TRY(ft__request_word_said(json_string_value(one), where, k->key, k->words, k->word_count, &word, err));
        *bits |= 1u << word;
    }
    return FT_OK;
}
