/* key_write.c: requests written by the table of keys.
 *
 * Flags of the command line, patches of advice and what studies and searches ask next all go through here, so that what
 * is written is what keys.c reads (tests/ladder sees to it).
 */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "request/keys.h"

/* -- one value --------------------------------------------------------------------------------- */

static json_t *number_of(const char *text)
{
    int64_t whole;
    double real;
    if (ft__whole_parse(text, &whole)) return json_integer(whole);
    return ft__number_parse(text, &real) ? json_real(real) : NULL;
}

static json_t *share_of(const char *text)
{
    double share;
    char number[32] = "";
    size_t length = strlen(text), percent = length && text[length - 1] == '%';
    if (length - percent < sizeof number) memcpy(number, text, length - percent);
    if (!ft__number_parse(number, &share)) return NULL;
    return json_real(percent ? share / 100 : share);
}

static json_t *dropped(json_t *list)
{
    json_decref(list);
    return NULL;
}

/* "core_attn,moe_act" as an array. */
static json_t *texts_of(const char *text)
{
    json_t *list = json_array();
    for (const char *at = text; list && at;) {
        size_t length = strcspn(at, ",");
        if (json_array_append_new(list, json_stringn(at, length)) != 0) return dropped(list);
        at = at[length] ? at + length + 1 : NULL;
    }
    return list;
}

/* An object or a list, typed as requests have them; anything else is a text, which its reader may refuse. */
static json_t *value_typed(const char *text)
{
    json_t *value = NULL;
    ft_error ignored;
    if ((*text == '{' || *text == '[') && ft__json_parse(text, strlen(text), "", &value, &ignored) == FT_OK)
        return value;
    return json_string(text);
}

json_t *ft__key_typed(ft_key_id id, const char *text)
{
    switch (ft__keys[id].type) {
    case FT_KEY_SWITCH: return json_boolean(text == NULL);
    case FT_KEY_WHOLE:
    case FT_KEY_REAL:
    case FT_KEY_WHOLES: return number_of(text);
    case FT_KEY_SHARE: return share_of(text);
    case FT_KEY_NAMES:
    case FT_KEY_TRIED_WORDS:
    case FT_KEY_TEXTS: return texts_of(text);
    case FT_KEY_NAMED:
    case FT_KEY_SECTION:
    case FT_KEY_ANY: return value_typed(text);
    case FT_KEY_WORD:
    case FT_KEY_TEXT:
    case FT_KEY_DTYPE:
    case FT_KEY_TRIED:
    case FT_KEY_PAIR:
    case FT_KEY_EXTENT:
    case FT_KEY_OBJECTS:
    case FT_KEY_GPU:
    case FT_KEY_GPUS:
    case FT_KEY_TYPE_COUNT: break;
    }
    return json_string(text);
}

/* -- its place --------------------------------------------------------------------------------- */

/* The object that holds a key: the request, or one inside it, made when it is first needed. */
static json_t *home_of(json_t *request, ft_key_id id)
{
    const char *name = ft__section_name(ft__keys[id].section);
    if (!*name) return request;
    json_t *inner = json_object_get(request, name);
    if (inner) return inner;
    return json_object_set_new(request, name, json_object()) == 0 ? json_object_get(request, name) : NULL;
}

bool ft__key_put(json_t *request, ft_key_id id, json_t *value)
{
    json_t *home = request && value ? home_of(request, id) : NULL;
    if (home) return ft__key_set(home, id, value);
    json_decref(value);
    return false;
}

bool ft__key_set(json_t *home, ft_key_id id, json_t *value)
{
    return json_object_set_new(home, ft__keys[id].key, value) == 0;
}

json_t *ft__key_get(const json_t *home, ft_key_id id) { return json_object_get(home, ft__keys[id].key); }

void ft__key_drop(json_t *home, ft_key_id id) { json_object_del(home, ft__keys[id].key); }

bool ft__key_add(json_t *request, ft_key_id id, json_t *value)
{
    json_t *home = request && value ? home_of(request, id) : NULL, *list;
    list = home ? json_object_get(home, ft__keys[id].key) : NULL;
    if (home && !list && json_object_set_new(home, ft__keys[id].key, json_array()) == 0)
        list = json_object_get(home, ft__keys[id].key);
    if (list) return json_array_append_new(list, value) == 0;
    json_decref(value);
    return false;
}
