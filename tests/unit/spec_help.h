/* Spec objects read, accepted and refused. */
#ifndef FT_TEST_SPEC_HELP_H
#define FT_TEST_SPEC_HELP_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "device/gpu.h"
#include "failing_alloc.h"
#include "scratch.h"

static void assert_near(double expected, double got, double tolerance)
{
    if (!(fabs(expected - got) <= tolerance)) fail_msg("expected %.10g, got %.10g", expected, got);
}

static ft_status read_spec(const char *text, ft_device *out, ft_text *warnings, ft_error *err)
{
    json_t *json = NULL;
    assert_int_equal(FT_OK, ft__json_parse(text, strlen(text), "test", &json, err));
    ft_status status = ft__device_read(json, "gpu", out, warnings, err);
    json_decref(json);
    return status;
}

/* The device, and the warnings it gave; the text lives until the next call. */
static ft_device accepted(const char *text, const char **said)
{
    static ft_text warnings;
    ft__text_free(&warnings);
    ft_device device;
    ft_error err = {0};
    if (read_spec(text, &device, &warnings, &err) != FT_OK) fail_msg("%s: %s", err.where, err.message);
    if (said) *said = warnings.at ? warnings.at : "";
    return device;
}

static void assert_says(const char *said, const char *line)
{
    if (!strstr(said, line)) fail_msg("expected \"%s\" in:\n%s", line, said);
}

static void refused(const char *text, ft_status code, const char *where, const char *message)
{
    ft_device device;
    ft_error err = {0};
    assert_int_equal(code, read_spec(text, &device, NULL, &err));
    assert_string_equal(message, err.message);
    assert_string_equal(where, err.where);
}
#endif
