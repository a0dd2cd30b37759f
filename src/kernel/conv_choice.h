/* Which kernel the library takes for a convolution (conv_choice.c). */
#ifndef FT_KERNEL_CONV_CHOICE_H
#define FT_KERNEL_CONV_CHOICE_H
#include "kernel/conv_layer.h"

typedef struct ft_conv_choice {
    int way;  /* engine and tile as one number, engines of a kind beside each other; 0: not known */
    int m, n; /* its tile; 0: it has none */
} ft_conv_choice;

/* `part` is one of ft_conv_part's: the result, the picture's gradient or the filters'. */
ft_conv_choice ft__conv_choice(const ft_device *device, const ft_op *op, const ft_conv_layer *l, int part);
#endif
