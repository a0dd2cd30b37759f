/* The catalogues as JSON: answers of "gpus" and "models", and single sheets. */
#ifndef FT_REPORT_JSON_CATALOGUE_ANSWER_H
#define FT_REPORT_JSON_CATALOGUE_ANSWER_H
#include "study/catalogue.h"

/* {"ok":true,"gpus":[...]}; {"ok":true,"models":[...]}, or "types" where those were asked for. */
void ft__answer_gpus(ft_text *out, const json_t *id, const ft_gpu_list *list);
void ft__answer_models(ft_text *out, const json_t *id, const ft_model_list *list);
/* One of them: a spec object that can be given as a GPU again, and a model's sheet. */
void ft__answer_gpu(ft_text *out, const ft_device *device);
void ft__answer_model(ft_text *out, const ft_model_sheet *sheet);
#endif
