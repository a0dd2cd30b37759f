/* Architectures as data: what data/architectures/NAME.json (or a user's file of that form) says of a model_type, as the
 * presets and keys by which configs are read. docs/architectures.md has the form. Private to config/. */
#ifndef FT_IMPORT_CONFIG_ARCHITECTURE_H
#define FT_IMPORT_CONFIG_ARCHITECTURE_H
#include "import/config/type.h"

enum { FT_MOST_KEYS = 224, FT_MOST_LIKE = 8 };

/* An architecture that was opened: what its file and those it is like say, the nearest last. */
typedef struct ft_architecture {
    ft_config_type type;
    ft_arch preset;
    ft_config_key keys[FT_MOST_KEYS];
    size_t key_count;
    json_t *document[FT_MOST_LIKE]; /* owned; the names of keys lie in them */
    size_t count;
} ft_architecture;

/* The file compiled in for a model_type, or NULL. `name`: static text. */
const char *ft__architecture_text(const char *model_type, const char **name);
size_t ft__architecture_count(void);
const char *ft__architecture_at(size_t index); /* the index-th model_type that data gives */

/* `what`: a model_type that data gives, or a path that ends in .json. */
ft_status ft__architecture_open(const char *what, const char *where, ft_architecture *out, ft_error *err);
void ft__architecture_close(ft_architecture *a);

/* traits.c: `word` is a field of ft_arch; its kind and place. */
typedef struct ft_model_trait {
    const char *name;
    ft_key_kind kind;
    size_t offset;
    const char *const *words; /* of an enum, ended by NULL; else NULL */
} ft_model_trait;
const ft_model_trait *ft__model_trait_find(const char *name);
/* Sets a field from an architecture file's value. `file` and `key` are for messages. */
ft_status ft__model_trait_set(const ft_model_trait *trait, const json_t *value, void *arch, const char *file,
                              ft_error *err);
extern const char *const ft__mixer_words[], *const ft__feed_words[];

/* lost.c: "; it does not read ..." of the keys of r->config that `type` would pass over; "" where there are none. */
void ft__config_lost(const ft_reading *r, const char *type, char *out, size_t room);

/* rules.c: a key of the config, or of an object inside it: "linear_attn_config.num_heads"; NULL: there is none. Then
 * traits to set, "$key" and "#key" among their values, and a list of "when". */
const json_t *ft__config_value(const json_t *config, const char *path);
ft_status ft__architecture_set(const ft_reading *r, const json_t *set, ft_arch *a);
ft_status ft__architecture_rules(const ft_reading *r, const json_t *list, ft_arch *a);
/* "when", "vision" (vision.c) and "layers" (layers.c) of the documents, once the config's keys are read. */
ft_status ft__architecture_when(const ft_architecture *of, const ft_reading *r, ft_arch *a);
ft_status ft__architecture_vision(const ft_architecture *of, const ft_reading *r, ft_arch *a);
/* What a type that wraps a language model adds to it: what sees, rules about the language model's config, its
 * finish. */
ft_status ft__architecture_around(const ft_architecture *outer, const ft_reading *r, ft_arch *a);
ft_status ft__architecture_layers(const ft_architecture *of, const ft_reading *r, ft_arch *a);
/* shapes.c: what every object of a config is held to; lists of layers that no rule of the type is about. */
ft_status ft__config_shapes(const ft_reading *r);
ft_status ft__config_lists(const ft_architecture *of, const ft_reading *r, const ft_arch *a);
/* blocks.c: layers by a list of blocks, each with an attention and a network of its own (DeciLM, searched shapes). */
ft_status ft__layers_of_blocks(const ft_reading *r, const ft_arch *a, const json_t *key, ft_layer_shape *layers);
/* "wraps": where the language model's config lies, of a type that is any language model with something before it. */
const char *ft__architecture_wraps(const ft_architecture *of);
/* Whether it puts anything before or around what it wraps. */
bool ft__architecture_adds(const ft_architecture *of);
/* What a type that wraps means where the config says nothing: "text_traits" of its language model, where there is
 * no word of that, and "tied" of the whole. */
ft_status ft__architecture_outer(const ft_architecture *of, bool usual, const ft_reading *r, ft_arch *a);
/* Which type that is where its config does not say ("text"). */
const char *ft__architecture_text_type(const ft_architecture *of);
/* The language model's own config of a type that only adds eyes to it. */
typedef struct ft_opened {
    ft_architecture own, outer; /* outer: the one that wraps */
    bool has_own, has_outer;
    bool usual; /* nothing is said of what is wrapped */
} ft_opened;

/* `path`: where what is wrapped lies, which errors name. */
ft_status ft__config_open(ft_reading *r, ft_found *found, ft_config_path path[2], ft_opened *o);
#endif
