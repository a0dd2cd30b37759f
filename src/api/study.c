/* study.c: the tasks that ask several times, from a request's document to its answer. */
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "base/json.h"
#include "report/json/answer.h"
#include "report/json/catalogue_answer.h"
#include "report/json/choose_answer.h"
#include "report/json/fleet_answer.h"
#include "report/json/infer_answer.h"
#include "report/json/largest_answer.h"
#include "report/json/plan_answer.h"
#include "report/json/serve_answer.h"
#include "report/launch/engines.h"
#include "report/launch/launch.h"
#include "report/text/compare_screen.h"
#include "report/text/scale_screen.h"
#include "request/keys.h"
#include "serving/advise.h"
#include "study/sweep.h"
#include "study/warned.h"

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
    if (status == FT_OK) status = ft__infer_of(ft, scratch, &r, ft__serving_step, &found, err);
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
    if (!found) return ft__no_memory(err);
    ft_status status = ft__scale_request_read(document, &r, err);
    if (status == FT_OK) status = ft__scale_of(ft, scratch, &r, found, err);
    if (status == FT_OK) ft__answer_scale(out, id, found);
    ft__scale_free(found);
    free(found);
    ft__scale_request_free(&r);
    return status;
}

static ft_status answer_plan(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                             ft_text *out, ft_error *err)
{
    ft_plan_request r;
    ft_plan *found = calloc(1, sizeof *found); /* some KiB */
    if (!found) return ft__no_memory(err);
    ft_status status = ft__plan_request_read(document, &r, err);
    if (status == FT_OK) status = ft__launch_check(ft, scratch, &r, err);
    if (status == FT_OK) status = ft__plan_of(ft, scratch, &r, found, err);
    if (status == FT_OK) ft__answer_plan(out, id, found);
    ft__plan_free(found);
    free(found);
    ft__plan_request_free(&r);
    return status;
}

static ft_status answer_choose(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                               ft_text *out, ft_error *err)
{
    ft_choose_request r;
    ft_chosen found = {0};
    ft_status status = ft__choose_request_read(document, &r, err);
    if (status == FT_OK) status = ft__choose_of(ft, scratch, &r, &found, err);
    if (status == FT_OK) ft__answer_choose(out, id, &found);
    ft__chosen_free(&found);
    ft__choose_request_free(&r);
    return status;
}

static ft_status answer_plan_serve(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                                   ft_text *out, ft_error *err)
{
    ft_plan_request r;
    ft_fleet found = {0};
    ft_status status = ft__plan_serve_request_read(document, &r, err);
    if (status == FT_OK) status = ft__engine_launch_check(&r, err);
    if (status == FT_OK) status = ft__fleet_of(ft, scratch, &r, &found, err);
    if (status == FT_OK) ft__answer_fleet(out, id, &found);
    ft__fleet_free(&found);
    ft__plan_request_free(&r);
    return status;
}

static ft_status answer_choose_serve(const ft_context *ft, ft_scratch *scratch, const json_t *document,
                                     const json_t *id, ft_text *out, ft_error *err)
{
    ft_choose_request r;
    ft_fleet_chosen found = {0};
    ft_status status = ft__choose_serve_request_read(document, &r, err);
    if (status == FT_OK) status = ft__fleet_choose(ft, scratch, &r, &found, err);
    if (status == FT_OK) ft__answer_fleet_chosen(out, id, &found);
    ft__fleet_chosen_free(&found);
    ft__choose_request_free(&r);
    return status;
}

ft_status ft__answer_asking(void *user, const json_t *request, json_t **out, ft_error *err)
{
    const ft_asking *a = user;
    ft_text answer = {0};
    ft_error refused = {0};
    ft_status status = ft__answer_document(a->ft, a->scratch, request, &answer, &refused);
    if (status != FT_OK) {
        ft__text_clear(&answer);
        ft__answer_error(&answer, NULL, &refused, 0);
    }
    status = answer.at && !answer.failed ? ft__json_parse(answer.at, answer.length, "the answer", out, err)
                                         : ft__no_memory(err);
    ft__text_free(&answer);
    return status;
}

static ft_status answer_serve(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                              ft_text *out, ft_error *err)
{
    ft_serve_request r;
    ft_serving found = {0};
    ft_status status = ft__serve_request_read(document, &r, err);
    bool listed = status == FT_OK && ft__switch_of(&r.said, FT_KEY_ID_PER_REQUEST);
    ft_roll record;
    ft_serving_sink sink = ft__roll_sink(&record, listed ? 1000000 : 0, 0);
    if (status == FT_OK) status = ft__serve_of(ft, scratch, &r, &sink, &found, err);
    bool advised = status == FT_OK && json_is_true(ft__key_get(document, FT_KEY_ID_ADVICE));
    if (advised) status = ft__serving_advise(ft, scratch, &r, &found, err);
    if (status == FT_OK && record.failed) status = ft__no_memory(err);
    if (status == FT_OK)
        ft__answer_serve(out, id, &found, listed ? &record : NULL,
                         json_is_true(ft__key_get(document, FT_KEY_ID_COURSE)));
    ft__roll_free(&record);
    ft__serving_free(&found);
    ft__serve_request_free(&r);
    return status;
}

