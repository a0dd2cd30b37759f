/* Questions about serving through the JSON door, and figures of their answers. */
#ifndef SERVING_ASK_H
#define SERVING_ASK_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "foretell.h"

static ft_context *ft;

static inline int open_context(void **state)
{
    (void)state;
    return ft_open(&ft, NULL, NULL) == FT_OK ? 0 : -1;
}

static inline int close_context(void **state)
{
    (void)state;
    ft_close(ft);
    return 0;
}

#define MODEL "\"task\":\"serve\",\"model\":\"llama-3.1-8b\",\"gpu\":\"h100_sxm\""

/* Keys after a comma are of the usual model; others are a whole request. */
static inline json_t *ask(const char *keys)
{
    char request[1024];
    snprintf(request, sizeof request, "{%s%s}", *keys == ',' ? MODEL : "", keys);
    char *text = ft_answer(ft, request);
    assert_non_null(text);
    json_t *answer = json_loads(text, 0, NULL);
    if (!json_is_true(json_object_get(answer, "ok"))) fail_msg("%s: %s", request, text);
    free(text);
    return answer;
}

static inline double figure(const char *keys, const char *key)
{
    json_t *answer = ask(keys), *at = answer;
    char path[64], *dot;
    strcpy(path, key);
    for (char *part = path; part; part = dot) {
        dot = strchr(part, '.');
        if (dot) *dot++ = '\0';
        at = json_object_get(at, part);
    }
    if (!json_is_number(at)) fail_msg("%s has no %s", keys, key);
    double value = json_number_value(at);
    json_decref(answer);
    return value;
}

static inline double of_list(const char *keys, const char *list, const char *key)
{
    json_t *answer = ask(keys);
    double value = json_number_value(json_object_get(json_array_get(json_object_get(answer, list), 0), key));
    json_decref(answer);
    if (value <= 0) fail_msg("%s has no %s", keys, key);
    return value;
}
#endif
