/* engine.c: an engine by its name, or a user's own: a file or an object on top of one that is known.
 *
 *   {"base": "vllm", "name": "ours", "traits": {"token_budget": 16384, "step_ms": 0.4}}
 */
#include "serving/engine.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/software.h"
#include "base/text.h"
#include "device/spec.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MOST_ENGINES = 32 };

typedef enum trait_type { FLAG, WORD, NUMBER } trait_type;
typedef struct trait {
    const char *name;
    trait_type type;
    size_t offset;
    const char *words[6];
    double low, high;
} trait;

#define X_FLAG(name, help) {#name, FLAG, offsetof(ft_serving_engine, name), {NULL}, 0, 1},
#define LIST(...) __VA_ARGS__
#define X_WORD(name, type, listed, help) {#name, WORD, offsetof(ft_serving_engine, name), {LIST listed}, 0, 0},
#define X_NUMBER(name, low, high, help) {#name, NUMBER, offsetof(ft_serving_engine, name), {NULL}, low, high},
static const trait traits[] = {FT_SERVING_FLAGS(X_FLAG) FT_SERVING_WORDS(X_WORD) FT_SERVING_NUMBERS(X_NUMBER)};

static ft_status find(const char *name, const char *where, const ft_serving_engine **out, ft_error *err)
{
    const char *names[MOST_ENGINES];
    size_t count = ft__serving_engine_count < MOST_ENGINES ? ft__serving_engine_count : MOST_ENGINES;
    char listed[400] = "";
    for (size_t i = 0; i < count; i++) {
        names[i] = ft__serving_engines[i].name;
        if (!strcmp(names[i], name)) {
            *out = &ft__serving_engines[i];
            return FT_OK;
        }
        size_t length = strlen(listed);
        snprintf(listed + length, sizeof listed - length, "%s%s", i ? ", " : "", names[i]);
    }
    const char *nearest = ft__nearest_software(name, names, count);
    int shown = (int)ft__utf8_cut(name, 60);
    if (nearest)
        return ft__fail_at(err, FT_E_NAME, where, 0, 0, "unknown engine \"%.*s\"; did you mean \"%s\"?", shown, name,
                           nearest);
    return ft__fail_at(err, FT_E_NAME, where, 0, 0, "unknown engine \"%.*s\"; expected %s, a file or an object", shown,
                       name, listed);
}

ft_engine ft__serving_started_as(const json_t *said)
{
    const json_t *base = json_is_object(said) ? json_object_get(said, "base") : said;
    const char *name = said ? json_string_value(base) : ft__serving_usual;
    for (size_t i = 0; name && i < ft__serving_engine_count; i++)
        if (!strcmp(ft__serving_engines[i].name, name)) return ft__serving_engines[i].kernels;
    return FT_ENGINE_ANY;
}

bool ft__serving_is_large(const ft_serving_engine *e, const ft_device *d)
{
    char small[24];
    snprintf(small, sizeof small, "sm_%.0f", e->small_capability);
    return d->memory_gib >= e->large_gib && strcmp(d->compute_capability, small) != 0;
}

static bool is_largest(const ft_serving_engine *e, const ft_device *d)
{
    return e->largest_gib > 0 && d->memory_gib >= e->largest_gib;
}

double ft__serving_budget(const ft_serving_engine *e, const ft_device *d)
{
    if (!ft__serving_is_large(e, d)) return e->token_budget_small;
    return is_largest(e, d) ? e->token_budget_largest : e->token_budget;
}

double ft__serving_graphs(const ft_serving_engine *e, const ft_device *d)
{
    if (!ft__serving_is_large(e, d)) return e->graph_sequences_small;
    return is_largest(e, d) ? e->graph_sequences_largest : e->graph_sequences;
}

static ft_status read_word(const json_t *object, const trait *t, const char *where, ft_serving_engine *out,
                           ft_error *err)
{
    const char *word = NULL;
    char at[160], listed[160] = "";
    FT_TRY(ft__json_string(object, t->name, FT_OPTIONAL, &word, where, err));
    if (!word) return FT_OK;
    for (size_t i = 0; i < COUNT(t->words) && t->words[i]; i++) {
        if (!strcmp(word, t->words[i])) {
            int value = (int)i;
            memcpy((char *)out + t->offset, &value, sizeof value);
            return FT_OK;
        }
        size_t length = strlen(listed);
        snprintf(listed + length, sizeof listed - length, "%s\"%s\"", i ? ", " : "", t->words[i]);
    }
    snprintf(at, sizeof at, "%.100s.%s", where, t->name);
    return ft__fail_at(err, FT_E_NAME, at, 0, 0, "\"%s\" must be one of %s, not \"%.*s\"", t->name, listed,
                       (int)ft__utf8_cut(word, 60), word);
}

