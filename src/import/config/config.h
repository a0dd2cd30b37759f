/* Models by name and by file: a Hugging Face config.json, read as its own library reads it (defaults per architecture
 * included), and the catalogue of named ones. */
#ifndef FT_IMPORT_CONFIG_CONFIG_H
#define FT_IMPORT_CONFIG_CONFIG_H
#include <jansson.h>

#include "base/error.h"
#include "model/arch.h"

/* `config` is the object of a config.json, or of a graph file (graphfile.h). `nearest`: NULL, or the known
 * model_type to read an unknown one as. `where` names the file or "model". Everything contradictory or absurd is
 * refused: heads that do not divide, zero layers. */
ft_status ft__config_read(const json_t *config, const char *nearest, const char *where, ft_arch *out, ft_error *err);

/* The model_types that data/architectures has, in the order of their names. */
size_t ft__config_type_count(void);
const char *ft__config_type_at(size_t index);

/* The catalogue: named configs with their sources, embedded from data/models. */
typedef struct ft_model_entry {
    const char *name, *hub; /* "llama-3-8b", "meta-llama/Meta-Llama-3-8B" */
    const char *model_type;
    double published;        /* parameters as the source gives them; 0 when it gives none */
    double published_digits; /* the unit of the last digit given: 1 for an exact count, 1e8 for "8.0B" */
    const char *source;
    const char *config; /* JSON text */
} ft_model_entry;
size_t ft__model_count(void);
const ft_model_entry *ft__model_at(size_t index);
const ft_model_entry *ft__model_find(const char *name); /* by name or hub id, case-insensitive; NULL */
/* A catalogue name, a config.json, or a directory that holds one -> arch. Unknown names: the nearest in the message. */
ft_status ft__model_open(const char *what, const char *nearest, ft_arch *out, ft_error *err);
/* The object of a config, or {"base": NAME, key: value, …}: that model of the catalogue with other values. */
ft_status ft__model_read(const json_t *object, const char *nearest, ft_arch *out, ft_error *err);
/* The key that was meant by one that the config's type does not read: nearly the same letters. Others say nothing of a
 * model's layers, as many keys of configs do. */
bool ft__config_meant(const json_t *config, const char *typed, char meant[48]);
#endif
