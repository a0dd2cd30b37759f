/* A whole-model forecast as JSON: one object, one line, the keys of docs/interface.md. */
#ifndef FT_REPORT_JSON_ANSWER_STEP_H
#define FT_REPORT_JSON_ANSWER_STEP_H
#include <jansson.h>

#include "study/step_view.h"

void ft__answer_step(ft_text *out, const json_t *id, const ft_step_view *v);
/* The layout, the cluster, exchanges by axis, with details the stages (answer_ranks.c); for views with `ranked`. */
void ft__answer_ranks(ft_text *out, const ft_step_view *v);
/* Loading, advice, verdicts, findings and techniques where they were asked for (answer_advice.c). */
void ft__answer_advice(ft_text *out, const ft_step_view *v);
/* The step over time: passes, walks, memory, the pipeline (answer_course.c). */
void ft__answer_course(ft_text *out, const ft_step_view *v);
/* Drawings as SVG, by name (answer_pictures.c). */
void ft__answer_pictures(ft_text *out, const ft_step_view *v);
/* Why a kernel is bound by what it is held by. */
void ft__answer_evidence(ft_text *out, const ft_step_view *v, const ft_merged *m);
#endif