ft_status ft__serving_traits_read(const json_t *object, const char *where, ft_serving_engine *out, ft_error *err)
{
    const char *known[COUNT(traits)];
    if (!json_is_object(object))
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "\"traits\" must be an object: {\"step_ms\": 0.3}");
    for (size_t i = 0; i < COUNT(traits); i++) known[i] = traits[i].name;
    FT_TRY(ft__json_known_keys(object, known, COUNT(known), where, err));
    for (size_t i = 0; i < COUNT(traits); i++) {
        const trait *t = &traits[i];
        void *at = (char *)out + t->offset;
        if (t->type == FLAG) FT_TRY(ft__json_bool(object, t->name, FT_OPTIONAL, at, where, err));
        if (t->type == NUMBER) FT_TRY(ft__json_number(object, t->name, FT_OPTIONAL, t->low, t->high, at, where, err));
        if (t->type == WORD) FT_TRY(read_word(object, t, where, out, err));
    }
    if (json_object_get(object, "memory_share") && !json_object_get(object, "outside_gib"))
        out->outside_gib = out->outside_rank_gib = out->outside_token_kib = 0;
    /* who says a budget means it for the largest GPUs too, and who says what has graphs, for all */
    if (json_object_get(object, "token_budget") && !json_object_get(object, "token_budget_largest"))
        out->token_budget_largest = out->token_budget;
    if (json_object_get(object, "graph_sequences") && !json_object_get(object, "graph_sequences_small"))
        out->graph_sequences_small = out->graph_sequences_largest = out->graph_sequences;
    return FT_OK;
}

static ft_status read_own(const json_t *object, const char *where, const ft_situation *s, ft_serving_engine *own,
                          ft_text *sources, ft_error *err)
{
    static const char *const known[] = {"base",    "name",   "title",   "date", "kernels",
                                        "engines", "traits", "sources", "notes"};
    const char *base = NULL, *name = NULL, *title = NULL;
    const ft_serving_engine *below = NULL;
    char at[160];
    FT_TRY(ft__json_known_keys(object, known, COUNT(known), where, err));
    FT_TRY(ft__json_string(object, "base", FT_REQUIRED, &base, where, err));
    snprintf(at, sizeof at, "%.100s.base", where);
    FT_TRY(find(base, at, &below, err));
    *own = *below;
    FT_TRY(ft__serving_recipes(s, own, sources, err));
    FT_TRY(ft__json_string(object, "name", FT_OPTIONAL, &name, where, err));
    FT_TRY(ft__json_string(object, "title", FT_OPTIONAL, &title, where, err));
    if (name) snprintf(own->name, sizeof own->name, "%.*s", (int)ft__utf8_cut(name, sizeof own->name - 1), name);
    if (title) snprintf(own->title, sizeof own->title, "%.*s", (int)ft__utf8_cut(title, sizeof own->title - 1), title);
    const json_t *said = json_object_get(object, "traits");
    snprintf(at, sizeof at, "%.100s.traits", where);
    return said ? ft__serving_traits_read(said, at, own, err) : FT_OK;
}

ft_status ft__serving_engine_read(const json_t *said, const ft_situation *s, ft_serving_engine *own,
                                  const ft_serving_engine **out, ft_text *sources, ft_error *err)
{
    const char *name = json_string_value(said);
    json_t *file = NULL;
    *out = own;
    if (name && !ft__is_path(name)) {
        const ft_serving_engine *known = NULL;
        FT_TRY(find(name, "engine", &known, err));
        *own = *known;
        return ft__serving_recipes(s, own, sources, err);
    }
    if (!name && !json_is_object(said))
        return ft__fail_at(err, FT_E_TYPE, "engine", 0, 0, "\"engine\" must be a name, a file or an object");
    if (name) FT_TRY(ft__json_load(name, &file, err));
    ft_status status = read_own(file ? file : said, file ? name : "engine", s, own, sources, err);
    json_decref(file);
    return status;
}
