/* The scaling curves of a training step's page. */
#ifndef CLI_TRAIN_SCALE_H
#define CLI_TRAIN_SCALE_H
#include "ask.h"
#include "report/text/scale_screen.h"

/* The step of `v`, asked for by `a`, on ever more GPUs: data parallel over the layout it has, the global batch kept
 * (strong) or the batch of a replica (weak). What cannot be laid out so is left out; curves may come out empty. The
 * view stays. */
ft_status cli_train_scale(const cli_asker *a, const ft_step_view *v, ft_scale *out, ft_error *err);
#endif
