/* What a GPU is: reading a spec, checking it, finding it in the catalogue. */
#ifndef FT_DEVICE_GPU_H
#define FT_DEVICE_GPU_H
#include <jansson.h>

#include "base/error.h"
#include "base/text.h"
#include "foretell.h"

/* A spec object (docs/devices.md) -> device. May extend another through "base". Warnings (sparse-scan
 * peak, defaulted fields) are appended to `warnings`, one per line; NULL drops them. */
ft_status ft__device_read(const json_t *spec, const char *where, ft_device *out, ft_text *warnings, ft_error *err);

/* The catalogue: compiled in from data/devices/. */
size_t ft__catalogue_count(void);
const char *ft__catalogue_name(size_t index);
const char *ft__catalogue_title(size_t index);                /* both without reading the file */
const char *ft__catalogue_json(size_t index, size_t *length); /* the file's text, sources included */
/* May it follow this GPU: another one of its maker that was not sold before it? Without reading the file. */
bool ft__catalogue_follows(size_t index, const ft_device *d);
ft_status ft__catalogue_find(const char *name, ft_device *out, ft_error *err); /* by name; nearest name in the error */

/* "8xh100", "h100:8", "8 h100": how many, and which (of several the usual one). Such is no entry's name. */
bool ft__catalogue_counted(const char *name, int *count, char which[80]);

/* A name or a path ("./my.json", anything with a slash or ending in .json). */
ft_status ft__device_open(const char *name_or_path, ft_device *out, ft_text *warnings, ft_error *err);

/* Can the physics be asked about a struct that nobody read from a spec? `where` names the member that it cannot. */
ft_status ft__device_figures(const ft_device *d, ft_error *err);
#endif
