/* Between the files of scaling: the study with its curves, and what it asks of the timeline. */
#ifndef FT_STUDY_SCALE_PROBE_H
#define FT_STUDY_SCALE_PROBE_H
#include "study/ask.h"
#include "study/scale.h"

typedef struct ft_scaler {
    ft_asker ask;
    const ft_scale_request *asked;
    ft_parallel p; /* degrees as asked; dp is the curves' to set */
    int64_t unit;  /* GPUs of one replica, or of one group of experts */
    int64_t batch, seq, global;
    const ft_arch *arch;
    ft_scale *r;
    ft_error *err;
} ft_scaler;

/* One training step with other degrees and sizes; `seq` 0: the model's own. */
ft_status ft__scale_ask(ft_scaler *s, const ft_parallel *p, int64_t batch, int64_t seq, int64_t global,
                        ft_step_view *v);
ft_status ft__scale_closed(const ft_scaler *s, const ft_parallel *p, const ft_workload *work, ft_scaling *out,
                           ft_error *err);
/* Fill s->r->knees, and s->r->tensor or s->r->expert. */
ft_status ft__scale_knees(ft_scaler *s);
ft_status ft__scale_degrees(ft_scaler *s, bool experts, ft_scale_degree *out, size_t *count);
/* Appends a step on `gpus` to a curve; its efficiency is against the curve's first point. */
void ft__scale_add(ft_scale_point *curve, size_t *count, int64_t gpus, int64_t dp, int64_t batch, int64_t global,
                   const ft_step *step);
#endif
