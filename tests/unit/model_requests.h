/* Requests for whole models, read and answered. */
#ifndef FT_TEST_MODEL_REQUESTS_H
#define FT_TEST_MODEL_REQUESTS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/answer.h"
#include "base/json.h"
#include "failing_alloc.h"
#include "open_context.h"

static ft_status read_text(const char *text, ft_model_request *out, ft_error *err)
{
    json_t *document = NULL;
    if (ft__json_parse(text, strlen(text), "", &document, err) != FT_OK) fail_msg("%s: %s", text, err->message);
    ft_status status = ft__model_request_of(ft, &scratch, document, out, err);
    if (out->model && json_string_value(json_object_get(document, "model"))) out->model = NULL; /* dies here */
    json_decref(document);
    return status;
}

static ft_model_request reads(const char *text)
{
    ft_model_request r;
    ft_error err = {0};
    if (read_text(text, &r, &err) != FT_OK) fail_msg("%s: %s: %s", text, err.where, err.message);
    return r;
}
#endif
