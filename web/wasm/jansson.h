/* jansson.h: the values that src/ keeps requests and configs in, where Jansson itself is not packaged (WebAssembly).
 *
 * The same names and the same rules of ownership as Jansson's, for the thirty functions that src/ calls and no more;
 * reading and writing text are ours everywhere (base/json_text.c, base/json_write.c). Objects keep the order in which
 * keys came, as Jansson's do. Two differences, neither of which src/ can see: strings are taken for UTF-8 without a look
 * (the reader has looked), and only one thread counts references. */
#ifndef FT_WEB_JANSSON_H
#define FT_WEB_JANSSON_H
#include <stdbool.h>
#include <stddef.h>

#define JANSSON_MAJOR_VERSION 2
#define JANSSON_MINOR_VERSION 14
#define JSON_INTEGER_FORMAT "lld"

typedef enum json_type {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_INTEGER,
    JSON_REAL,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
} json_type;

typedef struct json_t {
    json_type type;
    size_t refcount; /* (size_t)-1: true, false and null, of which there is one each */
} json_t;
typedef long long json_int_t;

#define json_typeof(json) ((json)->type)
#define json_is_object(json) ((json) && json_typeof(json) == JSON_OBJECT)
#define json_is_array(json) ((json) && json_typeof(json) == JSON_ARRAY)
#define json_is_string(json) ((json) && json_typeof(json) == JSON_STRING)
#define json_is_integer(json) ((json) && json_typeof(json) == JSON_INTEGER)
#define json_is_real(json) ((json) && json_typeof(json) == JSON_REAL)
#define json_is_number(json) (json_is_integer(json) || json_is_real(json))
#define json_is_true(json) ((json) && json_typeof(json) == JSON_TRUE)
#define json_is_false(json) ((json) && json_typeof(json) == JSON_FALSE)
#define json_is_boolean(json) (json_is_true(json) || json_is_false(json))
#define json_is_null(json) ((json) && json_typeof(json) == JSON_NULL)

/* NULL: out of memory. The caller owns what comes back. */
json_t *json_object(void);
json_t *json_array(void);
json_t *json_string(const char *value);
json_t *json_stringn_nocheck(const char *value, size_t length);
#define json_stringn json_stringn_nocheck
json_t *json_integer(json_int_t value);
json_t *json_real(double value); /* NULL too for what is no number */
json_t *json_true(void);
json_t *json_false(void);
json_t *json_null(void);
#define json_boolean(value) ((value) ? json_true() : json_false())

void json__delete(json_t *json);
static inline json_t *json_incref(json_t *json)
{
    if (json && json->refcount != (size_t)-1) json->refcount++;
    return json;
}
static inline void json_decref(json_t *json)
{
    if (json && json->refcount != (size_t)-1 && --json->refcount == 0) json__delete(json);
}

/* What is no object has no members; `_new` takes the value over, whether it succeeds or not. */
size_t json_object_size(const json_t *object);
json_t *json_object_get(const json_t *object, const char *key);
int json_object_set_new_nocheck(json_t *object, const char *key, json_t *value);
#define json_object_set_new json_object_set_new_nocheck
static inline int json_object_set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, json_incref(value));
}
int json_object_del(json_t *object, const char *key);
void *json_object_iter(json_t *object);
void *json_object_iter_next(json_t *object, void *at);
const char *json_object_iter_key(void *at);
json_t *json_object_iter_value(void *at);
void *json_object_key_to_iter(const char *key);
#define json_object_foreach(object, key, value)                                                                \
    for (key = json_object_iter_key(json_object_iter(object));                                                 \
         key && (value = json_object_iter_value(json_object_key_to_iter(key)));                                \
         key = json_object_iter_key(json_object_iter_next(object, json_object_key_to_iter(key))))

size_t json_array_size(const json_t *array);
json_t *json_array_get(const json_t *array, size_t index);
int json_array_append_new(json_t *array, json_t *value);
#define json_array_foreach(array, index, value)                                                                \
    for (index = 0; index < json_array_size(array) && (value = json_array_get(array, index)); index++)

const char *json_string_value(const json_t *string); /* NULL for what is none; ends in a zero */
size_t json_string_length(const json_t *string);
json_int_t json_integer_value(const json_t *integer); /* 0 for what is none */
double json_real_value(const json_t *real);
double json_number_value(const json_t *json);

int json_equal(const json_t *a, const json_t *b);
json_t *json_copy(json_t *json); /* the members are shared */
json_t *json_deep_copy(const json_t *json);
/* Objects of one level: {s:s, s:i, s:I, s:f, s:b, s:O}. */
json_t *json_pack(const char *format, ...);
#endif
