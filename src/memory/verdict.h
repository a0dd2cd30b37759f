/* What fits: a verdict, and how likely it is. */
#ifndef FT_MEMORY_VERDICT_H
#define FT_MEMORY_VERDICT_H
#include "timeline/step.h"

extern const char *const ft__fit_words[FT_FIT_COUNT];
/* The answers to "does it fit?" */
extern const char *const ft__fit_answers[FT_FIT_COUNT];
/* From what is held and what the device has; `work` says whether its software was named. */
void ft__judge(ft_memory *m, const ft_workload *work);
#endif
