/* The device files of data/devices/, compiled in by scripts/embed_devices.py, sorted by name, and what must be known of
 * them without parsing all: makers, years, aliases, and which of them stand for others. */
#ifndef FT_DEVICE_EMBEDDED_H
#define FT_DEVICE_EMBEDDED_H
#include <stdbool.h>
#include <stddef.h>

#include "foretell.h"

struct ft__embedded_file {
    const char *name;  /* "h100_sxm": the file's name without .json */
    const char *title; /* "NVIDIA H100 SXM5 80 GB" */
    const char *text;  /* the file as it is, NUL-terminated */
    size_t length;     /* without the NUL */
    ft_vendor vendor;  /* as the text has it */
    int year;
    bool usual; /* the one that clouds mostly have, of those that a short name may mean */
};

extern const size_t ft__embedded_device_count;
extern const struct ft__embedded_file ft__embedded_devices[];

struct ft__embedded_alias {
    const char *alias, *name;
};

extern const size_t ft__embedded_alias_count;
extern const struct ft__embedded_alias ft__embedded_aliases[];

/* By vendor and compute capability, older ones first. */
struct ft__embedded_kin {
    const char *capability, *generation, *chip, *name;
    ft_vendor vendor;
};

extern const size_t ft__embedded_kin_count;
extern const struct ft__embedded_kin ft__embedded_kin[];
#endif
