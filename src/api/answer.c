/* answer.c: a request comes in, an answer goes out. */
#include "api/answer.h"

#include "base/decimal.h"
#include "base/json.h"
#include "report/json/answer.h"
#include "report/json/answer_collective.h"
#include "report/json/answer_step.h"
#include "report/json/plan_answer.h"
#include "report/text/trace_screen.h"
#include "request/keys.h"

/* -- answers ----------------------------------------------------------------------------------- */

static ft_status answer_kernel(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                               ft_text *out, ft_error *err)
{
    ft_request r;
    ft_forecast f;
    FT_TRY(ft__request_of(ft, scratch, document, &r, err));
    FT_TRY(ft__forecast_of(ft, &r, &f, err));
    ft_energy energy = ft__energy_of_kernel(ft, &r, &f);
    ft__answer_kernel(out, id, &f, &energy, r.warnings);
    return FT_OK;
}

static ft_status answer_collective(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                                   ft_text *out, ft_error *err)
{
    ft_collective_request r;
    ft_comm c;
    FT_TRY(ft__collective_request_of(ft, scratch, document, &r, err));
    FT_TRY(ft__exchange_of(ft, scratch, &r, &c, err));
    ft__answer_collective(out, id, &r, &c, r.warnings);
    return FT_OK;
}

static ft_status answer_trace(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                              ft_text *out, ft_error *err)
{
    ft_trace_request r;
    ft_trace_report s;
    FT_TRY(ft__trace_request_read(document, &r, err));
    ft_status status = ft__trace_of(ft, scratch, &r, &s, err);
    if (status == FT_OK) ft__answer_trace(out, id, &s);
    ft__trace_report_free(&s);
    return status;
}

ft_status ft__view_document(const ft_context *ft, ft_scratch *scratch, const json_t *document, ft_planned *planned,
                            ft_step_view *out, ft_error *err)
{
    ft_model_request r;
    FT_TRY(ft__plan_first(ft, scratch, document, planned, err));
    FT_TRY(ft__model_request_of(ft, scratch, planned->request ? planned->request : document, &r, err));
    return ft__step_of(ft, scratch, &r, out, err);
}

void ft__answer_view(ft_text *out, const json_t *id, const ft_step_view *view, const ft_planned *planned)
{
    ft__answer_step(out, id, view);
    if (planned->tried) ft__answer_planned(out, planned);
}

static ft_status answer_model(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                              ft_text *out, ft_error *err)
{
    ft_step_view view;
    ft_planned planned;
    ft_status status = ft__view_document(ft, scratch, document, &planned, &view, err);
    if (status == FT_OK) ft__answer_view(out, id, &view, &planned);
    ft__planned_free(&planned);
    return status;
}

ft_status ft__answer_document(const ft_context *ft, ft_scratch *scratch, const json_t *document, ft_text *out,
                              ft_error *err)
{
    ft_ask ask;
    const json_t *id = ft__key_get(document, FT_KEY_ID_ID);
    FT_TRY(ft__request_task(document, &ask, err));
    return ask == FT_ASK_KERNEL                          ? answer_kernel(ft, scratch, document, id, out, err)
           : ask == FT_ASK_COLLECTIVE                    ? answer_collective(ft, scratch, document, id, out, err)
           : ask == FT_ASK_TRACE                         ? answer_trace(ft, scratch, document, id, out, err)
           : ask >= FT_ASK_MODELS || ask == FT_ASK_SERVE ? ft__answer_study(ft, scratch, ask, document, id, out, err)
                                                         : answer_model(ft, scratch, document, id, out, err);
}

static void answer(const ft_context *ft, ft_scratch *scratch, const char *request, size_t length, int64_t line,
                   ft_text *out)
{
    ft_error err = {0};
    json_t *document = NULL;
    ft_status status = ft__json_parse(request, length, "", &document, &err);
    if (status != FT_OK) {
        ft__answer_error(out, NULL, &err, line);
        return;
    }
    const json_t *id = ft__key_get(document, FT_KEY_ID_ID);
    size_t before = out->length;
    bool whole = !out->failed;
    status = ft__answer_document(ft, scratch, document, out, &err);
    if (status != FT_OK && whole) { /* what was begun of it is taken back */
        out->failed = false;
        out->length = before;
    }
    /* An answer that broke off is taken back: its line says so, and the lines after it are answered. */
    if (status == FT_OK && whole && out->failed) {
        out->failed = false;
        out->length = before;
        status = ft__fail(&err, FT_E_MEMORY, "out of memory: the answer broke off");
    }
    if (status != FT_OK) ft__answer_error(out, id, &err, line);
    json_decref(document);
}

void ft__answer(const ft_context *ft, ft_scratch *scratch, const char *request, size_t length, int64_t line,
                ft_text *out)
{
    ft_decimal points;
    ft__decimal_begin(&points);
    answer(ft, scratch, request, length, line, out);
    ft__decimal_end(&points);
}
