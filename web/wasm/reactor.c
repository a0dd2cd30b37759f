/* reactor.c: the library as WebAssembly, seen from JavaScript.
 *
 * One module instance is one context with one session: a worker's. The page writes the predictor's bytes and requests
 * into memory that it asked for, and reads answers out of it; what a function returns lies there until the next call of
 * the same function. */
#include <stdlib.h>
#include <string.h>

#include "foretell.h"

/* Declared as it is defined: nobody in C calls these. */
#define EXPORT(name, declaration)                   \
    __attribute__((export_name(name))) declaration; \
    declaration

static ft_context *context;
static ft_session *session;
static ft_error failure;
static size_t answer_length;

EXPORT("alloc", void *web_alloc(size_t size)) { return malloc(size ? size : 1); }
EXPORT("free", void web_free(void *at)) { free(at); }
EXPORT("version", const char *web_version(void)) { return ft_version(); }

/* 0, or an ft_status that error() explains. The predictor stays where it is, for as long as the instance lives. */
EXPORT("open", int web_open(const void *predictor, size_t length, double quantile))
{
    ft_options options;
    ft_options_init(&options);
    options.predictor_data = predictor;
    options.predictor_length = length;
    options.quantile = quantile;
    memset(&failure, 0, sizeof failure);
    ft_status s = ft_open(&context, &options, &failure);
    if (s == FT_OK) s = ft_session_open(&session, context, &failure);
    return (int)s;
}

/* What files held when they were read is forgotten; the predictor and the catalogue stay. 0, or an ft_status. */
EXPORT("renew", int web_renew(void))
{
    ft_session_close(session);
    session = NULL;
    return (int)ft_session_open(&session, context, &failure);
}

EXPORT("error", const char *web_error(void)) { return failure.message; }

/* NULL: out of memory. */
EXPORT("answer", const char *web_answer(const char *request, size_t length))
{
    return session ? ft_session_answer(session, request, length, &answer_length) : NULL;
}
EXPORT("answer_length", size_t web_answer_length(void)) { return answer_length; }