/* What a point warns of, read off its answer; not looked for where it can change nothing. */
static ft_status hear(const ft_text *out, size_t from, double x, ft_warned *to, ft_error *err)
{
    if (ft__warned_settled(to) || out->failed) return FT_OK;
    const char *said = out->at + from + (out->at[from] == ',');
    json_t *answer = NULL;
    ft_text lines = {0};
    if (strstr(said, "\"warnings\""))
        FT_TRY(ft__json_parse(said, out->length - (size_t)(said - out->at), "the answer", &answer, err));
    ft__warnings_of(answer, &lines);
    ft__warned_add(to, lines.length ? lines.at : "", x);
    bool failed = lines.failed;
    ft__text_free(&lines);
    json_decref(answer);
    return failed ? ft__no_memory(err) : FT_OK;
}

static ft_status answer_points(const ft_context *ft, ft_scratch *scratch, const ft_sweep_request *r, ft_text *out,
                               ft_error *err)
{
    ft_warned warned = {.moving = ft__sweep_key(r)};
    ft_text lines = {0};
    ft_status status = FT_OK;
    ft__json_member_list(out, "answers");
    for (size_t gpu = 0; status == FT_OK && gpu < ft__sweep_gpus(r); gpu++)
        for (size_t i = 0; status == FT_OK && i < r->range.count; i++) {
            json_t *point = NULL;
            size_t from = out->length;
            status = ft__sweep_point(r, gpu, i, &point, err);
            if (status == FT_OK)
                status = ft__sweep_explain(r, i, ft__answer_document(ft, scratch, point, out, err), err);
            if (status == FT_OK) status = hear(out, from, r->range.x[i], &warned, err);
            json_decref(point);
        }
    ft__json_close_list(out);
    ft__warned_lines(&warned, &lines);
    ft__answer_lines(out, "warnings", lines.length ? lines.at : "");
    ft__text_drop(&lines, out);
    ft__warned_free(&warned);
    return status;
}

/* The answers of the points, one after the other, each what a request of that point alone would answer; and what all of
 * them warn of. */
static ft_status answer_sweep(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                              ft_text *out, ft_error *err)
{
    ft_sweep_request r;
    ft_status status = ft__sweep_request_read(document, &r, err);
    if (status == FT_OK) status = ft__sweep_prepare(scratch, &r, err);
    if (status == FT_OK) {
        ft__answer_begin(out, id);
        ft__answer_word(out, "of", json_string_value(ft__key_get(r.base, FT_KEY_ID_TASK)));
        ft__answer_word(out, "key", r.range.key);
        status = answer_points(ft, scratch, &r, out, err);
        ft__json_close(out);
    }
    ft__sweep_request_free(&r);
    return status;
}

static ft_status answer_compare(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                                ft_text *out, ft_error *err)
{
    ft_compare_request r;
    ft_asking asking = {ft, scratch};
    FT_TRY(ft__compare_request_read(document, &r, err));
    ft_comparison *found = calloc(1, sizeof *found); /* some KiB */
    if (!found) return ft__no_memory(err);
    ft_status status = ft__compare_of(&r, ft__answer_asking, &asking, found, err);
    const char *warnings = found->warnings.length ? found->warnings.at : "";
    if (status == FT_OK && !ft__answer_compared(out, id, found->compared, found->count, warnings)) out->failed = true;
    ft__comparison_free(found);
    free(found);
    return status;
}

ft_status ft__answer_study(const ft_context *ft, ft_scratch *scratch, ft_ask ask, const json_t *document,
                           const json_t *id, ft_text *out, ft_error *err)
{
    switch (ask) {
    case FT_ASK_MODELS: return answer_models(scratch, document, id, out, err);
    case FT_ASK_GPUS: return answer_gpus(document, id, out, err);
    case FT_ASK_SERVE: return answer_serve(ft, scratch, document, id, out, err);
    case FT_ASK_INFER: return answer_infer(ft, scratch, document, id, out, err);
    case FT_ASK_LARGEST: return answer_largest(ft, scratch, document, id, out, err);
    case FT_ASK_SCALE: return answer_scale(ft, scratch, document, id, out, err);
    case FT_ASK_SWEEP: return answer_sweep(ft, scratch, document, id, out, err);
    case FT_ASK_COMPARE: return answer_compare(ft, scratch, document, id, out, err);
    case FT_ASK_CHOOSE: return answer_choose(ft, scratch, document, id, out, err);
    case FT_ASK_PLAN_SERVE: return answer_plan_serve(ft, scratch, document, id, out, err);
    case FT_ASK_CHOOSE_SERVE: return answer_choose_serve(ft, scratch, document, id, out, err);
    case FT_ASK_DRAW: return ft__answer_draw(ft, scratch, document, id, out, err);
    case FT_ASK_PLAN: return answer_plan(ft, scratch, document, id, out, err);
    default: return ft__fail(err, FT_E_BUG, "a task that nobody answers");
    }
}
