/* layers.c: what each layer of a planned architecture is, by the "layers" rules of its file: which layers a rule is
 * about, and what it sets there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "import/config/architecture.h"
#include "model/plan.h"

static const json_t *value_of(const json_t *config, const char *path)
{
    const json_t *value = ft__config_value(config, path);
    return json_is_null(value) ? NULL : value;
}

/* A number of the rule, or the config's under that key; a key and what it usually is. `otherwise` where none is said.
 * */
static int64_t number_of(const ft_reading *r, const json_t *value, int64_t otherwise)
{
    if (json_is_array(value)) {
        otherwise = number_of(r, json_array_get(value, 1), otherwise);
        value = json_array_get(value, 0);
    }
    if (json_is_string(value)) value = value_of(r->config, json_string_value(value));
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

/* -- which layers ----------------------------------------------------------------------------------- */

typedef struct ft_layer_rule {
    const json_t *of;
    const char *key;     /* of a list, a word of letters, or layers' numbers */
    const json_t *value; /* the config's */
} ft_layer_rule;

/* Lists and letters say it layer by layer: one for each. */
static ft_status check_length(const ft_reading *r, const ft_arch *a, const ft_layer_rule *rule)
{
    size_t length = json_is_string(rule->value) ? json_string_length(rule->value) : json_array_size(rule->value);
    if (json_object_get(rule->of, "numbers")) return FT_OK;
    bool longer = json_is_true(json_object_get(rule->of, "longer"));
    if ((int64_t)length == a->layers || (longer && (int64_t)length > a->layers)) return FT_OK;
    return ft__config_fail(r, FT_E_RANGE, rule->key, "\"%s\" has %zu entries for %" PRId64 " layers", rule->key, length,
                           a->layers);
}

/* Entries of a list are what its rules compare them with: words, or numbers; numbers of layers lie among them. */
static ft_status check_kinds(const ft_reading *r, const ft_arch *a, const ft_layer_rule *rule)
{
    const json_t *wanted = json_object_get(rule->of, "is");
    bool numbers = json_object_get(rule->of, "numbers") != NULL;
    if (json_is_array(wanted)) wanted = json_array_get(wanted, 0);
    json_int_t from = json_integer_value(json_object_get(rule->of, "first"));
    for (size_t i = 0; json_is_array(rule->value) && i < json_array_size(rule->value); i++) {
        const json_t *entry = json_array_get(rule->value, i);
        json_int_t layer = json_integer_value(entry) - from;
        if (numbers && (!json_is_integer(entry) || layer < 0 || layer >= a->layers))
            return ft__config_fail(r, json_is_integer(entry) ? FT_E_RANGE : FT_E_TYPE, rule->key,
                                   "entry %zu of \"%s\" must be a layer from %d to %" PRId64, i + 1, rule->key,
                                   (int)from, a->layers - 1 + (int64_t)from);
        if (!numbers && json_is_string(wanted) != json_is_string(entry))
            return ft__config_fail(r, FT_E_TYPE, rule->key, "layer %zu of \"%s\" must be a %s", i + 1, rule->key,
                                   json_is_string(wanted) ? "word" : "number");
        if (!numbers && !json_is_string(wanted) && !(json_is_number(entry) && json_number_value(entry) >= 0))
            return ft__config_fail(r, FT_E_RANGE, rule->key, "layer %zu of \"%s\" must be a number from 0 on", i + 1,
                                   rule->key);
    }
    return FT_OK;
}

/* What a rule takes of the config as a number is one, unless it is a list that another rule reads. */
static ft_status check_number(const ft_reading *r, const json_t *value)
{
    if (json_is_array(value)) value = json_array_get(value, 0);
    const char *key = json_string_value(value);
    const json_t *said = key ? value_of(r->config, key) : NULL;
    if (!said || json_is_array(said) || (json_is_integer(said) && json_integer_value(said) >= 0)) return FT_OK;
    return ft__config_fail(r, json_is_number(said) ? FT_E_RANGE : FT_E_TYPE, key,
                           "\"%s\" must be a whole number that is not negative", key);
}

static bool said_of(const ft_layer_rule *rule, int64_t i)
{
    const json_t *wanted = json_object_get(rule->of, "is");
    if (json_is_string(rule->value)) {
        const char *letters = json_string_value(wanted);
        return letters && strchr(letters, json_string_value(rule->value)[i]);
    }
    const json_t *entry = json_array_get(rule->value, (size_t)i);
    if (json_object_get(rule->of, "numbers")) {
        json_int_t from = json_integer_value(json_object_get(rule->of, "first"));
        for (size_t at = 0; at < json_array_size(rule->value); at++)
            if (json_integer_value(json_array_get(rule->value, at)) - from == i) return true;
        return false;
    }
    if (!json_is_array(wanted)) return json_equal((json_t *)entry, (json_t *)wanted);
    for (size_t at = 0; at < json_array_size(wanted); at++)
        if (json_equal((json_t *)entry, json_array_get(wanted, at))) return true;
    return false;
}

static bool about(const ft_reading *r, const ft_arch *a, const ft_layer_rule *rule, int64_t i)
{
    const json_t *every = json_object_get(rule->of, "every");
    int64_t from = number_of(r, json_object_get(rule->of, "from"), 0);
    int64_t before = number_of(r, json_object_get(rule->of, "before"), a->layers);
    const json_t *last = json_object_get(rule->of, "last"); /* so many at the end */
    if (before < 0) before += a->layers;
    if (last) from = a->layers - number_of(r, last, 0);
    if (i < from || i >= before) return false;
    if (every) {
        int64_t step = number_of(r, every, 0);
        int64_t at = number_of(r, json_object_get(rule->of, "at"), 0);
        if (step < 1) return false;
        bool on = ((i - at) % step + step) % step == 0;
        return on != json_is_true(json_object_get(rule->of, "others"));
    }
    return !rule->key || said_of(rule, i);
}

/* -- what is set -------------------------------------------------------------------------------------- */

static ft_status word(const ft_reading *r, const char *said, const char *const *words, int *out)
{
    for (int i = 0; words[i]; i++)
        if (said && !strcmp(said, words[i])) {
            *out = i;
            return FT_OK;
        }
    return ft__fail_at(r->err, FT_E_NAME, r->where, 0, 0, "the architecture's file: no layer is \"%s\"",
                       said ? said : "");
}

/* "$key": the config's number; "@key": the i-th of the config's list. */
static const json_t *meant(const ft_reading *r, const json_t *value, int64_t i)
{
    const char *said = json_string_value(value);
    if (said && *said == '$') return value_of(r->config, said + 1);
    if (said && *said == '@') {
        const json_t *list = value_of(r->config, said + 1);
        return json_is_array(list) ? json_array_get(list, (size_t)i) : list;
    }
    return value;
}

static ft_status set_layer(const ft_reading *r, const json_t *set, int64_t i, ft_layer_shape *l)
{
    static const struct {
        const char *name;
        size_t offset;
        bool flag;
    } fields[] = {
#define SIZE(field) {#field, offsetof(ft_layer_shape, field), false}
#define FLAG(field)                                   \
    {                                                 \
#field, offsetof(ft_layer_shape, field), true \
    }
        SIZE(heads),           SIZE(kv_heads),    SIZE(head_dim),    SIZE(v_dim), SIZE(rotary_dim),
        SIZE(window),          SIZE(ffn),         SIZE(moe_ffn),     SIZE(topk),  SIZE(shared_ffn),
        SIZE(compress),        FLAG(rotated),     FLAG(chunked),     FLAG(sinks), FLAG(indexed),
        FLAG(keys_are_values), FLAG(shares_keys), FLAG(sparse_gate), FLAG(grams), FLAG(start_bare),
#undef SIZE
#undef FLAG
    };
    const char *name;
    json_t *said;
    json_object_foreach ((json_t *)set, name, said) {
        const json_t *value = meant(r, said, i);
        int which = 0;
        if (!strcmp(name, "mixer")) {
            FT_TRY(word(r, json_string_value(said), ft__mixer_words, &which));
            l->mixer = (ft_mixer)which;
            continue;
        }
        if (!strcmp(name, "feed")) {
            FT_TRY(word(r, json_string_value(said), ft__feed_words, &which));
            l->feed = (ft_feed)which;
            continue;
        }
        size_t at = 0, count = sizeof fields / sizeof *fields;
        while (at < count && strcmp(name, fields[at].name) != 0) at++;
        if (at == count)
            return ft__fail_at(r->err, FT_E_NAME, r->where, 0, 0, "the architecture's file: a layer has no \"%s\"",
                               name);
        void *field = (char *)l + fields[at].offset;
        bool theirs = value && value != said, right = fields[at].flag ? json_is_boolean(value) : json_is_integer(value);
        if (theirs && (!right || json_integer_value(value) < 0))
            return ft__config_fail(r, json_is_number(value) ? FT_E_RANGE : FT_E_TYPE, json_string_value(said) + 1,
                                   "layer %" PRId64 ": expected %s", i + 1,
                                   fields[at].flag ? "true or false" : "a whole number that is not negative");
        if (right && fields[at].flag)
            *(bool *)field = json_is_true(value);
        else if (right)
            *(int64_t *)field = json_integer_value(value);
    }
    return FT_OK;
}

/* "@key" takes a layer's entry of the config's list: one for each layer. */
static ft_status check_entries(const ft_reading *r, const ft_arch *a, const json_t *set)
{
    const char *name;
    json_t *said;
    json_object_foreach ((json_t *)set, name, said) {
        const char *word = json_string_value(said);
        const json_t *list = word && *word == '@' ? value_of(r->config, word + 1) : NULL;
        if (json_is_array(list) && (int64_t)json_array_size(list) != a->layers)
            return ft__config_fail(r, FT_E_RANGE, word + 1, "\"%s\" has %zu entries for %" PRId64 " layers", word + 1,
                                   json_array_size(list), a->layers);
    }
    return FT_OK;
}

static ft_status apply(const ft_reading *r, const ft_arch *a, const json_t *spec, ft_layer_shape *layers)
{
    ft_layer_rule rule = {.of = spec, .key = json_string_value(json_object_get(spec, "list"))};
    const char *unless = json_string_value(json_object_get(spec, "unless"));
    const char *where = json_string_value(json_object_get(spec, "if"));
    if (!rule.key) rule.key = json_string_value(json_object_get(spec, "numbers"));
    const char *only = json_string_value(json_object_get(spec, "only")); /* a key that is true */
    if (json_object_get(spec, "blocks")) return ft__layers_of_blocks(r, a, json_object_get(spec, "blocks"), layers);
    if ((unless && value_of(r->config, unless)) || (where && !value_of(r->config, where))) return FT_OK;
    if (only && value_of(r->config, only) && !json_is_boolean(value_of(r->config, only)))
        return ft__config_fail(r, FT_E_TYPE, only, "\"%s\" must be true or false", only);
    if (only && !json_is_true(value_of(r->config, only))) return FT_OK;
    if (rule.key) {
        rule.value = value_of(r->config, rule.key);
        if (!rule.value) return FT_OK;
        const json_t *wanted = json_object_get(spec, "is");
        if (json_is_integer(rule.value) && !json_object_get(spec, "numbers") && json_is_integer(wanted))
            return FT_OK; /* one number for all: another rule's */
        if (!json_is_array(rule.value) && (!json_is_string(rule.value) || !json_is_string(wanted)))
            return ft__config_fail(r, FT_E_TYPE, rule.key, "\"%s\" must be a list%s", rule.key,
                                   json_object_get(spec, "numbers") ? " of layers" : ", one entry a layer");
        FT_TRY(check_kinds(r, a, &rule));
        FT_TRY(check_length(r, a, &rule));
    }
    FT_TRY(check_entries(r, a, json_object_get(spec, "set")));
    static const char *const numbers[] = {"from", "before", "last", "every", "at"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        FT_TRY(check_number(r, json_object_get(spec, numbers[i])));
    const json_t *every = json_array_get(json_object_get(spec, "every"), 0);
    if (json_is_string(every) && number_of(r, json_object_get(spec, "every"), 1) < 1)
        return ft__config_fail(r, FT_E_RANGE, json_string_value(every), "\"%s\" must be a whole number from 1 on",
                               json_string_value(every));
    for (int64_t i = 0; i < a->layers; i++)
        if (about(r, a, &rule, i)) FT_TRY(set_layer(r, json_object_get(spec, "set"), i, &layers[i]));
    return FT_OK;
}

static bool known_word(const json_t *rules, const char *key, const json_t *entry)
{
    bool any = false;
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const json_t *spec = json_array_get(rules, i), *wanted = json_object_get(spec, "is");
        const char *list = json_string_value(json_object_get(spec, "list"));
        if (!list || strcmp(list, key) != 0) continue;
        any = true;
        if (json_equal((json_t *)entry, (json_t *)wanted)) return true;
        for (size_t at = 0; at < json_array_size(wanted); at++)
            if (json_equal((json_t *)entry, json_array_get(wanted, at))) return true;
    }
    return !any;
}

/* The words, or letters, that rules about a list know: "full_attention", "linear_attention". */
static const char *expected_words(const json_t *rules, const char *key, char *out, size_t room)
{
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const json_t *spec = json_array_get(rules, i), *wanted = json_object_get(spec, "is");
        const char *list = json_string_value(json_object_get(spec, "list"));
        if (!list || strcmp(list, key) != 0) continue;
        for (size_t at = 0; at < (json_is_array(wanted) ? json_array_size(wanted) : 1); at++) {
            const char *word = json_string_value(json_is_array(wanted) ? json_array_get(wanted, at) : wanted);
            char quoted[64];
            if (!word || snprintf(quoted, sizeof quoted, "\"%.48s\"", word) < 0 || strstr(out, quoted)) continue;
            int wrote = snprintf(out + used, room - used, "%s%s", used ? ", " : "; expected ", quoted);
            if (wrote > 0 && (size_t)wrote < room - used) used += (size_t)wrote;
            out[used] = '\0';
        }
    }
    return out;
}

