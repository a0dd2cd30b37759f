/* Layers one by one (plan.c): which kinds of layers a model has, in which order, and where the order repeats. */
#ifndef FT_MODEL_PLAN_H
#define FT_MODEL_PLAN_H
#include "model/arch.h"

/* A layer as the model's own traits say it. */
ft_layer_shape ft__layer_usual(const ft_arch *a);
/* Layer number `i` of the model, whichever way its layers are said. */
ft_layer_shape ft__layer_at(const ft_arch *a, int64_t i);
/* Fills kinds and order from a->layers of them; false where there are too many kinds. */
bool ft__plan(ft_arch *a, const ft_layer_shape *layers);
/* The architecture as layers of that kind have it: heads, widths, windows in the fields that parts read. */
void ft__layer_arch(const ft_arch *a, const ft_layer_shape *l, ft_arch *out);

/* The order as `before` layers, then `times` repetitions of `period` layers, then the rest: the split with the fewest
 * layers to build. */
typedef struct ft_rhythm {
    int64_t before, period, times;
} ft_rhythm;
ft_rhythm ft__plan_rhythm(const ft_arch *a);
/* After how many layers a rhythm of windows, experts, turns and looks starts again; more than 64 are not told apart. */
int64_t ft__plan_period(const ft_arch *a, int64_t layers);
#endif
