/* The same study on several kinds of GPU, side by side. */
#ifndef FT_REPORT_TEXT_SEVERAL_SCREEN_H
#define FT_REPORT_TEXT_SEVERAL_SCREEN_H
#include "report/text/style.h"
#include "study/infer.h"
#include "study/largest.h"
#include "study/scale.h"

/* Lengths and batches down, GPUs across; as many tables as the terminal's width asks for. Of each answer only figures
 * are read, so that they may be of steps that are gone; `title` is what is said above them. */
void ft__infers_title(ft_text *out, const ft_style *style, const ft_infer *r);
bool ft__screen_infers(ft_text *out, const ft_style *style, const char *title, const ft_infer *cases,
                       const ft_device *devices, size_t count);

/* What a row says of one largest model, and of one study of scaling: taken while its step is there. */
typedef struct ft_largest_row {
    ft_device device;
    bool training;
    int64_t layers, hidden;
    double parameters, need_bytes, capacity_bytes, step_ms, tokens_per_s, mfu, days;
} ft_largest_row;
ft_largest_row ft__largest_row_of(const ft_largest *r);
bool ft__screen_largests(ft_text *out, const ft_style *style, const ft_largest_row *rows, size_t count);

/* A row per GPU: tokens that hide FSDP's exchange, ways of tensor parallel, ends of the two curves. */
bool ft__screen_scales(ft_text *out, const ft_style *style, const ft_scale *const *cases, size_t count);
#endif
