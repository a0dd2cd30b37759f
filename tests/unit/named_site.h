/* Sites for tests that call their nodes anything: as a file's names are read (import/site.h). */
#ifndef FT_TESTS_NAMED_SITE_H
#define FT_TESTS_NAMED_SITE_H
#include "import/site.h"

static inline ft_at named_site(ft_graph *g, const char *name)
{
    ft_at at = ft__import_site(g, name);
    return at ? at : FT_AT(NONE); /* where an allocation is made to fail */
}
#endif
