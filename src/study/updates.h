/* Several updates on what was generated once, and packs that are filled up. */
#ifndef FT_STUDY_UPDATES_H
#define FT_STUDY_UPDATES_H
#include "study/step.h"

/* One of the updates: with its part of the micro-batches, and those that packs' filling makes of them. */
ft_status ft__updates_one(const ft_model_request *r, ft_model_request *one, ft_error *err);
/* The forecast step of one makes all of them. */
void ft__updates_apply(const ft_model_request *r, const ft_model_request *one, ft_step *step);
#endif
