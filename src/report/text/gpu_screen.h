/* The catalogue as a table, one GPU as a sheet, as text. */
#ifndef FT_REPORT_TEXT_GPU_SCREEN_H
#define FT_REPORT_TEXT_GPU_SCREEN_H
#include <jansson.h>

#include "report/text/style.h"
#include "study/catalogue.h"

bool ft__screen_gpus(ft_text *out, const ft_style *style, const ft_gpu_sheet *sheets, size_t count);
bool ft__screen_gpu(ft_text *out, const ft_style *style, const ft_gpu_sheet *sheet);
#endif
