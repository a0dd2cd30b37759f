/* Days to train on so many tokens: the forecast, and the closed formula beside it. */
#ifndef FT_STUDY_DAYS_H
#define FT_STUDY_DAYS_H
#include "study/step_view.h"

typedef struct ft_days {
    double tokens, gpus;
    bool laid_out;             /* the step is that of all GPUs */
    bool fits;                 /* in their memory; else the days are those of GPUs that had more */
    double steps, days;        /* tokens over the forecast rate of all GPUs */
    double achieved_tflops;    /* what ran, recomputation counted, per GPU */
    double closed_8, closed_6; /* 8TP/(nX): forward, recomputation, backward; 6TP/(nX): without recomputation */
} ft_days;
ft_days ft__days_of(const ft_step_view *v, double tokens, double gpus);
#endif
