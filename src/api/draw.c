/* draw.c: pictures of a request, or of figures that stand in it, from a request's document to its answer. The step is
 * asked once, however many pictures there are of it. */
#include "api/answer.h"
#include "report/html/svg_asked.h"
#include "report/json/answer.h"
#include "serving/roll.h"

static ft_status draw_all(const ft_draw_request *r, const json_t *id, const ft_drawn_of *of, ft_text *out,
                          ft_error *err)
{
    ft_text drawn = {0};
    ft_status status = FT_OK;
    ft__answer_begin(out, id);
    ft__json_member_list(out, "pictures");
    for (size_t i = 0; status == FT_OK && i < r->count; i++) {
        ft__text_clear(&drawn);
        status = ft__picture_asked(&drawn, &r->pictures[i], of, err);
        out->failed |= drawn.failed;
        ft__json_add_text(out, drawn.at ? drawn.at : "");
    }
    ft__json_close_list(out);
    ft__json_close(out);
    ft__text_free(&drawn);
    return status;
}

static ft_status draw_kernel(const ft_context *ft, ft_scratch *scratch, const ft_draw_request *r, const json_t *id,
                             ft_text *out, ft_error *err)
{
    ft_request asked;
    ft_screen_case kernel;
    FT_TRY(ft__request_of(ft, scratch, r->of, &asked, err));
    FT_TRY(ft__forecast_of(ft, &asked, &kernel.forecast, err));
    kernel.device = asked.device;
    kernel.op = asked.op;
    return draw_all(r, id, &(ft_drawn_of){.kernel = &kernel}, out, err);
}

static ft_status draw_step(const ft_context *ft, ft_scratch *scratch, const ft_draw_request *r, const json_t *id,
                           ft_text *out, ft_error *err)
{
    ft_step_view view;
    ft_planned planned;
    ft_status status = ft__view_document(ft, scratch, r->of, &planned, &view, err);
    if (status == FT_OK) status = draw_all(r, id, &(ft_drawn_of){.step = &view}, out, err);
    if (status == FT_OK && r->answer) {
        ft_text said = {0};
        ft__answer_view(&said, NULL, &view, &planned);
        ft__json_reopen(out);
        ft__json_member_written(out, "answer", said.at ? said.at : "null");
        ft__json_close(out);
        out->failed |= said.failed;
        ft__text_free(&said);
    }
    ft__planned_free(&planned);
    return status;
}

static ft_status draw_serve(const ft_context *ft, ft_scratch *scratch, const ft_draw_request *r, const json_t *id,
                            ft_text *out, ft_error *err)
{
    ft_serve_request asked;
    ft_serving found = {0};
    ft_roll record;
    ft_serving_sink sink = ft__roll_sink(&record, 0, 0);
    ft_status status = ft__serve_request_read(r->of, &asked, err);
    if (status == FT_OK) status = ft__serve_of(ft, scratch, &asked, &sink, &found, err);
    if (status == FT_OK) status = draw_all(r, id, &(ft_drawn_of){.serving = &found}, out, err);
    ft__roll_free(&record);
    ft__serving_free(&found);
    ft__serve_request_free(&asked);
    return status;
}

ft_status ft__answer_draw(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                          ft_text *out, ft_error *err)
{
    ft_draw_request r;
    ft_arena *arena = ft__arena_new((size_t)64 << 20);
    if (!arena) return ft__no_memory(err);
    ft_status status = ft__draw_request_read(document, arena, &r, err);
    if (status == FT_OK)
        status = !r.of                    ? draw_all(&r, id, &(ft_drawn_of){0}, out, err)
                 : r.ask == FT_ASK_SERVE  ? draw_serve(ft, scratch, &r, id, out, err)
                 : r.ask == FT_ASK_KERNEL ? draw_kernel(ft, scratch, &r, id, out, err)
                                          : draw_step(ft, scratch, &r, id, out, err);
    ft__arena_free(arena);
    return status;
}
