/* Between the two files of `foretell scale`: the command with its curves, and what is asked of the timeline. */
#ifndef CLI_SCALE_H
#define CLI_SCALE_H
#include "ask.h"
#include "report/text/scale_screen.h"

typedef struct scaler {
    cli_asker ask;
    json_t *asked; /* "parallel" as flags gave it; owned */
    ft_parallel p; /* degrees as asked; dp is the curves' to set */
    int64_t unit;  /* GPUs of one replica, or of one group of experts */
    int64_t batch, seq, global;
    const ft_arch *arch;
    ft_cluster cluster;
    ft_scale r;
    ft_error err;
} scaler;

/* One training step with other degrees and sizes; `seq` 0: the model's own. */
ft_status cli_scale_ask(scaler *s, const ft_parallel *p, int64_t batch, int64_t seq, int64_t global, ft_step_view *v);
ft_status cli_scale_closed(const scaler *s, const ft_parallel *p, const ft_workload *work, ft_scaling *out,
                           ft_error *err);
/* Fill s->r.knees, and s->r.tensor or s->r.expert. */
ft_status cli_scale_knees(scaler *s);
ft_status cli_scale_degrees(scaler *s, bool experts, ft_scale_degree *out, size_t *count);
#endif
