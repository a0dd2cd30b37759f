/* finish.c: finishing functions by the name that an architecture's file gives. */
#include "import/config/finish.h"

#include <string.h>

#include "base/text.h"

static const char *const names[] = {
#define X(name) #name,
    FT_FINISHES(X)
#undef X
};
static ft_config_finish *const functions[] = {
#define X(name) ft__finish_##name,
    FT_FINISHES(X)
#undef X
};
enum { COUNT = sizeof names / sizeof *names };

ft_config_finish *ft__finish_find(const char *name, const char **nearest)
{
    for (size_t i = 0; i < COUNT; i++)
        if (!strcmp(name, names[i])) return functions[i];
    *nearest = ft__nearest(name, names, COUNT);
    return NULL;
}
