/* Which kernel the library takes for a convolution (conv_choice.c). */
#ifndef FT_KERNEL_CONV_CHOICE_H
#define FT_KERNEL_CONV_CHOICE_H
#include "kernel/conv_layer.h"

typedef struct ft_conv_choice {
    int way;  /* engine and tile as one number, engines of a kind beside each other; 0: not known */
    int m, n; /* its tile; 0: it has none */
    /* How it is run, where 16 bits were asked; 0: not known, or the engine has no such choice. */
    int cluster_m, cluster_n; /* tiles of a cluster */
    int depth, room;          /* which depth of a step, which workspace: the library's numbers from 1 on */
    int split;                /* into how many parts sums are shared out, from 1 on in powers of two */
} ft_conv_choice;

/* How it is run as numbers that trees cut: a cluster's sides, depth of a step beside workspace, the split of a sum, or
 * the one that was searched for where nothing is known. */
enum { FT_CLUSTER_SIDES = 16, FT_ROOM_DEPTHS = 4 };
static inline int ft__choice_cluster(ft_conv_choice way) { return way.cluster_m * FT_CLUSTER_SIDES + way.cluster_n; }
static inline int ft__choice_run(ft_conv_choice way) { return way.room * FT_ROOM_DEPTHS + way.depth; }
static inline int ft__choice_split(ft_conv_choice way, int searched) { return way.way > 0 ? way.split : searched; }

/* `part` is one of ft_conv_part's: the result, the image's gradient or the filters'. */
ft_conv_choice ft__conv_choice(const ft_device *device, const ft_op *op, const ft_conv_layer *l, int part);
#endif
