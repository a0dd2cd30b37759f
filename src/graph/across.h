/* PyTorch's kernels along axes that are not memory's innermost, or not next to each other: how their threads walk
 * (graph/manner.h). */
#ifndef FT_GRAPH_ACROSS_H
#define FT_GRAPH_ACROSS_H
#include "graph/batchnorm.h"

/* A softmax along the middle of [outer, length, inner]; FT_WALK_NONE along the last axis. */
ft_walking ft__softmax_across(double outer, double length, double inner, double element_bytes);
/* Each of `outputs` sums goes over memory's innermost axis and over another, with axes that stay between them, of
 * `length` values together: a convolution's gradient to its bias. */
ft_walking ft__sum_apart(double outputs, double length);
#endif
