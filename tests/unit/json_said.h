/* What is said of wrong JSON. */
#ifndef FT_TEST_JSON_SAID_H
#define FT_TEST_JSON_SAID_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "failing_alloc.h"
#include "scratch.h"

static json_t *parsed(const char *text)
{
    json_t *root;
    ft_error err;
    if (ft__json_parse(text, strlen(text), "test", &root, &err) != FT_OK) fail_msg("%s: %s", text, err.message);
    return root;
}
#endif
