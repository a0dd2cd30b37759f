/* foretell.c: the public interface on top of the rooms. A request comes in, an answer goes out. */
#include "foretell.h"

#include <string.h>

#include "api/answer.h"
#include "base/json.h"
#include "graph/operator.h"
#include "kernel/kernel.h"
#include "report/json/answer.h"
#include "report/json/answer_collective.h"
#include "report/json/answer_step.h"
#include "report/text/trace_screen.h"

ft_status ft_open(ft_context **out, const ft_options *options, ft_error *err)
{
    return ft__context_open(out, options, err);
}

void ft_close(ft_context *ft) { ft__context_close(ft); }

ft_status ft_device_find(const ft_context *ft, const char *name, ft_device *out, ft_error *err)
{
    return ft__context_device(ft, name, out, err);
}

size_t ft_device_count(const ft_context *ft) { return ft__context_device_count(ft); }

ft_status ft_device_at(const ft_context *ft, size_t index, ft_device *out, ft_error *err)
{
    return ft__context_device_at(ft, index, out, err);
}

ft_status ft_op_check(const ft_op *op, const ft_device *device, ft_error *err) { return ft__op_check(op, device, err); }

ft_status ft_kernel(const ft_context *ft, const ft_device *device, const ft_op *op, ft_forecast *out, ft_error *err)
{
    FT_TRY(ft__op_check(op, device, err));
    return ft__context_forecast(ft, device, op, ft__context_quantile(ft), out, err);
}

/* -- answers ----------------------------------------------------------------------------------- */

static ft_status answer_kernel(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                               ft_text *out, ft_error *err)
{
    ft_request r;
    ft_forecast f;
    FT_TRY(ft__request_of(ft, scratch, document, &r, err));
    FT_TRY(ft__forecast_of(ft, &r, &f, err));
    ft__answer_kernel(out, id, &f, r.warnings);
    return FT_OK;
}

static ft_status answer_collective(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                                   ft_text *out, ft_error *err)
{
    ft_collective_request r;
    ft_comm c;
    FT_TRY(ft__collective_request_of(ft, scratch, document, &r, err));
    FT_TRY(ft__exchange_of(ft, scratch, &r, &c, err));
    ft__answer_collective(out, id, &r, &c, ft__device_warnings(scratch, r.device));
    return FT_OK;
}

static ft_status answer_trace(const ft_context *ft, const json_t *document, const json_t *id, ft_text *out,
                              ft_error *err)
{
    ft_trace_request r;
    ft_sight s;
    FT_TRY(ft__trace_request_read(document, &r, err));
    ft_status status = ft__trace_of(ft, &r, &s, err);
    if (status == FT_OK) ft__answer_trace(out, id, &s);
    ft__sight_free(&s);
    return status;
}

static ft_status answer_model(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                              ft_text *out, ft_error *err)
{
    ft_model_request r;
    ft_step_view view;
    FT_TRY(ft__model_request_of(ft, scratch, document, &r, err));
    FT_TRY(ft__step_of(ft, scratch, &r, &view, err));
    ft__answer_step(out, id, &view);
    return FT_OK;
}

void ft__answer(const ft_context *ft, ft_scratch *scratch, const char *request, size_t length, int64_t line,
                ft_text *out)
{
    ft_error err = {0};
    json_t *document = NULL;
    ft_status status = ft__json_parse(request, length, "", &document, &err);
    if (status != FT_OK) {
        ft__answer_error(out, NULL, &err, line);
        return;
    }
    ft_ask ask;
    const json_t *id = json_object_get(document, "id");
    size_t before = out->length;
    bool whole = !out->failed;
    status = ft__request_task(document, &ask, &err);
    if (status == FT_OK)
        status = ask == FT_ASK_KERNEL       ? answer_kernel(ft, scratch, document, id, out, &err)
                 : ask == FT_ASK_COLLECTIVE ? answer_collective(ft, scratch, document, id, out, &err)
                 : ask == FT_ASK_TRACE      ? answer_trace(ft, document, id, out, &err)
                 : ask >= FT_ASK_MODELS     ? ft__answer_study(ft, scratch, ask, document, id, out, &err)
                                            : answer_model(ft, scratch, document, id, out, &err);
    /* An answer that broke off is taken back: its line says so, and the lines after it are answered. */
    if (status == FT_OK && whole && out->failed) {
        out->failed = false;
        out->length = before;
        status = ft__fail(&err, FT_E_MEMORY, "out of memory: the answer broke off");
    }
    if (status != FT_OK) ft__answer_error(out, id, &err, line);
    json_decref(document);
}

char *ft_answer(const ft_context *ft, const char *request)
{
    ft_text out = {0};
    ft_scratch scratch = {0};
    ft__answer(ft, &scratch, request ? request : "", request ? strlen(request) : 0, 0, &out);
    ft__scratch_free(&scratch);
    if (out.failed) {
        ft__text_free(&out);
        return NULL;
    }
    return out.at;
}

const char *ft_bound_name(ft_bound b)
{
    static const char *const names[] = {[FT_COMPUTE] = "compute",
                                        [FT_MEMORY] = "memory",
                                        [FT_OVERHEAD] = "overhead",
                                        [FT_COMMUNICATION] = "communication"};
    return (unsigned)b < sizeof names / sizeof *names ? names[b] : "?";
}

const char *ft_source_name(ft_source s)
{
    static const char *const names[] = {[FT_LEARNED] = "learned",
                                        [FT_CALIBRATED] = "calibrated",
                                        [FT_SIBLING] = "sibling",
                                        [FT_PHYSICS] = "physics",
                                        [FT_ROOFLINE] = "roofline"};
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : "?";
}
