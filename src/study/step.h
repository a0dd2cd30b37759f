/* Between study/step.c and study/advise.c: forecasting a request, once or again with something changed. */
#ifndef FT_STUDY_STEP_H
#define FT_STUDY_STEP_H
#include "study/context.h"

/* A graph takes some hundred KiB; this is for the absurd. */
#define FT_LARGEST_GRAPH ((size_t)512 << 20)

/* Readies arena and memo for a step: whatever lay in the arena is gone. */
ft_status ft__scratch_empty(ft_scratch *s, ft_error *err);
/* One GPU or many, in the scratch's arena, which the caller has emptied; the input counted. view->quantile is set. */
ft_status ft__request_forecast(const ft_context *ft, ft_scratch *s, const ft_model_request *r, ft_step_view *view,
                               ft_step *step, ft_graph **g, ft_error *err);
/* One GPU, and nothing that treats it as one rank of many: DeepSpeed's hooks and buffers are there, too. */
bool ft__step_alone(const ft_model_request *r);
/* The smallest change that makes it fit, as text in the step's arena: step->memory.remedy, "" where it fits. A change
 * that cannot be built is no remedy, and no reason to withhold the answer. (remedy.c) */
ft_status ft__step_remedy(ft_scratch *s, const ft_model_request *r, const ft_graph *g, ft_step *step, ft_error *err);
/* Fills view->asked, and view->advised where the request asks for it. */
ft_status ft__step_advise(const ft_context *ft, ft_scratch *s, const ft_model_request *r, ft_step_view *view,
                          ft_error *err);
#endif
