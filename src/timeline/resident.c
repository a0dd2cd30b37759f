/* resident.c: contexts and workspaces by GPU. */
#include "timeline/resident.h"

#include <string.h>

#define MIB 1048576.0

double ft__context_bytes(const ft_device *device)
{
    (void)device;
    return 512 * MIB;
}

double ft__device_capacity(const ft_device *device) { return device->memory_gib * 1024 * MIB; }

/* PyTorch gives each cuBLAS handle a workspace: 32 MiB on Hopper and later (":4096:8"), 8 MiB + 128 KiB before
 * (":4096:2:16:8"). Autograd's thread has a handle of its own, so that training holds two. */
double ft__library_workspace(const ft_device *device, bool training)
{
    const bool hopper = device->vendor == FT_NVIDIA && device->year >= 2022 &&
                        strncmp(device->generation, "ada", 3) != 0;
    const double one = hopper ? 32 * MIB : 8.125 * MIB;
    return training ? 2 * one : one;
}
