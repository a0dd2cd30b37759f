/* draw.c: pictures of a request, or of figures that stand in it, from a request's document to its answer. The step is
 * asked once, however many pictures there are of it. */
#include "api/answer.h"
#include "report/html/svg_asked.h"
#include "report/json/answer.h"

static ft_status draw_all(const ft_draw_request *r, const json_t *id, const ft_step_view *step,
                          const ft_screen_case *kernel, ft_text *out, ft_error *err)
{
    ft_text drawn = {0};
    ft_status status = FT_OK;
    ft__answer_begin(out, id);
    ft__json_member_list(out, "pictures");
    for (size_t i = 0; status == FT_OK && i < r->count; i++) {
        ft__text_clear(&drawn);
        status = ft__picture_asked(&drawn, &r->pictures[i], step, kernel, err);
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
    return draw_all(r, id, NULL, &kernel, out, err);
}

static ft_status draw_step(const ft_context *ft, ft_scratch *scratch, const ft_draw_request *r, const json_t *id,
                           ft_text *out, ft_error *err)
{
    ft_step_view view;
    ft_planned planned;
    ft_status status = ft__view_document(ft, scratch, r->of, &planned, &view, err);
    if (status == FT_OK) status = draw_all(r, id, &view, NULL, out, err);
    ft__planned_free(&planned);
    return status;
}

ft_status ft__answer_draw(const ft_context *ft, ft_scratch *scratch, const json_t *document, const json_t *id,
                          ft_text *out, ft_error *err)
{
    ft_draw_request r;
    ft_arena *arena = ft__arena_new((size_t)64 << 20);
    if (!arena) return ft__fail(err, FT_E_MEMORY, "out of memory");
    ft_status status = ft__draw_request_read(document, arena, &r, err);
    if (status == FT_OK)
        status = !r.of                    ? draw_all(&r, id, NULL, NULL, out, err)
                 : r.ask == FT_ASK_KERNEL ? draw_kernel(ft, scratch, &r, id, out, err)
                                          : draw_step(ft, scratch, &r, id, out, err);
    ft__arena_free(arena);
    return status;
}
