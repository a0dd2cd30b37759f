/* recipe.c: how an engine is started for some models, where that is public.
 *
 * An engine's defaults are made for every model; who serves one of the large ones starts it as a recipe says: a wait
 * before small prompts, a larger budget, another program for the experts. Recipes are data (data/engines), read from
 * public repositories: a condition, traits, and where it stands.
 *
 *   {"where": {"model_type": "llama", "hidden_from": 8192, "tp_below": 8}, "traits": {"token_budget": 16384}, ...}
 *
 * Every one that holds applies, the later over the earlier; what a request says itself goes over both. */
#include <string.h>

#include "serving/engine.h"

/* X(key, what holds of a number n) */
#define CONDITIONS(X)                          \
    X("hidden_from", (double)s->hidden >= n)   \
    X("vocab_from", (double)s->vocab >= n)     \
    X("tp_below", (double)s->tp < n)           \
    X("tp_from", (double)s->tp >= n)           \
    X("dp_from", (double)s->dp >= n)           \
    X("ep_below", (double)s->ep < n)           \
    X("isl", s->isl == n)                      \
    X("osl", s->osl == n)                      \
    X("clients_from", (double)s->clients >= n) \
    X("clients_below", (double)s->clients < n)

static bool is(const json_t *where, const char *key, const char *value)
{
    const char *said = json_string_value(json_object_get(where, key));
    return !said || (value && !strcmp(said, value));
}

static bool is_so(const json_t *where, const char *key, bool value)
{
    const json_t *said = json_object_get(where, key);
    return !said || json_is_true(said) == value;
}

static bool holds(const json_t *where, const ft_situation *s)
{
    if (!is(where, "model_type", s->model_type) || !is(where, "dtype", s->dtype)) return false;
    if (!is_so(where, "tcgen05", s->tcgen05) || !is_so(where, "mfma", s->mfma)) return false;
    if (!is_so(where, "fixed_lengths", s->fixed_lengths)) return false;
#define X(key, condition)                                 \
    {                                                     \
        const json_t *said = json_object_get(where, key); \
        double n = json_number_value(said);               \
        if (said && !(condition)) return false;           \
    }
    CONDITIONS(X)
#undef X
    return true;
}

ft_status ft__serving_recipes(const ft_situation *s, ft_serving_engine *e, ft_text *sources, ft_error *err)
{
    ft_status status = FT_OK;
    if (!s || !s->model_type) return FT_OK;
    for (const char *const *text = e->recipes; status == FT_OK && text && *text; text++) {
        json_t *recipe = NULL;
        FT_TRY(ft__json_parse(*text, strlen(*text), "recipes", &recipe, err));
        if (holds(json_object_get(recipe, "where"), s)) {
            status = ft__serving_traits_read(json_object_get(recipe, "traits"), "recipes", e, err);
            ft__text_addf(sources, "%s\n", json_string_value(json_object_get(recipe, "source")));
        }
        json_decref(recipe);
    }
    return status;
}
