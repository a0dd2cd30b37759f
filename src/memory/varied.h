/* What the allocator holds after steps whose lengths vary. */
#ifndef FT_MEMORY_VARIED_H
#define FT_MEMORY_VARIED_H
#include "timeline/step.h"

enum { FT_VARIED_GRAPHS = 3 };

/* One model's step at three lengths that rise: tensor by tensor the same but for their sizes, which in between follow a
 * parabola through the three (scores grow with the square of a length, all else in proportion). */
typedef struct ft_varied {
    const ft_graph *graph[FT_VARIED_GRAPHS];
    ft_workload work[FT_VARIED_GRAPHS];
    double at[FT_VARIED_GRAPHS];
    const double *lengths; /* of the steps, in their order, none beyond the last graph's */
    int steps;
} ft_varied;

/* Reserved bytes less the peak, after these steps on a GPU alone. Negative: the graphs are not alike, or nothing is
 * cached that way. The arena of the last graph is used. */
ft_status ft__varied_beyond(const ft_varied *v, const ft_device *device, double *beyond, ft_error *err);
#endif
