/* study.c: the tasks that ask several times, from a request's document to its answer. */
#include <stdlib.h>

#include "api/answer.h"
#include "report/json/catalogue_answer.h"
#include "report/json/infer_answer.h"
#include "report/json/largest_answer.h"
#include "report/text/scale_screen.h"

static ft_status answer_gpus(const json_t *document, const json_t *id, ft_text *out, ft_error *err)
{
    ft_gpus_request r;
    ft_gpu_list list;
    FT_TRY(ft__gpus_request_read(document, &r, err));
    ft_status status = ft__gpus_of(&r, &list, err);
    if (status == FT_OK) ft__answer_gpus(out, id, &list);
    ft__gpu_list_free(&list);
    return status;
}

static ft_status answer_models(ft_scratch *scratch, const json_t *document, const json_t *id, ft_text *out,
                               ft_error *err)
{
    ft_models_request r;
    ft_model_list list;
    FT_TRY(ft__models_request_read(document, &r, err));
    ft_status status = ft__models_of(scratch, &r, &list, err);
    if (status == FT_OK) ft__answer_models(out, id, &list);
    ft__model_list_free(&list);
    return status;
}

static ft_status answer_infer(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                              ft_text *out, ft_error *err)
{
    ft_infer_request r;
    ft_infer found = {0};
    ft_status status = ft__infer_request_read(document, &r, err);
    if (status == FT_OK) status = ft__infer_of(ft, scratch, &r, &found, err);
    if (status == FT_OK) ft__answer_infer(out, id, &found);
    ft__infer_free(&found);
    ft__infer_request_free(&r);
    return status;
}

static ft_status answer_largest(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                                ft_text *out, ft_error *err)
{
    ft_largest_request r;
    ft_largest found;
    ft_status status = ft__largest_request_read(document, &r, err);
    if (status == FT_OK) status = ft__largest_of(ft, scratch, &r, &found, err);
    if (status == FT_OK) ft__answer_largest(out, id, &found);
    ft__largest_request_free(&r);
    return status;
}

static ft_status answer_scale(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                              ft_text *out, ft_error *err)
{
    ft_scale_request r;
    ft_scale *found = calloc(1, sizeof *found); /* some KiB: curves and a cluster */
    if (!found) return ft__fail(err, FT_E_MEMORY, "out of memory");
    ft_status status = ft__scale_request_read(document, &r, err);
    if (status == FT_OK) status = ft__scale_of(ft, scratch, &r, found, err);
    if (status == FT_OK) ft__answer_scale(out, id, found);
    ft__scale_free(found);
    free(found);
    ft__scale_request_free(&r);
    return status;
}

ft_status ft__answer_study(const ft_context *ft, ft_scratch *scratch, ft_ask ask, const json_t *document,
                           const json_t *id, ft_text *out, ft_error *err)
{
    switch (ask) {
    case FT_ASK_MODELS: return answer_models(scratch, document, id, out, err);
    case FT_ASK_GPUS: return answer_gpus(document, id, out, err);
    case FT_ASK_INFER: return answer_infer(ft, scratch, document, id, out, err);
    case FT_ASK_LARGEST: return answer_largest(ft, scratch, document, id, out, err);
    case FT_ASK_SCALE: return answer_scale(ft, scratch, document, id, out, err);
    default: return ft__fail(err, FT_E_BUG, "a task that nobody answers");
    }
}
