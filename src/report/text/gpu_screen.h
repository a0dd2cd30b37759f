/* The catalogue as a table, one GPU as a sheet, both also as JSON. */
#ifndef FT_REPORT_TEXT_GPU_SCREEN_H
#define FT_REPORT_TEXT_GPU_SCREEN_H
#include <jansson.h>

#include "foretell.h"
#include "report/text/style.h"

bool ft__screen_gpus(ft_text *out, const ft_style *style, const ft_device *devices, size_t count);
/* `spec` is the file as it was read (sources and notes are taken from it), NULL for none; `warnings` one per line. */
bool ft__screen_gpu(ft_text *out, const ft_style *style, const ft_device *device, const json_t *spec,
                    const char *warnings);
void ft__answer_gpu(ft_text *out, const ft_device *device);

const char *ft__vendor_name(ft_vendor v);
#endif
