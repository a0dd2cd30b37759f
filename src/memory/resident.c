/* resident.c: contexts and workspaces by GPU. */
#include "memory/resident.h"

#include <string.h>

#include "device/traits.h"
#include "memory/resident_constants.h"

#define KIB 0x1p10
#define MIB 0x1p20

/* The driver keeps stacks and queues for every SM and the kernels that were loaded. */
double ft__context_bytes(const ft_device *device)
{
    static const double bare = FT_K_RESIDENT_CONTEXT_BARE_MIB * MIB, each_sm = FT_K_RESIDENT_CONTEXT_SM_MIB * MIB,
                        kernels = FT_K_RESIDENT_KERNELS_MIB * MIB;
    return bare + each_sm * device->sms + kernels;
}

/* What cudaMemGetInfo gives as the total is a little less than the name says. Error correction in GDDR, on by default
 * in parts for servers, takes another sixteenth: a T4 of 16 GiB has 14.75, an L4 of 24 has 22.5. HBM has its own bits
 * for it. */
double ft__device_capacity(const ft_device *device)
{
    static const double CORRECTED = 1 - 1.0 / 16;
    double bytes = device->memory_gib * 1024 * MIB;
    if (device->vendor != FT_VENDOR_NVIDIA) return bytes;
    return bytes * (device->inline_ecc ? CORRECTED : 1) * FT_K_RESIDENT_USABLE;
}

/* PyTorch gives each handle of the BLAS a workspace (parseChosenWorkspaceSize in ATen/cuda/CublasHandlePool.cpp): 32
 * MiB from Hopper on, 8 MiB and 128 KiB before; with ROCm 32 MiB, 128 MiB on gfx94x and gfx95x. Autograd's thread has a
 * handle of its own, so that training holds two. Measured on an H200: 64.0 MiB in training, 32.0 in inference. */
double ft__library_workspace(const ft_device *device, bool training)
{
    double one = 8 * MIB + 128 * KIB;
    if (device->vendor == FT_VENDOR_AMD)
        one = !strncmp(device->compute_capability, "gfx94", 5) || !strncmp(device->compute_capability, "gfx95", 5)
                  ? 128 * MIB
                  : 32 * MIB;
    else if (ft__compute_major(device) >= 9)
        one = 32 * MIB;
    return training ? 2 * one : one;
}
