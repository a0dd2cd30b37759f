/* rules.c: what an architecture's file says beyond defaults and keys: "when" a key has a value, traits change. What
 * sees is read by vision.c, what each layer is by layers.c. */
#include <string.h>

#include "base/json.h"
#include "import/config/architecture.h"

/* -- values --------------------------------------------------------------------------------------- */

/* A key of the config, or of an object inside it: "linear_attn_config.num_heads". */
const json_t *ft__config_value(const json_t *config, const char *path)
{
    if (!path) return NULL;
    for (const char *dot; config && (dot = strchr(path, '.')); path = dot + 1) {
        char part[64];
        if ((size_t)(dot - path) >= sizeof part) return NULL;
        memcpy(part, path, (size_t)(dot - path));
        part[dot - path] = '\0';
        config = json_object_get(config, part);
    }
    return config ? json_object_get(config, path) : NULL;
}

/* "$key" means the config's value, anything else itself. NULL: the config has none. */
static const json_t *meant(const json_t *config, const json_t *value)
{
    const char *word = json_string_value(value);
    if (!word || *word != '$') return value;
    const json_t *found = ft__config_value(config, word + 1);
    return json_is_null(found) ? NULL : found;
}

static bool is_among(const json_t *value, const json_t *wanted)
{
    if (!value) value = json_null();
    if (!json_is_array(wanted)) return json_equal((json_t *)value, (json_t *)wanted);
    for (size_t i = 0; i < json_array_size(wanted); i++)
        if (json_equal((json_t *)value, json_array_get(wanted, i))) return true;
    return false;
}

static ft_status malformed(const ft_reading *r, const char *what)
{
    return ft__fail_at(r->err, FT_E_TYPE, r->where, 0, 0, "the architecture's file: %s", what);
}

/* A list whose length is what matters holds one kind of thing: words, or numbers of layers. */
static ft_status check_entries(const ft_reading *r, const char *key, const json_t *list)
{
    if (!list || json_is_null(list)) return FT_OK;
    if (!json_is_array(list)) return ft__config_fail(r, FT_E_TYPE, key, "\"%s\" must be a list", key);
    bool words = json_is_string(json_array_get(list, 0));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        if (words ? json_is_string(entry) : json_is_integer(entry) && json_integer_value(entry) >= 0) continue;
        return ft__config_fail(r, FT_E_TYPE, key, "entry %zu of \"%s\" must be %s", i + 1, key,
                               words ? "a word, as the others are" : "a layer's number");
    }
    return FT_OK;
}

/* What a config says under "$key", by what the trait is. */
static ft_status check_said(const ft_reading *r, const char *key, const ft_model_trait *trait, const json_t *value)
{
    bool flag = trait->kind == FT_KEY_FLAG && !trait->words, size = !trait->words && trait->kind <= FT_KEY_FOLLOWS;
    if (flag && !json_is_boolean(value)) return ft__config_fail(r, FT_E_TYPE, key, "\"%s\" must be true or false", key);
    if (size && (!json_is_integer(value) || json_integer_value(value) < 0))
        return ft__config_fail(r, json_is_number(value) ? FT_E_RANGE : FT_E_TYPE, key,
                               "\"%s\" must be a whole number that is not negative", key);
    return FT_OK;
}

/* -- when ----------------------------------------------------------------------------------------- */

ft_status ft__architecture_set(const ft_reading *r, const json_t *set, ft_arch *a)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)set, name, value) {
        const ft_model_trait *trait = ft__model_trait_find(name);
        const json_t *means = meant(r->config, value);
        const char *said = json_string_value(value);
        if (said && *said == '#' && trait && trait->kind == FT_KEY_LAYERS) { /* as many as the config's list has */
            const json_t *list = ft__config_value(r->config, said + 1);
            size_t length = json_array_size(list);
            const json_t *other = trait->offset == offsetof(ft_arch, layers) && length
                                      ? json_object_get(r->config, "num_hidden_layers")
                                      : NULL;
            FT_TRY(check_entries(r, said + 1, list));
            if (json_is_integer(other) && json_integer_value(other) != (json_int_t)length)
                return ft__config_fail(r, FT_E_RANGE, said + 1, "\"%s\" has %zu entries for %lld layers", said + 1,
                                       length, (long long)json_integer_value(other));
            if (length) *(int64_t *)((char *)a + trait->offset) = (int64_t)length;
            continue;
        }
        if (!trait) return malformed(r, "\"set\" names an unknown trait");
        if (!means) continue;
        if (means != value) FT_TRY(check_said(r, said + 1, trait, means));
        FT_TRY(ft__model_trait_set(trait, means, a, r->where, r->err));
    }
    return FT_OK;
}