/* A letter of a pattern that no rule is about. */
static ft_status check_letters(const ft_reading *r, const json_t *rules, const char *key, const char *letters,
                               const ft_arch *a)
{
    char words_known[160];
    for (size_t at = 0; letters[at]; at++) {
        bool known = false, words = false;
        for (size_t i = 0; i < json_array_size(rules) && !known; i++) {
            const json_t *spec = json_array_get(rules, i);
            const char *list = json_string_value(json_object_get(spec, "list"));
            const char *wanted = json_string_value(json_object_get(spec, "is"));
            if (!list || !wanted || strcmp(list, key) != 0) continue;
            words |= strlen(wanted) > 2;
            known = strlen(wanted) <= 2 && strchr(wanted, letters[at]);
        }
        if (!known && words) return ft__config_fail(r, FT_E_TYPE, key, "\"%s\" must be a list, one word a layer", key);
        if (!known)
            return ft__config_fail(r, FT_E_NAME, key, "layer %zu is \"%c\", which no layer of \"%s\" is%s", at + 1,
                                   letters[at], a->model_type,
                                   expected_words(rules, key, words_known, sizeof words_known));
    }
    return FT_OK;
}

/* A word in a list of layers that no rule is about is a layer that nobody here knows. */
static ft_status check_words(const ft_reading *r, const json_t *rules, const ft_arch *a)
{
    char words_known[160];
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const char *key = json_string_value(json_object_get(json_array_get(rules, i), "list"));
        const json_t *list = key ? value_of(r->config, key) : NULL;
        if (json_is_string(list)) FT_TRY(check_letters(r, rules, key, json_string_value(list), a));
        for (size_t at = 0; at < json_array_size(list); at++) {
            const json_t *entry = json_array_get(list, at);
            if (!json_is_string(entry) || known_word(rules, key, entry)) continue;
            return ft__config_fail(r, FT_E_NAME, key, "layer %zu is \"%.*s\", which no layer of \"%s\" is%s", at + 1,
                                   60, json_string_value(entry), a->model_type,
                                   expected_words(rules, key, words_known, sizeof words_known));
        }
    }
    return FT_OK;
}

