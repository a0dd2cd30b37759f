/* Configs as text, read or refused. */
#ifndef TESTS_CONFIG_READERS_H
#define TESTS_CONFIG_READERS_H
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/json.h"
#include "failing_alloc.h"
#include "import/config/config.h"
#include "scratch.h"

static inline ft_status read_as(const char *text, const char *nearest, ft_arch *arch, ft_error *err)
{
    json_t *config = NULL;
    if (ft__json_parse(text, strlen(text), "test", &config, err) != FT_OK) fail_msg("%s: %s", text, err->message);
    memset(arch, 0xa5, sizeof *arch); /* every field must be set */
    ft_status status = ft__config_read(config, nearest, "model", arch, err);
    json_decref(config);
    return status;
}

static inline ft_arch read_text(const char *text)
{
    ft_arch arch;
    ft_error err = {0};
    if (read_as(text, NULL, &arch, &err) != FT_OK) fail_msg("%s: %s: %s", text, err.where, err.message);
    return arch;
}

static inline void refuses(const char *text, ft_status code, const char *where, const char *says)
{
    ft_arch arch;
    ft_error err = {0};
    if (read_as(text, NULL, &arch, &err) == FT_OK) fail_msg("%s: read", text);
    if (err.code != code) fail_msg("%s: %s instead of %s", text, ft_status_name(err.code), ft_status_name(code));
    if (strcmp(err.where, where) != 0) fail_msg("%s: at %s, expected at %s", text, err.where, where);
    if (!strstr(err.message, says)) fail_msg("%s: \"%s\" does not say \"%s\"", text, err.message, says);
}
#endif
