/* Behind ft_context: what a thread keeps between requests, and answering without copying. */
#ifndef FT_CONTEXT_H
#define FT_CONTEXT_H
#include <jansson.h>

#include "base/error.h"
#include "base/text.h"
#include "kernel/predictor.h"
#include "request.h"

/* One thread's memory of the devices that requests spelled out: spec objects and files. Zero it before the first use;
 * a file that changes while it is remembered is not read again. */
enum { FT_REMEMBERED_DEVICES = 4 };
typedef struct ft_scratch {
    json_t *spec[FT_REMEMBERED_DEVICES];
    ft_device device[FT_REMEMBERED_DEVICES];
    ft_text warnings[FT_REMEMBERED_DEVICES]; /* of the specs' checks, one per line */
    unsigned next;
} ft_scratch;
void ft__scratch_free(ft_scratch *s);

/* Appends one answer without a line break: never nothing, unless memory ran out (out->failed). `line` numbers the
 * request in a stream, 0 for a single one. */
void ft__answer(const ft_context *ft, ft_scratch *scratch, const char *request, size_t length, int64_t line,
                ft_text *out);

/* The same in steps: the request and its device live as long as the document and the scratch. */
ft_status ft__request_of(const ft_context *ft, ft_scratch *scratch, const json_t *object, ft_request *out,
                         ft_error *err);
ft_status ft__forecast_of(const ft_context *ft, const ft_request *request, ft_forecast *out, ft_error *err);

const ft_predictor *ft__context_predictor(const ft_context *ft);
#endif
