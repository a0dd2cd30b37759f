/* The memory hierarchy of a GPU and the machine balance: how much arithmetic a byte must feed. */
#ifndef FT_DEVICE_BALANCE_H
#define FT_DEVICE_BALANCE_H
#include "foretell.h"

typedef struct ft_memory_level {
    const char *name;  /* "registers", "shared memory", "L2", "device memory" */
    double bytes;      /* over the whole GPU */
    double gbps;       /* reads, at the boost clock; 0 when neither published nor derivable */
    const char *basis; /* where the bandwidth comes from, or why there is none */
} ft_memory_level;

enum { FT_MEMORY_LEVELS = 4 };

/* From the arithmetic outwards. */
void ft__memory_levels(const ft_device *device, ft_memory_level out[FT_MEMORY_LEVELS]);

/* FLOP per byte of device memory above which a kernel in this format is bound by arithmetic: peak / bandwidth. 0 when
 * the GPU lacks the format. */
double ft__machine_balance(const ft_device *device, ft_dtype dtype);
#endif
