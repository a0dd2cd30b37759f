/* A context that is open while a group of tests runs. */
#ifndef FT_TEST_BARE_CONTEXT_H
#define FT_TEST_BARE_CONTEXT_H
#include <stddef.h>

#include "foretell.h"

static ft_context *ft;

static int open_context(void **state)
{
    (void)state;
    return ft_open(&ft, NULL, NULL) == FT_OK ? 0 : -1;
}

static int close_context(void **state)
{
    (void)state;
    ft_close(ft);
    return 0;
}
#endif
