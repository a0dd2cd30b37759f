/* jansson.c: values that are counted, as jansson.h says.
 *
 * An object is a list of its members in the order they came, each found by a walk that compares a hash first: requests
 * and configs have a few dozen keys, where a walk costs less than a table. What is larger (a graph file's nodes) is an
 * array. A member holds its key in the same piece of memory, so that iterating goes from a key back to its member. */
#include "jansson.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct member {
    struct member *next;
    json_t *value;
    uint32_t hash;
    char key[];
} member;
typedef struct object {
    json_t json;
    size_t size;
    member *first, **end;
} object;
typedef struct array {
    json_t json;
    size_t size, room;
    json_t **at;
} array;
typedef struct string {
    json_t json;
    size_t length;
    char at[];
} string;
typedef struct number {
    json_t json;
    union {
        json_int_t whole;
        double real;
    } u;
} number;

static json_t *new_value(json_type type, size_t size)
{
    json_t *json = calloc(1, size);
    if (!json) return NULL;
    json->type = type;
    json->refcount = 1;
    return json;
}

json_t *json_object(void)
{
    object *o = (object *)new_value(JSON_OBJECT, sizeof *o);
    if (!o) return NULL;
    o->end = &o->first;
    return &o->json;
}

json_t *json_array(void) { return new_value(JSON_ARRAY, sizeof(array)); }

json_t *json_stringn_nocheck(const char *value, size_t length)
{
    if (!value || length > SIZE_MAX - sizeof(string) - 1) return NULL;
    string *s = (string *)new_value(JSON_STRING, sizeof *s + length + 1);
    if (!s) return NULL;
    s->length = length;
    memcpy(s->at, value, length);
    return &s->json;
}

json_t *json_string(const char *value) { return value ? json_stringn_nocheck(value, strlen(value)) : NULL; }

json_t *json_integer(json_int_t value)
{
    number *n = (number *)new_value(JSON_INTEGER, sizeof *n);
    if (!n) return NULL;
    n->u.whole = value;
    return &n->json;
}

json_t *json_real(double value)
{
    if (!isfinite(value)) return NULL;
    number *n = (number *)new_value(JSON_REAL, sizeof *n);
    if (!n) return NULL;
    n->u.real = value;
    return &n->json;
}

json_t *json_true(void)
{
    static json_t one = {JSON_TRUE, (size_t)-1};
    return &one;
}

json_t *json_false(void)
{
    static json_t one = {JSON_FALSE, (size_t)-1};
    return &one;
}

json_t *json_null(void)
{
    static json_t one = {JSON_NULL, (size_t)-1};
    return &one;
}

/* Depth is bounded by the reader's limit on nesting. */
void json__delete(json_t *json)
{
    if (json->type == JSON_OBJECT) {
        for (member *m = ((object *)json)->first, *next; m; m = next) {
            next = m->next;
            json_decref(m->value);
            free(m);
        }
    } else if (json->type == JSON_ARRAY) {
        array *a = (array *)json;
        for (size_t i = 0; i < a->size; i++) json_decref(a->at[i]);
        free(a->at);
    }
    free(json);
}

/* -- objects ----------------------------------------------------------------------------------- */

static uint32_t hash_of(const char *key)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *key; key++) hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash;
}

/* The link that leads to the member, or to the end where there is none. */
static member **find(object *o, const char *key, uint32_t hash)
{
    member **link = &o->first;
    while (*link && ((*link)->hash != hash || strcmp((*link)->key, key) != 0)) link = &(*link)->next;
    return link;
}

size_t json_object_size(const json_t *json) { return json_is_object(json) ? ((const object *)json)->size : 0; }

json_t *json_object_get(const json_t *json, const char *key)
{
    if (!key || !json_is_object(json)) return NULL;
    member *m = *find((object *)(uintptr_t)json, key, hash_of(key));
    return m ? m->value : NULL;
}

int json_object_set_new_nocheck(json_t *json, const char *key, json_t *value)
{
    if (!value) return -1;
    if (!key || !json_is_object(json) || json == value) {
        json_decref(value);
        return -1;
    }
    object *o = (object *)json;
    uint32_t hash = hash_of(key);
    member *m = *find(o, key, hash);
    if (m) {
        json_decref(m->value);
        m->value = value;
        return 0;
    }
    size_t room = strlen(key) + 1;
    m = malloc(sizeof *m + room);
    if (!m) {
        json_decref(value);
        return -1;
    }
    m->next = NULL;
    m->value = value;
    m->hash = hash;
    memcpy(m->key, key, room);
    *o->end = m;
    o->end = &m->next;
    o->size++;
    return 0;
}

int json_object_del(json_t *json, const char *key)
{
    if (!key || !json_is_object(json)) return -1;
    object *o = (object *)json;
    member **link = find(o, key, hash_of(key)), *m = *link;
    if (!m) return -1;
    *link = m->next;
    if (o->end == &m->next) o->end = link;
    o->size--;
    json_decref(m->value);
    free(m);
    return 0;
}

void *json_object_iter(json_t *json) { return json_is_object(json) ? ((object *)json)->first : NULL; }

void *json_object_iter_next(json_t *json, void *at) { return json_is_object(json) && at ? ((member *)at)->next : NULL; }

