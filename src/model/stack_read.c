/* stack_read.c: a user's own stack: a file or an object on top of one that is known.
 *
 *   {"base": "fsdp2", "name": "ours", "defaults": {"attention": "sdpa"}, "traits": {"fused_norms": true}}
 *
 * Files of data/stacks have the same form, and a title, a date and a source for every trait; they are compiled in by
 * scripts/embed_stacks.py, and the tests read them here too. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "device/spec.h"
#include "model/pytorch.h"
#include "model/stack.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define X_FLAG(name, help) {#name, help, FT_TRAIT_FLAG, offsetof(ft_stack, name), {NULL}, 0, 1},
#define X_WORD(name, type, a, b, c, help) {#name, help, FT_TRAIT_WORD, offsetof(ft_stack, name), {a, b, c}, 0, 0},
#define X_NUMBER(name, low, high, help) {#name, help, FT_TRAIT_NUMBER, offsetof(ft_stack, name), {NULL}, low, high},
static const ft_trait traits[] = {FT_STACK_FLAGS(X_FLAG) FT_STACK_WORDS(X_WORD) FT_STACK_NUMBERS(X_NUMBER)};

const ft_trait *ft__stack_traits(size_t *count)
{
    *count = COUNT(traits);
    return traits;
}

/* "stack" makes "stack.traits"; a file "my.json" makes "my.json: traits". */
static const char *path(char out[256], const char *where, const char *key)
{
    snprintf(out, 256, "%.180s%s%.60s", where, ft__is_path(where) ? ": " : ".", key);
    return out;
}

static ft_status read_word(const json_t *object, const char *key, const char *const *words, size_t count,
                           const char *where, int *out, ft_error *err)
{
    const char *word = NULL;
    char at[256], listed[200] = "";
    FT_TRY(ft__json_string(object, key, FT_OPTIONAL, &word, where, err));
    if (!word) return FT_OK;
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(word, words[i])) {
            *out = (int)i;
            return FT_OK;
        }
        size_t length = strlen(listed);
        snprintf(listed + length, sizeof listed - length, "%s\"%s\"", i ? ", " : "", words[i]);
    }
    return ft__fail_at(err, FT_E_NAME, path(at, where, key), 0, 0, "\"%s\" must be one of %s, not \"%.*s\"", key,
                       listed, (int)ft__utf8_cut(word, 60), word);
}

static ft_status read_trait(const json_t *object, const ft_trait *t, const char *where, ft_stack *out, ft_error *err)
{
    void *at = (char *)out + t->offset;
    size_t words = 0;
    int word = -1;
    switch (t->type) {
    case FT_TRAIT_FLAG: return ft__json_bool(object, t->name, FT_OPTIONAL, at, where, err);
    case FT_TRAIT_NUMBER: return ft__json_number(object, t->name, FT_OPTIONAL, t->low, t->high, at, where, err);
    case FT_TRAIT_WORD:
        while (words < COUNT(t->words) && t->words[words]) words++;
        FT_TRY(read_word(object, t->name, t->words, words, where, &word, err));
        if (word >= 0) memcpy(at, &(unsigned){(unsigned)word}, sizeof(unsigned)); /* enums of this file's own header */
        return FT_OK;
    }
    return FT_OK;
}

static ft_status read_traits(const json_t *object, const char *where, ft_stack *out, ft_error *err)
{
    const json_t *said = json_object_get(object, "traits");
    const char *names[COUNT(traits)];
    char at[256];
    if (!said) return FT_OK;
    path(at, where, "traits");
    if (!json_is_object(said))
        return ft__fail_at(err, FT_E_TYPE, at, 0, 0, "\"traits\" must be an object: {\"fused_norms\": true}");
    for (size_t i = 0; i < COUNT(traits); i++) names[i] = traits[i].name;
    FT_TRY(ft__json_known_keys(said, names, COUNT(names), at, err));
    for (size_t i = 0; i < COUNT(traits); i++) FT_TRY(read_trait(said, &traits[i], at, out, err));
    return FT_OK;
}

static ft_status read_executions(const json_t *said, const char *where, ft_stack *out, ft_error *err)
{
    const json_t *list = json_object_get(said, "execution"), *one;
    char at[256];
    size_t i;
    if (!list) return FT_OK;
    if (!json_is_array(list) || !json_array_size(list))
        return ft__fail_at(err, FT_E_TYPE, path(at, where, "execution"), 0, 0,
                           "\"execution\" must be an array of words, the usual one first: [\"eager\", \"compile\"]");
    out->executions = 0;
    json_array_foreach (list, i, one) {
        json_t *named = json_is_string(one) ? json_pack("{sO}", "execution", one) : NULL;
        int word = -1;
        if (!json_is_string(one))
            return ft__fail_at(err, FT_E_TYPE, path(at, where, "execution"), 0, 0,
                               "\"execution\" must be an array of words; element %zu is not a string", i + 1);
        if (!named) return ft__no_memory(err);
        ft_status status = read_word(named, "execution", ft__execution_words, COUNT(ft__execution_words), where, &word,
                                     err);
        json_decref(named);
        FT_TRY(status);
        if (i == 0) out->execution = (ft_execution)word;
        out->executions |= 1u << word;
    }
    return FT_OK;
}