/* A rule about true and false is about nothing else. */
static ft_status check_flag(const ft_reading *r, const json_t *rule)
{
    const char *key = json_string_value(json_object_get(rule, "key"));
    const json_t *value = key ? ft__config_value(r->config, key) : NULL;
    if (!value || json_is_null(value) || json_is_boolean(value) || !json_is_boolean(json_object_get(rule, "is")))
        return FT_OK;
    if (strchr(key, '.')) return ft__config_fail(r, FT_E_TYPE, key, "\"%s\" must be true or false", key);
    return ft__config_flag(r, key, &(bool){false}); /* which says what it got */
}

static bool holds(const ft_reading *r, const json_t *rule)
{
    const char *key = json_string_value(json_object_get(rule, "key"));
    const json_t *value = key ? ft__config_value(r->config, key) : NULL;
    if (!value || json_is_null(value)) value = json_object_get(rule, "default");
    const json_t *present = json_object_get(rule, "present");
    const json_t *not_this = json_object_get(rule, "not");
    if (present && json_is_true(present) != (value && !json_is_null(value))) return false;
    if (present && !not_this) return true;
    if (not_this) return !is_among(value, not_this);
    return is_among(value, json_object_get(rule, "is"));
}

/* A network's width as llama's first code gives it: two thirds of what is said, by a factor, rounded up to a multiple.
 * */
static void two_thirds(const ft_reading *r, const json_t *rule, ft_arch *a)
{
    const json_t *multiple = ft__config_value(r->config, json_string_value(json_object_get(rule, "two_thirds")));
    const char *by = json_string_value(json_object_get(rule, "by"));
    const json_t *factor = by ? ft__config_value(r->config, by) : NULL;
    int64_t step = json_is_integer(multiple) && json_integer_value(multiple) > 0 ? json_integer_value(multiple) : 256;
    double width = (double)(2 * a->ffn / 3) * (json_is_number(factor) ? json_number_value(factor) : 1);
    if (!(width >= 1 && width < 0x1p31)) return; /* the total is checked later */
    a->ffn = ((int64_t)width + step - 1) / step * step;
}

ft_status ft__architecture_rules(const ft_reading *r, const json_t *list, ft_arch *a)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *rule = json_array_get(list, i);
        FT_TRY(check_flag(r, rule));
        if (!holds(r, rule)) continue;
        const char *refused = json_string_value(json_object_get(rule, "refuse"));
        if (refused)
            return ft__config_fail(r, FT_E_UNSUPPORTED, json_string_value(json_object_get(rule, "key")), "%s", refused);
        FT_TRY(ft__architecture_set(r, json_object_get(rule, "set"), a));
        if (json_object_get(rule, "two_thirds")) two_thirds(r, rule, a);
    }
    return FT_OK;
}

ft_status ft__architecture_when(const ft_architecture *of, const ft_reading *r, ft_arch *a)
{
    for (size_t i = of->count; i-- > 0;) FT_TRY(ft__architecture_rules(r, json_object_get(of->document[i], "when"), a));
    return FT_OK;
}

ft_status ft__architecture_around(const ft_architecture *outer, const ft_reading *r, ft_arch *a)
{
    FT_TRY(ft__architecture_vision(outer, r, a));
    FT_TRY(ft__architecture_when(outer, r, a));
    return outer->type.finish ? outer->type.finish(r, a) : FT_OK;
}
