/* Memory that no tensor asked for: the driver's context with its kernels, the libraries' workspaces. */
#ifndef FT_MEMORY_RESIDENT_H
#define FT_MEMORY_RESIDENT_H
#include "foretell.h"

double ft__context_bytes(const ft_device *device);                    /* outside of the allocator's books */
double ft__device_capacity(const ft_device *device);                  /* what the driver lets a process have */
double ft__library_workspace(const ft_device *device, bool training); /* inside of the allocator's books */
#endif