/* Asked for here, so that a wrong one is the stack's mistake. */
static ft_status read_version(const json_t *said, const char *where, ft_stack *out, ft_error *err)
{
    const char *version = NULL;
    const ft_pytorch *found;
    bool newer;
    char at[256];
    FT_TRY(ft__json_string(said, "pytorch", FT_OPTIONAL, &version, where, err));
    if (!version) return FT_OK;
    ft_status status = ft__pytorch_find(version, &found, &newer, err);
    if (status != FT_OK && err) snprintf(err->where, sizeof err->where, "%s", path(at, where, "pytorch"));
    FT_TRY(status);
    snprintf(out->pytorch, sizeof out->pytorch, "%.15s", version);
    return FT_OK;
}

static ft_status read_defaults(const json_t *object, const char *where, ft_stack *out, ft_error *err)
{
    static const char *const keys[] = {"execution",       "attention", "compile_scope",  "loss",      "cp_kind",
                                       "expert_dispatch", "zero",      "master_weights", "clip_grad", "pytorch"};
    static const char *const scopes[] = {"auto", "model", "layers", "loss"};
    static const char *const kinds[] = {"ring", "ulysses", "gather", "pytorch"};
    static const char *const dispatches[] = {"copies", "once"};
    const json_t *said = json_object_get(object, "defaults");
    char at[256];
    int attention = (int)out->attention, loss = (int)out->loss, scope = (int)out->compile_scope, kind = -1,
        dispatch = out->dispatch_once;
    int64_t zero = out->zero;
    if (!said) return FT_OK;
    path(at, where, "defaults");
    if (!json_is_object(said))
        return ft__fail_at(err, FT_E_TYPE, at, 0, 0, "\"defaults\" must be an object: {\"attention\": \"sdpa\"}");
    FT_TRY(ft__json_known_keys(said, keys, COUNT(keys), at, err));
    FT_TRY(read_executions(said, at, out, err));
    FT_TRY(read_word(said, "attention", ft__attention_words, COUNT(ft__attention_words), at, &attention, err));
    FT_TRY(read_word(said, "compile_scope", scopes, COUNT(scopes), at, &scope, err));
    FT_TRY(read_word(said, "loss", ft__entropy_words, COUNT(ft__entropy_words), at, &loss, err));
    FT_TRY(read_word(said, "cp_kind", kinds, COUNT(kinds), at, &kind, err));
    FT_TRY(read_word(said, "expert_dispatch", dispatches, COUNT(dispatches), at, &dispatch, err));
    FT_TRY(ft__json_bool(said, "master_weights", FT_OPTIONAL, &out->master_weights, at, err));
    FT_TRY(ft__json_bool(said, "clip_grad", FT_OPTIONAL, &out->clip_grad, at, err));
    FT_TRY(ft__json_whole(said, "zero", FT_OPTIONAL, 0, 3, &zero, at, err));
    FT_TRY(read_version(said, at, out, err));
    out->attention = (ft_attention_kind)attention;
    out->compile_scope = (ft_compile_scope)scope;
    out->loss = (ft_entropy)loss;
    if (kind >= 0) snprintf(out->cp_kind, sizeof out->cp_kind, "%s", kinds[kind]);
    out->zero = (int)zero;
    out->dispatch_once = dispatch == 1;
    return FT_OK;
}

static ft_status read_object(const json_t *object, const char *where, ft_stack *out, ft_error *err)
{
    static const char *const keys[] = {"name",   "title",    "date",   "base",    "default_for", "default_gpus",
                                       "models", "defaults", "traits", "sources", "notes"};
    const char *base = NULL, *name = NULL, *title = NULL;
    const ft_stack *below = NULL;
    char at[256];
    FT_TRY(ft__json_known_keys(object, keys, COUNT(keys), where, err));
    FT_TRY(ft__json_string(object, "base", FT_OPTIONAL, &base, where, err));
    if (!base)
        return ft__fail_at(err, FT_E_MISSING, path(at, where, "base"), 0, 0,
                           "a stack needs \"base\", the known one that it is most like: \"fsdp2\"");
    FT_TRY(ft__stack_find(base, &below, err));
    *out = *below;
    out->base = below;
    FT_TRY(ft__json_string(object, "name", FT_OPTIONAL, &name, where, err));
    FT_TRY(ft__json_string(object, "title", FT_OPTIONAL, &title, where, err));
    if (name)
        snprintf(out->name, sizeof out->name, "%.*s", (int)ft__utf8_cut(name, sizeof out->name - 1), name);
    else
        snprintf(out->name, sizeof out->name, "%.40s, own", below->name);
    if (title) snprintf(out->title, sizeof out->title, "%.*s", (int)ft__utf8_cut(title, sizeof out->title - 1), title);
    FT_TRY(read_defaults(object, where, out, err));
    return read_traits(object, where, out, err);
}

ft_status ft__stack_read(const json_t *said, const char *where, ft_stack *own, const ft_stack **out, ft_error *err)
{
    const char *name = json_string_value(said);
    if (!name && !json_is_object(said))
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "\"%s\" must be a name, a file or an object", where);
    if (name && !ft__is_path(name)) return ft__stack_find(name, out, err);
    *out = own;
    if (!name) return read_object(said, where, own, err);
    json_t *file = NULL;
    FT_TRY(ft__json_load(name, &file, err));
    ft_status status = json_is_object(file)
                           ? read_object(file, name, own, err)
                           : ft__fail_at(err, FT_E_TYPE, name, 0, 0, "a stack's file must hold an object");
    json_decref(file);
    return status;
}
