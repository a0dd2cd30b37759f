/* The device files of data/devices/, compiled in by scripts/embed_devices.py, sorted by name. */
#ifndef FT_DEVICE_EMBEDDED_H
#define FT_DEVICE_EMBEDDED_H
#include <stddef.h>

struct ft__embedded_file {
    const char *name; /* "h100_sxm": the file's name without .json */
    const char *text; /* the file as it is, NUL-terminated */
    size_t length;    /* without the NUL */
};

extern const size_t ft__embedded_device_count;
extern const struct ft__embedded_file ft__embedded_devices[];
#endif
