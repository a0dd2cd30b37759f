/* One picture as a request asks for it. */
#ifndef FT_REPORT_HTML_SVG_ASKED_H
#define FT_REPORT_HTML_SVG_ASKED_H
#include "report/text/screen.h"
#include "request/draw.h"
#include "study/step_view.h"

/* `step` or `kernel`: what it is drawn of; both NULL of figures alone. */
ft_status ft__picture_asked(ft_text *out, const ft_drawn_picture *p, const ft_step_view *step,
                            const ft_screen_case *kernel, ft_error *err);
#endif
