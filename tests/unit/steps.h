/* A context for tests of reports, and a forecast with it. */
#ifndef FT_TEST_STEPS_H
#define FT_TEST_STEPS_H
#include "open_context.h"

static json_t *forecast(const char *request, ft_step_view *view)
{
    ft_error err = {0};
    ft_model_request r;
    json_t *object = json_loads(request, 0, NULL);
    assert_non_null(object);
    if (ft__model_request_of(ft, &scratch, object, &r, &err) != FT_OK ||
        ft__step_of(ft, &scratch, &r, view, &err) != FT_OK)
        fail_msg("%s: %s", request, err.message);
    return object; /* the request's words live in it */
}
#endif