const char *json_object_iter_key(void *at) { return at ? ((member *)at)->key : NULL; }

json_t *json_object_iter_value(void *at) { return at ? ((member *)at)->value : NULL; }

void *json_object_key_to_iter(const char *key) { return key ? (void *)(uintptr_t)(key - offsetof(member, key)) : NULL; }

/* -- arrays and the rest ----------------------------------------------------------------------- */

size_t json_array_size(const json_t *json) { return json_is_array(json) ? ((const array *)json)->size : 0; }

json_t *json_array_get(const json_t *json, size_t index)
{
    return index < json_array_size(json) ? ((const array *)json)->at[index] : NULL;
}

int json_array_append_new(json_t *json, json_t *value)
{
    if (!value) return -1;
    array *a = (array *)json;
    if (!json_is_array(json) || json == value) {
        json_decref(value);
        return -1;
    }
    if (a->size == a->room) {
        size_t room = a->room ? 2 * a->room : 8;
        json_t **at = room <= SIZE_MAX / sizeof(json_t *) / 2 ? realloc(a->at, room * sizeof(json_t *)) : NULL;
        if (!at) {
            json_decref(value);
            return -1;
        }
        a->at = at;
        a->room = room;
    }
    a->at[a->size++] = value;
    return 0;
}

const char *json_string_value(const json_t *json) { return json_is_string(json) ? ((const string *)json)->at : NULL; }

size_t json_string_length(const json_t *json) { return json_is_string(json) ? ((const string *)json)->length : 0; }

json_int_t json_integer_value(const json_t *json)
{
    return json_is_integer(json) ? ((const number *)json)->u.whole : 0;
}

double json_real_value(const json_t *json) { return json_is_real(json) ? ((const number *)json)->u.real : 0; }

double json_number_value(const json_t *json)
{
    return json_is_integer(json) ? (double)json_integer_value(json) : json_real_value(json);
}

static int equal_objects(const json_t *a, const json_t *b)
{
    if (json_object_size(a) != json_object_size(b)) return 0;
    for (const member *m = ((const object *)a)->first; m; m = m->next)
        if (!json_equal(m->value, json_object_get(b, m->key))) return 0;
    return 1;
}

/* 1 and 1.0 are not equal, as with Jansson. */
int json_equal(const json_t *a, const json_t *b)
{
    if (!a || !b || a->type != b->type) return 0;
    if (a == b) return 1;
    switch (a->type) {
    case JSON_OBJECT: return equal_objects(a, b);
    case JSON_ARRAY:
        if (json_array_size(a) != json_array_size(b)) return 0;
        for (size_t i = 0; i < json_array_size(a); i++)
            if (!json_equal(json_array_get(a, i), json_array_get(b, i))) return 0;
        return 1;
    case JSON_STRING:
        return json_string_length(a) == json_string_length(b) &&
               memcmp(json_string_value(a), json_string_value(b), json_string_length(a)) == 0;
    case JSON_INTEGER: return json_integer_value(a) == json_integer_value(b);
    case JSON_REAL: return json_real_value(a) == json_real_value(b);
    default: return 1;
    }
}

/* Both copies: the members are shared, or copied as deep as they go. Numbers, strings and words never change after they
 * were made, so that a second one is never needed. */
static json_t *copy_of(json_t *json, bool deep)
{
    if (!json) return NULL;
    if (json->type != JSON_OBJECT && json->type != JSON_ARRAY) return json_incref(json);
    json_t *to = json->type == JSON_OBJECT ? json_object() : json_array();
    int failed = !to;
    if (json->type == JSON_OBJECT)
        for (member *m = ((object *)json)->first; m && !failed; m = m->next)
            failed = json_object_set_new(to, m->key, deep ? copy_of(m->value, true) : json_incref(m->value));
    else
        for (size_t i = 0; i < json_array_size(json) && !failed; i++) {
            json_t *one = json_array_get(json, i);
            failed = json_array_append_new(to, deep ? copy_of(one, true) : json_incref(one));
        }
    if (!failed) return to;
    json_decref(to);
    return NULL;
}

json_t *json_copy(json_t *json) { return copy_of(json, false); }

json_t *json_deep_copy(const json_t *json) { return copy_of((json_t *)(uintptr_t)json, true); }

json_t *json_pack(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    json_t *object = json_object();
    int failed = !object;
    const char *key = NULL; /* the next letter is a key's where this is NULL, otherwise its value's */
    for (; *format; format++) {
        if (strchr("{}:, ", *format)) continue;
        if (!key) {
            key = va_arg(list, const char *); /* always s */
            continue;
        }
        json_t *value = NULL;
        switch (*format) {
        case 's': value = json_string(va_arg(list, const char *)); break;
        case 'i': value = json_integer(va_arg(list, int)); break;
        case 'I': value = json_integer(va_arg(list, json_int_t)); break;
        case 'f': value = json_real(va_arg(list, double)); break;
        case 'b': value = json_boolean(va_arg(list, int)); break;
        case 'O': value = json_incref(va_arg(list, json_t *)); break;
        default: break;
        }
        failed |= json_object_set_new(object, key, value);
        key = NULL;
    }
    va_end(list);
    if (!failed) return object;
    json_decref(object);
    return NULL;
}
