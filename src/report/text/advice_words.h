/* Advice in words: what to change, why, and the keys of the request that change. */
#ifndef FT_REPORT_TEXT_ADVICE_WORDS_H
#define FT_REPORT_TEXT_ADVICE_WORDS_H
#include "explain/advice.h"
#include "study/step_view.h"

extern const char ft__closed_remark[];                  /* of a step whose exchanges were simulated */
extern const char ft__inexact_remark[];                 /* "* not the same numbers ...", under rows with a star */
extern const char *const ft__loading_words[4];          /* by ft_loading_stage */
extern const char *const ft__lint_words[FT_LINT_KINDS]; /* "alignment" */

/* "pad vocab 50257 to 50304" */
void ft__advice_change(ft_text *out, const ft_advice *a, const ft_change *now);
/* Some of them change more than the last bits of rounding. */
bool ft__advice_inexact(const ft_advice *list, size_t count);
/* "rows of the head ...: contraction 98.2 to 53.1 ms": the reason, then the parts of the step that it changes most. */
void ft__advice_why(ft_text *out, const ft_advice *a, const ft_change *now, const double before[FT_PARTS]);
/* "lm_head n 50257: rows off 16 bytes" and "pad to 50304" */
void ft__lint_finding(ft_text *out, const ft_lint *l);
void ft__lint_fix(ft_text *out, const ft_lint *l);
#endif
