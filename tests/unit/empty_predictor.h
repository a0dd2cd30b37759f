/* A predictor without experts, which answers everything from the roofline, and a context that is open with it. */
#ifndef FT_TEST_EMPTY_PREDICTOR_H
#define FT_TEST_EMPTY_PREDICTOR_H
#include <stdlib.h>
#include <string.h>

#include "foretell.h"
#include "kernel/predictor.h"
#include "scratch.h"

static const char *predictor_path;

static int make_predictor(void **state)
{
    void *bytes;
    size_t length;
    if (scratch_make(state)) return -1;
    if (ft__predictor_write(NULL, 0, NULL, 0, "{}", &bytes, &length, NULL) != FT_OK) return -1;
    static char path[4096];
    strcpy(path, scratch_file("empty.ftp", bytes, length));
    predictor_path = path;
    free(bytes);
    return 0;
}

static ft_context *opened(void)
{
    ft_context *ft;
    ft_error err = {0};
    ft_options options = {.predictor = predictor_path};
    if (ft_open(&ft, &options, &err) != FT_OK) fail_msg("%s: %s", err.where, err.message);
    return ft;
}
#endif
