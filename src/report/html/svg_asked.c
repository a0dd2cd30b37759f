/* svg_asked.c: pictures that a request asks for one by one (request/draw.h): the page in a browser, whose places have
 * widths of their own. The same functions draw them for reports; what differs is the frame. */
#include "report/html/svg_asked.h"

#include "report/html/page.h"
#include "report/html/page_serve.h"

enum { NARROW = 440 }; /* pixels: below it rows have their names above them, as on phones */

static ft_frame frame_of(const ft_drawn_picture *p)
{
    return (ft_frame){.width = p->width,
                      .narrow = p->width < NARROW,
                      .alone = !p->embed,
                      .live = p->embed,
                      .plain = p->plain,
                      .height = p->height,
                      .name = p->name,
                      .from_ms = p->window_ms[0],
                      .to_ms = p->window_ms[1]};
}

static const char *id_of(const ft_drawn_picture *p) { return p->name ? p->name : ft__drawn_words[p->what]; }

static bool draw_curves(ft_text *out, const ft_frame *f, const ft_drawn_picture *p)
{
    ft_curves c = {.id = id_of(p),
                   .title = p->title ? p->title : "Curves",
                   .x_name = p->x,
                   .y_name = p->y,
                   .log_x = p->log_x,
                   .log_y = p->log_y,
                   .near = !p->zero,
                   .at = p->has_at ? &p->at : NULL,
                   .limit = p->limit,
                   .limit_name = p->limit_name,
                   .rings = p->rings ? p->rings : ""};
    for (; c.count < p->curve_count && c.count < FT_CURVES; c.count++) {
        const ft_drawn_curve *v = &p->curves[c.count];
        c.curve[c.count] = (ft_curve){.name = v->name,
                                      .x = v->x,
                                      .y = v->y,
                                      .low = v->low && v->high ? v->low : NULL,
                                      .high = v->low && v->high ? v->high : NULL,
                                      .count = v->count,
                                      .unfit = v->hollow,
                                      .steps = v->steps,
                                      .thin = v->thin,
                                      .no_line = !v->line,
                                      .no_dots = !v->dots};
    }
    return ft__svg_curves(out, f, &c);
}

static bool draw_bars(ft_text *out, const ft_frame *f, const ft_drawn_picture *p)
{
    static const ft_key unnamed = {"f0", NULL};
    ft_bar_row rows[FT_DRAWN_ROWS] = {{0}};
    for (size_t i = 0; i < p->row_count; i++)
        rows[i] = (ft_bar_row){
            .label = p->rows[i].name, .remark = p->rows[i].text, .part = {p->rows[i].value}, .look = p->rows[i].look};
    return ft__svg_bars(
        out, f, &(ft_bars){id_of(p), p->title ? p->title : "Bars", p->y, &unnamed, 1, rows, p->row_count, p->whole});
}

static ft_status draw_serving(ft_text *out, const ft_frame *f, const ft_drawn_picture *p, const ft_serving *s,
                              ft_error *err)
{
    static const ft_serving_picture of[] = {FT_SERVING_WAITS, FT_SERVING_TOKENS, FT_SERVING_QUEUE, FT_SERVING_CACHE};
    ft_serving_picture what = of[p->what - FT_DRAWN_AS_WAITS];
    if (!ft__serving_has(s, what))
        return ft__fail(err, FT_E_UNSUPPORTED,
                        what == FT_SERVING_WAITS && !s->stable
                            ? "requests come faster than they are served: there are no \"waits\" to draw"
                            : "too few requests for a picture of \"%s\"",
                        ft__drawn_words[p->what]);
    return ft__svg_serving(out, f, s, what) ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory for a picture");
}

ft_status ft__picture_asked(ft_text *out, const ft_drawn_picture *p, const ft_drawn_of *of, ft_error *err)
{
    ft_frame f = frame_of(p);
    bool drawn = true;
    if (p->what == FT_DRAWN_AS_CURVES)
        drawn = draw_curves(out, &f, p);
    else if (p->what == FT_DRAWN_AS_BARS)
        drawn = draw_bars(out, &f, p);
    else if (of->step)
        return ft__picture_step(out, &f, of->step, ft__drawn_words[p->what], err);
    else if (of->kernel)
        drawn = ft__picture_kernel(out, &f, of->kernel, 1);
    else if (of->serving)
        return draw_serving(out, &f, p, of->serving, err);
    return drawn ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory for a picture");
}
