/* Between study/step.c and study/advise.c: forecasting a request, once or again with something changed. */
#ifndef FT_STUDY_STEP_H
#define FT_STUDY_STEP_H
#include "study/context.h"

/* Readies arena and memo for a step: whatever lay in the arena is gone. */
ft_status ft__scratch_empty(ft_scratch *s, ft_error *err);
/* One GPU or many, in the scratch's arena, which the caller has emptied; the input counted. view->quantile is set. */
ft_status ft__request_forecast(const ft_context *ft, ft_scratch *s, const ft_model_request *r, ft_step_view *view,
                               ft_step *step, ft_graph **g, ft_error *err);
/* Fills view->asked, and view->advised where the request asks for it. */
ft_status ft__step_advise(const ft_context *ft, ft_scratch *s, const ft_model_request *r, ft_step_view *view,
                          ft_error *err);
#endif
