/* How one architecture's config is read: its defaults as a whole ft_arch, the keys that change them, and what a table
 * cannot say (finish.h). Private to config/.
 *
 * The defaults are those of the architecture's configuration class in Hugging Face transformers (5.x where 4.x
 * differs): a key that a config.json leaves out means that default, so a wrong one here is a wrong model. */
#ifndef FT_IMPORT_CONFIG_TYPE_H
#define FT_IMPORT_CONFIG_TYPE_H
#include <stddef.h>

#include "import/config/config.h"

typedef enum ft_key_kind {
    FT_KEY_LAYERS,     /* a whole number from 1 to 10^6 */
    FT_KEY_SIZE,       /* a whole number from 1 to 2^31 */
    FT_KEY_MAYBE,      /* a size; null and 0 mean "none" or "follows from the others" */
    FT_KEY_FOLLOWS,    /* a size; null means "follows from the others", 0 nothing */
    FT_KEY_FLAG,       /* true or false; null leaves the default */
    FT_KEY_SHARE,      /* from 0 to 1; null is 0 */
    FT_KEY_REAL,       /* not negative; null is 0 */
    FT_KEY_ACTIVATION, /* Hugging Face's name of a function; null leaves the default */
    FT_KEY_SIZES,      /* a list of sizes, of traits alone: no key gives one */
} ft_key_kind;

typedef struct ft_config_key {
    const char *name, *alias; /* alias: the other name under which the library takes it (its attribute_map), or NULL */
    ft_key_kind kind;
    size_t offset; /* of the field in ft_arch */
} ft_config_key;

#define FT_KEY(kind, field, name, alias)                     \
    {                                                        \
        name, alias, FT_KEY_##kind, offsetof(ft_arch, field) \
    }
#define FT_KEY_END           \
    {                        \
        0, 0, FT_KEY_FLAG, 0 \
    }

typedef struct ft_config_type ft_config_type;

typedef struct ft_reading {
    const json_t *config; /* the object that holds the keys: text_config where the library nests */
    const json_t *whole;  /* the document */
    const ft_config_type *type;
    const char *where;
    ft_error *err;
} ft_reading;

struct ft_config_type {
    const ft_arch *preset;
    const ft_config_key *keys;                            /* ended by FT_KEY_END; later ones win */
    double rotary_share;                                  /* of the head's width; 0: all of it */
    ft_status (*finish)(const ft_reading *r, ft_arch *a); /* before what all share is derived; may be NULL */
};

/* -- what the families' files use ----------------------------------------------------------------- */

ft_status ft__config_keys(const ft_reading *r, const ft_config_key *keys, ft_arch *a);
/* The JSON key under which this architecture reads a field, for messages; `otherwise` when it reads none. */
const char *ft__config_word(const ft_reading *r, size_t offset, const char *otherwise);
#define FT_CONFIG_WORD(r, field) ft__config_word(r, offsetof(ft_arch, field), #field)
/* Error at a key: its path and a sentence. */
ft_status ft__config_fail(const ft_reading *r, ft_status code, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
ft_status ft__config_activation(const ft_reading *r, const char *key, const char *name, const char **out);
/* `key` as a list of up to FT_MAX_STAGES sizes. Missing: left alone. */
ft_status ft__config_sizes(const ft_reading *r, const char *key, int64_t *out, int64_t *count);
ft_status ft__config_flag(const ft_reading *r, const char *key, bool *out); /* null and missing leave it alone */
/* `key`, where there is one, is a list of different layers of so many. */
ft_status ft__config_layer_numbers(const ft_reading *r, const char *key, int64_t layers);
/* An object inside the config, or NULL; `*out` then reads its keys. `path` must live as long as it. */
typedef char ft_config_path[256];
bool ft__config_inside(const ft_reading *r, const char *key, ft_reading *out, ft_config_path path);

/* find.c: the architecture of the document, or the one it shall be read as. */
typedef struct ft_found {
    const char *name;
    const char *file; /* an architecture of the user's own; NULL: none */
    bool relative;    /* read as another one */
} ft_found;
ft_status ft__config_find(const ft_reading *r, const char *nearest, ft_found *out);
/* divides.c: sizes that must divide, or make up, each other. */
ft_status ft__config_divides(const ft_reading *r, const ft_arch *a);
/* head.c: what stands on top, from `architectures` and the number of labels. */
ft_status ft__config_head(const ft_reading *r, ft_arch *a);
/* quantized.c: how the checkpoint stores its weights. */
ft_status ft__config_quantized(const ft_reading *r, ft_arch *a);
/* window.c: sliding windows from layer_types, use_sliding_window and their kin. */
ft_status ft__config_window(const ft_reading *r, ft_arch *a);

/* reach.c: positions that the config allows. */
void ft__config_reach(const ft_reading *r, ft_arch *a);

/* window.c: which layers are not rotated, from no_rope_layers or every no_rope_layer_interval'th. */
ft_status ft__config_turns(const ft_reading *r, ft_arch *a);
#endif
