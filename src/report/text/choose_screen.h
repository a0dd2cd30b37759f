/* A choice of GPUs for people. */
#ifndef FT_REPORT_TEXT_CHOOSE_SCREEN_H
#define FT_REPORT_TEXT_CHOOSE_SCREEN_H
#include "report/text/style.h"
#include "search/choose.h"

/* What a table of choices shows, of which of its columns say anything. `whose`: "offer's that ...". */
typedef struct ft_choices_shown {
    bool front, offers, own; /* a front; prices that were published; the request's own */
} ft_choices_shown;

void ft__choices_note(ft_text *out, const ft_style *style, const ft_choices_shown *shown, const char *whose);
bool ft__screen_choose(ft_text *out, const ft_style *style, const char *model, const ft_chosen *c);
#endif
