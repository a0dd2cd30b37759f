/* A context with its scratch, open while a group of tests runs. */
#ifndef FT_TEST_OPEN_CONTEXT_H
#define FT_TEST_OPEN_CONTEXT_H
#include "study/context.h"

static ft_context *ft;
static ft_scratch scratch;

static int open_context(void **state)
{
    (void)state;
    return ft_open(&ft, NULL, NULL) == FT_OK ? 0 : -1;
}

static int close_context(void **state)
{
    (void)state;
    ft__scratch_free(&scratch);
    ft_close(ft);
    return 0;
}
#endif
