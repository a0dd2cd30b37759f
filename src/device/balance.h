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

/* The same for arithmetic outside the matrix units, in fp32. A unary operator that reads and writes fp32 is bound by
 * memory until it does 8 times this many operations per element. */
double ft__vector_balance(const ft_device *device);

/* What units x clock give, in TFLOP/s: the fp32 lanes at the boost clock; the matrix units at the clock their peak is
 * quoted at, for a format that runs `factor` times as fast as fp16. */
double ft__vector_rate(const ft_device *device);
double ft__matrix_rate(const ft_device *device, double factor);
#endif
