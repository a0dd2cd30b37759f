/* Whole models as text for people. Every function appends to `out`; nothing is printed here. */
#ifndef FT_REPORT_TEXT_STEP_SCREEN_H
#define FT_REPORT_TEXT_STEP_SCREEN_H
#include "report/text/style.h"
#include "study/days.h"
#include "study/step_view.h"

/* One step: a calm screen. False: out of memory, as below. */
bool ft__screen_step(ft_text *out, const ft_style *style, const ft_step_view *v);
/* Its title alone: model, GPU (a view without device: several), format, sizes, execution. */
void ft__screen_step_title(ft_text *out, const ft_style *style, const ft_step_view *v);
/* Every block; every kernel, or the `most` most expensive ones. */
bool ft__screen_layers(ft_text *out, const ft_style *style, const ft_step_view *v);
bool ft__screen_kernels(ft_text *out, const ft_style *style, const ft_step_view *v, size_t most);
/* A share of the step: figure, bar, percent, remark. */
void ft__screen_part(ft_text *out, const ft_style *style, const char *label, double ms, double step_ms,
                     const char *remark);
/* Of a step on many GPUs (ranks_screen.c): the layout and what joins the GPUs; whose time is shown, and what it
 * waits for; whose memory is shown; the stages, one row each. */
void ft__screen_layout(ft_text *out, const ft_style *style, const ft_step_view *v);
void ft__screen_slowest(ft_text *out, const ft_style *style, const ft_step_view *v);
void ft__screen_waits(ft_text *out, const ft_style *style, const ft_step_view *v);
void ft__screen_fullest(ft_text *out, const ft_style *style, const ft_step_view *v);
bool ft__screen_stages(ft_text *out, const ft_style *style, const ft_step_view *v);
/* Does it fit, by how much, and what would help. */
void ft__screen_fits(ft_text *out, const ft_style *style, const ft_memory *m);

/* The same step on several GPUs, one row each. */
typedef struct ft_step_case {
    ft_device device;
    ft_step step;     /* its kernels are gone */
    ft_days days;     /* of a whole training, where its tokens are said */
    ft_text warnings; /* one per line; of who made the case */
} ft_step_case;
bool ft__screen_steps(ft_text *out, const ft_style *style, const ft_step_case *cases, size_t count, double quantile);

/* Days to train, as lines of a screen and as a key of an answer. */
void ft__screen_days(ft_text *out, const ft_style *style, const ft_days *d);
void ft__answer_days(ft_text *out, const ft_days *d); /* ,"days":{...} */
#endif
