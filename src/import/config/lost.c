/* lost.c: what of a config is not read when it is read as another type: the keys that would say something about its
 * layers and that the other type does not know. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "base/text.h"
#include "import/config/architecture.h"
#include "import/config/config.h"

/* Keys that every config carries and that change no computation here, by their beginnings and ends. */
static bool is_noise(const char *key)
{
    static const char *const starts[] = {"_",         "auto_map",    "initializer", "output_", "return_",
                                         "rope_",     "router_aux",  "router_z",    "torch",   "transformers",
                                         "use_cache", "pretraining", "max_length"};
    static const char *const ends[] = {"_token_id", "_token_index", "_eps", "_epsilon", "dropout", "_coef", "dtype"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(key, starts[i], strlen(starts[i]))) return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(key), m = strlen(ends[i]);
        if (n >= m && !strcmp(key + n - m, ends[i])) return true;
    }
    return false;
}

static bool is_read(const ft_config_type *type, const char *key)
{
    for (const ft_config_key *k = type->keys; k->name; k++)
        if (!strcmp(k->name, key) || (k->alias && !strcmp(k->alias, key))) return true;
    return false;
}

static bool in_word(char c) { return c == '_' || isalnum((unsigned char)c); }

/* The word, not as a part of another ("num_hidden_layer" in "num_hidden_layers"). */
static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length)
        if ((at == text || !in_word(at[-1])) && !in_word(at[length])) return true;
    return false;
}

/* Rules name keys in several ways; a file that has the key anywhere is taken to know it. */
static bool is_mentioned(const ft_architecture *of, const char *key)
{
    for (size_t i = 0; i < of->count; i++) {
        ft_text text = {0};
        ft__json_add_tree(&text, of->document[i]);
        bool there = !text.failed && has_word(text.at, key);
        ft__text_free(&text);
        if (there) return true;
    }
    return false;
}

/* Numbers, switches and lists say shapes; words mostly do not. */
static bool says_shapes(const json_t *value)
{
    return json_is_integer(value) || json_is_true(value) || json_array_size(value) > 1;
}

/* The file of a type, or of what it wraps: what stands outside is read as that. */
static bool open_innermost(const char *type, ft_architecture *opened)
{
    if (ft__architecture_open(type, "", opened, NULL) != FT_OK) return false;
    if (!ft__architecture_wraps(opened)) return true;
    const char *text = ft__architecture_text(ft__architecture_text_type(opened), &type) ? type : "llama";
    ft__architecture_close(opened);
    return ft__architecture_open(text, "", opened, NULL) == FT_OK;
}

static bool is_typo(const char *typed, const char *key, char meant[48])
{
    enum { TYPOS = 2, SHORTEST = 5 };
    if (!key || strlen(key) < SHORTEST || !ft__within(typed, strlen(typed), key, TYPOS)) return false;
    snprintf(meant, 48, "%s", key);
    return true;
}

bool ft__config_meant(const json_t *config, const char *typed, char meant[48])
{
    ft_architecture opened;
    const char *key, *type = json_string_value(json_object_get(config, "model_type"));
    json_t *value;
    if (!type || json_object_get(config, typed) || is_noise(typed) || !open_innermost(type, &opened)) return false;
    bool typo = false;
    if (!is_read(&opened.type, typed) && !is_mentioned(&opened, typed)) {
        json_object_foreach ((json_t *)(uintptr_t)config, key, value) typo = typo || is_typo(typed, key, meant);
        for (const ft_config_key *k = opened.type.keys; k->name && !typo; k++)
            typo = is_typo(typed, k->name, meant) || is_typo(typed, k->alias, meant);
    }
    ft__architecture_close(&opened);
    return typo;
}

void ft__config_lost(const ft_reading *r, const char *type, char *out, size_t room)
{
    enum { SHOWN = 3 };
    ft_architecture opened;
    const char *key;
    json_t *value;
    int lost = 0;
    size_t used = 0;
    *out = '\0';
    if (!open_innermost(type, &opened)) return;
    json_object_foreach ((json_t *)r->config, key, value) {
        if (is_noise(key) || !says_shapes(value) || is_read(&opened.type, key) || strlen(key) > 40) continue;
        if (is_mentioned(&opened, key)) continue;
        if (lost++ >= SHOWN) continue;
        int wrote = snprintf(out + used, room - used, "%s\"%s\"", used ? ", " : "; it does not read ", key);
        if (wrote > 0 && (size_t)wrote < room - used) used += (size_t)wrote;
    }
    if (lost > SHOWN) snprintf(out + used, room - used, " and %d more", lost - SHOWN);
    ft__architecture_close(&opened);
}
