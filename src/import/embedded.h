/* The models of data/models/ and the architectures of data/architectures/, compiled in by scripts/embed_models.py and
 * scripts/embed_architectures.py. */
#ifndef FT_IMPORT_EMBEDDED_H
#define FT_IMPORT_EMBEDDED_H
#include "import/config/config.h"

extern const size_t ft__embedded_model_count;
extern const ft_model_entry ft__embedded_models[]; /* sorted by name */

/* Every name, alias and hub id in lower case with - for _, sorted, with the entry it means, and how that checkpoint's
 * weights are stored where not as the entry has them: JSON in the layout of quantization_config, or NULL. */
struct ft__embedded_model_name {
    const char *name;
    size_t entry;
    const char *quantization;
};
extern const size_t ft__embedded_model_name_count;
extern const struct ft__embedded_model_name ft__embedded_model_names[];

/* Ends of names (data/suffixes.json) in the order in which they are tried, how weights are stored then (as above), and
 * whose names are meant, or NULL for anybody's. */
struct ft__embedded_suffix {
    const char *suffix, *quantization, *owner;
};
extern const struct ft__embedded_suffix ft__embedded_suffixes[]; /* ended by NULL */

/* The text of each architecture's file, and every model_type, sorted, with the file it means. */
extern const char *const ft__embedded_architectures[];
struct ft__embedded_architecture_type {
    const char *name;
    size_t entry;
};
extern const size_t ft__embedded_architecture_type_count;
extern const struct ft__embedded_architecture_type ft__embedded_architecture_types[];

/* Types that are refused (data/refused_types.json), each with its reason; ended by NULL. */
struct ft__embedded_refused_type {
    const char *name, *why;
};
extern const struct ft__embedded_refused_type ft__embedded_refused_types[];
#endif
