/* One picture as a request asks for it. */
#ifndef FT_REPORT_HTML_SVG_ASKED_H
#define FT_REPORT_HTML_SVG_ASKED_H
#include "report/text/screen.h"
#include "request/draw.h"
#include "serving/serve.h"
#include "study/step_view.h"

/* What it is drawn of: one of them, none where it is drawn of figures alone. */
typedef struct ft_drawn_of {
    const ft_step_view *step;
    const ft_screen_case *kernel;
    const ft_serving *serving;
} ft_drawn_of;
ft_status ft__picture_asked(ft_text *out, const ft_drawn_picture *p, const ft_drawn_of *of, ft_error *err);
#endif
