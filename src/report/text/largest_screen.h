/* The largest model of a family, as text and as JSON. */
#ifndef FT_REPORT_TEXT_LARGEST_SCREEN_H
#define FT_REPORT_TEXT_LARGEST_SCREEN_H
#include "report/text/step_screen.h"

typedef struct ft_largest {
    const char *family;
    bool training;
    int64_t gpus;
    int64_t layers, hidden, heads, ffn, vocab; /* of the largest that fits; layers 0: none does */
    double need_bytes;      /* on each GPU, shards counted */
    double shard_bytes;     /* weights, gradients and states on each */
    double next_parameters; /* one layer more */
    double next_short_bytes;
    ft_days days;           /* training */
} ft_largest;

/* `v`: its step on one GPU; NULL where nothing fits, with the device alone to name. */
bool ft__screen_largest(ft_text *out, const ft_style *style, const ft_device *device, const ft_step_view *v,
                        const ft_largest *r);
/* Its first lines: what was looked for, and how. */
void ft__largest_title(ft_text *out, const ft_style *style, const ft_device *device, const ft_step_view *v,
                       const ft_largest *r);
void ft__answer_largest(ft_text *out, const ft_device *device, const ft_step_view *v, const ft_largest *r);
#endif
