/* answer_pictures.c: drawings of a step inside its answer, for who shows answers without drawing them: a notebook. */
#include "report/html/page.h"
#include "report/json/answer.h"
#include "report/json/answer_step.h"

/* What there is to draw: of memory alone no times, of one stage no pipeline. */
static bool drawable(const ft_step_view *v, int picture)
{
    if (v->memory_only) return picture == FT_PICTURE_MEMORY;
    return picture != FT_PICTURE_PIPELINE || (v->ranked && v->ranked->stage_count > 1);
}

void ft__answer_pictures(ft_text *out, const ft_step_view *v)
{
    bool any = false;
    for (int i = 0; i < FT_PICTURE_COUNT; i++) {
        ft_text drawn = {0};
        if (!(v->pictures & 1u << i) || !drawable(v, i)) continue;
        if (!any) ft__json_member_open(out, "pictures");
        any = true;
        ft_status status = ft__picture_step(&drawn, &ft__frame_alone, v, ft__picture_words[i], NULL);
        if (status != FT_OK || drawn.failed) out->failed = true;
        ft__json_member_text(out, ft__picture_words[i], drawn.at);
        ft__text_drop(&drawn, out);
    }
    if (any) ft__json_close(out);
}
