/* Requests as the typed readers take them, without a forecast behind: the table of keys, the readers of every task,
 * what they ask of catalogues. Whatever the JSON, a typed request or an error with a key and a sentence. Where
 * fuzz_json_request answers hundreds of requests a second, this reads thousands; both are edited by the key table. */
#include <string.h>

#include "api/answer.h"
#include "base/text.h"
#include "fuzz.h"
#include "request/catalogue.h"
#include "request/choose.h"
#include "request/compare.h"
#include "request/infer.h"
#include "request/largest.h"
#include "request/plan.h"
#include "request/scale.h"
#include "request/serve.h"
#include "request/sweep.h"
#include "request_edit.h"

static void check_text(const char *text)
{
    json_t *valid = json_string(text); /* NULL where the text is not UTF-8 */
    FUZZ_CHECK(valid);
    json_decref(valid);
}

#define STUDY(type, read, release)             \
    {                                          \
        type r;                                \
        ft_status s = read(document, &r, err); \
        release(&r);                           \
        return s;                              \
    }
#define PLAIN(type, read)               \
    {                                   \
        type r;                         \
        return read(document, &r, err); \
    }

static ft_status read_request(const ft_context *ft, ft_scratch *scratch, const json_t *document, ft_error *err)
{
    ft_ask task;
    ft_request kernel;
    ft_collective_request exchange;
    ft_model_request step;
    ft_trace_request trace;
    FT_TRY(ft__request_task(document, &task, err));
    switch (task) {
    case FT_ASK_KERNEL: return ft__request_of(ft, scratch, document, &kernel, err);
    case FT_ASK_COLLECTIVE: return ft__collective_request_of(ft, scratch, document, &exchange, err);
    case FT_ASK_TRACE: return ft__trace_request_read(document, &trace, err);
    case FT_ASK_SERVE: STUDY(ft_serve_request, ft__serve_request_read, ft__serve_request_free)
    case FT_ASK_MODELS: PLAIN(ft_models_request, ft__models_request_read)
    case FT_ASK_GPUS: PLAIN(ft_gpus_request, ft__gpus_request_read)
    case FT_ASK_COMPARE: PLAIN(ft_compare_request, ft__compare_request_read)
    case FT_ASK_INFER: STUDY(ft_infer_request, ft__infer_request_read, ft__infer_request_free)
    case FT_ASK_LARGEST: STUDY(ft_largest_request, ft__largest_request_read, ft__largest_request_free)
    case FT_ASK_SCALE: STUDY(ft_scale_request, ft__scale_request_read, ft__scale_request_free)
    case FT_ASK_SWEEP: STUDY(ft_sweep_request, ft__sweep_request_read, ft__sweep_request_free)
    case FT_ASK_PLAN: STUDY(ft_plan_request, ft__plan_request_read, ft__plan_request_free)
    case FT_ASK_PLAN_SERVE: STUDY(ft_plan_request, ft__plan_serve_request_read, ft__plan_request_free)
    case FT_ASK_CHOOSE: STUDY(ft_choose_request, ft__choose_request_read, ft__choose_request_free)
    case FT_ASK_CHOOSE_SERVE: STUDY(ft_choose_request, ft__choose_serve_request_read, ft__choose_request_free)
    default: return ft__model_request_of(ft, scratch, document, &step, err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static ft_context *context;
    static ft_scratch scratch; /* kept, as a thread keeps it between requests */
    json_t *document = NULL;
    ft_error err = {0};
    if (!context) FUZZ_CHECK(ft_open(&context, NULL, NULL) == FT_OK);
    if (ft__json_parse((const char *)data, size, "", &document, NULL) != FT_OK) return 0;
    if (!fuzz_leads_to_a_file(document)) {
        ft_status status = read_request(context, &scratch, document, &err);
        FUZZ_CHECK(status == FT_OK || err.code == status);
        FUZZ_CHECK(status != FT_E_BUG && status != FT_E_MEMORY && status < FT_STATUS_COUNT);
        if (status != FT_OK) {
            FUZZ_CHECK(err.message[0]);
            check_text(err.message);
            check_text(err.where);
        }
    }
    json_decref(document);
    return 0;
}