/* "mtp": the layer of a module that predicts a further token, where it is not as the last one. */
static ft_status set_mtp(const ft_architecture *of, const ft_reading *r, ft_arch *a)
{
    const json_t *set = NULL;
    for (size_t i = 0; i < of->count && !set; i++) set = json_object_get(of->document[i], "mtp");
    if (!json_is_object(set)) return FT_OK;
    a->mtp = ft__layer_usual(a);
    a->mtp_said = true;
    return set_layer(r, set, 0, &a->mtp);
}

ft_status ft__architecture_layers(const ft_architecture *of, const ft_reading *r, ft_arch *a)
{
    const json_t *rules = NULL;
    FT_TRY(set_mtp(of, r, a));
    for (size_t i = 0; i < of->count && !rules; i++) rules = json_object_get(of->document[i], "layers");
    if (!json_array_size(rules)) return FT_OK;
    if (a->layers > FT_MOST_PLANNED)
        return ft__config_fail(r, FT_E_RANGE, "num_hidden_layers", "layers are told apart up to %d of them",
                               FT_MOST_PLANNED);
    FT_TRY(check_words(r, rules, a));
    ft_layer_shape layers[FT_MOST_PLANNED];
    for (int64_t i = 0; i < a->layers; i++) layers[i] = ft__layer_usual(a);
    for (size_t i = 0; i < json_array_size(rules); i++) FT_TRY(apply(r, a, json_array_get(rules, i), layers));
    if (!ft__plan(a, layers))
        return ft__config_fail(r, FT_E_UNSUPPORTED, "num_hidden_layers", "more than %d kinds of layers", FT_MOST_KINDS);
    return FT_OK;
}
